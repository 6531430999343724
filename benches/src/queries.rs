//! How fast are queries, beside PostgreSQL with JSONB over the same documents?
//!
//! Three answers: latency and server CPU of each question in `rows`, at every size, with their growth; what parsing and
//! planning cost (`compile`); what memory a running query takes (`memory`). Both servers are asked by one blocking
//! client over one connection, in turns.
//! Invariants
//! - A row has figures only if both servers give the same answer to every variant, of the known size; otherwise the row
//!   says what is wrong, and the run fails in the end.
//! - Ratios are taken within a round, always PostgreSQL's figure divided by ours: above 1 we are faster.

pub(crate) mod answers;
mod compile;
pub(crate) mod documents;
mod memory;
pub(crate) mod rows;
pub(crate) mod session;

use crate::Plan;
use crate::items::Signer;
use crate::postgres::Postgres;
use crate::postgres::client::{Client, Statement};
use crate::process::{Server, Usage};
use crate::report::{Bound, Report, Table, median};
use documents::Documents;
use rows::{Rival, Row};
use serde_json::Value;
use session::{Pages, Refusal, Request, Session};
use std::time::{Duration, Instant};

/// More than any answer has.
pub(crate) const ITEM_COUNT_MAX: u32 = 2_000;
/// PostgreSQL's parallel workers end a moment after their query; they are counted when they have.
const SETTLE: Duration = Duration::from_millis(20);
/// Documents to a message while PostgreSQL is loaded.
const COPY_UNIT: u64 = 1_000;

/// One turn of one server at one question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) p50_micros: f64,
    pub(crate) cpu_micros: f64,
}

/// Turns of one server, one for each round.
type Turns = Vec<Turn>;

/// A question's figures.
struct Measured {
    ours: Turns,
    rivals: Vec<Turns>,
}

/// What became of a question at one size.
enum Outcome {
    Measured(Measured),
    /// Refused, as the service does.
    Refused,
    Wrong(String),
}

/// All questions at one size, in order.
struct Size {
    count: u64,
    rows: Vec<(Row, Outcome)>,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    compile::answer(report)?;
    let postgres = match Postgres::start() {
        Ok(postgres) => {
            println!("\nBeside PostgreSQL {}", postgres.description()?);
            Some(postgres)
        }
        Err(error) => {
            println!("\nPostgreSQL is left out: {error:#}");
            None
        }
    };
    let mut sizes = Vec::new();
    for (place, count) in plan.sizes.iter().enumerate() {
        let documents = Documents::new(*count)?;
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        let server = Server::start(&plan.server, &data)?;
        let size = measure_size(plan, &server, postgres.as_ref(), &documents)?;
        size.print();
        for (row, outcome) in &size.rows {
            if let Outcome::Wrong(text) = outcome {
                report.wrong(format!("{}, {count} documents: {text}", row.name));
            }
        }
        sizes.push(size);
        server.terminate()?;
        if place + 1 == plan.sizes.len() {
            memory::answer(&plan.server, &data, &documents)?;
        }
    }
    print_growth(&sizes, report);
    if let Some(last) = sizes.last() {
        last.add_goals(report);
    }
    Ok(())
}

fn measure_size(
    plan: &Plan,
    server: &Server,
    postgres: Option<&Postgres>,
    documents: &Documents,
) -> anyhow::Result<Size> {
    session::load(server, documents)?;
    let mut client = postgres.map(Postgres::connect).transpose()?;
    if let Some(client) = &mut client {
        load_postgres(client, documents)?;
    }
    // What loading left behind (flushes, compaction) must not be counted as a query's.
    server.usage_when_quiet()?;
    let mut measured = Vec::new();
    let (lookups, scans): (Vec<Row>, Vec<Row>) =
        rows::rows(documents).into_iter().partition(|row| row.indexed);
    let mut rivals = postgres.zip(client.as_mut());
    for row in scans {
        let outcome = measure(plan, server, rivals.as_mut(), &row)?;
        measured.push((row, outcome));
    }
    // Only now, so that scans find the first table as warm as it gets.
    if let Some((_, client)) = &mut rivals {
        execute_all(client, &rows::INDEX_EXPRESSIONS)?;
        client.execute("VACUUM ANALYZE trees")?;
    }
    for row in lookups {
        let outcome = measure(plan, server, rivals.as_mut(), &row)?;
        measured.push((row, outcome));
    }
    if let Some((_, client)) = &mut rivals {
        client.execute("DROP TABLE documents, trees")?;
    }
    Ok(Size { count: documents.count, rows: measured })
}

