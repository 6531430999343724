//! The reference engine behind trouble: every answer may come late, commits may be refused or get lost, and the power may be cut.
//!
//! In: batches and reads of the `kv` contract. Out: what the contract allows an engine to answer, chosen by the dice.
//! The [`Disk`] is what survives: the batches that were applied, in order. Opening again applies them to a new engine. A batch
//! whose sync failed is in limbo: its writer is told that storage takes no writes, nothing is written until storage has been
//! healed or opened again, and only then it turns out whether the batch is there.
//! Invariants
//! - A batch is on the disk when it becomes visible, and before its writer hears of it.
//! - With a [`Misdeed`] the storage breaks the contract, so that it can be seen that the checks notice.

use crate::dice::Dice;
use crate::executor::{CurrentOperation, give_way};
use crate::history::CommitHistory;
use crate::time::Time;
use astrarium_env::Timeline as _;
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{
    CommitVersion, Damage, Direction, Engine, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyPrefix, KeyRange,
    Reply, ScanBatch, ScanLimit, SetLoss, ShardId, ShardState, Space, Stats, View, WriteBatch,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How a storage breaks the contract on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misdeed {
    /// It does not.
    None,
    /// When the power is cut, the last acknowledged batch is gone.
    ForgetsTheLastBatch,
    /// When the power is cut, the last acknowledged batch is there in half.
    TearsTheLastBatch,
    /// Batches are applied whatever they expect.
    IgnoresExpectations,
    /// Batches are applied whatever epoch they were prepared under.
    IgnoresEpochs,
    /// Reads may show what was before the last batch.
    ShowsThePast,
}

/// How likely things are, in cases of a thousand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likelihoods {
    /// An answer comes later.
    pub(crate) delay: u64,
    /// The queue is full.
    pub(crate) busy: u64,
    /// A sync fails.
    pub(crate) lost_sync: u64,
}

/// What everything in a run shares.
pub(crate) struct Surroundings {
    pub(crate) dice: Dice,
    pub(crate) time: Time,
    pub(crate) names: CurrentOperation,
    pub(crate) history: Mutex<CommitHistory>,
    /// None while a run is set up or checked at its end.
    pub(crate) likelihoods: Mutex<Option<Likelihoods>>,
    pub(crate) misdeed: Misdeed,
}

impl Surroundings {
    fn happens(&self, which: fn(Likelihoods) -> u64) -> bool {
        let likelihoods = *self.likelihoods.lock();
        likelihoods.is_some_and(|likelihoods| self.dice.chance(which(likelihoods)))
    }

    /// Takes some time, or none.
    async fn dawdle(&self) {
        while self.happens(|likelihoods| likelihoods.delay) {
            if self.dice.chance(500) {
                give_way().await;
            } else {
                // Now and then long enough for background work to come in between.
                let micros_max = if self.dice.chance(50) { 2_000_000 } else { 5_000 };
                self.time.sleep(Duration::from_micros(self.dice.below(micros_max))).await;
            }
        }
    }
}

/// What survives.
#[derive(Default)]
pub(crate) struct Disk {
    /// Batches that were applied.
    log: Vec<WriteBatch>,
    /// Batches whose sync failed, each with its operation.
    limbo: Vec<(u64, WriteBatch)>,
}

/// An opened storage. Clones are the same one.
#[derive(Clone)]
pub(crate) struct FaultyStorage {
    shared: Arc<OpenDisk>,
}

struct OpenDisk {
    engine: MemoryEngine,
    disk: Arc<Mutex<Disk>>,
    around: Arc<Surroundings>,
    /// Since a sync failed.
    refuses_writes: AtomicBool,
    /// For [`Misdeed::ShowsThePast`].
    past: Mutex<BTreeMap<ShardId, Arc<dyn View>>>,
}

impl FaultyStorage {
    /// Opens what a disk holds.
    pub(crate) fn open(disk: &Arc<Mutex<Disk>>, around: &Arc<Surroundings>) -> FaultyStorage {
        let engine = MemoryEngine::new();
        let mut held = disk.lock();
        match around.misdeed {
            Misdeed::ForgetsTheLastBatch => drop(held.log.pop()),
            Misdeed::TearsTheLastBatch => {
                if let Some(batch) = held.log.last_mut() {
                    let half = batch.mutations.len() / 2;
                    batch.mutations.truncate(half);
                }
            }
            _ => {}
        }
        for batch in &held.log {
            // What was applied once can be applied again, except after a misdeed.
            let _ = at_once(engine.commit(batch.clone()));
        }
        drop(held);
        let (disk, around) = (Arc::clone(disk), Arc::clone(around));
        let (refuses_writes, past) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(OpenDisk { engine, disk, around, refuses_writes, past });
        shared.settle_limbo();
        FaultyStorage { shared }
    }
}

/// The answer of an engine that never waits.
fn at_once<T: Unpin>(reply: Reply<T>) -> T {
    match pin!(reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("the reference engine answers at once"),
    }
}

impl OpenDisk {
    /// It turns out which of the batches whose sync failed are there.
    fn settle_limbo(&self) {
        let limbo = std::mem::take(&mut self.disk.lock().limbo);
        for (operation, batch) in limbo {
            if self.around.dice.chance(500) {
                // What the batch relied on may have changed since; then it was not there.
                let _ = self.apply(operation, batch);
            }
        }
    }

