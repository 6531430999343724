//! Erasing documents that have expired, in steps beside requests.
//!
//! In: calls of `erase_expired` from whoever runs background work, the clock. Out: commits that remove expired documents with everything that
//! belongs to them, each a bounded transaction of one shard.
//! How: a container's index has an entry for each document that can expire, in the order in which they do. One look reads the first of them: it
//! says whether something is due, and when something will be. Until then, or until the shard is written to, nobody looks again.
//! Invariants
//! - Nobody sees an expired document, erased or not, so erasing changes no answer, and being late costs space only.
//! - What is kept here is known from storage and can be forgotten at any time.
//! - Whatever the index says to have expired is looked at again; an index that is wrong is built anew.

use crate::attempts::{Failure, Trial};
use crate::databases::find;
use crate::index_builds::next_generations;
use crate::leases::LeasedWork;
use crate::{AccountCore, Container, Error, Link};
use astrarium_catalog::container::{Range, stored_definition};
use astrarium_catalog::{CATALOG_SHARD, records};
use astrarium_index::Finder;
use astrarium_index::expiry::{DueEntry, ExpiryIndex};
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::ShardId;
use astrarium_store::sweep;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::sync::Arc;

/// Documents of one step at most.
const DOCUMENTS_MAX: usize = 100;
/// Containers looked at in one step at most.
const CONTAINERS_MAX: usize = 1_000;

/// What is known of when documents expire.
#[derive(Default)]
pub(crate) struct ExpirySchedule {
    /// The version of the catalog that `containers` were read from.
    catalog: Option<u64>,
    /// Containers whose documents can expire, with their databases.
    containers: Vec<(Rid, Rid)>,
    /// The one that is looked at next.
    next: usize,
    shards: HashMap<ShardId, ExpiryLook, RandomState>,
}

/// What a look into a shard told.
#[derive(Clone, Copy, Default)]
struct ExpiryLook {
    /// The shard's version then.
    version: u64,
    /// The second at which the next document expires.
    due: u64,
    /// The entry that was erased last, while more are due: from the first on, a step would pass again over what is erased.
    erased: Option<DueEntry>,
}

impl AccountCore {
    /// Erases some documents that have expired; false when there are none that are due, or when another process does it.
    pub(crate) async fn erase_expired(&self) -> Result<bool, Error> {
        let count = self.list_expiring().await?.min(CONTAINERS_MAX);
        for _ in 0..count {
            let next = {
                let mut schedule = self.shared.expiry_schedule.lock();
                let next = schedule.next % schedule.containers.len().max(1);
                schedule.next = next + 1;
                schedule.containers.get(next).copied()
            };
            let Some((database, rid)) = next else { break };
            let container = match self.container(Link::Rid(database), Link::Rid(rid)).await {
                Ok(container) => container,
                // Removed a moment ago.
                Err(Error::NotFound) => continue,
                Err(error) => return Err(error),
            };
            let erased =
                self.attempt(&container, |trial| async move { self.erase_in_container(trial).await });
            match erased.await {
                Ok(false) | Err(Error::OwnerNotFound | Error::RetryWith) => {}
                Ok(true) => return Ok(true),
                Err(Error::IndexWrong(what)) => self.note_wrong_index(&container, what),
                Err(error) => return Err(error),
            }
        }
        self.give_back(LeasedWork::Expire).await?;
        Ok(false)
    }

    /// Reads which containers have documents that can expire, if any definition has changed; tells how many they are.
    async fn list_expiring(&self) -> Result<usize, Error> {
        let version = self.engine().shard(CATALOG_SHARD).await?.version;
        {
            let schedule = self.shared.expiry_schedule.lock();
            if schedule.catalog == Some(version) {
                return Ok(schedule.containers.len());
            }
        }
        let mut containers = Vec::new();
        for resource in self.all_containers().await? {
            // Most have none, and their definitions are not read.
            if resource.record.definition.contains("\"defaultTtl\"")
                && stored_definition(&resource)?.default_ttl.is_some()
            {
                containers.push((resource.parent, resource.rid));
            }
        }
        let mut schedule = self.shared.expiry_schedule.lock();
        schedule.catalog = Some(version);
        schedule.containers = containers;
        // What was known of when the next is due may have changed.
        schedule.shards.clear();
        Ok(schedule.containers.len())
    }

