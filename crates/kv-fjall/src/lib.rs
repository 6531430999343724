//! The embedded engine: the `kv` contract on fjall, a log-structured store in pure Rust.
//!
//! In: batches and reads of the contract. Out: answers; commits answer when they are on stable storage.
//! One thread commits (`committer`), for fjall has no group commit of its own; readers share a view of the last group
//! (`snapshot`). The set is in the `packed` crate (`set`), merged by one more thread. Around fjall stand what it lacks: a folder with a format and a lock (`folder`), a second witness of
//! what was acknowledged (`mark`), a judgement of a damaged journal (`journal`, `recovery`), and a refusal of writes
//! before the disk is full (`free_space`).
//! Invariants
//! - kill -9 or a power cut at any moment loses nothing acknowledged, and the next opening needs no help.
//! - If something acknowledged is lost all the same (a disk that lies, rot), opening is refused and says how much.
//!   Unnoticed is only rot of the very end of the journal, within a second of the commits it held.
//! - After a failed write or sync the engine takes no writes until it is opened again; reads go on.
//!
//! Not here: what keys and values mean, retries, backups.

mod committer;
mod drops;
mod error;
mod files;
mod folder;
mod free_space;
mod group;
mod healing;
mod health;
mod identity;
mod inspection;
mod journal;
mod last;
mod mark;
mod open;
mod queue;
mod readers;
mod reclaim;
mod recovery;
mod scrub;
mod set;
mod set_files;
mod shadow;
mod snapshot;
mod store;
mod tree_files;
mod values;
mod view;

pub use astrarium_packed::{PackedChanges, SetOptions, SetStats};
pub use committer::CommitTimes;
pub use error::OpenError;
pub use open::AcceptedLoss;
pub use readers::ReadHook;
pub use shadow::Shadow;

use arc_swap::ArcSwap;
use astrarium_kv::{
    CommitVersion, Engine, Error, KeyPrefix, Reply, SetLoss, ShardId, ShardState, Stats, View, Watchers,
    WriteBatch, contract,
};
use astrarium_packed::{Control, GroupBlock, Merger, SetView};
use committer::TimeCounters;
use folder::{Folder, PresenceCheck};
use free_space::FreeSpace;
use healing::Healing;
use health::{CLOSED, EngineHealth};
use mark::Mark;
use parking_lot::Mutex;
use queue::{CommitQueue, Submission};
use reclaim::ReclaimControl;
use snapshot::FjallSnapshot;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::Store;
use tokio::sync::oneshot;
use view::KnownShards;

/// How long dropping an engine that was not closed waits for its threads.
const DROP_TIME_MAX: Duration = Duration::from_secs(10);

/// A batch that changes so many keys of the set has them packed before it is queued: sorting them takes a millisecond.
const PACKED_KEYS_MIN: usize = 2048;

/// A batch whose packed changes have so many bytes lets others go first while memtables are written out.
const WAITING_BYTES_MIN: usize = 1 << 20;
const LARGE_WAIT_MAX: Duration = Duration::from_secs(5);
const LARGE_INTERVAL: Duration = Duration::from_millis(1);

/// Tells how many bytes are free for us on the disk of a folder.
pub type FreeSpaceProbe = Arc<dyn Fn(&Path) -> io::Result<u64> + Send + Sync>;

/// What can be chosen when opening.
#[derive(Clone)]
pub struct Options {
    /// Memory for what was read: three eighths for blocks of documents and logs, decompressed, a quarter for single
    /// values, the rest for the set. Write buffers come on top: up to about 50 MB in ordinary use.
    pub cache_bytes: u64,
    /// Files of tables that are kept open at most, so that a process with few descriptors has some left.
    pub open_tables_max: usize,
    /// Writes are refused while fewer bytes are free; has an effect only with a probe.
    pub free_space_reserve_bytes: u64,
    /// How free space is measured. Without one, a full disk is noticed only when a write fails, and writes stay
    /// refused until the engine is opened again.
    pub free_space: Option<FreeSpaceProbe>,
    /// How the set is packed.
    pub set: SetOptions,
    /// Called before each read that may go to the disk.
    pub before_read: Option<ReadHook>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_bytes: 64 << 20,
            open_tables_max: 256,
            free_space_reserve_bytes: 256 << 20,
            free_space: None,
            set: SetOptions::default(),
            before_read: None,
        }
    }
}

