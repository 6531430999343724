//! The engine that keeps everything in memory: the specification of the contract, and `serve --memory`.
//!
//! In: batches and reads of the contract. Out: answers at once ([`Reply::ready`] always).
//! Every key has a short chain of versions, each with the sequence number of the commit that wrote it. A view is a
//! sequence number: it sees, of each key, the newest version that is not younger than itself.
//! Invariants
//! - A version stays while some live view sees it, and goes at the next write of its key or soon after the last
//!   such view ends: each commit visits a bounded number of the keys that may hold something unneeded.
//! - Keys under a dropped prefix stay until no live view is older than the drop; then each commit removes some of them, and
//!   whoever asks what is left of them removes the rest, with the lock let go now and then.
//! - A chain is never longer than the number of distinct live views plus one.
//! - A commit changes a bounded number of keys of the set under one hold of the lock. A larger one writes its versions first, as
//!   pending, which nobody sees; then, with its mutations, all are visible at once; then they get their sequence number one by one.
//! - Locks are taken in the order `large`, `state`, `live`.
//!
//! Not here: durability. [`Engine::close`] only refuses later commits.

mod pending_drops;

use crate::contract::{self, ScanCollector};
use crate::places::PlaceTable;
use crate::{
    CommitVersion, Direction, Engine, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyPrefix, KeyRange, Place,
    PlaceId, Reply, ScanBatch, ScanLimit, ShardId, ShardState, Space, Stats, View, Watchers, WriteBatch,
};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use pending_drops::PendingDrops;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Keys looked at for unneeded versions in a commit, besides two for each of its mutations, so that collecting always
/// outruns writing.
const COLLECT_EXTRA: usize = 16;

/// Dropped keys removed at once, when somebody asks what is left of them.
const RECLAIM_STEP: usize = 4096;

/// Keys of the set changed under one hold of the lock.
const STEP_KEYS: usize = 2048;

/// The sequence number of versions whose commit is under way: larger than that of any view.
const PENDING: u64 = u64::MAX;

/// Where the set stands beside the spaces: most of its keys have empty values.
const SET: usize = Space::ALL.len();

/// Storage that ends with the process.
#[derive(Default)]
pub struct MemoryEngine {
    shared: Arc<MemoryShared>,
}

#[derive(Default)]
struct MemoryShared {
    /// Whether one account alone uses the store; tests let several stand for several processes.
    is_exclusive: bool,
    /// Of commits that take several steps one is under way at a time.
    large: Mutex<()>,
    state: RwLock<MemoryState>,
    /// How many views are alive at each sequence number.
    live: Mutex<Live>,
    watchers: Arc<Watchers>,
    draws: contract::Draws,
}

type Live = BTreeMap<u64, usize>;

struct MemoryState {
    /// The spaces, then the set.
    spaces: [BTreeMap<Bytes, Chain>; SET + 1],
    shards: BTreeMap<ShardId, ShardState>,
    /// Which shard lives where. All are in the same maps; only the book is kept.
    places: PlaceTable,
    /// Of the last commit; what a new view sees.
    sequence: u64,
    /// The sequence number that pending versions count as: [`PENDING`] until their commit is visible.
    pending_at: u64,
    /// How many prefixes were ever dropped.
    drop_count: usize,
    /// Keys whose chains may be shortened once no view is older than the sequence; in ascending order of it.
    unneeded: VecDeque<(u64, usize, Bytes)>,
    /// Dropped prefixes under which keys may be left, in the order of the commits that dropped them.
    drops: PendingDrops,
    stats: Stats,
    closed: bool,
}

/// A key of the set, and the value it gets; nothing where it is removed.
type SetChange = (Bytes, Option<Bytes>);

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

impl Default for MemoryState {
    fn default() -> MemoryState {
        MemoryState {
            spaces: Default::default(),
            shards: BTreeMap::new(),
            places: PlaceTable::new(1),
            sequence: 0,
            pending_at: PENDING,
            drop_count: 0,
            unneeded: VecDeque::new(),
            drops: PendingDrops::default(),
            stats: Stats::default(),
            closed: false,
        }
    }
}

