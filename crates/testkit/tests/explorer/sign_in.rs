//! Sessions: how they begin, what they are, and how they end.

use crate::world::{COOKIE, DOCS, World, assert_refused, bare, halves, of_session, sign_in, token};
use astrarium_gateway::ExplorerSettings;
use astrarium_testkit::Key;
use serde_json::{Value, json};

#[track_caller]
fn check_role(world: &mut World, body: &Value, role: &str) {
    let answer = world.client.expect(200, &sign_in(body));
    let mut said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said["role"], role);
    assert_eq!(said["account"]["endpoint"], "http://astrarium.test:8081/");
    assert_eq!(said["expires"], astrarium_testkit::server::START_SECONDS + 12 * 3600);
    let again = world.told(&token(&answer), "GET", "session", &Value::Null);
    // The page's half is told once.
    said.as_object_mut().unwrap().remove("pageToken");
    assert_eq!(again, said);
}

#[test]
fn a_key_gives_a_session_of_its_own_rights() {
    let mut world = World::new();
    for (key, role) in [
        (Key::Primary, "read-write"),
        (Key::Secondary, "read-write"),
        (Key::ReadOnly, "read-only"),
        (Key::SecondaryReadOnly, "read-only"),
    ] {
        check_role(&mut world, &json!({"key": key.text()}), role);
        // Less can be asked for, and never more.
        check_role(&mut world, &json!({"key": key.text(), "readOnly": true}), "read-only");
        check_role(&mut world, &json!({"key": key.text(), "readOnly": false}), role);
    }
}

#[test]
fn what_is_no_key_gives_none() {
    let mut world = World::new();
    for (body, status, code) in [
        (json!({"key": Key::Unknown.text()}), 401, "WrongKey"),
        (json!({"key": ""}), 401, "WrongKey"),
        (json!({"key": "<script>"}), 401, "WrongKey"),
        (json!({"link": ""}), 401, "WrongLink"),
        (json!({"link": "x".repeat(1000)}), 401, "WrongLink"),
        (json!({}), 400, "BadRequest"),
        (json!([]), 400, "BadRequest"),
        (json!({"key": 1}), 400, "BadRequest"),
        (json!({"key": null, "link": null}), 400, "BadRequest"),
        (json!({"key": Key::Primary.text(), "link": "x"}), 400, "BadRequest"),
    ] {
        let answer = world.client.ask(&sign_in(&body));
        assert_refused(status, code, &answer);
        assert_eq!(answer.header("set-cookie"), None);
    }
    let not_json =
        bare("POST", "/_explorer/api/session").header("content-type", "application/json").body("{");
    assert_refused(400, "BadRequest", &world.client.ask(&not_json));
    let answer = world.client.ask(&sign_in(&json!({"key": Key::Primary.text(), "readOnly": "no"})));
    assert_refused(400, "BadRequest", &answer);
}

#[test]
fn the_cookie_is_for_nobody_but_the_browser() {
    let mut world = World::with(|options| options.public_endpoint = Some("https://db.example/".to_owned()));
    let request = sign_in(&json!({"key": Key::Primary.text()}));
    let plain = world.client.expect(200, &request);
    let both = token(&plain);
    let (cookie, page_token) = halves(&both);
    let attributes = format!("{COOKIE}={cookie}; Path=/_explorer; Max-Age=43200; HttpOnly; SameSite=Strict");
    assert_eq!(plain.header("set-cookie"), Some(attributes.as_str()));
    let behind_tls = world.client.expect(200, &request.clone().header("origin", "https://db.example"));
    assert!(behind_tls.header("set-cookie").is_some_and(|cookie| cookie.ends_with("; Secure")));
    assert_ne!(token(&plain), token(&behind_tls));
    assert!(cookie.len() >= 43 && page_token.len() >= 43 && cookie != page_token, "256 bits each");
}