    fn apply(&self, operation: u64, mut batch: WriteBatch) -> Result<CommitVersion, Error> {
        if self.around.misdeed == Misdeed::ShowsThePast {
            let epoch = at_once(self.engine.shard(batch.shard))?.epoch;
            let past = at_once(self.engine.view(batch.shard, epoch))?;
            self.past.lock().insert(batch.shard, past);
        }
        match self.around.misdeed {
            Misdeed::IgnoresExpectations => batch.expectations.clear(),
            Misdeed::IgnoresEpochs => batch.epoch = at_once(self.engine.shard(batch.shard))?.epoch,
            _ => {}
        }
        let version = at_once(self.engine.commit(batch.clone()))?;
        self.around.history.lock().committed(operation, batch.shard.0, version.0);
        self.disk.lock().log.push(batch);
        Ok(version)
    }

    fn view(&self, shard: ShardId, mut epoch: u64) -> Result<Arc<dyn View>, Error> {
        let around = Arc::clone(&self.around);
        if around.misdeed == Misdeed::IgnoresEpochs {
            epoch = at_once(self.engine.shard(shard))?.epoch;
        }
        let past = self.past.lock().get(&shard).cloned().filter(|_| around.dice.chance(200));
        let inner = match past {
            Some(past) => past,
            None => at_once(self.engine.view(shard, epoch))?,
        };
        Ok(Arc::new(SlowView { inner, around }))
    }

    async fn commit(self: Arc<OpenDisk>, operation: u64, batch: WriteBatch) -> Result<CommitVersion, Error> {
        self.around.dawdle().await;
        if self.around.happens(|likelihoods| likelihoods.busy) {
            return Err(Error::Busy);
        }
        if self.refuses_writes.load(Relaxed) {
            return Err(refusal());
        }
        if self.around.happens(|likelihoods| likelihoods.lost_sync) {
            self.around.history.lock().note("a sync fails");
            self.refuses_writes.store(true, Relaxed);
            self.disk.lock().limbo.push((operation, batch));
            return Err(refusal());
        }
        let version = self.apply(operation, batch)?;
        self.around.dawdle().await;
        Ok(version)
    }
}

fn refusal() -> Error {
    Error::Unavailable { reason: "a simulated sync failed".to_owned() }
}

impl Engine for FaultyStorage {
    fn is_exclusive(&self) -> bool {
        true
    }

    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        let shared = Arc::clone(&self.shared);
        Reply::later(async move {
            shared.around.dawdle().await;
            let view = shared.view(shard, epoch)?;
            shared.around.dawdle().await;
            Ok(view)
        })
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        let operation = self.shared.around.names.current();
        Reply::later(Arc::clone(&self.shared).commit(operation, batch))
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        let shared = Arc::clone(&self.shared);
        Reply::later(async move {
            shared.around.dawdle().await;
            at_once(shared.engine.shard(shard))
        })
    }

    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>> {
        self.shared.engine.watch(shard, epoch, version)
    }

    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>> {
        let shared = Arc::clone(&self.shared);
        Reply::later(async move {
            shared.around.dawdle().await;
            at_once(shared.engine.draw(shard, above, count))
        })
    }

    fn write_refusal(&self) -> Option<String> {
        self.shared.refuses_writes.load(Relaxed).then(|| refusal().to_string())
    }

    fn set_losses(&self) -> Vec<SetLoss> {
        self.shared.engine.set_losses()
    }

    fn accept_set_losses(&self, losses: &[SetLoss]) -> Result<(), Error> {
        self.shared.engine.accept_set_losses(losses)
    }

    fn damages(&self) -> Vec<Damage> {
        self.shared.engine.damages()
    }

    fn check_next_file(&self) -> bool {
        self.shared.engine.check_next_file()
    }

    fn heal(&self) -> Result<bool, Error> {
        if !self.shared.refuses_writes.swap(false, Relaxed) {
            return Ok(false);
        }
        self.shared.around.history.lock().note("storage is healed");
        self.shared.settle_limbo();
        Ok(true)
    }

    fn highest_shard(&self) -> Reply<Result<ShardId, Error>> {
        self.shared.engine.highest_shard()
    }

    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        self.shared.engine.unreclaimed()
    }

    fn stats(&self) -> Stats {
        self.shared.engine.stats()
    }

    fn close(&self) -> Result<(), Error> {
        self.shared.engine.close()
    }
}

/// A view whose answers may come late. What they say is what the view says, whenever that is looked at.
struct SlowView {
    inner: Arc<dyn View>,
    around: Arc<Surroundings>,
}

impl SlowView {
    fn late<T: Send + Unpin + 'static>(&self, reply: Reply<T>) -> Reply<T> {
        let around = Arc::clone(&self.around);
        Reply::later(async move {
            around.dawdle().await;
            reply.await
        })
    }
}

impl View for SlowView {
    fn shard(&self) -> ShardId {
        self.inner.shard()
    }

    fn state(&self) -> ShardState {
        self.inner.state()
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        self.late(self.inner.get(space, key))
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        self.late(self.inner.get_many(space, keys, byte_count_max))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        self.late(self.inner.scan(space, range, direction, limit))
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        self.late(self.inner.scan_keys(range, direction, limit))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        self.late(self.inner.scan_entries(range, direction, limit))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        self.late(self.inner.count_keys(family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        self.late(self.inner.estimate_keys(range))
    }
}