impl MemoryEngine {
    /// An empty store.
    pub fn new() -> MemoryEngine {
        MemoryEngine::default()
    }

    /// An empty store that no second account will use beside the first.
    pub fn exclusive() -> MemoryEngine {
        MemoryEngine { shared: Arc::new(MemoryShared { is_exclusive: true, ..MemoryShared::default() }) }
    }

    /// An empty store with so many places, at least one. It keeps the promises of the contract about them, for tests of moves.
    pub fn with_places(count: usize) -> MemoryEngine {
        let engine = MemoryEngine::default();
        engine.shared.state.write().places = PlaceTable::new(count);
        engine
    }

    /// How many keys all shards have together, the set's included. For tests, which look for leftovers of shards that are gone.
    pub fn key_count(&self) -> usize {
        let state = self.shared.state.read();
        let is_there = |chain: &&Chain| chain.at(state.sequence, state.pending_at).is_some();
        state.spaces.iter().flat_map(BTreeMap::values).filter(is_there).count()
    }
}

impl Engine for MemoryEngine {
    fn is_exclusive(&self) -> bool {
        self.shared.is_exclusive
    }

    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        Reply::ready(self.shared.view(shard, epoch).map(|view| Arc::new(view) as Arc<dyn View>))
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        Reply::ready(self.shared.commit(batch))
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        let state = self.shared.state.read().shard(shard);
        Reply::ready(if state.is_dropped { Err(Error::Dropped { shard }) } else { Ok(state) })
    }

    fn highest_shard(&self) -> Reply<Result<ShardId, Error>> {
        let state = self.shared.state.read();
        let counted = state.shards.keys().next_back().copied().unwrap_or(contract::META_SHARD);
        let of_space = |space: Space| {
            let map = &state.spaces[space as usize];
            let before = |end: &[u8]| map.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(end)));
            contract::highest_shard(space, |end| Ok(before(end).next_back().map(|(key, _)| key.clone())))
        };
        let highest = Space::ALL
            .into_iter()
            .try_fold(counted, |highest, space| of_space(space).map(|shard| highest.max(shard)));
        Reply::ready(highest)
    }

    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        while self.shared.reclaim() {}
        let state = self.shared.state.read();
        Reply::ready(Ok(state.drops.all().collect()))
    }

    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>> {
        let shared = Arc::clone(&self.shared);
        let look = move || contract::watched(shard, epoch, version, shared.open_state(shard));
        self.shared.watchers.until(shard, look)
    }

    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>> {
        let state = self.shared.open_state(shard);
        Reply::ready(state.map(|state| self.shared.draws.draw(shard, state, above, count)))
    }

    fn places(&self) -> Reply<Result<Vec<Place>, Error>> {
        Reply::ready(Ok(self.shared.state.read().places.all()))
    }

    fn place_of(&self, shard: ShardId) -> Reply<Result<PlaceId, Error>> {
        let state = self.shared.state.read();
        let is_dropped = state.shard(shard).is_dropped;
        Reply::ready(if is_dropped {
            Err(Error::Dropped { shard })
        } else {
            Ok(state.places.place_of(shard))
        })
    }

    fn place(&self, shard: ShardId, place: PlaceId) -> Reply<Result<(), Error>> {
        let mut state = self.shared.state.write();
        let is_dropped = state.shard(shard).is_dropped;
        Reply::ready(if is_dropped { Err(Error::Dropped { shard }) } else { state.places.want(shard, place) })
    }

    fn set_draining(&self, place: PlaceId, is_draining: bool) -> Reply<Result<(), Error>> {
        Reply::ready(self.shared.state.write().places.set_draining(place, is_draining))
    }

    fn write_refusal(&self) -> Option<String> {
        self.shared.state.read().closed.then(closed_reason)
    }

    fn stats(&self) -> Stats {
        self.shared.state.read().stats
    }

    fn close(&self) -> Result<(), Error> {
        self.shared.state.write().closed = true;
        self.shared.watchers.wake_all();
        Ok(())
    }
}

