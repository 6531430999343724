//! An engine that lets something else happen between what an operation read and its commit, or before it reads, and counts the bytes
//! that readers are given.

use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{
    CommitVersion, Direction, Engine, EntryBatch, Error, KeyBatch, KeyPrefix, KeyRange, Mutation, Place,
    PlaceId, Reply, ScanBatch, ScanLimit, ShardId, ShardState, Space, Stats, View, WriteBatch,
};
use bytes::Bytes;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

type Work = Box<dyn FnOnce() + Send>;

/// How many places there are.
pub(crate) const PLACES: usize = 3;

/// The in-memory engine, with several places, and with work to do before the next commit.
pub(crate) struct Interposed {
    engine: MemoryEngine,
    work: Mutex<Option<Work>>,
    before_founding: Mutex<Option<Work>>,
    after_view: Mutex<Option<(ShardId, Work)>>,
    /// Whether one process after the other has it.
    pub(crate) exclusive: AtomicBool,
    /// Whether only removals are taken, as by an engine whose disk is full.
    pub(crate) is_full: AtomicBool,
    /// Whether commits that found shards fail, as those of a process do that is killed before it can.
    pub(crate) founds_nothing: AtomicBool,
    /// Bytes of values that readers were given.
    read_bytes: Arc<AtomicUsize>,
}

impl Default for Interposed {
    fn default() -> Interposed {
        Interposed {
            engine: MemoryEngine::with_places(PLACES),
            work: Mutex::default(),
            before_founding: Mutex::default(),
            after_view: Mutex::default(),
            exclusive: AtomicBool::default(),
            is_full: AtomicBool::default(),
            founds_nothing: AtomicBool::default(),
            read_bytes: Arc::default(),
        }
    }
}

impl Interposed {
    /// Does some work before the next commit, whose own commits are not disturbed.
    pub(crate) fn before_commit(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.work.lock().unwrap() = Some(Box::new(move || at_once(work)));
    }

    /// Does some work before the next commit that founds a shard.
    pub(crate) fn before_founding(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.before_founding.lock().unwrap() = Some(Box::new(move || at_once(work)));
    }

    /// Does some work after the next view of a shard was taken, before anybody reads from it.
    pub(crate) fn after_view(&self, shard: ShardId, work: impl Future<Output = ()> + Send + 'static) {
        *self.after_view.lock().unwrap() = Some((shard, Box::new(move || at_once(work))));
    }

    /// Bytes of values that readers were given since this was asked last.
    pub(crate) fn read_bytes(&self) -> usize {
        self.read_bytes.swap(0, Ordering::Relaxed)
    }

    /// How many keys there are.
    pub(crate) fn key_count(&self) -> usize {
        self.engine.key_count()
    }

    /// Gives up work that no commit came for.
    pub(crate) fn forget(&self) {
        *self.work.lock().unwrap() = None;
    }
}

/// Runs what never waits: the in-memory engine answers everything at once, and whoever gives way goes on when asked again.
fn at_once(work: impl Future<Output = ()>) {
    const GIVEN_WAY_MAX: usize = 10_000;
    let mut context = Context::from_waker(Waker::noop());
    let mut work = pin!(work);
    let is_done = (0..GIVEN_WAY_MAX).any(|_| work.as_mut().poll(&mut context).is_ready());
    assert!(is_done, "the in-memory engine waits for nothing");
}

impl Engine for Interposed {
    fn is_exclusive(&self) -> bool {
        self.exclusive.load(Ordering::Relaxed)
    }

    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        let view = self.engine.view(shard, epoch);
        let work = self.after_view.lock().unwrap().take_if(|(of, _)| *of == shard);
        if let Some((_, work)) = work {
            work();
        }
        let read_bytes = Arc::clone(&self.read_bytes);
        view.map(|view| view.map(|inner| -> Arc<dyn View> { Arc::new(CountedView { inner, read_bytes }) }))
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        let work = self.work.lock().unwrap().take();
        if let Some(work) = work {
            work();
        }
        let founding = self.before_founding.lock().unwrap().take_if(|_| !batch.foundings.is_empty());
        if let Some(work) = founding {
            work();
        }
        let removes = |mutation: &Mutation| matches!(mutation, Mutation::Delete { .. });
        if self.is_full.load(Ordering::Relaxed) && !batch.mutations.iter().any(removes) {
            return Reply::ready(Err(Error::Unavailable { reason: "the disk is full".to_owned() }));
        }
        if self.founds_nothing.load(Ordering::Relaxed) && !batch.foundings.is_empty() {
            return Reply::ready(Err(Error::Unavailable { reason: "the process is gone".to_owned() }));
        }
        self.engine.commit(batch)
    }

    fn places(&self) -> Reply<Result<Vec<Place>, Error>> {
        self.engine.places()
    }

    fn place_of(&self, shard: ShardId) -> Reply<Result<PlaceId, Error>> {
        self.engine.place_of(shard)
    }

    fn place(&self, shard: ShardId, place: PlaceId) -> Reply<Result<(), Error>> {
        self.engine.place(shard, place)
    }

    fn set_draining(&self, place: PlaceId, is_draining: bool) -> Reply<Result<(), Error>> {
        self.engine.set_draining(place, is_draining)
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        self.engine.shard(shard)
    }

    fn highest_shard(&self) -> Reply<Result<ShardId, Error>> {
        self.engine.highest_shard()
    }

    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        self.engine.unreclaimed()
    }

    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>> {
        self.engine.watch(shard, epoch, version)
    }

    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>> {
        self.engine.draw(shard, above, count)
    }

    fn write_refusal(&self) -> Option<String> {
        self.engine.write_refusal()
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn close(&self) -> Result<(), Error> {
        self.engine.close()
    }
}

/// A view that counts the bytes of the values it gives.
struct CountedView {
    inner: Arc<dyn View>,
    read_bytes: Arc<AtomicUsize>,
}

impl CountedView {
    fn counted<T>(
        &self,
        reply: Reply<Result<T, Error>>,
        bytes: impl FnOnce(&T) -> usize + Send + 'static,
    ) -> Reply<Result<T, Error>>
    where
        T: 'static,
    {
        let read_bytes = Arc::clone(&self.read_bytes);
        reply.map(move |answer| {
            answer.inspect(|answer| {
                read_bytes.fetch_add(bytes(answer), Ordering::Relaxed);
            })
        })
    }
}

impl View for CountedView {
    fn shard(&self) -> ShardId {
        self.inner.shard()
    }

    fn state(&self) -> ShardState {
        self.inner.state()
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        self.counted(self.inner.get(space, key), |value| value.as_ref().map_or(0, Bytes::len))
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        let values = self.inner.get_many(space, keys, byte_count_max);
        self.counted(values, |values| values.iter().flatten().map(Bytes::len).sum())
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        let batch = self.inner.scan(space, range, direction, limit);
        self.counted(batch, |batch| batch.entries.iter().map(|(_, value)| value.len()).sum())
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        self.inner.scan_keys(range, direction, limit)
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        self.inner.scan_entries(range, direction, limit)
    }

    fn count_keys(&self, family: &[u8; astrarium_kv::FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        self.inner.count_keys(family)
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        self.inner.estimate_keys(range)
    }
}
