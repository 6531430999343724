//! The directory of a shard in space `Log`: from a document's number to its key.
//!
//! `01 | shard (8) | number (8)` -> the suffix of the document's key. Numbers grow with insertion, so a walk of the
//! directory is a read feed in insertion order, and index entries need to hold only the number.

use crate::{Malformed, tags};
use bytes::Bytes;

/// The key of a directory entry.
pub fn number_key(shard: u64, number: u64) -> Bytes {
    let mut key = [0; 17];
    key[0] = tags::log::NUMBER;
    key[1..9].copy_from_slice(&shard.to_be_bytes());
    key[9..].copy_from_slice(&number.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// What all directory entries of a shard begin with.
pub fn number_prefix(shard: u64) -> [u8; 9] {
    let mut prefix = [0; 9];
    prefix[0] = tags::log::NUMBER;
    prefix[1..].copy_from_slice(&shard.to_be_bytes());
    prefix
}

/// The number in a directory key.
pub fn read_number(key: &[u8]) -> Result<u64, Malformed> {
    let bytes =
        key.get(9..17).and_then(|bytes| bytes.try_into().ok()).ok_or(Malformed::new("directory key"))?;
    Ok(u64::from_be_bytes(bytes))
}