fn closed_reason() -> String {
    "the storage is closed".to_owned()
}

impl MemoryShared {
    fn view(self: &Arc<MemoryShared>, shard: ShardId, epoch: u64) -> Result<MemoryView, Error> {
        let state = self.state.read();
        if state.closed {
            return Err(Error::Unavailable { reason: closed_reason() });
        }
        let (sequence, state_of_shard) = (state.sequence, state.shard(shard));
        contract::check_epoch(shard, epoch, state_of_shard)?;
        *self.live.lock().entry(sequence).or_default() += 1;
        Ok(MemoryView { shared: Arc::clone(self), sequence, shard, state: state_of_shard })
    }

    /// Removes some of what was dropped; false when there is nothing that could go.
    fn reclaim(&self) -> bool {
        let mut state = self.state.write();
        let live = self.live.lock();
        state.reclaim(RECLAIM_STEP, &live)
    }

    /// A shard's counters, as long as the engine is open.
    fn open_state(&self, shard: ShardId) -> Result<ShardState, Error> {
        let state = self.state.read();
        if state.closed {
            return Err(Error::Unavailable { reason: closed_reason() });
        }
        Ok(state.shard(shard))
    }

    fn commit(&self, batch: WriteBatch) -> Result<CommitVersion, Error> {
        contract::validate(&batch)?;
        // Done before the lock is taken: a batch may have very many keys.
        let (added, removed) = (batch.set.added.to_shared(), batch.set.removed.to_shared());
        let valued = batch.set.valued_entries();
        let valued =
            valued.map(|(key, value)| (Bytes::copy_from_slice(key), Some(Bytes::copy_from_slice(value))));
        let added = added.into_iter().map(|key| (key, Some(Bytes::new())));
        let changes: Vec<SetChange> =
            added.chain(valued).chain(removed.into_iter().map(|key| (key, None))).collect();
        if changes.len() > STEP_KEYS {
            return self.commit_in_steps(batch, &changes, || {});
        }
        let changed: Vec<ShardId> = contract::changed_shards(&batch).collect();
        let mut state = self.state.write();
        state.examine(&batch)?;
        let live = self.live.lock();
        let version = state.apply(batch, changes, &live);
        drop((live, state));
        self.watchers.wake(changed);
        Ok(version)
    }

    /// Commits a batch that changes many keys of the set; calls `between` whenever it does not hold the lock.
    fn commit_in_steps(
        &self,
        mut batch: WriteBatch,
        changes: &[SetChange],
        mut between: impl FnMut(),
    ) -> Result<CommitVersion, Error> {
        let _large = self.large.lock();
        let changed: Vec<ShardId> = contract::changed_shards(&batch).collect();
        let version = loop {
            let drop_count = {
                let mut state = self.state.write();
                state.examine(&batch)?;
                state.drop_count
            };
            for step in changes.chunks(STEP_KEYS) {
                between();
                let mut state = self.state.write();
                let live = self.live.lock();
                for (key, value) in step {
                    state.write_pending(key, value.as_ref(), &live);
                }
            }
            between();
            let mut state = self.state.write();
            if state.drop_count == drop_count {
                // Its keys were looked at; nothing was dropped since.
                let set = std::mem::take(&mut batch.set);
                if let Err(error) = state.examine(&batch) {
                    drop(state);
                    self.end_pending(changes, between);
                    return Err(error);
                }
                let live = self.live.lock();
                let version = state.apply(batch, Vec::new(), &live);
                state.pending_at = state.sequence;
                drop((live, state, set));
                break version;
            }
            // Some of them may have gone with what was dropped.
            drop(state);
            self.end_pending(changes, &mut between);
        };
        self.watchers.wake(changed);
        self.end_pending(changes, between);
        Ok(version)
    }

