//! Background work that one process at a time does.
//!
//! In: a kind of work that has something to do. Out: its lease, if no other process has it. What ends the work in the catalog carries
//! the lease ([`astrarium_kv::Lease::guard`]), so a process that lost it unnoticed, asleep say, cannot end what another goes on
//! with. The steps before are of other shards, and stand by their own expectations.
//! Invariant: a lease is asked for only when there is work, so that an idle process writes nothing.
//!
//! Not here: freeing space. Its steps can be done twice, and it must go on when the disk is so full that only removals are taken.

use crate::{AccountCore, Error};
use astrarium_catalog::{CATALOG_EPOCH, CATALOG_SHARD, lease_request};
use astrarium_kv::Lease;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How long a lease lasts that is not asked for again; it is when half of that is over.
const DURATION_MICROS: u64 = 30_000_000;

/// Kinds of work with leases of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeasedWork {
    /// Building indexes.
    Build,
}

/// The leases that this process has.
#[derive(Debug, Default)]
pub(crate) struct HeldLeases {
    held: Mutex<BTreeMap<LeasedWork, Lease>>,
}

impl AccountCore {
    /// The lease of a kind of work; nothing while another process has it.
    pub(crate) async fn lease(&self, work: LeasedWork) -> Result<Option<Lease>, Error> {
        let held = self.shared.leases.held.lock().get(&work).cloned();
        let now = self.env().now_micros();
        // A clock that went back by much makes it look longer than it is: then it is asked for again.
        let fresh = held.filter(|lease| {
            let left = lease.expires_micros.saturating_sub(now);
            (DURATION_MICROS / 2..=DURATION_MICROS).contains(&left)
        });
        if fresh.is_some() {
            return Ok(fresh);
        }
        let request = lease_request(work.name(), self.shared.process, DURATION_MICROS);
        let lease = request.acquire(self.engine(), now).await?;
        let mut held = self.shared.leases.held.lock();
        match &lease {
            Some(lease) => drop(held.insert(work, lease.clone())),
            None => drop(held.remove(&work)),
        }
        Ok(lease)
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
        }
    }
}
