//! Checks that everything stored about a range's documents agrees, without holding more than a step in memory.
//!
//! Each body must decode, parse, stand under the key its text gives, and have its directory and feed entries, its unique
//! keys and its index entries; then equal counts prove that none of these is left without a document. Reading also makes
//! the engine check its checksums.

mod index_entries;

use crate::sweep::Walk;
use crate::transaction::{BYTE_TALLY, DOCUMENT_TALLY, as_indexed};
use crate::{Error, Incoming, rebuild};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::records::generations_to_sweep_of;
use astrarium_env::yield_if_due;
use astrarium_index::Indexes;
use astrarium_keys::body::Body;
use astrarium_keys::index_state::Watermark;
use astrarium_keys::{document, feed, number, unique};
use astrarium_kv::{Engine, Space, View};
use bytes::Bytes;
use index_entries::{Balance, Generation};
use std::sync::Arc;

/// Problems listed by one run at most; more than that need no list.
const PROBLEMS_MAX: usize = 100;
/// Entries looked up at once.
const WANTED_AT_ONCE: usize = 256;

/// What a check of a range found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Documents seen.
    pub documents: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Index entries seen.
    pub index_entries: u64,
    /// Disagreements, each with where it is.
    pub problems: Vec<String>,
}

impl Report {
    fn problem(&mut self, what: &str, key: &[u8]) {
        if !self.is_full() {
            self.problems.push(format!("{what}, at {}", key.escape_ascii()));
        }
    }

    fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_MAX
    }
}

/// The range that is checked, as one view has it.
struct Checked<'a> {
    view: Arc<dyn View>,
    container: &'a Container,
    range: &'a Range,
    indexes: &'a Indexes,
    /// How far the generation under construction is.
    watermark: Option<Watermark>,
    /// Generations whose entries wait to be removed.
    swept: Vec<u8>,
}

impl Checked<'_> {
    fn shard(&self) -> u64 {
        self.range.shard.0
    }

    /// What the generation of an index entry is.
    fn generation_of(&self, entry: &[u8]) -> Generation {
        let Some(&generation) = entry.get(8) else { return Generation::Unknown };
        let building = self.indexes.building.as_ref().map(astrarium_index::IndexSet::generation);
        if generation == self.indexes.active.generation() || Some(generation) == building {
            Generation::Kept
        } else if self.swept.contains(&generation) {
            Generation::Swept
        } else {
            Generation::Unknown
        }
    }
}

/// Checks one range; `indexes` are the container's.
pub async fn verify_range(
    engine: &dyn Engine,
    container: &Container,
    indexes: &Indexes,
    range: &Range,
) -> Result<Report, Error> {
    let view = engine.view(range.shard, range.epoch).await?;
    let shard = range.shard.0;
    let watermark = match container.generations.building {
        Some(building) => rebuild::watermark(&*view, shard, building.construction).await?,
        None => None,
    };
    let swept = generations_to_sweep_of(&*astrarium_catalog::view(engine).await?, shard).await?;
    let checked = Checked { view, container, range, indexes, watermark, swept };
    let mut report = Report::default();
    // The index first: an engine that others merge in keeps what a view needs of it for a while only.
    let mut balance = Balance::of_entries(&checked, &mut report).await?;
    let mut bodies = Walk::new(checked.view.clone(), Space::Body, &document::shard_prefix(shard));
    loop {
        let step = bodies.next().await?;
        if step.is_empty() {
            break;
        }
        let mut wanted = Vec::new();
        for (key, value) in &step {
            yield_if_due().await;
            check_body(&checked, key, value, (&mut wanted, &mut balance), &mut report);
        }
        check_wanted(&checked, &wanted, &mut report).await?;
    }
    check_counts(&checked, &mut report).await?;
    balance.judge(&checked, &mut report).await?;
    let state = checked.view.state();
    let counted = [report.documents, report.bytes].map(u64::cast_signed);
    if counted != [state.tallies[DOCUMENT_TALLY], state.tallies[BYTE_TALLY]] {
        let text = format!("running sums say {:?} for {counted:?} documents and bytes", state.tallies);
        report.problem(&text, &document::shard_prefix(shard));
    }
    Ok(report)
}

/// An entry in space `Log` that a body asks for: its key, and the value it must have.
struct Wanted {
    what: &'static str,
    key: Bytes,
    value: Bytes,
}

fn check_body(
    checked: &Checked<'_>,
    key: &[u8],
    value: &Bytes,
    (wanted, balance): (&mut Vec<Wanted>, &mut Balance),
    report: &mut Report,
) {
    report.documents += 1;
    let (Ok(body), Ok(suffix)) = (Body::decode(value.clone()), document::suffix(key)) else {
        report.problem("document cannot be decoded", key);
        return;
    };
    report.bytes += body.text().len() as u64;
    let container = checked.container;
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
    let (shard, header) = (checked.shard(), body.header);
    let mut want = |what, key, value| wanted.push(Wanted { what, key, value });
    let place = Bytes::copy_from_slice(suffix);
    want("directory entry missing or wrong", number::number_key(shard, header.number), place.clone());
    let feed_key = feed::feed_key(shard, header.lsn, header.sequence);
    want("change feed entry missing or wrong", feed_key, place);
    for key in checked.indexes.unique_keys(shard, as_indexed(&body, suffix, None)) {
        want("unique key missing or another document's", key, unique::unique_value(header.number));
    }
    balance.ask(checked, key, &body);
}

async fn check_wanted(checked: &Checked<'_>, wanted: &[Wanted], report: &mut Report) -> Result<(), Error> {
    for group in wanted.chunks(WANTED_AT_ONCE) {
        let keys: Vec<Bytes> = group.iter().map(|wanted| wanted.key.clone()).collect();
        let found = checked.view.get_many(Space::Log, &keys, usize::MAX).await?;
        for (wanted, found) in group.iter().zip(found) {
            if found.as_ref() != Some(&wanted.value) {
                report.problem(wanted.what, &wanted.key);
            }
        }
        yield_if_due().await;
    }
    Ok(())
}

/// Nothing in space `Log` may be left without a document.
async fn check_counts(checked: &Checked<'_>, report: &mut Report) -> Result<(), Error> {
    let shard = checked.shard();
    let unique_count = checked.indexes.unique_key_count() as u64;
    for (what, prefix, each) in [
        ("directory", number::number_prefix(shard), 1),
        ("change feed", feed::feed_prefix(shard), 1),
        ("list of unique keys", unique::unique_prefix(shard), unique_count),
    ] {
        let count = Walk::new(checked.view.clone(), Space::Log, &prefix).count().await?;
        if count != report.documents * each {
            let text = format!("{what} has {count} entries for {} documents", report.documents);
            report.problem(&text, &document::shard_prefix(shard));
        }
    }
    Ok(())
}
