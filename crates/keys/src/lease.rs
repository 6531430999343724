//! Leases of work that one process at a time does: records in space `Meta`.
//!
//! - `08 | name` -> the record of a lease, whose layout belongs to `kv`: version (8, filled in by the engine), format 1, holder (8),
//!   expiry in microseconds since 1970 (8). Written by commits of the catalog.

use crate::tags;
use bytes::Bytes;

/// The key of the lease of a kind of work.
pub fn lease_key(work: &str) -> Bytes {
    let mut key = vec![tags::meta::LEASE];
    key.extend_from_slice(work.as_bytes());
    key.into()
}
