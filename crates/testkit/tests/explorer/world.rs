//! A server with a container and a few items, and somebody who is signed in.

use astrarium_testkit::http::Response;
use astrarium_testkit::{Client, Credential, EngineKind, Key, Options, Request, Server};
use serde_json::{Value, json};

/// What everything is below.
pub(crate) const API: &str = "/_explorer/api";
/// Where items of the container are.
pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
/// The name of the cookie, under the name and port that tests call servers by.
pub(crate) const COOKIE: &str = "astrarium-explorer-8081";

/// A server that holds a little.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> World {
        let mut options = Options::on(EngineKind::Memory);
        change(&mut options);
        let server = Server::start(options);
        let mut client = server.client();
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        let container = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {
                "includedPaths": [{"path": "/*"}],
                "excludedPaths": [{"path": "/note/?"}],
                "compositeIndexes": [[{"path": "/n"}, {"path": "/pk", "order": "descending"}]],
            },
        });
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container.to_string()));
        for number in 1..=6 {
            let pk = ["a", "b"][number % 2];
            let item = format!(
                "{{\"id\":\"{number}\",\"pk\":\"{pk}\",\"n\":{number},\"large\":12345678901234567890,\"note\":\"x\",\
                 \"tags\":[\"red\",1],\"address\":{{\"city\":\"Rome\"}}}}"
            );
            let create = Request::new("POST", DOCS).partition_key(&format!("[\"{pk}\"]"));
            client.expect(201, &create.body(item));
        }
        World { server, client }
    }

    /// Signs in with a key; gives both halves of the session, as `token` does.
    #[track_caller]
    pub(crate) fn sign_in(&mut self, key: Key) -> String {
        let answer = self.client.expect(200, &sign_in(&json!({"key": key.text()})));
        token(&answer)
    }

    /// Asks something with a session.
    #[track_caller]
    pub(crate) fn ask(&mut self, token: &str, verb: &str, path: &str, body: &Value) -> Response {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.ask(&of_session(token, verb, path).body(body))
    }

    /// Asks something that must be answered with 200; gives the answer's JSON.
    #[track_caller]
    pub(crate) fn told(&mut self, token: &str, verb: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(token, verb, path, body);
        assert_eq!(answer.status, 200, "{verb} {path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Everything a client can see: databases, containers, offers and items, with their etags.
    pub(crate) fn state(&mut self) -> String {
        let mut state = String::new();
        for target in ["/dbs", "/dbs/d/colls", "/dbs/d/users", "/dbs/d/colls/c/sprocs", "/offers", DOCS] {
            let request = Request::new("GET", target).header("x-ms-max-item-count", "-1");
            state += &self.server.client().expect(200, &request).text();
        }
        state
    }
}

/// A request without any signature.
pub(crate) fn bare(verb: &str, target: &str) -> Request {
    Request::new(verb, target).credential(Credential::None)
}

/// A sign-in as the page sends it.
pub(crate) fn sign_in(body: &Value) -> Request {
    bare("POST", "/_explorer/api/session").header("content-type", "application/json").body(body.to_string())
}

/// A request to the API as the page sends it.
pub(crate) fn of_session(token: &str, verb: &str, path: &str) -> Request {
    let (cookie, page_token) = halves(token);
    let request = bare(verb, &format!("{API}/{path}")).header("cookie", &format!("{COOKIE}={cookie}"));
    request.header("x-astrarium-explorer", page_token)
}

/// Both halves of the session that an answer begins: the cookie's, a dot, the page's.
#[track_caller]
pub(crate) fn token(answer: &Response) -> String {
    let cookie = answer.header("set-cookie").expect("a cookie");
    let value = cookie.strip_prefix(COOKIE).and_then(|rest| rest.strip_prefix('='));
    let value = value.expect("the cookie's name").split(';').next().unwrap();
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    format!("{value}.{}", said["pageToken"].as_str().expect("the page's half"))
}

/// What the cookie holds, and what the page sends.
pub(crate) fn halves(token: &str) -> (&str, &str) {
    token.split_once('.').unwrap_or((token, "none"))
}

/// Fails unless an answer is a refusal of the explorer with this status and code.
#[track_caller]
pub(crate) fn assert_refused(status: u16, code: &str, answer: &Response) {
    assert_eq!(answer.status, status, "{}", answer.text());
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["code"], code, "{body}");
    assert!(body["message"].as_str().is_some_and(|message| message.len() > 10), "{body}");
}
