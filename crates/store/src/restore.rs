//! Making everything that belongs to a range's documents anew from the documents themselves, after something was lost.
//!
//! Directory, change feed and unique keys are removed and written again; what the running sums and the last version should be
//! is told. Only for a store that nobody else uses: documents and what belongs to them disagree in the meantime.
//! A document that cannot be one, or whose place or unique key another one has, goes: it would block both.
//!
//! Not here: the index, which is built anew as a generation of its own (`rebuild`), the engine's counters.

use crate::sweep::Walk;
use crate::transaction::{BYTE_TALLY, DOCUMENT_TALLY, as_indexed};
use crate::{Error, Incoming};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::stamps;
use astrarium_env::yield_if_due;
use astrarium_index::Indexes;
use astrarium_keys::body::Body;
use astrarium_keys::{document, feed, history, number, tags, unique};
use astrarium_kv::{
    Direction, Engine, KeyRange, ScanLimit, ShardState, Space, Stamp, TALLY_COUNT, View, WriteBatch,
};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Entries removed in one batch.
const STEP: ScanLimit = ScanLimit { entry_count_max: 5_000, byte_count_max: 4 << 20 };

/// What restoring a range came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Restored {
    /// Documents that are there.
    pub documents: u64,
    /// Documents that had to go.
    pub dropped: u64,
    /// What the engine should know of the shard.
    pub state: ShardState,
    /// The catalog was at this version at least when the documents got their stamps.
    pub catalog_version: u64,
}

/// Restores one range; `indexes` are the container's.
pub async fn restore_range(
    engine: &dyn Engine,
    container: &Container,
    indexes: &Indexes,
    range: &Range,
) -> Result<Restored, Error> {
    let shard = range.shard.0;
    // A history with holes is none: it goes with the rest.
    for prefix in tags::log_prefixes(shard) {
        clear(engine, range, &prefix).await?;
    }
    let mut restored = Restored { state: engine.shard(range.shard).await?, ..Restored::default() };
    if container.history_minutes.is_some() {
        end_history(engine, range, restored.state.version).await?;
    }
    restored.state.tallies = [0; TALLY_COUNT];
    let mut bodies =
        Walk::new(engine.view(range.shard, range.epoch).await?, Space::Body, &document::shard_prefix(shard));
    loop {
        let step = bodies.next().await?;
        if step.is_empty() {
            break;
        }
        let mut entries =
            RestoredEntries { batch: WriteBatch::new(range.shard, range.epoch), added: BTreeSet::new() };
        // Of the steps before this one.
        let written = engine.view(range.shard, range.epoch).await?;
        for (key, value) in step {
            yield_if_due().await;
            match belongings(container, indexes, shard, &key, &value) {
                Some(document) if !entries.has_any(&*written, &document.entries).await? => {
                    restored.take(&document);
                    entries.add(document);
                }
                _ => {
                    restored.dropped += 1;
                    entries.batch.delete(Space::Body, key);
                }
            }
        }
        entries.batch.high_water = restored.state.high_water;
        engine.commit(entries.batch).await?;
    }
    restored.state.version = restored.state.version.max(engine.shard(range.shard).await?.version);
    Ok(restored)
}

impl Restored {
    fn take(&mut self, document: &Belongings) {
        self.documents += 1;
        self.state.tallies[DOCUMENT_TALLY] += 1;
        self.state.tallies[BYTE_TALLY] += document.byte_count;
        self.state.version = self.state.version.max(document.lsn);
        self.state.high_water = self.state.high_water.max(document.number);
        self.catalog_version = self.catalog_version.max(stamps::version_of(document.etag));
    }
}

/// What belongs to one document.
struct Belongings {
    lsn: u64,
    number: u64,
    etag: u64,
    byte_count: i64,
    /// Entries of space `Log`.
    entries: Vec<(Bytes, Bytes)>,
}

/// Entries of one step.
struct RestoredEntries {
    batch: WriteBatch,
    added: BTreeSet<Bytes>,
}

impl RestoredEntries {
    /// Whether another document has one of the entries.
    async fn has_any(&self, written: &dyn View, wanted: &[(Bytes, Bytes)]) -> Result<bool, Error> {
        let keys: Vec<Bytes> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let is_written = written.get_many(Space::Log, &keys, usize::MAX).await?.iter().any(Option::is_some);
        Ok(is_written || keys.iter().any(|key| self.added.contains(key)))
    }

    fn add(&mut self, document: Belongings) {
        for (key, value) in document.entries {
            self.added.insert(key.clone());
            self.batch.put(Space::Log, key, value, Stamp::NONE);
        }
    }
}

/// What should be stored with a document; nothing for what is no document of the container at this place.
fn belongings(
    container: &Container,
    indexes: &Indexes,
    shard: u64,
    key: &Bytes,
    value: &Bytes,
) -> Option<Belongings> {
    let body = Body::decode(value.clone()).ok()?;
    let suffix = document::suffix(key).ok()?;
    let incoming = Incoming::parse(&container.definition, body.text()).ok()?;
    let place = crate::Location::of(container, &incoming.partition, &incoming.id);
    if place.key != key && !container.definition.partition_key.system_key {
        return None;
    }
    let header = body.header;
    let suffix_bytes = Bytes::copy_from_slice(suffix);
    let mut entries = vec![
        (number::number_key(shard, header.number), suffix_bytes.clone()),
        (feed::feed_key(shard, header.lsn, header.sequence), suffix_bytes),
    ];
    let unique_keys = indexes.unique_keys(shard, as_indexed(&body, suffix, None));
    entries.extend(unique_keys.into_iter().map(|key| (key, unique::unique_value(header.number))));
    let byte_count = (body.text().len() as u64).cast_signed();
    let (lsn, number, etag) = (header.lsn, header.number, header.etag);
    Some(Belongings { lsn, number, etag, byte_count, entries })
}

/// Has readers of all versions told that what happened up to now is not kept, instead of leaving it out.
/// Says that the history of a range up to an LSN is not kept: readers of all versions who are not that far are refused.
pub async fn end_history(engine: &dyn Engine, range: &Range, lsn: u64) -> Result<(), Error> {
    let mut batch = WriteBatch::new(range.shard, range.epoch);
    let (key, value) = (history::horizon_key(range.shard.0), history::horizon_value(lsn));
    batch.put(Space::Log, key, value, Stamp::NONE);
    engine.commit(batch).await?;
    Ok(())
}

async fn clear(engine: &dyn Engine, range: &Range, prefix: &[u8]) -> Result<(), Error> {
    let keys = KeyRange::prefix(prefix);
    loop {
        let view = engine.view(range.shard, range.epoch).await?;
        let step = view.scan(Space::Log, &keys, Direction::Forward, STEP).await?;
        if step.entries.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new(range.shard, range.epoch);
        for (key, _) in step.entries {
            batch.delete(Space::Log, key);
        }
        engine.commit(batch).await?;
    }
}
