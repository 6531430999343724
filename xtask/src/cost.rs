//! What everyday operations of the server cost, counted in instructions and compared with `benches/cost.tsv`.
//!
//! The counting is a subcommand of the benches, which have the client and the data; this builds the server and runs it. With `--builds`
//! it measures the first build and the build of the tests instead: figures that are shown and not judged.

use crate::environment;
use crate::steps::{Outcome, command, cpu_seconds, has, run_command};
use anyhow::Context as _;
use std::time::Instant;

/// As a step of the tests; the server is built already.
pub(crate) fn outcome() -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Outcome::Skipped("instructions are counted on Linux on x86-64 only".to_owned());
    }
    if !has("valgrind", "--version") || !has("vgdb", "--help") {
        return Outcome::Skipped("valgrind is not installed (Debian: apt-get install valgrind)".to_owned());
    }
    count(&[])
}

/// As a command of its own.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<bool> {
    if arguments.iter().any(|argument| argument == "--builds") {
        return builds();
    }
    anyhow::ensure!(
        has("valgrind", "--version"),
        "valgrind is not installed (Debian: apt-get install valgrind)"
    );
    let outcome = match command("cargo", &["build", "--release"]) {
        Outcome::Passed => count(arguments),
        failed => failed,
    };
    Ok(matches!(outcome, Outcome::Passed))
}

fn count(arguments: &[String]) -> Outcome {
    // As a part of the whole workspace, so that the tests' builds of shared crates serve.
    let built = command("cargo", &["build", "--quiet", "--workspace", "--bin=astrarium-benches"]);
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    let target = environment::target();
    let mut counting = environment::program(&target.join("debug/astrarium-benches").to_string_lossy());
    counting.args(["cost", "--server"]).arg(target.join("release/astrarium")).args(arguments);
    match run_command(&mut counting) {
        Outcome::Passed => Outcome::Passed,
        _ => Outcome::failed("see the lines above", "cargo xtask cost"),
    }
}

/// What builds from nothing take, in a folder of their own.
fn builds() -> anyhow::Result<bool> {
    let folder = environment::target().join("cost-builds");
    let builds: [(&str, &[&str]); 2] =
        [("cargo build --release", &["build", "--release"]), ("cargo test --no-run", &["test", "--no-run"])];
    for (name, arguments) in builds {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("remove the folder of the build before")?;
        }
        let (began, before) = (Instant::now(), cpu_seconds());
        let mut build = environment::program("cargo");
        build.args(arguments).arg("--quiet").env("CARGO_TARGET_DIR", &folder).env("CARGO_INCREMENTAL", "0");
        if !matches!(run_command(&mut build), Outcome::Passed) {
            return Ok(false);
        }
        let cpu = cpu_seconds()
            .zip(before)
            .map_or_else(|| "unknown".to_owned(), |(now, before)| (now - before).to_string());
        println!("{name}, from nothing: {} s, CPU {cpu} s", began.elapsed().as_secs());
    }
    std::fs::remove_dir_all(&folder).context("remove the folder of the build")?;
    Ok(true)
}
