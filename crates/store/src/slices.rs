//! Reading everything of a scope in whatever order is cheapest: the order of keys, in slices that can be read at once.
//!
//! In: a scope. Out: slices of the key space, and the visible documents of each, step by step.
//! Invariants
//! - The slices of a scope, and the parts that a slice is divided into, hold each document once.
//! - Where a slice is divided depends on its first and last key only, so the same data gives the same parts.

use crate::Error;
use crate::bodies::DocumentMemory;
use crate::feed::RangeScope;
use crate::scoped::{FeedError, FeedReader, FeedScope};
use astrarium_catalog::container::Range;
use astrarium_keys::body::Body;
use astrarium_keys::document;
use astrarium_kv::{Direction, KeyRange, ScanLimit, ShardId, Space, just_after};
use bytes::Bytes;

/// Documents read from the engine at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 1_024, byte_count_max: 1 << 20 };

/// Documents of one range between two keys, those that were not read yet.
#[derive(Debug, Clone)]
pub struct KeySlice {
    shard: ShardId,
    keys: KeyRange,
}

impl KeySlice {
    /// The same slice among the partitions of an index: keys without their shard.
    pub fn partitions(&self) -> (&[u8], &[u8]) {
        let start = self.keys.start.get(document::SHARD_PREFIX_LENGTH..).unwrap_or_default();
        let same_shard = self.keys.end.get(..document::SHARD_PREFIX_LENGTH)
            == self.keys.start.get(..document::SHARD_PREFIX_LENGTH);
        let end = if same_shard { &self.keys.end[document::SHARD_PREFIX_LENGTH..] } else { &[0xFF] };
        (start, end)
    }
}

impl FeedReader {
    /// The slice of one range that holds the documents of a scope.
    pub fn slice(&self, scope: &FeedScope, range: &Range) -> KeySlice {
        let keys = match scope {
            FeedScope::All | FeedScope::Range(_) => KeyRange::prefix(&document::shard_prefix(range.shard.0)),
            FeedScope::Partition(key) => {
                let effective = self.container.definition.partition_key.effective(key);
                RangeScope::Partition(key, effective).key_range(range)
            }
            FeedScope::Slice(slice) => RangeScope::Slice(slice.clone()).key_range(range),
        };
        KeySlice { shard: range.shard, keys }
    }

    /// The next visible documents of a slice, which then begins after them; `None` at its end.
    pub async fn next_of(
        &self,
        slice: &mut KeySlice,
        memory: &mut DocumentMemory,
    ) -> Result<Option<Vec<Body>>, FeedError> {
        if slice.keys.start >= slice.keys.end {
            return Ok(None);
        }
        let batch = memory.scan(&**self.view(slice.shard)?, Space::Body, &slice.keys, STEP).await?;
        slice.keys.start = match batch.entries.last() {
            Some((key, _)) if batch.more => just_after(key),
            _ => slice.keys.end.clone(),
        };
        let range = self.container.ranges.iter().find(|range| range.shard == slice.shard);
        let erasures = &range.ok_or(FeedError::RangeGone)?.erasures;
        let mut bodies = Vec::with_capacity(batch.entries.len());
        for (key, bytes) in batch.entries {
            let body = Body::decode(bytes).map_err(Error::from)?;
            if self.shown().has(erasures, &key, &body.header) {
                bodies.push(body);
            }
        }
        Ok(Some(bodies))
    }

    /// Divides a slice into about so many parts of about the same size, in order.
    pub async fn divide(&self, slice: KeySlice, count: usize) -> Result<Vec<KeySlice>, FeedError> {
        let (Some(first), Some(last)) = (
            self.end_key(&slice, Direction::Forward).await?,
            self.end_key(&slice, Direction::Backward).await?,
        ) else {
            return Ok(vec![slice]);
        };
        let mut parts = Vec::with_capacity(count);
        let shard = slice.shard;
        let mut start = slice.keys.start;
        for boundary in boundaries(&first, &last, count) {
            parts.push(KeySlice { shard, keys: KeyRange { start, end: boundary.clone() } });
            start = boundary;
        }
        parts.push(KeySlice { shard, keys: KeyRange { start, end: slice.keys.end } });
        Ok(parts)
    }

    async fn end_key(&self, slice: &KeySlice, direction: Direction) -> Result<Option<Bytes>, FeedError> {
        if slice.keys.start >= slice.keys.end {
            return Ok(None);
        }
        let limit = ScanLimit { entry_count_max: 1, byte_count_max: 1 };
        let batch = self.view(slice.shard)?.scan(Space::Body, &slice.keys, direction, limit).await;
        Ok(batch.map_err(Error::from)?.entries.pop().map(|(key, _)| key))
    }
}

/// Keys that stand at equal distances between two keys, as far as the eight bytes after their common beginning tell.
fn boundaries(first: &[u8], last: &[u8], count: usize) -> Vec<Bytes> {
    let common = first.iter().zip(last).take_while(|(first, last)| first == last).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        for (place, byte) in bytes.iter_mut().zip(&key[common..]) {
            *place = *byte;
        }
        u128::from(u64::from_be_bytes(bytes))
    };
    let (low, high) = (number(first), number(last));
    let mut boundaries: Vec<Bytes> = Vec::with_capacity(count);
    for part in 1..count {
        let place = low + (high - low) * part as u128 / count as u128;
        if place == low || place == high {
            continue;
        }
        let boundary = [&first[..common], &(place as u64).to_be_bytes()].concat();
        if boundaries.last().is_none_or(|last| **last < *boundary) {
            boundaries.push(boundary.into());
        }
    }
    boundaries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_rise_between_the_ends() {
        let cases: [(&[u8], &[u8], usize); 6] = [
            (b"doc-0", b"doc-99999", 8),
            (b"a", b"b", 4),
            (b"same", b"same", 4),
            (b"prefix", b"prefix-longer", 16),
            (b"\x00", b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 3),
            (b"x1", b"x2", 1),
        ];
        for (first, last, count) in cases {
            let found = boundaries(first, last, count);
            assert!(found.len() < count.max(1), "{first:?} {count}");
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
            assert!(found.iter().all(|key| first < &key[..] && &key[..] <= last), "{found:?}");
        }
        assert_eq!(boundaries(b"doc-0", b"doc-99999", 8).len(), 7);
    }
}
