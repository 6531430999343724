//! The explorer of the program: the link that it prints, and the settings that turn it off.

use crate::program::{DOCS, Program, refused};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Client, Credential, Key, Request};
use astrarium_wire::key_text::EMULATOR_KEY;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

fn page() -> Request {
    Request::new("GET", "/_explorer/index.html").credential(Credential::None)
}

fn sign_in(body: &str) -> Request {
    let request = Request::new("POST", "/_explorer/api/session").credential(Credential::None);
    request.header("content-type", "application/json").body(body)
}

/// What somebody has who is signed in: the cookie, and what the page sends.
struct SignedIn {
    cookie: String,
    page_token: String,
}

impl SignedIn {
    #[track_caller]
    fn of(answer: &Response) -> SignedIn {
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        SignedIn { cookie, page_token: said["pageToken"].as_str().unwrap().to_owned() }
    }

    #[track_caller]
    fn by_key(client: &mut Client) -> SignedIn {
        SignedIn::of(&client.expect(200, &sign_in(&json!({"key": EMULATOR_KEY}).to_string())))
    }

    fn asks(&self, verb: &str, path: &str) -> Request {
        let request = Request::new(verb, &format!("/_explorer/api/{path}")).credential(Credential::None);
        request.header("cookie", &self.cookie).header("x-astrarium-explorer", &self.page_token)
    }
}

/// A terminal is made by `script`, which belongs to Linux.
#[cfg(target_os = "linux")]
#[test]
fn the_link_that_a_terminal_shows_signs_in_once() {
    let program = env!("CARGO_BIN_EXE_astrarium");
    let command = format!(
        "exec '{program}' serve --memory --listen 127.0.0.1:0 --key YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcywgeWVz --explorer-session-minutes 5 2>/dev/null"
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qefc", &command, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    // It says there that it was ended.
    let mut terminal = terminal.stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("Explorer: ")).unwrap();
    let address = line.strip_prefix("Explorer: http://").unwrap();
    let (address, link) =
        address.trim().split_once("/_explorer/#link=").unwrap_or_else(|| panic!("{line:?}"));
    let mut client = Client::of_process(address.parse().unwrap());
    assert!(client.expect(200, &page()).text().contains("<html"));
    let body = json!({"link": link}).to_string();
    let answer = client.expect(200, &sign_in(&body));
    assert!(answer.text().contains("\"read-write\""), "{}", answer.text());
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=300;")));
    client.expect(401, &sign_in(&body));
    client.expect(200, &SignedIn::of(&answer).asks("GET", "overview"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&terminal), rustix::process::Signal::TERM)
        .unwrap();
    terminal.wait().unwrap();
}

/// What goes into a pipe or a file may be kept by others, which does no harm only if they know the key.
#[test]
fn no_link_of_a_secret_key_is_printed_but_to_a_terminal() {
    let mut known = Program::in_memory(&[]);
    let line = known.next_line();
    assert!(line.contains("/_explorer/#link="), "{line:?}");
    known.stop();
    let mut program = Program::in_memory(&["--key", "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcywgeWVz"]);
    let line = program.next_line();
    assert!(line.trim_end().ends_with("/_explorer/ (sign in with an account key)"), "{line:?}");
    let ended = program.stop();
    assert!(!ended.stderr.contains("link="), "{}", ended.stderr);
}

#[test]
fn a_session_is_a_cookie_and_what_the_page_sends() {
    let program = Program::in_memory(&[]);
    let mut client = program.client();
    let one = SignedIn::by_key(&mut client);
    client.expect(200, &one.asks("GET", "overview"));
    // The page is told once.
    assert!(!client.expect(200, &one.asks("GET", "session")).text().contains("pageToken"));
    let other = SignedIn::by_key(&mut client);
    for page_token in ["1", "none", one.cookie.as_str(), other.page_token.as_str()] {
        let stolen = SignedIn { cookie: one.cookie.clone(), page_token: page_token.to_owned() };
        for path in ["session", "overview", "wire/dbs"] {
            client.expect(401, &stolen.asks("GET", path));
        }
        client.expect(401, &stolen.asks("DELETE", "session"));
    }
    let request = Request::new("GET", "/_explorer/api/overview").credential(Credential::None);
    client.expect(403, &request.header("cookie", &one.cookie));
    client.expect(
        401,
        &SignedIn { cookie: "astrarium-explorer-8081=x".to_owned(), ..other }.asks("GET", "session"),
    );
    // Who signs in again leaves no session behind that nobody can end.
    let again = sign_in(&json!({"key": EMULATOR_KEY, "readOnly": true}).to_string());
    let again = SignedIn::of(&client.expect(200, &again.header("cookie", &one.cookie)));
    client.expect(401, &one.asks("GET", "session"));
    client.expect(204, &again.asks("DELETE", "session"));
    client.expect(401, &again.asks("GET", "session"));
}

