//! Two servers over one storage, as clients see them behind a balancer: whatever was done through one holds at the other, at its first
//! answer.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

use astrarium_testkit::http::Response;
use astrarium_testkit::request::Credential;
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};
use serde_json::{Value, json};

struct Servers {
    one: Client,
    other: Client,
    /// Stopped when the test is over.
    running: [Server; 2],
}

impl Servers {
    /// Both know the container `d/c`.
    fn start(engine: EngineKind) -> Servers {
        let servers: [Server; 2] = Server::start_several(&Options::on(engine));
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        one.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        make(&mut one, &json!({}));
        one.expect(200, &Request::new("GET", DOCS));
        other.expect(200, &Request::new("GET", DOCS));
        Servers { one, other, running: servers }
    }

    /// Splits a range through the first server.
    fn split(&mut self, id: &str) {
        let body = json!({"database": "d", "container": "c", "range": id}).to_string();
        let answer = self.one.expect(200, &Request::new("POST", "/_admin/split").body(body));
        assert_eq!(parsed(&answer)["pending"], false, "{}", answer.text());
        self.running[0].settle();
    }
}

/// Checks something of two servers over every storage that servers can share.
fn on_every_storage(check: impl Fn(&mut Servers)) {
    for engine in EngineKind::all_shared() {
        println!("{}", engine.name());
        check(&mut Servers::start(engine));
    }
}

const DOCS: &str = "/dbs/d/colls/c/docs";

fn parsed(response: &Response) -> Value {
    serde_json::from_str(&response.text()).unwrap()
}

fn make(client: &mut Client, more: &Value) -> String {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = client.expect(201, &Request::new("POST", "/dbs/d/colls").body(body.to_string()));
    parsed(&made)["_rid"].as_str().unwrap().to_owned()
}

fn make_again(client: &mut Client) -> String {
    client.expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
    make(client, &json!({}))
}

fn creation(id: &str) -> Request {
    let body = json!({"id": id, "pk": "a", "n": 1}).to_string();
    Request::new("POST", DOCS).partition_key("[\"a\"]").body(body)
}

fn read(id: &str) -> Request {
    Request::new("GET", &format!("{DOCS}/{id}")).partition_key("[\"a\"]")
}

fn query(text: &str) -> Request {
    let body = json!({"query": text}).to_string();
    Request::new("POST", DOCS)
        .partition_key("[\"a\"]")
        .header("x-ms-documentdb-isquery", "True")
        .header("Content-Type", "application/query+json")
        .body(body)
}

#[test]
fn a_container_that_is_made_again_is_served_at_once() {
    on_every_storage(|servers| {
        let (one, other) = (&mut servers.one, &mut servers.other);
        let requests: [(u16, Request); 7] = [
            (201, creation("1")),
            (404, read("1")),
            (200, query("SELECT VALUE COUNT(1) FROM c")),
            (200, Request::new("GET", DOCS)),
            (304, Request::new("GET", DOCS).header("A-IM", "Incremental feed")),
            (200, Request::new("GET", "/dbs/d/colls/c/pkranges")),
            (200, Request::new("GET", "/dbs/d/colls/c/conflicts")),
        ];
        for (status, request) in requests {
            other.expect(200, &Request::new("GET", DOCS));
            let rid = make_again(one);
            let answer = other.ask(&request);
            assert_eq!(answer.status, status, "{} {}: {}", request.verb, request.target, answer.text());
            if status == 404 {
                assert_eq!(
                    answer.header("x-ms-substatus"),
                    None,
                    "the item is missing, the container is not"
                );
            }
            // Clients that know which of the two they mean, and those that mean the one that went.
            let meant = |rid: &str| creation("2").header("x-ms-cosmos-intended-collection-rid", rid);
            other.expect(201, &meant(&rid));
            let again = make_again(one);
            let refusal = other.expect(400, &meant(&rid));
            assert_eq!(refusal.header("x-ms-substatus"), Some("1024"), "{}", refusal.text());
            make_again(one);
            assert_eq!(other.ask(&meant(&again)).status, 400);
        }
        // It is gone for good.
        one.expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
        let gone = other.expect(404, &creation("1"));
        assert_eq!(gone.header("x-ms-substatus"), Some("1003"));
        other.expect(404, &Request::new("GET", "/dbs/d/colls/c"));
    });
}

#[test]
fn the_server_that_did_not_make_a_container_takes_its_rid() {
    on_every_storage(|servers| {
        let rid = make_again(&mut servers.one);
        // The first that the other one hears of it.
        let meant = creation("1").header("x-ms-cosmos-intended-collection-rid", &rid);
        servers.other.expect(201, &meant);
    });
}

#[test]
fn definitions_and_ranges_are_told_as_they_are() {
    on_every_storage(|servers| {
        let path = "/dbs/d/colls/c";
        let mut definition = parsed(&servers.one.expect(200, &Request::new("GET", path)));
        definition["defaultTtl"] = json!(60);
        let replaced = servers.one.expect(200, &Request::new("PUT", path).body(definition.to_string()));
        let read = servers.other.expect(200, &Request::new("GET", path));
        assert_eq!(parsed(&read)["defaultTtl"], 60);
        assert_eq!(read.header("etag"), replaced.header("etag"));
        servers.running[0].settle();
        let quota = Request::new("GET", path).header("x-ms-documentdb-populatequotainfo", "True");
        let progress = servers.other.expect(200, &quota);
        assert_eq!(progress.header("x-ms-documentdb-collection-index-transformation-progress"), Some("100"));
        servers.split("0");
        let ranges = parsed(&servers.other.expect(200, &Request::new("GET", "/dbs/d/colls/c/pkranges")));
        let ids: Vec<&str> = ranges["PartitionKeyRanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| range["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["1", "2"]);
    });
}

