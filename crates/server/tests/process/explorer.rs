//! The explorer of the program: the link that it prints, and the settings that turn it off.

use crate::program::{Program, refused};
use astrarium_testkit::{Credential, Key, Request};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

fn page() -> Request {
    Request::new("GET", "/_explorer/index.html").credential(Credential::None)
}

fn sign_in(body: &str) -> Request {
    let request = Request::new("POST", "/_explorer/api/session").credential(Credential::None);
    request.header("content-type", "application/json").body(body)
}

#[test]
fn the_printed_link_signs_in_once() {
    let mut program = Program::in_memory(&["--explorer-session-minutes", "5"]);
    let line = program.next_line();
    let start = format!("Explorer: http://{}/_explorer/#link=", program.address);
    let link = line.strip_prefix(&start).unwrap_or_else(|| panic!("{line:?}")).trim();
    let mut client = program.client();
    assert!(client.expect(200, &page()).text().contains("<html"));
    let body = format!("{{\"link\":\"{link}\"}}");
    let answer = client.expect(200, &sign_in(&body));
    assert!(answer.text().contains("\"read-write\""), "{}", answer.text());
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=300;")));
    client.expect(401, &sign_in(&body));
    // The cookie is that of the name and port that were asked.
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let ask = |cookie: &str| {
        let request = Request::new("GET", "/_explorer/api/overview").credential(Credential::None);
        request.header("cookie", cookie).header("x-astrarium-explorer", "1")
    };
    client.expect(200, &ask(&cookie));
    client.expect(401, &ask("astrarium-explorer-8081=x"));
    // The log has no link: it may be kept by others.
    let ended = program.stop();
    assert!(!ended.stderr.contains(link), "{}", ended.stderr);
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
