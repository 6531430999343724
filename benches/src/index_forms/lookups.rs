//! What it costs to find the documents with a value, in either form, on the tables that a load left.

use super::Bench;
use super::documents::{self, PREFIX_BYTES};
use super::forms::{Form, SHARD, connect};
use super::set::{self, CHUNK_BYTES, READ_CHUNK, Rows};
use crate::process::{own_usage, usage_when_quiet};
use anyhow::Context as _;
use std::ops::ControlFlow;
use std::time::Instant;

const LOOKUPS: u64 = 2_000;
const TERMS: &str = "SELECT k FROM term WHERE shard = $1 AND k >= $2 AND k < $3 ORDER BY k";

/// One way of finding documents.
pub(super) struct Lookups {
    pub(super) name: String,
    pub(super) micros: f64,
    pub(super) store_cpu_micros: f64,
    pub(super) client_cpu_micros: f64,
    /// Terms that were found in all lookups; `None` where none are looked for.
    pub(super) found: Option<u64>,
}

/// The paths that are asked: one where each document has its own value, one with a thousand values.
const PATHS: [(u64, &str); 2] = [(0, "own value"), (5, "one of 1,000 values")];

/// All ways of a form.
pub(super) fn measure(bench: &Bench, form: Form, document_count: u64) -> anyhow::Result<Vec<Lookups>> {
    match form {
        Form::Rows => of_rows(bench, document_count),
        Form::Packed => of_packed(bench, document_count),
        Form::None | Form::Plain => Ok(Vec::new()),
    }
}

fn of_rows(bench: &Bench, document_count: u64) -> anyhow::Result<Vec<Lookups>> {
    let mut client = connect(bench.address())?;
    // As after a while in production, so that no row has to be looked at to see whether it is visible.
    client.execute("VACUUM ANALYZE term")?;
    let statement = client.prepare(TERMS)?;
    let mut ways = Vec::new();
    for (path, name) in PATHS {
        ways.push(timed(bench, format!("rows, {name}"), |number| {
            let (start, end) = range(path, number % document_count);
            let values = [SHARD.to_be_bytes().to_vec(), start.to_vec(), end.to_vec()];
            Ok(Some(client.run_binary(&[(&statement, &values)])?.len() as u64))
        })?);
    }
    Ok(ways)
}

fn of_packed(bench: &Bench, document_count: u64) -> anyhow::Result<Vec<Lookups>> {
    let rows = Rows::connect(bench.address())?;
    let began = Instant::now();
    let view = set::open(&rows, u64::MAX >> 1)?;
    println!(
        "Another server opens the set in {:.1} ms, for which it reads {} rows of 64 KB: {:?}",
        began.elapsed().as_secs_f64() * 1e3,
        rows.chunk_count(),
        view.stats(),
    );
    let mut ways = Vec::new();
    // The first pass fills the cache.
    for warm in [false, true] {
        for (path, name) in PATHS {
            let before = rows.chunk_count();
            let way = timed(bench, format!("packed, {name}"), |number| {
                let (start, end) = range(path, number % document_count);
                let mut found = 0;
                view.scan_forward(&start, &end, |_: &[u8], _: &[u8]| {
                    found += 1;
                    ControlFlow::Continue(())
                })?;
                Ok(Some(found))
            })?;
            if warm {
                anyhow::ensure!(rows.chunk_count() == before, "a warm cache asks nobody");
                ways.push(way);
            }
        }
    }
    let runs = rows.runs()?;
    let (number, count) = *runs.iter().max_by_key(|(_, count)| *count).context("there is a run")?;
    let mut client = connect(bench.address())?;
    let statement = client.prepare(READ_CHUNK)?;
    // The last row of a run is shorter.
    let count = (count - 1).max(1).unsigned_abs();
    ways.push(timed(bench, format!("packed, a row of {} KB", CHUNK_BYTES >> 10), |random| {
        let place = (documents::mixed(random) % u64::from(count)) as i32;
        let values =
            [SHARD.to_be_bytes().to_vec(), number.to_be_bytes().to_vec(), place.to_be_bytes().to_vec()];
        anyhow::ensure!(client.run_binary(&[(&statement, &values)])?.len() == 1, "a row of a run is missing");
        Ok(None)
    })?);
    Ok(ways)
}

fn timed(
    bench: &Bench,
    name: String,
    mut lookup: impl FnMut(u64) -> anyhow::Result<Option<u64>>,
) -> anyhow::Result<Lookups> {
    let before = usage_when_quiet(|| bench.usage())?;
    let (began, own) = (Instant::now(), own_usage()?);
    let mut found = None;
    for place in 0..LOOKUPS {
        if let Some(count) = lookup(documents::mixed(place))? {
            *found.get_or_insert(0) += count;
        }
    }
    let micros = began.elapsed().as_secs_f64() * 1e6 / LOOKUPS as f64;
    let client_cpu_micros = own_usage()?.since(own).micros_per(LOOKUPS as usize);
    let store_cpu_micros = usage_when_quiet(|| bench.usage())?.since(before).micros_per(LOOKUPS as usize);
    Ok(Lookups { name, micros, store_cpu_micros, client_cpu_micros, found })
}

/// All terms with the value that a document has at a path.
fn range(path: u64, number: u64) -> ([u8; PREFIX_BYTES], [u8; PREFIX_BYTES]) {
    let start = documents::prefix(path, documents::value(path, number));
    let mut end = start;
    // The value is not the highest one, so this does not overflow into the path.
    for byte in end.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    (start, end)
}