    /// Gives pending versions their sequence number, or takes them back if their commit did not become visible.
    fn end_pending(&self, changes: &[SetChange], mut between: impl FnMut()) {
        for step in changes.chunks(STEP_KEYS) {
            between();
            let mut state = self.state.write();
            let live = self.live.lock();
            for (key, _) in step {
                state.end_pending(key, &live);
            }
            state.collect(step.len() * 2, &live);
        }
        self.state.write().pending_at = PENDING;
    }
}

impl MemoryState {
    fn shard(&self, shard: ShardId) -> ShardState {
        self.shards.get(&shard).copied().unwrap_or_default()
    }

    /// Whether the batch may commit on the present state.
    fn examine(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Unavailable { reason: closed_reason() });
        }
        contract::check_epoch(batch.shard, batch.epoch, self.shard(batch.shard))?;
        let dropped = self.drops.seen_from(u64::MAX);
        dropped.check(batch)?;
        for (index, (space, key, expectation)) in batch.expectations.iter().enumerate() {
            let present = self.spaces[*space as usize].get(key).and_then(|chain| chain.newest.value.as_ref());
            let present = present.filter(|_| !dropped.covers(Some(*space), key));
            if !contract::holds(*expectation, present.map(AsRef::as_ref)) {
                self.stats.conflicts += 1;
                return Err(Error::Conflict { expectation: index });
            }
        }
        for (shard, founding) in &batch.foundings {
            contract::found(*shard, *founding, self.shard(*shard))?;
        }
        Ok(())
    }

    fn apply(&mut self, batch: WriteBatch, changes: Vec<SetChange>, live: &Live) -> CommitVersion {
        self.sequence += 1;
        for shard in contract::changed_shards(&batch) {
            if !self.shard(shard).is_dropped {
                self.places.settle(shard);
            }
        }
        for (shard, founding) in &batch.foundings {
            // Looked at before: it is new.
            if let Ok(founded) = contract::found(*shard, *founding, self.shard(*shard)) {
                self.shards.insert(*shard, founded);
            }
        }
        let version = contract::advance(self.shards.entry(batch.shard).or_default(), &batch);
        contract::raise_fences(&batch, |shard| self.shards.entry(shard).or_default().epoch += 1);
        for shard in &batch.drops.shards {
            contract::drop_shard(self.shards.entry(*shard).or_default());
            self.places.leave(*shard);
        }
        self.drop_count += batch.drops.prefixes.len();
        self.drops.add(self.sequence, &batch.drops.prefixes);
        let visits = (batch.mutations.len() + changes.len()) * 2 + COLLECT_EXTRA;
        for mutation in batch.mutations {
            let (space, key, value) = mutation.stamped(version);
            self.write(space as usize, key, value, live);
        }
        for (key, value) in changes {
            self.write(SET, key, value, live);
        }
        self.collect(visits, live);
        self.reclaim(visits, live);
        self.stats.commits += 1;
        self.stats.groups += 1;
        version
    }

    /// Removes some keys of the oldest drops that no living snapshot sees; a drop without keys counts as one. False when there is none.
    fn reclaim(&mut self, mut visits: usize, live: &Live) -> bool {
        let oldest = live.keys().next().copied().unwrap_or(u64::MAX);
        let mut is_reclaimed = false;
        while visits > 0 {
            let Some(prefix) = self.drops.next(oldest) else { break };
            let map = &mut self.spaces[prefix.space.map_or(SET, |space| space as usize)];
            let KeyRange { start, end } = KeyRange::prefix(&prefix.bytes);
            let keys: Vec<Bytes> = map.range(start..end).take(visits).map(|(key, _)| key.clone()).collect();
            for key in &keys {
                map.remove(key);
            }
            if keys.len() < visits {
                self.drops.reclaimed();
            }
            visits = visits.saturating_sub(keys.len() + 1);
            is_reclaimed = true;
        }
        is_reclaimed
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
        chain.write(Version { sequence, value }, live, self.pending_at);
        if chain.is_gone() {
            map.remove(&key);
        } else if !chain.older.is_empty() {
            self.unneeded.push_back((sequence, space, key));
        }
    }

    /// Writes a version of a key of the set that nobody sees yet; a removal too, since others may write the key meanwhile.
    fn write_pending(&mut self, key: &Bytes, value: Option<&Bytes>, live: &Live) {
        let version = Version { sequence: PENDING, value: value.cloned() };
        match self.spaces[SET].get_mut(key) {
            Some(chain) => chain.write(version, live, self.pending_at),
            None => drop(self.spaces[SET].insert(key.clone(), Chain { newest: version, older: Vec::new() })),
        }
    }

    /// Gives a pending version its sequence number, or takes it back.
    fn end_pending(&mut self, key: &Bytes, live: &Live) {
        let (sequence, pending_at, map) = (self.sequence, self.pending_at, &mut self.spaces[SET]);
        let Some(chain) = map.get_mut(key).filter(|chain| chain.newest.sequence == PENDING) else { return };
        if pending_at != PENDING {
            chain.newest.sequence = pending_at;
            chain.prune(live, pending_at);
        } else if let Some(before) = chain.older.pop() {
            chain.newest = before;
        } else {
            map.remove(key);
            return;
        }
        if chain.is_gone() {
            map.remove(key);
        } else if !chain.older.is_empty() || chain.newest.value.is_none() {
            self.unneeded.push_back((sequence, SET, key.clone()));
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
            chain.prune(live, self.pending_at);
            if chain.is_gone() {
                map.remove(&key);
            }
        }
    }
}

