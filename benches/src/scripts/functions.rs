//! User-defined functions as filters, beside the same filters as expressions of the query language.
//!
//! Nothing of the filters can be served by an index, so both look at every document; the answer is a count, so that
//! nothing else weighs. The first function gets two numbers of each document, the second the whole document.

use super::{Turn, Turns, cpu, make_script, of, p50, ratio};
use crate::Plan;
use crate::items::Signer;
use crate::process::Server;
use crate::queries::documents::Documents;
use crate::queries::rows::Variant;
use crate::queries::session::{self, Pages, Refusal, Session};
use crate::report::{Bound, Report, Table, median};
use serde_json::Value;
use std::time::{Duration, Instant};

const DOCUMENT_COUNT: u64 = 100_000;
const DOCUMENT_COUNT_QUICK: u64 = 20_000;
const CONTAINER: &str = "documents";
const ITEM_COUNT_MAX: u32 = 1_000;
const FUNCTIONS: [(&str, &str); 2] = [
    ("above", "function (stock, amount) { return stock + amount > 5000; }"),
    ("isAbove", "function (document) { return document.stock + document.amount > 5000; }"),
];
const BUILT_IN: &str = "SELECT VALUE COUNT(1) FROM c WHERE c.stock + c.amount > 5000";
const QUERIES: [(&str, &str); 2] = [
    ("function of two numbers", "SELECT VALUE COUNT(1) FROM c WHERE udf.above(c.stock, c.amount)"),
    ("function of the document", "SELECT VALUE COUNT(1) FROM c WHERE udf.isAbove(c)"),
];
/// A goal of our own: ten times the built-in expression, document by document.
const RATIO_MAX: f64 = 10.0;

const COLUMNS: [&str; 6] =
    ["filter", "p50 ms", "server CPU ms", "CPU us a document", "p50 / built-in", "CPU / built-in"];

/// Measures and prints.
pub(super) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    let count = if plan.quick { DOCUMENT_COUNT_QUICK } else { DOCUMENT_COUNT };
    session::load(&server, &Documents::new(count)?)?;
    let signer = Signer::new()?;
    for (name, body) in FUNCTIONS {
        make_script(&server, &signer, CONTAINER, "udfs", name, body)?;
    }
    server.usage_when_quiet()?;
    let built_in = counted(&server, BUILT_IN)?;
    let mut rounds: Vec<Vec<Turn>> = Vec::new();
    for (_, sql) in QUERIES {
        let own = counted(&server, sql)?;
        anyhow::ensure!(own == built_in, "{sql} gives {own}, the built-in expression {built_in}");
    }
    for _ in 0..plan.rounds {
        let queries = std::iter::once(BUILT_IN).chain(QUERIES.map(|(_, sql)| sql));
        rounds.push(queries.map(|sql| turn(plan, &server, sql)).collect::<anyhow::Result<_>>()?);
    }
    let side = |place: usize| rounds.iter().map(|turns| turns[place]).collect::<Turns>();
    let title = format!("A filter over {count} documents: user-defined function beside built-in expression");
    let mut table = Table::new(&title, &COLUMNS);
    let names = std::iter::once("built-in expression").chain(QUERIES.map(|(name, _)| name));
    for (place, name) in names.enumerate() {
        let (turns, beside) = (side(place), side(0));
        let each = of(&turns, cpu) / count as f64;
        let ratios = [ratio(&turns, &beside, p50), ratio(&turns, &beside, cpu)];
        table.row(&[name], &[of(&turns, p50) / 1e3, of(&turns, cpu) / 1e3, each, ratios[0], ratios[1]]);
        if place == 1 {
            report.goal(
                "filter by a function of two numbers: CPU / built-in",
                ratios[1],
                Bound::AtMost(RATIO_MAX),
            );
        }
    }
    table.print();
    server.terminate()
}

/// The one number of an answer.
fn counted(server: &Server, sql: &str) -> anyhow::Result<Value> {
    let variant = Variant::Parameters(Vec::new());
    let request = session::request(&Signer::new()?, Some(sql), &variant, ITEM_COUNT_MAX)?;
    let rows = Session::open(server.address)?.query(&request, Pages::All)?;
    let rows = rows.map_err(|Refusal { status, text }| anyhow::anyhow!("{sql}: status {status}: {text}"))?;
    anyhow::ensure!(rows.len() == 1, "{sql}: {} rows", rows.len());
    Ok(rows[0].clone())
}

/// Asks again and again for a while, at least once.
fn turn(plan: &Plan, server: &Server, sql: &str) -> anyhow::Result<Turn> {
    let time = Duration::from_millis(if plan.quick { 300 } else { 1_500 });
    let variant = Variant::Parameters(Vec::new());
    let request = session::request(&Signer::new()?, Some(sql), &variant, ITEM_COUNT_MAX)?;
    let mut session = Session::open(server.address)?;
    let before = server.usage()?;
    let (began, mut micros) = (Instant::now(), Vec::new());
    while micros.is_empty() || began.elapsed() < time {
        let asked = Instant::now();
        session.run(&request)?;
        micros.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    let count = micros.len();
    let rate = count as f64 / began.elapsed().as_secs_f64();
    let cpu_micros = server.usage()?.since(before).micros_per(count);
    let p50_micros = median(micros);
    Ok(Turn { rate, p50_micros, p99_micros: f64::NAN, cpu_micros })
}
