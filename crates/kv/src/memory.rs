//! The engine that keeps everything in memory: the specification of the contract, and `serve --memory`.
//!
//! In: batches and reads of the contract. Out: answers at once ([`Reply::ready`] always).
//! Every key has a short chain of versions, each with the sequence number of the commit that wrote it. A view is a
//! sequence number: it sees, of each key, the newest version that is not younger than itself.
//! Invariants
//! - A version stays while some live view sees it, and goes at the next write of its key or soon after the last
//!   such view ends: each commit visits a bounded number of the keys that may hold something unneeded.
//! - A chain is never longer than the number of distinct live views plus one.
//! - Locks are taken in the order `state`, `live`.
//!
//! Not here: durability. [`Engine::close`] only refuses later commits.

use crate::contract::{self, ScanCollector};
use crate::{
    CommitVersion, Direction, Engine, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyRange, Reply, ScanBatch,
    ScanLimit, ShardId, ShardState, Space, Stats, View, WriteBatch,
};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Keys looked at for unneeded versions in a commit, besides two for each of its mutations, so that collecting always
/// outruns writing.
const COLLECT_EXTRA: usize = 16;

/// Where the set stands beside the spaces: most of its keys have empty values.
const SET: usize = Space::ALL.len();

/// Storage that ends with the process.
#[derive(Default)]
pub struct MemoryEngine {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: RwLock<State>,
    /// How many views are alive at each sequence number.
    live: Mutex<Live>,
}

type Live = BTreeMap<u64, usize>;

#[derive(Default)]
struct State {
    /// The spaces, then the set.
    spaces: [BTreeMap<Bytes, Chain>; SET + 1],
    shards: BTreeMap<ShardId, ShardState>,
    /// Of the last commit; what a new view sees.
    sequence: u64,
    /// Keys whose chains may be shortened once no view is older than the sequence; in ascending order of it.
    unneeded: VecDeque<(u64, usize, Bytes)>,
    stats: Stats,
    closed: bool,
}

/// The versions of one key.
struct Chain {
    newest: Version,
    /// Ascending by sequence; usually empty.
    older: Vec<Version>,
}

struct Version {
    sequence: u64,
    /// Nothing where the key was removed.
    value: Option<Bytes>,
}

impl MemoryEngine {
    /// An empty store.
    pub fn new() -> MemoryEngine {
        MemoryEngine::default()
    }
}

impl Engine for MemoryEngine {
    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        Reply::ready(self.shared.view(shard, epoch).map(|view| Arc::new(view) as Arc<dyn View>))
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        Reply::ready(self.shared.commit(batch))
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        Reply::ready(Ok(self.shared.state.read().shard(shard)))
    }

    fn write_refusal(&self) -> Option<String> {
        self.shared.state.read().closed.then(closed_reason)
    }

    fn stats(&self) -> Stats {
        self.shared.state.read().stats
    }

    fn close(&self) -> Result<(), Error> {
        self.shared.state.write().closed = true;
        Ok(())
    }
}

fn closed_reason() -> String {
    "the storage is closed".to_owned()
}

impl Shared {
    fn view(self: &Arc<Shared>, shard: ShardId, epoch: u64) -> Result<MemoryView, Error> {
        let state = self.state.read();
        if state.closed {
            return Err(Error::Unavailable { reason: closed_reason() });
        }
        let (sequence, state_of_shard) = (state.sequence, state.shard(shard));
        contract::check_epoch(shard, epoch, state_of_shard)?;
        *self.live.lock().entry(sequence).or_default() += 1;
        Ok(MemoryView { shared: Arc::clone(self), sequence, shard, state: state_of_shard })
    }

    fn commit(&self, batch: WriteBatch) -> Result<CommitVersion, Error> {
        contract::validate(&batch)?;
        let mut state = self.state.write();
        if state.closed {
            return Err(Error::Unavailable { reason: closed_reason() });
        }
        state.examine(&batch)?;
        let live = self.live.lock();
        Ok(state.apply(batch, &live))
    }
}

impl State {
    fn shard(&self, shard: ShardId) -> ShardState {
        self.shards.get(&shard).copied().unwrap_or_default()
    }

    /// Whether the batch may commit on the present state.
    fn examine(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        contract::check_epoch(batch.shard, batch.epoch, self.shard(batch.shard))?;
        for (index, (space, key, expectation)) in batch.expectations.iter().enumerate() {
            let present = self.spaces[*space as usize].get(key).and_then(|chain| chain.newest.value.as_ref());
            if !contract::holds(*expectation, present.map(AsRef::as_ref)) {
                self.stats.conflicts += 1;
                return Err(Error::Conflict { expectation: index });
            }
        }
        Ok(())
    }

