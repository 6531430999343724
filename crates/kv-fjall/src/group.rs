//! One commit group being put together: which batches are in it, and what they change together.
//!
//! In: batches in order of submission, and the committed state. Out: one change for each key and shard touched, and
//! who is to be told which version.
//! Invariants
//! - A batch is judged on the committed state plus everything the batches before it in the group change.
//! - Each key is in the group once, with its last change.
//! - Keys and values are moved, not copied, except where a stamp has to be filled into bytes that others hold.
//!
//! Not here: writing and answering (`committer`).

use crate::error::reading;
use crate::queue::Answer;
use crate::set;
use crate::store::{GroupWriter, History, Store};
use astrarium_kv::contract::{advance, check_epoch, drop_shard, found, holds, raise_fences, stamp_put};
use astrarium_kv::{
    CommitVersion, Error, Expectation, KeyPrefix, Mutation, PrefixSet, SetChanges, ShardId, ShardState,
    Space, WriteBatch,
};
use astrarium_packed::{GroupBlock, Origin, PackedChanges};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

/// What the engine's own work is answered with; versions of batches begin with 1.
pub(crate) const OWN_WORK: CommitVersion = CommitVersion(0);

/// The order of neither map is ever seen; random seeds keep clients from choosing keys that collide.
#[derive(Default)]
pub(crate) struct CommitGroup {
    changes: Vec<Change>,
    /// Places in `changes`, by space and key.
    places: HashTable<usize>,
    hasher: RandomState,
    /// Shards that batches of the group change, with their new states.
    shards: HashMap<ShardId, ShardState, RandomState>,
    /// What each batch changes of the set, in order.
    set: Vec<SetChanges>,
    /// What the only batch of the group changes of it, if that was packed by its submitter.
    packed: Option<PackedChanges>,
    /// Prefixes that batches of the group drop, and the same ready to be asked about keys.
    dropped: Vec<KeyPrefix>,
    covered: PrefixSet,
    /// Prefixes whose space is given back.
    reclaimed: Vec<KeyPrefix>,
    accepted: Vec<(Answer, CommitVersion)>,
}

struct Change {
    space: Space,
    key: Bytes,
    /// Nothing where the key is removed.
    value: Option<Bytes>,
}

impl CommitGroup {
    /// Takes the batch into the group, or tells why it cannot commit.
    ///
    /// `committed` gives a shard's state before the group.
    pub(crate) fn admit(
        &mut self,
        batch: WriteBatch,
        store: &Store,
        committed: impl Fn(ShardId) -> Result<ShardState, Error>,
    ) -> Result<CommitVersion, Error> {
        let current = match self.shards.get(&batch.shard) {
            Some(state) => *state,
            None => committed(batch.shard)?,
        };
        check_epoch(batch.shard, batch.epoch, current)?;
        self.check_drops(&batch, store)?;
        for (index, (space, key, expectation)) in batch.expectations.iter().enumerate() {
            if !self.is_met(store, *space, key, *expectation)? {
                return Err(Error::Conflict { expectation: index });
            }
        }
        let mut founded = Vec::with_capacity(batch.foundings.len());
        for (shard, founding) in &batch.foundings {
            let present = match self.shards.get(shard) {
                Some(state) => *state,
                None => committed(*shard)?,
            };
            founded.push((*shard, found(*shard, *founding, present)?));
        }
        // Everything that can fail is done before anything changes.
        for shard in batch.fences.iter().chain(&batch.drops.shards).chain([&batch.shard]) {
            if let Entry::Vacant(entry) = self.shards.entry(*shard) {
                entry.insert(committed(*shard)?);
            }
        }
        self.shards.extend(founded);
        let version = advance(self.shards.entry(batch.shard).or_default(), &batch);
        raise_fences(&batch, |shard| self.shards.entry(shard).or_default().epoch += 1);
        for shard in &batch.drops.shards {
            drop_shard(self.shards.entry(*shard).or_default());
        }
        if !batch.drops.prefixes.is_empty() {
            self.dropped.extend(batch.drops.prefixes);
            self.covered = self.dropped.iter().cloned().collect();
        }
        for mutation in batch.mutations {
            match mutation {
                Mutation::Put { space, key, value, stamp } => {
                    let (key, value) = stamp_put(key, value, stamp, version);
                    self.change(Change { space, key, value: Some(value) });
                }
                Mutation::Delete { space, key } => self.change(Change { space, key, value: None }),
            }
        }
        if !batch.set.is_empty() {
            self.set.push(batch.set);
        }
        Ok(version)
    }

    /// Forgets prefixes with this group.
    pub(crate) fn reclaim(&mut self, prefixes: Vec<KeyPrefix>) {
        self.reclaimed.extend(prefixes);
    }

