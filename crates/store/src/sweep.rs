//! Removing many documents in bounded steps: those of one logical partition, and those that have expired.
//!
//! A step is one batch, and tells where the next one begins.

use crate::feed::RangeScope;
use crate::{Error, FeedScope, Transaction};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::{Work, yield_if_due};
use astrarium_keys::body::Body;
use astrarium_keys::erasure::ErasureRecord;
use astrarium_keys::{document, number};
use astrarium_kv::{Direction, Engine, KeyRange, ScanLimit, Space, View, just_after};
use astrarium_partition::EffectiveRange;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A step takes no further document after so long, by a clock that nobody sets.
const STEP_TIME_MAX: Duration = Duration::from_millis(3);
/// A step takes no further document once those it has hold so many bytes.
const EXPIRED_BYTES_MAX: usize = 4 << 20;

/// Documents looked at in one step of erasing.
const ERASURE_STEP: ScanLimit = ScanLimit { entry_count_max: 100, byte_count_max: 1 << 20 };
/// Keys or documents removed in one batch.
const STEP: ScanLimit = ScanLimit { entry_count_max: 500, byte_count_max: 4 << 20 };

/// What was removed of a logical partition at once.
#[derive(Debug, Clone, Default)]
pub struct PartitionStep {
    /// Documents removed.
    pub removed: usize,
    /// Bytes of the text of each.
    pub sizes: Vec<usize>,
    /// Index terms that went with them.
    pub terms: u64,
    /// Whether there are more.
    pub more: bool,
    /// The commit, if there was anything to remove.
    pub lsn: Option<u64>,
}

/// Removes the first documents of a logical partition, or of a slice of the key space, in one transaction, which has just begun: all of them if they
/// are few.
pub async fn sweep_partition(
    engine: &dyn Engine,
    mut transaction: Transaction,
    container: &Container,
    range: &Range,
    scope: &FeedScope,
) -> Result<PartitionStep, Error> {
    let keys = scope_keys(container, range, scope);
    let found = transaction.stored().scan(Space::Body, &keys, Direction::Forward, STEP).await?;
    let mut step = PartitionStep { more: found.more, ..PartitionStep::default() };
    for (key, _) in &found.entries {
        yield_if_due().await;
        if let Some(old) = transaction.remove(key).await? {
            step.removed += 1;
            step.sizes.push(old.text().len());
        }
    }
    let (batch, terms) = transaction.into_counted_batch();
    step.terms = terms.sum();
    if let Some(batch) = batch {
        step.lsn = Some(engine.commit(batch).await?.0);
    }
    Ok(step)
}

/// What one step of erasing the documents of a delete did.
#[derive(Debug, Clone)]
pub struct ErasureStep {
    /// Documents removed.
    pub removed: usize,
    /// The key to go on from, without its shard; nothing when the range has no more.
    pub position: Option<Bytes>,
}

/// Erases some documents of a range that were deleted with their partition, in one transaction, which has just begun; from a key on. What was written after
/// the delete stays.
pub async fn erase_deleted(
    engine: &dyn Engine,
    mut transaction: Transaction,
    range: &Range,
    erasure: &ErasureRecord,
    position: &Bytes,
) -> Result<ErasureStep, Error> {
    let work = Work::new(STEP_TIME_MAX);
    let shard = range.shard.0;
    let start = document::from_suffix(shard, position.max(&erasure.start));
    let keys = KeyRange { start, end: document::from_suffix(shard, &erasure.end) };
    let mut step = ErasureStep { removed: 0, position: None };
    if keys.start >= keys.end {
        return Ok(step);
    }
    let found = transaction.stored().scan(Space::Body, &keys, Direction::Forward, ERASURE_STEP).await?;
    let mut next = found.entries.last().filter(|_| found.more).map(|(key, _)| just_after(key));
    for (key, bytes) in found.entries {
        if step.removed > 0 && work.elapsed() >= STEP_TIME_MAX {
            next = Some(key);
            break;
        }
        yield_if_due().await;
        if Body::decode(bytes)?.header.lsn <= erasure.lsn {
            transaction.remove(&key).await?;
            step.removed += 1;
        }
    }
    step.position = next.map(|key| key.slice(document::SHARD_PREFIX_LENGTH..));
    if let Some(batch) = transaction.into_batch() {
        engine.commit(batch).await?;
    }
    Ok(step)
}

