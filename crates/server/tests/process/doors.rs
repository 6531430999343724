//! What stands between the data and others: rights of files, keys that are no secret, names that are not ours, certificates.

use crate::program::{DOCS, Program, create, refused};
use astrarium_testkit::{Credential, Key, Request};
use astrarium_wire::key_text::EMULATOR_KEY;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The rights of a folder and all that is in it, with what they should be.
fn assert_private(path: &Path) {
    let found = fs::symlink_metadata(path).unwrap();
    let expected = if found.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(found.permissions().mode() & 0o777, expected, "{}", path.display());
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            assert_private(&entry.unwrap().path());
        }
    }
}

fn open_up(path: &Path) {
    let is_folder = path.is_dir();
    fs::set_permissions(path, fs::Permissions::from_mode(if is_folder { 0o755 } else { 0o644 })).unwrap();
    if is_folder {
        for entry in fs::read_dir(path).unwrap() {
            open_up(&entry.unwrap().path());
        }
    }
}

#[test]
fn the_data_is_its_owners() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    let program = Program::on(&folder, &[]);
    program.furnish();
    program.client().expect(201, &create("1", "x"));
    assert_private(&folder);
    program.stop();
    assert_private(&folder);
    // A folder of an older version, or one that somebody opened.
    open_up(&folder);
    let program = Program::on(&folder, &[]);
    assert_private(&folder);
    program.client().expect(201, &create("2", "x"));
    program.stop();
    assert_private(&folder);
    // A link to it is as good.
    open_up(&folder);
    let link = parent.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    Program::on(&link, &[]).stop();
    assert_private(&folder);
}

/// However it is written, and whichever setting it is given to.
#[test]
fn the_well_known_key_is_recognised() {
    let broken = format!(" {}\n{}\n", &EMULATOR_KEY[..40], &EMULATOR_KEY[40..]);
    let bare = EMULATOR_KEY.trim_end_matches('=');
    let own = Key::Unknown.text();
    let refuse = |more: &[&str], name: &str| {
        refused(&[&["serve", "--memory", "--listen", "0.0.0.0:0"], more].concat(), &["well-known key", name]);
    };
    refuse(&[], "--key");
    for known in [EMULATOR_KEY, &broken, bare] {
        refuse(&["--key", known], "--key");
        for name in ["--secondary-key", "--read-only-key", "--secondary-read-only-key"] {
            refuse(&["--key", &own, name, known], name);
        }
    }
}

/// A page of the web that has its name lead here is refused, whatever it asks for; names of ours are not.
#[test]
fn names_that_are_not_ours() {
    let ask = |program: &Program, target: &str, host: &str, credential: Credential| {
        let request = Request::new("GET", target).header("host", host).credential(credential);
        program.client().ask(&request)
    };
    let known = Program::in_memory(&["--allowed-host", "db.example.org,*.example.net"]);
    let primary = Credential::Key(Key::Primary);
    for ours in [
        "localhost:8081",
        "127.0.0.1:8081",
        "[::1]:8081",
        "cosmos",
        "mac.local",
        "db.example.org",
        "a.example.net",
    ] {
        assert_eq!(ask(&known, "/dbs", ours, primary.clone()).status, 200, "{ours}");
        assert_eq!(ask(&known, "/metrics", ours, Credential::None).status, 200, "{ours}");
    }
    for target in ["/dbs", "/", "/metrics", "/status", "/_explorer/emulator.pem"] {
        let response = ask(&known, target, "evil.example:8081", primary.clone());
        assert_eq!(response.status, 403, "{target}");
        assert!(response.text().contains("--allowed-host evil.example"), "{}", response.text());
    }
    let forwarded = Request::new("GET", "/dbs").header("host", "evil.example");
    known.client().expect(403, &forwarded.header("x-forwarded-host", "localhost"));
    // With a key that is a secret, or as the public endpoint, any name will do.
    let own = Program::in_memory(&["--key", &Key::Unknown.text()]);
    assert_eq!(ask(&own, "/dbs", "evil.example", Credential::Key(Key::Unknown)).status, 200);
    let mixed = Program::in_memory(&["--key", &Key::Unknown.text(), "--read-only-key", EMULATOR_KEY]);
    assert_eq!(ask(&mixed, "/dbs", "evil.example", primary).status, 403);
    refused(&["serve", "--memory", "--allowed-host", "https://db.example.org/"], &["--allowed-host"]);
}

#[test]
fn a_certificate_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Program::on(&data, &[]).stop();
    let (certificate, key) = (data.join("tls/server.pem"), data.join("tls/server.key"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let program = Program::in_memory(&["--tls-certificate", certificate, "--tls-key", key]);
    let shown = program.client().expect(200, &Request::new("GET", "/_explorer/emulator.pem")).text();
    let chain = fs::read_to_string(certificate).unwrap().replace("\r\n", "\n");
    assert_eq!(shown, chain);
    let serve = |more: &[&str], fragments: &[&str]| {
        refused(&[&["serve", "--memory", "--listen", "127.0.0.1:0"], more].concat(), fragments);
    };
    serve(&["--tls-certificate", certificate], &["--tls-key"]);
    serve(&["--tls-key", key], &["--tls-certificate"]);
    serve(&["--tls-certificate", key, "--tls-key", key], &["server.key", "certificate"]);
    serve(&["--tls-certificate", certificate, "--tls-key", "/nowhere/x.key"], &["/nowhere/x.key"]);
}

/// Damage to the files of the local authority is mended; the data is served.
#[test]
fn damaged_certificates_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &[]);
    program.furnish();
    let authority = fs::read_to_string(folder.path().join("tls/authority.pem")).unwrap();
    program.stop();
    fs::write(folder.path().join("tls/server.pem"), "").unwrap();
    let program = Program::on(folder.path(), &[]);
    program.client().expect(200, &Request::new("GET", DOCS));
    let shown = program.client().expect(200, &Request::new("GET", "/_explorer/emulator.pem")).text();
    assert_eq!(shown, authority);
    let ended = program.stop();
    assert!(ended.stderr.contains("certificate"), "{}", ended.stderr);
}
