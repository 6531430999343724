//! One shard as readers see it: the shared snapshot of the last group, with the shard's counters as of that group.
//!
//! In: a shard, an epoch, reads of the contract. Out: a refusal of an outdated epoch, or answers at once.
//! Counters of shards that were used are in memory, each with the group that changed it last. The committer notes them before
//! it shows a group, so what is noted up to the group of a snapshot is exactly what the snapshot has; where the note is
//! newer, the snapshot itself is asked.
//! Invariants
//! - A view's counters and entries are of the same group.
//! - Nothing is asked of the snapshot for keys of another shard, though it has them.

use crate::Core;
use crate::snapshot::FjallSnapshot;
use astrarium_kv::{
    Direction, EntryBatch, Error, FAMILY_BYTES, Intersection, IntersectionLimit, KeyBatch, KeyRange, Reply,
    ScanBatch, ScanLimit, ShardId, ShardState, Space, View, contract,
};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;

/// Counters of shards, each as of the last group that changed it or later.
#[derive(Default)]
pub(crate) struct KnownShards {
    states: RwLock<HashMap<ShardId, KnownShard, RandomState>>,
}

struct KnownShard {
    state: ShardState,
    /// The counters are these in every snapshot from this group on, until the note changes.
    group: u64,
}

impl KnownShards {
    /// Notes what a group changes; to be called before the group is shown.
    pub(crate) fn note(&self, group: u64, states: impl Iterator<Item = (ShardId, ShardState)>) {
        self.states.write().extend(states.map(|(shard, state)| (shard, KnownShard { state, group })));
    }

    /// A shard's counters as a snapshot has them.
    pub(crate) fn state_in(&self, snapshot: &FjallSnapshot, shard: ShardId) -> Result<ShardState, Error> {
        let group = snapshot.open_group()?;
        if let Some(known) = self.states.read().get(&shard)
            && known.group <= group
        {
            return Ok(known.state);
        }
        let state = snapshot.shard(shard)?;
        self.states.write().entry(shard).or_insert(KnownShard { state, group });
        Ok(state)
    }
}

impl Core {
    /// A shard's counters as of the last group that readers see.
    pub(crate) fn shard_state(&self, shard: ShardId) -> Result<ShardState, Error> {
        self.shards.state_in(&self.current.load(), shard)
    }

    pub(crate) fn view(&self, shard: ShardId, epoch: u64) -> Result<FjallView, Error> {
        let snapshot = self.current.load_full();
        let state = self.shards.state_in(&snapshot, shard)?;
        contract::check_epoch(shard, epoch, state)?;
        Ok(FjallView { snapshot, shard, state })
    }
}

pub(crate) struct FjallView {
    snapshot: Arc<FjallSnapshot>,
    shard: ShardId,
    state: ShardState,
}

impl View for FjallView {
    fn shard(&self) -> ShardId {
        self.shard
    }

    fn state(&self) -> ShardState {
        self.state
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        if let Err(error) = contract::check_key(self.shard, Some(space), key) {
            return Reply::ready(Err(error));
        }
        self.snapshot.get(space, key)
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        if let Err(error) = contract::check_keys(self.shard, Some(space), keys) {
            return Reply::ready(Err(error));
        }
        self.snapshot.get_many(space, keys, byte_count_max)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        if let Err(error) = contract::check_range(self.shard, Some(space), range) {
            return Reply::ready(Err(error));
        }
        self.snapshot.scan(space, range, direction, limit)
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        self.snapshot.scan_keys(range, direction, limit)
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        self.snapshot.scan_entries(range, direction, limit)
    }

    fn intersect_keys(
        &self,
        prefixes: &[Bytes],
        from: u64,
        limit: IntersectionLimit,
    ) -> Option<Reply<Result<Intersection, Error>>> {
        Some(match contract::check_keys(self.shard, None, prefixes) {
            Ok(()) => self.snapshot.intersect_keys(prefixes, from, limit),
            Err(error) => Reply::ready(Err(error)),
        })
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        if let Err(error) = contract::check_key(self.shard, None, family) {
            return Reply::ready(Err(error));
        }
        self.snapshot.count_keys(family)
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        self.snapshot.estimate_keys(range)
    }
}
