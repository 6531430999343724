//! Gives back the space of what was dropped, on a thread of its own, while everything else goes on.
//!
//! In: the list of drops. Out: fewer bytes on disk; a prefix leaves the list, and storage, when no key of it is left.
//! For each space, as far as there is something to do:
//! 1. its memtable is written out, so that all dropped keys are in tables;
//! 2. tables that hold nothing else are taken out, in one step whatever their number;
//! 3. what is left stands in tables beside living keys, and goes whenever fjall merges them (`drops`). Where it is a good part of
//!    the space, or the space is small, all of it is compacted at once. That is given up when writes need fjall's attention.
//!
//! Tables stay on disk as long as a view may need them, so each step ends with a new view for readers. Keys of the set go as its
//! segments are merged.
//! Invariants
//! - Commits never wait for any of this: it takes none of their locks for longer than they do for each other.
//! - A crash at any moment leaves the prefix in the list, and all of this begins again; doing it twice does no harm.
//! - A prefix leaves the list only when all its keys were in tables and none is left, so that no journal can bring one back: the
//!   group that dropped it also changed each space, and fjall replays nothing older than a table.
//!
//! Space that removed keys take goes the same way, once nothing was committed for a while and they are many.

use crate::Core;
use crate::drops::{GiveUp, compact_unless};
use crate::error::{in_words, reading};
use crate::set;
use crate::store::Store;
use astrarium_kv::{Error, KeyPrefix, KeyRange, Space};
use fjall::{AbstractTree, Keyspace, PersistMode, Readable};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Between two looks, when nobody has dropped anything meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Between two looks whether memtables are written out.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// A space of no more bytes is compacted for anything that is left in it: it takes a second.
const SMALL_SPACE_BYTES: u64 = 64 << 20;

/// One in so many items must be of no use before a larger space is compacted.
const USELESS_SHARE: usize = 5;

/// Runs of new tables that may gather while a space is compacted; commits wait at a few more.
const WAITING_RUNS_MAX: usize = 10;

/// Where the engine and its reclaimer meet.
#[derive(Default)]
pub(crate) struct ReclaimControl {
    state: Mutex<ReclaimState>,
    woken: Condvar,
}

#[derive(Default)]
struct ReclaimState {
    is_stopped: bool,
    /// Something was dropped since the reclaimer last looked.
    is_asked: bool,
    /// Passes that were begun and ended.
    begun: u64,
    ended: u64,
}

impl ReclaimControl {
    /// Tells that something was dropped.
    pub(crate) fn wake(&self) {
        self.state.lock().is_asked = true;
        self.woken.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.woken.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Waits until it is time for a pass; false when the engine ends.
    fn begin(&self) -> bool {
        let mut state = self.state.lock();
        if !state.is_asked && !state.is_stopped {
            self.woken.wait_for(&mut state, LOOK_INTERVAL);
        }
        state.is_asked = false;
        state.begun += 1;
        !state.is_stopped
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.ended = state.begun;
        self.woken.notify_all();
    }

    /// Waits until a pass that begins from now on has ended. For tests.
    pub(crate) fn wait_for_pass(&self) {
        let mut state = self.state.lock();
        let awaited = state.begun + 1;
        state.is_asked = true;
        self.woken.notify_all();
        while state.ended < awaited && !state.is_stopped {
            self.woken.wait(&mut state);
        }
    }
}

pub(crate) struct Reclaimer {
    core: Arc<Core>,
    /// Prefixes whose keys are all in tables.
    flushed: BTreeSet<KeyPrefix>,
    /// Commits at the last look.
    commits: u64,
    /// Commits when spaces were last compacted for their tombstones.
    tidied: u64,
}

impl Reclaimer {
    pub(crate) fn new(core: Arc<Core>) -> Reclaimer {
        Reclaimer { core, flushed: BTreeSet::new(), commits: 0, tidied: 0 }
    }

    /// Works until it is stopped.
    pub(crate) fn run(mut self) {
        let core = Arc::clone(&self.core);
        while core.reclaim.begin() {
            if let Err(error) = self.pass() {
                tracing::warn!(%error, "giving space back failed and will be tried again");
            }
            core.reclaim.end();
        }
    }

