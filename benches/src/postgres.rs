//! PostgreSQL as a yardstick: its own binaries on a fresh folder and a free port, stopped and removed when dropped.
//!
//! In: the folder of its binaries (`PG_BIN`, otherwise the newest below `/usr/lib/postgresql`). Out: a running server,
//! its clients, the CPU time of all its processes.
//! Invariants
//! - Writes are durable (`fsync`, `synchronous_commit`), 512 MB of shared buffers, everything else as PostgreSQL comes:
//!   parallel query, too. It is reached over TCP as our server is.
//! - PostgreSQL refuses to run as root, so root lends it the user `postgres`, or `nobody`.
//!
//! Not here: the protocol (`client`), many connections at once (`statements`), what is asked (`queries`).

pub(crate) mod client;
pub(crate) mod statements;

use crate::process::{self, Usage};
use anyhow::Context as _;
use client::Client;
use rustix::process::getuid;
use serde_json::Value;
use std::fs::{File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name of the database's owner; connections need no password.
const USER: &str = "bench";
const START_MAX: Duration = Duration::from_mins(1);
const SETTINGS: [&str; 5] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=512MB",
    "fsync=on",
    "synchronous_commit=on",
];

/// A running PostgreSQL.
pub(crate) struct Postgres {
    child: Child,
    address: SocketAddr,
    guard: Child,
    /// Removed after the server has ended.
    _folder: TempDir,
}

/// Waits until its input ends, as it does with this program however that ends, then ends PostgreSQL and removes its
/// folder. Arguments: process, folder.
const GUARD: &str = r#"trap "" INT TERM HUP
read -r _
kill -QUIT "$1" 2> /dev/null
while kill -0 "$1" 2> /dev/null; do sleep 0.1; done
rm -rf "$2""#;

impl Postgres {
    /// Makes a database cluster and starts it; an error says why there is none.
    pub(crate) fn start() -> anyhow::Result<Postgres> {
        let programs = programs()?;
        let lent = if getuid().is_root() { Some(lent_user()?) } else { None };
        let folder = tempfile::tempdir()?;
        // Another user must be able to pass through to its own folder.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let home = folder.path().join("postgres");
        std::fs::create_dir(&home)?;
        if let Some((user, group)) = lent {
            chown(&home, Some(user), Some(group))?;
        }
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command.current_dir(&home).stdin(Stdio::null()).stdout(Stdio::null());
            if let Some((user, group)) = lent {
                command.uid(user).gid(group);
            }
            command
        };
        let made = command("initdb")
            .args([
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--username",
                USER,
                "--pgdata",
            ])
            .arg(home.join("data"))
            .output()
            .context("run initdb")?;
        anyhow::ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr).trim());
        let log = folder.path().join("log");
        let port = free_port()?;
        let mut server = command("postgres");
        server.arg("-D").arg(home.join("data")).args(["-p", &port.to_string()]);
        server.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        let child = server.stderr(File::create(&log)?).spawn().context("start postgres")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &child.id().to_string()])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("start a guard for postgres")?;
        let mut postgres = Postgres { child, address, guard, _folder: folder };
        postgres.wait_until_ready(&log)?;
        Ok(postgres)
    }

    fn wait_until_ready(&mut self, log: &Path) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < START_MAX && self.child.try_wait()?.is_none() {
            if self.connect().is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let log = std::fs::read_to_string(log).unwrap_or_default();
        anyhow::bail!("postgres did not start: {}", log.trim())
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(self.address, USER)
    }

    /// Its version and what was set.
    pub(crate) fn description(&self) -> anyhow::Result<String> {
        let mut client = self.connect()?;
        let statement = client.prepare("SELECT current_setting('server_version') AS value")?;
        let rows = client.query(&statement, &[])?;
        let version = rows.first().and_then(Value::as_str).unwrap_or("of unknown version");
        Ok(format!("{version} ({})", SETTINGS.join(", ")))
    }

    /// CPU time of all its processes, those included that have ended (parallel workers end with their query).
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        process::family_usage(self.child.id())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The guard ends it at once, without a checkpoint: the folder goes anyway. It may have ended already.
        drop(self.guard.stdin.take());
        let _ = self.child.wait();
        let _ = self.guard.wait();
    }
}

/// The folder of the binaries.
fn programs() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("PG_BIN") {
        return Ok(folder.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let numbered = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let newest = numbered.filter(|(_, folder)| folder.join("postgres").exists()).max();
    let (_, folder) =
        newest.context("no binaries in /usr/lib/postgresql/*/bin, and PG_BIN names no other folder")?;
    Ok(folder)
}

/// User and group to run as instead of root.
fn lent_user() -> anyhow::Result<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").context("look for a user other than root")?;
    let find = |name: &str| {
        let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields = fields.into_iter().find(|fields| fields.first() == Some(&name))?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody")).context("there is neither a user postgres nor nobody")
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
