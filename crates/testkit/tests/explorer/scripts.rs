//! A run of a stored procedure to look at: its calls and changes, committed or not.

use crate::world::{DOCS, World, assert_refused};
use astrarium_testkit::{Key, Request};
use serde_json::{Value, json};

/// Creates an item, changes one, deletes one, and answers.
const SOURCE: &str = "function work(name) {
    console.log('begins', name);
    var container = getContext().getCollection(), link = container.getSelfLink();
    container.createDocument(link, {id: name, pk: 'b'}, function (error, made) {
        if (error) throw error;
        container.queryDocuments(link, {query: 'SELECT * FROM c WHERE c.n = @n', parameters: [{name: '@n', value: 1}]},
            function (error, rows) {
                rows[0].n = 100;
                container.replaceDocument(rows[0]._self, rows[0], {etag: rows[0]._etag}, function (error, changed) {
                    container.deleteDocument(container.getAltLink() + '/docs/3', {}, function (error) {
                        container.readDocument(container.getAltLink() + '/docs/none', {}, function (error) {
                            getContext().getResponse().setBody({n: changed.n, missing: error.number});
                        });
                    });
                });
            });
    });
}";

fn run(source: &str, commit: bool) -> Value {
    json!({
        "database": "d", "container": "c", "partitionKey": ["b"], "commit": commit, "body": source,
        "arguments": ["new"],
    })
}

#[track_caller]
fn assert_traced(trace: &Value, is_committed: bool) {
    assert_eq!(trace["error"], Value::Null, "{trace}");
    assert_eq!(trace["committed"], is_committed);
    assert_eq!(trace["result"], json!({"n": 100, "missing": 404}));
    assert!(trace["console"][0].as_str().is_some_and(|line| line.contains("begins")), "{trace}");
    let calls = trace["calls"].as_array().unwrap();
    let functions: Vec<&str> = calls.iter().map(|call| call["function"].as_str().unwrap()).collect();
    assert_eq!(
        functions,
        ["createDocument", "queryDocuments", "replaceDocument", "deleteDocument", "readDocument"]
    );
    assert_eq!(calls[0]["arguments"][0]["id"], "new");
    assert_eq!(calls[0]["result"]["id"], "new");
    assert_eq!(calls[1]["arguments"][0]["parameters"][0]["value"], 1);
    assert_eq!(calls[1]["result"]["rows"][0]["id"], "1");
    assert_eq!(calls[2]["result"]["n"], 100);
    assert_eq!((&calls[3]["arguments"][0], &calls[3]["error"]), (&json!("3"), &Value::Null));
    assert!(calls[4]["error"].as_str().is_some_and(|error| error.starts_with("404")), "{trace}");
    let changes = trace["changes"].as_array().unwrap();
    let of = |kind: &str| changes.iter().find(|change| change["kind"] == kind).expect("a change of the kind");
    assert_eq!(changes.len(), 3);
    assert_eq!((&of("create")["id"], &of("create")["before"]), (&json!("new"), &Value::Null));
    assert_eq!((&of("replace")["before"]["n"], &of("replace")["after"]["n"]), (&json!(1), &json!(100)));
    assert_eq!((&of("delete")["before"]["id"], &of("delete")["after"]), (&json!("3"), &Value::Null));
    assert!(trace["charge"].as_f64().unwrap() > 10.0);
}

#[test]
fn a_run_without_commit_writes_nothing() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let before = world.state();
    for _ in 0..2 {
        let trace = world.told(&token, "POST", "run-script", &run(SOURCE, false));
        assert_traced(&trace, false);
    }
    assert_eq!(world.state(), before);
}