fn load_postgres(client: &mut Client, documents: &Documents) -> anyhow::Result<()> {
    client.execute("CREATE TABLE documents (id text, pk text, doc jsonb)")?;
    let line = |number: u64| {
        let document = documents.document(number);
        // A backslash begins an escape in COPY's text, too.
        let text = document.text.replace('\\', "\\\\");
        format!("{}\t{}\t{text}\n", document.id, document.partition_key)
    };
    let chunk = |first: u64| (first..documents.count.min(first + COPY_UNIT)).map(line).collect::<String>();
    client.copy_in("documents", (0..documents.count).step_by(COPY_UNIT as usize).map(chunk))?;
    execute_all(client, &rows::INDEX)?;
    client.execute("VACUUM ANALYZE documents")?;
    client.execute("CHECKPOINT")
}

fn execute_all(client: &mut Client, commands: &[&str]) -> anyhow::Result<()> {
    commands.iter().try_for_each(|command| client.execute(command))
}

/// Checks a question's answers, then takes turns.
fn measure(
    plan: &Plan,
    server: &Server,
    rivals: Option<&mut (&Postgres, &mut Client)>,
    row: &Row,
) -> anyhow::Result<Outcome> {
    let signer = Signer::new()?;
    let requests = row.variants.iter().map(|it| session::request(&signer, row.sql, it, ITEM_COUNT_MAX));
    let requests = requests.collect::<anyhow::Result<Vec<Request>>>()?;
    let mut session = Session::open(server.address)?;
    let mut ours = Vec::new();
    for request in &requests {
        match session.query(request, Pages::All)? {
            Ok(rows) if rows.len() as u64 == row.answer.row_count => ours.push(rows),
            Ok(rows) => {
                return Ok(Outcome::Wrong(format!("{} rows, expected {}", rows.len(), row.answer.row_count)));
            }
            Err(Refusal { status: 400, .. }) if row.answer.may_be_refused => return Ok(Outcome::Refused),
            Err(Refusal { status, text }) => return Ok(Outcome::Wrong(format!("status {status}: {text}"))),
        }
    }
    let mut asked = Vec::new();
    let mut rivals = rivals;
    if let Some((_, client)) = &mut rivals {
        for rival in &row.rivals {
            let statement = client.prepare(rival.sql)?;
            if let Some(difference) = compare(client, &statement, rival, &ours, row.answer.ordered)? {
                return Ok(Outcome::Wrong(difference));
            }
            asked.push((rival, statement));
        }
    }
    let mut measured = Measured { ours: Vec::new(), rivals: asked.iter().map(|_| Vec::new()).collect() };
    let time = Duration::from_millis(if plan.quick { 200 } else { 400 });
    for _ in 0..plan.rounds {
        let run = |at: usize| session.run(&requests[at % requests.len()]);
        measured.ours.push(turn(time, run, || server.usage())?);
        let Some((postgres, client)) = &mut rivals else { continue };
        for ((rival, statement), turns) in asked.iter().zip(&mut measured.rivals) {
            let run = |at: usize| client.run(statement, &rival.values[at % rival.values.len()]);
            turns.push(turn(time, run, || postgres.usage())?);
        }
    }
    Ok(Outcome::Measured(measured))
}

/// The first difference of any variant.
fn compare(
    client: &mut Client,
    statement: &Statement,
    rival: &Rival,
    ours: &[Vec<Value>],
    ordered: bool,
) -> anyhow::Result<Option<String>> {
    for (values, ours) in rival.values.iter().zip(ours) {
        let theirs = client.query(statement, values)?;
        if let Some(difference) = answers::difference(ours, &theirs, ordered) {
            return Ok(Some(format!("{values:?}: {difference}")));
        }
    }
    Ok(None)
}

/// Asks again and again for a while, at least once.
pub(crate) fn turn(
    time: Duration,
    mut run: impl FnMut(usize) -> anyhow::Result<()>,
    usage: impl Fn() -> anyhow::Result<Usage>,
) -> anyhow::Result<Turn> {
    let before = usage()?;
    let began = Instant::now();
    let mut micros = Vec::new();
    while micros.is_empty() || began.elapsed() < time {
        let asked = Instant::now();
        run(micros.len())?;
        micros.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    std::thread::sleep(SETTLE);
    let cpu_micros = usage()?.since(before).micros_per(micros.len());
    Ok(Turn { p50_micros: median(micros), cpu_micros })
}

fn of(turns: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(value))
}

/// PostgreSQL's figure divided by ours, within rounds; nothing without PostgreSQL.
fn ratio(theirs: &[Turn], ours: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(theirs.iter().zip(ours).map(|(theirs, ours)| value(theirs) / value(ours)))
}

fn p50(turn: &Turn) -> f64 {
    turn.p50_micros
}

fn cpu(turn: &Turn) -> f64 {
    turn.cpu_micros
}

const COLUMNS: [&str; 8] = [
    "query",
    "PostgreSQL's index",
    "p50 us",
    "PostgreSQL p50 us",
    "PostgreSQL / ours",
    "CPU us",
    "PostgreSQL CPU us",
    "CPU: PostgreSQL / ours",
];

