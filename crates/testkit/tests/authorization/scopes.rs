//! What one kind of token may and may not do, with requests made for it.

use crate::world::{World, text};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Credential, Key, Request};

const DOCS: &str = "/dbs/d/colls/c/docs";

fn bulk(range: &str, key: Option<&str>, keys: &[&str], atomic: bool) -> Request {
    let operations: Vec<String> = keys
        .iter()
        .enumerate()
        .map(|(index, key)| {
            let own = if key.is_empty() { String::new() } else { format!("\"partitionKey\":\"[\\\"{key}\\\"]\",") };
            let pk = if key.is_empty() { "a" } else { key };
            format!("{{\"operationType\":\"Upsert\",{own}\"resourceBody\":{{\"id\":\"n{index}\",\"pk\":\"{pk}\"}}}}")
        })
        .collect();
    let mut request = Request::new("POST", DOCS)
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", if atomic { "True" } else { "False" });
    if !range.is_empty() {
        request = request.header("x-ms-documentdb-partitionkeyrangeid", range);
    }
    if let Some(key) = key {
        request = request.partition_key(key);
    }
    request.body(format!("[{}]", operations.join(",")))
}

#[test]
fn every_operation_of_a_batch_stays_in_the_partition() {
    let mut world = World::new();
    let token = world.grant("u", "a", "All", "dbs/d/colls/c", "[\"a\"]");
    let mut send = |status: u16, request: Request| {
        world.client.expect(status, &request.credential(token.clone()));
    };
    let (a, b) = (Some("[\"a\"]"), Some("[\"b\"]"));
    send(200, bulk("0", None, &["a", "a"], false));
    send(200, bulk("", a, &["", "a"], false));
    send(200, bulk("", a, &["", "a"], true));
    for (range, key, keys) in [
        ("0", None, &["a", "b"][..]),
        ("0", None, &["b"]),
        ("0", None, &["a", ""]),
        ("0", a, &["", "b"]),
        ("", a, &["b"]),
        ("", b, &["a"]),
        ("0", b, &["a", "a"]),
    ] {
        send(403, bulk(range, key, keys, false));
        send(403, bulk(range, key, keys, true));
    }
    let found = world.client.expect(200, &Request::new("GET", DOCS).partition_key("[\"b\"]")).text();
    assert!(found.contains("\"_count\":1"), "{found}");
}

/// Keys of several levels: a token is for exactly the key it names.
#[test]
fn a_token_of_a_hierarchical_key() {
    let mut world = World::new();
    let container =
        "{\"id\":\"h\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}}";
    world.create("/dbs/d/colls", container);
    let docs = "/dbs/d/colls/h/docs";
    for (tenant, user) in [("t", "1"), ("t", "2"), ("s", "1")] {
        let body = format!("{{\"id\":\"x\",\"a\":\"{tenant}\",\"b\":\"{user}\"}}");
        let key = format!("[\"{tenant}\",\"{user}\"]");
        world.client.expect(201, &Request::new("POST", docs).partition_key(&key).body(body));
    }
    let one = world.grant("u", "one", "All", "dbs/d/colls/h", "[\"t\",\"1\"]");
    let prefix = world.grant("u", "prefix", "Read", "dbs/d/colls/h", "[\"t\"]");
    let mut send = |status: u16, credential: &Credential, key: &str| {
        let request = Request::new("GET", docs).partition_key(key).credential(credential.clone());
        world.client.expect(status, &request)
    };
    assert!(send(200, &one, "[\"t\",\"1\"]").text().contains("\"_count\":1"));
    send(403, &one, "[\"t\"]");
    send(403, &one, "[\"t\",\"2\"]");
    send(403, &one, "[]");
    assert!(send(200, &prefix, "[\"t\"]").text().contains("\"_count\":2"));
    send(403, &prefix, "[\"s\"]");
    send(403, &prefix, "[\"t\",\"1\"]");
}

