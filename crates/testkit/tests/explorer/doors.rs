//! Other sites, other names, frames, markup, sizes: what must not get through.

use crate::world::{API, COOKIE, World, assert_refused, bare, halves, of_session, sign_in};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Key, Request};
use serde_json::json;

/// What every answer below `/_explorer` has.
#[track_caller]
fn assert_protected(answer: &Response) {
    let policy = answer.header("content-security-policy").expect("a content policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn other_sites_are_refused() {
    let mut world = World::with(|options| options.cors_origins = vec!["*".to_owned()]);
    let token = world.sign_in(Key::Primary);
    let before = world.state();
    for origin in [
        "https://evil.example",
        "null",
        "http://astrarium.test",
        "https://astrarium.test:8081",
        "http://localhost:8081",
    ] {
        for request in [
            of_session(&token, "POST", "wire/dbs").body("{\"id\":\"x\"}"),
            of_session(&token, "DELETE", "wire/dbs/d"),
            of_session(&token, "GET", "overview"),
            of_session(&token, "DELETE", "session"),
            sign_in(&json!({"key": Key::Primary.text()})),
        ] {
            let answer = world.client.ask(&request.header("origin", origin));
            assert_refused(403, "Forbidden", &answer);
            assert_protected(&answer);
            assert_eq!(answer.header("set-cookie"), None);
        }
    }
    for site in ["cross-site", "same-site", "none"] {
        let request = of_session(&token, "GET", "overview").header("sec-fetch-site", site);
        assert_refused(403, "Forbidden", &world.client.ask(&request));
    }
    assert_eq!(world.state(), before);
    // The page itself is not another site.
    for request in [
        of_session(&token, "GET", "overview").header("origin", "http://astrarium.test:8081"),
        of_session(&token, "GET", "overview").header("sec-fetch-site", "same-origin"),
        of_session(&token, "GET", "overview").header("origin", "http://ASTRARIUM.test:8081"),
    ] {
        world.client.expect(200, &request);
    }
}

/// A form or a picture of another site sends cookies, but no headers of its own.
#[test]
fn simple_requests_are_refused() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let before = world.state();
    let with_cookie = |verb: &str, path: &str| {
        bare(verb, &format!("{API}/{path}")).header("cookie", &format!("{COOKIE}={}", halves(&token).0))
    };
    for request in [
        with_cookie("POST", "wire/dbs").header("content-type", "text/plain").body("{\"id\":\"x\"}"),
        with_cookie("DELETE", "wire/dbs/d"),
        with_cookie("GET", "overview"),
        with_cookie("GET", "session"),
        with_cookie("POST", "run-script").body("{}"),
    ] {
        assert_refused(403, "Forbidden", &world.client.ask(&request));
    }
    let guessed = with_cookie("GET", "overview").header("x-astrarium-explorer", "1");
    assert_refused(401, "SignInNeeded", &world.client.ask(&guessed));
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"]
    {
        let body = json!({"key": Key::Primary.text()}).to_string();
        let request = bare("POST", "/_explorer/api/session").header("content-type", kind).body(body);
        assert_refused(400, "BadRequest", &world.client.ask(&request));
    }
    let twice = of_session(&token, "GET", "overview").header("origin", "http://astrarium.test:8081");
    let twice = twice.header("origin", "https://evil.example");
    assert_refused(400, "BadRequest", &world.client.ask(&twice));
    assert_eq!(world.state(), before);
}

/// Whoever asks first whether he may is not allowed anything, whatever the operator allows for the protocol.
#[test]
fn nothing_is_shared_with_other_origins() {
    let mut world = World::with(|options| options.cors_origins = vec!["*".to_owned()]);
    for target in ["/_explorer/api/wire/dbs", "/_explorer/api/session", "/_explorer/"] {
        let preflight = bare("OPTIONS", target).header("origin", "https://evil.example");
        let preflight = preflight.header("access-control-request-headers", "x-astrarium-explorer");
        let answer = world.client.ask(&preflight);
        assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{answer:?}");
    }
    let page = bare("GET", "/_explorer/").header("origin", "https://evil.example");
    assert_protected(&world.client.expect(200, &page));
    // The protocol itself is as it was.
    let signed = Request::new("GET", "/dbs").header("origin", "https://app.example");
    let answer = world.client.expect(200, &signed);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
}