/// A client that has the ranges from one server asks the other, which has not heard of them.
#[test]
fn ranges_of_one_server_are_served_by_the_other() {
    on_every_storage(|servers| {
        for number in 0..10 {
            let body = json!({"id": "1", "pk": format!("key {number}")}).to_string();
            let key = format!("[\"key {number}\"]");
            servers.one.expect(201, &Request::new("POST", DOCS).partition_key(&key).body(body));
        }
        servers.split("0");
        let mut count = 0;
        for id in ["1", "2"] {
            let feed = Request::new("GET", DOCS).header("x-ms-documentdb-partitionkeyrangeid", id);
            count += parsed(&servers.other.expect(200, &feed))["_count"].as_u64().unwrap();
        }
        assert_eq!(count, 10);
        servers.split("1");
        // Bulk, by the id of a range.
        let operations = |key: &str| {
            json!([{"operationType": "Create", "partitionKey": format!("[\"{key}\"]"),
                "resourceBody": {"id": "bulk", "pk": key}}])
        };
        let statuses: Vec<u16> = ["2", "3", "4"]
            .map(|id| {
                let request = Request::new("POST", DOCS)
                    .header("x-ms-cosmos-is-batch-request", "True")
                    .header("x-ms-cosmos-batch-continue-on-error", "True")
                    .header("x-ms-cosmos-batch-atomic", "False")
                    .header("x-ms-documentdb-partitionkeyrangeid", id)
                    .body(operations("key 3").to_string());
                servers.other.ask(&request).status
            })
            .into();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 2, "{statuses:?}");
        let gone = Request::new("GET", DOCS).header("x-ms-documentdb-partitionkeyrangeid", "0");
        let refusal = servers.other.expect(410, &gone);
        assert_eq!(refusal.header("x-ms-substatus"), Some("1002"));
    });
}

#[test]
fn sessions_go_from_server_to_server() {
    on_every_storage(|servers| {
        for round in 0..12 {
            let (writer, reader) = if round % 2 == 0 {
                (&mut servers.one, &mut servers.other)
            } else {
                (&mut servers.other, &mut servers.one)
            };
            let id = round.to_string();
            let token = writer.expect(201, &creation(&id)).header("x-ms-session-token").unwrap().to_owned();
            let answer = reader.expect(200, &read(&id).header("x-ms-session-token", &token));
            assert_eq!(answer.header("x-ms-session-token"), Some(token.as_str()));
            let found =
                reader.expect(200, &query("SELECT VALUE c.id FROM c").header("x-ms-session-token", &token));
            assert_eq!(parsed(&found)["_count"], round + 1);
            if round == 6 {
                servers.split("0");
            }
        }
    });
}

/// Tokens and permissions hold for the resource that they are for, whichever server is asked and whatever it remembers.
#[test]
fn permissions_are_for_what_is_there() {
    on_every_storage(|servers| {
        let (one, other) = (&mut servers.one, &mut servers.other);
        one.expect(201, &Request::new("POST", "/dbs/d/users").body("{\"id\":\"u\"}"));
        let permission = |id: &str| {
            let body = json!({"id": id, "permissionMode": "All", "resource": "dbs/d/colls/c"});
            Request::new("POST", "/dbs/d/users/u/permissions").body(body.to_string())
        };
        let token = |made: &Response| Credential::Token(parsed(made)["_token"].as_str().unwrap().to_owned());
        let with = |request: Request, token: &Credential| Request { credential: token.clone(), ..request };
        let old = token(&one.expect(201, &permission("old")));
        other.expect(201, &with(creation("1"), &old));
        make_again(one);
        // Made by the server that has not heard of the new one; for the new one, at both.
        let new = token(&other.expect(201, &permission("new")));
        other.expect(403, &with(creation("2"), &old));
        other.expect(201, &with(creation("2"), &new));
        one.expect(403, &with(read("2"), &old));
        one.expect(200, &with(read("2"), &new));
        make_again(one);
        other.expect(403, &with(read("2"), &new));
        one.expect(204, &Request::new("DELETE", "/dbs/d/users/u/permissions/new"));
        other.expect(403, &with(Request::new("GET", "/dbs/d/colls/c"), &new));
    });
}

/// What is refused because of an indexing policy is refused because of the present one.
#[test]
fn policies_count_everywhere_at_once() {
    on_every_storage(|servers| {
        servers.one.expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
        make(
            &mut servers.one,
            &json!({"indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}}),
        );
        servers.other.expect(201, &creation("1"));
        let ordered = query("SELECT VALUE c.id FROM c ORDER BY c.n");
        servers.other.expect(400, &ordered);
        let path = "/dbs/d/colls/c";
        let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        servers.one.expect(200, &Request::new("PUT", path).body(body.to_string()));
        servers.running[0].settle();
        servers.other.expect(200, &ordered);
    });
}