impl Chain {
    fn write(&mut self, version: Version, live: &Live, pending_at: u64) {
        if self.newest.sequence == PENDING && version.sequence != PENDING {
            if pending_at == PENDING {
                // The pending one will be the newer of the two.
                if self.older.last().is_some_and(|last| last.sequence == version.sequence) {
                    self.older.pop();
                }
                self.older.push(version);
                return self.prune(live, pending_at);
            }
            self.newest.sequence = pending_at;
        }
        if self.newest.sequence == version.sequence {
            // A later mutation of the same batch: nobody can have seen the earlier one.
            self.newest = version;
        } else {
            self.older.push(std::mem::replace(&mut self.newest, version));
        }
        self.prune(live, pending_at);
    }

    /// Keeps of the older versions those that some live view sees, and the last one below a version that nobody sees yet.
    fn prune(&mut self, live: &Live, pending_at: u64) {
        let mut replaced_at = if self.newest.sequence == PENDING { pending_at } else { self.newest.sequence };
        for index in (0..self.older.len()).rev() {
            let written_at = self.older[index].sequence;
            if replaced_at != PENDING && live.range(written_at..replaced_at).next().is_none() {
                self.older.remove(index);
            }
            replaced_at = written_at;
        }
    }

    /// Whether the key is removed for everyone.
    fn is_gone(&self) -> bool {
        self.newest.value.is_none() && self.older.is_empty()
    }

    fn at(&self, sequence: u64, pending_at: u64) -> Option<&Bytes> {
        let older = self.older.iter().rev();
        let written_at = |version: &Version| {
            if version.sequence == PENDING { pending_at } else { version.sequence }
        };
        let mut versions = std::iter::once(&self.newest).chain(older);
        let version = versions.find(|version| written_at(version) <= sequence);
        version.and_then(|version| version.value.as_ref())
    }
}

