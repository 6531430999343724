//! How long do point reads and creates take while the server has long work to do beside them?
//!
//! Clients read and create at a steady pace, well below what the machine can do, first in peace and then beside each work of
//! [`WORKS`], by turns within a round, so that a busy machine is busy for both. A request counts from the moment at which it
//! should have been sent.
//! Invariants
//! - What is measured beside a work ends with it, or after half a minute; then the work has the machine for itself until it has
//!   ended, before the next one begins. It lasts a second at least: what a work leaves behind belongs to it.

mod works;

use crate::Plan;
use crate::items::{CONTAINER, Signer, item};
use crate::load::{self, Load, Outcome};
use crate::process::Server;
use crate::report::{Bound, Report, Table, median};
use crate::writes::{load_items, setup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use works::{Task, WORKS, Work};

const ITEM_COUNT: u64 = 20_000;
const READ_CONNECTIONS: usize = 8;
const READ_INTERVAL: Duration = Duration::from_millis(8);
const CREATE_CONNECTIONS: usize = 4;
const CREATE_INTERVAL: Duration = Duration::from_millis(20);
const WORK_MIN: Duration = Duration::from_secs(1);
const WORK_MAX: Duration = Duration::from_secs(30);
const REST_MAX: Duration = Duration::from_mins(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// What a p99 may be, in times of the quiet one.
const FACTOR_MAX: f64 = 3.0;

/// What clients saw for a while: of reads, and of creates.
#[derive(Clone, Copy)]
struct Foreground {
    read: Outcome,
    create: Outcome,
}

/// A server, and how many items were created on it.
struct Stage {
    server: Server,
    created: u64,
}

/// One work in one round.
struct Beside {
    quiet: Foreground,
    during: Foreground,
    seconds: f64,
    cpu: f64,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start_with(&plan.server, &folder.path().join("data"), &["--test-clock"])?;
    setup(&server)?;
    load_items(&server, CONTAINER, ITEM_COUNT, item)?;
    let mut stage = Stage { server, created: ITEM_COUNT };
    let size = if plan.quick { 20_000 } else { 100_000 };
    let mut rounds: Vec<Vec<Beside>> = WORKS.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for (work, rounds) in WORKS.iter().zip(&mut rounds) {
            let task = Task { address: stage.server.address, round, size };
            (work.prepare)(&stage.server, &task)?;
            stage.server.usage_when_quiet()?;
            let quiet =
                stage.measure(&Arc::default(), Duration::from_secs(if plan.quick { 2 } else { 4 }))?;
            rounds.push(stage.beside(work, task, quiet)?);
        }
    }
    print(&rounds, size, report);
    Ok(())
}

impl Stage {
    /// Reads and creates until time is over or somebody says so.
    fn measure(&mut self, is_over: &Arc<AtomicBool>, time_max: Duration) -> anyhow::Result<Foreground> {
        let signer = Signer::new()?;
        let requests = signer.reads((0..1_000).map(|number| number * 17 % ITEM_COUNT))?;
        let read = Load { requests, connections: READ_CONNECTIONS, time_max, repeat: true, status: 200 };
        let per_second = CREATE_CONNECTIONS as f64 / CREATE_INTERVAL.as_secs_f64();
        let count = (time_max.as_secs_f64() * per_second) as u64 + 1;
        let requests = signer.creates(self.created..self.created + count)?;
        self.created += count;
        let create = Load { requests, connections: CREATE_CONNECTIONS, time_max, repeat: false, status: 201 };
        let loads = vec![(read, READ_INTERVAL), (create, CREATE_INTERVAL)];
        let outcomes = load::run_paced(self.server.address, loads, is_over)?;
        Ok(Foreground { read: outcomes[0], create: outcomes[1] })
    }

    /// Measures from the beginning of a work to its end.
    fn beside(&mut self, work: &Work, task: Task, quiet: Foreground) -> anyhow::Result<Beside> {
        let is_over = Arc::new(AtomicBool::new(false));
        let before = self.server.usage()?;
        let watcher = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            let (begin, is_done) = (work.begin, work.is_done);
            move || -> anyhow::Result<f64> {
                let began = Instant::now();
                let outcome = begin(&task).and_then(|()| {
                    while began.elapsed() < WORK_MIN || (began.elapsed() < WORK_MAX && !is_done(&task)?) {
                        std::thread::sleep(LOOK_INTERVAL);
                    }
                    Ok(began.elapsed().as_secs_f64())
                });
                is_over.store(true, Relaxed);
                outcome
            }
        });
        let during = self.measure(&is_over, WORK_MAX * 2)?;
        let seconds = watcher.join().expect("a watcher ends")?;
        let cpu = self.server.usage()?.since(before).0;
        let began = Instant::now();
        while began.elapsed() < REST_MAX && !(work.is_done)(&task)? {
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(Beside { quiet, during, seconds, cpu })
    }
}

const COLUMNS: [&str; 9] = [
    "beside",
    "s",
    "server CPU s",
    "read p50 us",
    "read p99 us",
    "p99 / quiet",
    "create p50 us",
    "create p99 us",
    "p99 / quiet",
];

fn print(rounds: &[Vec<Beside>], size: u64, report: &mut Report) {
    let title = format!(
        "1,000 point reads and 200 creates a second beside work on a container of {size} documents of 1 KB"
    );
    let mut table = Table::new(&title, &COLUMNS);
    let row = |all: &[&Foreground]| {
        let of = |value: fn(&Foreground) -> f64| median(all.iter().map(|one| value(one)));
        [of(|one| one.read.p50_micros), of(read_p99), of(|one| one.create.p50_micros), of(create_p99)]
    };
    let quiet: Vec<&Foreground> = rounds.iter().flatten().map(|beside| &beside.quiet).collect();
    let [read, read_slow, create, create_slow] = row(&quiet);
    let nothing = f64::NAN;
    table.row(&["nothing"], &[nothing, nothing, read, read_slow, 1.0, create, create_slow, 1.0]);
    for (work, rounds) in WORKS.iter().zip(rounds) {
        let during: Vec<&Foreground> = rounds.iter().map(|beside| &beside.during).collect();
        let [read, read_slow, create, create_slow] = row(&during);
        let ratio = |value: fn(&Foreground) -> f64| {
            median(rounds.iter().map(|beside| value(&beside.during) / value(&beside.quiet)))
        };
        let seconds = median(rounds.iter().map(|beside| beside.seconds));
        let cpu = median(rounds.iter().map(|beside| beside.cpu));
        let values = [seconds, cpu, read, read_slow, ratio(read_p99), create, create_slow, ratio(create_p99)];
        table.row(&[work.name], &values);
        for (what, value) in [("point read", read_p99 as fn(&Foreground) -> f64), ("create", create_p99)] {
            let text = format!("{what} beside {}: p99 / quiet p99", work.name);
            report.goal(text, ratio(value), Bound::AtMost(FACTOR_MAX));
        }
    }
    table.print();
}

fn read_p99(foreground: &Foreground) -> f64 {
    foreground.read.p99_micros
}

fn create_p99(foreground: &Foreground) -> f64 {
    foreground.create.p99_micros
}