/// A page of somebody else, whose name points here.
#[test]
fn other_names_are_refused() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    for request in [
        of_session(&token, "GET", "overview"),
        of_session(&token, "GET", "wire/dbs"),
        sign_in(&json!({"key": Key::Primary.text()})),
        bare("GET", "/_explorer/"),
    ] {
        let request =
            request.header("origin", "http://evil.example:8081").header("host", "evil.example:8081");
        let answer = world.client.ask(&request);
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert_protected(&answer);
        assert_eq!(answer.header("set-cookie"), None);
    }
    // Forwarded names are not asked.
    let forwarded = of_session(&token, "GET", "overview").header("origin", "https://evil.example");
    let forwarded = forwarded.header("x-forwarded-host", "evil.example").header("x-forwarded-proto", "https");
    assert_refused(403, "Forbidden", &world.client.ask(&forwarded));
}

#[test]
fn a_proxy_of_ours_may_say_where_the_page_is() {
    for (allowed, status) in [("x.example", 403), ("db.example", 200)] {
        let mut world = World::with(|options| {
            options.trust_forwarded = true;
            options.allowed_hosts.push(allowed.to_owned());
        });
        let token = world.sign_in(Key::Primary);
        let forwarded = of_session(&token, "GET", "overview").header("origin", "https://db.example");
        let forwarded =
            forwarded.header("x-forwarded-host", "db.example").header("x-forwarded-proto", "https");
        world.client.expect(status, &forwarded);
    }
}

#[test]
fn every_answer_is_protected() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    for (status, request) in [
        (200, bare("GET", "/_explorer")),
        (200, bare("GET", "/_explorer/index.html")),
        (200, bare("HEAD", "/_explorer/")),
        (404, bare("GET", "/_explorer/nothing")),
        (404, bare("GET", "/_explorer/assets/../../x")),
        (405, bare("POST", "/_explorer/")),
        (403, bare("GET", "/_explorer/api/overview")),
        (200, of_session(&token, "GET", "overview")),
        (404, of_session(&token, "GET", "nothing")),
        (404, of_session(&token, "GET", "wire")),
        (405, of_session(&token, "POST", "overview")),
        (405, of_session(&token, "GET", "check")),
        (405, of_session(&token, "PUT", "session")),
        (200, of_session(&token, "GET", "wire/")),
        (200, of_session(&token, "GET", "wire/dbs")),
        (404, of_session(&token, "GET", "wire/dbs/none")),
        (404, of_session(&token, "GET", "wire/nothing")),
        (404, of_session(&token, "GET", "wire/_explorer/api/overview")),
        (400, of_session(&token, "GET", "wire/dbs/a/b/c")),
    ] {
        let answer = world.client.ask(&request);
        assert_eq!(answer.status, status, "{request:?}");
        assert_protected(&answer);
    }
    let elsewhere = world.client.expect(200, &Request::new("GET", "/dbs"));
    assert_eq!(elsewhere.header("x-frame-options"), None);
}

/// Whatever somebody writes into an address, a header or a name, no answer is a page that holds it.
#[test]
fn markup_stays_text() {
    const MARKUP: &str = "<script>alert(1)</script>";
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let created = world.ask(&token, "POST", "wire/dbs", &json!({"id": MARKUP.replace('/', "")}));
    assert_eq!(created.status, 201, "{}", created.text());
    let encoded = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for request in [
        bare("GET", &format!("/_explorer/{encoded}")),
        bare("GET", &format!("/_explorer/?x={encoded}")),
        bare("GET", &format!("/_explorer/assets/{encoded}")),
        bare("GET", "/_explorer/").header("referer", MARKUP).header("user-agent", MARKUP),
        of_session(&token, "GET", encoded),
        of_session(&token, "GET", &format!("schema?database={encoded}&container={encoded}")),
        of_session(&token, "GET", &format!("requests?after={encoded}")),
        of_session(&token, "GET", "overview"),
        of_session(&token, "GET", "overview").header("origin", MARKUP),
        of_session(&token, "GET", "wire/dbs").header("user-agent", MARKUP),
        of_session(&token, "GET", "requests"),
        of_session(&token, "GET", &format!("wire/dbs/{encoded}")),
        sign_in(&json!({"key": MARKUP})),
    ] {
        let answer = world.client.ask(&request);
        assert_protected(&answer);
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        let is_page = kind.starts_with("text/html");
        assert!(!is_page || !answer.text().contains("alert(1)"), "{request:?}");
        assert!(
            is_page || ["application/json", "text/plain; charset=utf-8"].contains(&kind.as_str()),
            "{request:?} {kind}"
        );
    }
}

