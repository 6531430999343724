//! An account with something of everything, the credentials that exist for it, and a picture of all that it holds.

use astrarium_testkit::http::Response;
use astrarium_testkit::json::Json;
use astrarium_testkit::{Client, Credential, Key, Request, Server};
use std::collections::BTreeMap;

/// A procedure that writes into the partition that it runs in, and tries the other one.
const PROCEDURE: &str = "function () { var c = getContext().getCollection(); \
    c.createDocument(c.getSelfLink(), {id: 'by-procedure' + Math.random(), pk: 'a'}); \
    c.createDocument(c.getSelfLink(), {id: 'by-procedure' + Math.random(), pk: 'b'}, function () {}); }";
/// A trigger that writes another document.
const TRIGGER: &str = "function () { var c = getContext().getCollection(); \
    c.createDocument(c.getSelfLink(), {id: 'by-trigger' + Math.random(), pk: 'a'}); }";
/// A procedure that tells all that it finds.
const TELLER: &str = "function () { var c = getContext().getCollection(); \
    c.queryDocuments(c.getSelfLink(), 'SELECT * FROM c', {enableCrossPartitionQuery: true}, \
    function (error, found) { getContext().getResponse().setBody(found); }); }";

/// What a credential is, by the name that failures show.
pub(crate) type Named = (&'static str, Credential);

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) client: Client,
    /// Rids by what they are of.
    pub(crate) rids: BTreeMap<&'static str, String>,
}

impl World {
    /// Two databases; `d` with two containers, items in partitions `a` and `b`, scripts, users and permissions.
    pub(crate) fn new() -> World {
        let server = Server::in_memory();
        let client = server.client();
        let mut world = World { server, client, rids: BTreeMap::new() };
        for database in ["d", "e"] {
            let rid = world.create("/dbs", &format!("{{\"id\":\"{database}\"}}"));
            world.rids.insert(if database == "d" { "d" } else { "e" }, rid);
        }
        for (database, container) in [("d", "c"), ("d", "other"), ("e", "c")] {
            let body = format!("{{\"id\":\"{container}\",\"partitionKey\":{{\"paths\":[\"/pk\"]}}}}");
            let rid = world.create(&format!("/dbs/{database}/colls"), &body);
            let name = match (database, container) {
                ("d", "c") => "d/c",
                ("d", _) => "d/other",
                _ => "e/c",
            };
            world.rids.insert(name, rid);
            for key in ["a", "b"] {
                let body = format!(
                    "{{\"id\":\"kept\",\"pk\":\"{key}\",\"mark\":\"mark-{database}-{container}-{key}\"}}"
                );
                let docs = format!("/dbs/{database}/colls/{container}/docs");
                let request = Request::new("POST", &docs).partition_key(&format!("[\"{key}\"]")).body(body);
                let rid = text(&world.client.expect(201, &request), "_rid");
                if name == "d/c" {
                    world.rids.insert(if key == "a" { "item" } else { "item b" }, rid);
                }
            }
        }
        let scripts = "/dbs/d/colls/c";
        world.create(&format!("{scripts}/sprocs"), &format!("{{\"id\":\"p\",\"body\":\"{PROCEDURE}\"}}"));
        world.create(&format!("{scripts}/sprocs"), &format!("{{\"id\":\"teller\",\"body\":\"{TELLER}\"}}"));
        let trigger = format!(
            "{{\"id\":\"t\",\"body\":\"{TRIGGER}\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}}"
        );
        world.create(&format!("{scripts}/triggers"), &trigger);
        world.create(&format!("{scripts}/udfs"), "{\"id\":\"f\",\"body\":\"function () { return 1; }\"}");
        world.create(
            "/dbs/d/clientencryptionkeys",
            "{\"id\":\"k\",\"encryptionAlgorithm\":\"AEAD_AES_256_CBC_HMAC_SHA256\",\"wrappedDataEncryptionKey\":\
             \"AQIDBA==\",\"keyWrapMetadata\":{\"type\":\"AZURE_KEY_VAULT\",\"name\":\"n\",\"value\":\"v\",\
             \"algorithm\":\"RSA-OAEP\"}}",
        );
        for user in ["u", "gone"] {
            world.create("/dbs/d/users", &format!("{{\"id\":\"{user}\"}}"));
        }
        world
    }

    /// Makes a resource and gives its rid.
    pub(crate) fn create(&mut self, feed: &str, body: &str) -> String {
        text(&self.client.expect(201, &Request::new("POST", feed).body(body)), "_rid")
    }

