//! The trail of a shard in space `Log`: which documents were changed while the shard is copied into new ones.
//!
//! `06 | shard (8) | resharding (8) | LSN (8, filled in at commit) | place in the commit (4)` -> the suffix of the document's key.
//! Whoever copies goes over it until its end, and takes of each document what it is then. Written by all transactions from the commit
//! on that began the resharding, and by none before.

use crate::{Malformed, tags};
use bytes::Bytes;

/// Where the LSN stands in the key.
pub const LSN_OFFSET: u32 = 17;

/// The key of an entry; give LSN 0 where the engine is to fill it in.
pub fn trail_key(shard: u64, resharding: u64, lsn: u64, place: u32) -> Bytes {
    let mut key = [0; 29];
    key[..17].copy_from_slice(&trail_prefix(shard, resharding));
    key[17..25].copy_from_slice(&lsn.to_be_bytes());
    key[25..].copy_from_slice(&place.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// What all entries of a resharding begin with in a shard.
pub fn trail_prefix(shard: u64, resharding: u64) -> [u8; 17] {
    let mut prefix = [tags::log::TRAIL; 17];
    prefix[1..9].copy_from_slice(&shard.to_be_bytes());
    prefix[9..].copy_from_slice(&resharding.to_be_bytes());
    prefix
}

/// The LSN of an entry.
pub fn read_lsn(key: &[u8]) -> Result<u64, Malformed> {
    let lsn = key.get(17..25).and_then(|bytes| bytes.try_into().ok()).ok_or(Malformed::new("trail key"))?;
    Ok(u64::from_be_bytes(lsn))
}
