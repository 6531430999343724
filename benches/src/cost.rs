//! What does each everyday operation of the server cost, counted instead of timed?
//!
//! The release build of the server runs under callgrind, and one client asks it the same questions of the same documents in the same
//! order. Counted are instructions, bytes moved by repeated string instructions, allocations, readings of the clock, and system calls
//! of the server; nothing of the client. Scripts run in the server itself: callgrind cannot follow them into processes of their own, so
//! what the way there and back costs is not counted. Counts depend far less than times on the machine and on what runs
//! beside, so they are kept in a file (`benches/cost.tsv`), and a change that makes an operation dearer is seen at once.
//! Invariants
//! - Each operation is counted several times over different requests, and the least counts: what runs in the background meanwhile (merges,
//!   checks, timers) only adds.
//! - Counts of another compiler, C library or valgrind are shown, but not judged: they differ for reasons that are not ours.
//! - Beside other programs counts are shown, but not judged: loops give way to other tasks by the clock.
//! - A wrong answer fails the run.
//!
//! Not here: how fast the server is (the other questions), the kernel's work (only how often it is called).

mod callgrind;
mod counts;
mod operations;
mod profile;

use crate::build_server;
use crate::caller::{self, Caller};
use crate::items::Signer;
use crate::process;
use anyhow::Context as _;
use astrarium_wire::headers;
use callgrind::CountedServer;
use clap::Args;
use counts::{Counts, Row, Table};
use operations::{Operation, Setup};
use std::path::PathBuf;
use std::time::Instant;

/// How many documents the containers hold.
const SIZES: [u64; 2] = [1_000, 50_000];
/// Cores that other programs may use while counts are judged.
const OTHERS_MAX: f64 = 0.15;
/// Requests before an operation is counted: its plan, its caches and its memory are there then.
const WARM_UP_COUNT: u64 = 20;

/// Counts what operations cost.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the counts into the file, instead of comparing with it.
    #[arg(long)]
    update: bool,

    /// Only operations whose names contain one of these texts, separated by commas.
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    only: Vec<String>,

    /// A server binary to count instead of building one.
    #[arg(long, env = "ASTRARIUM_BIN", value_name = "FILE")]
    server: Option<PathBuf>,

    /// Keep the profiles in a folder, for callgrind_annotate.
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,

    /// Only containers with so many documents.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    sizes: Vec<u64>,
}

/// Counts all operations; whether the counts are as the file has them.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let program = match &arguments.server {
        Some(server) => server.clone(),
        None => build_server()?,
    };
    let known = Table::read()?;
    let environment = counts::environment()?;
    let sizes = if arguments.sizes.is_empty() { SIZES.to_vec() } else { arguments.sizes.clone() };
    let is_whole = arguments.only.is_empty() && arguments.sizes.is_empty();
    let mut counted = Table::new(environment);
    let (began, busy_before) = (Instant::now(), process::machine_usage()?);
    println!("{}", counts::HEADING);
    for size in sizes {
        let folder = tempfile::tempdir()?;
        let setup = Setup::new(&program, folder.path(), size)?;
        let profiles = arguments.profiles.clone().unwrap_or_else(|| folder.path().join("profiles"));
        std::fs::create_dir_all(&profiles)?;
        let server = CountedServer::start(&program, &setup.data, &profiles)?;
        let mut caller = Caller::open(server.address)?;
        Setup::read_all(&mut caller).context("read all documents")?;
        for operation in operations::all(size) {
            if !is_wanted(&arguments.only, operation.name) {
                continue;
            }
            let counts = count(&server, &mut caller, &setup, &operation)
                .with_context(|| format!("{}, {size} documents", operation.name))?;
            let (name, tolerance) = (operation.name.to_owned(), operation.tolerance);
            let row = Row { operation: name, documents: size, counts, tolerance };
            println!("{}", row.beside(known.find(&row)));
            counted.rows.push(row);
        }
        server.stop()?;
    }
    if arguments.update {
        if !is_whole {
            counted = known.with(counted);
        }
        counted.write()?;
        return Ok(true);
    }
    // All servers and valgrind have ended, so their time is that of ended children.
    let own = process::own_usage()?.0 + process::ended_children_usage()?.0;
    let others = process::machine_usage()?.since(busy_before).0 - own;
    let cores = others / began.elapsed().as_secs_f64();
    if cores > OTHERS_MAX {
        println!(
            "\nskipped: other programs used {cores:.2} cores meanwhile. Requests that take longer give way to others more often, which costs up \
             to 8 % more instructions; on a quieter machine the counts are judged."
        );
        return Ok(true);
    }
    Ok(counts::judge(&known, &counted, is_whole))
}

fn is_wanted(texts: &[String], name: &str) -> bool {
    texts.is_empty() || texts.iter().any(|text| name.contains(text.as_str()))
}

/// What one request of an operation costs: the least of the turns.
fn count(
    server: &CountedServer,
    caller: &mut Caller,
    setup: &Setup,
    operation: &Operation,
) -> anyhow::Result<Counts> {
    let mut at = 0;
    let mut prepared = |count: u64| -> anyhow::Result<Vec<Vec<u8>>> {
        let signer = Signer::new()?;
        let numbers = at..at + count;
        at += count;
        numbers.map(|number| (operation.request)(setup, &signer, number)).collect()
    };
    for request in prepared(WARM_UP_COUNT.min(operation.count))? {
        ask(caller, operation, &request)?;
    }
    let mut turns = Vec::new();
    for _ in 0..operation.turns {
        let requests = prepared(operation.count)?;
        server.forget()?;
        for request in &requests {
            ask(caller, operation, request)?;
        }
        turns.push(server.counts(operation.name)?.divided_by(operation.count));
    }
    let least = turns.into_iter().min_by(|one, other| one.instructions.total_cmp(&other.instructions));
    least.context("an operation is counted at least once")
}

/// Sends a request, and checks that the answer is what the operation is meant to give.
fn ask(caller: &mut Caller, operation: &Operation, request: &[u8]) -> anyhow::Result<()> {
    let answer = caller.expect(&[operation.status], request)?;
    if let Some(expected) = operation.row_count {
        let count = caller::header(answer.head, headers::ITEM_COUNT)
            .context("an answer without its number of rows")?;
        let count = String::from_utf8_lossy(count);
        anyhow::ensure!(count == expected.to_string(), "{count} rows, expected {expected}");
    }
    if let Some(text) = operation.body_contains {
        let body = String::from_utf8_lossy(answer.body);
        anyhow::ensure!(body.contains(text), "the answer lacks {text}: {body}");
    }
    Ok(())
}
