//! Consistent reads of one shard.

use crate::{EntryBatch, Error, KeyBatch, Reply, ShardId, ShardState, Space};
use bytes::Bytes;

/// A view of one shard that does not change. Holding one for long keeps old versions alive, so hold it for one page.
pub trait View: Send + Sync {
    /// The shard that it shows.
    fn shard(&self) -> ShardId;

    /// The shard's counters as the view shows it: the version is that of the last batch it shows, no older and no newer.
    fn state(&self) -> ShardState;

    /// The value of one key.
    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>>;

    /// The values of many keys, in their order, until they hold so many bytes: of all keys, or of the first of them, and of one at least
    /// if there is one. Cheapest when the keys are sorted.
    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>>;

    /// Entries of a range in key order, or backwards, until the range or the limit ends.
    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>>;

    /// Keys of the set in a range, in key order or backwards, until the range or the limit ends.
    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>>;

    /// The same with the values of the entries; bytes of values count for the limit.
    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>>;

    /// The numbers from `from` on that follow each of these prefixes as the last eight bytes of a key of the set, in order: what is
    /// in all of several lists of postings. An engine that has no better way than scans says nothing.
    fn intersect_keys(
        &self,
        _prefixes: &[Bytes],
        _from: u64,
        _limit: IntersectionLimit,
    ) -> Option<Reply<Result<Intersection, Error>>> {
        None
    }

    /// How many keys of the set belong to a family ([`crate::FAMILY_BYTES`]), without walking them. Exact as long as only
    /// absent keys were added and only present ones removed.
    fn count_keys(&self, family: &[u8; crate::FAMILY_BYTES]) -> Reply<Result<u64, Error>>;

    /// About how many keys of the set are in a range, cheaply: right within a small factor, 0 only if it says so for
    /// sure.
    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>>;
}

/// Keys from `start` (included) to `end` (not included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key that belongs.
    pub start: Bytes,
    /// First key beyond.
    pub end: Bytes,
}

impl KeyRange {
    /// All keys that begin with `prefix`, which must not be empty or all `FF`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let mut end = prefix.to_vec();
        while end.last() == Some(&0xFF) {
            end.pop();
        }
        let last = end.last_mut().expect("a prefix has a byte below FF");
        *last += 1;
        KeyRange { start: Bytes::copy_from_slice(prefix), end: end.into() }
    }
}

/// The smallest key greater than this one.
pub fn just_after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

/// Which end of the range comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// When an intersection stops early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntersectionLimit {
    /// Numbers at most.
    pub count_max: usize,
    /// Times that a list is asked for a number, about, at most.
    pub seeks_max: u64,
}

/// Numbers that are in all of several lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intersection {
    /// In order.
    pub numbers: Vec<u64>,
    /// How often a list was asked for a number.
    pub seeks: u64,
    /// Where to go on, if the limit ended it.
    pub next: Option<u64>,
}

/// When a scan stops early. At least one entry is given if the range has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimit {
    /// Entries at most.
    pub entry_count_max: usize,
    /// No further entry once keys and values hold this many bytes.
    pub byte_count_max: usize,
}

impl ScanLimit {
    /// Whether a scan that gave so much stops before the next entry.
    pub(crate) fn is_reached(self, entry_count: usize, byte_count: usize) -> bool {
        entry_count > 0 && (entry_count >= self.entry_count_max || byte_count >= self.byte_count_max)
    }
}

/// A piece of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanBatch {
    /// Keys and values in scan order.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Whether the limit ended the scan and the range may have more. Go on after the last key.
    pub more: bool,
}