    fn check_drops(&self, batch: &WriteBatch, store: &Store) -> Result<(), Error> {
        store.drops.load().covered.check(batch)?;
        self.covered.check(batch)
    }

    /// Remembers whom to tell once the group is written.
    pub(crate) fn promise(&mut self, answer: Answer, version: CommitVersion) {
        self.accepted.push((answer, version));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accepted.is_empty()
    }

    /// All changes of the set as one block, if there are any; the group forgets them.
    pub(crate) fn take_set(
        &mut self,
        group: u64,
        history: &History,
        block_bytes: usize,
    ) -> Result<Option<GroupBlock>, Error> {
        let origin = Origin { owner: history.identity.0, group, before: history.last_set_change() };
        if let Some(packed) = self.packed.take() {
            return Ok(Some(packed.seal(origin)));
        }
        let block = GroupBlock::of(origin, set::changes(&self.set), block_bytes).map_err(set::told);
        self.set.clear();
        block
    }

    /// Takes what the batch admitted last changes of the set.
    pub(crate) fn packed(&mut self, packed: Option<PackedChanges>) {
        self.packed = packed;
    }

    /// Hands all changes of the spaces over for writing; shards and promises stay.
    pub(crate) fn write_to<'store>(&mut self, store: &'store Store, group: u64) -> GroupWriter<'store> {
        let mut writer = store.begin(self.changes.len() + self.shards.len());
        self.places.clear();
        for change in self.changes.drain(..) {
            store.values.forget(change.space, &change.key, group);
            writer.change(change.space, change.key, change.value);
        }
        for (shard, state) in &self.shards {
            writer.shard(*shard, *state);
        }
        if !self.dropped.is_empty() {
            writer.drop_prefixes(&self.dropped);
        }
        writer.forget_prefixes(&self.reclaimed);
        writer
    }

    /// What the group has dropped, and what is given back; the group forgets both.
    pub(crate) fn take_drops(&mut self) -> (Vec<KeyPrefix>, Vec<KeyPrefix>) {
        self.covered = PrefixSet::default();
        (std::mem::take(&mut self.dropped), std::mem::take(&mut self.reclaimed))
    }

    /// The new states of all shards touched; the group forgets them.
    pub(crate) fn take_shards(&mut self) -> impl Iterator<Item = (ShardId, ShardState)> + '_ {
        self.shards.drain()
    }

    /// How many batches are in the group.
    pub(crate) fn commit_count(&self) -> u64 {
        self.accepted.iter().filter(|(_, version)| *version != OWN_WORK).count() as u64
    }

    /// Everyone to be told; the group forgets them.
    pub(crate) fn take_promises(&mut self) -> impl ExactSizeIterator<Item = (Answer, CommitVersion)> + '_ {
        self.accepted.drain(..)
    }

    /// Drops what the group would have changed, when it cannot be written.
    pub(crate) fn forget_changes(&mut self) {
        self.changes.clear();
        self.set.clear();
        self.packed = None;
        self.places.clear();
        self.shards.clear();
        self.dropped.clear();
        self.covered = PrefixSet::default();
        self.reclaimed.clear();
    }

    fn is_met(
        &self,
        store: &Store,
        space: Space,
        key: &[u8],
        expectation: Expectation,
    ) -> Result<bool, Error> {
        let is_dropped =
            self.covered.covers(Some(space), key) || store.drops.load().covered.covers(Some(space), key);
        if is_dropped {
            return Ok(holds(expectation, None));
        }
        let place = self.places.find(self.hash(space, key), |place| self.changes[*place].is_of(space, key));
        if let Some(place) = place {
            return Ok(holds(expectation, self.changes[*place].value.as_deref()));
        }
        let value = store.keyspace(space).get(key).map_err(|error| reading(&error))?;
        Ok(holds(expectation, value.as_deref()))
    }

    fn change(&mut self, change: Change) {
        let hash = self.hash(change.space, &change.key);
        if let Some(place) =
            self.places.find(hash, |place| self.changes[*place].is_of(change.space, &change.key))
        {
            self.changes[*place].value = change.value;
            return;
        }
        let place = self.changes.len();
        self.changes.push(change);
        let CommitGroup { changes, places, hasher, .. } = self;
        places.insert_unique(hash, place, |place| {
            hasher.hash_one((changes[*place].space, &changes[*place].key[..]))
        });
    }

    fn hash(&self, space: Space, key: &[u8]) -> u64 {
        self.hasher.hash_one((space, key))
    }
}

impl Change {
    fn is_of(&self, space: Space, key: &[u8]) -> bool {
        self.space == space && self.key == key
    }
}
