//! Running one step of the tests and telling how it ended.

use crate::sources;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How a step ended.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// A part of `cargo xtask test`.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) run: fn() -> Outcome,
}

/// Runs a command in the repository's root, its output shown as it comes.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Outcome {
    let status =
        Command::new(program).args(arguments).current_dir(sources::root()).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{program} {} ended with {status}", arguments.join(" "))),
        Err(error) => Outcome::Failed(format!("{program} could not be started: {error}")),
    }
}

/// Runs a script of a client language, which says `skipped: reason` itself when its toolchain is absent.
pub(crate) fn script(path: &str) -> Outcome {
    let output = Command::new("bash").arg(path).current_dir(sources::root()).stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(format!("{path} could not be started: {error}")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let reason = text.lines().find_map(|line| line.strip_prefix("skipped: "));
    match (output.status.success(), reason) {
        (true, Some(reason)) => Outcome::Skipped(reason.to_owned()),
        (true, None) => Outcome::Passed,
        (false, _) => Outcome::Failed(format!("{path} ended with {}", output.status)),
    }
}

/// Whether a program can be started.
pub(crate) fn has(program: &str, argument: &str) -> bool {
    let quiet = || Stdio::null();
    let started = Command::new(program).arg(argument).stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    started.is_ok_and(|status| status.success())
}

/// Runs steps in order, all of them whatever happens, and prints the sum.
pub(crate) fn run_all(steps: &[&Step]) -> bool {
    let mut lines = Vec::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for step in steps {
        println!("\n==== {}: {}", step.name, step.summary);
        let began = Instant::now();
        let outcome = (step.run)();
        let seconds = began.elapsed().as_secs();
        lines.push(match outcome {
            Outcome::Passed => {
                passed += 1;
                format!("passed   {:16} {seconds:4} s", step.name)
            }
            Outcome::Failed(why) => {
                failed += 1;
                format!("FAILED   {:16} {seconds:4} s  {why}", step.name)
            }
            Outcome::Skipped(why) => {
                skipped += 1;
                format!("skipped  {:16} {seconds:4} s  {why}", step.name)
            }
        });
    }
    println!("\n==== summary");
    for line in lines {
        println!("{line}");
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}
