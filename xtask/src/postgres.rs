//! Steps of the tests that need PostgreSQL: it is installed where that can be done without asking, and they are skipped, with the reason,
//! where it is missing. Tests start it themselves, in temporary folders.

use crate::sources;
use crate::steps::{Outcome, command, has};
use std::path::Path;
use std::process::Command;

/// Where Debian puts the server's programs, by version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// Test programs of `testkit` whose tests run on whatever engine is asked for.
const CASES: [&str; 10] = [
    "rest",
    "sql",
    "history",
    "guarantees",
    "concurrency",
    "change_feed",
    "scripts",
    "paging",
    "index_hard_cases",
    "sql_resume",
];

/// Tests of clients that kill the one server that they have started, read a counter of it, expect it
/// to name itself alone, or start several themselves.
const ONE_SERVER: [&str; 6] = [
    "--deselect=test_account.py::test_the_account_names_the_endpoint_that_the_client_used",
    "--ignore=test_servers.py",
    "--ignore=test_durability.py",
    "--deselect=test_throughput.py::test_requests_beyond_the_throughput_are_refused_and_repeated",
    "--deselect=test_queries.py::test_a_query_goes_on_after_the_server_was_killed",
    "--deselect=test_change_feed.py::test_a_continuation_outlives_a_kill",
];

/// Installs Debian's package, if nothing is there and this is somebody who may.
pub(crate) fn install() -> Outcome {
    if is_there() {
        return Outcome::Passed;
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    if !is_root || !has("apt-get", "--version") {
        return Outcome::Skipped("PostgreSQL is not installed (apt-get install postgresql)".to_owned());
    }
    let quietly = ["env", "DEBIAN_FRONTEND=noninteractive"];
    let update = [&quietly[1..], &["apt-get", "update", "-qq"]].concat();
    // Debian's package would start a server of its own; tests do not need it, and it does no harm.
    let install =
        [&quietly[1..], &["apt-get", "install", "-y", "-qq", "--no-install-recommends", "postgresql"]]
            .concat();
    for arguments in [update, install] {
        if let Outcome::Failed(why) = command(quietly[0], &arguments) {
            return Outcome::Skipped(format!("PostgreSQL could not be installed: {why}"));
        }
    }
    Outcome::Passed
}

/// What every engine must pass, on PostgreSQL.
pub(crate) fn cases() -> Outcome {
    if !is_there() {
        return missing();
    }
    let mut arguments =
        vec!["ASTRARIUM_TEST_ENGINES=postgres", "cargo", "test", "--package=astrarium-testkit"];
    let tests: Vec<String> = CASES.iter().map(|test| format!("--test={test}")).collect();
    arguments.extend(tests.iter().map(String::as_str));
    command("env", &arguments)
}

/// Suites of clients against three servers, which take the place of one (`testkit/examples/several.rs`).
pub(crate) fn several() -> Outcome {
    if !is_there() {
        return missing();
    }
    let built = command("cargo", &["build", "--quiet", "--package=astrarium-testkit", "--example=several"]);
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    let target = sources::root().join("target");
    let server = format!("ASTRARIUM_SERVER={}", target.join("release/astrarium").display());
    let stand_in = format!("ASTRARIUM_BIN={}", target.join("debug/examples/several").display());
    // Each server makes a certificate of its own, so clients that check it use plain HTTP.
    let python = ["-q", "-k", "not https"];
    let all = [&[server.as_str(), &stand_in, "bash", "tests/sdk/python/run"], &python[..], &ONE_SERVER[..]]
        .concat();
    command("env", &all)
}

fn missing() -> Outcome {
    Outcome::Skipped("PostgreSQL is not installed".to_owned())
}

fn is_there() -> bool {
    has("initdb", "--version")
        || std::env::var_os("ASTRARIUM_POSTGRES_BIN").is_some()
        || Path::new(DEBIAN_FOLDER).read_dir().is_ok_and(|mut versions| versions.next().is_some())
}
