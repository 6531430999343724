//! Containers ready for use, found by name or rid without touching storage.
//!
//! A cached container may be outdated (another change, another process). That is safe: writes name the epochs it
//! was loaded with, and a fenced commit makes the caller forget and reload it. What is answered from a container alone, without a
//! view or a commit, asks first whether it is current (`AccountCore::is_current`).
//! Invariants
//! - Each shard has one number source, however often its container is loaded.
//! - A load that began before a change is never cached after it: `generation` tells.
//! - No container is cached of a database that was removed with its content left behind (`databases`), nor while that is under way.

use astrarium_catalog::container::Container;
use astrarium_catalog::numbers::NumberSource;
use astrarium_keys::Rid;
use astrarium_kv::{Engine, ShardId};
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use parking_lot::{Mutex, RwLock};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Containers kept at most; beyond that the cache starts anew.
const CONTAINERS_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct ContainerCache {
    cached: RwLock<Cached>,
    /// Whether any database was removed whose content was left behind.
    has_removed: AtomicBool,
    numbers: Mutex<HashMap<ShardId, NumberSource, RandomState>>,
}

#[derive(Default)]
struct Cached {
    generation: u64,
    /// Databases that are being removed, or were removed with their content left behind: their containers are not kept.
    removals: HashMap<Rid, Removal, RandomState>,
    by_name: HashMap<ContainerNames, Arc<Container>, RandomState>,
    by_rid: HashMap<Rid, Arc<Container>, RandomState>,
}

/// What is known of the removal of a database.
#[derive(Default)]
struct Removal {
    /// Commits of it whose outcome is not known.
    under_way: usize,
    is_done: bool,
}

#[derive(PartialEq, Eq, Hash)]
struct ContainerNames {
    database: String,
    container: String,
}

#[derive(Hash)]
struct NamesRef<'a> {
    database: &'a str,
    container: &'a str,
}

impl Equivalent<ContainerNames> for NamesRef<'_> {
    fn equivalent(&self, names: &ContainerNames) -> bool {
        self.container == names.container && self.database == names.database
    }
}

impl ContainerCache {
    pub(crate) fn by_name(&self, database: &str, container: &str) -> Option<Arc<Container>> {
        self.cached.read().by_name.get(&NamesRef { database, container }).cloned()
    }

    pub(crate) fn by_rid(&self, rid: Rid) -> Option<Arc<Container>> {
        self.cached.read().by_rid.get(&rid).cloned()
    }

    /// To be read before a load and given to [`Self::insert`].
    pub(crate) fn generation(&self) -> u64 {
        self.cached.read().generation
    }

    /// Keeps a loaded container, unless anything was forgotten since the load began.
    pub(crate) fn insert(&self, generation: u64, container: &Arc<Container>) {
        let mut cached = self.cached.write();
        if cached.generation != generation {
            return;
        }
        let database = container.rid().database_part();
        if !cached.removals.is_empty() && database.is_some_and(|rid| cached.removals.contains_key(&rid)) {
            return;
        }
        if cached.by_rid.len() >= CONTAINERS_MAX {
            cached.by_name.clear();
            cached.by_rid.clear();
        }
        let names = ContainerNames {
            database: container.database_id.clone(),
            container: container.resource.record.id.clone(),
        };
        cached.by_name.insert(names, container.clone());
        cached.by_rid.insert(container.rid(), container.clone());
    }

    /// Forgets a container after it changed or was removed.
    pub(crate) fn forget(&self, rid: Rid) {
        let mut cached = self.cached.write();
        cached.generation += 1;
        if let Some(container) = cached.by_rid.remove(&rid) {
            let names =
                NamesRef { database: &container.database_id, container: &container.resource.record.id };
            cached.by_name.remove(&names);
        }
    }

    /// A database is about to be removed and its content left behind, so that storage refuses nobody who goes by its containers. They are
    /// forgotten and not kept from now on, also if the caller does not live to see the outcome.
    pub(crate) fn begin_removal(&self, database: Rid) {
        let mut cached = self.cached.write();
        cached.removals.entry(database).or_default().under_way += 1;
        cached.generation += 1;
        let Cached { by_name, by_rid, .. } = &mut *cached;
        let is_other = |container: &Arc<Container>| container.rid().database_part() != Some(database);
        by_name.retain(|_, container| is_other(container));
        by_rid.retain(|_, container| is_other(container));
    }

    /// Whether it was removed.
    pub(crate) fn end_removal(&self, database: Rid, is_done: bool) {
        let mut cached = self.cached.write();
        let removal = cached.removals.entry(database).or_default();
        removal.under_way = removal.under_way.saturating_sub(1);
        removal.is_done |= is_done;
        if removal.under_way == 0 && !removal.is_done {
            cached.removals.remove(&database);
        }
        drop(cached);
        if is_done {
            self.has_removed.store(true, Ordering::Release);
        }
    }

    /// Whether a container is of a database that this process has removed, while storage may still have it.
    pub(crate) fn is_removed(&self, container: Rid) -> bool {
        self.has_removed.load(Ordering::Acquire)
            && container.database_part().is_some_and(|database| {
                self.cached.read().removals.get(&database).is_some_and(|removal| removal.is_done)
            })
    }

    /// Forgets a container as it was loaded once; what was loaded since stays.
    pub(crate) fn forget_outdated(&self, outdated: &Arc<Container>) {
        let is_kept = self.by_rid(outdated.rid()).is_some_and(|kept| Arc::ptr_eq(&kept, outdated));
        if is_kept {
            self.forget(outdated.rid());
        }
    }

    /// The one source of document numbers of a shard, above one.
    pub(crate) fn number_source(&self, engine: &Arc<dyn Engine>, shard: ShardId, above: u64) -> NumberSource {
        let new = || NumberSource::new(Arc::clone(engine), shard, above);
        self.numbers.lock().entry(shard).or_insert_with(new).clone()
    }

    /// Forgets the sources of shards that are no more.
    pub(crate) fn forget_shards(&self, shards: &[ShardId]) {
        let mut numbers = self.numbers.lock();
        for shard in shards {
            numbers.remove(shard);
        }
    }
}
