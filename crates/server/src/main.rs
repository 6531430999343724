//! The `astrarium` program: settings, engine choice, logs, and the life of the process.
//!
//! `serve` runs the server until it is told to stop; `verify` checks a data folder; `repair` lets a damaged one be used
//! again. Everything else is in the crates below.

mod background;
mod engines;
mod logging;
mod machine;
mod offline;
mod serve;
mod settings;

use clap::Parser as _;
use settings::{Arguments, Command};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    machine::use_small_pages();
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Serve(settings) => serve::run(&settings).map(|()| ExitCode::SUCCESS),
        Command::Verify { data } => offline::verify(&data),
        Command::Repair { data, accept_loss } => offline::repair(&data, accept_loss),
    };
    result.unwrap_or_else(|error| {
        eprintln!("astrarium: {error:#}");
        ExitCode::FAILURE
    })
}
