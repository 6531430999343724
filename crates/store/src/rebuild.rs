//! Building a generation of the index beside the one in use, in small steps, while documents are read and written.
//!
//! A step is one batch of one shard: it adds the entries of the next documents, in the order of their numbers, and moves
//! the shard's [`Watermark`]. Nothing else is kept, so after a kill the next start simply goes on.
//! Invariants
//! - The generation has a document exactly if its number is at or below the watermark, or if it was written after the
//!   construction began in its shard: writers put what they write into both generations from then on.
//! - The beginning is a commit that every writer expects to have seen or not to have seen, so no writer is in between.
//! - A step expects every document as it read it, and a writer that replaces or removes a document which is not in the new
//!   generation yet expects the watermark as it read it: of two that meet, one tries again. Other writers do not wait.
//!
//! Not here: which containers need a new generation, and when it comes into use (`database`).

use crate::Error;
use crate::transaction::{as_indexed, etag};
use astrarium_catalog::container::Range;
use astrarium_env::{Work, yield_if_due};
use astrarium_index::{IndexSet, Indexes};
use astrarium_keys::body::{Body, Header};
use astrarium_keys::index_state::{Watermark, watermark_key};
use astrarium_keys::{document, number};
use astrarium_kv::{
    self as kv, Direction, Engine, Expectation, KeyList, KeyRange, ScanLimit, Space, Stamp, View, WriteBatch,
};
use bytes::Bytes;
use std::time::Duration;

/// Documents of one step at most.
const DOCUMENTS_MAX: usize = 200;
/// Documents read at once, since a step ends by its time, and bytes of them, about.
const DOCUMENTS_AT_ONCE: usize = 8;
const READ_BYTES_MAX: usize = 1 << 20;
/// A step takes no further document once its entries have so many bytes.
const ENTRY_BYTES_MAX: usize = 1 << 20;
/// A step takes no further document after so long, by a clock that nobody sets.
const STEP_TIME_MAX: Duration = Duration::from_millis(3);

/// What one step of building found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStep {
    /// Something; there may be more.
    Moved,
    /// Nothing: the generation has every document of the shard.
    Complete,
    /// Nothing: somebody with a newer lease builds.
    Overtaken,
}

/// What a transaction knows of the generation under construction in its shard.
#[derive(Debug, Clone)]
pub(crate) struct Construction {
    key: Bytes,
    /// The watermark, if the construction has begun here.
    watermark: Option<Watermark>,
    /// What the view has at the key.
    found: Expectation,
}

impl Construction {
    pub(crate) async fn read(view: &dyn View, shard: u64, construction: u64) -> Result<Construction, Error> {
        let key = watermark_key(shard);
        let found = view.get(Space::Meta, &key).await?;
        let found = found.map(|value| Watermark::decode(&value)).transpose()?;
        Ok(Construction {
            key: Bytes::copy_from_slice(&key),
            watermark: found.filter(|mark| mark.construction == construction),
            found: found.map_or(Expectation::Absent, |mark| Expectation::Version(mark.version)),
        })
    }

    /// Whether writers put what they write into the new generation.
    pub(crate) fn is_begun(&self) -> bool {
        self.watermark.is_some()
    }

    /// Whether the new generation has a stored document.
    pub(crate) fn has(&self, header: &Header) -> bool {
        self.watermark.is_some_and(|mark| mark.has(header.number, header.lsn))
    }

    /// Adds what a transaction relies on that replaces or removes these documents.
    pub(crate) fn expect<'h>(&self, batch: &mut WriteBatch, mut replaced: impl Iterator<Item = &'h Header>) {
        let is_settled = self.is_begun() && replaced.all(|header| self.has(header));
        // What the generation has it keeps, wherever the watermark goes.
        let expectation = if is_settled { Expectation::Present } else { self.found };
        batch.expect(Space::Meta, self.key.clone(), expectation);
    }

    fn put(&self, batch: &mut WriteBatch, watermark: &Watermark) {
        batch.expect(Space::Meta, self.key.clone(), self.found);
        batch.put(Space::Meta, self.key.clone(), watermark.encode(), Stamp::VALUE);
    }
}

/// How far a construction is in a shard, if it has begun there.
pub async fn watermark(view: &dyn View, shard: u64, construction: u64) -> Result<Option<Watermark>, Error> {
    Ok(Construction::read(view, shard, construction).await?.watermark)
}

