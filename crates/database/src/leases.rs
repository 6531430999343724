//! Background work that one process at a time does.
//!
//! In: a kind of work that has something to do. Out: its lease, if no other process has it. Commits of the catalog carry the lease
//! ([`astrarium_kv::Lease::guard`]), so a process that lost it unnoticed, asleep say, changes nothing there. Steps in other shards
//! stand by their own expectations; those of an index build also leave the lease's fencing number in the shard's watermark, and
//! nobody with a smaller one gets any further.
//! Invariants
//! - A lease is asked for only when there is work, so that an idle process writes nothing.
//! - Freeing space goes on while the disk is so full that only removals are taken, and no lease can be written.

use crate::{AccountCore, Error};
use astrarium_catalog::{CATALOG_EPOCH, CATALOG_SHARD, lease_request};
use astrarium_kv::{self as kv, Lease, WriteBatch};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How long a lease lasts that is not asked for again; it is when half of that is over.
const DURATION_MICROS: u64 = 30_000_000;

/// Kinds of work with leases of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeasedWork {
    /// Building indexes.
    Build,
    /// Letting numbers of replaced indexes be used again.
    Sweep,
    /// Removing changes that need not be kept any more.
    Trim,
    /// Erasing documents that have expired.
    Expire,
    /// Erasing documents that were deleted with their partitions.
    Erase,
    /// Splitting and merging key ranges.
    Reshard,
}

/// The leases that this process has.
#[derive(Debug, Default)]
pub(crate) struct HeldLeases {
    held: Mutex<BTreeMap<LeasedWork, Lease>>,
    /// Which of the processes over this storage this one is, once that matters: a stamp.
    process: Mutex<Option<u64>>,
}

impl AccountCore {
    /// The lease of a kind of work; nothing while another process has it.
    pub(crate) async fn lease(&self, work: LeasedWork) -> Result<Option<Lease>, Error> {
        let held = self.shared.leases.held.lock().get(&work).cloned();
        let now = self.env().now_micros();
        // A clock that went back by much makes it look longer than it is: then it is asked for again.
        let fresh = held.clone().filter(|lease| {
            let left = lease.expires_micros.saturating_sub(now);
            (DURATION_MICROS / 2..=DURATION_MICROS).contains(&left)
        });
        if fresh.is_some() {
            return Ok(fresh);
        }
        let process = self.process().await?;
        // Where no other process can be, a lease that is not ours is of one that has ended.
        let takes_over = held.is_none() && self.engine().is_exclusive();
        let request = lease_request(work.name(), process, DURATION_MICROS, takes_over);
        let lease = request.acquire(self.engine(), now).await?;
        let mut held = self.shared.leases.held.lock();
        match &lease {
            Some(lease) => drop(held.insert(work, lease.clone())),
            None => drop(held.remove(&work)),
        }
        Ok(lease)
    }

    /// The lease of work that frees space; something in its place while storage takes only removals, so that it goes on then too.
    pub(crate) async fn lease_to_free(&self, work: LeasedWork) -> Result<Option<Lease>, Error> {
        match self.lease(work).await {
            Err(Error::Unavailable(_)) => {
                // Nobody has the number 0.
                let process = self.shared.leases.process.lock().unwrap_or_default();
                let request = lease_request(work.name(), process, 0, self.engine().is_exclusive());
                Ok(request.stand_in(self.engine(), self.env().now_micros()).await?)
            }
            other => other,
        }
    }

    /// Commits a batch of the catalog that carries a lease; false if another process has it by now.
    pub(crate) async fn commit_guarded(
        &self,
        work: LeasedWork,
        lease: &Lease,
        mut batch: WriteBatch,
    ) -> Result<bool, Error> {
        lease.guard(&mut batch);
        match self.engine().commit(batch).await {
            Ok(_) => Ok(true),
            Err(kv::Error::Conflict { .. }) => {
                self.forget_lease(work);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for a lease anew the next time, since another process has it.
    pub(crate) fn forget_lease(&self, work: LeasedWork) {
        self.shared.leases.held.lock().remove(&work);
    }

    /// The number of this process, which no other one over this storage has or had.
    async fn process(&self) -> Result<u64, Error> {
        let drawn = *self.shared.leases.process.lock();
        if let Some(process) = drawn {
            return Ok(process);
        }
        let stamp = self.shared.stamps.next().await?;
        Ok(*self.shared.leases.process.lock().get_or_insert(stamp))
    }

    /// Gives a lease back, if this process has it, when there is nothing left to do.
    pub(crate) async fn give_back(&self, work: LeasedWork) -> Result<(), Error> {
        let held = self.shared.leases.held.lock().remove(&work);
        if let Some(lease) = held {
            lease.release(self.engine(), CATALOG_SHARD, CATALOG_EPOCH).await?;
        }
        Ok(())
    }
}

impl LeasedWork {
    fn name(self) -> &'static str {
        match self {
            LeasedWork::Build => "build",
            LeasedWork::Sweep => "sweep",
            LeasedWork::Trim => "trim",
            LeasedWork::Expire => "expire",
            LeasedWork::Erase => "erase",
            LeasedWork::Reshard => "reshard",
        }
    }
}
