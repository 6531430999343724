//! The `astrarium` program: settings, engine choice, logs, and the life of the process.
//!
//! `serve` runs the server until it is told to stop; `admin` asks something of it; `verify` checks a data folder; `repair` lets a
//! damaged one be used again. Everything else is in the crates below.

mod admin;
mod background;
mod engines;
mod logging;
mod machine;
mod memory;
mod offline;
mod private_files;
mod scripts;
mod serve;
mod settings;

use settings::Command;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    machine::use_small_pages();
    private_files::by_default();
    let arguments = settings::read();
    let result = match arguments.command {
        Command::Serve(settings) => serve::run(&settings).map(|()| ExitCode::SUCCESS),
        Command::Verify { data } => offline::verify(&data),
        Command::Admin(settings) => admin::run(&settings),
        Command::ScriptWorker => scripts::work().map(|()| ExitCode::SUCCESS),
        Command::Repair { data, index: true, .. } => offline::repair_index(&data),
        Command::Repair { data, accept_loss, .. } => offline::repair(&data, accept_loss),
    };
    result.unwrap_or_else(|error| {
        eprintln!("astrarium: {}", sentence(&error));
        ExitCode::FAILURE
    })
}

/// An error with its causes, each told once: some errors below repeat their cause in their own words.
fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.contains(&cause) {
            sentence.push_str(": ");
            sentence.push_str(&cause);
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use anyhow::Context as _;

    #[test]
    fn causes_are_told_once() {
        let io = || std::io::Error::from_raw_os_error(98);
        let wrapped = anyhow::Error::new(io()).context(format!("bind: {}", io())).context("listen");
        assert_eq!(sentence(&wrapped), format!("listen: bind: {}", io()));
        let plain = Err::<(), _>(io()).context("listen").expect_err("an error");
        assert_eq!(sentence(&plain), format!("listen: {}", io()));
    }
}
