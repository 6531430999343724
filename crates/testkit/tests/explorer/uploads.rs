//! Files that are read for an upload: piece by piece, nothing kept, nothing written.

use crate::world::{World, assert_refused, of_session};
use astrarium_testkit::Key;
use astrarium_testkit::http::Response;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn ask(world: &mut World, token: &str, options: &Value, piece: &[u8]) -> Response {
    let body = [options.to_string().as_bytes(), b"\n", piece].concat();
    let request = of_session(token, "POST", "read-rows").header("content-type", "application/octet-stream");
    world.client.ask(&request.body(body))
}

#[track_caller]
fn told(world: &mut World, token: &str, options: &Value, piece: &[u8]) -> Value {
    let answer = ask(world, token, options, piece);
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

fn options(name: &str, pass: &str) -> Value {
    json!({"database": "d", "container": "c", "name": name, "pass": pass, "last": true, "show": 10, "uploadId": "u"})
}

#[test]
fn a_csv_file_tells_its_columns_then_its_documents() {
    let mut world = World::new();
    let token = world.sign_in(Key::ReadOnly);
    let before = world.state();
    let file = b"id,pk,n,big,note\r\n7,a,1.50,12345678901234567890,\r\n8,b,x,1,\"two\r\nlines\"\r\n9,b\r\n";
    let seen = told(&mut world, &token, &options("items.csv", "columns"), file);
    assert_eq!(seen["format"], "csv");
    let kinds =
        json!([["id", "string"], ["pk", "string"], ["n", "string"], ["big", "number"], ["note", "string"]]);
    assert_eq!((&seen["columns"], &seen["taken"]), (&kinds, &json!(file.len())));
    let mut check = options("items.csv", "check");
    check["columns"] =
        json!([["id", "string"], ["pk", "string"], ["n", "number"], ["big", "number"], ["note", "string"]]);
    let checked = told(&mut world, &token, &check, file);
    assert_eq!((&checked["good"], &checked["bad"]), (&json!(1), &json!(2)));
    let document = &checked["documents"][0];
    assert_eq!((&document["row"], &document["line"]), (&json!(1), &json!(2)));
    assert_eq!(document["text"], "{\"id\":\"7\",\"pk\":\"a\",\"n\":1.50,\"big\":12345678901234567890}");
    let failures = checked["failures"].as_array().unwrap();
    assert_eq!((&failures[0]["line"], &failures[1]["line"]), (&json!(3), &json!(5)));
    assert_eq!(failures[0]["reason"], "column \"n\" has \"x\", which is not a number");
    assert!(failures[1]["reason"].as_str().unwrap().contains("2 cells"), "{failures:?}");
    assert_eq!(world.state(), before, "reading writes nothing");
}

#[test]
fn what_a_piece_ends_within_comes_again() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let file = b"[{\"id\":\"1\",\"pk\":\"a\"},\n {\"id\":\"2\",\"pk\":\"b\"}, {\"pk\":\"c\"}]";
    let mut ids = BTreeSet::new();
    for size in [5, 20, 1_000] {
        let (mut offset, mut length, mut state, mut texts) = (0, size, Value::Null, Vec::new());
        while offset < file.len() {
            let end = file.len().min(offset + length);
            let mut options = options("items.json", "documents");
            options["state"] = state.clone();
            options["last"] = json!(end == file.len());
            let answer = told(&mut world, &token, &options, &file[offset..end]);
            let taken = usize::try_from(answer["taken"].as_u64().unwrap()).unwrap();
            texts.extend(answer["documents"].as_array().unwrap().iter().map(|one| one["text"].clone()));
            state = answer["state"].clone();
            length = if taken == 0 { length + size } else { size };
            offset += taken;
        }
        assert_eq!(texts.len(), 3, "{size}");
        assert_eq!(texts[1], "{\"id\":\"2\",\"pk\":\"b\"}");
        // An id where there is none, and the same one for the same row of the same upload.
        let made: Value = serde_json::from_str(texts[2].as_str().unwrap()).unwrap();
        ids.insert(made["id"].as_str().unwrap().to_owned());
        assert_eq!(made["id"].as_str().unwrap().len(), 36);
    }
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[test]
fn ids_and_keys_are_made_by_template() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let mut options = options("items.jsonl", "check");
    options["id"] = json!("{name}-{#}");
    options["partitionKey"] = json!(["{group.name}"]);
    let file = b"{\"name\":\"x\",\"group\":{\"name\":\"g\"}}\n{\"name\":[]}\n{\"id\":7}\n";
    let checked = told(&mut world, &token, &options, file);
    assert_eq!(
        checked["documents"][0]["text"],
        "{\"id\":\"x-1\",\"pk\":\"g\",\"name\":\"x\",\"group\":{\"name\":\"g\"}}"
    );
    assert_eq!(checked["bad"], 2);
    options["id"] = json!("{name");
    assert_refused(400, "BadRequest", &ask(&mut world, &token, &options, file));
    options["id"] = Value::Null;
    options["partitionKey"] = json!(["{a}", "{b}"]);
    assert_refused(400, "BadRequest", &ask(&mut world, &token, &options, file));
    options["partitionKey"] = json!([]);
    let checked = told(&mut world, &token, &options, file);
    assert_eq!(checked["failures"][0]["reason"], "its id is not a string");
}

