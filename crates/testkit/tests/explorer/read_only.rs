//! A session that may only read changes nothing, by no verb, path or header.

use crate::world::{World, assert_refused, of_session};
use astrarium_testkit::{Credential, Key, Request};
use serde_json::{Value, json};

/// A request: verb, path below the wire, headers, body.
type Asked = (&'static str, &'static str, Vec<(&'static str, &'static str)>, Value);

/// Requests that change something.
fn writes() -> Vec<Asked> {
    const DOCS: &str = "dbs/d/colls/c/docs";
    let key = ("x-ms-documentdb-partitionkey", "[\"b\"]");
    let item = || json!({"id": "1", "pk": "b", "changed": true});
    vec![
        ("POST", "dbs", vec![], json!({"id": "x"})),
        ("DELETE", "dbs/d", vec![], Value::Null),
        (
            "POST",
            "dbs/d/colls",
            vec![],
            json!({"id": "x", "partitionKey": {"paths": ["/a"], "kind": "Hash"}}),
        ),
        (
            "PUT",
            "dbs/d/colls/c",
            vec![],
            json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}),
        ),
        ("DELETE", "dbs/d/colls/c", vec![], Value::Null),
        ("POST", DOCS, vec![key], json!({"id": "new", "pk": "b"})),
        ("POST", DOCS, vec![key, ("x-ms-documentdb-is-upsert", "true")], item()),
        ("PUT", "dbs/d/colls/c/docs/1", vec![key], item()),
        (
            "PATCH",
            "dbs/d/colls/c/docs/1",
            vec![key],
            json!({"operations": [{"op": "add", "path": "/x", "value": 1}]}),
        ),
        ("DELETE", "dbs/d/colls/c/docs/1", vec![key], Value::Null),
        (
            "POST",
            DOCS,
            vec![key, ("x-ms-cosmos-is-batch-request", "true"), ("x-ms-cosmos-batch-atomic", "true")],
            json!([{"operationType": "Create", "resourceBody": {"id": "new", "pk": "b"}}]),
        ),
        ("POST", "dbs/d/colls/c/operations/partitionkeydelete", vec![key], Value::Null),
        ("POST", "dbs/d/colls/c/sprocs", vec![], json!({"id": "x", "body": "function f(){}"})),
        ("POST", "dbs/d/colls/c/sprocs/x", vec![key], json!([])),
        ("POST", "dbs/d/users", vec![], json!({"id": "x"})),
        ("POST", "_admin/split", vec![], json!({"database": "d", "container": "c", "range": "0"})),
        ("POST", "_admin/clock", vec![], json!({"advanceSeconds": 60})),
    ]
}

#[test]
fn nothing_can_be_written_by_any_route() {
    let mut world = World::new();
    for token in [world.sign_in(Key::ReadOnly), {
        let link = world.server.explorer_link();
        let body = json!({"link": link, "readOnly": true});
        crate::world::token(&world.client.expect(200, &crate::world::sign_in(&body)))
    }] {
        let before = world.state();
        for (verb, path, headers, body) in writes() {
            let mut request = of_session(&token, verb, &format!("wire/{path}"));
            for (name, value) in headers {
                request = request.header(name, value);
            }
            request = request.body(if body.is_null() { String::new() } else { body.to_string() });
            let answer = world.client.ask(&request);
            assert_refused(403, "Forbidden", &answer);
            assert!(answer.text().contains("may only read"), "{verb} {path}: {}", answer.text());
            // Headers that name another verb are not read.
            let hidden =
                request.clone().header("x-http-method-override", "GET").header("x-http-method", "GET");
            assert_eq!(world.client.ask(&hidden).status, 403, "{verb} {path}");
            // A signature beside the session does not count, whoever made it.
            let signed = Request { credential: Credential::Key(Key::Primary), ..request.clone() };
            assert_eq!(world.client.ask(&signed).status, 403, "{verb} {path}");
            let mixed = request.clone().header("x-ms-documentdb-isquery", "true");
            let status = world.client.ask(&mixed).status;
            assert!(matches!(status, 200 | 400 | 403 | 404), "{verb} {path}: {status}");
        }
        for commit in [true, false] {
            let body = json!({
                "database": "d", "container": "c", "partitionKey": ["b"], "commit": commit,
                "body": "function f(){ getContext().getCollection().createDocument('', {id: 'new', pk: 'b'}) }",
            });
            assert_refused(403, "Forbidden", &world.ask(&token, "POST", "run-script", &body));
        }
        assert_eq!(world.state(), before);
    }
}

#[test]
fn everything_else_can_be_read() {
    let mut world = World::new();
    let token = world.sign_in(Key::ReadOnly);
    let found = world.told(&token, "GET", "wire/dbs/d/colls/c/docs", &Value::Null);
    assert_eq!(found["_count"], 6);
    let query = of_session(&token, "POST", "wire/dbs/d/colls/c/docs")
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "true")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
        .body("{\"query\":\"SELECT VALUE COUNT(1) FROM c\"}");
    assert!(world.client.expect(200, &query).text().contains("[6]"));
    for path in
        ["overview", "words", "requests", "schema?database=d&container=c", "ranges?database=d&container=c"]
    {
        world.told(&token, "GET", path, &Value::Null);
    }
    let body = json!({"database": "d", "container": "c", "sql": "SELECT * FROM c", "run": true});
    world.told(&token, "POST", "explain", &body);
}