#[test]
fn a_commit_writes_what_was_told() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let dry = world.told(&token, "POST", "run-script", &run(SOURCE, false));
    let trace = world.told(&token, "POST", "run-script", &run(SOURCE, true));
    assert_traced(&trace, true);
    assert_eq!(trace["charge"], dry["charge"]);
    let read = |id: &str| Request::new("GET", &format!("{DOCS}/{id}")).partition_key("[\"b\"]");
    let item: Value = serde_json::from_slice(&world.client.expect(200, &read("1")).body).unwrap();
    assert_eq!(item["n"], 100);
    world.client.expect(200, &read("new"));
    world.client.expect(404, &read("3"));
    // Again the item is there already, so the script throws, and nothing happens.
    let before = world.state();
    let failed = world.told(&token, "POST", "run-script", &run(SOURCE, true));
    assert!(failed["error"]["message"].as_str().unwrap().contains("already exists"), "{failed}");
    assert_eq!((&failed["committed"], &failed["changes"]), (&json!(false), &json!([])));
    assert!(failed["calls"][0]["error"].as_str().unwrap().starts_with("409"));
    assert_eq!(world.state(), before);
}

#[test]
fn a_stored_procedure_runs_too() {
    let mut world = World::new();
    let sproc = json!({"id": "work", "body": SOURCE}).to_string();
    world.client.expect(201, &Request::new("POST", "/dbs/d/colls/c/sprocs").body(sproc));
    let token = world.sign_in(Key::Primary);
    let mut body = run("", false);
    body.as_object_mut().unwrap().remove("body");
    body["procedure"] = json!("work");
    assert_traced(&world.told(&token, "POST", "run-script", &body), false);
    body["procedure"] = json!("none");
    assert_refused(404, "NotFound", &world.ask(&token, "POST", "run-script", &body));
}

#[test]
fn scripts_that_fail_are_told() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let before = world.state();
    let thrown = "function f() {\n  console.log('here');\n  throw new Error('<b>no</b>');\n}";
    let told = world.told(&token, "POST", "run-script", &run(thrown, true));
    assert_eq!((&told["error"]["line"], &told["console"]), (&json!(3), &json!(["here"])), "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("<b>no</b>"));
    let broken = world.told(&token, "POST", "run-script", &run("function (", true));
    assert!(broken["error"]["message"].as_str().unwrap().contains("SyntaxError"), "{broken}");
    // Writes of one that fails afterwards have not happened, and are told as calls.
    let late = "function f() { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), {id: 'late', pk: 'b'}, function () { throw new Error('late'); }); }";
    let told = world.told(&token, "POST", "run-script", &run(late, true));
    assert_eq!((told["calls"].as_array().unwrap().len(), &told["committed"]), (1, &json!(false)), "{told}");
    // Another partition is out of reach, as for every script.
    let foreign = "function f() { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), {id: 'x', pk: 'a'}, function (e) { if (e) throw e; }); }";
    let told = world.told(&token, "POST", "run-script", &run(foreign, true));
    assert!(told["calls"][0]["error"].as_str().unwrap().contains("partition keys"), "{told}");
    assert_eq!(world.state(), before);
    for body in [
        json!({}),
        json!({"database": "d", "container": "c", "partitionKey": ["b"]}),
        json!({"database": "d", "container": "c", "body": "x", "procedure": "y", "partitionKey": ["b"]}),
        json!({"database": "d", "container": "c", "body": "function f(){}", "partitionKey": "b"}),
        json!({"database": "d", "container": "c", "body": "function f(){}", "partitionKey": ["b", "c"]}),
        json!({"database": "d", "container": "c", "body": "function f(){}", "partitionKey": [["b"]]}),
    ] {
        assert_refused(400, "BadRequest", &world.ask(&token, "POST", "run-script", &body));
    }
}

/// A script that calls without end is ended, and what is told of it has a bound.
#[test]
fn traces_are_bounded() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let many =
        "function f() { var c = getContext().getCollection(), link = c.getAltLink() + '/docs/1', count = 0;
        function next() { if (++count > 2100) return; c.readDocument(link, {}, next); }
        next(); }";
    let told = world.told(&token, "POST", "run-script", &run(many, false));
    assert_eq!(told["calls"].as_array().unwrap().len(), 2000, "{}", told["error"]);
    assert_eq!(told["callsLeftOut"], 100);
    let large = "function f() { var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), {id: 'large', pk: 'b', text: 'x'.repeat(100000)}); }";
    let told = world.told(&token, "POST", "run-script", &run(large, false));
    assert!(told["calls"][0]["arguments"][0].as_str().unwrap().contains("bytes)"), "{}", told["error"]);
}
