//! Data folders of every format (`tests/formats`) open for ever: all they hold is there, they verify, and take writes.
//!
//! A folder of the present format is made by the same code that checks it, through requests, which outlive every inside:
//! `MAKE_FORMAT_FOLDER=tests/formats/v<N> cargo test -p astrarium-server --test process formats`, the path from the repository's root.
//! It is made when the format changes, and never again.

use crate::program::{Program, run};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Client, Request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Documents of the first container; every seventh is removed, every fifth is patched.
const DOCUMENTS: u64 = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn folders_of_every_format_open() {
    if let Ok(folder) = std::env::var("MAKE_FORMAT_FOLDER") {
        return make(&root().join(folder));
    }
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("tests/formats")).unwrap() {
        let kept = entry.unwrap().path();
        if kept.is_dir() {
            check(&kept);
            count += 1;
        }
    }
    assert!(count > 0, "there are folders");
}

fn make(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let program = Program::on(folder, &[]);
    furnish(&mut program.client());
    program.stop();
    // What was written is merged when it is opened again, some of it remains in the journal.
    let program = Program::on(folder, &[]);
    for number in DOCUMENTS..DOCUMENTS + 20 {
        program.client().expect(201, &write(number));
    }
    program.stop();
    // Neither whose process it was nor keys belong into a repository; they are made again.
    std::fs::remove_file(folder.join("LOCK")).unwrap();
    std::fs::remove_dir_all(folder.join("tls")).unwrap();
}

