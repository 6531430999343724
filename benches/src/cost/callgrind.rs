//! The server under callgrind, driven from outside: counting begins and ends between requests.
//!
//! Invariants
//! - Nothing is counted before the first [`CountedServer::forget`]: start and loading run without instrumentation.
//! - Scripts run in the server: the program that script processes are started from is, under valgrind, valgrind itself.

use super::counts::Counts;
use super::profile::Profile;
use crate::load;
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_mins(2);

/// The server under test.
pub(crate) struct CountedServer {
    child: Child,
    pub(crate) address: SocketAddr,
    profiles: PathBuf,
    /// How many profiles were written.
    written: Cell<u32>,
    /// Whether the server is instrumented already.
    is_counting: Cell<bool>,
    /// Kept open, so that the server can print.
    _output: BufReader<ChildStdout>,
}

impl CountedServer {
    /// Starts the server on a folder that has its data, without counting anything yet.
    pub(crate) fn start(program: &Path, data: &Path, profiles: &Path) -> anyhow::Result<CountedServer> {
        let mut command = Command::new("valgrind");
        command.args([
            "--tool=callgrind",
            "--instr-atstart=no",
            "--collect-systime=usec",
            "--dump-instr=yes",
        ]);
        // Positions without compression can be read line by line. Threads take turns in order, not by chance.
        command.args(["--compress-pos=no", "--fair-sched=yes", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}/profile.%p", profiles.display()));
        command.arg(program).args(["serve", "--listen", "127.0.0.1:0", "--reserve-mb", "0"]);
        // Everything is slow here, so slow requests are no news.
        command.args(["--log", "error", "--log-slow-ms", "0"]);
        command.args(["--script-isolation", "thread", "--data"]).arg(data);
        // One thread for requests: which of several takes a request is chance, and moving it costs instructions.
        command.env("TOKIO_WORKER_THREADS", "1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("start valgrind (Debian has it in the package valgrind)")?;
        let mut output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok());
        let address = address.with_context(|| format!("the server did not start: {line}"))?;
        let server = CountedServer {
            child,
            address,
            profiles: profiles.to_owned(),
            written: Cell::new(0),
            is_counting: Cell::new(false),
            _output: output,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < START_MAX {
            let request = b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
            if load::once(self.address, request).is_ok_and(|answer| load::status_of(&answer) == 200) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        anyhow::bail!("the server was not ready after {START_MAX:?}")
    }

    /// Begins to count from zero.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        if !self.is_counting.replace(true) {
            self.command(&["instrumentation", "on"])?;
        }
        self.command(&["zero"])
    }

    /// What was counted since [`CountedServer::forget`].
    pub(crate) fn counts(&self, name: &str) -> anyhow::Result<Counts> {
        self.command(&["dump", name])?;
        self.written.set(self.written.get() + 1);
        let path = self.profiles.join(format!("profile.{}.{}", self.child.id(), self.written.get()));
        Ok(Profile::read(&path)?.counts())
    }

    /// Has valgrind do something.
    fn command(&self, words: &[&str]) -> anyhow::Result<()> {
        let process = format!("--pid={}", self.child.id());
        let output = Command::new("vgdb").arg(process).args(words).output().context("run vgdb")?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "vgdb {}: {said}", words.join(" "));
        Ok(())
    }

    /// SIGTERM, and waits for the end.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for CountedServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
