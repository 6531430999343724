//! Our tools, as `cargo xtask <command>`; run without arguments for the list.

mod cost;
mod environment;
mod fuzz;
mod licences;
mod postgres;
mod profile;
mod programs;
mod sbom;
mod site;
mod sources;
mod steps;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  test      everything: format, lints, docs, tidy, Rust tests, the official SDKs as clients
            (--only STEP[,STEP] runs some of it; --list names the steps; --long adds what takes more time)
  tidy      the rules of this repository that no compiler checks
  licences  licences, sources and known faults of the dependencies
  sim       the database under simulated crashes, lost syncs and clock jumps (--seeds COUNT, --from SEED)
  soak      clients beside a server that is killed and started again and again (--minutes N, 10 by default)
  fuzz      every fuzz target for a few seconds (--seconds N, --address, names of targets)
  cost      instructions, allocations, clock readings and system calls of everyday operations, beside benches/cost.tsv
            (--update writes that file, --only TEXT counts some, --builds measures builds from nothing)
  sbom      what the program is made of, as CycloneDX, into a file (sbom FILE)
  site      the documentation as static pages, in target/site
  profile   lengths of files and functions, beside what we aim at
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("test") => test::run(&arguments[1..]),
        Some("tidy") => tidy::run(),
        Some("licences") => licences::run(),
        Some("sim") => Ok(matches!(test::sim(&arguments[1..]), steps::Outcome::Passed)),
        Some("soak") => test::soak(&arguments[1..]),
        Some("fuzz") => fuzz::run(&arguments[1..]),
        Some("profile") => profile::run(),
        Some("site") => site::run(),
        Some("cost") => cost::run(&arguments[1..]),
        Some("sbom") => sbom::run(&arguments[1..]),
        _ => {
            print!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
