//! Deleting a logical partition, or all that a prefix of a hierarchical key covers: gone at once, erased beside requests.
//!
//! In: a partition key; calls of `erase_deleted` from whoever runs background work. Out: for a partition of a few hundred documents one commit in each
//! range that has some; for a larger one a record in the catalog ([`ErasureRecord`]), and commits that erase what it names, step by step.
//! Invariants
//! - From the commit of the record on nobody sees what it names: it fences the ranges, and whoever loads the container knows it. Documents that are
//!   written later have a higher LSN than it says, and stay.
//! - Each key is looked at once, whatever it holds: a step begins where the last one ended. How far that is comes into the record now and
//!   then, so that a restart goes on from there.
//! - Ranges that are split or merged meanwhile have what the ranges had that they came from.

use crate::attempts::{Failure, Trial};
use crate::charge::{terms_charge, write_charge};
use crate::documents::touches;
use crate::feeds::partition_scope;
use crate::leases::LeasedWork;
use crate::{AccountCore, Container, DocumentsHandle, Error, Link};
use astrarium_catalog::{CATALOG_SHARD, records};
use astrarium_keys::Rid;
use astrarium_keys::erasure::ErasureRecord;
use astrarium_kv::{self as kv, Lease};
use astrarium_partition::PartitionKey;
use astrarium_store::sweep::{erase_deleted, scope_bounds, sweep_partition};
use bytes::Bytes;
use std::sync::Arc;

/// Deletes of one container that wait to be done at most: every reader looks at all of them.
const WAITING_MAX: usize = 100;
/// Steps after which the record is told how far they are.
const STEPS_TOLD: u32 = 16;

/// What is known of deletes that are not done.
#[derive(Debug, Default)]
pub(crate) struct ErasureProgress {
    /// The version of the catalog that had none.
    none_at: Option<u64>,
    /// The delete of the last step.
    last: Option<ErasureUnderWay>,
}

/// A delete, its record with how far it is, and how many steps the stored record does not know.
type ErasureUnderWay = ((Rid, u64), ErasureRecord, u32);

/// What a request removed itself.
struct RemovedAtOnce {
    container: Arc<Container>,
    range_id: u32,
    lsn: u64,
    charge: f64,
    /// Whether there is more to remove.
    more: bool,
}

impl DocumentsHandle<'_> {
    /// Deletes all documents of a logical partition, or of all that a prefix of a hierarchical key covers; gives the
    /// last range's id, its LSN and the charge. Those that are written from now on stay.
    pub async fn delete_partition(self, partition_key: &PartitionKey) -> Result<(u32, u64, f64), Error> {
        let DocumentsHandle { core, container } = self;
        let removed =
            core.attempt(container, |trial| async move {
                core.remove_at_once(trial.container, partition_key).await
            })
            .await?;
        if removed.more {
            core.attempt(&removed.container, |trial| async move {
                core.begin_erasure(&trial.container, partition_key).await
            })
            .await?;
        }
        Ok((removed.range_id, removed.lsn, removed.charge))
    }
}

impl AccountCore {
    /// Removes the first documents of a partition in each range that has some, one commit in each.
    async fn remove_at_once(
        &self,
        container: Arc<Container>,
        partition_key: &PartitionKey,
    ) -> Result<RemovedAtOnce, Failure> {
        let scope = partition_scope(&container, partition_key)?;
        let (mut charge, mut more, mut last) = (0.0, false, None);
        for range in container.ranges.iter().filter(|range| touches(&container, range, &scope)) {
            let transaction = self.begin(&container, range, self.view(range).await?).await?;
            let step = sweep_partition(self.engine(), transaction, &container, range, &scope).await?;
            charge += step.sizes.iter().map(|bytes| write_charge(*bytes)).sum::<f64>();
            charge += terms_charge(step.terms);
            more |= step.more;
            last = Some((range.id, self.range_lsn(range).await?));
        }
        let (range_id, lsn) = last.ok_or(Error::KeyRangeGone)?;
        Ok(RemovedAtOnce { container: Arc::clone(&container), range_id, lsn, charge, more })
    }

