//! Settings that are wrong or dangerous are refused before anything is opened, and secrets stay secret.

use crate::program::{Program, refused, refused_with, run};
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
    refused(&serve(&["--connections", "0"]), &["--connections"]);
    refused(&serve(&["--cache-mb", "18446744073709551615"]), &["--cache-mb"]);
    refused(&serve(&["--public-endpoint", "db.example.org"]), &["--public-endpoint", "https://"]);
    refused(&serve(&["--cors-origin", "app.example.org"]), &["--cors-origin"]);
    refused(&serve(&["--log", "verbose"]), &["--log", "warn"]);
    refused(&serve(&["--log", "warn,astrarium=loud"]), &["--log"]);
    refused(&serve(&["--listen", "127.0.0.1:0", "--frobnicate"]), &["--frobnicate"]);
    refused(&["dance"], &["dance"]);
    refused(&[], &[]);
    let ended = refused(&serve(&["--listen", "127.0.0.1:0", "--key", "short-secret"]), &["--key"]);
    assert!(!ended.stderr.contains("short-secret"), "{ended:?}");
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

/// A setting that would have no effect is a mistake, and is not passed over.
#[test]
fn settings_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let text = data.to_str().unwrap();
    refused(&["serve", "--memory", "--data", text], &["--memory", "--data"]);
    refused(&["serve", "--memory", "--cache-mb", "8"], &["--cache-mb"]);
    refused(&["serve", "--memory", "--reserve-mb", "8"], &["--reserve-mb"]);
    let both = [("ASTRARIUM_MEMORY", "yes"), ("ASTRARIUM_DATA", text)];
    refused_with(&both, &["serve"], &["ASTRARIUM_MEMORY", "ASTRARIUM_DATA"]);
    let forwarded =
        ["serve", "--memory", "--public-endpoint", "https://db.example.org/", "--trust-forwarded"];
    refused(&forwarded, &["--public-endpoint", "--trust-forwarded"]);
    // A key that may only read is not one that may write, however it is written.
    let (key, broken) = (Key::Unknown.text(), format!("{}\n", Key::Unknown.text()));
    let keys = ["serve", "--memory", "--key", &key, "--read-only-key", &broken];
    let ended = refused(&keys, &["--read-only-key", "--key"]);
    assert!(!ended.stderr.contains(&key), "{ended:?}");
    assert!(!data.exists(), "nothing was made");
    // Switched off is as good as not given.
    let variables = [("ASTRARIUM_MEMORY", "no"), ("ASTRARIUM_LISTEN", "0"), ("ASTRARIUM_DATA", text)];
    Program::start_with(&variables, &[]).stop();
    assert!(data.exists());
}

#[test]
fn the_environment_is_read_as_people_write_it() {
    let refuse = |name, value| refused_with(&[(name, value)], &["serve", "--listen", "0"], &[name]);
    refuse("ASTRARIUM_MEMORY", "maybe");
    refuse("ASTRARIUM_CONNECTIONS", "many");
    refuse("ASTRARIUM_PUBLIC_ENDPOINT", "db");
    refuse("ASTRARIUM_LOG", "verbose");
    refused_with(&[("ASTRARIUM_LISTEN", "nonsense")], &["serve"], &["ASTRARIUM_LISTEN"]);
    refused_with(&[("ASTRARIUM_KEY", "")], &["serve", "--memory", "--listen", "0"], &["ASTRARIUM_KEY"]);
    // A flag counts more, so the variable is not to blame.
    let ended = refused_with(&[("ASTRARIUM_LISTEN", "8081")], &["serve", "--listen", "x"], &["--listen"]);
    assert!(!ended.stderr.contains("ASTRARIUM_LISTEN"), "{ended:?}");
    for on in ["1", "yes", "on", "TRUE"] {
        let variables =
            [("ASTRARIUM_MEMORY", on), ("ASTRARIUM_TRUST_FORWARDED", ""), ("ASTRARIUM_MEMROY", "1")];
        let program = Program::start_with(&variables, &["--listen", "localhost:0"]);
        assert!(program.ready_line.contains("data in memory"), "{on}: {}", program.ready_line);
        let ended = program.stop();
        assert!(ended.stderr.contains("ASTRARIUM_MEMROY"), "a misspelt name is told: {}", ended.stderr);
    }
}

/// As `openssl rand -base64 64` prints one.
#[test]
fn a_key_of_two_lines() {
    let own = Key::Unknown.text();
    let (first, second) = own.split_at(own.len() / 2);
    let program = Program::in_memory(&["--key", &format!("{first}\n{second}\n")]);
    program.client().expect(200, &Request::new("GET", "/dbs").credential(Credential::Key(Key::Unknown)));
    program.client().expect(401, &Request::new("GET", "/dbs"));
}

/// Without an address it is this machine only: the well-known key stays there.
#[test]
fn ways_to_write_where_to_listen() {
    for text in ["0", ":0", "localhost:0", "127.0.0.1:0"] {
        let program = Program::start_with(&[], &["--memory", "--listen", text]);
        assert!(program.address.ip().is_loopback(), "{text}: {}", program.address);
        program.client().expect(200, &Request::new("GET", "/dbs"));
    }
    // The line that is pasted into a client names an address that one can connect to.
    let program = Program::start_with(&[], &["--memory", "--listen", "0.0.0.0:0", "--allow-well-known-key"]);
    assert!(program.address.ip().is_loopback(), "{}", program.ready_line);
    program.client().expect(200, &Request::new("GET", "/dbs"));
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
    let ended = refused(&["serve", "--memory", "--listen", &address], &[&address]);
    assert_eq!(ended.stderr.matches("os error").count(), 1, "told once: {}", ended.stderr);
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
    assert_eq!(run(&["help", "serve"]).stdout, help.stdout);
    let general = run(&["help"]);
    assert!(general.success && general.stdout.contains("serve"), "{general:?}");
    refused(&[], &["Usage", "serve", "help"]);
    refused(&["--listen", "8081"], &["astrarium serve --listen"]);
}
