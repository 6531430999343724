//! Bodies of documents for readers: bounded in bytes, and taken from the memory budget before they are read.
//!
//! In: keys or a range of keys of one shard, and a limit. Out: values in their order, as far as the limit reaches.
//! The hazard: clients decide how large documents are, and the size of a body is known only once it has been read. So
//! 1. every read has a limit of bytes, small at first and twice as large each time, and exceeds it by one body at most;
//! 2. that many bytes are reserved before the read, and after it what came instead;
//! 3. where the budget is used up the read fails with [`FeedError::NoMemory`]: a page that has documents ends before it.
//!
//! Not here: the limits of a page (`feed`, `changes`), what a query holds of rows (`sql-exec`).

use crate::Error;
use crate::scoped::{FeedError, FeedReader, FeedScope};
use astrarium_catalog::container::Range;
use astrarium_env::{Memory, Reservation};
use astrarium_keys::body::Body;
use astrarium_keys::{Malformed, document, number};
use astrarium_kv::{Direction, KeyRange, ScanBatch, ScanLimit, Space, View};
use bytes::Bytes;

/// Bytes that the first read of a reader gives, and that any read gives, about.
const STEP_BYTES: (usize, usize) = (256 << 10, 1 << 20);
/// Bytes that are reserved for a body at first.
const EXPECTED_BYTES: usize = 16 << 10;

/// The memory of the bodies that a reader holds, and how many it may read next. Given back when this is dropped.
#[derive(Debug)]
pub struct DocumentMemory {
    held: Reservation,
    step_bytes: usize,
}

impl DocumentMemory {
    /// Of a reader that holds nothing yet.
    pub fn new(memory: &Memory) -> DocumentMemory {
        DocumentMemory { held: memory.empty(), step_bytes: STEP_BYTES.0 }
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Gives back all but so many bytes: the reader has dropped the rest.
    pub fn keep(&mut self, bytes: usize) {
        if bytes < self.held.bytes() {
            // Less is always to be had.
            let _ = self.held.resize(bytes);
        }
    }

    /// The bodies at some keys, in their order: those of the first of them, and of one at least.
    pub(crate) async fn get_many(
        &mut self,
        view: &dyn View,
        keys: &[Bytes],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>, FeedError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (before, step) = self.begin(keys.len().saturating_mul(EXPECTED_BYTES).min(bytes_max))?;
        let values = view.get_many(Space::Body, keys, step).await.map_err(Error::from)?;
        self.end(before, values.iter().flatten().map(Bytes::len).sum())?;
        Ok(values)
    }

    /// Entries of a range of keys, in their order: at least one if there is one.
    pub(crate) async fn scan(
        &mut self,
        view: &dyn View,
        space: Space,
        keys: &KeyRange,
        limit: ScanLimit,
    ) -> Result<ScanBatch, FeedError> {
        let (before, step) =
            self.begin(limit.entry_count_max.saturating_mul(EXPECTED_BYTES).min(limit.byte_count_max))?;
        let limit = ScanLimit { byte_count_max: step, ..limit };
        let batch = view.scan(space, keys, Direction::Forward, limit).await.map_err(Error::from)?;
        self.end(before, batch.entries.iter().map(|(key, value)| key.len() + value.len()).sum())?;
        Ok(batch)
    }

    /// Reserves what the next read may give; what was held before, and how many bytes to read.
    fn begin(&mut self, bytes_max: usize) -> Result<(usize, usize), FeedError> {
        let (before, step) = (self.held.bytes(), self.step_bytes.min(bytes_max).max(1));
        if !self.held.resize(before.saturating_add(step)) {
            return Err(FeedError::NoMemory);
        }
        self.step_bytes = (self.step_bytes * 2).min(STEP_BYTES.1);
        Ok((before, step))
    }

    /// Corrects the reservation to what came. Where the last body is more than there is room for, all that came is given up.
    fn end(&mut self, before: usize, bytes: usize) -> Result<(), FeedError> {
        if self.held.resize(before.saturating_add(bytes)) {
            return Ok(());
        }
        self.keep(before);
        Err(FeedError::NoMemory)
    }
}

/// Documents of a range that were found by their numbers and are read in that order, step by step.
#[derive(Debug, Default)]
pub struct UnreadDocuments {
    /// The number of each document that is in the scope, and its key.
    numbers: Vec<u64>,
    keys: Vec<Bytes>,
    /// How many of them were read.
    read_count: usize,
}

impl UnreadDocuments {
    /// Whether all of them were read.
    pub fn is_empty(&self) -> bool {
        self.read_count >= self.keys.len()
    }

    /// The numbers of those that were not read.
    pub fn into_numbers(mut self) -> impl Iterator<Item = u64> {
        self.numbers.split_off(self.read_count).into_iter()
    }