    fn apply(&mut self, batch: WriteBatch, live: &Live) -> CommitVersion {
        self.sequence += 1;
        let version = contract::advance(self.shards.entry(batch.shard).or_default(), &batch);
        contract::raise_fences(&batch, |shard| self.shards.entry(shard).or_default().epoch += 1);
        let valued = batch.set.valued_entries().count();
        let set_changes = batch.set.added.len() + batch.set.removed.len() + valued;
        let visits = (batch.mutations.len() + set_changes) * 2 + COLLECT_EXTRA;
        for mutation in batch.mutations {
            let (space, key, value) = mutation.stamped(version);
            self.write(space as usize, key, value, live);
        }
        for key in batch.set.added.iter() {
            self.write(SET, Bytes::copy_from_slice(key), Some(Bytes::new()), live);
        }
        for (key, value) in batch.set.valued_entries() {
            self.write(SET, Bytes::copy_from_slice(key), Some(Bytes::copy_from_slice(value)), live);
        }
        for key in batch.set.removed.iter() {
            self.write(SET, Bytes::copy_from_slice(key), None, live);
        }
        self.collect(visits, live);
        self.stats.commits += 1;
        self.stats.groups += 1;
        version
    }

    fn write(&mut self, space: usize, key: Bytes, value: Option<Bytes>, live: &Live) {
        let sequence = self.sequence;
        let map = &mut self.spaces[space];
        let Some(chain) = map.get_mut(&key) else {
            if value.is_some() {
                map.insert(key, Chain { newest: Version { sequence, value }, older: Vec::new() });
            }
            return;
        };
        chain.write(Version { sequence, value }, live);
        if chain.is_gone() {
            map.remove(&key);
        } else if !chain.older.is_empty() {
            self.unneeded.push_back((sequence, space, key));
        }
    }

    /// Shortens the chains that no living view needs any more, oldest first.
    fn collect(&mut self, visits: usize, live: &Live) {
        let oldest = live.keys().next().copied().unwrap_or(u64::MAX);
        for _ in 0..visits {
            if self.unneeded.front().is_none_or(|(sequence, _, _)| *sequence > oldest) {
                return;
            }
            let Some((_, space, key)) = self.unneeded.pop_front() else {
                return;
            };
            let map = &mut self.spaces[space];
            let Some(chain) = map.get_mut(&key) else { continue };
            chain.prune(live);
            if chain.is_gone() {
                map.remove(&key);
            }
        }
    }
}

impl Chain {
    fn write(&mut self, version: Version, live: &Live) {
        if self.newest.sequence == version.sequence {
            // A later mutation of the same batch: nobody can have seen the earlier one.
            self.newest = version;
        } else {
            self.older.push(std::mem::replace(&mut self.newest, version));
        }
        self.prune(live);
    }

    /// Keeps of the older versions those that some live view sees.
    fn prune(&mut self, live: &Live) {
        let mut replaced_at = self.newest.sequence;
        for index in (0..self.older.len()).rev() {
            let written_at = self.older[index].sequence;
            if live.range(written_at..replaced_at).next().is_none() {
                self.older.remove(index);
            }
            replaced_at = written_at;
        }
    }

    /// Whether the key is removed for everyone.
    fn is_gone(&self) -> bool {
        self.newest.value.is_none() && self.older.is_empty()
    }

    fn at(&self, sequence: u64) -> Option<&Bytes> {
        let older = self.older.iter().rev();
        let version = std::iter::once(&self.newest).chain(older).find(|version| version.sequence <= sequence);
        version.and_then(|version| version.value.as_ref())
    }
}

struct MemoryView {
    shared: Arc<Shared>,
    sequence: u64,
    shard: ShardId,
    state: ShardState,
}

impl Drop for MemoryView {
    fn drop(&mut self) {
        let mut live = self.shared.live.lock();
        let count = live.get_mut(&self.sequence).expect("a living view is counted");
        *count -= 1;
        if *count == 0 {
            live.remove(&self.sequence);
        }
    }
}

impl View for MemoryView {
    fn shard(&self) -> ShardId {
        self.shard
    }

    fn state(&self) -> ShardState {
        self.state
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        let state = self.shared.state.read();
        let chain = state.spaces[space as usize].get(key);
        Reply::ready(Ok(chain.and_then(|chain| chain.at(self.sequence)).cloned()))
    }