struct MemoryView {
    shared: Arc<MemoryShared>,
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
        if let Err(error) = contract::check_key(self.shard, Some(space), key) {
            return Reply::ready(Err(error));
        }
        let state = self.shared.state.read();
        let chain = state.spaces[space as usize].get(key);
        let value = chain.and_then(|chain| chain.at(self.sequence, state.pending_at));
        let value = value.filter(|_| !state.drops.seen_from(self.sequence).covers(Some(space), key));
        Reply::ready(Ok(value.cloned()))
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
        let state = self.shared.state.read();
        let map = &state.spaces[space as usize];
        let dropped = state.drops.seen_from(self.sequence);
        let value = |key: &Bytes| {
            let value = map.get(key).and_then(|chain| chain.at(self.sequence, state.pending_at));
            value.filter(|_| !dropped.covers(Some(space), key)).cloned()
        };
        Reply::ready(contract::try_collect_values(keys.iter().map(|key| Ok(value(key))), byte_count_max))
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
        if range.start >= range.end {
            return Reply::ready(Ok(ScanBatch::default()));
        }
        let state = self.shared.state.read();
        let pieces = state.drops.seen_from(self.sequence).cut_out(Some(space), range, Direction::Forward);
        let map = &state.spaces[space as usize];
        let entries = pieces
            .iter()
            .flat_map(|piece| map.range::<Bytes, _>(&piece.start..&piece.end))
            .filter_map(|(key, chain)| Some((key, chain.at(self.sequence, state.pending_at)?)));
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
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let state = self.shared.state.read();
        let pieces = self.pieces(&state, range);
        let keys = self.set_entries(&state, &pieces).map(|(key, _)| key);
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
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let state = self.shared.state.read();
        let pieces = self.pieces(&state, range);
        let entries = self.set_entries(&state, &pieces);
        Reply::ready(Ok(match direction {
            Direction::Forward => contract::gather_entries(entries, limit),
            Direction::Backward => contract::gather_entries(entries.rev(), limit),
        }))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        self.estimate_keys(&KeyRange::prefix(family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        if let Err(error) = contract::check_range(self.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let state = self.shared.state.read();
        Reply::ready(Ok(self.set_entries(&state, &self.pieces(&state, range)).count() as u64))
    }
}

impl MemoryView {
    fn pieces(&self, state: &MemoryState, range: &KeyRange) -> Vec<KeyRange> {
        state.drops.seen_from(self.sequence).cut_out(None, range, Direction::Forward)
    }

    fn set_entries<'s>(
        &'s self,
        state: &'s MemoryState,
        pieces: &'s [KeyRange],
    ) -> impl DoubleEndedIterator<Item = (&'s [u8], &'s [u8])> {
        let bounds =
            |piece: &'s KeyRange| (Bound::Included(&piece.start[..]), Bound::Excluded(&piece.end[..]));
        let chains = pieces.iter().flat_map(move |piece| state.spaces[SET].range::<[u8], _>(bounds(piece)));
        chains.filter_map(|(key, chain)| Some((&key[..], &chain.at(self.sequence, state.pending_at)?[..])))
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
        contract::check(&|| Arc::new(MemoryEngine::with_places(3)));
    }

    fn version_count(engine: &MemoryEngine) -> usize {
        let state = engine.shared.state.read();
        state.spaces.iter().flat_map(BTreeMap::values).map(|chain| 1 + chain.older.len()).sum()
    }

    fn write(engine: &MemoryEngine, key: u8, value: Option<u8>) {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        let key = contract::shard_key(ShardId(1), &[key]);
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
        let range = KeyRange::prefix(&contract::shard_key(ShardId(1), &[]));
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

    fn set_key(number: usize) -> Bytes {
        [&1u64.to_be_bytes()[..], &number.to_be_bytes()[..]].concat().into()
    }

    fn small(engine: &MemoryEngine, added: &[usize], removed: &[usize]) {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        for number in added {
            batch.set.added.push(&set_key(*number));
        }
        for number in removed {
            batch.set.removed.push(&set_key(*number));
        }
        block_on(engine.commit(batch)).unwrap();
    }

    fn count(view: &dyn View) -> u64 {
        block_on(view.estimate_keys(&KeyRange::prefix(&1u64.to_be_bytes()))).unwrap()
    }

    /// A commit that adds 10,000 keys, has those from 20,000 on removed, and expects that key 9 of `Meta` is absent.
    fn large(engine: &MemoryEngine, between: impl FnMut()) -> Result<CommitVersion, Error> {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        batch.expect(Space::Meta, contract::shard_key(ShardId(1), &[9]), crate::Expectation::Absent);
        let added = (0..10_000).map(|number| (set_key(number), Some(Bytes::new())));
        let changes: Vec<SetChange> =
            added.chain((20_000..20_010).map(|number| (set_key(number), None))).collect();
        engine.shared.commit_in_steps(batch, &changes, between)
    }

    #[test]
    fn a_large_commit_holds_nobody_up_and_is_visible_at_once() {
        let engine = MemoryEngine::new();
        small(&engine, &[5, 20_000, 20_001], &[]);
        let before = view(&engine);
        let (mut views, mut number) = (Vec::new(), 0);
        let version = large(&engine, || {
            assert!(engine.shared.state.try_write().is_some(), "the lock is free");
            number += 1;
            // Others write keys of the same commit, before it and after it: theirs are older until it is visible.
            let seen = view(&engine);
            let is_visible = count(&*seen) >= 10_000;
            small(&engine, &[20_002, 30_000 + number], &[7, 20_000]);
            views.push((seen, is_visible, number));
        })
        .unwrap();
        assert_eq!(count(&*before), 3);
        for (seen, is_visible, number) in &views {
            let keys = count(&**seen);
            assert_eq!(*is_visible, keys >= 10_000, "a view stays as it is: {keys} keys, step {number}");
            assert!(
                *is_visible || keys <= 4 + *number as u64,
                "nothing of it shows: {keys} keys, step {number}"
            );
        }
        assert!(views.iter().any(|(_, is_visible, _)| *is_visible) && !views[5].1);
        assert!(version.0 > 1);
        // Removed after it: key 7; added after it: key 20,002, and one in each step.
        assert_eq!(count(&*view(&engine)), 9_999 + 1 + number as u64);
        drop((views, before));
        for _ in 0..3_000 {
            write(&engine, 1, Some(1));
        }
        assert_eq!(version_count(&engine), engine.key_count(), "nothing is left over");
    }

    #[test]
    fn a_large_commit_that_is_refused_leaves_nothing() {
        let engine = MemoryEngine::new();
        small(&engine, &[5, 20_000], &[]);
        let mut is_first = true;
        let refused = large(&engine, || {
            if std::mem::take(&mut is_first) {
                write(&engine, 9, Some(1));
                small(&engine, &[6], &[5]);
            }
        });
        assert!(matches!(refused, Err(Error::Conflict { expectation: 0 })), "{refused:?}");
        assert_eq!(count(&*view(&engine)), 2);
        assert_eq!((version_count(&engine), engine.key_count()), (3, 3));
    }

    #[derive(Debug, Clone)]
    enum VersionedValue {
        Write(u8, Option<u8>),
        Open,
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = VersionedValue> {
        prop_oneof![
            4 => (0..6u8, proptest::option::of(any::<u8>())).prop_map(|(key, value)| VersionedValue::Write(key, value)),
            1 => Just(VersionedValue::Open),
            1 => any::<usize>().prop_map(VersionedValue::Drop),
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
                    VersionedValue::Write(key, value) => {
                        write(&engine, key, value);
                        match value {
                            Some(value) => model.insert(key, value),
                            None => model.remove(&key),
                        };
                    }
                    VersionedValue::Open => open.push((view(&engine), model.clone())),
                    VersionedValue::Drop(which) if !open.is_empty() => drop(open.swap_remove(which % open.len())),
                    VersionedValue::Drop(_) => {}
                }
                for (view, model) in &open {
                    let seen: Vec<_> = everything(&**view).iter().map(|(key, value)| (key[9], value[0])).collect();
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
