//! Checks that everything stored about a range's documents agrees, without holding more than a step in memory.
//!
//! Each body must decode, parse, stand under the key its text gives, and have its directory and feed entries; then
//! equal counts of the three prove that no entry is left without a document. Reading also makes the engine check its
//! checksums.

use crate::sweep::Walk;
use crate::transaction::{BYTE_TALLY, DOCUMENT_TALLY};
use crate::{Error, Incoming};
use astrarium_catalog::container::{Container, Range};
use astrarium_keys::body::Body;
use astrarium_keys::{document, feed, number};
use astrarium_kv::{Engine, Space};
use bytes::Bytes;

/// Problems listed by one run at most; more than that need no list.
const PROBLEMS_MAX: usize = 100;

/// What a check of a range found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Documents seen.
    pub documents: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Disagreements, each with where it is.
    pub problems: Vec<String>,
}

impl Report {
    fn problem(&mut self, what: &str, key: &[u8]) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(format!("{what}, at {}", key.escape_ascii()));
        }
    }
}

/// Checks one range.
pub async fn verify_range(
    engine: &dyn Engine,
    container: &Container,
    range: &Range,
) -> Result<Report, Error> {
    let shard = range.shard.0;
    let mut report = Report::default();
    let mut bodies = Walk::new(engine, Space::Body, &document::shard_prefix(shard));
    loop {
        let step = bodies.next().await?;
        if step.is_empty() {
            break;
        }
        let wanted =
            step.iter().flat_map(|(key, value)| check_body(container, range, key, value, &mut report));
        let wanted: Vec<Wanted> = wanted.collect();
        check_entries(engine, &wanted, &mut report).await?;
    }
    let directory_count = Walk::new(engine, Space::Log, &number::number_prefix(shard)).count().await?;
    let feed_count = Walk::new(engine, Space::Log, &feed::feed_prefix(shard)).count().await?;
    for (what, count) in [("directory", directory_count), ("change feed", feed_count)] {
        if count != report.documents {
            let text = format!("{what} has {count} entries for {} documents", report.documents);
            report.problem(&text, &document::shard_prefix(shard));
        }
    }
    let state = engine.shard(range.shard).await?;
    let counted = [report.documents, report.bytes].map(u64::cast_signed);
    if counted != [state.tallies[DOCUMENT_TALLY], state.tallies[BYTE_TALLY]] {
        let text = format!("running sums say {:?} for {counted:?} documents and bytes", state.tallies);
        report.problem(&text, &document::shard_prefix(shard));
    }
    Ok(report)
}

/// An entry in space `Log` that a body asks for: its key, and the suffix it must hold.
struct Wanted {
    what: &'static str,
    key: Bytes,
    suffix: Bytes,
}

fn check_body(
    container: &Container,
    range: &Range,
    key: &[u8],
    value: &Bytes,
    report: &mut Report,
) -> Vec<Wanted> {
    report.documents += 1;
    let (Ok(body), Ok(suffix)) = (Body::decode(value.clone()), document::suffix(key)) else {
        report.problem("document cannot be decoded", key);
        return Vec::new();
    };
    report.bytes += body.text().len() as u64;
    match Incoming::parse(&container.definition, body.text()) {
        Ok(incoming) => {
            let place = crate::Location::of(container, &incoming.partition, &incoming.id);
            // A document without the key of a container made before partition keys stands under the empty key.
            if place.key != key && !container.definition.partition_key.system_key {
                report.problem("document stands under another document's key", key);
            }
        }
        Err(refusal) => report.problem(&format!("document is not what may be stored ({refusal})"), key),
    }
    let (shard, header) = (range.shard.0, body.header);
    let suffix = Bytes::copy_from_slice(suffix);
    vec![
        Wanted {
            what: "directory entry missing or wrong",
            key: number::number_key(shard, header.number),
            suffix: suffix.clone(),
        },
        Wanted {
            what: "change feed entry missing or wrong",
            key: feed::feed_key(shard, header.lsn, header.sequence),
            suffix,
        },
    ]
}

async fn check_entries(engine: &dyn Engine, wanted: &[Wanted], report: &mut Report) -> Result<(), Error> {
    let keys: Vec<Bytes> = wanted.iter().map(|wanted| wanted.key.clone()).collect();
    let found = engine.snapshot().get_many(Space::Log, &keys).await?;
    for (wanted, found) in wanted.iter().zip(found) {
        if found.as_ref() != Some(&wanted.suffix) {
            report.problem(wanted.what, &wanted.key);
        }
    }
    Ok(())
}
