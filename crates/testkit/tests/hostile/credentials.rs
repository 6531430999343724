//! Every route and verb with every kind of bad credential: refused before anything is told or done.

use crate::world::{World, assert_refusal};
use astrarium_testkit::request::Date;
use astrarium_testkit::{Credential, Key, Request};

/// The routes of the protocol, as requests that would do something.
fn requests() -> Vec<Request> {
    let container = "{\"id\":\"x\",\"partitionKey\":{\"paths\":[\"/pk\"]}}";
    let script = "{\"id\":\"x\",\"body\":\"function () {}\"}";
    let trigger =
        "{\"id\":\"x\",\"body\":\"function () {}\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}";
    let item = "{\"id\":\"kept\",\"pk\":\"a\",\"changed\":true}";
    let mut requests = Vec::new();
    let mut add = |verb: &str, target: &str, body: &str| {
        requests.push(Request::new(verb, target).partition_key("[\"a\"]").body(body));
    };
    add("POST", "/dbs", "{\"id\":\"x\"}");
    add("DELETE", "/dbs/d", "");
    add("POST", "/dbs/d/colls", container);
    add("PUT", "/dbs/d/colls/c", "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"defaultTtl\":1}");
    add("DELETE", "/dbs/d/colls/c", "");
    add("POST", "/dbs/d/colls/c/docs", "{\"id\":\"x\",\"pk\":\"a\"}");
    add("PUT", "/dbs/d/colls/c/docs/kept", item);
    add(
        "PATCH",
        "/dbs/d/colls/c/docs/kept",
        "{\"operations\":[{\"op\":\"set\",\"path\":\"/n\",\"value\":1}]}",
    );
    add("DELETE", "/dbs/d/colls/c/docs/kept", "");
    add("POST", "/dbs/d/colls/c/operations/partitionkeydelete", "");
    add("POST", "/dbs/d/colls/c/sprocs", script);
    add("POST", "/dbs/d/colls/c/sprocs/x", "[]");
    add("POST", "/dbs/d/colls/c/triggers", trigger);
    add("POST", "/dbs/d/colls/c/udfs", script);
    add("DELETE", "/dbs/d/colls/c/conflicts/x", "");
    add("POST", "/dbs/d/colls/c/docs/kept/attachments", "{\"id\":\"x\"}");
    add("POST", "/dbs/d/users", "{\"id\":\"x\"}");
    add(
        "POST",
        "/dbs/d/users/x/permissions",
        "{\"id\":\"x\",\"permissionMode\":\"All\",\"resource\":\"dbs/d\"}",
    );
    add("POST", "/dbs/d/clientencryptionkeys", "{\"id\":\"x\"}");
    add("PUT", "/offers/AAAA", "{\"content\":{\"offerThroughput\":500}}");
    requests
}

fn reads() -> Vec<Request> {
    let targets = [
        "/",
        "/dbs",
        "/dbs/d",
        "/dbs/d/colls",
        "/dbs/d/colls/c",
        "/dbs/d/colls/c/docs",
        "/dbs/d/colls/c/docs/kept",
        "/dbs/d/colls/c/pkranges",
        "/dbs/d/colls/c/pkranges/0",
        "/dbs/d/colls/c/conflicts",
        "/dbs/d/colls/c/schemas",
        "/dbs/d/colls/c/sprocs",
        "/dbs/d/colls/c/triggers",
        "/dbs/d/colls/c/udfs",
        "/dbs/d/colls/c/docs/kept/attachments",
        "/dbs/d/users",
        "/dbs/d/users/x/permissions",
        "/dbs/d/clientencryptionkeys",
        "/offers",
        "/offers/AAAA",
        "/dbs/missing",
        "/dbs/d/colls/missing/docs/x",
    ];
    targets.map(|target| Request::new("GET", target).partition_key("[\"a\"]")).into()
}

#[test]
fn no_route_answers_a_stranger() {
    let mut world = World::new();
    let bad_token = "type=resource&ver=1.0&sig=AAAAAAAAAAAAAAAAAAAAAA==;AAAAAAAAAAAAAAAAAAAAAA==;";
    let credentials =
        [Credential::None, Credential::Key(Key::Unknown), Credential::Token(bad_token.to_owned())];
    for request in requests().into_iter().chain(reads()) {
        for credential in &credentials {
            world.refused(401, "", &request.clone().credential(credential.clone()));
        }
        for seconds in [-1_801, 901, -86_400 * 365, 86_400 * 365] {
            world.refused(403, "", &Request { date: Date::Offset(seconds), ..request.clone() });
        }
        world.refused(401, "date", &Request { date: Date::None, ..request.clone() });
    }
    world.assert_unchanged();
}

#[test]
fn a_read_only_key_writes_nowhere() {
    let mut world = World::new();
    for key in [Key::ReadOnly, Key::SecondaryReadOnly] {
        for request in requests() {
            world.refused(401, "", &request.credential(Credential::Key(key)));
        }
        for request in reads() {
            let response = world.client.ask(&request.clone().credential(Credential::Key(key)));
            assert!(matches!(response.status, 200 | 404), "{}: {}", request.target, response.text());
        }
    }
    world.assert_unchanged();
}

/// A token is good for its container and nothing else, whatever the route.
#[test]
fn a_token_reaches_no_further_than_its_permission() {
    let mut world = World::new();
    world.client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"other\"}"));
    let container = "{\"id\":\"mine\",\"partitionKey\":{\"paths\":[\"/pk\"]}}";
    world.client.expect(201, &Request::new("POST", "/dbs/other/colls").body(container));
    world.client.expect(201, &Request::new("POST", "/dbs/other/users").body("{\"id\":\"u\"}"));
    let permission = "{\"id\":\"p\",\"permissionMode\":\"All\",\"resource\":\"dbs/other/colls/mine\"}";
    let made =
        world.client.expect(201, &Request::new("POST", "/dbs/other/users/u/permissions").body(permission));
    let body = astrarium_testkit::json::Json::parse(&made.text()).unwrap();
    let token = body.get("_token").and_then(|token| token.as_text()).unwrap().to_owned();
    let holder = Credential::Token(token);
    let own = Request::new("POST", "/dbs/other/colls/mine/docs").partition_key("[\"a\"]");
    world.client.expect(201, &own.body("{\"id\":\"1\",\"pk\":\"a\"}").credential(holder.clone()));
    for request in requests().into_iter().chain(reads()).filter(|request| request.target != "/") {
        let response = world.client.ask(&request.clone().credential(holder.clone()));
        assert_refusal(403, "", &response);
    }
    world.client.expect(204, &Request::new("DELETE", "/dbs/other"));
    world.assert_unchanged();
}
