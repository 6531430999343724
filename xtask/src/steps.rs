//! Running one step of the tests and telling how it ended.

use crate::sources;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Whether it runs at the same time as its neighbours that say so too: what waits more than it computes.
    pub(crate) at_once: bool,
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

/// Does something for every item, as many at a time as there are cores; gives the results in the items' order.
pub(crate) fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(position) else { return };
                    let result = work(item);
                    results.lock().expect("nobody fails with the lock").push((position, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("nobody fails with the lock");
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs steps in order, all of them whatever happens, and prints the sum.
pub(crate) fn run_all(steps: &[&Step]) -> bool {
    let mut ends = Vec::new();
    for group in steps.chunk_by(|one, next| one.at_once && next.at_once) {
        ends.extend(at_once(group, |step| run_one(step)));
    }
    println!("\n==== summary");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (step, (outcome, seconds)) in steps.iter().zip(ends) {
        let (word, why) = match outcome {
            Outcome::Passed => (("passed", &mut passed), String::new()),
            Outcome::Failed(why) => (("FAILED", &mut failed), why),
            Outcome::Skipped(why) => (("skipped", &mut skipped), why),
        };
        *word.1 += 1;
        println!("{:8} {:16} {seconds:4} s  {why}", word.0, step.name);
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}

fn run_one(step: &Step) -> (Outcome, u64) {
    println!("\n==== {}: {}", step.name, step.summary);
    let began = Instant::now();
    let outcome = (step.run)();
    (outcome, began.elapsed().as_secs())
}
