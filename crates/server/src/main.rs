//! The `astrarium` program: settings, engine choice, logs, and the life of the process.
//!
//! `serve` runs the server until it is told to stop, `emulator` does so in the place of the service's emulator, and `health` tells
//! whether it answers; `admin` asks something of it; `verify` checks a data folder or a store; `repair`
//! lets a damaged folder be used again; `shell` is for people who look at an account; `store` and `status` are for operators of servers
//! on PostgreSQL; `import`, `export`, `dump`, `load` and `copy` move data to and from any account (`tools`); `completions` and `man` are made
//! from the definitions of all of these. Everything else is in the crates below.

mod admin;
mod background;
mod cluster;
mod columns;
mod emulator;
mod engines;
mod health;
mod http_answer;
mod logging;
mod machine;
mod manuals;
mod memory;
mod offline;
mod online;
mod ports;
mod private_files;
mod scripts;
mod serve;
mod settings;
mod spending;
mod status;
mod stores;
mod tools;
mod transfers;

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
        Command::Verify(settings) => match &settings.store {
            Some(url) => online::verify(url),
            None => offline::verify(&settings.data),
        },
        Command::Emulator(settings) => emulator::run(&settings).map(|()| ExitCode::SUCCESS),
        Command::Health(settings) => health::run(&settings),
        Command::Status(settings) => status::run(&settings),
        Command::Store(settings) => stores::run(&settings),
        Command::Shell(settings) => Ok(astrarium_shell::run(&settings)),
        Command::Admin(settings) => admin::run(&settings),
        Command::Import(settings) => tools::run(astrarium_tools::import(&settings)),
        Command::Export(settings) => tools::run(astrarium_tools::export(&settings)),
        Command::Dump(settings) => tools::run(astrarium_tools::dump(&settings)),
        Command::Load(settings) => tools::run(astrarium_tools::load(&settings)),
        Command::Copy(settings) => tools::run(astrarium_tools::copy(&settings)),
        Command::Completions { shell } => manuals::completions(shell),
        Command::Man { command, into: None } => manuals::page(&command),
        Command::Man { into: Some(folder), .. } => manuals::pages(&folder),
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
