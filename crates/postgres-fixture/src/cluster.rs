//! A running PostgreSQL, and what can be done to it.
//!
//! In: an installation, settings. Out: an address; statements by `psql`; processes that can be stopped, killed and frozen.
//! Invariants
//! - The port stays the same over stops and starts.
//! - After `kill` and `stop` no process of it is left; after `freeze` none of them runs.
//! - Settings stand in a file, not in the command, so that `ALTER SYSTEM` can change each of them.
//!
//! Not here: standbys (`replication`).

use crate::guard::Guard;
use crate::installation::{Installation, run};
use crate::template::{SETTINGS_FILE, fill, folder_for};
use crate::{Error, While as _, ports, processes, readiness};
use rustix::process::{Pid, Signal};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take until a cluster takes connections; longer after a crash, whose log it has to read.
const START_MAX: Duration = Duration::from_mins(5);
const STOP_MAX: Duration = Duration::from_mins(5);
/// Between two looks at something that is waited for.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
/// How often a port may turn out to be taken.
const PORTS_MAX: u32 = 5;
const LOG_TAIL_LINES: usize = 30;

/// How a cluster is to be. The default is quick: it does not sync, which only a crash of the machine could tell.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    durable: bool,
    others: Vec<(String, String)>,
    within: Option<PathBuf>,
}

impl Settings {
    /// Syncs to the disk as it would in production: for benches, and for tests about crashes.
    #[must_use]
    pub fn durable(mut self) -> Settings {
        self.durable = true;
        self
    }

    /// A setting of `postgresql.conf`; the last one of a name counts.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Settings {
        self.others.push((name.into(), value.into()));
        self
    }

    /// Keeps the data in a new folder within this one, instead of the system's for temporary files; a small file system for
    /// example. For root, this folder is opened to be passed through by others.
    #[must_use]
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Settings {
        self.within = Some(folder.into());
        self
    }

    /// As a file. What the caller asks for stands last and so wins.
    fn file(&self, port: u16) -> String {
        let switch = |on: bool| if on { "on" } else { "off" };
        let port = port.to_string();
        let ours = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &*port),
            ("unix_socket_directories", ""),
            ("max_connections", "800"),
            ("fsync", switch(self.durable)),
            ("full_page_writes", switch(self.durable)),
            ("hot_standby", "on"),
            ("wal_level", "replica"),
            ("max_wal_senders", "10"),
            // A standby that is behind finds what it lacks.
            ("wal_keep_size", "256MB"),
        ];
        let others = self.others.iter().map(|(name, value)| (&**name, &**value));
        let lines = ours.into_iter().chain(others);
        let lines = lines.map(|(name, value)| format!("{name} = '{}'", value.replace('\'', "''")));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}

/// A PostgreSQL of our own. Dropped, it ends at once, and its folders are removed.
pub struct Cluster {
    installation: Installation,
    settings: Settings,
    name: String,
    port: u16,
    /// Ends before the folders are removed.
    state: Mutex<Running>,
    data: TempDir,
    folder: TempDir,
}

struct Running {
    guard: Guard,
    postmaster: Option<Pid>,
    is_frozen: bool,
}

impl Cluster {
    /// Makes a cluster and starts it; it takes connections when this returns.
    pub fn start(installation: &Installation, settings: Settings) -> Result<Cluster, Error> {
        let mut cluster = Cluster::prepare(installation, settings, "primary")?;
        fill(installation, cluster.data.path())?;
        cluster.launch_somewhere()?;
        Ok(cluster)
    }

    /// Its folders and guard; there is no data yet, and no port.
    pub(crate) fn prepare(
        installation: &Installation,
        settings: Settings,
        name: &str,
    ) -> Result<Cluster, Error> {
        let folder = folder_for(installation, &std::env::temp_dir())?;
        let data = match &settings.within {
            None => folder_for(installation, &std::env::temp_dir())?,
            Some(within) => {
                if installation.lent.is_some() {
                    open_for_others(within)?;
                }
                folder_for(installation, within)?
            }
        };
        let guard = Guard::start(installation, data.path(), folder.path())?;
        Ok(Cluster {
            installation: installation.clone(),
            settings,
            name: name.to_owned(),
            port: 0,
            state: Mutex::new(Running { guard, postmaster: None, is_frozen: false }),
            data,
            folder,
        })
    }

    /// Starts it on a free port, on another one if that was taken in the meantime.
    pub(crate) fn launch_somewhere(&mut self) -> Result<(), Error> {
        for attempt in 1.. {
            self.port = ports::free_port()?;
            let file = self.data.path().join(SETTINGS_FILE);
            std::fs::write(file, self.settings.file(self.port)).while_doing("write the settings")?;
            match self.start_again() {
                Err(_) if attempt < PORTS_MAX && self.log_tail().contains("Address already in use") => {
                    std::fs::write(self.log(), "").while_doing("empty the log")?;
                }
                done => return done,
            }
        }
        Ok(())
    }

