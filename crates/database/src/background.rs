//! What is known about the work beside requests: index builds and freeing of space, for logs and metrics.
//!
//! `index_builds` and `maintenance` tell each step; here it is counted, and beginnings and ends are logged.

use astrarium_catalog::container::Container;
use astrarium_keys::Rid;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How far the work beside requests is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackgroundStatistics {
    /// Containers whose index is under construction.
    pub builds_running: usize,
    /// How far they are on average, from 0 to 1; 1 when there are none.
    pub build_progress: f64,
    /// Indexes completed since the start.
    pub builds: u64,
    /// Steps of building since the start.
    pub build_steps: u64,
    /// Removed ranges and replaced indexes whose space is not free yet.
    pub sweeps_waiting: usize,
    /// Those that were freed since the start.
    pub sweeps: u64,
    /// Steps of freeing since the start.
    pub sweep_steps: u64,
    /// Documents erased since the start because they had expired.
    pub expired_documents: u64,
}

/// The same while it changes.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// Percent done of each build that has been seen.
    running: Mutex<BTreeMap<Rid, u8>>,
    builds: AtomicU64,
    build_steps: AtomicU64,
    removed_ranges: AtomicUsize,
    replaced_indexes: AtomicUsize,
    sweeps: AtomicU64,
    sweep_steps: AtomicU64,
    expired_documents: AtomicU64,
}

impl Background {
    /// An index is about to be built further.
    pub(crate) fn build_goes_on(&self, container: &Container) {
        self.build_steps.fetch_add(1, Relaxed);
        if let Entry::Vacant(vacant) = self.running.lock().entry(container.rid()) {
            vacant.insert(0);
            tracing::info!(container = container.path(), "index build started");
        }
    }

    /// An index is now so many percent complete.
    pub(crate) fn build_moved(&self, container: &Container, percent: u8) {
        self.running.lock().insert(container.rid(), percent);
    }

    /// An index is complete and in use.
    pub(crate) fn build_done(&self, container: &Container) {
        self.builds.fetch_add(1, Relaxed);
        self.running.lock().remove(&container.rid());
        tracing::info!(container = container.path(), "index build finished");
    }

    /// Nothing has to be built any more for this container, or for any.
    pub(crate) fn build_gone(&self, container: Option<Rid>) {
        let mut running = self.running.lock();
        match container {
            Some(rid) => drop(running.remove(&rid)),
            None => running.clear(),
        }
    }

    /// So many more ranges were removed. Told at once, since storage may have given back their space before anybody looks.
    pub(crate) fn ranges_removed(&self, count: usize) {
        self.removed_ranges.fetch_add(count, Relaxed);
    }

    /// So many removed ranges wait for storage to give back their space.
    pub(crate) fn removed_ranges(&self, count: usize) {
        let before = self.removed_ranges.swap(count, Relaxed);
        if count < before {
            self.sweeps.fetch_add((before - count) as u64, Relaxed);
            tracing::info!(ranges = before - count, "space of removed containers is free");
        }
    }

    /// So many replaced indexes wait to be freed.
    pub(crate) fn replaced_indexes(&self, count: usize) {
        self.replaced_indexes.store(count, Relaxed);
    }

    /// A part of something removed was freed.
    pub(crate) fn sweep_moved(&self) {
        self.sweep_steps.fetch_add(1, Relaxed);
    }

    /// So many documents that had expired were erased.
    pub(crate) fn expired(&self, count: usize) {
        self.expired_documents.fetch_add(count as u64, Relaxed);
    }

    /// All of something removed is free.
    pub(crate) fn sweep_done(&self, shard: u64, what: &str) {
        self.sweeps.fetch_add(1, Relaxed);
        tracing::info!(shard, "space of {what} is free");
    }

    pub(crate) fn statistics(&self) -> BackgroundStatistics {
        let running = self.running.lock();
        let percent: f64 = running.values().map(|percent| f64::from(*percent)).sum();
        let count = running.len();
        BackgroundStatistics {
            builds_running: count,
            build_progress: if count == 0 { 1.0 } else { percent / 100.0 / count as f64 },
            builds: self.builds.load(Relaxed),
            build_steps: self.build_steps.load(Relaxed),
            sweeps_waiting: self.removed_ranges.load(Relaxed) + self.replaced_indexes.load(Relaxed),
            sweeps: self.sweeps.load(Relaxed),
            sweep_steps: self.sweep_steps.load(Relaxed),
            expired_documents: self.expired_documents.load(Relaxed),
        }
    }
}
