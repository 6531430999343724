//! How fast are durable writes when everything is indexed, beside PostgreSQL with JSONB and GIN?
//!
//! Two answers: single creates from many connections, and a bulk load of many documents a request, those that queries are
//! asked over: their values differ more than those of the items. PostgreSQL writes the same into a table with a primary
//! key, a GIN index over the documents and a B-tree over the partition key: one INSERT for a create, an INSERT of as many
//! rows as our requests have for the load, and COPY, its fastest way, beside.
//! Invariants
//! - Both servers are durable with each answer, start empty in each round, and take turns.
//! - CPU counts what is done behind the last answer.

use crate::Plan;
use crate::items::{self, Item, Signer};
use crate::load::{self, Load};
use crate::postgres::Postgres;
use crate::postgres::statements::{self, Statements};
use crate::process::{self, Server, Usage};
use crate::queries::documents::Documents;
use crate::report::{Bound, Report, Table, median};
use std::ops::Range;
use std::time::{Duration, Instant};

const CREATE_CONNECTIONS: usize = 64;
const LOAD_CONNECTIONS: usize = 8;
/// Items to a request or statement of a bulk load.
pub(crate) const LOAD_UNIT: u64 = 100;
/// Creates a second that no run exceeds: as many requests are made ready.
const RATE_MAX: f64 = 40_000.0;
const LOAD_MAX: Duration = Duration::from_mins(20);
pub(crate) const TABLE: &str = "CREATE TABLE items (id text PRIMARY KEY, pk text, doc jsonb); \
                     CREATE INDEX ON items USING gin (doc jsonb_path_ops); CREATE INDEX ON items (pk)";
pub(crate) const INSERT: &str = "INSERT INTO items VALUES ($1, $2, $3::text::jsonb)";
pub(crate) const INSERT_MANY: &str =
    "INSERT INTO items SELECT d->>'id', d->>'pk', d FROM jsonb_array_elements($1::text::jsonb) d";

/// What one side did in one round.
#[derive(Debug, Clone, Copy)]
struct Turn {
    rate: f64,
    cpu_micros: f64,
}

impl Turn {
    fn new(item_count: u64, seconds: f64, usage: Usage) -> Turn {
        Turn { rate: item_count as f64 / seconds, cpu_micros: usage.micros_per(item_count as usize) }
    }
}

/// Sides of a comparison in their order, ours first, each with its turns.
type Sides = Vec<(&'static str, Vec<Turn>)>;

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let postgres = match Postgres::start() {
        Ok(postgres) => Some(postgres),
        Err(error) => {
            println!("\nPostgreSQL is left out: {error:#}");
            None
        }
    };
    let mut creates: Sides = vec![("astrarium", Vec::new())];
    let mut loads: Sides = vec![("astrarium, bulk requests", Vec::new())];
    if postgres.is_some() {
        creates.push(("PostgreSQL, INSERT", Vec::new()));
        loads.push(("PostgreSQL, INSERT of 100 rows", Vec::new()));
        loads.push(("PostgreSQL, COPY", Vec::new()));
    }
    let seconds = if plan.quick { 1.5 } else { 4.0 };
    let load_count = if plan.quick { 10_000 } else { 200_000 };
    let documents = Documents::new(load_count)?;
    for _ in 0..plan.rounds {
        creates[0].1.push(create(plan, seconds)?);
        loads[0].1.push(bulk(plan, &documents)?);
        let Some(postgres) = &postgres else { continue };
        creates[1].1.push(create_postgres(postgres, seconds)?);
        loads[1].1.push(insert_many(postgres, &documents)?);
        loads[2].1.push(copy(postgres, &documents)?);
    }
    print(
        &format!("Durable creates of 1 KB, {CREATE_CONNECTIONS} connections, everything indexed"),
        &creates,
    );
    print(&format!("Bulk load of {load_count} documents of 1 KB, everything indexed"), &loads);
    if postgres.is_some() {
        let rate = |sides: &Sides| ratio(&sides[0].1, &sides[1].1, |turn| turn.rate);
        report.goal("durable creates: rate / PostgreSQL's with GIN", rate(&creates), Bound::AtLeast(1.2));
        report.goal("bulk load: rate / PostgreSQL's INSERT with GIN", rate(&loads), Bound::AtLeast(1.0));
    }
    Ok(())
}

/// Ours divided by theirs within each round.
fn ratio(ours: &[Turn], theirs: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| value(ours) / value(theirs)))
}

fn print(title: &str, sides: &Sides) {
    let mut table = Table::new(title, &["what", "items/s", "CPU us/item", "our rate / its", "our CPU / its"]);
    for (name, turns) in sides {
        let of = |value: fn(&Turn) -> f64| median(turns.iter().map(value));
        let ours = &sides[0].1;
        let values = [
            of(|turn| turn.rate),
            of(|turn| turn.cpu_micros),
            ratio(ours, turns, |turn| turn.rate),
            ratio(ours, turns, |turn| turn.cpu_micros),
        ];
        table.row(&[name], &values);
    }
    table.print();
}

/// A server on an empty folder, with the container.
fn start(plan: &Plan) -> anyhow::Result<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    setup(&server)?;
    Ok((folder, server))
}

