//! Settings that change what clients are told: endpoints behind proxies, and browsers of other origins.

use astrarium_testkit::http::Response;
use astrarium_testkit::{Credential, EngineKind, Options, Request, Server};

/// Asks a server with changed settings.
fn ask(change: impl FnOnce(&mut Options), request: &Request) -> Response {
    let mut options = Options::on(EngineKind::Memory);
    change(&mut options);
    Server::start(options).client().ask(request)
}

#[track_caller]
fn check_endpoint(change: impl FnOnce(&mut Options), request: &Request, endpoint: &str) {
    let account = ask(change, request);
    assert_eq!(account.status, 200, "{}", account.text());
    let expected = format!("\"databaseAccountEndpoint\":\"{endpoint}\"");
    assert_eq!(account.text().matches(&expected).count(), 2, "{expected} in {}", account.text());
}

#[test]
fn the_endpoint_is_the_one_that_clients_can_reach() {
    let account = Request::new("GET", "/");
    let public = |endpoint: &str| {
        let endpoint = endpoint.to_owned();
        move |options: &mut Options| options.public_endpoint = Some(endpoint)
    };
    check_endpoint(|_| {}, &account, "http://astrarium.test:8081/");
    check_endpoint(public("https://db.example"), &account, "https://db.example/");
    check_endpoint(public("https://db.example:444/"), &account, "https://db.example:444/");

    let trusting = |options: &mut Options| options.trust_forwarded = true;
    let forwarded = |host: &str, scheme: &str| {
        let account = Request::new("GET", "/").header("x-forwarded-host", host);
        account.header("x-forwarded-proto", scheme)
    };
    check_endpoint(trusting, &forwarded("db.example", "https"), "https://db.example/");
    // Of several proxies the first is nearest to the client.
    check_endpoint(trusting, &forwarded("db.example:444, inner", "https, http"), "https://db.example:444/");
    check_endpoint(trusting, &account, "http://astrarium.test:8081/");
    check_endpoint(|_| {}, &forwarded("evil.example", "https"), "http://astrarium.test:8081/");
}

#[test]
fn browsers_of_allowed_origins() {
    let open = |options: &mut Options| options.cors_origins = vec!["https://app.example".to_owned()];
    let preflight = |origin: &str| {
        let request = Request::new("OPTIONS", "/dbs").credential(Credential::None).header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,x-ms-date")
    };
    let allowed = ask(open, &preflight("https://app.example"));
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(allowed.header("access-control-allow-headers"), Some("authorization,x-ms-date"));
    assert!(allowed.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
    // Others get an answer without permission: the browser stops them.
    for (change, origin) in [
        (Box::new(open) as Box<dyn FnOnce(&mut Options)>, "https://evil.example"),
        (Box::new(|_: &mut Options| {}), "https://app.example"),
    ] {
        assert_eq!(ask(change, &preflight(origin)).header("access-control-allow-origin"), None);
    }
    let read = Request::new("GET", "/dbs").header("origin", "https://app.example");
    let answer = ask(open, &read);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("access-control-expose-headers"), Some("*"));
    assert_eq!(ask(|_| {}, &read).header("access-control-allow-origin"), None);
}