    fn get_many(&self, space: Space, keys: &[Bytes]) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        let state = self.shared.state.read();
        let map = &state.spaces[space as usize];
        let value = |key: &Bytes| map.get(key).and_then(|chain| chain.at(self.sequence)).cloned();
        Reply::ready(Ok(keys.iter().map(value).collect()))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        if range.start >= range.end {
            return Reply::ready(Ok(ScanBatch::default()));
        }
        let state = self.shared.state.read();
        let entries = state.spaces[space as usize]
            .range::<Bytes, _>(&range.start..&range.end)
            .filter_map(|(key, chain)| Some((key, chain.at(self.sequence)?)));
        Reply::ready(Ok(match direction {
            Direction::Forward => gather(entries, limit),
            Direction::Backward => gather(entries.rev(), limit),
        }))
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        let state = self.shared.state.read();
        let keys = self.set_entries(&state, range).map(|(key, _)| key);
        Reply::ready(Ok(match direction {
            Direction::Forward => contract::gather_keys(keys, limit),
            Direction::Backward => contract::gather_keys(keys.rev(), limit),
        }))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        let state = self.shared.state.read();
        let entries = self.set_entries(&state, range);
        Reply::ready(Ok(match direction {
            Direction::Forward => contract::gather_entries(entries, limit),
            Direction::Backward => contract::gather_entries(entries.rev(), limit),
        }))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        self.estimate_keys(&KeyRange::prefix(family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        let state = self.shared.state.read();
        Reply::ready(Ok(self.set_entries(&state, range).count() as u64))
    }
}

impl MemoryView {
    fn set_entries<'s>(
        &'s self,
        state: &'s State,
        range: &'s KeyRange,
    ) -> impl DoubleEndedIterator<Item = (&'s [u8], &'s [u8])> {
        let end = (&range.end).max(&range.start);
        let chains = state.spaces[SET]
            .range::<[u8], _>((Bound::Included(&range.start[..]), Bound::Excluded(&end[..])));
        chains.filter_map(|(key, chain)| Some((&key[..], &chain.at(self.sequence)?[..])))
    }
}

fn gather<'a>(entries: impl Iterator<Item = (&'a Bytes, &'a Bytes)>, limit: ScanLimit) -> ScanBatch {
    let mut collector = ScanCollector::new(limit);
    for (key, value) in entries {
        if collector.is_full() {
            return collector.finish(true);
        }
        collector.push(key.clone(), value.clone());
    }
    collector.finish(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use crate::contract::block_on;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn keeps_the_contract() {
        contract::check(&|| Arc::new(MemoryEngine::new()));
    }

    fn version_count(engine: &MemoryEngine) -> usize {
        let state = engine.shared.state.read();
        state.spaces.iter().flat_map(BTreeMap::values).map(|chain| 1 + chain.older.len()).sum()
    }

    fn write(engine: &MemoryEngine, key: u8, value: Option<u8>) {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        let key = Bytes::copy_from_slice(&[key]);
        match value {
            Some(value) => batch.put(Space::Meta, key, Bytes::copy_from_slice(&[value]), Stamp::NONE),
            None => batch.delete(Space::Meta, key),
        }
        block_on(engine.commit(batch)).unwrap();
    }

    fn view(engine: &MemoryEngine) -> Arc<dyn View> {
        block_on(engine.view(ShardId(1), 0)).unwrap()
    }

    fn everything(view: &dyn View) -> Vec<(Bytes, Bytes)> {
        let range = KeyRange { start: Bytes::new(), end: Bytes::from_static(&[0xFF]) };
        let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
        block_on(view.scan(Space::Meta, &range, Direction::Forward, limit)).unwrap().entries
    }

    #[test]
    fn a_long_view_keeps_one_version_of_a_hot_key() {
        let engine = MemoryEngine::new();
        write(&engine, 1, Some(0));
        let held = view(&engine);
        for value in 1..100 {
            let _short = view(&engine);
            write(&engine, 1, Some(value));
        }
        write(&engine, 1, Some(100));
        assert_eq!(version_count(&engine), 2);
        assert_eq!(everything(&*held)[0].1[..], [0]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(u8, Option<u8>),
        Open,
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..6u8, proptest::option::of(any::<u8>())).prop_map(|(key, value)| Step::Write(key, value)),
            1 => Just(Step::Open),
            1 => any::<usize>().prop_map(Step::Drop),
        ]
    }

    proptest! {
        /// Each view sees what a copy of the whole map at its time holds; when the last is gone, so are all old
        /// versions and removed keys.
        #[test]
        fn views_are_copies(steps in vec(step(), 0..80)) {
            let engine = MemoryEngine::new();
            let mut model = BTreeMap::new();
            let mut open = Vec::new();
            for step in steps {
                match step {
                    Step::Write(key, value) => {
                        write(&engine, key, value);
                        match value {
                            Some(value) => model.insert(key, value),
                            None => model.remove(&key),
                        };
                    }
                    Step::Open => open.push((view(&engine), model.clone())),
                    Step::Drop(which) if !open.is_empty() => drop(open.swap_remove(which % open.len())),
                    Step::Drop(_) => {}
                }
                for (view, model) in &open {
                    let seen: Vec<_> = everything(&**view).iter().map(|(key, value)| (key[0], value[0])).collect();
                    prop_assert_eq!(seen, model.clone().into_iter().collect::<Vec<_>>());
                }
            }
            open.clear();
            for _ in 0..8 {
                write(&engine, 100, Some(1));
            }
            model.insert(100, 1);
            prop_assert_eq!(version_count(&engine), model.len());
            prop_assert!(engine.shared.live.lock().is_empty());
        }
    }
}
