//! In which form is the index kept on PostgreSQL: a row for each term, or packed blocks that are merged into runs?
//!
//! Both on one PostgreSQL, in one run, taking turns: groups of documents are committed under one counter row, as the engine does it
//! for a range. Beside them the same without any index, which is the limit, and plain PostgreSQL: a table of `jsonb` with GIN, as many
//! documents to a statement. Then a longer load of each form, to see whether it grows slower, and lookups on what it left.
//! Invariants
//! - Writes are durable (`fsync`), 512 MB of shared buffers, everything else as PostgreSQL comes. Tables are new for every turn.
//! - CPU counts what is done behind the last commit: all blocks are merged into runs.
//! - Both forms find as many terms, or there are no figures.
//!
//! Not here: our server and its engine. This was asked before they were written (`docs/decisions/0028-the-index-on-postgresql.md`).

mod documents;
mod forms;
mod lookups;
mod set;

use crate::Plan;
use crate::process::{Usage, family_usage, own_usage, usage_when_quiet};
use crate::report::{Bound, Report, Table, median};
use anyhow::Context as _;
use astrarium_postgres_fixture::{Cluster, Installation, Settings};
use documents::TERM_COUNT;
use forms::{Committer, Form};
use set::Set;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections that commit, and documents of each of their groups.
const CELLS: [(u64, u64); 4] = [(1, 1), (1, 16), (1, 64), (4, 16)];
const LOAD_CELL: (u64, u64) = (1, 64);

/// PostgreSQL under measurement.
struct Bench {
    cluster: Cluster,
}

/// What one form did in one turn, for each document.
#[derive(Clone, Copy)]
struct Turn {
    rate: f64,
    store_cpu_micros: f64,
    client_cpu_micros: f64,
    wal_bytes: f64,
    disk_bytes: f64,
    index_bytes: f64,
    /// Of the first and of the last tenth.
    rates: (f64, f64),
}

/// When a turn ends.
#[derive(Clone, Copy)]
enum End {
    After(Duration),
    At(u64),
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(missing) => {
            println!("\nThe index on PostgreSQL is left out: {missing}");
            return Ok(());
        }
    };
    let settings = Settings::default().durable().with("shared_buffers", "512MB");
    let bench = Bench { cluster: Cluster::start(&installation, settings)? };
    println!("\n{}, fsync on, 512 MB of shared buffers", installation.version()?);
    commits(&bench, plan, report)?;
    loads(&bench, plan, report)
}

/// Groups of several sizes, each form in turn.
fn commits(bench: &Bench, plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let time = Duration::from_secs(if plan.quick { 3 } else { 8 });
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); CELLS.len() * Form::ALL.len()];
    for _ in 0..plan.rounds {
        let cells = CELLS.iter().flat_map(|cell| Form::ALL.map(|form| (*cell, form)));
        for ((cell, form), turns) in cells.zip(&mut turns) {
            turns.push(bench.turn(form, cell, End::After(time))?);
        }
    }
    let title =
        format!("Commits of 1 KB documents with {TERM_COUNT} terms of 33 bytes under one counter row");
    let mut table = Table::new(&title, &COLUMNS);
    for (cell, turns) in CELLS.iter().zip(turns.chunks(Form::ALL.len())) {
        let (writers, group) = (cell.0.to_string(), cell.1.to_string());
        let of_rows = &turns[1];
        for (form, turns) in Form::ALL.iter().zip(turns) {
            let of = |value: fn(&Turn) -> f64| median(turns.iter().map(value));
            let values = [
                of(|turn| turn.rate),
                ratio(turns, of_rows, |turn| turn.rate),
                of(|turn| turn.store_cpu_micros),
                of(|turn| turn.client_cpu_micros),
                of(|turn| turn.wal_bytes),
                of(|turn| turn.disk_bytes),
                of(|turn| turn.index_bytes),
            ];
            table.row(&[&writers, &group, form.name()], &values);
        }
        if *cell == LOAD_CELL {
            let rate = |other: usize| ratio(&turns[2], &turns[other], |turn| turn.rate);
            report.goal("index on PostgreSQL: packed / row for each term", rate(1), Bound::AtLeast(5.0));
            report.goal("index on PostgreSQL: packed / plain with GIN", rate(3), Bound::AtLeast(1.0));
        }
    }
    table.print();
    Ok(())
}

const COLUMNS: [&str; 10] = [
    "writers",
    "group",
    "form",
    "documents/s",
    "/ rows",
    "store CPU us",
    "client CPU us",
    "WAL B",
    "disk B",
    "index B",
];

/// Ours divided by theirs within each round.
fn ratio(ours: &[Turn], theirs: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| value(ours) / value(theirs)))
}