#[test]
fn a_proxy_of_ours_passes_on_names_of_ours_only() {
    for (arguments, status) in [
        (&["--trust-forwarded"][..], 403),
        (&["--trust-forwarded", "--allowed-host", "db.example"][..], 200),
        // Then forwarded names mean nothing, and the origin is another one.
        (&["--allowed-host", "db.example"][..], 403),
    ] {
        let program = Program::in_memory(arguments);
        let mut client = program.client();
        let signed_in = SignedIn::by_key(&mut client);
        for forwarded in [
            &[("x-forwarded-host", "db.example"), ("x-forwarded-proto", "https")][..],
            &[("forwarded", "proto=https;host=db.example")][..],
        ] {
            let request = signed_in.asks("GET", "overview").header("origin", "https://db.example");
            let request =
                forwarded.iter().fold(request, |request, (name, value)| request.header(name, value));
            client.expect(status, &request);
        }
    }
}

/// A token that a session gets ends with it, also if a longer life is asked for.
#[test]
fn what_a_session_gets_does_not_outlive_it() {
    let program = Program::in_memory(&["--explorer-session-minutes", "5", "--test-clock"]);
    program.furnish();
    let mut client = program.client();
    client.expect(201, &Request::new("POST", "/dbs/d/users").body("{\"id\":\"u\"}"));
    let permission = json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}).to_string();
    client.expect(201, &Request::new("POST", "/dbs/d/users/u/permissions").body(permission));
    let token_of = |answer: &Response| {
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        said["_token"].as_str().unwrap().to_owned()
    };
    let long = ("x-ms-documentdb-expiry-seconds", "86400");
    let by_key = Request::new("GET", "/dbs/d/users/u/permissions/p").header(long.0, long.1);
    let by_key = token_of(&client.expect(200, &by_key));
    let session = SignedIn::by_key(&mut client);
    let by_session = session.asks("GET", "wire/dbs/d/users/u/permissions/p").header(long.0, long.1);
    let by_session = token_of(&client.expect(200, &by_session));
    let read = |token: &str| Request::new("GET", DOCS).credential(Credential::Token(token.to_owned()));
    client.expect(200, &read(&by_key));
    client.expect(200, &read(&by_session));
    client.expect(200, &Request::new("POST", "/_admin/clock").body("{\"advanceSeconds\":301}"));
    client.expect(401, &session.asks("GET", "session"));
    client.expect(200, &read(&by_key));
    assert!(matches!(client.ask(&read(&by_session)).status, 401 | 403));
}

/// Plans that are run and scripts that are tried take their turns and pay, as everything does that reads.
#[test]
fn the_explorer_keeps_to_the_throughput() {
    let program = Program::in_memory(&["--throttle"]);
    program.furnish();
    let mut client = program.client();
    for number in 0..6 {
        let item = json!({"id": number.to_string(), "pk": "a", "text": "x".repeat(60_000)}).to_string();
        client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(item));
    }
    let session = SignedIn::by_key(&mut client);
    let sql = "SELECT * FROM c";
    let explain = json!({"database": "d", "container": "c", "sql": sql, "run": true}).to_string();
    let script = json!({"database": "d", "container": "c", "body": "function f() {}", "partitionKey": ["a"]})
        .to_string();
    // The budget fills up meanwhile, so both may have to be tried some times.
    let mut refused = [false; 2];
    for _ in 0..500 {
        for (place, (path, body)) in [("explain", &explain), ("run-script", &script)].into_iter().enumerate()
        {
            let answer = client.ask(&session.asks("POST", path).body(body.as_str()));
            assert!(matches!(answer.status, 200 | 429), "{path}: {}", answer.text());
            refused[place] |= answer.status == 429;
        }
        if refused == [true; 2] {
            return;
        }
    }
    panic!("nobody was refused: {refused:?}");
}

#[test]
fn beyond_this_machine_no_link_is_printed() {
    let key = Key::Unknown.text();
    let mut command = Command::new(env!("CARGO_BIN_EXE_astrarium"));
    command.args(["serve", "--memory", "--listen", "0.0.0.0:0", "--key", &key]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> = lines.take(2).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said[1].ends_with("/_explorer/ (sign in with an account key)"), "{said:?}");
    assert!(!said[1].contains("link="), "{said:?}");
}

#[test]
fn it_can_be_turned_off() {
    let listen = ["--memory", "--listen", "127.0.0.1:0"];
    for (variables, arguments) in [
        (&[][..], &["--explorer", "false"][..]),
        (&[][..], &["--enable-explorer", "false"][..]),
        (&[("ENABLE_EXPLORER", "false")][..], &[][..]),
        (&[("ASTRARIUM_EXPLORER", "0")][..], &[][..]),
    ] {
        let program = Program::start_with(variables, &[&listen[..], arguments].concat());
        let mut client = program.client();
        client.expect(404, &page());
        client.expect(404, &sign_in("{}"));
        client.expect(200, &Request::new("GET", "/_explorer/emulator.pem").credential(Credential::None));
    }
    let own = Program::start_with(&[("ENABLE_EXPLORER", "false"), ("ASTRARIUM_EXPLORER", "true")], &listen);
    own.client().expect(200, &page());
    refused(&["serve", "--memory", "--explorer", "maybe"], &["--explorer"]);
    refused(&["serve", "--memory", "--explorer-session-minutes", "0"], &["--explorer-session-minutes"]);
}
