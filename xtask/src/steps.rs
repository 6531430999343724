//! Running the steps of the tests, each to its end, and saying at the very end what failed and how to repeat it.
//!
//! Invariant: the output of steps that run at the same time is never mixed: each is kept until its step has ended.

use crate::environment;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// How a step ended.
pub(crate) enum Outcome {
    Passed,
    Failed(Vec<Failure>),
    Skipped(String),
}

/// What failed in a step.
pub(crate) struct Failure {
    /// The test, or what happened.
    pub(crate) what: String,
    /// The command that does it again, from the repository's root.
    pub(crate) repeat: String,
}

/// A part of `cargo xtask test`.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) run: Run,
    /// Whether it runs at the same time as its neighbours that are alike: what waits more than it computes.
    pub(crate) at_once: bool,
    /// Whether it uses the program that the step `build` makes.
    pub(crate) uses_server: bool,
    /// Whether it runs with `--long` only, or when it is asked for by name.
    pub(crate) is_long: bool,
}

/// What a step does.
pub(crate) enum Run {
    /// Prints as it goes.
    Function(fn() -> Outcome),
    /// A script of the repository, whose output is printed when it has ended.
    Script(&'static str),
}

impl Outcome {
    pub(crate) fn of(failures: Vec<Failure>) -> Outcome {
        if failures.is_empty() { Outcome::Passed } else { Outcome::Failed(failures) }
    }

    pub(crate) fn failed(what: impl Into<String>, repeat: impl Into<String>) -> Outcome {
        Outcome::Failed(vec![Failure { what: what.into(), repeat: repeat.into() }])
    }

    /// What failed in either; a step that does several things does all of them.
    pub(crate) fn and(self, other: Outcome) -> Outcome {
        match (self, other) {
            (Outcome::Failed(mut one), Outcome::Failed(more)) => {
                one.extend(more);
                Outcome::Failed(one)
            }
            (failed @ Outcome::Failed(_), _) | (_, failed @ Outcome::Failed(_)) => failed,
            (skipped @ Outcome::Skipped(_), _) | (_, skipped @ Outcome::Skipped(_)) => skipped,
            (Outcome::Passed, Outcome::Passed) => Outcome::Passed,
        }
    }
}

/// Runs a command, its output shown as it comes.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Outcome {
    run_command(environment::program(program).args(arguments))
}

/// Runs a command that has been prepared, its output shown as it comes.
pub(crate) fn run_command(command: &mut Command) -> Outcome {
    let repeat = shown(command);
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::failed(format!("ended with {status}"), repeat),
        Err(error) => Outcome::failed(format!("could not be started: {error}"), repeat),
    }
}

/// A command as a person would type it, with the variables that were set for it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value?.to_str()?);
        let is_own =
            name.starts_with("ASTRARIUM_") || matches!(name, "RUSTFLAGS" | "RUSTDOCFLAGS" | "CFLAGS");
        is_own.then(|| format!("{name}={}", quoted(value)))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_=/.,:+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Runs a script that has been prepared; gives what it printed, and how it ended. A script prints `skipped: REASON` where its
/// toolchain is absent, and `failed: COMMAND` for each test that failed, where the command repeats that test alone.
pub(crate) fn run_script(command: &mut Command) -> (String, Outcome) {
    let repeat = shown(command);
    let (text, status) = match output(command) {
        Ok(ended) => ended,
        Err(error) => {
            return (String::new(), Outcome::failed(format!("could not be started: {error}"), repeat));
        }
    };
    let lines = |word: &'static str| text.lines().filter_map(move |line| line.strip_prefix(word));
    let outcome = match (status.success(), lines("skipped: ").next()) {
        (true, Some(reason)) => Outcome::Skipped(reason.to_owned()),
        (true, None) => Outcome::Passed,
        (false, _) => {
            let failures =
                lines("failed: ").map(|again| Failure { what: String::new(), repeat: again.to_owned() });
            let failures: Vec<Failure> = failures.collect();
            if failures.is_empty() {
                Outcome::failed(format!("ended with {status}"), repeat)
            } else {
                Outcome::Failed(failures)
            }
        }
    };
    (text, outcome)
}

/// What a command prints, both of its outputs in the order in which it writes.
fn output(command: &mut Command) -> std::io::Result<(String, std::process::ExitStatus)> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command keeps ends of the pipe open, and the pipe would never end.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), child.wait()?))
}