#[test]
fn pieces_and_what_is_told_of_them_are_bounded() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let wrong = "1\n".repeat(30_000);
    let checked = told(&mut world, &token, &options("x.jsonl", "check"), wrong.as_bytes());
    assert_eq!((&checked["bad"], &checked["taken"]), (&json!(20_000), &json!(40_000)));
    assert_eq!(checked["failures"].as_array().unwrap().len(), 100);
    let good = "{\"pk\":\"a\"}\n".repeat(3_000);
    let read = told(&mut world, &token, &options("x.jsonl", "documents"), good.as_bytes());
    assert_eq!(read["documents"].as_array().unwrap().len(), 1_000);
    // A line of 8 MB that does not end is no row yet, and too long a row at the end.
    let long = vec![b'x'; 8 << 20];
    let mut open = options("x.jsonl", "check");
    open["last"] = json!(false);
    assert_eq!(told(&mut world, &token, &open, &long)["taken"], 0);
    let ended = told(&mut world, &token, &options("x.jsonl", "check"), &long);
    assert!(ended["failures"][0]["reason"].as_str().unwrap().contains("longer than 4 MB"), "{ended}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let mut check = |change: &dyn Fn(&mut Value), piece: &[u8], status: u16| {
        let mut options = options("x.json", "check");
        change(&mut options);
        let answer = ask(&mut world, &token, &options, piece);
        assert_eq!(answer.status, status, "{options} {}", answer.text());
    };
    check(&|_| {}, b"[{\"pk\":\"a\"}]", 200);
    check(&|_| {}, b"[{\"pk\":\"a\"}", 400);
    check(&|options| options["name"] = json!("x.dat"), b"hello", 400);
    check(&|options| options["format"] = json!("parquet"), b"PAR1", 400);
    check(&|options| options["pass"] = json!("write"), b"[]", 400);
    check(&|options| options["container"] = json!("none"), b"[]", 404);
    check(&|options| options["state"] = json!({"offset": -1}), b"[]", 400);
    check(&|options| options["state"] = json!([]), b"[]", 400);
    check(&|options| options["columns"] = json!([["a", "date"]]), b"[]", 400);
    check(&|options| options["columns"] = json!([["a"]]), b"[]", 400);
    let hostile =
        json!({"offset": u64::MAX, "rows": u64::MAX, "lines": u64::MAX, "place": "comma", "columns": []});
    check(&|options| options["state"] = hostile.clone(), b"]", 200);
    let no_line = of_session(&token, "POST", "read-rows").body("{}");
    assert_refused(400, "BadRequest", &world.client.ask(&no_line));
    assert_refused(405, "MethodNotAllowed", &world.ask(&token, "GET", "read-rows", &Value::Null));
}
