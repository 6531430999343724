//! Processes that are measured: started, watched through `/proc`, ended.

use crate::load;
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The unit of CPU times in `/proc`: fixed for programs, whatever the kernel's own is.
const TICKS_PER_SECOND: f64 = 100.0;
/// A server must be ready within this time.
const START_MAX: Duration = Duration::from_mins(1);
/// A process is quiet when it uses less CPU than this in a [`QUIET_STEP`].
const QUIET_SECONDS: f64 = 0.015;
const QUIET_STEP: Duration = Duration::from_millis(300);
const QUIET_STEPS_MAX: usize = 30;

/// CPU time of a process, all its threads, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage(pub(crate) f64);

impl Usage {
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        Usage(self.0 - earlier.0)
    }

    pub(crate) fn micros_per(self, count: usize) -> f64 {
        self.0 * 1e6 / count as f64
    }
}

/// CPU time of all programs and of the kernel since the machine started.
pub(crate) fn machine_usage() -> anyhow::Result<Usage> {
    let text = std::fs::read_to_string("/proc/stat").context("read the machine's CPU time")?;
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Result<Vec<f64>, _> = fields.map(str::parse::<f64>).collect();
    // The fourth is idle time, the fifth waiting for disks, the last two are part of the first two.
    let busy = ticks?.into_iter().take(8).enumerate().filter(|(place, _)| !matches!(place, 3 | 4));
    Ok(Usage(busy.map(|(_, ticks)| ticks).sum::<f64>() / TICKS_PER_SECOND))
}

/// CPU time of this process.
pub(crate) fn own_usage() -> anyhow::Result<Usage> {
    usage_of("self")
}

/// CPU time of the children of this process that have ended and were waited for.
pub(crate) fn ended_children_usage() -> anyhow::Result<Usage> {
    let fields = stat_fields("self")?;
    Ok(Usage((ticks_of(&fields, 4)? - ticks_of(&fields, 2)?) / TICKS_PER_SECOND))
}

/// CPU time of a process, of its children, and of those children that have ended and were waited for.
pub(crate) fn family_usage(parent: u32) -> anyhow::Result<Usage> {
    let own = stat_fields(&parent.to_string())?;
    let mut ticks = ticks_of(&own, 4)?;
    for process in std::fs::read_dir("/proc")?.flatten() {
        let name = process.file_name();
        let Some(name) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        // A process may end while the list is read.
        let Ok(fields) = stat_fields(name) else { continue };
        if fields.get(1).is_some_and(|field| *field == parent.to_string()) {
            ticks += ticks_of(&fields, 4)?;
        }
    }
    Ok(Usage(ticks / TICKS_PER_SECOND))
}

fn usage_of(process: &str) -> anyhow::Result<Usage> {
    Ok(Usage(ticks_of(&stat_fields(process)?, 2)? / TICKS_PER_SECOND))
}

/// The fields of a process's state after its name, which stands in parentheses and may hold anything.
fn stat_fields(process: &str) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).context("read CPU time")?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

/// User and system time; with four fields those of ended children, too.
fn ticks_of(fields: &[String], count: usize) -> anyhow::Result<f64> {
    let ticks = fields.iter().skip(11).take(count).map(|field| field.parse::<f64>());
    ticks.sum::<Result<f64, _>>().context("read CPU time")
}