fn check(kept: &Path) {
    let folder = tempfile::tempdir().unwrap();
    copy(kept, folder.path());
    verify(folder.path());
    let program = Program::on(folder.path(), &[]);
    let mut client = program.client();
    read_everything(&mut client);
    write_something(&mut client);
    program.stop();
    verify(folder.path());
    let program = Program::on(folder.path(), &[]);
    let written = program.client().expect(200, &point("GET", "/dbs/d/colls/plain/docs/new", "[\"p0\"]"));
    assert_eq!(json_of(&written)["n"], 1);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn verify(folder: &Path) {
    let verified = run(&["verify", "--data", folder.to_str().unwrap()]);
    assert!(verified.success && verified.stdout.contains("no problems found"), "{verified:?}");
}

fn json_of(response: &Response) -> Value {
    serde_json::from_str(&response.text()).unwrap()
}

fn post(target: &str, body: &Value) -> Request {
    Request::new("POST", target).body(body.to_string())
}

fn point(verb: &str, target: &str, key: &str) -> Request {
    Request::new(verb, target).partition_key(key)
}

fn document(number: u64) -> Value {
    json!({
        "id": number.to_string(), "pk": format!("p{}", number % 5), "n": number, "even": number.is_multiple_of(2),
        "name": format!("name {}", number % 17), "tags": [number % 3, "tag"], "deep": {"a": {"b": number / 10}}, "none": null
    })
}

fn write(number: u64) -> Request {
    post("/dbs/d/colls/plain/docs", &document(number)).partition_key(&format!("[\"p{}\"]", number % 5))
}

fn is_removed(number: u64) -> bool {
    number < DOCUMENTS && number.is_multiple_of(7)
}

fn is_patched(number: u64) -> bool {
    number < DOCUMENTS && number.is_multiple_of(5) && !is_removed(number)
}

/// Writes everything that a folder is to hold.
fn furnish(client: &mut Client) {
    client.expect(201, &post("/dbs", &json!({"id": "d"})));
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let composite = json!([[{"path": "/name", "order": "ascending"}, {"path": "/n", "order": "descending"}]]);
    let policy = json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/deep/*"}], "compositeIndexes": composite});
    for container in [
        json!({"id": "plain", "partitionKey": key, "indexingPolicy": policy}),
        json!({"id": "unique", "partitionKey": key, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/email"]}]}}),
        json!({"id": "expiring", "partitionKey": key, "defaultTtl": -1}),
        json!({"id": "levels", "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}}),
        json!({"id": "gone", "partitionKey": key}),
    ] {
        client.expect(201, &post("/dbs/d/colls", &container));
    }
    for number in 0..DOCUMENTS {
        client.expect(201, &write(number));
    }
    for number in 0..DOCUMENTS {
        let (target, key) = (format!("/dbs/d/colls/plain/docs/{number}"), format!("[\"p{}\"]", number % 5));
        if is_removed(number) {
            client.expect(204, &point("DELETE", &target, &key));
        } else if is_patched(number) {
            let patch = json!({"operations": [{"op": "incr", "path": "/n", "value": 1000}]});
            client.expect(200, &point("PATCH", &target, &key).body(patch.to_string()));
        }
    }
    for (container, document, key) in others() {
        let target = format!("/dbs/d/colls/{container}/docs");
        client.expect(201, &post(&target, &document).partition_key(&key.to_string()));
    }
    client.expect(204, &Request::new("DELETE", "/dbs/d/colls/gone"));
    for (kind, definition) in scripts() {
        client.expect(201, &post(&format!("/dbs/d/colls/plain/{kind}"), &definition));
    }
    client.expect(201, &post("/dbs/d/users", &json!({"id": "someone"})));
    let permission = json!({"id": "reads", "permissionMode": "Read", "resource": "dbs/d/colls/plain"});
    client.expect(201, &post("/dbs/d/users/someone/permissions", &permission));
    // Another index than the one that the documents were written with.
    let replaced = json!({"id": "unique", "partitionKey": key, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/email"]}]},
        "indexingPolicy": {"includedPaths": [{"path": "/email/?"}], "excludedPaths": [{"path": "/*"}]}});
    client.expect(200, &Request::new("PUT", "/dbs/d/colls/unique").body(replaced.to_string()));
}

/// Containers, documents and partition keys beside the first container's.
fn others() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("unique", json!({"id": "1", "pk": "a", "email": "a@example.com"}), json!(["a"])),
        ("unique", json!({"id": "2", "pk": "a", "email": "b@example.com"}), json!(["a"])),
        ("expiring", json!({"id": "short", "pk": "a", "ttl": 1}), json!(["a"])),
        ("expiring", json!({"id": "long", "pk": "a", "ttl": -1}), json!(["a"])),
        ("levels", json!({"id": "1", "a": "x", "b": 1.5}), json!(["x", 1.5])),
        ("levels", json!({"id": "1", "a": "x", "b": null}), json!(["x", null])),
    ]
}

fn scripts() -> Vec<(&'static str, Value)> {
    let add = "function add(a, b) { getContext().getResponse().setBody(a + b); }";
    let stamp = "function stamp() { const r = getContext().getRequest(); const d = r.getBody(); d.stamped = true; r.setBody(d); }";
    vec![
        ("sprocs", json!({"id": "add", "body": add})),
        (
            "triggers",
            json!({"id": "stamp", "body": stamp, "triggerType": "Pre", "triggerOperation": "Create"}),
        ),
        ("udfs", json!({"id": "twice", "body": "function twice(x) { return 2 * x; }"})),
    ]
}

fn query(client: &mut Client, text: &str, key: &str) -> Value {
    let request = point("POST", "/dbs/d/colls/plain/docs", key)
        .header("x-ms-documentdb-isquery", "true")
        .header("content-type", "application/query+json")
        .header("x-ms-max-item-count", "1000")
        .body(json!({"query": text, "parameters": []}).to_string());
    json_of(&client.expect(200, &request))["Documents"].take()
}

fn read_everything(client: &mut Client) {
    let all = DOCUMENTS + 20;
    for number in 0..all {
        let (target, key) = (format!("/dbs/d/colls/plain/docs/{number}"), format!("[\"p{}\"]", number % 5));
        let answer = client.ask(&point("GET", &target, &key));
        assert_eq!(answer.status, if is_removed(number) { 404 } else { 200 }, "{target}");
        if answer.status == 200 {
            let (found, mut expected) = (json_of(&answer), document(number));
            if is_patched(number) {
                expected["n"] = json!(number + 1000);
            }
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(&found[name], value, "{name} of {number}");
            }
        }
    }
    let of_p1 = || (0..all).filter(|number| number % 5 == 1 && !is_removed(*number));
    let texts = |numbers: Vec<u64>| json!(numbers.iter().map(u64::to_string).collect::<Vec<_>>());
    let found = query(client, "SELECT VALUE c.id FROM c WHERE c.n >= 300 ORDER BY c.n", "[\"p1\"]");
    assert_eq!(found, texts(of_p1().filter(|number| *number >= 300).collect()));
    let found = query(
        client,
        "SELECT VALUE c.id FROM c WHERE c.name = 'name 3' ORDER BY c.name, c.n DESC",
        "[\"p1\"]",
    );
    assert_eq!(
        found,
        texts(of_p1().filter(|number| number % 17 == 3).collect::<Vec<_>>().into_iter().rev().collect())
    );
    let found = query(client, "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 2)", "[\"p1\"]");
    assert_eq!(found, json!([of_p1().filter(|number| number % 3 == 2).count()]));
    let found = query(client, "SELECT VALUE udf.twice(c.n) FROM c WHERE c.id = '1'", "[\"p1\"]");
    assert_eq!(found, json!([2]));
    for (container, document, key) in others() {
        let target = format!("/dbs/d/colls/{container}/docs/{}", document["id"].as_str().unwrap());
        let status = if document["ttl"] == 1 { 404 } else { 200 };
        let answer = client.ask(&point("GET", &target, &key.to_string()));
        assert_eq!(answer.status, status, "{target} {}", answer.text());
    }
    client.expect(404, &Request::new("GET", "/dbs/d/colls/gone"));
    let user = client.expect(200, &Request::new("GET", "/dbs/d/users/someone/permissions/reads"));
    assert_eq!(json_of(&user)["permissionMode"], "Read");
}

fn write_something(client: &mut Client) {
    let taken = json!({"id": "3", "pk": "a", "email": "b@example.com"});
    client.expect(409, &post("/dbs/d/colls/unique/docs", &taken).partition_key("[\"a\"]"));
    let new = json!({"id": "new", "pk": "p0", "n": 1});
    let create = post("/dbs/d/colls/plain/docs", &new).partition_key("[\"p0\"]");
    let created = client.expect(201, &create.header("x-ms-documentdb-pre-trigger-include", "stamp"));
    assert_eq!(json_of(&created)["stamped"], true);
    let call = post("/dbs/d/colls/plain/sprocs/add", &json!([40, 2])).partition_key("[\"p0\"]");
    assert_eq!(client.expect(200, &call).text(), "42");
    client.expect(204, &point("DELETE", "/dbs/d/colls/plain/docs/5", "[\"p0\"]"));
    let replaced = document(6).to_string();
    client.expect(200, &point("PUT", "/dbs/d/colls/plain/docs/6", "[\"p1\"]").body(replaced));
}