    /// Commits that the documents of a partition are deleted, as far as they are there now.
    async fn begin_erasure(
        &self,
        container: &Container,
        partition_key: &PartitionKey,
    ) -> Result<(), Failure> {
        let scope = partition_scope(container, partition_key)?;
        let view = self.catalog().await?;
        if records::erasures(&*view, container.rid()).await?.len() >= WAITING_MAX {
            return Err(Error::Busy.into());
        }
        let work = container.resharding.as_ref().and_then(|record| record.work.as_ref());
        if work.is_some_and(|work| work.sources.len() > 1) {
            // What is named by LSNs of two ranges cannot be told apart in one.
            return Err(Failure::Closed);
        }
        let mut batch = records::batch();
        records::expect_present(&mut batch, &container.resource);
        records::expect_resharding(&mut batch, container.rid(), container.resharding.as_ref());
        for range in container.ranges.iter().filter(|range| touches(container, range, &scope)) {
            let (start, end) = scope_bounds(container, range, &scope);
            let lsn = self.range_lsn(range).await?;
            let record =
                ErasureRecord { version: 0, range_id: range.id, lsn, start, end, position: Bytes::new() };
            records::stage_erasure(&mut batch, container.rid(), self.next_catalog_number().await?, &record);
            batch.fence(range.shard);
        }
        match self.engine().commit(batch).await {
            // What it relied on belongs to the container, which is to be loaded again.
            Err(kv::Error::Conflict { .. }) => return Err(Failure::Fenced),
            other => other?,
        };
        self.shared.containers.forget(container.rid());
        Ok(())
    }

    /// Erases some documents that were deleted with their partition; false when there are none, or when another process does it.
    pub(crate) async fn erase_deleted(&self) -> Result<bool, Error> {
        let version = self.engine().shard(CATALOG_SHARD).await?.version;
        let last = {
            let progress = self.shared.erasure_progress.lock();
            if progress.none_at == Some(version) {
                return Ok(false);
            }
            progress.last.clone()
        };
        let found = self.next_erasure(last).await?;
        let Some((key, record, untold)) = found else {
            *self.shared.erasure_progress.lock() = ErasureProgress { none_at: Some(version), last: None };
            self.give_back(LeasedWork::Erase).await?;
            return Ok(false);
        };
        let Some(lease) = self.lease_to_free(LeasedWork::Erase).await? else { return Ok(false) };
        self.erasure_step(key, record, untold, &lease).await?;
        Ok(true)
    }

    /// The delete that is under way, if it is not done yet, or the next one; with how many steps its record does not know.
    async fn next_erasure(&self, last: Option<ErasureUnderWay>) -> Result<Option<ErasureUnderWay>, Error> {
        let view = self.catalog().await?;
        let after = last.as_ref().map(|(key, ..)| *key);
        if let Some(((rid, number), known, untold)) = last {
            let mut own = records::erasures(&*view, rid).await?.into_iter();
            if let Some((_, record)) = own.find(|(own, _)| *own == number) {
                return Ok(Some((
                    (rid, number),
                    ErasureRecord { position: known.position, ..record },
                    untold,
                )));
            }
        }
        let mut next = records::next_erasure(&*view, after).await?;
        if next.is_none() && after.is_some() {
            next = records::next_erasure(&*view, None).await?;
        }
        Ok(next.map(|(rid, number, record)| ((rid, number), record, 0)))
    }

    /// One step of one delete, and what its record is told of it.
    async fn erasure_step(
        &self,
        (rid, number): (Rid, u64),
        record: ErasureRecord,
        untold: u32,
        lease: &Lease,
    ) -> Result<(), Error> {
        let database =
            rid.database_part().ok_or_else(|| Error::Bug("a container has a database".to_owned()))?;
        let position = match self.container(Link::Rid(database), Link::Rid(rid)).await {
            Ok(container) => {
                let record = &record;
                let step = self
                    .attempt(&container, |trial| async move { self.erase_in_ranges(&trial, record).await });
                match step.await {
                    Err(Error::OwnerNotFound) => None,
                    position => position?,
                }
            }
            // Removed meanwhile, with all its documents.
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let untold = untold + 1;
        let is_told = position.is_none() || untold >= STEPS_TOLD;
        if is_told {
            let mut batch = records::batch();
            match &position {
                Some(position) => {
                    let record = ErasureRecord { position: position.clone(), ..record.clone() };
                    records::stage_erasure(&mut batch, rid, number, &record);
                }
                None => records::stage_erased(&mut batch, rid, number),
            }
            self.commit_guarded(LeasedWork::Erase, lease, batch).await?;
        }
        if position.is_none() {
            // Answers from the index alone are right again for whoever loads it anew.
            self.shared.containers.forget(rid);
        }
        let untold = if is_told { 0 } else { untold };
        let under_way = |position| ((rid, number), ErasureRecord { position, ..record }, untold);
        self.shared.erasure_progress.lock().last = position.map(under_way);
        Ok(())
    }

    /// One step in the first range that has something left; gives where to go on, or nothing when all is done.
    async fn erase_in_ranges(&self, trial: &Trial, record: &ErasureRecord) -> Result<Option<Bytes>, Failure> {
        let container = &trial.container;
        let ranges = container.ranges.iter().filter(|range| range.inherits(record.range_id));
        // In the order of their keys, as positions are.
        for range in ranges {
            let transaction = self.begin(container, range, self.view(range).await?).await?;
            let step = erase_deleted(self.engine(), transaction, range, record, &record.position).await?;
            if step.position.is_some() {
                return Ok(step.position);
            }
        }
        Ok(None)
    }
}