    fn pass(&mut self) -> Result<(), Error> {
        if self.core.health.failure().is_some() {
            return Ok(());
        }
        let store = Arc::clone(self.core.current.load().store()?);
        let listed = store.drops.load();
        let is_quiet = self.is_quiet();
        if listed.prefixes.is_empty() && !is_quiet {
            return Ok(());
        }
        let failed = |error: fjall::Error| Error::Unavailable { reason: in_words(&error) };
        let mut is_changed = false;
        for space in Space::ALL {
            let prefixes = listed.prefixes.iter().filter(|prefix| prefix.space == Some(space));
            let new: Vec<_> = prefixes.filter(|prefix| !self.flushed.contains(prefix)).cloned().collect();
            if !new.is_empty() {
                self.flush(&store, store.keyspace(space)).map_err(failed)?;
                drop_tables(store.keyspace(space), &new).map_err(failed)?;
                self.flushed.extend(new);
                is_changed = true;
            }
        }
        if is_changed {
            self.renew_view(&store)?;
        }
        if listed.prefixes.iter().any(|prefix| prefix.space.is_none()) {
            self.core.set.reclaim(|| self.core.reclaim.is_stopped());
        }
        let mut left = self.left_of(&store, &listed.prefixes)?;
        for space in Space::ALL {
            let useless = left.iter().filter(|prefix| prefix.space == Some(space));
            let useless: Vec<_> = useless.cloned().collect();
            if self.is_worth_compacting(&store, space, &useless, is_quiet).map_err(failed)? {
                is_changed |= self.compact(&store, space);
            }
        }
        if is_changed {
            self.renew_view(&store)?;
            left = self.left_of(&store, &listed.prefixes)?;
        }
        let gone: Vec<_> = listed.prefixes.iter().filter(|prefix| !left.contains(prefix)).cloned().collect();
        if !gone.is_empty() {
            for prefix in &gone {
                self.flushed.remove(prefix);
            }
            self.core.commit_reclaimed(gone)?;
        }
        Ok(())
    }

    /// Whether nothing was committed since the last look, and something since spaces were last compacted for want of work.
    fn is_quiet(&mut self) -> bool {
        let commits = self.core.commits.load(Ordering::Relaxed);
        let before = std::mem::replace(&mut self.commits, commits);
        before == commits && commits != self.tidied
    }

    /// Waits until everything that the keyspace holds now is in tables.
    fn flush(&self, store: &Store, keyspace: &Keyspace) -> fjall::Result<()> {
        keyspace.rotate_memtable()?;
        while keyspace.sealed_memtable_count() > 0 && !self.core.reclaim.is_stopped() {
            // Does nothing but tell whether a background thread has failed.
            store.database.persist(PersistMode::Buffer)?;
            std::thread::sleep(FLUSH_INTERVAL);
        }
        Ok(())
    }

    /// Has readers go over to a new view, and fjall let go of the files that only older ones needed.
    fn renew_view(&self, store: &Store) -> Result<(), Error> {
        self.core.commit_reclaimed(Vec::new())?;
        // The group record is in this memtable, so it is never empty; that it is written out is what has fjall look.
        store.rotate_state().map_err(|error| Error::Unavailable { reason: in_words(&error) })
    }

    /// The prefixes of which some key is left.
    fn left_of(&self, store: &Store, prefixes: &[KeyPrefix]) -> Result<BTreeSet<KeyPrefix>, Error> {
        let (snapshot, set) = (store.database.snapshot(), self.core.set_view());
        let mut left = BTreeSet::new();
        for prefix in prefixes {
            let is_left = if let Some(space) = prefix.space {
                let first = snapshot.prefix(store.keyspace(space), &prefix.bytes).next();
                first.map(fjall::Guard::key).transpose().map_err(|error| reading(&error))?.is_some()
            } else {
                let stored = set.stored_entries(&prefix.bytes);
                stored.inspect_err(|error| store.set_damage.raise(error)).map_err(set::told)? > 0
            };
            if is_left {
                left.insert(prefix.clone());
            }
        }
        Ok(left)
    }