/// A procedure that runs with the token's key finds and writes that partition only.
#[test]
fn scripts_stay_in_the_partition() {
    let mut world = World::new();
    let token = world.grant("u", "a", "All", "dbs/d/colls/c", "[\"a\"]");
    let execute = |name: &str, key: &str| {
        let target = format!("/dbs/d/colls/c/sprocs/{name}");
        Request::new("POST", &target).partition_key(key).body("[]").credential(token.clone())
    };
    let told = world.client.expect(200, &execute("teller", "[\"a\"]")).text();
    assert!(told.contains("mark-d-c-a") && !told.contains("mark-d-c-b"), "{told}");
    world.client.expect(403, &execute("teller", "[\"b\"]"));
    world.client.ask(&execute("p", "[\"a\"]"));
    let found = world.client.expect(200, &Request::new("GET", DOCS).partition_key("[\"b\"]")).text();
    assert!(found.contains("\"_count\":1"), "{found}");
}

/// A continuation of another sender's feed or query leads nowhere else.
#[test]
fn continuations_stay_in_the_partition() {
    let mut world = World::new();
    for index in 0..6 {
        for key in ["a", "b"] {
            let body = format!("{{\"id\":\"{index}\",\"pk\":\"{key}\",\"mark\":\"mark-d-c-{key}\"}}");
            let key = format!("[\"{key}\"]");
            world.client.expect(201, &Request::new("POST", DOCS).partition_key(&key).body(body));
        }
    }
    let token = world.grant("u", "a", "Read", "dbs/d/colls/c", "[\"a\"]");
    let feed = |key: &str| {
        let request = Request::new("GET", DOCS).header("x-ms-max-item-count", "1");
        if key.is_empty() { request } else { request.partition_key(key) }
    };
    let query = |key: &str| {
        let request = Request::new("POST", DOCS)
            .header("x-ms-documentdb-isquery", "True")
            .header("x-ms-documentdb-query-enablecrosspartition", "True")
            .header("content-type", "application/query+json")
            .header("x-ms-max-item-count", "1")
            .body("{\"query\":\"SELECT * FROM c\"}");
        if key.is_empty() { request } else { request.partition_key(key) }
    };
    let makers: [&dyn Fn(&str) -> Request; 2] = [&feed, &query];
    for make in makers {
        for from in ["", "[\"b\"]"] {
            let page = world.client.expect(200, &make(from));
            let continuation = page.header("x-ms-continuation").unwrap().to_owned();
            let request = make("[\"a\"]").header("x-ms-continuation", &continuation);
            let page = world.client.ask(&request.credential(token.clone()));
            assert!(!page.text().contains("mark-d-c-b"), "from {from:?}: {}", page.text());
        }
    }
}

/// A document is permitted by its name, and its text as a rid is another one; and the other way round.
#[test]
fn names_and_rids_of_documents_do_not_mix() {
    let mut world = World::new();
    let rid = world.rids["item"].clone();
    let (d, c) = (world.rids["d"].clone(), world.rids["d/c"].clone());
    let by_name = world.grant("u", "name", "All", &format!("dbs/d/colls/c/docs/{rid}"), "");
    let by_rid = world.grant("u", "rid", "All", &format!("dbs/{d}/colls/{c}/docs/{rid}"), "");
    let named = Request::new("GET", &format!("{DOCS}/{rid}")).partition_key("[\"a\"]");
    let rids = Request::new("GET", &format!("/dbs/{d}/colls/{c}/docs/{rid}")).partition_key("[\"a\"]");
    world.client.expect(404, &named.clone().credential(by_name.clone()));
    world.client.expect(403, &rids.clone().credential(by_name));
    world.client.expect(403, &named.credential(by_rid.clone()));
    world.client.expect(200, &rids.credential(by_rid));
}

/// A permission of a database that has another one's rid as its name is for itself.
#[test]
fn a_permission_means_its_own_database() {
    let mut world = World::new();
    let victim = world.rids["d"].clone();
    world.create("/dbs", &format!("{{\"id\":\"{victim}\"}}"));
    let named =
        |verb: &str, below: &str| Request::new(verb, &format!("/dbs/{victim}{below}")).signed_by_names();
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}";
    world.client.expect(201, &named("POST", "/colls").body(container));
    world.client.expect(201, &named("POST", "/users").body("{\"id\":\"u\"}"));
    for (id, link) in [("1", format!("dbs/{victim}")), ("2", format!("dbs/{victim}/colls/c"))] {
        let body = format!("{{\"id\":\"{id}\",\"permissionMode\":\"All\",\"resource\":\"{link}\"}}");
        let made = world.client.expect(201, &named("POST", "/users/u/permissions").body(body));
        let token = Credential::Token(text(&made, "_token"));
        let read = |target: &str| Request::new("GET", target).credential(token.clone());
        let own = world.client.expect(200, &read(&format!("/dbs/{victim}/colls/c/docs"))).text();
        assert!(own.contains("\"_count\":0"), "{own}");
        for target in ["/dbs/d".to_owned(), "/dbs/d/colls/c".to_owned(), format!("{DOCS}/kept")] {
            world.client.expect(403, &read(&target).partition_key("[\"a\"]"));
        }
        let (d, c) = (&world.rids["d"], &world.rids["d/c"]);
        world.client.expect(403, &read(&format!("/dbs/{d}/colls/{c}/docs")));
    }
}

