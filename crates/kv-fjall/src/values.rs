//! Values that were read lately by their keys, each by itself.
//!
//! In: a key and the view that reads it. Out: its value, if it is here and is the one that the view has.
//! A document found by an index is read by a key of its own, somewhere: through fjall that is a search in several tables and
//! a block of several documents for one of them, two microseconds warm and ten cold; here it is one look at a table. Only
//! reads of single keys come here: a scan does not, and so does not push out what is in use.
//! Invariants
//! - What is kept for a key is its value in every view from the one that read it on, until a group changes the key; the
//!   committer lets go of it before it shows the group to anybody. An older view passes it by.
//! - A view that is older than the last change in a share adds nothing to it, since the change may be of that very key.

use astrarium_kv::{KeyPrefix, PrefixSet, Space};
use astrarium_packed::clock::ClockCache;
use bytes::{Bytes, BytesMut};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::hash::BuildHasher;

/// Shares; a power of two.
const SHARE_COUNT: usize = 16;

/// What a value costs besides its bytes and its key's: its place, its slot, its allocation.
const VALUE_OVERHEAD: usize = 128;

pub(crate) struct ValueCache {
    shares: [Mutex<Share>; SHARE_COUNT],
    share_bytes_max: usize,
    hasher: RandomState,
}

#[derive(Default)]
struct Share {
    values: ClockCache<CachedValue>,
    /// The last group that changed a key of this share.
    changed_at: u64,
}

struct CachedValue {
    space: Space,
    /// The key, then the value.
    bytes: Bytes,
    key_length: usize,
    /// The group of the view that read it.
    read_at: u64,
}

impl CachedValue {
    fn is_of(&self, space: Space, key: &[u8]) -> bool {
        self.space == space && self.bytes[..self.key_length] == *key
    }
}

impl ValueCache {
    pub(crate) fn new(bytes_max: u64) -> ValueCache {
        ValueCache {
            shares: Default::default(),
            share_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX) / SHARE_COUNT,
            hasher: RandomState::default(),
        }
    }

    /// The value of a key in the view as of a group.
    pub(crate) fn get(&self, space: Space, key: &[u8], group: u64) -> Option<Bytes> {
        let (share, hash) = self.share(space, key);
        let mut share = share.lock();
        let entry = share.values.get(hash, |entry| entry.is_of(space, key))?;
        (entry.read_at <= group).then(|| entry.bytes.slice(entry.key_length..))
    }

    /// Keeps what the view as of a group has at a key, if it may; gives it back, in memory of its own if it is kept.
    pub(crate) fn keep(&self, space: Space, key: &[u8], value: Bytes, group: u64) -> Bytes {
        let byte_count = key.len() + value.len() + VALUE_OVERHEAD;
        if byte_count > self.share_bytes_max {
            return value;
        }
        let mut bytes = BytesMut::with_capacity(key.len() + value.len());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&value);
        let bytes = bytes.freeze();
        let own = bytes.slice(key.len()..);
        let (share, hash) = self.share(space, key);
        let mut share = share.lock();
        let is_known = share.values.get(hash, |entry| entry.is_of(space, key)).is_some();
        if share.changed_at <= group && !is_known {
            let entry = CachedValue { space, bytes, key_length: key.len(), read_at: group };
            share.values.insert(hash, entry, byte_count, self.share_bytes_max);
        }
        own
    }

    /// Lets go of a key that a group changes; to be called before any view shows the group.
    pub(crate) fn forget(&self, space: Space, key: &[u8], group: u64) {
        let (share, hash) = self.share(space, key);
        let mut share = share.lock();
        share.changed_at = group;
        if !share.values.is_empty() {
            share.values.remove(hash, |entry| entry.is_of(space, key));
        }
    }

    /// Lets go of all keys with some prefixes; to be called before any view shows the group.
    pub(crate) fn forget_prefixes(&self, prefixes: &[KeyPrefix], group: u64) {
        let prefixes: PrefixSet = prefixes.iter().cloned().collect();
        for share in &self.shares {
            let mut share = share.lock();
            share.changed_at = group;
            let is_kept =
                |entry: &CachedValue| !prefixes.covers(Some(entry.space), &entry.bytes[..entry.key_length]);
            share.values.retain(is_kept);
        }
    }

    fn share(&self, space: Space, key: &[u8]) -> (&Mutex<Share>, u64) {
        let hash = self.hasher.hash_one((space, key));
        // The table of a share looks at the lowest and the highest bits.
        (&self.shares[(hash >> 32) as usize % SHARE_COUNT], hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_gets_only_what_it_has() {
        let cache = ValueCache::new(1 << 20);
        let get = |group| cache.get(Space::Body, b"key", group);
        let keep = |value: &'static str, group| {
            assert_eq!(cache.keep(Space::Body, b"key", Bytes::from(value), group), value.as_bytes());
        };
        keep("first", 5);
        assert_eq!(get(5).as_deref(), Some(&b"first"[..]));
        assert_eq!(get(9).as_deref(), Some(&b"first"[..]));
        assert_eq!(get(4), None, "an older view may have another value");
        assert_eq!(cache.get(Space::Log, b"key", 9), None, "another space");
        keep("second", 5);
        assert_eq!(get(5).as_deref(), Some(&b"first"[..]), "what is here stays");
        cache.forget(Space::Body, b"key", 10);
        assert_eq!(get(10), None);
        keep("first", 9);
        assert_eq!(get(10), None, "a view from before the change adds nothing");
        keep("second", 10);
        assert_eq!(get(10).as_deref(), Some(&b"second"[..]));
        assert_eq!(get(9), None);
    }

    #[test]
    fn a_value_that_is_too_large_is_passed_on() {
        let cache = ValueCache::new(16 << 10);
        let value = Bytes::from(vec![7; 2 << 10]);
        assert_eq!(cache.keep(Space::Body, b"key", value.clone(), 1), value);
        assert_eq!(cache.get(Space::Body, b"key", 1), None);
    }
}
