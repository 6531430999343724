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
    let mut world = World::with(|options| options.explorer = Some(ExplorerSettings { session_seconds: 600 }));
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
