//! Test programs of Rust: all of them run, whatever fails, and each test that failed is named with the command that repeats it.

use crate::environment;
use crate::steps::{Failure, Outcome, quoted, shown};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// A `cargo test` of our environment, which goes on after a program that failed.
pub(crate) fn cargo_test(toolchain: &[&str]) -> Command {
    let mut command = environment::program("cargo");
    command.args(toolchain).args(["test", "--no-fail-fast"]);
    // Its lines say which programs failed.
    command.env("CARGO_TERM_QUIET", "false");
    command
}

/// Runs a `cargo test`, its output shown as it comes. `repeat` is put before the choice of a program and a test.
pub(crate) fn run(command: &mut Command, repeat: &str) -> Outcome {
    let whole = shown(command);
    let failed = |what: String| Outcome::failed(what, whole.clone());
    let mut log = Log::default();
    let status = match follow(command, |line| {
        println!("{line}");
        log.read(line);
    }) {
        Ok(status) => status,
        Err(error) => return failed(format!("could not be started: {error}")),
    };
    if status.success() {
        return Outcome::Passed;
    }
    if log.failures.is_empty() {
        return failed(format!("ended with {status}"));
    }
    Outcome::Failed(log.failures.into_iter().map(|one| one.shown(repeat)).collect())
}

/// Runs a command and gives each line of either output as it comes.
fn follow(command: &mut Command, mut each: impl FnMut(&str)) -> std::io::Result<std::process::ExitStatus> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command keeps ends of the pipe open, and the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        each(&String::from_utf8_lossy(&line?));
    }
    child.wait()
}

/// What is understood of the output of `cargo test`.
#[derive(Default)]
struct Log {
    /// Names in the list of failures that was read last.
    names: Vec<String>,
    is_in_list: bool,
    failures: Vec<ProgramFailure>,
}

/// A test program that failed: how cargo names it, and the tests in it.
#[derive(Debug, PartialEq)]
struct ProgramFailure {
    program: String,
    tests: Vec<String>,
}

impl Log {
    /// A program lists its failures twice, with their output and without, then says its result; cargo names the program.
    fn read(&mut self, line: &str) {
        if line.trim_start().starts_with("Running ") {
            self.names.clear();
            self.is_in_list = false;
        } else if line == "failures:" {
            self.names.clear();
            self.is_in_list = true;
        } else if line.starts_with("test result:") {
            self.is_in_list = false;
        } else if self.is_in_list
            && let Some(name) = line.strip_prefix("    ")
        {
            self.names.push(name.to_owned());
        } else if let Some((_, rest)) = line.split_once("to rerun pass `")
            && let Some((program, _)) = rest.split_once('`')
        {
            let tests = std::mem::take(&mut self.names);
            self.failures.push(ProgramFailure { program: program.to_owned(), tests });
            self.is_in_list = false;
        }
    }
}

impl ProgramFailure {
    fn shown(self, repeat: &str) -> Failure {
        let Self { program, tests } = self;
        if tests.is_empty() {
            // It ended before it could say which: killed, aborted, or without tests by name.
            return Failure { what: format!("{program}, all of it"), repeat: format!("{repeat} {program}") };
        }
        let names = tests.iter().map(|test| quoted(test)).collect::<Vec<_>>().join(" ");
        Failure {
            what: format!("{program}: {}", tests.join(", ")),
            repeat: format!("{repeat} {program} -- --exact {names}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, ProgramFailure};

    #[test]
    fn failing_tests_are_read_with_their_programs() {
        let mut log = Log::default();
        let text = "\
     Running tests/a.rs (target/debug/deps/a-1)
running 2 tests
test one ... FAILED
failures:
---- one stdout ----
    a line of the test
failures:
    one
    two
test result: FAILED. 0 passed; 2 failed
error: test failed, to rerun pass `-p crate --test a`
     Running tests/b.rs (target/debug/deps/b-1)
error: test failed, to rerun pass `-p crate --test b`
error: 2 targets failed:
    `-p crate --test a`
    `-p crate --test b`
";
        text.lines().for_each(|line| log.read(line));
        let failure = |program: &str, tests: &[&str]| ProgramFailure {
            program: program.to_owned(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        };
        let expected = [failure("-p crate --test a", &["one", "two"]), failure("-p crate --test b", &[])];
        assert_eq!(log.failures, expected);
        let shown: Vec<String> = log.failures.into_iter().map(|one| one.shown("cargo test").repeat).collect();
        assert_eq!(
            shown,
            ["cargo test -p crate --test a -- --exact one two", "cargo test -p crate --test b"]
        );
    }
}
