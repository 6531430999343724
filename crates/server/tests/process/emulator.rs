//! The server in the emulator's place: lines on standard output, variables, ports, probes, certificate; and servers that end with
//! whoever started them.

use crate::program::{Ended, command, refused_with, run_with, wait};
use astrarium_testkit::{Client, Credential, Request};
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time to start; it takes a fraction of a second.
const PATIENCE: Duration = Duration::from_mins(5);

/// A running `astrarium emulator`, killed when it is dropped.
struct Emulator {
    child: Child,
    /// Every write to standard output up to the one that says that it has started.
    writes: Vec<String>,
}

impl Emulator {
    fn start(variables: &[(&str, &str)], arguments: &[&str]) -> Emulator {
        let mut program = command(&[&["emulator", "--address", "127.0.0.1"], arguments].concat());
        for name in ["PORT", "PROTOCOL", "LOG_LEVEL", "DATA_PATH"] {
            program.env_remove(name);
        }
        program.envs([("PORT", "0"), ("HEALTH_PORT", "0"), ("EXPLORER_PORT", "0")]);
        program.envs(variables.iter().copied());
        // A datagram for each write, so that they can be told apart.
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        program.stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        let mut emulator = Emulator { child: program.spawn().unwrap(), writes: Vec::new() };
        // The command keeps the other end open.
        drop(program);
        let mut buffer = [0; 4096];
        while emulator.writes.last().is_none_or(|last| !last.contains("Started")) {
            let length = ours.recv(&mut buffer).expect("a line before the time is over");
            assert_ne!(length, 0, "it ended: {:?}", emulator.writes);
            emulator.writes.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        emulator
    }

    /// What follows a word on one of the lines.
    fn told(&self, word: &str) -> String {
        let all = self.writes.concat();
        let line = all.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("{word} in {all}")).trim().to_owned()
    }

    /// A client of the port that a line names.
    fn client(&self, word: &str) -> Client {
        let url = self.told(word);
        let address = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
        Client::of_process(address.parse::<SocketAddr>().unwrap())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unsigned(target: &str) -> Request {
    Request::new("GET", target).credential(Credential::None)
}

/// What the modules of Testcontainers wait for, each in its way.
#[test]
fn readiness_as_the_emulators_users_look_for_it() {
    let emulator = Emulator::start(
        &[
            ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "None"),
            ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "False"),
            ("ENABLE_TELEMETRY", "false"),
            ("ENABLE_OTLP_EXPORTER", "false"),
            ("PROTOCOL", "https"),
        ],
        &[],
    );
    // Java wants a piece of the log that ends so, Python a log that ends so, Go the word, Node the other line.
    assert_eq!(emulator.writes.last().map(String::as_str), Some("Started\r\n"), "{:?}", emulator.writes);
    assert!(emulator.told("Now listening on: ").starts_with("https://127.0.0.1:"));
    // .NET asks for both checks by name, Aspire for readiness.
    let mut health = emulator.client("Health: ");
    let alive: serde_json::Value =
        serde_json::from_str(&health.expect(200, &unsigned("/alive")).text()).unwrap();
    assert_eq!(
        (&alive["checks"]["gateway"], &alive["checks"]["postgres"]),
        (&"healthy".into(), &"healthy".into())
    );
    health.expect(200, &unsigned("/ready"));
    health.expect(404, &Request::new("GET", "/dbs"));
    // The account is where it says, without a signature only for the question whether somebody is there.
    let mut account = emulator.client("Now listening on: ");
    account.expect(200, &unsigned("/"));
    account.expect(401, &unsigned("/dbs"));
    account.expect(200, &Request::new("GET", "/dbs"));
    let told = account.expect(200, &Request::new("GET", "/")).text();
    assert!(told.contains("writableLocations"), "{told}");
    account.expect(200, &unsigned("/_explorer/emulator.pem"));
    // The explorer's port has the explorer and not the account.
    let mut explorer = emulator.client("Explorer also at: ");
    let to = explorer.expect(307, &unsigned("/"));
    assert_eq!(to.header("location"), Some("/_explorer/"));
    explorer.expect(404, &Request::new("GET", "/dbs"));
    // Python asks the account's own port for it too.
    for client in [&mut explorer, &mut account] {
        client.expect(200, &unsigned("/_explorer/index.html"));
    }
}