/// Storage in a folder of this machine.
pub struct FjallEngine {
    /// Replaced when the folder is opened again (`healing`).
    core: ArcSwap<Core>,
    life: Mutex<Option<Life>>,
    healing: Healing,
    /// Numbers given out; they outlive an opening again.
    draws: contract::Draws,
}

/// What the engine's threads and its callers share.
pub(crate) struct Core {
    pub(crate) queue: CommitQueue,
    pub(crate) health: EngineHealth,
    /// The view that readers get, as of the last group.
    pub(crate) current: ArcSwap<FjallSnapshot>,
    /// Held while `current` is replaced: the committer and the merger do.
    publishing: Mutex<()>,
    pub(crate) set: Control,
    pub(crate) reclaim: ReclaimControl,
    /// Counters of shards; filled when first asked for.
    pub(crate) shards: KnownShards,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) mark: Arc<Mark>,
    pub(crate) times: TimeCounters,
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) free_space: FreeSpace,
    presence: PresenceCheck,
    is_closed: AtomicBool,
}

/// What exists from opening to closing.
struct Life {
    committer: JoinHandle<()>,
    marker: JoinHandle<()>,
    merger: JoinHandle<Merger>,
    reclaimer: JoinHandle<()>,
    folder: Folder,
}

impl Core {
    /// The set as readers see it.
    pub(crate) fn set_view(&self) -> Arc<SetView> {
        self.current.load().set()
    }

    /// Shows readers the group that was committed last, with what it changed of the set.
    pub(crate) fn publish(&self, store: &Arc<Store>, group: u64, block: Option<GroupBlock>) {
        let publishing = self.publishing.lock();
        let set = self.set_view();
        let (set, has_grown) = match block {
            Some(block) => (Arc::new(block.onto(&set)), true),
            None => (set, false),
        };
        let view = FjallSnapshot::open(Arc::clone(store), group, Arc::clone(&set));
        self.current.store(Arc::new(view));
        drop(publishing);
        if has_grown {
            self.set.grown(&set);
        }
    }

    /// Commits that prefixes are given back, and waits for it; readers have a new view then.
    pub(crate) fn commit_reclaimed(&self, prefixes: Vec<KeyPrefix>) -> Result<(), Error> {
        self.health.check()?;
        let (answer, receiver) = oneshot::channel();
        self.queue.push(Submission::reclaimed(prefixes, answer))?;
        receiver.blocking_recv().unwrap_or_else(|_| Err(health::closed())).map(drop)
    }

    /// Refuses writes from the moment on that the folder is found to be gone.
    fn check_presence(&self) {
        if let Some(reason) = self.presence.absence() {
            self.health.fail(reason, false);
        }
    }

    /// Sorts and packs what a large batch changes of the set, on the thread of the submitter: the committer, for whom everybody
    /// waits, then only writes it. While what others have changed is not written out, it waits here and not there.
    fn pack(&self, batch: &mut WriteBatch) -> Result<Option<PackedChanges>, Error> {
        if batch.set.added.len() + batch.set.removed.len() < PACKED_KEYS_MIN {
            return Ok(None);
        }
        let set = std::mem::take(&mut batch.set);
        let packed = PackedChanges::of(set::changes(&[set]), self.set.block_bytes()).map_err(set::told)?;
        if packed.as_ref().is_some_and(|packed| packed.byte_count() >= WAITING_BYTES_MIN) {
            let deadline = Instant::now() + LARGE_WAIT_MAX;
            while self.is_busy_writing() && self.health.check().is_ok() && Instant::now() < deadline {
                std::thread::sleep(LARGE_INTERVAL);
            }
        }
        Ok(packed)
    }

    fn is_busy_writing(&self) -> bool {
        let current = self.current.load();
        let is_behind = current.store().is_ok_and(|store| store.is_flushing());
        is_behind || self.set.is_filling(&current.set())
    }