/// Makes database and container.
pub(crate) fn setup(server: &Server) -> anyhow::Result<()> {
    for request in Signer::new()?.setup()? {
        let answer = load::once(server.address, &request)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

fn create(plan: &Plan, seconds: f64) -> anyhow::Result<Turn> {
    let (_folder, server) = start(plan)?;
    let requests = Signer::new()?.creates(0..(RATE_MAX * seconds) as u64)?;
    let time_max = Duration::from_secs_f64(seconds);
    let load = Load { requests, connections: CREATE_CONNECTIONS, time_max, repeat: false, status: 201 };
    let before = server.usage_when_quiet()?;
    let outcome = load::run(server.address, load)?;
    let usage = server.usage_when_quiet()?.since(before);
    server.kill()?;
    Ok(Turn::new(outcome.count as u64, outcome.seconds, usage))
}

fn bulk(plan: &Plan, documents: &Documents) -> anyhow::Result<Turn> {
    let (_folder, server) = start(plan)?;
    let before = server.usage_when_quiet()?;
    let document = |number| documents.document(number);
    let seconds = load_items(&server, items::CONTAINER, documents.count, document)?;
    let usage = server.usage_when_quiet()?.since(before);
    server.kill()?;
    Ok(Turn::new(documents.count, seconds, usage))
}

/// Loads items through bulk requests, and gives the seconds it took.
pub(crate) fn load_items(
    server: &Server,
    container: &str,
    count: u64,
    item: impl Fn(u64) -> Item + Copy,
) -> anyhow::Result<f64> {
    // Not more than some hundred megabytes of requests are ready at once.
    const READY: u64 = 100_000;
    let mut seconds = 0.0;
    for first in (0..count).step_by(READY as usize) {
        let signer = Signer::new()?;
        let requests =
            units(first..count.min(first + READY)).map(|unit| signer.bulk(container, unit.map(item)));
        let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
        let expected = requests.len();
        let load =
            Load { requests, connections: LOAD_CONNECTIONS, time_max: LOAD_MAX, repeat: false, status: 200 };
        let outcome = load::run(server.address, load)?;
        anyhow::ensure!(outcome.count == expected, "only {} bulk requests were answered", outcome.count);
        seconds += outcome.seconds;
    }
    Ok(seconds)
}

/// The numbers of each request.
pub(crate) fn units(numbers: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = numbers.end;
    numbers.step_by(LOAD_UNIT as usize).map(move |first| first..end.min(first + LOAD_UNIT))
}

fn create_postgres(postgres: &Postgres, seconds: f64) -> anyhow::Result<Turn> {
    let count = (RATE_MAX * seconds) as u64;
    let values = (0..count).map(items::item).map(|item| vec![item.id, item.partition_key, item.text]);
    let time_max = Duration::from_secs_f64(seconds);
    run_statements(postgres, INSERT, &values.collect::<Vec<_>>(), (CREATE_CONNECTIONS, time_max, 1))
}

fn insert_many(postgres: &Postgres, documents: &Documents) -> anyhow::Result<Turn> {
    let array = |unit: Range<u64>| {
        let texts: Vec<String> = unit.map(|number| documents.document(number).text).collect();
        vec![format!("[{}]", texts.join(","))]
    };
    let values: Vec<_> = units(0..documents.count).map(array).collect();
    run_statements(postgres, INSERT_MANY, &values, (LOAD_CONNECTIONS, LOAD_MAX, LOAD_UNIT))
}

/// Runs a statement with each of the values once, from several connections, for a while at most.
fn run_statements(
    postgres: &Postgres,
    sql: &str,
    values: &[Vec<String>],
    (connections, time_max, items_each): (usize, Duration, u64),
) -> anyhow::Result<Turn> {
    postgres.connect()?.execute(TABLE)?;
    let before = process::usage_when_quiet(|| postgres.usage())?;
    let load = Statements { sql, values, connections, time_max, repeat: false };
    let outcome = statements::run(|| postgres.connect(), &load)?;
    let usage = process::usage_when_quiet(|| postgres.usage())?.since(before);
    postgres.connect()?.execute("DROP TABLE items; CHECKPOINT")?;
    Ok(Turn::new(outcome.count as u64 * items_each, outcome.seconds, usage))
}

fn copy(postgres: &Postgres, documents: &Documents) -> anyhow::Result<Turn> {
    let mut client = postgres.connect()?;
    client.execute(TABLE)?;
    let chunk =
        |unit: Range<u64>| unit.map(|number| copy_line(&documents.document(number))).collect::<String>();
    let chunks: Vec<String> = units(0..documents.count).map(chunk).collect();
    let before = process::usage_when_quiet(|| postgres.usage())?;
    let began = Instant::now();
    client.copy_in("items", chunks.into_iter())?;
    let seconds = began.elapsed().as_secs_f64();
    let usage = process::usage_when_quiet(|| postgres.usage())?.since(before);
    client.execute("DROP TABLE items; CHECKPOINT")?;
    Ok(Turn::new(documents.count, seconds, usage))
}

/// A row in COPY's text form, in which a backslash begins an escape, too.
pub(crate) fn copy_line(item: &Item) -> String {
    format!("{}\t{}\t{}\n", item.id, item.partition_key, item.text.replace('\\', "\\\\"))
}
