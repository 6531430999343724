//! What a query costs before it reads anything: parsing with its checks, and planning, in the server's own crates.

use super::documents::{COUNT_UNIT, Documents};
use super::rows::{self, Row, Variant};
use crate::report::{Bound, Report, Table, median};
use anyhow::Context as _;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_sql_plan::{Catalog, Parameters};
use astrarium_sql_syntax::ast::SelectQuery;
use std::hint::black_box;
use std::time::Instant;

const BATCH_COUNT: usize = 51;
const BATCH_SIZE: usize = 200;
/// The goal of the design for parsing and planning together.
const MICROS_MAX: f64 = 20.0;

/// Measures all queries of the questions.
pub(crate) fn answer(report: &mut Report) -> anyhow::Result<()> {
    let definition = ContainerDefinition::from_json(&Documents::container("documents"))?;
    // The texts are the same for any count.
    let documents = Documents::new(COUNT_UNIT)?;
    let mut table = Table::new("Parse and plan, without reading anything", &COLUMNS);
    let mut slowest: f64 = 0.0;
    for row in rows::rows(&documents) {
        let Some(text) = row.sql else { continue };
        let parameters = parameters(&row);
        let catalog = Catalog { container: Some(&definition) };
        let tree = parse(text)?;
        astrarium_sql_plan::plan(&tree, &catalog, &parameters).ok().with_context(|| text.to_owned())?;
        let parse_micros = time(|| drop(black_box(parse(black_box(text)))));
        let plan_micros =
            time(|| drop(black_box(astrarium_sql_plan::plan(black_box(&tree), &catalog, &parameters))));
        slowest = slowest.max(parse_micros + plan_micros);
        table.row(&[text], &[parse_micros, plan_micros, parse_micros + plan_micros]);
    }
    table.print();
    report.goal("parse and plan, slowest of the queries, us", slowest, Bound::AtMost(MICROS_MAX));
    Ok(())
}

const COLUMNS: [&str; 4] = ["query", "parse us", "plan us", "both us"];

fn parse(text: &str) -> anyhow::Result<SelectQuery> {
    let tree = astrarium_sql_syntax::parse(text).ok().with_context(|| format!("parse {text}"))?;
    anyhow::ensure!(astrarium_sql_syntax::check(&tree, text).is_empty(), "{text} breaks a rule");
    Ok(tree)
}

fn parameters(row: &Row) -> Parameters {
    let Some(Variant::Parameters(parameters)) = row.variants.first() else { return Parameters::default() };
    let value = |value: &serde_json::Value| match value.as_str() {
        Some(text) => astrarium_value::Value::from(text),
        None => astrarium_value::Value::from(value.as_f64().unwrap_or(f64::NAN)),
    };
    Parameters::new(parameters.iter().map(|(name, own)| ((*name).to_owned(), value(own))).collect())
}

/// Microseconds of one call: the median of batches.
fn time(mut call: impl FnMut()) -> f64 {
    let batch = |_| {
        let began = Instant::now();
        (0..BATCH_SIZE).for_each(|_| call());
        began.elapsed().as_secs_f64() * 1e6 / BATCH_SIZE as f64
    };
    median((0..BATCH_COUNT).map(batch))
}