/// A token of one document does not run triggers, which may write others.
#[test]
fn a_document_token_runs_no_triggers() {
    let mut world = World::new();
    let token = world.grant("u", "1", "All", "dbs/d/colls/c/docs/kept", "");
    let request = Request::new("PUT", &format!("{DOCS}/kept"))
        .partition_key("[\"a\"]")
        .body("{\"id\":\"kept\",\"pk\":\"a\"}")
        .credential(token);
    world.client.expect(403, &request.clone().header("x-ms-documentdb-pre-trigger-include", "t"));
    world.client.expect(200, &request);
}

fn shows_token(response: &Response) -> bool {
    response.text().contains("type=resource")
}

/// Tokens are for the account's own keys to see: on reads, in feeds and in queries.
#[test]
fn only_account_keys_see_tokens() {
    let mut world = World::new();
    let reader = world.grant("u", "read", "Read", "dbs/d", "");
    let writer = world.grant("u", "all", "All", "dbs/d", "");
    let feed = "/dbs/d/users/u/permissions";
    let query = Request::new("POST", feed)
        .header("x-ms-documentdb-isquery", "True")
        .header("content-type", "application/query+json")
        .body("{\"query\":\"SELECT VALUE c._token FROM c\"}");
    let requests = [Request::new("GET", feed), Request::new("GET", &format!("{feed}/all")), query];
    for request in requests {
        for key in [Key::Primary, Key::Secondary] {
            let response = world.client.expect(200, &request.clone().credential(Credential::Key(key)));
            assert!(shows_token(&response), "{}", response.text());
        }
        for credential in [Credential::Key(Key::ReadOnly), reader.clone(), writer.clone()] {
            let response = world.client.expect(200, &request.clone().credential(credential));
            assert!(!shows_token(&response), "{}", response.text());
        }
    }
}

/// A token ends with what it came from, whoever ends it, and with the container and database it is for.
#[test]
fn tokens_die_with_their_sources() {
    let mut world = World::new();
    let read = |token: &Credential| {
        Request::new("GET", &format!("{DOCS}/kept")).partition_key("[\"a\"]").credential(token.clone())
    };
    let first = world.grant("u", "p", "All", "dbs/d/colls/c", "");
    world.client.expect(200, &read(&first));
    // The same definition once more is a change too: the etag is another.
    let same = "{\"id\":\"p\",\"permissionMode\":\"All\",\"resource\":\"dbs/d/colls/c\"}";
    let put = Request::new("PUT", "/dbs/d/users/u/permissions/p").body(same);
    let second = Credential::Token(text(&world.client.expect(200, &put), "_token"));
    world.client.expect(403, &read(&first));
    world.client.expect(200, &read(&second));
    // A user may be renamed.
    world.client.expect(200, &Request::new("PUT", "/dbs/d/users/u").body("{\"id\":\"renamed\"}"));
    world.client.expect(200, &read(&second));
    world.client.expect(204, &Request::new("DELETE", "/dbs/d/users/renamed"));
    world.client.expect(403, &read(&second));
    world.create("/dbs/d/users", "{\"id\":\"u\"}");
    let third = world.grant("u", "p", "All", "dbs/d", "");
    world.client.expect(403, &read(&second));
    world.client.expect(200, &read(&third));
    world.client.expect(403, &Request::new("DELETE", "/dbs/d").credential(third.clone()));
    world.client.expect(204, &Request::new("DELETE", "/dbs/d"));
    world.create("/dbs", "{\"id\":\"d\"}");
    world.create("/dbs/d/colls", "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}");
    world.client.expect(403, &read(&third));
    world.client.expect(403, &Request::new("GET", "/").credential(third));
}
