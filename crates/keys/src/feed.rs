//! The change feed of a shard in space `Log`: one entry for each living document, at the place of its last change.
//!
//! `02 | shard (8) | LSN (8, filled in at commit) | sequence in the commit (4)` -> the suffix of the document's key.
//! A change removes the document's old entry (its place is in the body's header) and adds the new one, so that reading
//! from a position gives each document once, in commit order.

use crate::{Malformed, tags};
use bytes::Bytes;

/// Where the LSN stands in the key.
pub const LSN_OFFSET: u32 = 9;

/// The key of an entry; give LSN 0 where the engine is to fill it in.
pub fn feed_key(shard: u64, lsn: u64, sequence: u32) -> Bytes {
    let mut key = [0; 21];
    key[0] = tags::log::FEED;
    key[1..9].copy_from_slice(&shard.to_be_bytes());
    key[9..17].copy_from_slice(&lsn.to_be_bytes());
    key[17..].copy_from_slice(&sequence.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// What all entries of a shard begin with.
pub fn feed_prefix(shard: u64) -> [u8; 9] {
    let mut prefix = [0; 9];
    prefix[0] = tags::log::FEED;
    prefix[1..].copy_from_slice(&shard.to_be_bytes());
    prefix
}

/// LSN and sequence of an entry.
pub fn read_position(key: &[u8]) -> Result<(u64, u32), Malformed> {
    let malformed = Malformed::new("change feed key");
    let lsn = key.get(9..17).and_then(|bytes| bytes.try_into().ok()).ok_or(malformed.clone())?;
    let sequence = key.get(17..21).and_then(|bytes| bytes.try_into().ok()).ok_or(malformed)?;
    Ok((u64::from_be_bytes(lsn), u32::from_be_bytes(sequence)))
}