impl Size {
    fn print(&self) {
        for indexed in [false, true] {
            let title = if indexed { "Queries that an index serves" } else { "Queries that no index serves" };
            let mut table = Table::new(&format!("{title}, {} documents of 1 KB", self.count), &COLUMNS);
            for (row, outcome) in self.rows.iter().filter(|(row, _)| row.indexed == indexed) {
                match outcome {
                    Outcome::Measured(measured) => measured.add_to(&mut table, row),
                    Outcome::Refused => table.row(&[row.name, "refused, as by the service"], &[]),
                    Outcome::Wrong(_) => table.row(&[row.name, "WRONG ANSWER"], &[]),
                }
            }
            table.print();
        }
        for (row, outcome) in &self.rows {
            if let Outcome::Wrong(text) = outcome {
                println!("Wrong: {}: {text}", row.name);
            }
        }
    }

    fn measured(&self) -> impl Iterator<Item = (&Row, &Measured)> {
        self.rows.iter().filter_map(|(row, outcome)| match outcome {
            Outcome::Measured(measured) => Some((row, measured)),
            _ => None,
        })
    }

    /// What is to be reached at the largest size.
    fn add_goals(&self, report: &mut Report) {
        let cpu_of = |name: &str| {
            let found = self.measured().find(|(row, _)| row.name == name);
            found.map_or(f64::NAN, |(_, measured)| of(&measured.ours, cpu))
        };
        let relative = cpu_of(rows::EQUALITY) / cpu_of(rows::POINT_READ);
        report.goal("equality query: server CPU / a point read's", relative, Bound::AtMost(2.0));
        for (row, measured) in self.measured() {
            let (Some(least), [base, ..]) = (row.goals.ratio_min, measured.rivals.as_slice()) else {
                continue;
            };
            let kind = if row.indexed { "indexed" } else { "not indexed" };
            let text = format!("{} ({kind}), {} documents: p50 PostgreSQL / ours", row.name, self.count);
            report.goal(text, ratio(base, &measured.ours, p50), Bound::AtLeast(least));
        }
    }
}

impl Measured {
    fn add_to(&self, table: &mut Table, row: &Row) {
        let own = [of(&self.ours, p50), of(&self.ours, cpu)];
        if self.rivals.is_empty() {
            table.row(&[row.name, "-"], &[own[0], f64::NAN, f64::NAN, own[1]]);
        }
        for (rival, turns) in row.rivals.iter().zip(&self.rivals) {
            let values = [
                own[0],
                of(turns, p50),
                ratio(turns, &self.ours, p50),
                own[1],
                of(turns, cpu),
                ratio(turns, &self.ours, cpu),
            ];
            table.row(&[row.name, rival.index], &values);
        }
    }
}

/// How many times the CPU of the smallest size each question takes at every larger one, ours and then PostgreSQL's.
fn print_growth(sizes: &[Size], report: &mut Report) {
    let [first, larger @ ..] = sizes else { return };
    let Some(last) = larger.last() else { return };
    let mut columns = vec!["query".to_owned(), "indexed".to_owned(), "PostgreSQL's index".to_owned()];
    columns.extend(larger.iter().map(|size| format!("{}", size.count)));
    columns.extend(larger.iter().map(|size| format!("PostgreSQL {}", size.count)));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&format!("Growth of CPU from {} documents to", first.count), &columns);
    for (row, small) in first.measured() {
        let growth = |small: &[Turn], large: &[Turn]| of(large, cpu) / of(small, cpu);
        let at = |size: &Size, value: &dyn Fn(&Measured) -> Option<f64>| {
            let same = |other: &Row| other.name == row.name && other.indexed == row.indexed;
            let found = size.measured().find(|(other, _)| same(other));
            found.and_then(|(_, large)| value(large)).unwrap_or(f64::NAN)
        };
        let own = |size: &Size| at(size, &|large| Some(growth(&small.ours, &large.ours)));
        let kind = if row.indexed { "yes" } else { "no" };
        let ours: Vec<f64> = larger.iter().map(own).collect();
        if small.rivals.is_empty() {
            table.row(&[row.name, kind, "-"], &ours);
        }
        for (place, (rival, small)) in row.rivals.iter().zip(&small.rivals).enumerate() {
            let theirs = |size: &Size| at(size, &|large| Some(growth(small, large.rivals.get(place)?)));
            let values: Vec<f64> = ours.iter().copied().chain(larger.iter().map(theirs)).collect();
            table.row(&[row.name, kind, rival.index], &values);
        }
        if let Some(most) = row.goals.growth_max {
            let text = format!("{}: growth of CPU from {} to {}", row.name, first.count, last.count);
            report.goal(text, own(last), Bound::AtMost(most));
        }
    }
    table.print();
}
