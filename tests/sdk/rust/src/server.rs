//! The server under test: started from its binary, stopped by kill -9.
//!
//! In: `ASTRARIUM_BIN`, the binary; by default `target/release/astrarium` of this repository. `SSL_CERT_FILE`, which
//! `.cargo/config.toml` sets: the file of authorities that the SDK's TLS trusts, filled here.
//! Invariants
//! - Every server listens on a free port of its own and dies with its value.
//! - A server is ready, and its authority trusted, when `start` returns.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const READY_TIMEOUT: Duration = Duration::from_mins(5);

/// Authorities are added by several tests at once.
static AUTHORITIES: Mutex<()> = Mutex::new(());

/// A running server.
pub struct Server {
    port: u16,
    storage: Vec<String>,
    process: Child,
}

impl Server {
    /// Keeps everything in memory.
    pub fn in_memory() -> Server {
        Server::start(vec!["--memory".to_owned()])
    }

    /// Keeps its data in the folder, where the next one finds it.
    pub fn durable(folder: &Path) -> Server {
        Server::start(vec!["--data".to_owned(), folder.display().to_string()])
    }

    fn start(storage: Vec<String>) -> Server {
        let probe = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = probe.local_addr().expect("its number").port();
        drop(probe);
        let process = launch(port, &storage);
        trust(port);
        Server { port, storage, process }
    }

    /// Where clients find it.
    pub fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the process as a power failure would.
    pub fn kill(&mut self) {
        // An error means that it is dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Kills it and starts it again on the same folder and port.
    pub fn restart(&mut self) {
        self.kill();
        self.process = launch(self.port, &self.storage);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Empties the file of trusted authorities, which may hold those of an earlier run.
pub fn forget_authorities() {
    let path = authorities_path();
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("its folder");
    File::create(path).expect("the file of authorities");
}

fn authorities_path() -> PathBuf {
    let path = std::env::var_os("SSL_CERT_FILE").expect("SSL_CERT_FILE, set by .cargo/config.toml");
    PathBuf::from(path)
}

fn binary() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the repository");
    let given = std::env::var("ASTRARIUM_BIN").unwrap_or_default();
    let binary = root.join(if given.is_empty() { "target/release/astrarium" } else { &given });
    assert!(binary.is_file(), "no server at {}; run cargo build --release first", binary.display());
    binary
}

fn launch(port: u16, storage: &[String]) -> Child {
    let mut process = Command::new(binary())
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .args(storage)
        .stdout(Stdio::null())
        .spawn()
        .expect("start the server");
    let deadline = Instant::now() + READY_TIMEOUT;
    while get(port, "/ready").is_none() {
        let ended = process.try_wait().expect("state of the server");
        assert!(ended.is_none() && Instant::now() < deadline, "the server did not become ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    process
}

fn trust(port: u16) {
    let pem = get(port, "/_explorer/emulator.pem").expect("the server's authority");
    let _guard = AUTHORITIES.lock().expect("no test panics here");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(authorities_path())
        .expect("the file of authorities");
    writeln!(file, "{pem}").expect("write the authority");
}

/// The body of a plain answer with status 200.
fn get(port: u16, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(connection, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}