/// The keys of a scope in a range, without their shard: the first that belongs, and the first beyond.
pub fn scope_bounds(container: &Container, range: &Range, scope: &FeedScope) -> (Bytes, Bytes) {
    let keys = scope_keys(container, range, scope);
    let shard = range.shard.0;
    let start = keys.start.max(document::effective_bound(shard, &range.keys.min));
    let end = keys.end.min(document::effective_bound(shard, &range.keys.max));
    let suffix = |key: Bytes| key.slice(document::SHARD_PREFIX_LENGTH..);
    (suffix(start), suffix(end))
}

fn scope_keys(container: &Container, range: &Range, scope: &FeedScope) -> KeyRange {
    match scope {
        FeedScope::Partition(key) => {
            RangeScope::Partition(key, container.definition.partition_key.effective(key)).key_range(range)
        }
        FeedScope::Slice(slice) => RangeScope::Slice(slice.clone()).key_range(range),
        FeedScope::All | FeedScope::Range(_) => RangeScope::Slice(EffectiveRange::full()).key_range(range),
    }
}

/// Removes the first of some documents that have expired, given by their numbers, in one transaction, which has just begun; tells how many. At
/// least one: whatever the index says to have expired must have, or the index is wrong.
pub async fn erase_expired(
    engine: &dyn Engine,
    mut transaction: Transaction,
    range: &Range,
    numbers: &[u64],
) -> Result<usize, Error> {
    let work = Work::new(STEP_TIME_MAX);
    let shard = range.shard.0;
    let (mut erased, mut bytes) = (0, 0);
    for &number in numbers {
        if erased > 0 && (work.elapsed() >= STEP_TIME_MAX || bytes >= EXPIRED_BYTES_MAX) {
            break;
        }
        yield_if_due().await;
        let wrong = Error::DanglingEntry { shard: range.shard, number };
        let suffix = transaction.stored().get(Space::Log, &number::number_key(shard, number)).await?;
        let Some(suffix) = suffix else { return Err(wrong) };
        let Some(length) = transaction.erase_expired(&document::from_suffix(shard, &suffix)).await? else {
            return Err(wrong);
        };
        bytes += length;
        erased += 1;
    }
    if let Some(batch) = transaction.into_batch() {
        engine.commit(batch).await?;
    }
    Ok(erased)
}

/// Walks all keys with a prefix in bounded steps.
pub(crate) struct Walk {
    view: Arc<dyn View>,
    space: Space,
    rest: Option<KeyRange>,
}

impl Walk {
    pub(crate) fn new(view: Arc<dyn View>, space: Space, prefix: &[u8]) -> Walk {
        Walk { view, space, rest: Some(KeyRange::prefix(prefix)) }
    }

    /// The next entries; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let Some(range) = &self.rest else {
            return Ok(Vec::new());
        };
        yield_if_due().await;
        let step = self.view.scan(self.space, range, Direction::Forward, STEP).await?;
        self.rest = match step.entries.last() {
            Some((last, _)) if step.more => {
                Some(KeyRange { start: just_after(last), end: range.end.clone() })
            }
            _ => None,
        };
        Ok(step.entries)
    }

    pub(crate) async fn count(mut self) -> Result<u64, Error> {
        let mut count = 0;
        loop {
            match self.next().await?.len() {
                0 => return Ok(count),
                step => count += step as u64,
            }
        }
    }
}
