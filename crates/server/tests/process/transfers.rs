//! An account moves from a data folder into a store and back, and clients see no difference.

use crate::program::{DOCS, Program, create, refused, run};
use astrarium_testkit::{Client, Request, postgres};
use std::collections::BTreeMap;

const BOUNDED: &str = "/dbs/d/colls/bounded";

/// An account with something of everything.
fn furnish(server: &Program) {
    server.furnish();
    let mut client = server.client();
    let mut make = |path: &str, body: &str| client.expect(201, &Request::new("POST", path).body(body));
    make(
        "/dbs/d/colls",
        "{\"id\":\"bounded\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":100000,\
         \"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\
         \"changeFeedPolicy\":{\"retentionDuration\":600}}",
    );
    make(
        &format!("{BOUNDED}/sprocs"),
        "{\"id\":\"p\",\"body\":\"function () { getContext().getResponse().setBody(7); }\"}",
    );
    make(&format!("{BOUNDED}/udfs"), "{\"id\":\"f\",\"body\":\"function (x) { return x + 1; }\"}");
    make("/dbs/d/users", "{\"id\":\"ada\"}");
    make(
        "/dbs/d/users/ada/permissions",
        "{\"id\":\"q\",\"permissionMode\":\"read\",\"resource\":\"dbs/d/colls/c\"}",
    );
    for number in 0..40 {
        client.expect(201, &create(&number.to_string(), &"x".repeat(number * 50)));
        client.expect(201, &bounded(number));
    }
    for number in [3, 17] {
        let delete = Request::new("DELETE", &format!("{DOCS}/{number}")).partition_key("[\"a\"]");
        client.expect(204, &delete);
    }
    // A value of several chunks in the store.
    client.expect(201, &create("long", &"y".repeat(1_500_000)));
}

fn bounded(number: usize) -> Request {
    let body = format!("{{\"id\":\"{number}\",\"pk\":\"b\",\"email\":\"e{number}\",\"n\":{number}}}");
    Request::new("POST", &format!("{BOUNDED}/docs")).partition_key("[\"b\"]").body(body)
}

fn query(path: &str, key: &str, text: &str) -> Request {
    Request::new("POST", &format!("{path}/docs"))
        .partition_key(key)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-max-item-count", "1000")
        .body(format!("{{\"query\":\"{text}\"}}"))
}

fn feed(token: &str) -> Request {
    let feed = Request::new("GET", DOCS).partition_key("[\"a\"]").header("a-im", "Incremental feed");
    if token.is_empty() { feed } else { feed.header("if-none-match", token) }
}

/// All that a client sees, by what it asked.
fn seen(client: &mut Client) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for path in [
        "/dbs",
        "/dbs/d/colls",
        "/dbs/d/colls/c",
        "/dbs/d/users/ada",
        "/offers",
        "/dbs/d/colls/bounded/sprocs",
        "/dbs/d/colls/bounded/udfs/f",
        "/dbs/d/colls/c/pkranges",
    ] {
        seen.insert(path.to_owned(), client.expect(200, &Request::new("GET", path)).text());
    }
    for (path, key) in [("/dbs/d/colls/c", "[\"a\"]"), (BOUNDED, "[\"b\"]")] {
        for text in ["SELECT * FROM c", "SELECT c.id FROM c WHERE c.n > 11", "SELECT VALUE COUNT(1) FROM c"] {
            let answer = client.expect(200, &query(path, key, text));
            let token = answer.header("x-ms-session-token").unwrap().to_owned();
            seen.insert(format!("{path} {text}"), format!("{token} {}", answer.text()));
        }
    }
    let all = client.expect(200, &feed(""));
    seen.insert("feed".to_owned(), format!("{:?} {}", all.header("etag"), all.text()));
    seen
}

/// Fails with the first difference, and with what is around it.
#[track_caller]
fn check_same(found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) {
    for (asked, expected) in expected {
        let found = &found[asked];
        let differs = found.bytes().zip(expected.bytes()).position(|(found, expected)| found != expected);
        let place = differs.unwrap_or(found.len().min(expected.len())).saturating_sub(60);
        let around = |text: &str| text.chars().skip(place).take(120).collect::<String>();
        assert!(found == expected, "{asked}: {:?} instead of {:?}", around(found), around(expected));
    }
}

#[test]
fn an_account_moves_into_a_store_and_back() {
    let Some(cluster) = postgres::cluster() else { return };
    let folders = tempfile::tempdir().unwrap();
    let (first, second) = (folders.path().join("first"), folders.path().join("second"));
    let server = Program::on(&first, &[]);
    furnish(&server);
    let before = seen(&mut server.client());
    let position = server.client().expect(200, &feed("")).header("etag").unwrap().to_owned();
    server.stop();
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let store = format!("{}?schema=imported", cluster.url());
    let imported = run(&["store", "import", "--data", first, "--store", &store]);
    assert!(imported.success && imported.stdout.contains("problems       0"), "{imported:?}");
    refused(&["store", "import", "--data", first, "--store", &store], &["has an account already"]);

    let server = Program::on_store(&store, &[]);
    let mut client = server.client();
    check_same(&seen(&mut client), &before);
    refused(&["store", "export", "--store", &store, "--data", second], &["stop all servers first"]);
    // Life goes on where it was: a unique key holds, etags are new, the feed goes on after its position.
    let conflict = bounded(5).body("{\"id\":\"other\",\"pk\":\"b\",\"email\":\"e5\"}");
    client.expect(409, &conflict);
    let etag = client.expect(201, &create("new", "x")).header("etag").unwrap().to_owned();
    assert!(!before.values().any(|text| text.contains(etag.trim_matches('"'))), "{etag}");
    let changes = client.expect(200, &feed(&position)).text();
    assert!(changes.contains("\"new\"") && !changes.contains("\"long\""), "{changes}");
    let ran = client.expect(
        200,
        &Request::new("POST", &format!("{BOUNDED}/sprocs/p")).partition_key("[\"b\"]").body("[]"),
    );
    assert_eq!(ran.text(), "7");
    let between = seen(&mut client);
    server.stop();

    let exported = run(&["store", "export", "--store", &store, "--data", second]);
    assert!(exported.success && exported.stdout.contains("problems       0"), "{exported:?}");
    refused(&["store", "export", "--store", &store, "--data", second], &["has an account already"]);
    let server = Program::on(second.as_ref(), &[]);
    check_same(&seen(&mut server.client()), &between);
    server.client().expect(201, &create("newer", "x"));
    server.stop();
    assert!(run(&["verify", "--data", second]).success);
}
