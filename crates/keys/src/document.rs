//! The key of a document in space `Body`: where a point read looks, and what a partition scan walks.
//!
//! `01 | shard (8) | 00, or 01 and the effective key | partition key components | id`
//! The effective key comes first so that a key range is a range of keys; the partition key itself follows, because two
//! keys can share a hash and must not share a document; the id ends the key as plain UTF-8.
//! Invariants
//! - All documents of a logical partition are adjacent, in order of their ids' bytes.
//! - Keys of one shard are ordered by effective key: effective keys of one container are prefix-free, except the
//!   empty one of containers without a partition key, which the byte 00 puts first.

use crate::{Malformed, ordered, tags};
use astrarium_partition::{Component, EffectiveKey, PartitionKey};
use bytes::Bytes;

/// Bytes before the effective key: tag and shard.
pub const SHARD_PREFIX_LENGTH: usize = 9;

const EFFECTIVE_EMPTY: u8 = 0;
const EFFECTIVE_GIVEN: u8 = 1;

/// The bytes that all documents of a shard begin with.
pub fn shard_prefix(shard: u64) -> [u8; SHARD_PREFIX_LENGTH] {
    let mut prefix = [0; SHARD_PREFIX_LENGTH];
    prefix[0] = tags::body::DOCUMENT;
    prefix[1..].copy_from_slice(&shard.to_be_bytes());
    prefix
}

/// The first key at or after an effective key in a shard: a bound for scans of a key range.
pub fn effective_bound(shard: u64, effective: &EffectiveKey) -> Bytes {
    let mut key = shard_prefix(shard).to_vec();
    push_effective(&mut key, effective);
    key.into()
}

/// What all documents of one logical partition begin with.
pub fn partition_prefix(shard: u64, effective: &EffectiveKey, partition: &PartitionKey) -> Vec<u8> {
    let mut key = Vec::with_capacity(128);
    key.extend_from_slice(&shard_prefix(shard));
    push_effective(&mut key, effective);
    for component in partition.components() {
        push_component(&mut key, component);
    }
    key
}

/// The key of one document.
pub fn document_key(shard: u64, effective: &EffectiveKey, partition: &PartitionKey, id: &str) -> Bytes {
    let mut key = partition_prefix(shard, effective, partition);
    key.extend_from_slice(id.as_bytes());
    key.into()
}

/// The part of a key that stays when a document moves to another shard.
pub fn suffix(key: &[u8]) -> Result<&[u8], Malformed> {
    key.get(SHARD_PREFIX_LENGTH..).ok_or(Malformed::new("document key"))
}

/// A key from its shard and suffix.
pub fn from_suffix(shard: u64, suffix: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(SHARD_PREFIX_LENGTH + suffix.len());
    key.extend_from_slice(&shard_prefix(shard));
    key.extend_from_slice(suffix);
    key.into()
}

fn push_effective(key: &mut Vec<u8>, effective: &EffectiveKey) {
    let bytes = effective.as_bytes();
    if bytes.is_empty() {
        key.push(EFFECTIVE_EMPTY);
    } else {
        key.push(EFFECTIVE_GIVEN);
        key.extend_from_slice(bytes);
    }
}

/// One component: a type byte, then the bits of the number as given (0 and -0 are two partitions, as their hashes
/// are), or the text with its end marked.
fn push_component(key: &mut Vec<u8>, component: &Component) {
    match component {
        Component::Undefined => key.push(0x00),
        Component::Null => key.push(0x01),
        Component::Bool(false) => key.push(0x02),
        Component::Bool(true) => key.push(0x03),
        Component::Number(number) => {
            key.push(0x05);
            key.extend_from_slice(&number.to_bits().to_be_bytes());
        }
        Component::String(text) => {
            key.push(0x08);
            ordered::push_text(key, text);
        }
    }
}