    /// Makes a permission of a user of `d` and gives its token; `id` is what is left of the name.
    pub(crate) fn grant(
        &mut self,
        user: &str,
        id: &str,
        mode: &str,
        resource: &str,
        key: &str,
    ) -> Credential {
        let key = if key.is_empty() { String::new() } else { format!(",\"resourcePartitionKey\":{key}") };
        let body =
            format!("{{\"id\":\"{id}\",\"permissionMode\":\"{mode}\",\"resource\":\"{resource}\"{key}}}");
        let feed = format!("/dbs/d/users/{user}/permissions");
        let request =
            Request::new("POST", &feed).header("x-ms-documentdb-expiry-seconds", "86400").body(body);
        Credential::Token(text(&self.client.expect(201, &request), "_token"))
    }

    /// Credentials of nobody: none, wrong ones, and tokens whose time or permission or user is over.
    pub(crate) fn strangers(&mut self) -> Vec<Named> {
        let garbage = "type=resource&ver=1.0&sig=AAAAAAAAAAAAAAAAAAAAAA==;AAAAAAAAAAAAAAAAAAAAAA==;";
        let of_gone = self.grant("gone", "g", "All", "dbs/d", "");
        self.client.expect(204, &Request::new("DELETE", "/dbs/d/users/gone"));
        let deleted = self.grant("u", "deleted", "All", "dbs/d", "");
        self.client.expect(204, &Request::new("DELETE", "/dbs/d/users/u/permissions/deleted"));
        let changed = self.grant("u", "changed", "All", "dbs/d", "");
        let smaller = "{\"id\":\"changed\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d/colls/other\"}";
        self.client.expect(200, &Request::new("PUT", "/dbs/d/users/u/permissions/changed").body(smaller));
        let again = self.grant("u", "again", "All", "dbs/d", "");
        self.client.expect(204, &Request::new("DELETE", "/dbs/d/users/u/permissions/again"));
        self.grant("u", "again", "Read", "dbs/d/colls/other", "");
        let short = Request::new("POST", "/dbs/d/users/u/permissions")
            .header("x-ms-documentdb-expiry-seconds", "10")
            .body("{\"id\":\"short\",\"permissionMode\":\"All\",\"resource\":\"dbs/d\"}");
        let expired = Credential::Token(text(&self.client.expect(201, &short), "_token"));
        self.server.clock().advance_seconds(11);
        vec![
            ("nothing", Credential::None),
            ("an unknown key", Credential::Key(Key::Unknown)),
            ("a made-up token", Credential::Token(garbage.to_owned())),
            ("an expired token", expired),
            ("a token of a deleted user", of_gone),
            ("a token of a deleted permission", deleted),
            ("a token of a changed permission", changed),
            ("a token of a permission made anew", again),
        ]
    }

    /// All that the account holds, in parts: by what may be changed with what.
    pub(crate) fn state(&mut self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for feed in ["/dbs", "/offers"] {
            state.insert(feed.to_owned(), self.feed(feed));
        }
        for database in ["d", "e"] {
            for below in ["colls", "users", "clientencryptionkeys", "users/u/permissions"] {
                let feed = format!("/dbs/{database}/{below}");
                state.insert(feed.clone(), self.feed(&feed));
            }
        }
        for container in ["d/colls/c", "d/colls/other", "e/colls/c"] {
            for below in ["sprocs", "triggers", "udfs"] {
                let feed = format!("/dbs/{container}/{below}");
                state.insert(feed.clone(), self.feed(&feed));
            }
            for key in ["a", "b"] {
                let docs = format!("/dbs/{container}/docs");
                let request = Request::new("GET", &docs).partition_key(&format!("[\"{key}\"]"));
                let found = self.client.ask(&request.header("x-ms-max-item-count", "-1")).text();
                state.insert(format!("{docs} {key}"), stored(&found));
            }
        }
        state
    }

    fn feed(&mut self, feed: &str) -> String {
        let request = Request::new("GET", feed).header("x-ms-max-item-count", "-1");
        stored(&self.client.ask(&request).text())
    }
}

/// What is stored of an answer: without the tokens, which are made anew, and the id of the request in errors.
fn stored(text: &str) -> String {
    let text = text.split_once("ActivityId").map_or(text, |(before, _)| before);
    let mut pieces = text.split("\"_token\":\"");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        kept += piece.split_once('"').map_or("", |(_, after)| after);
    }
    kept
}

/// A text member of a response's body.
pub(crate) fn text(response: &Response, name: &str) -> String {
    let body = Json::parse(&response.text()).unwrap();
    body.get(name).and_then(Json::as_text).unwrap().to_owned()
}