#[test]
fn a_stolen_cookie_is_worth_nothing_after_signing_out() {
    let mut world = World::new();
    let (token, other) = (world.sign_in(Key::Primary), world.sign_in(Key::Primary));
    world.told(&token, "GET", "wire/dbs", &Value::Null);
    let bye = world.ask(&token, "DELETE", "session", &Value::Null);
    assert_eq!(bye.status, 204);
    assert!(bye.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    for path in ["session", "overview", "wire/dbs"] {
        assert_refused(401, "SignInNeeded", &world.ask(&token, "GET", path, &Value::Null));
    }
    assert_refused(401, "SignInNeeded", &world.ask(&token, "DELETE", "session", &Value::Null));
    // Others stay.
    world.told(&other, "GET", "session", &Value::Null);
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let mut world = World::with(|options| {
        options.explorer = Some(ExplorerSettings { session_seconds: 600, is_local: false });
    });
    let token = world.sign_in(Key::Primary);
    world.server.clock().advance_seconds(599);
    world.told(&token, "GET", "session", &Value::Null);
    world.server.clock().advance_seconds(1);
    for path in ["session", "overview", "wire/dbs"] {
        assert_refused(401, "SignInNeeded", &world.ask(&token, "GET", path, &Value::Null));
    }
}

#[test]
fn a_link_signs_in_once_and_not_for_long() {
    let mut world = World::new();
    let link = world.server.explorer_link();
    let first = world.client.expect(200, &sign_in(&json!({"link": link})));
    world.told(&token(&first), "GET", "overview", &Value::Null);
    assert_refused(401, "WrongLink", &world.client.ask(&sign_in(&json!({"link": link}))));
    let late = world.server.explorer_link();
    world.server.clock().advance_seconds(15 * 60);
    assert_refused(401, "WrongLink", &world.client.ask(&sign_in(&json!({"link": late}))));
    // A link is no session.
    let unused = world.server.explorer_link();
    assert_refused(401, "SignInNeeded", &world.ask(&unused, "GET", "overview", &Value::Null));
    let read_only = world.client.expect(200, &sign_in(&json!({"link": unused, "readOnly": true})));
    assert!(read_only.text().contains("\"read-only\""));
}

#[test]
fn guessing_keys_is_slow() {
    let mut world = World::new();
    let (wrong, right) =
        (sign_in(&json!({"key": Key::Unknown.text()})), sign_in(&json!({"key": Key::Primary.text()})));
    let session = token(&world.client.expect(200, &right));
    for _ in 0..10 {
        assert_refused(401, "WrongKey", &world.client.ask(&wrong));
    }
    let answer = world.client.ask(&wrong);
    assert_refused(429, "TooManyAttempts", &answer);
    assert_eq!(answer.header("retry-after"), Some("6"));
    // Nobody locks out who has the right one.
    world.client.expect(200, &right);
    // Who is signed in stays so, and links work.
    world.told(&session, "GET", "overview", &Value::Null);
    let link = world.server.explorer_link();
    world.client.expect(200, &sign_in(&json!({"link": link})));
    world.server.clock().advance_seconds(6);
    world.client.expect(200, &right);
    assert_refused(401, "WrongKey", &world.client.ask(&wrong));
    assert_refused(429, "TooManyAttempts", &world.client.ask(&wrong));
}

#[test]
fn sessions_are_bounded() {
    let mut world = World::new();
    let first = world.sign_in(Key::Primary);
    world.server.clock().advance_seconds(1);
    let second = world.sign_in(Key::Primary);
    for _ in 0..999 {
        world.sign_in(Key::Primary);
    }
    assert_refused(401, "SignInNeeded", &world.ask(&first, "GET", "session", &Value::Null));
    world.told(&second, "GET", "session", &Value::Null);
}

#[test]
fn a_cookie_opens_nothing_but_the_explorer() {
    let mut world = World::new();
    let both = world.sign_in(Key::Primary);
    let (token, page_token) = halves(&both);
    let cookie = format!("{COOKIE}={token}");
    for target in ["/", "/dbs", "/dbs/d", DOCS, "/offers", "/_admin/ranges"] {
        let request =
            bare("GET", target).header("cookie", &cookie).header("x-astrarium-explorer", page_token);
        assert_eq!(world.client.ask(&request).status, 401, "{target}");
    }
    let before = world.state();
    let request = bare("POST", "/dbs").header("cookie", &cookie).header("x-astrarium-explorer", page_token);
    assert_eq!(world.client.ask(&request.body("{\"id\":\"x\"}")).status, 401);
    // Nor do tokens in other places.
    for target in [format!("/dbs?token={token}"), format!("/_explorer/api/overview?token={token}")] {
        let status =
            world.client.ask(&bare("GET", &target).header("x-astrarium-explorer", page_token)).status;
        assert_eq!(status, 401, "{target}");
    }
    for authorization in
        [token.to_owned(), format!("Bearer {token}"), format!("type=master&ver=1.0&sig={token}")]
    {
        let request = bare("GET", "/dbs").header("authorization", &authorization);
        assert_eq!(world.client.ask(&request).status, 401);
    }
    // The name of the cookie has the port, so that two servers of one machine do not take each other's.
    let other =
        bare("GET", "/_explorer/api/session").header("cookie", &format!("astrarium-explorer={token}"));
    assert_eq!(world.client.ask(&other.header("x-astrarium-explorer", page_token)).status, 401);
    assert_eq!(world.state(), before);
    let several = of_session(&format!("wrong.{page_token}"), "GET", "session").header("cookie", &cookie);
    world.client.expect(200, &several);
    // The cookie goes to every port of the machine; without what the page sends it opens nothing at all.
    for page_token in ["1", "none", token] {
        let stolen = of_session(&format!("{token}.{page_token}"), "GET", "session");
        assert_refused(401, "SignInNeeded", &world.client.ask(&stolen));
    }
}

/// A world whose server listens on this machine only, as the program does by default.
fn local_world(change: impl FnOnce(&mut astrarium_testkit::Options)) -> World {
    World::with(|options| {
        options.explorer = Some(ExplorerSettings { is_local: true, ..ExplorerSettings::default() });
        change(options);
    })
}

/// Whether one click is offered, and what it gives; both must say the same.
#[track_caller]
fn check_one_click(world: &mut World, headers: &[(&str, &str)], expected: bool) {
    let with = |request: astrarium_testkit::Request| {
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let ways = bare("GET", "/_explorer/api/sign-in").header("x-astrarium-explorer", "none");
    let told: Value = serde_json::from_slice(&world.client.expect(200, &with(ways)).body).unwrap();
    assert_eq!(told, json!({"wellKnownKey": expected}), "{headers:?}");
    let click = sign_in(&json!({"wellKnownKey": true})).header("x-astrarium-explorer", "none");
    let answer = world.client.ask(&with(click));
    if expected {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("\"read-write\""), "{}", answer.text());
    } else {
        assert_refused(403, "NotThisMachine", &answer);
        assert_eq!(answer.header("set-cookie"), None);
    }
}

#[test]
fn one_click_is_for_this_machine() {
    let mut world = local_world(|_| {});
    for host in ["localhost:8081", "127.0.0.1:8081", "[::1]:8081"] {
        check_one_click(&mut world, &[("host", host)], true);
        check_one_click(&mut world, &[("host", host), ("origin", &format!("http://{host}"))], true);
    }
    // Names that somebody else may mean by it, also those that the operator allowed.
    for host in ["astrarium.test:8081", "astrarium", "my-mac.local:8081", "host.docker.internal", "10.0.0.1"]
    {
        check_one_click(&mut world, &[("host", host)], false);
    }
    for proxy in ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "via", "x-real-ip"]
    {
        check_one_click(&mut world, &[("host", "localhost:8081"), (proxy, "localhost:8081")], false);
    }
    let local = [("host", "localhost:8081")];
    check_one_click(&mut World::new(), &local, false);
    let endpoint = "http://localhost:8081/".to_owned();
    check_one_click(&mut local_world(|options| options.public_endpoint = Some(endpoint)), &local, false);
    check_one_click(&mut local_world(|options| options.trust_forwarded = true), &local, false);
}

