//! A server with one container and one item, and the check that nothing of it has changed.

use astrarium_testkit::http::Response;
use astrarium_testkit::json::Json;
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};

/// Where items of the container are.
pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";

/// A server that holds a little.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) client: Client,
    before: String,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Options::on(EngineKind::Memory))
    }

    pub(crate) fn with(options: Options) -> World {
        let server = Server::start(options);
        let mut client = server.client();
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        let container =
            "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
        client.expect(201, &create("{\"id\":\"kept\",\"pk\":\"a\"}"));
        let mut world = World { server, client, before: String::new() };
        world.before = world.state();
        world
    }

    /// Everything a client can see: the account's databases, containers, offers and items, with their etags.
    fn state(&mut self) -> String {
        let mut state = String::new();
        for target in ["/dbs", "/dbs/d/colls", "/offers", DOCS] {
            let request = Request::new("GET", target).header("x-ms-max-item-count", "-1");
            state += &self.server.client().expect(200, &request).text();
        }
        state
    }

    /// Fails if anything is not as it was at the start.
    #[track_caller]
    pub(crate) fn assert_unchanged(&mut self) {
        assert_eq!(self.state(), self.before, "something has changed");
    }

    /// Sends a request that must be refused with this status, a JSON body, and a part of its message.
    #[track_caller]
    pub(crate) fn refused(&mut self, status: u16, fragment: &str, request: &Request) {
        let response = self.client.ask(request);
        assert_refusal(status, fragment, &response);
    }
}

/// The request that makes an item of the partition key `a`.
pub(crate) fn create(body: impl Into<Vec<u8>>) -> Request {
    Request::new("POST", DOCS).partition_key("[\"a\"]").body(body)
}

/// Whether a response is an error of the service's form.
#[track_caller]
pub(crate) fn assert_refusal(status: u16, fragment: &str, response: &Response) {
    let text = response.text();
    assert_eq!(response.status, status, "{text}");
    assert_eq!(response.header("content-type"), Some("application/json"), "{text}");
    assert!(response.header("x-ms-activity-id").is_some(), "an activity id");
    assert!(
        response.header("x-ms-request-charge").is_some_and(|charge| charge.parse::<f64>().is_ok()),
        "a charge"
    );
    let body = Json::parse(&text).unwrap();
    let message = body.get("message").and_then(Json::as_text).unwrap_or_default();
    assert!(body.get("code").and_then(Json::as_text).is_some(), "{text}");
    assert!(message.contains(fragment), "{fragment:?} in {text}");
}