/// A server in a process of its own; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the first answer that says it is ready.
    pub(crate) ready_after: Duration,
    /// Kept open, so that the server can print.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the server under test on a folder.
    pub(crate) fn start(program: &Path, folder: &Path) -> anyhow::Result<Server> {
        Server::start_with(program, folder, &[])
    }

    /// Starts the server under test on a folder, with further settings.
    pub(crate) fn start_with(program: &Path, folder: &Path, settings: &[&str]) -> anyhow::Result<Server> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--reserve-mb", "0", "--data"]).arg(folder);
        command.args(settings);
        Server::spawn(command)
    }

    /// Starts the server under test on a store, which other servers may use, too.
    pub(crate) fn start_on_store(program: &Path, url: &str) -> anyhow::Result<Server> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", url]);
        // Slow requests are expected here, and would hide the figures.
        command.env("ASTRARIUM_LOG", "error");
        Server::spawn(command)
    }

    /// Starts a bare HTTP server with an answer.
    pub(crate) fn start_bare(answer: &Path, headers_max: usize) -> anyhow::Result<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare-http").arg(answer).arg(headers_max.to_string());
        Server::spawn(command)
    }

    /// The first line names an address as part of a URL.
    fn spawn(mut command: Command) -> anyhow::Result<Server> {
        let began = Instant::now();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("start a server")?;
        let mut output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(['/', ';', '\n']).next());
        let address = address.and_then(|address| address.parse().ok());
        let address = address.with_context(|| format!("a server did not start: {line}"))?;
        let mut server = Server { child, address, ready_after: Duration::ZERO, _output: output };
        server.wait_until_ready(began)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, began: Instant) -> anyhow::Result<()> {
        let request = b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
        while began.elapsed() < START_MAX {
            if load::once(self.address, request).is_ok_and(|answer| load::status_of(&answer) == 200) {
                self.ready_after = began.elapsed();
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        anyhow::bail!("a server was not ready after {START_MAX:?}")
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage_of(&self.child.id().to_string())
    }

    /// Waits for work behind the last answer (flushes, compaction), which belongs to it, and gives the CPU time then.
    pub(crate) fn usage_when_quiet(&self) -> anyhow::Result<Usage> {
        usage_when_quiet(|| self.usage())
    }

    /// Bytes that the process has had written to disk since it began.
    pub(crate) fn written_bytes(&self) -> anyhow::Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:"));
        line.and_then(|line| line.trim().parse().ok()).context("read what was written")
    }

    /// Resident memory in megabytes.
    pub(crate) fn resident_megabytes(&self) -> anyhow::Result<f64> {
        self.megabytes("VmRSS:")
    }

    /// The most resident memory, in megabytes, since [`Server::forget_peak`].
    pub(crate) fn peak_megabytes(&self) -> anyhow::Result<f64> {
        self.megabytes("VmHWM:")
    }

    /// Has the kernel count the peak of resident memory anew.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
            .context("forget the memory's peak")
    }

    fn megabytes(&self, name: &str) -> anyhow::Result<f64> {
        megabytes_of(self.child.id(), name)
    }

    /// A counter of `/metrics`, by the beginning of its line.
    pub(crate) fn metric(&self, name: &str) -> anyhow::Result<f64> {
        metric(self.address, name)
    }

    /// SIGTERM, and waits for a good end.
    pub(crate) fn terminate(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "a server ended with {status}");
        Ok(())
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most resident memory that a process has had, in megabytes.
pub(crate) fn peak_megabytes_of(process: u32) -> anyhow::Result<f64> {
    megabytes_of(process, "VmHWM:")
}

fn megabytes_of(process: u32, name: &str) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("read resident memory")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}

/// A counter of a server's `/metrics`, by the beginning of its line.
pub(crate) fn metric(address: SocketAddr, name: &str) -> anyhow::Result<f64> {
    let answer = load::once(address, b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")?;
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.trim().parse().ok()).with_context(|| format!("there is no metric {name}"))
}

/// CPU time of this process once its background threads have nothing left to do.
pub(crate) fn own_usage_when_quiet() -> anyhow::Result<Usage> {
    usage_when_quiet(own_usage)
}

/// The CPU time of something once it uses next to none.
pub(crate) fn usage_when_quiet(usage: impl Fn() -> anyhow::Result<Usage>) -> anyhow::Result<Usage> {
    let mut last = usage()?;
    for _ in 0..QUIET_STEPS_MAX {
        std::thread::sleep(QUIET_STEP);
        let now = usage()?;
        if now.since(last).0 < QUIET_SECONDS {
            return Ok(now);
        }
        last = now;
    }
    Ok(last)
}
