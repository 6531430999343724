//! One commit group being put together: which batches are in it, and what they change together. Pure.
//!
//! In: batches in order, and the ground they stand on: rows of shards and present values, read after the shard's row was locked.
//! Out: for each batch its version or its refusal; one change for each key; the new states of shards.
//! Invariants
//! - A batch is judged on the ground plus everything the batches before it in the group change.
//! - Each key is in the group once, with its last change.
//! - Nothing is taken from the batches, so that a group that did not come to its end can be put together again.

use astrarium_kv::contract::{advance, check_epoch, drop_shard, found, holds, raise_fences, stamp_put};
use astrarium_kv::{
    CommitVersion, Error, Expectation, KeyPrefix, Mutation, PrefixSet, SetChanges, ShardId, ShardState,
    Space, WriteBatch,
};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What holds before the group.
#[derive(Default)]
pub(crate) struct Ground {
    pub(crate) states: BTreeMap<ShardId, ShardState>,
    /// The first bytes of the values of keys that batches expect something of; nothing for keys without one.
    pub(crate) present: HashMap<(Space, Bytes), Option<Vec<u8>>, RandomState>,
    pub(crate) dropped: Arc<PrefixSet>,
}

/// The changes of several batches.
#[derive(Default)]
pub(crate) struct BatchGroup {
    pub(crate) changes: HashMap<(Space, Bytes), Option<Bytes>, RandomState>,
    pub(crate) shards: BTreeMap<ShardId, ShardState>,
    pub(crate) set: Vec<SetChanges>,
    pub(crate) dropped: Vec<KeyPrefix>,
    /// Of each batch, in order.
    pub(crate) outcomes: Vec<Result<CommitVersion, Error>>,
}

impl BatchGroup {
    /// Puts batches together.
    pub(crate) fn of<'batch>(
        batches: impl Iterator<Item = &'batch WriteBatch>,
        ground: &Ground,
    ) -> BatchGroup {
        let mut group = BatchGroup::default();
        for batch in batches {
            let outcome = group.admit(batch, ground);
            group.outcomes.push(outcome);
        }
        group
    }

    fn admit(&mut self, batch: &WriteBatch, ground: &Ground) -> Result<CommitVersion, Error> {
        check_epoch(batch.shard, batch.epoch, self.state(batch.shard, ground))?;
        ground.dropped.check(batch)?;
        if !self.dropped.is_empty() {
            self.dropped.iter().cloned().collect::<PrefixSet>().check(batch)?;
        }
        for (index, (space, key, expectation)) in batch.expectations.iter().enumerate() {
            if !self.is_met(ground, *space, key, *expectation) {
                return Err(Error::Conflict { expectation: index });
            }
        }
        let mut founded = Vec::with_capacity(batch.foundings.len());
        for (shard, founding) in &batch.foundings {
            founded.push((*shard, found(*shard, *founding, self.state(*shard, ground))?));
        }
        // Everything that can fail is done before anything changes.
        for shard in batch.fences.iter().chain(&batch.drops.shards).chain([&batch.shard]) {
            let state = self.state(*shard, ground);
            self.shards.insert(*shard, state);
        }
        self.shards.extend(founded);
        let version = advance(self.shards.entry(batch.shard).or_default(), batch);
        raise_fences(batch, |shard| self.shards.entry(shard).or_default().epoch += 1);
        for shard in &batch.drops.shards {
            drop_shard(self.shards.entry(*shard).or_default());
        }
        self.dropped.extend(batch.drops.prefixes.iter().cloned());
        for mutation in &batch.mutations {
            match mutation {
                Mutation::Put { space, key, value, stamp } => {
                    let (key, value) = stamp_put(key.clone(), value.clone(), *stamp, version);
                    self.changes.insert((*space, key), Some(value));
                }
                Mutation::Delete { space, key } => {
                    self.changes.insert((*space, key.clone()), None);
                }
            }
        }
        if !batch.set.is_empty() {
            self.set.push(batch.set.clone());
        }
        Ok(version)
    }

    fn state(&self, shard: ShardId, ground: &Ground) -> ShardState {
        let known = self.shards.get(&shard).or_else(|| ground.states.get(&shard));
        known.copied().unwrap_or_default()
    }

    fn is_met(&self, ground: &Ground, space: Space, key: &Bytes, expectation: Expectation) -> bool {
        let is_dropped = ground.dropped.covers(Some(space), key)
            || self.dropped.iter().any(|prefix| prefix.covers(Some(space), key));
        if is_dropped {
            return holds(expectation, None);
        }
        // A key is made of the bytes of a batch, so this takes no copy.
        let place = (space, key.clone());
        match self.changes.get(&place) {
            Some(value) => holds(expectation, value.as_deref()),
            None => holds(expectation, ground.present.get(&place).and_then(|value| value.as_deref())),
        }
    }
}
