//! Removing many documents in bounded steps: those of one logical partition, and those that have expired.
//!
//! A step is one batch, and tells where the next one begins.

use crate::feed::RangeScope;
use crate::{Error, FeedScope, Transaction};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::{Work, yield_if_due};
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

/// Keys or documents removed in one batch.
const STEP: ScanLimit = ScanLimit { entry_count_max: 500, byte_count_max: 4 << 20 };

/// What one step of removing a logical partition did.
#[derive(Debug, Clone, Default)]
pub struct PartitionStep {
    /// Documents removed.
    pub removed: usize,
    /// Bytes of the text of each.
    pub sizes: Vec<usize>,
    /// Index terms that went with them.
    pub terms: u64,
    /// Where to go on; nothing when all are removed.
    pub next: Option<Bytes>,
    /// The commit, if there was anything to remove.
    pub lsn: Option<u64>,
}

/// Removes some documents of a logical partition, or of a slice of the key space, in one transaction, which has just begun. A later step begins where
/// the one before ended: from the beginning it would pass over everything that is removed already, again and again.
pub async fn sweep_partition(
    engine: &dyn Engine,
    mut transaction: Transaction,
    container: &Container,
    range: &Range,
    scope: &FeedScope,
    begin: Option<Bytes>,
) -> Result<PartitionStep, Error> {
    let mut keys = match scope {
        FeedScope::Partition(key) => {
            RangeScope::Partition(key, container.definition.partition_key.effective(key)).key_range(range)
        }
        FeedScope::Slice(slice) => RangeScope::Slice(slice.clone()).key_range(range),
        FeedScope::All | FeedScope::Range(_) => RangeScope::Slice(EffectiveRange::full()).key_range(range),
    };
    if let Some(begin) = begin {
        keys.start = begin;
    }
    let found = transaction.stored().scan(Space::Body, &keys, Direction::Forward, STEP).await?;
    let last = found.entries.last().filter(|_| found.more);
    let mut step = PartitionStep { next: last.map(|(key, _)| just_after(key)), ..PartitionStep::default() };
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