    /// Whether so much of a space is of no use that it pays to compact all of it.
    fn is_worth_compacting(
        &mut self,
        store: &Store,
        space: Space,
        dropped: &[KeyPrefix],
        is_quiet: bool,
    ) -> fjall::Result<bool> {
        let keyspace = store.keyspace(space);
        let item_count = keyspace.approximate_len();
        let tombstones = keyspace.tree.tombstone_count();
        // A tombstone goes with what it hides.
        let removed =
            if is_quiet { usize::try_from(tombstones).unwrap_or(usize::MAX).saturating_mul(2) } else { 0 };
        let enough = (item_count / USELESS_SHARE).max(1);
        let is_small = keyspace.disk_space() <= SMALL_SPACE_BYTES && !dropped.is_empty();
        if !is_small && removed < enough && count_keys(store, dropped, enough - removed)? + removed < enough {
            return Ok(false);
        }
        if is_quiet {
            self.tidied = self.commits;
        }
        Ok(self.core.free_space.has_room(keyspace.disk_space()))
    }

    /// Writes all tables of a space anew, without what is of no use; tells whether that is done.
    fn compact(&self, store: &Store, space: Space) -> bool {
        let keyspace = store.keyspace(space);
        let (core, tree) = (Arc::clone(&self.core), keyspace.tree.clone());
        let give_up: GiveUp =
            Arc::new(move || core.reclaim.is_stopped() || tree.l0_run_count() > WAITING_RUNS_MAX);
        match compact_unless(give_up, || keyspace.major_compact()) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(error = in_words(&error), ?space, "compacting was given up");
                false
            }
        }
    }
}

/// Takes out the tables that hold nothing but dropped keys. Each range costs a new version of the tree, so prefixes that follow upon each
/// other, as those of a container's shards do, are one range.
fn drop_tables(keyspace: &Keyspace, prefixes: &[KeyPrefix]) -> fjall::Result<()> {
    for KeyRange { start, end } in joined_ranges(prefixes) {
        keyspace.tree.drop_range(&start[..]..&end[..])?;
    }
    Ok(())
}

/// The ranges that prefixes cover, in order, those that touch joined.
fn joined_ranges(prefixes: &[KeyPrefix]) -> Vec<KeyRange> {
    let mut ranges: Vec<_> = prefixes.iter().map(|prefix| KeyRange::prefix(&prefix.bytes)).collect();
    ranges.sort_unstable_by(|left, right| left.start.cmp(&right.start));
    ranges.dedup_by(|later, earlier| {
        let touches = later.start <= earlier.end;
        if touches && later.end > earlier.end {
            earlier.end.clone_from(&later.end);
        }
        touches
    });
    ranges
}

/// How many keys with these prefixes there are, counted up to some number.
fn count_keys(store: &Store, prefixes: &[KeyPrefix], enough: usize) -> fjall::Result<usize> {
    let snapshot = store.database.snapshot();
    let mut count = 0;
    for prefix in prefixes {
        let Some(space) = prefix.space else { continue };
        for key in snapshot.prefix(store.keyspace(space), &prefix.bytes).take(enough - count) {
            key.key()?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[track_caller]
    fn check(prefixes: &[&str], expected: &[(&str, &str)]) {
        let prefix = |bytes: &&str| KeyPrefix { space: None, bytes: Bytes::from(bytes.to_string()) };
        let ranges = joined_ranges(&prefixes.iter().map(prefix).collect::<Vec<_>>());
        let texts = ranges.iter().map(|range| (range.start.to_vec(), range.end.to_vec()));
        let expected =
            expected.iter().map(|(start, end)| (start.as_bytes().to_vec(), end.as_bytes().to_vec()));
        assert_eq!(texts.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn ranges_that_touch_are_one() {
        check(&[], &[]);
        check(&["a", "c"], &[("a", "b"), ("c", "d")]);
        check(&["c", "a", "b"], &[("a", "d")]);
        check(&["aa", "ab", "ad"], &[("aa", "ac"), ("ad", "ae")]);
        check(&["a", "ab", "b"], &[("a", "c")]);
    }
}
