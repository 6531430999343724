//! Benches: what a user would ask about speed, each answer beside the limit it is to be compared with, in one run.
//!
//! Fifteen questions: how fast are point reads (`reads`), how fast are durable creates (`creates`), how fast are creates and
//! bulk loads beside PostgreSQL (`writes`), what do documents and their index take on disk (`space`), how soon is the
//! server ready and what does it use when idle (`start`), how fast are queries (`queries`), how fast are stored procedures,
//! user-defined functions and batches (`scripts`), how soon and how fast do change feeds tell (`feeds`), what do more key ranges
//! change for writes (`ranges`), how do requests fare beside long work (`background`), what does removing a container cost
//! (`drops`), what do very many containers and partitions take (`many`), in which form is the index kept on PostgreSQL
//! (`index-forms`), what do servers over PostgreSQL do (`stores`), how fast are import, export and the shell (`tools`). Every server and every limit runs in a process of its own, so that its
//! CPU time can be read from `/proc`; they take turns within each round, and medians over rounds are printed.
//! Invariants
//! - Requests are built and signed before the clock starts, for all alike; one thread drives all connections.
//! - A wrong answer or a lost connection fails the run: speed without right answers is not printed.
//!
//! Not here: comparison with databases other than PostgreSQL, which is measured beside our queries where it is installed.

mod background;
mod caller;
mod cost;
mod creates;
mod drops;
mod feeds;
mod index_forms;
mod items;
mod limits;
mod load;
mod many;
mod postgres;
mod process;
mod queries;
mod ranges;
mod reads;
mod report;
mod scripts;
mod space;
mod start;
mod stores;
mod tools;
mod writes;

use anyhow::Context as _;
use clap::{Parser, Subcommand, ValueEnum};
use report::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Astrarium beside the limits of the machine, and tells which goals are met.
///
/// Builds the server in release form, starts it in temporary folders (TMPDIR chooses the disk), and compares it with a
/// bare hyper server that returns the same bytes, with the bare storage engine committing the same keys, with bare
/// fjall writing them in the same groups, and with PostgreSQL answering the same queries (`PG_BIN` names the folder of its
/// binaries; without them the rest is measured alone). Differences below 1.2 times mean little; run it on a quiet machine.
#[derive(Debug, Parser)]
#[command(name = "astrarium-benches")]
struct Arguments {
    /// Short rounds and few of them, for a first impression in about two minutes.
    #[arg(long)]
    quick: bool,

    /// Questions to answer, separated by commas; all by default.
    #[arg(long, value_name = "QUESTIONS", value_delimiter = ',', default_values_t = Question::ALL)]
    only: Vec<Question>,

    /// Rounds for medians: 5 by default, 2 with --quick.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,

    /// Documents that queries are asked over, multiples of 1000 separated by commas: 1000,20000,200000 by default,
    /// 1000,10000 with --quick; always 1000,20000 by default for `stores`.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    sizes: Vec<u64>,

    /// A server binary to measure instead of building one.
    #[arg(long, env = "ASTRARIUM_BIN", value_name = "FILE")]
    server: Option<PathBuf>,

    #[command(subcommand)]
    limit: Option<Limit>,
}