/// A longer load of each form, and lookups on what it left.
fn loads(bench: &Bench, plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let count = if plan.quick { 20_000 } else { 200_000 };
    let (mut turns, mut ways) = (Vec::new(), Vec::new());
    for form in [Form::Rows, Form::Packed] {
        turns.push((form, bench.turn(form, LOAD_CELL, End::At(count))?));
        ways.push(lookups::measure(bench, form, count)?);
    }
    let title = format!("Loads of {count} documents in groups of {}", LOAD_CELL.1);
    let columns =
        ["form", "documents/s", "first tenth", "last tenth", "store CPU us", "WAL B", "disk B", "index B"];
    let mut table = Table::new(&title, &columns);
    for (form, turn) in &turns {
        let Turn { rate, rates, store_cpu_micros, wal_bytes, disk_bytes, index_bytes, .. } = *turn;
        let values = [rate, rates.0, rates.1, store_cpu_micros, wal_bytes, disk_bytes, index_bytes];
        table.row(&[form.name()], &values);
    }
    table.print();
    let title = "Lookups of all terms with a value, one after the other";
    let mut table = Table::new(title, &["what", "us", "store CPU us", "client CPU us", "terms found"]);
    for way in ways.iter().flatten() {
        let found = way.found.map_or(f64::NAN, |found| found as f64);
        table.row(&[&way.name], &[way.micros, way.store_cpu_micros, way.client_cpu_micros, found]);
    }
    table.print();
    let found = |ways: &[lookups::Lookups]| ways.iter().filter_map(|way| way.found).collect::<Vec<_>>();
    if found(&ways[0]) != found(&ways[1]) {
        report.wrong("rows and packed blocks do not find the same number of terms");
    }
    Ok(())
}

impl Bench {
    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.cluster.port()))
    }

    /// CPU of all processes of PostgreSQL.
    fn usage(&self) -> anyhow::Result<Usage> {
        family_usage(*self.cluster.processes().first().context("PostgreSQL is running")?)
    }

    /// Writes documents in a form, on new tables.
    fn turn(&self, form: Form, (writers, group): (u64, u64), end: End) -> anyhow::Result<Turn> {
        form.make_tables(&mut forms::connect(self.address())?)?;
        let set = if form == Form::Packed { Some(Set::start(self.address())?) } else { None };
        let committers = (0..writers).map(|_| Committer::new(self.address(), form));
        let committers = committers.collect::<anyhow::Result<Vec<_>>>()?;
        let (wal, store, client) = (self.wal()?, usage_when_quiet(|| self.usage())?, own_usage()?);
        let written = write(committers, set.as_ref(), group, end)?;
        set.map_or(Ok(()), Set::finish)?;
        let client_cpu_micros = own_usage()?.since(client).micros_per(written.count as usize);
        let store = usage_when_quiet(|| self.usage())?.since(store);
        let (disk, index) = self.sizes(form)?;
        let each = |total: f64| total / written.count as f64;
        Ok(Turn {
            rate: written.count as f64 / written.seconds,
            store_cpu_micros: store.micros_per(written.count as usize),
            client_cpu_micros,
            wal_bytes: each(self.wal()? - wal),
            disk_bytes: each(disk),
            index_bytes: each(index),
            rates: written.rates,
        })
    }

    /// Bytes of write-ahead log so far.
    fn wal(&self) -> anyhow::Result<f64> {
        Ok(self.cluster.psql("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")?.parse()?)
    }

    /// Bytes of a form's tables, and of its index.
    fn sizes(&self, form: Form) -> anyhow::Result<(f64, f64)> {
        let sizes = self.cluster.psql(&format!("SELECT {}", form.size()))?;
        let (disk, index) = sizes.split_once('|').context("read the sizes")?;
        Ok((disk.parse()?, index.parse()?))
    }
}

/// What was written.
struct Written {
    count: u64,
    seconds: f64,
    /// Documents a second in the first and in the last tenth.
    rates: (f64, f64),
}

/// Commits groups of documents from all committers at once.
fn write(committers: Vec<Committer>, set: Option<&Set>, group: u64, end: End) -> anyhow::Result<Written> {
    let began = Instant::now();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    // When each tenth was done.
    let tenths = [const { AtomicU64::new(0) }; 10];
    let work = |mut committer: Committer| -> anyhow::Result<()> {
        loop {
            let first = next.fetch_add(group, Ordering::Relaxed);
            let numbers = match end {
                End::After(time) if began.elapsed() >= time => return Ok(()),
                End::At(count) if first >= count => return Ok(()),
                End::After(_) => first..first + group,
                End::At(count) => first..count.min(first + group),
            };
            let count = numbers.end - numbers.start;
            if let (Some((group, block)), Some(set)) = (committer.commit(numbers)?, set) {
                set.publish(group, block)?;
            }
            let now = done.fetch_add(count, Ordering::Relaxed) + count;
            if let End::At(count) = end {
                let tenth = (now * 10).div_ceil(count) as usize - 1;
                tenths[tenth].fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            committers.into_iter().map(|committer| scope.spawn(move || work(committer))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread of the bench ends"))
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let count = done.into_inner();
    let [first, .., before, last] = tenths.map(|tenth| tenth.into_inner() as f64 / 1e6);
    let rate = |seconds: f64| count as f64 / 10.0 / seconds;
    Ok(Written { count, seconds, rates: (rate(first), rate(last - before)) })
}