    fn submit(
        &self,
        mut batch: WriteBatch,
    ) -> Result<oneshot::Receiver<Result<CommitVersion, Error>>, Error> {
        contract::validate(&batch)?;
        self.check_presence();
        self.health.check()?;
        if let Some(reason) = self.free_space.refusal_of(&batch) {
            return Err(Error::Unavailable { reason });
        }
        let packed = self.pack(&mut batch)?;
        let (answer, receiver) = oneshot::channel();
        self.queue.push(Submission::new(batch, answer).with_packed(packed))?;
        Ok(receiver)
    }
}

impl Engine for FjallEngine {
    fn is_exclusive(&self) -> bool {
        // The folder is locked.
        true
    }

    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        let view = self.core.load().view(shard, epoch);
        Reply::ready(view.map(|view| Arc::new(view) as Arc<dyn View>))
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        let receiver = match self.core.load().submit(batch) {
            Ok(receiver) => receiver,
            Err(error) => return Reply::ready(Err(error)),
        };
        Reply::later(async move {
            let stopped = || Error::Unavailable { reason: "the committer has stopped".to_owned() };
            receiver.await.unwrap_or_else(|_| Err(stopped()))
        })
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        let state = self.core.load().shard_state(shard);
        let is_there =
            |state: ShardState| if state.is_dropped { Err(Error::Dropped { shard }) } else { Ok(state) };
        Reply::ready(state.and_then(is_there))
    }

    fn highest_shard(&self) -> Reply<Result<ShardId, Error>> {
        let current = self.core.load().current.load_full();
        Reply::ready(current.store().and_then(|store| store.highest_shard()))
    }

    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        let current = self.core.load().current.load_full();
        Reply::ready(current.store().map(|store| store.drops.load().prefixes.clone()))
    }

    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>> {
        let core = self.core.load_full();
        let watchers = Arc::clone(&core.watchers);
        let look = move || contract::watched(shard, epoch, version, core.shard_state(shard));
        watchers.until(shard, look)
    }

    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>> {
        let core = self.core.load();
        let state = core.shard_state(shard);
        Reply::ready(state.map(|state| self.draws.draw(shard, state, above, count)))
    }

    fn write_refusal(&self) -> Option<String> {
        let core = self.core.load();
        if core.is_closed.load(Ordering::Relaxed) {
            return Some(CLOSED.to_owned());
        }
        core.check_presence();
        let failure = core.health.failure().map(str::to_owned);
        failure.or_else(|| core.free_space.refusal()).or_else(|| core.set.refusal(&core.set_view()))
    }

    fn set_losses(&self) -> Vec<SetLoss> {
        let core = self.core.load();
        let current = core.current.load();
        let pending = current.store().ok().and_then(|store| store.set_damage.pending());
        if pending.is_some() {
            core.set.ask_to_quarantine();
        }
        set::losses(&current.set(), pending.as_ref())
    }

    fn accept_set_losses(&self, losses: &[SetLoss]) -> Result<(), Error> {
        let ranges = losses.iter().map(|loss| (loss.range.start.clone(), loss.range.end.clone())).collect();
        self.core.load().set.accept_loss(ranges).map_err(set::told)
    }

    fn damages(&self) -> Vec<astrarium_kv::Damage> {
        self.core.load().current.load().store().map(|store| store.scrub.found()).unwrap_or_default()
    }

    fn check_next_file(&self) -> bool {
        let current = self.core.load().current.load_full();
        current.store().is_ok_and(|store| store.scrub.check_next(store))
    }

    fn heal(&self) -> Result<bool, Error> {
        self.reopen_if_it_may_help()
    }

    fn stats(&self) -> Stats {
        let core = self.core.load();
        let current = core.current.load();
        let disk_bytes = current.store().ok().and_then(|store| store.database.disk_space().ok());
        Stats {
            commits: core.commits.load(Ordering::Relaxed),
            conflicts: core.conflicts.load(Ordering::Relaxed),
            groups: core.groups.load(Ordering::Relaxed),
            queued: core.queue.len() as u64,
            disk_bytes: disk_bytes.unwrap_or(0) + current.set().disk_bytes(),
        }
    }

    fn close(&self) -> Result<(), Error> {
        let mut life = self.life.lock();
        let core = self.core.load_full();
        core.is_closed.store(true, Ordering::Relaxed);
        let Some(Life { committer, marker, merger, reclaimer, folder }) = life.take() else {
            return Ok(());
        };
        core.reclaim.stop();
        let _ = reclaimer.join();
        core.queue.close();
        let is_whole = committer.join().is_ok();
        core.set.stop();
        let merger = merger.join();
        core.mark.stop();
        let _ = marker.join();
        if let Ok(merger) = merger
            && core.health.failure().is_none()
            && let Err(error) = merger.close()
        {
            // Nothing is lost: what is in no run is in fjall, and the next opening goes on from there.
            tracing::warn!(%error, "could not merge the set before closing");
        }
        let outcome = flush_and_release(&core, &folder);
        drop(folder);
        if !is_whole {
            return Err(unavailable("writing stopped because of an error of the program"));
        }
        outcome
    }
}