    /// Where clients connect to: its only user, its only database, no password.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The loopback port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `primary`, or what a standby calls itself to its primary.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the data.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The processes that it consists of, the postmaster first; none while it is stopped.
    pub fn processes(&self) -> Vec<u32> {
        let Some(postmaster) = self.state().postmaster else { return Vec::new() };
        let family = std::iter::once(postmaster).chain(processes::descendants(postmaster));
        family.map(|process| process.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// Runs statements, in one transaction unless they say otherwise. Out: rows as lines, columns parted by `|`.
    pub fn psql(&self, sql: &str) -> Result<String, Error> {
        let mut psql = self.installation.program("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(), "-c", sql]);
        run(&mut psql)
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    /// Ends it in order: connections are closed, everything is written.
    pub fn stop(&self) -> Result<(), Error> {
        let mut state = self.state();
        let Some(postmaster) = state.postmaster else { return Ok(()) };
        state.thaw();
        processes::signal(postmaster, Signal::INT);
        if !processes::wait_until_ended(&[postmaster], STOP_MAX) {
            return Err(self.failure("PostgreSQL did not stop in time"));
        }
        state.ended()
    }

    /// Starts it after `stop` or `kill`, on the same port; it takes connections when this returns.
    pub fn start_again(&self) -> Result<(), Error> {
        let mut state = self.state();
        if state.postmaster.is_some_and(processes::is_running) {
            return Err(Error::new("PostgreSQL is running, and cannot be started again"));
        }
        if state.postmaster.is_some() {
            state.ended()?;
        }
        // Left by a kill. The number in it may be another process's by now, which PostgreSQL would take for its own.
        let _ = std::fs::remove_file(self.data.path().join("postmaster.pid"));
        let postmaster = state.guard.start_postmaster()?;
        state.postmaster = Some(postmaster);
        let began = Instant::now();
        while !readiness::is_ready(self.data.path(), postmaster, self.port) {
            if !processes::is_running(postmaster) {
                state.ended()?;
                return Err(self.failure("PostgreSQL ended while it started"));
            }
            if began.elapsed() > START_MAX {
                return Err(self.failure("PostgreSQL did not take connections in time"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Kills all its processes at once, as a crash would.
    pub fn kill(&self) -> Result<(), Error> {
        let mut state = self.state();
        let Some(postmaster) = state.postmaster else { return Ok(()) };
        if !processes::kill_family(postmaster) {
            return Err(self.failure("processes of PostgreSQL are still there after they were killed"));
        }
        state.ended()
    }

    /// Stops all its processes where they are: connections stay, nothing answers, new ones are not served.
    pub fn freeze(&self) -> Result<(), Error> {
        let mut state = self.state();
        let Some(postmaster) = state.postmaster else { return Ok(()) };
        state.is_frozen = true;
        if !processes::stop_family(postmaster) {
            return Err(self.failure("processes of PostgreSQL still run after they were stopped"));
        }
        Ok(())
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.state().thaw();
    }

    pub(crate) fn installation(&self) -> &Installation {
        &self.installation
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// An error with the end of the log.
    pub(crate) fn failure(&self, what: &str) -> Error {
        Error::new(format!("{what}; the end of its log:\n{}", self.log_tail()))
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn state(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    /// The same, but with the data in the system's folder for temporary files.
    pub(crate) fn elsewhere(&self) -> Settings {
        Settings { within: None, ..self.clone() }
    }
}

impl Running {
    fn thaw(&mut self) {
        let Some(postmaster) = self.postmaster.filter(|_| self.is_frozen) else { return };
        for process in processes::descendants(postmaster) {
            processes::signal(process, Signal::CONT);
        }
        processes::signal(postmaster, Signal::CONT);
        self.is_frozen = false;
    }

    /// Takes note that the postmaster has ended.
    fn ended(&mut self) -> Result<(), Error> {
        self.postmaster = None;
        self.is_frozen = false;
        self.guard.reap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Frozen processes would not hear that they shall end. The rest is the guard's.
        self.state().thaw();
    }
}

/// Lets others pass through a folder, but not look into it.
fn open_for_others(folder: &Path) -> Result<(), Error> {
    let doing = format!("open {} for PostgreSQL", folder.display());
    let mode = std::fs::metadata(folder).while_doing(&doing)?.permissions().mode();
    std::fs::set_permissions(folder, Permissions::from_mode(mode | 0o011)).while_doing(&doing)
}
