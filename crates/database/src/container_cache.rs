//! Containers ready for use, found by name or rid without touching storage.
//!
//! A cached container may be outdated (another change, another process). That is safe: writes name the epochs it
//! was loaded with, and a fenced commit makes the caller forget and reload it. What is answered from a container alone, without a
//! view or a commit, asks first whether it is current (`AccountCore::is_current`).
//! Invariants
//! - Each shard has one number source, however often its container is loaded.
//! - A load that began before a change is never cached after it: `generation` tells.

use astrarium_catalog::container::Container;
use astrarium_catalog::numbers::NumberSource;
use astrarium_keys::Rid;
use astrarium_kv::{Engine, ShardId};
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use parking_lot::{Mutex, RwLock};
use std::hash::Hash;
use std::sync::Arc;

/// Containers kept at most; beyond that the cache starts anew.
const CONTAINERS_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct ContainerCache {
    cached: RwLock<Cached>,
    numbers: Mutex<HashMap<ShardId, NumberSource, RandomState>>,
}

#[derive(Default)]
struct Cached {
    generation: u64,
    by_name: HashMap<ContainerNames, Arc<Container>, RandomState>,
    by_rid: HashMap<Rid, Arc<Container>, RandomState>,
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