/// Whether a program can be started.
pub(crate) fn has(program: &str, argument: &str) -> bool {
    environment::program(program).arg(argument).output().is_ok_and(|output| output.status.success())
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
                    results.lock().expect("nothing fails with the lock").push((position, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("nothing fails with the lock");
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// How a step ended, and what it took.
struct End {
    outcome: Outcome,
    seconds: u64,
    /// CPU time of what it started; not known of one among several at once.
    cpu_seconds: Option<u64>,
}

/// Runs steps in order, all of them whatever happens, and prints the sum and all failures.
pub(crate) fn run_all(steps: &[&Step]) -> bool {
    let (began, cpu_began) = (Instant::now(), cpu_seconds());
    let mut ends: Vec<End> = Vec::new();
    let mut is_built = true;
    for group in steps.chunk_by(|one, next| one.at_once && next.at_once) {
        let before = cpu_seconds();
        let mut new = at_once(group, |step| run_one(step, is_built));
        if let [end] = &mut new[..] {
            end.cpu_seconds = cpu_seconds().zip(before).map(|(after, before)| after - before);
        }
        is_built &=
            !group.iter().zip(&new).any(|(step, end)| step.name == "build" && end.outcome.is_failed());
        ends.extend(new);
    }
    println!("\n==== summary");
    for (step, end) in steps.iter().zip(&ends) {
        let (word, why) = match &end.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Failed(failures) => ("FAILED", format!("failures: {}", failures.len())),
            Outcome::Skipped(why) => ("skipped", why.clone()),
        };
        let cpu = end.cpu_seconds.map(|seconds| format!("{seconds} s")).unwrap_or_default();
        println!("{word:8} {:16} {:5} s  CPU {cpu:>7}  {why}", step.name, end.seconds);
    }
    let count = |is: fn(&Outcome) -> bool| ends.iter().filter(|end| is(&end.outcome)).count();
    let failed = count(Outcome::is_failed);
    let (passed, skipped) =
        (count(|one| matches!(one, Outcome::Passed)), count(|one| matches!(one, Outcome::Skipped(_))));
    let cpu = cpu_seconds()
        .zip(cpu_began)
        .map_or_else(String::new, |(after, before)| format!(", CPU {} s", after - before));
    println!("{passed} passed, {failed} failed, {skipped} skipped in {} s{cpu}", began.elapsed().as_secs());
    print_failures(steps, &ends);
    failed == 0
}

fn print_failures(steps: &[&Step], ends: &[End]) {
    for (step, end) in steps.iter().zip(ends) {
        let Outcome::Failed(failures) = &end.outcome else { continue };
        for failure in failures {
            println!("\nFAILED {}: {}", step.name, failure.what);
            println!("  repeat: {}", failure.repeat);
        }
    }
}

impl Outcome {
    fn is_failed(&self) -> bool {
        matches!(self, Outcome::Failed(_))
    }
}

fn run_one(step: &Step, is_built: bool) -> End {
    let began = Instant::now();
    let header = format!("\n==== {}: {}\n", step.name, step.summary);
    let outcome = match step.run {
        _ if step.uses_server && !is_built => Outcome::Skipped("the server does not build".to_owned()),
        Run::Function(run) => {
            print!("{header}");
            run()
        }
        Run::Script(path) => {
            let mut script = environment::program("bash");
            script.arg(path).env("ASTRARIUM_BIN", environment::target().join("release/astrarium"));
            let (text, outcome) = run_script(&mut script);
            print_whole(&format!("{header}{text}"));
            outcome
        }
    };
    End { outcome, seconds: began.elapsed().as_secs(), cpu_seconds: None }
}

/// Prints without another thread's lines between.
pub(crate) fn print_whole(text: &str) {
    let mut out = std::io::stdout().lock();
    // Who reads the output may have gone; the tests still end with the right code.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// CPU time of all programs that were started and have ended, where the system says it.
pub(crate) fn cpu_seconds() -> Option<u64> {
    const TICKS_PER_SECOND: u64 = 100;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields begin after the name in brackets, with the third; the time of children is in the 16th and the 17th.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some((ticks(16)? + ticks(17)?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{Outcome, quoted, run_script};
    use crate::environment::program;

    fn script(text: &str) -> (String, Outcome) {
        run_script(program("sh").args(["-c", text]))
    }

    #[test]
    fn a_script_names_what_failed_and_how_to_repeat_it() {
        let (text, outcome) =
            script("echo one; echo two >&2; echo 'failed: run a'; echo 'failed: run b'; exit 1");
        assert_eq!(text, "one\ntwo\nfailed: run a\nfailed: run b\n");
        let Outcome::Failed(failures) = outcome else { panic!("it passes") };
        assert_eq!(failures.iter().map(|one| one.repeat.as_str()).collect::<Vec<_>>(), ["run a", "run b"]);
    }

    #[test]
    fn a_script_that_names_nothing_is_repeated_whole() {
        let (_, outcome) = script("exit 3");
        let Outcome::Failed(failures) = outcome else { panic!("it passes") };
        assert_eq!(failures[0].repeat, "sh -c 'exit 3'");
        assert!(matches!(script("echo 'skipped: no tool'").1, Outcome::Skipped(why) if why == "no tool"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a::b=c"), "a::b=c");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
