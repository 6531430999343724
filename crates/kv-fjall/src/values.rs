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
use bytes::{Bytes, BytesMut};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};
use std::hash::{BuildHasher, Hash, Hasher};

/// Shares; a power of two.
const SHARE_COUNT: usize = 16;

/// What a value costs besides its bytes and its key's: its place, its slot, its allocation.
const VALUE_OVERHEAD: usize = 128;

/// About what a value has; only how much room is made at the beginning depends on it.
const VALUE_BYTES: u64 = 1 << 10;

pub(crate) struct ValueCache {
    values: Cache<CachedKey, CachedValue, ValueWeighter, RandomState>,
    /// The last group that changed a key of each share. Held while a value comes or goes, so that none comes after the change
    /// that it lacks.
    changed_at: [Mutex<u64>; SHARE_COUNT],
    share_bytes_max: usize,
    hasher: RandomState,
}

struct CachedKey {
    space: Space,
    bytes: Bytes,
}

#[derive(Clone)]
struct CachedValue {
    /// In one allocation with the key.
    bytes: Bytes,
    /// The group of the view that read it.
    read_at: u64,
}

/// A key that is looked for.
struct SoughtKey<'a> {
    space: Space,
    bytes: &'a [u8],
}

impl CachedKey {
    fn as_sought(&self) -> SoughtKey<'_> {
        SoughtKey { space: self.space, bytes: &self.bytes }
    }
}

impl PartialEq for CachedKey {
    fn eq(&self, other: &CachedKey) -> bool {
        other.as_sought().equivalent(self)
    }
}

impl Eq for CachedKey {}

impl Hash for CachedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_sought().hash(state);
    }
}

impl Hash for SoughtKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.space, self.bytes).hash(state);
    }
}

impl Equivalent<CachedKey> for SoughtKey<'_> {
    fn equivalent(&self, key: &CachedKey) -> bool {
        self.space == key.space && *self.bytes == key.bytes
    }
}

#[derive(Clone)]
struct ValueWeighter;

impl Weighter<CachedKey, CachedValue> for ValueWeighter {
    fn weight(&self, key: &CachedKey, value: &CachedValue) -> u64 {
        (key.bytes.len() + value.bytes.len() + VALUE_OVERHEAD) as u64
    }
}

impl ValueCache {
    pub(crate) fn new(bytes_max: u64) -> ValueCache {
        let value_count = usize::try_from(bytes_max / VALUE_BYTES).unwrap_or(usize::MAX);
        let hasher = RandomState::default();
        let lifecycle = DefaultLifecycle::default();
        ValueCache {
            values: Cache::with(value_count, bytes_max, ValueWeighter, hasher.clone(), lifecycle),
            changed_at: Default::default(),
            share_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX) / SHARE_COUNT,
            hasher,
        }
    }

    /// The value of a key in the view as of a group.
    pub(crate) fn get(&self, space: Space, key: &[u8], group: u64) -> Option<Bytes> {
        let found = self.values.get(&SoughtKey { space, bytes: key })?;
        (found.read_at <= group).then_some(found.bytes)
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
        let sought = SoughtKey { space, bytes: key };
        let changed_at = self.changed_at(&sought).lock();
        if *changed_at <= group && self.values.peek(&sought).is_none() {
            let kept = CachedValue { bytes: own.clone(), read_at: group };
            self.values.insert(CachedKey { space, bytes: bytes.slice(..key.len()) }, kept);
        }
        own
    }

    /// Lets go of a key that a group changes; to be called before any view shows the group.
    pub(crate) fn forget(&self, space: Space, key: &[u8], group: u64) {
        let sought = SoughtKey { space, bytes: key };
        let mut changed_at = self.changed_at(&sought).lock();
        *changed_at = group;
        self.values.remove(&sought);
    }

    /// Lets go of all keys with some prefixes; to be called before any view shows the group.
    pub(crate) fn forget_prefixes(&self, prefixes: &[KeyPrefix], group: u64) {
        let prefixes: PrefixSet = prefixes.iter().cloned().collect();
        for changed_at in &self.changed_at {
            *changed_at.lock() = group;
        }
        // From now on nothing comes that lacks the group.
        self.values.retain(|key, _| !prefixes.covers(Some(key.space), &key.bytes));
    }

    fn changed_at(&self, key: &SoughtKey<'_>) -> &Mutex<u64> {
        &self.changed_at[(self.hasher.hash_one(key) >> 32) as usize % SHARE_COUNT]
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
    fn what_is_dropped_is_let_go() {
        let cache = ValueCache::new(1 << 20);
        for key in [&b"ab"[..], b"ac", b"b"] {
            cache.keep(Space::Body, key, Bytes::from_static(b"value"), 5);
        }
        let prefix = KeyPrefix { space: Some(Space::Body), bytes: Bytes::from_static(b"a") };
        cache.forget_prefixes(&[prefix], 6);
        let has = |key: &[u8]| cache.get(Space::Body, key, 6).is_some();
        assert_eq!([has(b"ab"), has(b"ac"), has(b"b")], [false, false, true]);
        cache.keep(Space::Body, b"ab", Bytes::from_static(b"value"), 5);
        assert!(!has(b"ab"), "a view from before adds nothing");
    }

    #[test]
    fn a_value_that_is_too_large_is_passed_on() {
        let cache = ValueCache::new(16 << 10);
        let value = Bytes::from(vec![7; 2 << 10]);
        assert_eq!(cache.keep(Space::Body, b"key", value.clone(), 1), value);
        assert_eq!(cache.get(Space::Body, b"key", 1), None);
    }
}
