//! Databases, containers, users, permissions, offers, keys and scripts: what they are, and where they are kept.
//!
//! [`definition`] checks and describes what clients send: JSON in, checked struct out, JSON out, no storage.
//! [`records`] reads and stages the stored form. [`container`] is a container ready for use: its definition together
//! with its key ranges and the shards that hold them. [`restore`] makes the catalog agree with itself after a loss.
//! Invariants
//! - All catalog changes are commits of one shard ([`CATALOG_SHARD`]), so they are serial and versioned.
//! - A change that makes prepared document writes wrong (new policy, removed container) fences the container's shards
//!   in the same commit.
//!
//! Not here: documents (`store`), the cache of containers and the order of operations (`database`).

pub mod container;
pub mod definition;
pub mod numbers;
pub mod records;
pub mod restore;
pub mod stamps;

use astrarium_keys::Malformed;
use astrarium_keys::lease::lease_key;
use astrarium_kv as kv;
use std::sync::Arc;

/// The shard of all catalog commits.
pub const CATALOG_SHARD: kv::ShardId = kv::ShardId(0);

/// The epoch of the catalog: nobody fences it, for nothing that a writer of the catalog goes by is cached.
pub const CATALOG_EPOCH: u64 = 0;

/// The catalog as it is now.
pub async fn view(engine: &dyn kv::Engine) -> Result<Arc<dyn kv::View>, kv::Error> {
    engine.view(CATALOG_SHARD, CATALOG_EPOCH).await
}

/// The lease of a kind of work that one process at a time does, for a process that asks for it.
pub fn lease_request(work: &str, holder: u64, duration_micros: u64, takes_over: bool) -> kv::LeaseRequest {
    let (shard, epoch, key) = (CATALOG_SHARD, CATALOG_EPOCH, lease_key(work));
    kv::LeaseRequest { shard, epoch, key, holder, duration_micros, takes_over }
}

/// Why the catalog could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine failed.
    #[error(transparent)]
    Storage(#[from] kv::Error),
    /// A stored definition is not what any version wrote. The operator's to restore.
    #[error("catalog is damaged: {0}")]
    Malformed(#[from] Malformed),
}