    /// One step in the first range of a container that has something due; false if none has.
    async fn erase_in_container(&self, trial: Trial) -> Result<bool, Failure> {
        let container = &trial.container;
        if self.is_index_lost(container) {
            return Ok(false);
        }
        if !container.generations.has_expiry {
            return Ok(self.begin_expiry_index(container).await?);
        }
        for range in &container.ranges {
            if self.erase_in_range(container, range, trial.lost).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn erase_in_range(
        &self,
        container: &Arc<Container>,
        range: &Range,
        lost: u32,
    ) -> Result<bool, Failure> {
        let look = self.shared.expiry_schedule.lock().shards.get(&range.shard).copied().unwrap_or_default();
        let version = self.engine().shard(range.shard).await?.version;
        if look.version == version && self.env().now_seconds() < look.due {
            return Ok(false);
        }
        let indexes = self.indexes(container);
        let (Some(family), Some(default_ttl)) = (indexes.active.expiry(), container.definition.default_ttl)
        else {
            return Ok(false);
        };
        let view = self.view(range).await?;
        let transaction = self.begin(container, range, Arc::clone(&view)).await?;
        // What it says to have expired, no clock that is set back makes alive again.
        let now = transaction.now();
        let finder = Finder { snapshot: Arc::clone(&view), shard: range.shard.0 };
        let index = ExpiryIndex { finder: &finder, family, default_ttl };
        let count_max = DOCUMENTS_MAX.checked_shr(lost).unwrap_or_default().max(1);
        let mut due = index.due(now, look.erased, count_max).await?;
        if due.is_empty() && look.erased.is_some() {
            due = index.due(now, None, count_max).await?;
        }
        if due.is_empty() {
            let next = index.next().await?.unwrap_or(u64::MAX);
            let look = ExpiryLook { version: view.state().version, due: next, erased: None };
            self.shared.expiry_schedule.lock().shards.insert(range.shard, look);
            return Ok(false);
        }
        // Nothing that is carried along: the lease is of another shard, and each document is expected as it was read.
        if self.lease_to_free(LeasedWork::Expire).await?.is_none() {
            return Ok(false);
        }
        let numbers: Vec<u64> = due.iter().map(|entry| entry.number).collect();
        let erased = sweep::erase_expired(self.engine(), transaction, range, &numbers).await?;
        let look = ExpiryLook { version: 0, due: 0, erased: due.get(erased.saturating_sub(1)).copied() };
        self.shared.expiry_schedule.lock().shards.insert(range.shard, look);
        self.shared.background.expired(erased);
        Ok(true)
    }

    /// Begins to build the index of a container whose documents can expire and that has no entries for that: an earlier version of the program
    /// made it. Tells whether it did; false while one is under construction.
    async fn begin_expiry_index(&self, container: &Container) -> Result<bool, Error> {
        if container.generations.building.is_some() || !container.definition.indexes_expiry() {
            return Ok(false);
        }
        let resource = &container.resource;
        let begun = self.attempt_catalog(|| async move {
            let view = self.catalog().await?;
            let found = find(&*view, RecordKind::Container, resource.parent, Link::Rid(resource.rid)).await?;
            let Some(present) = found else { return Ok(false) };
            let definition = stored_definition(&present)?;
            let rows = records::ranges(&*view, present.rid).await?;
            let old = records::generations(&*view, present.rid).await?;
            let number = self.next_catalog_number().await?;
            let definitions = (&definition, &definition);
            let Some(new) = next_generations(&*view, &rows, &old, definitions, number).await? else {
                return Ok(false);
            };
            let mut batch = records::batch();
            batch.high_water = number;
            records::stage_generations(&mut batch, present.rid, &rows, &old, &new);
            records::expect_unchanged(&mut batch, &present);
            self.engine().commit(batch).await?;
            Ok(true)
        });
        let is_begun = begun.await?;
        self.shared.containers.forget(resource.rid);
        Ok(is_begun)
    }
}