#[test]
fn bodies_are_bounded() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let before = world.state();
    let large = sign_in(&json!({"key": "x".repeat(20 << 10)}));
    assert_refused(413, "RequestEntityTooLarge", &world.client.ask(&large));
    for path in ["check", "explain", "run-script"] {
        let body = json!({"sql": "x".repeat(2 << 20)});
        assert_refused(413, "RequestEntityTooLarge", &world.ask(&token, "POST", path, &body));
    }
    let wire = world.ask(&token, "POST", "wire/dbs", &json!({"id": "x".repeat(5 << 20)}));
    assert_eq!(wire.status, 413);
    assert_eq!(world.state(), before);
    // Deep and long texts get an answer, too.
    let deep = json!({"sql": format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000))});
    let told = world.told(&token, "POST", "check", &deep);
    assert!(!told["errors"].as_array().unwrap().is_empty());
    let wide = format!("SELECT * FROM c WHERE {}", vec!["c.n = 1"; 5_000].join(" AND "));
    let body = json!({"database": "d", "container": "c", "sql": wide, "run": true});
    let answer = world.ask(&token, "POST", "explain", &body);
    assert!(matches!(answer.status, 200 | 400), "{}", answer.text());
}

#[test]
fn an_explorer_that_is_turned_off_is_not_there() {
    let mut world = World::with(|options| {
        options.explorer = None;
        options.tls = true;
    });
    for request in [
        bare("GET", "/_explorer"),
        bare("GET", "/_explorer/index.html"),
        sign_in(&json!({"key": Key::Primary.text()})),
        of_session("x", "GET", "overview"),
        of_session("x", "GET", "wire/dbs"),
    ] {
        let answer = world.client.ask(&request);
        assert_eq!(answer.status, 404);
        assert!(answer.text().contains("turned off"), "{}", answer.text());
    }
    // Tools fetch this from servers without one.
    let pem = world.client.expect(200, &bare("GET", "/_explorer/emulator.pem"));
    assert!(pem.text().starts_with("-----BEGIN CERTIFICATE"));
}

/// What a browser asks first is answered with where the page is; programs are answered as ever.
#[test]
fn a_browser_is_led_to_the_page() {
    const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
    let mut world = World::new();
    let answer = world.client.ask(&bare("GET", "/").header("accept", HTML));
    assert_eq!((answer.status, answer.header("location")), (307, Some("/_explorer/")));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for accept in ["*/*", "application/json", "text/html, image/gif, image/jpeg, */*; q=0.2"] {
        assert_eq!(world.client.ask(&bare("GET", "/").header("accept", accept)).status, 401, "{accept}");
    }
    assert_eq!(world.client.ask(&bare("GET", "/dbs").header("accept", HTML)).status, 401);
    // Who signs reads the account, whatever else he takes.
    let account = world.client.expect(200, &Request::new("GET", "/").header("accept", HTML));
    assert!(account.text().contains("writableLocations"), "{}", account.text());
    let wrong = bare("GET", "/").header("accept", HTML).header("authorization", "type%3dmaster");
    assert_eq!(world.client.ask(&wrong).status, 401);
    let mut without = World::with(|options| options.explorer = None);
    assert_eq!(without.client.ask(&bare("GET", "/").header("accept", HTML)).status, 401);
}