/// As the Go module starts it, and with everything that has a place of its own.
#[test]
fn flags_files_and_places() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let key = astrarium_testkit::Key::Unknown.text();
    std::fs::write(place("key"), format!("{key}\n")).unwrap();
    let certificate = place("tmp/cosmos/emulator.pem");
    let variables = [
        ("KEY_FILE", place("key")),
        ("DATA_PATH", place("data")),
        ("ASTRARIUM_CERTIFICATE_FILE", certificate.clone()),
        ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.1.2.3".to_owned()),
        ("GATEWAY_PUBLIC_ENDPOINT", "cosmos".to_owned()),
        ("LOG_LEVEL", "quiet".to_owned()),
    ];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let emulator = Emulator::start(&variables, &["--enable-explorer", "false", "--protocol", "http"]);
    assert!(!emulator.writes.concat().contains("Explorer"), "{:?}", emulator.writes);
    let mut account = emulator.client("Now listening on: ");
    account.expect(404, &unsigned("/_explorer/index.html"));
    account.expect(401, &Request::new("GET", "/dbs"));
    let known = Credential::Key(astrarium_testkit::Key::Unknown);
    account.expect(200, &Request::new("GET", "/dbs").credential(known.clone()));
    let told = account.expect(200, &Request::new("GET", "/").credential(known)).text();
    assert!(told.contains("http://cosmos:"), "{told}");
    let shown = account.expect(200, &unsigned("/_explorer/emulator.pem")).text();
    assert_eq!(std::fs::read_to_string(&certificate).unwrap(), shown);
    assert!(Path::new(&place("data/tls/server.pem")).exists());
    drop(emulator);
    // The same folder under further names: the authority that clients trust is the same.
    let again =
        [("DATA_PATH", place("data")), ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.1.2.4".to_owned())];
    let again: Vec<(&str, &str)> = again.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let emulator = Emulator::start(&again, &[]);
    let now = emulator.client("Now listening on: ").expect(200, &unsigned("/_explorer/emulator.pem")).text();
    assert_eq!(now, shown);
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let refuse = |variables: &[(&str, &str)], fragments: &[&str]| {
        refused_with(variables, &["emulator", "--address", "127.0.0.1", "--health-port", "0"], fragments);
    };
    refuse(&[("PORT", "x")], &["--port", "PORT"]);
    refuse(&[("PROTOCOL", "ftp")], &["--protocol", "PROTOCOL", "https-insecure"]);
    refuse(&[("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "many")], &["PARTITION_COUNT", "number"]);
    refuse(&[("PORT", "0"), ("KEY_FILE", "/nowhere/key")], &["/nowhere/key"]);
    refuse(&[("PORT", "0"), ("AZURE_COSMOS_EMULATOR_KEY", "short")], &["--key"]);
    refuse(&[("PORT", "0"), ("LOG_LEVEL", "loud")], &["--log", "loud"]);
    let folder = tempfile::tempdir().unwrap();
    let pfx = folder.path().join("server.pfx");
    std::fs::write(&pfx, [0x30, 0x82, 1, 2]).unwrap();
    refuse(&[("PORT", "0"), ("CERT_PATH", pfx.to_str().unwrap())], &["PKCS#12", "openssl", "PEM"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refuse(&[("PORT", "0"), ("EXPLORER_PORT", &port)], &["EXPLORER_PORT", &port]);
}

#[test]
fn health_tells_by_its_exit_code() {
    let emulator = Emulator::start(&[], &[]);
    let endpoint = emulator.told("Now listening on: ");
    let healthy = run_with(&[], &["health", "--endpoint", &endpoint]);
    assert!(healthy.success && healthy.stdout.contains("ready"), "{healthy:?}");
    let port = endpoint.rsplit(':').next().unwrap().to_owned();
    let by_port = run_with(&[("PORT", port.as_str())], &["health"]);
    assert!(by_port.success, "{by_port:?}");
    drop(emulator);
    refused_with(&[], &["health", "--endpoint", &endpoint], &["is the server running?"]);
    refused_with(&[], &["health", "--endpoint", "https://localhost:1"], &["http://"]);
}

/// Whoever holds the other end of its standard input may end in any way.
#[test]
fn a_server_ends_with_whoever_started_it() {
    let mut program: Command =
        command(&["serve", "--memory", "--listen", "127.0.0.1:0", "--until-stdin-closes"]);
    let mut child = program.stdin(Stdio::piped()).spawn().unwrap();
    let mut line = vec![0; 12];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(line, b"Astrarium is");
    assert!(child.try_wait().unwrap().is_none(), "it runs while its input is open");
    let began = Instant::now();
    drop(child.stdin.take());
    assert!(wait(&mut child), "in good order");
    assert!(began.elapsed() < PATIENCE);
    let mut ended = Ended { success: true, stdout: String::new(), stderr: String::new() };
    child.stderr.take().unwrap().read_to_string(&mut ended.stderr).unwrap();
    assert!(ended.stderr.contains("standard input was closed"), "{ended:?}");
}