/// Does a bounded part of the construction of `indexes.building` in one range: half as much for each time it has `lost` before
/// because somebody wrote one of its documents. Nobody with a lease older than that of the last step gets any further.
pub async fn build_step(
    engine: &dyn Engine,
    range: &Range,
    indexes: &Indexes,
    construction: u64,
    fencing_number: u64,
    lost: u32,
) -> Result<BuildStep, Error> {
    let Some(set) = indexes.building.as_ref().filter(|set| set.is_used()) else {
        return Ok(BuildStep::Complete);
    };
    let view = engine.view(range.shard, range.epoch).await?;
    let state = Construction::read(&*view, range.shard.0, construction).await?;
    let mut batch = WriteBatch::new(range.shard, range.epoch);
    match state.watermark {
        Some(mark) if mark.is_complete() => return Ok(BuildStep::Complete),
        Some(mark) if mark.fencing_number > fencing_number => return Ok(BuildStep::Overtaken),
        None => state.put(&mut batch, &Watermark::first(construction, fencing_number)),
        Some(mark) => {
            let step = RebuildStep { shard: range.shard.0, indexes, set, mark };
            let count_max = DOCUMENTS_MAX.checked_shr(lost).unwrap_or_default().max(1);
            let mark = step.stage(&*view, count_max, &mut batch).await?;
            state.put(&mut batch, &Watermark { fencing_number, ..mark });
        }
    }
    engine.commit(batch).await?;
    Ok(BuildStep::Moved)
}

/// One step after the beginning.
struct RebuildStep<'a> {
    shard: u64,
    indexes: &'a Indexes,
    set: &'a IndexSet,
    mark: Watermark,
}

impl RebuildStep<'_> {
    /// Stages the entries of the next documents; gives the watermark after them.
    async fn stage(
        &self,
        view: &dyn View,
        count_max: usize,
        batch: &mut WriteBatch,
    ) -> Result<Watermark, Error> {
        let work = Work::new(STEP_TIME_MAX);
        let last = match self.mark.last {
            Some(last) => last,
            None => last_number(view, self.shard).await?,
        };
        let found = self.next_documents(view, last, count_max).await?;
        let (mut built, mut is_whole) = (self.mark.built, !found.more);
        let mut added = KeyList::new();
        let keys: Vec<Bytes> =
            found.entries.iter().map(|(_, suffix)| document::from_suffix(self.shard, suffix)).collect();
        let mut read_count = 0;
        'documents: while read_count < keys.len() {
            let group = read_count..keys.len().min(read_count + DOCUMENTS_AT_ONCE);
            let bodies = view.get_many(Space::Body, &keys[group], READ_BYTES_MAX).await?;
            yield_if_due().await;
            for body in bodies {
                let (directory_key, key) = (&found.entries[read_count].0, &keys[read_count]);
                let is_spent = added.byte_count() >= ENTRY_BYTES_MAX || work.elapsed() >= STEP_TIME_MAX;
                if is_spent && built > self.mark.built {
                    is_whole = false;
                    break 'documents;
                }
                built = number::read_number(directory_key)?;
                // A number that leads nowhere is damage, which is not for the builder to judge.
                if let Some(body) = body.map(Body::decode).transpose()?
                    && !self.mark.has(body.header.number, body.header.lsn)
                {
                    self.add(key, &body, &mut added);
                    batch.expect(Space::Body, key.clone(), Expectation::Version(body.header.lsn));
                }
                read_count += 1;
            }
        }
        batch.set.added = added.sorted();
        Ok(Watermark { built: if is_whole { last } else { built }, last: Some(last), ..self.mark })
    }

    fn add(&self, key: &[u8], body: &Body, added: &mut KeyList) {
        let etag = etag(body);
        let stored = as_indexed(body, &key[document::SHARD_PREFIX_LENGTH..], Some(&etag));
        self.indexes.entries(self.set, self.shard, stored).iter().for_each(|entry| added.push(entry));
    }

    async fn next_documents(
        &self,
        view: &dyn View,
        last: u64,
        count_max: usize,
    ) -> Result<kv::ScanBatch, Error> {
        if self.mark.built >= last {
            return Ok(kv::ScanBatch::default());
        }
        let range = KeyRange {
            start: number::number_key(self.shard, self.mark.built + 1),
            end: astrarium_kv::just_after(&number::number_key(self.shard, last)),
        };
        let limit = ScanLimit { entry_count_max: count_max, byte_count_max: usize::MAX };
        Ok(view.scan(Space::Log, &range, Direction::Forward, limit).await?)
    }
}

/// The highest number of a shard's documents. Those written before the beginning of a construction have none that is higher.
pub(crate) async fn last_number(view: &dyn View, shard: u64) -> Result<u64, Error> {
    let range = KeyRange::prefix(&number::number_prefix(shard));
    let limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
    let found = view.scan(Space::Log, &range, Direction::Backward, limit).await?;
    Ok(found.entries.first().map(|(key, _)| number::read_number(key)).transpose()?.unwrap_or(0))
}
