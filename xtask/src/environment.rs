//! The environment of the programs that our tools start: what a machine has set for other work does not reach the tests.
//!
//! In: the environment of `cargo xtask`. Out: commands that run in the repository's root without variables that would change what
//! compilers, servers and SDKs do. What a machine needs for downloads (proxies, certificates, registries) stays.

use crate::sources;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings of the tests themselves.
const KEPT: &[&str] = &[
    "ASTRARIUM_CLUSTER_SEED",
    "ASTRARIUM_CRASH_SEED",
    "ASTRARIUM_FUZZ_SEED",
    "ASTRARIUM_HISTORY_SEED",
    "ASTRARIUM_LONG",
    "ASTRARIUM_POSTGRES_BIN",
    "ASTRARIUM_RUST_SDK_TARGET",
    "ASTRARIUM_SHELL",
    "ASTRARIUM_TEST_ENGINES",
    "ASTRARIUM_TEST_SCHEMES",
    "ASTRARIUM_TEST_SLOWNESS",
    "ASTRARIUM_TEST_STORE",
];

/// Variables that are removed by the beginning of their names: settings of servers, of SDKs, and of PostgreSQL's clients.
const REMOVED_PREFIXES: &[&str] =
    &["ASTRARIUM_", "AZURE_", "COSMOS_", "PG", "PYTEST_", "OTEL_", "CARGO_PROFILE_RELEASE_"];

/// Variables that are removed by name: flags of compilers, places where interpreters look for packages, what makes our own
/// tests write files instead of comparing them, and tastes of a person at a terminal.
const REMOVED: &[&str] = &[
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_RUSTFLAGS",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "CFLAGS",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "VIRTUAL_ENV",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "GOFLAGS",
    "GOWORK",
    "GODEBUG",
    "CLASSPATH",
    "MAVEN_ARGS",
    "UPDATE_CASES",
    "UPDATE_DOCS",
    "MAKE_FORMAT_FOLDER",
    "BLOG_POSTS",
    "PROPTEST_CASES",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    "NO_COLOR",
    "TZ",
];

/// Servers of the tests are never behind a proxy.
const LOCAL: &str = "127.0.0.1,localhost,::1";

/// Whether the long forms of tests were asked for, as `--long` or by the variable that the tests themselves read.
pub(crate) fn is_long() -> bool {
    LONG.load(Ordering::Relaxed)
        || std::env::var("ASTRARIUM_LONG").is_ok_and(|value| value != "0" && !value.is_empty())
}

/// Asks for the long forms.
pub(crate) fn make_long() {
    LONG.store(true, Ordering::Relaxed);
}

static LONG: AtomicBool = AtomicBool::new(false);

/// A program to start in the repository's root. It reads nothing from the terminal.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(is_removed) {
            command.env_remove(&variable);
        }
    }
    if is_long() {
        command.env("ASTRARIUM_LONG", "1");
    }
    for variable in ["NO_PROXY", "no_proxy"] {
        let before = std::env::var(variable).unwrap_or_default();
        let all = if before.is_empty() { LOCAL.to_owned() } else { format!("{before},{LOCAL}") };
        command.env(variable, all);
    }
    // Everything is built once here, and whoever repeats a test has their own settings: records for the next build and line numbers for
    // debuggers would only cost time. Panics have their lines anyway.
    for (variable, value) in
        [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_PROFILE_TEST_DEBUG", "0")]
    {
        command.env(variable, value);
    }
    // A package of the user's own must not take the place of one that a suite has asked for.
    command.env("PYTHONNOUSERSITE", "1").env("GOWORK", "off").env("CARGO_TERM_COLOR", "never");
    command.current_dir(sources::root()).stdin(Stdio::null());
    command
}

fn is_removed(variable: &str) -> bool {
    !KEPT.contains(&variable)
        && (REMOVED.contains(&variable) || REMOVED_PREFIXES.iter().any(|prefix| variable.starts_with(prefix)))
}

/// The folder of what is built.
pub(crate) fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    folder.map_or_else(|| sources::root().join("target"), |folder| sources::root().join(folder))
}

#[cfg(test)]
mod tests {
    use super::is_removed;

    #[test]
    fn settings_of_other_work_are_removed_and_those_of_the_tests_and_of_downloads_stay() {
        for variable in
            ["ASTRARIUM_KEY", "ASTRARIUM_BIN", "AZURE_TENANT_ID", "PGHOST", "RUSTFLAGS", "NODE_PATH"]
        {
            assert!(is_removed(variable), "{variable}");
        }
        for variable in
            ["ASTRARIUM_TEST_STORE", "ASTRARIUM_LONG", "HTTPS_PROXY", "PIP_INDEX_URL", "PATH", "HOME"]
        {
            assert!(!is_removed(variable), "{variable}");
        }
    }
}
