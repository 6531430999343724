//! The program under test as a process: started, killed, terminated, asked to verify.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_astrarium");

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that printing does not fail.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts on a free port and waits for the line that says it is ready.
    pub(crate) fn start(folder: &Path) -> Server {
        let mut child = spawn(folder);
        let mut output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("read the server's first line");
        let address = line.split_once("AccountEndpoint=http://").and_then(|(_, rest)| rest.split_once('/'));
        let Some((address, _)) = address else {
            panic!("the server did not become ready: {line:?}, {:?}", child.wait());
        };
        let address = address.parse().expect("an address and port");
        Server { child, address, _output: output }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// SIGKILL, and waits until the process is gone.
    pub(crate) fn kill(mut self) {
        end(&mut self.child);
    }

    /// SIGTERM; the process must be gone in time.
    pub(crate) fn terminate(mut self, time_max: Duration) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("send SIGTERM");
        let deadline = Instant::now() + time_max;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("look for the process") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server still ran {time_max:?} after SIGTERM");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Starts a server and kills it after a time, ready or not.
pub(crate) fn kill_while_starting(folder: &Path, pause: Duration) {
    let mut child = spawn(folder);
    std::thread::sleep(pause);
    end(&mut child);
}

/// The offline check must find nothing wrong.
pub(crate) fn verify(folder: &Path) {
    let output = Command::new(PROGRAM).arg("verify").arg("--data").arg(folder).output().expect("run verify");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("no problems found"), "verify:\n{text}{errors}");
}

fn spawn(folder: &Path) -> Child {
    // Tests share the disk with everything else: a disk that is nearly full is not what is tested here.
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--reserve-mb", "0", "--previous-images", "--data"];
    Command::new(PROGRAM)
        .args(arguments)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the server")
}

/// Kills a process, if it still runs, and collects it.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
