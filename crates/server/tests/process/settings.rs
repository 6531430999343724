//! Settings that are wrong or dangerous are refused before anything is opened, and secrets stay secret.

use crate::program::{Program, refused, run};
use astrarium_testkit::{Credential, Key, Request};

#[test]
fn wrong_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let serve = |more: &[&'static str]| [&["serve", "--data", data], more].concat();
    refused(&serve(&["--listen", "nonsense"]), &["--listen"]);
    refused(&serve(&["--listen", "127.0.0.1:99999"]), &["--listen"]);
    refused(&serve(&["--consistency", "immediate"]), &["--consistency"]);
    refused(&serve(&["--connections", "many"]), &["--connections"]);
    refused(&serve(&["--listen", "127.0.0.1:0", "--frobnicate"]), &["--frobnicate"]);
    refused(&["dance"], &["dance"]);
    refused(&[], &[]);
    let ended = refused(&serve(&["--listen", "127.0.0.1:0", "--key", "short-secret"]), &["--key"]);
    assert!(!ended.stderr.contains("short-secret"), "{ended:?}");
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

/// The well-known key protects nothing, so it is not offered to a network unasked.
#[test]
fn the_well_known_key_stays_on_this_machine() {
    refused(&["serve", "--memory", "--listen", "0.0.0.0:0"], &["well-known key", "--allow-well-known-key"]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let first = Program::in_memory(&[]);
    let address = first.address.to_string();
    refused(&["serve", "--memory", "--listen", &address], &[&address]);
    first.client().expect(200, &Request::new("GET", "/dbs"));
}

/// Neither the ready line nor the log at its most talkative shows a key, a signature or a token.
#[test]
fn secrets_are_not_logged() {
    let keys = [Key::Secondary, Key::ReadOnly, Key::SecondaryReadOnly].map(Key::text);
    let own = Key::Unknown.text();
    let program = Program::in_memory(&[
        "--key",
        &own,
        "--secondary-key",
        &keys[0],
        "--read-only-key",
        &keys[1],
        "--secondary-read-only-key",
        &keys[2],
        "--log",
        "trace",
        "--log-requests",
    ]);
    let mut client = program.client();
    client.expect(401, &Request::new("GET", "/dbs"));
    let by_owner =
        |verb: &str, target: &str| Request::new(verb, target).credential(Credential::Key(Key::Unknown));
    client.expect(201, &by_owner("POST", "/dbs").body("{\"id\":\"d\"}"));
    let sent = String::from_utf8(client.bytes(&by_owner("GET", "/dbs"))).unwrap();
    let signature = sent.split_once("sig%3D").unwrap().1.split_once("\r\n").unwrap().0.to_owned();
    client.expect(200, &by_owner("GET", "/dbs"));
    client.expect(201, &by_owner("POST", "/dbs/d/users").body("{\"id\":\"u\"}"));
    let permission = "{\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d\"}";
    let made = client.expect(201, &by_owner("POST", "/dbs/d/users/u/permissions").body(permission)).text();
    let token = made.split_once("&sig=").unwrap().1.split('"').next().unwrap().to_owned();
    let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
    let ended = program.stop();
    assert!(ended.stderr.contains("/dbs/d/users"), "requests are logged: {}", ended.stderr);
    for secret in keys.iter().map(String::as_str).chain([own.as_str(), &signature, &token]) {
        for text in [&ended.stdout, &ended.stderr, &metrics] {
            assert!(!text.contains(secret), "a secret in {text}");
        }
    }
}

/// Settings come from the environment too, and the help names them all.
#[test]
fn help_names_every_setting() {
    let help = run(&["serve", "--help"]);
    assert!(help.success);
    for name in [
        "--listen",
        "--data",
        "--memory",
        "--key",
        "--reserve-mb",
        "--connections",
        "ASTRARIUM_LISTEN",
        "ASTRARIUM_DATA",
    ] {
        assert!(help.stdout.contains(name), "{name} in {}", help.stdout);
    }
    assert!(run(&["--version"]).success);
}