impl FjallEngine {
    /// What the set is made of at present.
    pub fn set_stats(&self) -> SetStats {
        self.core.load().set_view().stats()
    }

    /// Waits until the set has nothing left to merge. For tests and measurements; nobody else needs to.
    pub fn wait_until_merged(&self) -> Result<(), Error> {
        let core = self.core.load_full();
        core.set.wait_until_settled(|| core.set_view()).map_err(set::told)
    }

    /// Waits until the engine has once more given back what it can of dropped space. For tests and measurements.
    pub fn wait_until_reclaimed(&self) {
        let core = self.core.load_full();
        core.reclaim.wait_for_pass();
    }

    /// Reads everything that is stored. fjall checks a checksum for each block it loads, so damaged tables show as
    /// [`Error::Corruption`]; blocks in the cache are not loaded again, so this says most right after opening.
    pub fn check_files(&self) -> Result<CheckedFiles, Error> {
        let current = self.core.load().current.load_full();
        let stored = current.store()?.read_everything().map_err(|error| error::reading(&error))?;
        let packed = current.set().check().map_err(set::told)?;
        Ok(CheckedFiles { entry_count: stored.0 + packed.0, byte_count: stored.1 + packed.1 })
    }
}

/// The end of [`Engine::close`], when no thread of ours runs any more. If a reader still holds a view, fjall stays
/// open until it is dropped, and its journal is left to be replayed.
fn flush_and_release(core: &Core, folder: &Folder) -> Result<(), Error> {
    let current = core.current.swap(Arc::new(FjallSnapshot::closed()));
    core.watchers.wake_all();
    let store = Arc::clone(current.store()?);
    drop(current);
    if core.health.failure().is_none() {
        let flushed = store.flush().and_then(|_| store.drop_set_blocks(core.set.merged_group()));
        flushed.map_err(|error| unavailable(&format!("flushing failed: {}", error::in_words(&error))))?;
        let marked = core.mark.write_last().and_then(|()| folder::sync_folder(folder.path()));
        marked.map_err(|error| unavailable(&format!("writing the mark failed: {error}")))?;
    }
    if let Some(store) = Arc::into_inner(store) {
        store.close().map_err(|error| unavailable(&format!("closing failed: {error}")))?;
    }
    // Behind by a little, the list is still true.
    if let Err(error) = core.mark.update_files() {
        tracing::warn!(%error, "could not write the list of files");
    }
    Ok(())
}

impl Drop for FjallEngine {
    /// Without [`Engine::close`] this is like a kill: what waits is forgotten, nothing is flushed.
    fn drop(&mut self) {
        let Some(Life { committer, marker, merger, reclaimer, folder }) = self.life.get_mut().take() else {
            return;
        };
        let core = self.core.load_full();
        core.queue.abandon();
        core.set.stop();
        core.reclaim.stop();
        core.mark.stop();
        let deadline = Instant::now() + DROP_TIME_MAX;
        let is_finished = || {
            let are_writers = committer.is_finished() && marker.is_finished();
            are_writers && merger.is_finished() && reclaimer.is_finished()
        };
        // A thread that hangs in the file system must not hang us.
        while !is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(200));
        }
        drop(core.current.swap(Arc::new(FjallSnapshot::closed())));
        core.watchers.wake_all();
        drop(folder);
    }
}

fn unavailable(reason: &str) -> Error {
    Error::Unavailable { reason: reason.to_owned() }
}

/// What [`FjallEngine::check_files`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedFiles {
    /// Entries of all spaces and of our own state.
    pub entry_count: u64,
    /// Bytes of their keys and values.
    pub byte_count: u64,
}