impl Arguments {
    /// Sizes in ascending order.
    fn sizes(&self) -> Vec<u64> {
        let usual: &[u64] = if self.quick { &[1_000, 10_000] } else { &[1_000, 20_000, 200_000] };
        let mut sizes = if self.sizes.is_empty() { usual.to_vec() } else { self.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Question {
    /// Point reads of 1 KB at 1, 16 and 64 connections.
    Reads,
    /// Durable creates of 1 KB at 1, 16 and 64 connections.
    Creates,
    /// Time to ready, idle memory and idle CPU.
    Start,
    /// Durable creates and bulk loads with everything indexed, beside PostgreSQL with JSONB and GIN.
    Writes,
    /// Disk of documents and index, and bytes written, for three kinds of documents.
    Space,
    /// SQL beside PostgreSQL with JSONB, parse and plan, memory of a running query.
    Queries,
    /// Stored procedures, user-defined functions and batches beside plain requests, memory of compiled scripts.
    Scripts,
    /// Change feeds: how soon a waiting reader sees a write, how fast a feed is read from its beginning.
    Feeds,
    /// Durable creates on eight key ranges beside one.
    Ranges,
    /// Point reads and creates beside long work: p99 beside the quiet p99.
    Background,
    /// Removing a large container: CPU, and time until its space is free.
    Drops,
    /// Memory and start with ten thousand containers and a hundred thousand logical partitions.
    Many,
    /// The index on PostgreSQL: a row for each term, or packed blocks; without our server.
    IndexForms,
    /// Servers over PostgreSQL beside the embedded engine and plain PostgreSQL; several servers; time without service.
    Stores,
    /// Import and export beside the server's own rate, their memory; how soon the shell answers.
    Tools,
}

impl Question {
    const ALL: [Question; 15] = [
        Question::Reads,
        Question::Creates,
        Question::Writes,
        Question::Space,
        Question::Start,
        Question::Queries,
        Question::Scripts,
        Question::Feeds,
        Question::Ranges,
        Question::Background,
        Question::Drops,
        Question::Many,
        Question::IndexForms,
        Question::Stores,
        Question::Tools,
    ];
}

impl std::fmt::Display for Question {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value().expect("no question is hidden");
        formatter.write_str(value.get_name())
    }
}

/// What this program runs as a process of its own.
#[derive(Debug, Subcommand)]
enum Limit {
    /// A server that always gives the answer stored in a file.
    #[command(name = "bare-http", hide = true)]
    Http {
        /// A whole answer, as it came over the wire.
        answer: PathBuf,
        /// Headers to send at most.
        headers_max: usize,
    },
    /// The storage engine without a server.
    #[command(name = "bare-engine", hide = true)]
    Engine(limits::EngineRun),
    /// fjall without our engine.
    #[command(name = "bare-fjall", hide = true)]
    Fjall(limits::EngineRun),
    /// Count instructions, allocations, clock readings and system calls of everyday operations.
    Cost(cost::Arguments),
}

/// How long and how often everything is measured.
#[derive(Debug, Clone)]
struct Plan {
    server: PathBuf,
    rounds: usize,
    quick: bool,
    /// Documents that queries are asked over, ascending.
    sizes: Vec<u64>,
    /// The same for queries on a store.
    store_sizes: Vec<u64>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.limit {
        Some(Limit::Http { answer, headers_max }) => limits::bare_http::serve(answer, *headers_max),
        Some(Limit::Engine(run)) => limits::bare_engine::run(run),
        Some(Limit::Fjall(run)) => limits::bare_fjall::run(run),
        Some(Limit::Cost(arguments)) => {
            anyhow::ensure!(cost::run(arguments)?, "the costs are not those of benches/cost.tsv");
            Ok(())
        }
        None => measure(&arguments),
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let server = match &arguments.server {
        Some(server) => server.clone(),
        // The only question that needs none.
        None if arguments.only == [Question::IndexForms] => PathBuf::new(),
        None => build_server()?,
    };
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 2 } else { 5 }).max(1);
    let sizes = arguments.sizes();
    let store_sizes = if arguments.sizes.is_empty() { vec![1_000, 20_000] } else { sizes.clone() };
    let plan = Plan { server, rounds, quick: arguments.quick, sizes, store_sizes };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores, load average {}, {rounds} rounds", load.split(' ').next().unwrap_or("unknown"));
    let mut report = Report::default();
    for question in Question::ALL.into_iter().filter(|question| arguments.only.contains(question)) {
        match question {
            Question::Reads => reads::answer(&plan, &mut report)?,
            Question::Creates => creates::answer(&plan)?,
            Question::Writes => writes::answer(&plan, &mut report)?,
            Question::Space => space::answer(&plan, &mut report)?,
            Question::Start => start::answer(&plan, &mut report)?,
            Question::Queries => queries::answer(&plan, &mut report)?,
            Question::Scripts => scripts::answer(&plan, &mut report)?,
            Question::Feeds => feeds::answer(&plan, &mut report)?,
            Question::Ranges => ranges::answer(&plan, &mut report)?,
            Question::Background => background::answer(&plan, &mut report)?,
            Question::Drops => drops::answer(&plan, &mut report)?,
            Question::Many => many::answer(&plan, &mut report)?,
            Question::IndexForms => index_forms::answer(&plan, &mut report)?,
            Question::Stores => stores::answer(&plan, &mut report)?,
            Question::Tools => tools::answer(&plan, &mut report)?,
        }
    }
    report.print_goals();
    report.verdict()
}

/// The server beside this program in the target folder, brought up to date.
fn build_server() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/server/Cargo.toml");
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(manifest)
        .status()
        .context("run cargo to build the server")?;
    anyhow::ensure!(status.success(), "the server does not build");
    let program = std::env::current_exe().context("find this program")?;
    let target = program.parent().and_then(Path::parent).context("find the target folder")?;
    Ok(target.join("release/astrarium"))
}