#[test]
fn one_click_is_not_for_other_pages() {
    let mut world = local_world(|options| options.cors_origins = vec!["*".to_owned()]);
    let before = world.state();
    let click = || sign_in(&json!({"wellKnownKey": true})).header("host", "localhost:8081");
    let page = || click().header("x-astrarium-explorer", "none");
    let ways = bare("GET", "/_explorer/api/sign-in").header("host", "localhost:8081");
    let asked = ways.clone().header("x-astrarium-explorer", "none");
    for origin in ["http://evil.example", "null", "http://localhost:3000", "https://localhost:8081"] {
        for request in [page(), asked.clone()] {
            assert_refused(403, "Forbidden", &world.client.ask(&request.header("origin", origin)));
        }
    }
    for site in ["cross-site", "same-site", "none"] {
        assert_refused(403, "Forbidden", &world.client.ask(&page().header("sec-fetch-site", site)));
    }
    // A form sends no header of its own and no JSON, and whoever asks first whether he may is not allowed.
    assert_refused(403, "Forbidden", &world.client.ask(&click()));
    assert_refused(403, "Forbidden", &world.client.ask(&ways));
    let form = bare("POST", "/_explorer/api/session").header("host", "localhost:8081");
    let form = form.header("content-type", "text/plain").body("{\"wellKnownKey\":true}");
    assert_refused(400, "BadRequest", &world.client.ask(&form));
    let preflight = bare("OPTIONS", "/_explorer/api/session").header("origin", "http://evil.example");
    let answer = world.client.ask(&preflight.header("host", "localhost:8081"));
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{answer:?}");
    // A name of the page's own that points here.
    let rebound = sign_in(&json!({"wellKnownKey": true})).header("x-astrarium-explorer", "none");
    let rebound = rebound.header("host", "evil.example:8081").header("origin", "http://evil.example:8081");
    assert_eq!(world.client.ask(&rebound).status, 403);
    for body in [
        json!({"wellKnownKey": false}),
        json!({"wellKnownKey": "true"}),
        json!({"wellKnownKey": true, "key": Key::Primary.text()}),
        json!({"wellKnownKey": true, "link": "x"}),
    ] {
        let request = sign_in(&body).header("host", "localhost:8081").header("x-astrarium-explorer", "none");
        assert_refused(400, "BadRequest", &world.client.ask(&request));
    }
    assert_eq!(world.state(), before);
}

/// A session that is begun so can be one that only reads, and is a session like every other.
#[test]
fn one_click_begins_a_session_like_any_other() {
    let mut world = local_world(|_| {});
    let click = sign_in(&json!({"wellKnownKey": true, "readOnly": true})).header("host", "localhost:8081");
    let answer = world.client.expect(200, &click.header("x-astrarium-explorer", "none"));
    assert!(answer.text().contains("\"read-only\""), "{}", answer.text());
    let token = token(&answer);
    world.told(&token, "GET", "overview", &Value::Null);
    let written = world.ask(&token, "POST", "wire/dbs", &json!({"id": "x"}));
    assert!(matches!(written.status, 401 | 403), "{}", written.text());
}
