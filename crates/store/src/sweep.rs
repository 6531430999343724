//! Removing many documents in bounded steps: a whole shard that nobody refers to, or one logical partition.
//!
//! A step is one batch; after a kill the next start simply goes on.

use crate::feed::Scope;
use crate::{Error, FeedScope, Transaction};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::Env;
use astrarium_index::Indexes;
use astrarium_keys::{document, feed, index_state, number, unique};
use astrarium_kv::{Direction, Engine, KeyRange, ScanLimit, ShardId, Space, View, WriteBatch, just_after};
use astrarium_partition::EffectiveRange;
use bytes::Bytes;
use std::sync::Arc;

/// Keys or documents removed in one batch.
const STEP: ScanLimit = ScanLimit { entry_count_max: 500, byte_count_max: 4 << 20 };

/// Index entries removed in one batch.
const INDEX_STEP: usize = 10_000;

/// Removes some of a dead shard's keys; false when nothing was left.
pub async fn sweep_shard(engine: &dyn Engine, shard: ShardId) -> Result<bool, Error> {
    let places = [
        (Space::Body, document::shard_prefix(shard.0)),
        (Space::Log, number::number_prefix(shard.0)),
        (Space::Log, feed::feed_prefix(shard.0)),
        (Space::Log, unique::unique_prefix(shard.0)),
        (Space::Meta, index_state::watermark_key(shard.0)),
    ];
    let epoch = engine.shard(shard).await?.epoch;
    let view = engine.view(shard, epoch).await?;
    for (space, prefix) in places {
        let step = view.scan(space, &KeyRange::prefix(&prefix), Direction::Forward, STEP).await?;
        if step.entries.is_empty() {
            continue;
        }
        let mut batch = WriteBatch::new(shard, epoch);
        for (key, _) in step.entries {
            batch.delete(space, key);
        }
        engine.commit(batch).await?;
        return Ok(true);
    }
    sweep_index(engine, shard, &shard.0.to_be_bytes()).await
}

/// Removes some of a shard's index entries that begin with these bytes; false when nothing was left.
pub async fn sweep_index(engine: &dyn Engine, shard: ShardId, prefix: &[u8]) -> Result<bool, Error> {
    let range = KeyRange::prefix(prefix);
    let limit = ScanLimit { entry_count_max: INDEX_STEP, byte_count_max: usize::MAX };
    let epoch = engine.shard(shard).await?.epoch;
    let found = engine.view(shard, epoch).await?.scan_keys(&range, Direction::Forward, limit).await?;
    if found.keys.is_empty() {
        return Ok(false);
    }
    let mut batch = WriteBatch::new(shard, epoch);
    batch.set.removed = found.keys;
    engine.commit(batch).await?;
    Ok(true)
}

/// What one step of removing a logical partition did.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartitionStep {
    /// Documents removed.
    pub removed: usize,
    /// Bytes of text removed.
    pub bytes: usize,
    /// Whether there may be more.
    pub more: bool,
    /// The commit, if there was anything to remove.
    pub lsn: Option<u64>,
}

/// Removes some documents of a logical partition, or of a slice of the key space, in one transaction.
pub async fn sweep_partition(
    engine: &dyn Engine,
    env: &Env,
    container: &Container,
    indexes: &Arc<Indexes>,
    range: &Range,
    scope: &FeedScope,
) -> Result<PartitionStep, Error> {
    let view = engine.view(range.shard, range.epoch).await?;
    let keys = match scope {
        FeedScope::Partition(key) => {
            Scope::Partition(key, container.definition.partition_key.effective(key)).key_range(range)
        }
        FeedScope::Slice(slice) => Scope::Slice(slice.clone()).key_range(range),
        FeedScope::All | FeedScope::Range(_) => Scope::Slice(EffectiveRange::full()).key_range(range),
    };
    let found = view.scan(Space::Body, &keys, Direction::Forward, STEP).await?;
    let mut step = PartitionStep { more: found.more, ..PartitionStep::default() };
    let mut transaction = Transaction::begin(env, container, range, Arc::clone(indexes), view).await?;
    for (key, _) in &found.entries {
        if let Some(old) = transaction.remove(key).await? {
            step.removed += 1;
            step.bytes += old.text().len();
        }
    }
    if let Some(batch) = transaction.into_batch() {
        step.lsn = Some(engine.commit(batch).await?.0);
    }
    Ok(step)
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