    /// The number of the last one that was read, shown or not.
    pub fn last_read(&self) -> Option<u64> {
        self.numbers[..self.read_count].last().copied()
    }
}

impl FeedReader {
    /// Where the documents of a range are that have these numbers and belong to a scope.
    pub async fn find_documents(
        &self,
        range: &Range,
        scope: &FeedScope,
        numbers: &[u64],
    ) -> Result<UnreadDocuments, FeedError> {
        let (view, shard) = (self.view(range.shard)?, range.shard.0);
        let entries: Vec<Bytes> = numbers.iter().map(|number| number::number_key(shard, *number)).collect();
        let suffixes = view.get_many(Space::Log, &entries, usize::MAX).await.map_err(Error::from)?;
        let bounds = self.key_bounds(range, scope);
        let (mut found, mut keys) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        for (suffix, number) in suffixes.into_iter().zip(numbers) {
            // The index and the directory are of one view, so the index is wrong.
            let suffix = suffix.ok_or(Error::DanglingEntry { shard: range.shard, number: *number })?;
            let key = document::from_suffix(shard, &suffix);
            if bounds.as_ref().is_none_or(|bounds| bounds.start <= key && key < bounds.end) {
                found.push(*number);
                keys.push(key);
            }
        }
        Ok(UnreadDocuments { numbers: found, keys, read_count: 0 })
    }

    /// The visible ones of the next documents; there may be none and still be more to read.
    pub async fn read_documents(
        &self,
        range: &Range,
        unread: &mut UnreadDocuments,
        memory: &mut DocumentMemory,
    ) -> Result<Vec<Body>, FeedError> {
        let keys = &unread.keys[unread.read_count..];
        let found = memory.get_many(&**self.view(range.shard)?, keys, usize::MAX).await?;
        let mut documents = Vec::with_capacity(found.len());
        unread.read_count += found.len();
        for (key, bytes) in keys.iter().zip(found) {
            let bytes =
                bytes.ok_or(Error::Malformed(Malformed::new("directory entry without a document")))?;
            let body = Body::decode(bytes).map_err(Error::from)?;
            if self.shown().has(&range.erasures, key, &body.header) {
                documents.push(body);
            }
        }
        Ok(documents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_kv::contract::{block_on, shard_key};
    use astrarium_kv::memory::MemoryEngine;
    use astrarium_kv::{Engine, ShardId, Stamp, WriteBatch};
    use std::sync::Arc;

    const KB: usize = 1 << 10;

    /// A shard with values of these sizes, and their keys.
    fn stored(sizes: &[usize]) -> (Arc<dyn View>, Vec<Bytes>) {
        let engine = MemoryEngine::default();
        let mut batch = WriteBatch::new(ShardId(1), 0);
        let keys: Vec<Bytes> =
            (0..sizes.len()).map(|index| shard_key(ShardId(1), &index.to_be_bytes())).collect();
        for (key, size) in keys.iter().zip(sizes) {
            batch.put(Space::Body, key.clone(), vec![0; *size].into(), Stamp::NONE);
        }
        block_on(engine.commit(batch)).expect("a commit");
        (block_on(engine.view(ShardId(1), 0)).expect("a view"), keys)
    }

    #[test]
    fn a_read_gives_no_more_than_its_step_and_one_body() {
        let (view, keys) = stored(&[1_400 * KB; 20]);
        let budget = Memory::new(100 << 20);
        let mut memory = DocumentMemory::new(&budget);
        let values = block_on(memory.get_many(&*view, &keys, usize::MAX)).expect("there is memory");
        assert_eq!((values.len(), budget.taken()), (1, 1_400 * KB));
        drop(memory);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn steps_grow_where_bodies_are_small() {
        let (view, keys) = stored(&[10 * KB; 300]);
        let mut memory = DocumentMemory::new(&Memory::unlimited());
        let (mut rest, mut counts) = (&keys[..], Vec::new());
        while !rest.is_empty() {
            let count = block_on(memory.get_many(&*view, rest, usize::MAX)).expect("there is memory").len();
            counts.push(count);
            rest = &rest[count..];
        }
        assert_eq!(counts, [26, 52, 103, 103, 16]);
    }

    #[test]
    fn what_there_is_no_memory_for_is_not_held() {
        let (view, keys) = stored(&[10 * KB, 10 * KB, 900 * KB]);
        let budget = Memory::new(100 * KB);
        let mut memory = DocumentMemory::new(&budget);
        let small = block_on(memory.get_many(&*view, &keys[..2], usize::MAX)).expect("there is memory");
        assert_eq!((small.len(), memory.bytes()), (2, 20 * KB));
        for keys in [&keys[2..], &[keys[0].clone(), keys[2].clone()]] {
            let refused = block_on(memory.get_many(&*view, keys, usize::MAX));
            assert!(matches!(refused, Err(FeedError::NoMemory)), "{refused:?}");
            assert_eq!(budget.taken(), 20 * KB, "what was held before is held still");
        }
        memory.keep(5 * KB);
        assert_eq!(budget.taken(), 5 * KB);
    }
}
