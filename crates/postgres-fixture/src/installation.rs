//! Where PostgreSQL's programs are, and as whom they run.
//!
//! In: `ASTRARIUM_POSTGRES_BIN`, `PATH`, Debian's folders. Out: commands that are ready to be started, or why there are none.
//! Invariants
//! - All programs come from one folder, so that they are of one version.
//! - A command knows nothing of the caller's `PG*` variables, and speaks English whatever the locale.

use crate::{Error, While as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::getuid;
use std::os::unix::process::CommandExt as _;

/// What a cluster needs.
const PROGRAMS: [&str; 4] = ["initdb", "postgres", "psql", "pg_basebackup"];
/// Names the folder of the programs, if it is none of the usual ones.
const VARIABLE: &str = "ASTRARIUM_POSTGRES_BIN";
/// Debian has a folder for each version in here.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The programs of a PostgreSQL.
#[derive(Clone, Debug)]
pub struct Installation {
    programs: PathBuf,
    /// User and group to run as; none if this program's own will do.
    pub(crate) lent: Option<(u32, u32)>,
}

/// Why there is no PostgreSQL to run; fit to be printed after "skipped: ".
#[derive(Debug)]
pub struct Missing {
    reason: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Missing {}

impl Installation {
    /// The first of: the folder in `ASTRARIUM_POSTGRES_BIN`, that of `initdb` in `PATH`, the newest of Debian's.
    pub fn find() -> Result<Installation, Missing> {
        let missing = |reason: String| Missing { reason };
        let programs = match std::env::var_os(VARIABLE) {
            Some(folder) => complete(Path::new(&folder)).map_err(|lacking| {
                missing(format!("{VARIABLE} is {}, where there is no {lacking}", folder.display()))
            })?,
            None => candidates().iter().find_map(|folder| complete(folder).ok()).ok_or_else(|| {
                let wanted = PROGRAMS.join(", ");
                missing(format!(
                    "no PostgreSQL: {wanted} are neither in PATH nor in {DEBIAN}/*/bin; install it or set {VARIABLE}"
                ))
            })?,
        };
        let lent = if getuid().is_root() {
            let lent = lent_user().ok_or_else(|| {
                missing(
                    "PostgreSQL does not run as root, and there is neither a user postgres nor nobody".into(),
                )
            })?;
            Some(lent)
        } else {
            None
        };
        Ok(Installation { programs, lent })
    }

    /// The folder of the programs.
    pub fn folder(&self) -> &Path {
        &self.programs
    }

    /// What `postgres --version` says.
    pub fn version(&self) -> Result<String, Error> {
        let mut command = self.command(&self.programs.join("postgres"));
        run(command.arg("--version"))
    }

    /// One of its programs, to be run as the user that PostgreSQL runs as.
    pub(crate) fn program(&self, name: &str) -> Command {
        self.command(&self.programs.join(name))
    }

    /// Any program, as that user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("PGCLIENTENCODING", "UTF8").env("PGCONNECT_TIMEOUT", "10");
        command.current_dir("/").stdin(Stdio::null());
        if let Some((user, group)) = self.lent {
            command.uid(user).gid(group);
        }
        command
    }
}

/// Runs a command to its end. Out: what it printed, without the last line's end.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().while_doing(&format!("run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("{name} failed ({}): {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

/// The folder itself if it has all programs; otherwise one that it lacks.
fn complete(folder: &Path) -> Result<PathBuf, &'static str> {
    match PROGRAMS.iter().find(|name| !folder.join(name).is_file()) {
        Some(lacking) => Err(lacking),
        None => Ok(folder.to_owned()),
    }
}

/// Folders that may have the programs. A link in `PATH` leads to the folder where the others are.
fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let linked = std::env::split_paths(&path).filter_map(|folder| {
        let program = std::fs::canonicalize(folder.join("initdb")).ok()?;
        program.parent().map(Path::to_owned)
    });
    let mut candidates: Vec<_> = linked.collect();
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut numbered: Vec<_> = versions
        .filter_map(|version| {
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .collect();
    numbered.sort();
    candidates.extend(numbered.into_iter().rev().map(|(_, folder)| folder));
    candidates
}

/// User and group to run as instead of root.
fn lent_user() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let find = |name: &str| {
        let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields = lines.find(|fields| fields.first() == Some(&name))?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody"))
}
