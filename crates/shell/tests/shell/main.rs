//! The shell against the real server: as a script, and in a pseudo-terminal.
//!
//! The program of the tests is the shell too: with `--as-shell` it runs it, in a session and terminal of its own if it is told to.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod interactive;
mod scripts;
mod site;
mod terminal;

use astrarium_shell::ShellSettings;
use clap::Parser;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

/// The command line of the shell alone.
#[derive(Parser)]
struct ShellLine {
    #[command(flatten)]
    settings: ShellSettings,
}

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "--as-shell") {
        words.remove(1);
        if std::env::var_os(terminal::OWN_TERMINAL).is_some() {
            rustix::process::setsid().unwrap();
            rustix::process::ioctl_tiocsctty(std::io::stdin()).unwrap();
        }
        return astrarium_shell::run(&ShellLine::parse_from(words).settings);
    }
    let arguments = Arguments::from_args();
    let trials = scripts::TESTS.iter().chain(interactive::TESTS).map(|(name, test)| {
        Trial::test(*name, move || -> Result<(), Failed> {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
