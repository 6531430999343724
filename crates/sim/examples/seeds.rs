//! `cargo xtask sim`: runs of many seeds, as many at once as there are cores. Stops at the first that fails, and says how to
//! repeat it.

use astrarium_sim::{Misdeed, SeedFailure, run};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: u64| {
        let place = arguments.iter().position(|argument| argument == name);
        let value = place.and_then(|place| arguments.get(place + 1));
        value.map_or(Some(default), |value| value.parse().ok())
    };
    let (Some(seeds), Some(from)) = (number("--seeds", 1_000), number("--from", 0)) else {
        eprintln!("sim [--seeds COUNT] [--from SEED]");
        return ExitCode::from(2);
    };
    let (next, changes, crashes) = (AtomicU64::new(from), AtomicU64::new(0), AtomicU64::new(0));
    let failure: Mutex<Option<SeedFailure>> = Mutex::new(None);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= from.saturating_add(seeds) || failure.lock().is_ok_and(|found| found.is_some())
                    {
                        return;
                    }
                    match run(seed, Misdeed::None) {
                        Ok(run) => {
                            changes.fetch_add(run.changes as u64, Relaxed);
                            crashes.fetch_add(run.crashes, Relaxed);
                        }
                        Err(found) => {
                            if let Ok(mut first) = failure.lock() {
                                first.get_or_insert(found);
                            }
                        }
                    }
                }
            });
        }
    });
    if let Some(failure) = failure.into_inner().unwrap_or_default() {
        println!("{failure}");
        println!(
            "repeat it with: cargo xtask sim --from {} --seeds 1 (at commit {})",
            failure.seed,
            commit()
        );
        return ExitCode::FAILURE;
    }
    let (changes, crashes) = (changes.into_inner(), crashes.into_inner());
    println!("sim: {seeds} seeds from {from}, {changes} changes, {crashes} crashes, no problem");
    ExitCode::SUCCESS
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
