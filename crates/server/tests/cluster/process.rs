//! One server of a site as a process: started, killed, terminated, frozen.
//!
//! In: arguments, a file for its log. Out: its address; signals.
//! Invariants
//! - It does not outlive this program, however that ends: a small shell between them kills it when its input closes.
//! - It gets a free port at every start, so that nobody else can have taken it meanwhile.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_astrarium");

/// SIGTERM must end the process within this time, whatever is under way.
const TERMINATION_MAX: Duration = Duration::from_mins(5);

/// Takes names of signals; the end of input kills.
const GUARD: &str = r#""$@" < /dev/null &
server=$!
echo "$server"
while read -r word; do
    kill "-$word" "$server"
done
kill -KILL "$server"
wait "$server"
"#;

/// A running server; killed when dropped.
pub(crate) struct ServerProcess {
    guard: Child,
    signals: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u32,
    address: SocketAddr,
}

impl ServerProcess {
    /// Starts and waits for the line that says it is ready.
    pub(crate) fn start(arguments: &[String], log: &Path) -> ServerProcess {
        let log = File::options().create(true).append(true).open(log).expect("open a server's log");
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ASTRARIUM_") {
                command.env_remove(name);
            }
        }
        command.args(["-c", GUARD, "guard", PROGRAM, "serve", "--previous-images"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut guard = command.spawn().expect("start a server");
        let signals = guard.stdin.take();
        let mut output = BufReader::new(guard.stdout.take().expect("standard output is a pipe"));
        let (mut id, mut ready) = (String::new(), String::new());
        output.read_line(&mut id).expect("read the server's number");
        output.read_line(&mut ready).expect("read the server's first line");
        let address =
            ready.split_once("AccountEndpoint=http://").and_then(|(_, rest)| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok());
        let mut server = ServerProcess {
            guard,
            signals,
            output,
            id: id.trim().parse().expect("a number"),
            address: ([0; 4], 0).into(),
        };
        server.address = address.unwrap_or_else(|| panic!("a server did not become ready: {ready:?}"));
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// SIGKILL, and waits until the process is gone.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// SIGTERM; the process must end in time.
    pub(crate) fn terminate(mut self) {
        self.signal("TERM");
        let began = Instant::now();
        while !self.has_ended() {
            assert!(
                began.elapsed() < TERMINATION_MAX,
                "a server still runs {TERMINATION_MAX:?} after SIGTERM"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGSTOP.
    pub(crate) fn freeze(&mut self) {
        self.signal("STOP");
    }

    /// SIGCONT.
    pub(crate) fn thaw(&mut self) {
        self.signal("CONT");
    }

    fn signal(&mut self, name: &str) {
        let signals = self.signals.as_mut().expect("it is there until the end");
        writeln!(signals, "{name}").expect("tell the guard of a server");
    }

    /// Its guard has not looked yet, so the number is still its own.
    pub(crate) fn has_ended(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        state.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.signals.take());
        let _ = self.guard.wait();
        // Kept open until now, so that printing did not fail.
        let _ = &self.output;
    }
}
