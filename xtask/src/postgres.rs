//! Steps of the tests that need PostgreSQL: it is installed where that can be done without asking, and they are skipped, with the reason,
//! where it is missing. Tests start it themselves, in temporary folders.

use crate::sources;
use crate::steps::{Outcome, at_once, command, has};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

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

/// A suite of a client that runs against three servers. What is left out needs one server by nature: the test kills the server that it has
/// started, reads a counter of it, expects it to name itself alone, or starts several itself.
struct Suite {
    language: &'static str,
    /// How the suite is told to leave tests out; `NAME=VALUE` is a variable.
    without: &'static [&'static str],
    /// How it is told to use plain HTTP alone, where every request goes to another server.
    http_only: &'static [&'static str],
}

/// The longest come first, as two run at a time. Go is quick, and so is always run over HTTPS too.
const SUITES: [Suite; 5] = [
    Suite {
        language: "java",
        without: &["-Dtest=!DurabilityTest,!ChangeFeedTest#aContinuationOutlivesAKill"],
        http_only: &["ASTRARIUM_TEST_SCHEMES=http"],
    },
    Suite {
        language: "python",
        without: &[
            "--deselect=test_account.py::test_the_account_names_the_endpoint_that_the_client_used",
            "--ignore=test_servers.py",
            "--ignore=test_durability.py",
            "--deselect=test_throughput.py::test_requests_beyond_the_throughput_are_refused_and_repeated",
            "--deselect=test_queries.py::test_a_query_goes_on_after_the_server_was_killed",
            "--deselect=test_change_feed.py::test_a_continuation_outlives_a_kill",
        ],
        http_only: &["-k", "not https"],
    },
    Suite {
        language: "javascript",
        // Its tests say themselves that they need one, and why.
        without: &["ASTRARIUM_TEST_SERVERS=3"],
        http_only: &["ASTRARIUM_TEST_SCHEMES=http"],
    },
    Suite { language: "rust", without: &["--skip=durability::"], http_only: &["--skip=https"] },
    Suite {
        language: "go",
        without: &["-skip=^(TestKillAndRestart|TestKillUnderWrites|TestChangesAfterAKill)$"],
        http_only: &[],
    },
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

/// What every engine must pass, on PostgreSQL, or on what `ASTRARIUM_TEST_STORE` names: there the contract suite comes first, which otherwise
/// runs with the tests of the engine.
pub(crate) fn cases() -> Outcome {
    if !is_there() {
        return missing();
    }
    if std::env::var_os("ASTRARIUM_TEST_STORE").is_some_and(|url| !url.is_empty()) {
        let contract =
            command("cargo", &["test", "--package=astrarium-kv-postgres", "--test=engine", "contract::"]);
        if !matches!(contract, Outcome::Passed) {
            return contract;
        }
    }
    let mut arguments =
        vec!["ASTRARIUM_TEST_ENGINES=postgres", "cargo", "test", "--package=astrarium-testkit"];
    let tests: Vec<String> = CASES.iter().map(|test| format!("--test={test}")).collect();
    arguments.extend(tests.iter().map(String::as_str));
    command("env", &arguments)
}

/// Suites of clients against three servers, which take the place of one (`testkit/examples/several.rs`). With `ASTRARIUM_LONG=1` all of
/// them run over HTTPS too.
pub(crate) fn several() -> Outcome {
    if !is_there() {
        return missing();
    }
    let built = command("cargo", &["build", "--quiet", "--package=astrarium-testkit", "--example=several"]);
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    let is_long = std::env::var("ASTRARIUM_LONG").is_ok_and(|value| value != "0" && !value.is_empty());
    let failed: Vec<&str> = at_once(&SUITES, |suite| (suite.language, run_suite(suite, is_long)))
        .into_iter()
        .filter_map(|(language, passed)| (!passed).then_some(language))
        .collect();
    if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) }
}

/// Runs a suite, and then prints what it has said; true if it passed, or said why it cannot run here.
fn run_suite(suite: &Suite, is_long: bool) -> bool {
    let target = sources::root().join("target");
    let words = if is_long { vec![suite.without] } else { vec![suite.without, suite.http_only] }.concat();
    let (variables, arguments): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| word.starts_with("ASTRARIUM_"));
    let began = Instant::now();
    let output = Command::new("bash")
        .arg(format!("tests/sdk/{}/run", suite.language))
        .args(arguments)
        .envs(variables.iter().filter_map(|variable| variable.split_once('=')))
        .env("ASTRARIUM_SERVER", target.join("release/astrarium"))
        .env("ASTRARIUM_BIN", target.join("debug/examples/several"))
        .current_dir(sources::root())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("{} could not be started: {error}", suite.language);
            return false;
        }
    };
    let (said, logged) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        let end = said.lines().last().unwrap_or_default();
        println!("{}: {end} ({} s with PostgreSQL and servers)", suite.language, began.elapsed().as_secs());
        println!("{}: left out: {}", suite.language, suite.without.join(" "));
        said.lines().filter(|line| line.starts_with("left out: ")).for_each(|line| println!("  {line}"));
        if !is_long && !suite.http_only.is_empty() {
            println!("{}: left out: https, without ASTRARIUM_LONG=1", suite.language);
        }
        // Servers whose suite lets them speak have much to tell; this must not be overlooked.
        logged.lines().filter(|line| line.contains(" ERROR ")).for_each(|line| println!("{line}"));
    } else {
        println!("{} failed: {said}", suite.language);
        eprint!("{logged}");
    }
    output.status.success()
}

fn missing() -> Outcome {
    Outcome::Skipped("PostgreSQL is not installed".to_owned())
}

/// A store that is named by the environment will do for what needs nothing but an address.
fn is_there() -> bool {
    std::env::var_os("ASTRARIUM_TEST_STORE").is_some_and(|url| !url.is_empty())
        || has("initdb", "--version")
        || std::env::var_os("ASTRARIUM_POSTGRES_BIN").is_some()
        || Path::new(DEBIAN_FOLDER).read_dir().is_ok_and(|mut versions| versions.next().is_some())
}
