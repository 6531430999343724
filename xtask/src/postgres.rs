//! Steps of the tests that need PostgreSQL: it is installed where that can be done without asking, and they are skipped, with the reason,
//! where it is missing. Tests start it themselves, in temporary folders.

use crate::environment;
use crate::programs;
use crate::steps::{Failure, Outcome, at_once, command, has, print_whole, run_script, shown};
use crate::test::example;
use std::path::Path;
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
    let is_root =
        environment::program("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
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
        if !matches!(command(quietly[0], &arguments), Outcome::Passed) {
            return Outcome::Skipped(format!("PostgreSQL could not be installed: {}", arguments.join(" ")));
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
    let contract = if std::env::var_os("ASTRARIUM_TEST_STORE").is_some_and(|url| !url.is_empty()) {
        let mut test = programs::cargo_test(&[]);
        test.args(["--package=astrarium-kv-postgres", "--test=engine", "contract::"]);
        programs::run(&mut test, "cargo test")
    } else {
        Outcome::Passed
    };
    let mut test = programs::cargo_test(&[]);
    // The programs that the step `rust` has built: with the package alone, features would differ, and most crates be built again.
    test.env("ASTRARIUM_TEST_ENGINES", "postgres").arg("--workspace");
    test.args(CASES.iter().map(|test| format!("--test={test}")));
    contract.and(programs::run(&mut test, "ASTRARIUM_TEST_ENGINES=postgres cargo test"))
}

/// Suites of clients against three servers, which take the place of one (`testkit/examples/several.rs`). With ``--long` all of
/// them run over HTTPS too.
pub(crate) fn several() -> Outcome {
    if !is_there() {
        return missing();
    }
    let program = match example("several") {
        Ok(program) => program,
        Err(failed) => return failed,
    };
    let is_long = environment::is_long();
    at_once(&SUITES, |suite| run_suite(suite, &program, is_long))
        .into_iter()
        .fold(Outcome::Passed, Outcome::and)
}

/// Runs a suite, and then prints what it has said.
fn run_suite(suite: &Suite, program: &str, is_long: bool) -> Outcome {
    let target = environment::target();
    let words = if is_long { vec![suite.without] } else { vec![suite.without, suite.http_only] }.concat();
    let (variables, arguments): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| word.starts_with("ASTRARIUM_"));
    let began = Instant::now();
    let mut script = environment::program("bash");
    script
        .envs(variables.iter().filter_map(|variable| variable.split_once('=')))
        .env("ASTRARIUM_SERVER", target.join("release/astrarium"))
        .env("ASTRARIUM_BIN", program);
    let surroundings = shown(&script);
    script.arg(format!("tests/sdk/{}/run", suite.language)).args(arguments);
    let (text, outcome) = run_script(&mut script);
    let seconds = began.elapsed().as_secs();
    match outcome {
        Outcome::Passed => {
            print_whole(&report(suite, &text, seconds, is_long));
            Outcome::Passed
        }
        // Suites that cannot run here are named among those of one server.
        Outcome::Skipped(why) => {
            print_whole(&format!("{}: skipped: {why}\n", suite.language));
            Outcome::Passed
        }
        Outcome::Failed(failures) => {
            print_whole(&format!("{} failed:\n{text}\n", suite.language));
            // What a suite repeats, with the variables that made it use three servers.
            let surroundings = surroundings.trim_end_matches("bash");
            let with = |failure: Failure| {
                let is_whole = failure.repeat.starts_with("ASTRARIUM_");
                let repeat =
                    if is_whole { failure.repeat } else { format!("{surroundings}{}", failure.repeat) };
                Failure { what: format!("{} {}", suite.language, failure.what), repeat }
            };
            Outcome::Failed(failures.into_iter().map(with).collect())
        }
    }
}

/// The last line of a suite that passed, and what was left out of it.
fn report(suite: &Suite, text: &str, seconds: u64, is_long: bool) -> String {
    let language = suite.language;
    // Servers whose suite lets them speak have much to tell; errors must not be overlooked.
    let is_error = |line: &&str| line.contains(" ERROR ");
    let is_sum = |line: &&str| ["passed", "Tests run:", "ok "].iter().any(|word| line.contains(word));
    let end = text.lines().rfind(is_sum).unwrap_or_default();
    let mut lines = vec![
        format!("{language}: {end} ({seconds} s with PostgreSQL and servers)"),
        format!("{language}: left out: {}", suite.without.join(" ")),
    ];
    lines.extend(text.lines().filter(|line| line.starts_with("left out: ")).map(|line| format!("  {line}")));
    if !is_long && !suite.http_only.is_empty() {
        lines.push(format!("{language}: left out: https, without --long"));
    }
    lines.extend(text.lines().filter(is_error).map(str::to_owned));
    lines.push(String::new());
    lines.join("\n")
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
