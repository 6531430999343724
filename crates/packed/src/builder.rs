//! Turns sorted keys into the blocks of a segment and what is known of them.
//!
//! In: keys, rising strictly, each there or removed. Out: blocks into a [`Sink`], then a [`Summary`].
//! Memory is bounded by a block, the index and the filter.

use crate::Error;
use crate::block::{BLOCK_BYTES_MAX, BlockBuilder};
use crate::bloom::{BloomBuilder, BloomFilter};
use crate::families::{Families, family_of};
use crate::index::{Content, Index};

/// Takes finished blocks, one after the other.
pub(crate) trait Sink {
    /// Takes a block and tells how many bytes it occupies there.
    fn take(&mut self, block: &[u8]) -> Result<u64, Error>;
}

impl Sink for Vec<u8> {
    fn take(&mut self, block: &[u8]) -> Result<u64, Error> {
        self.extend_from_slice(block);
        Ok(block.len() as u64)
    }
}

/// What is known of the blocks of a segment.
pub(crate) struct Summary {
    pub(crate) index: Index,
    pub(crate) families: Families,
    pub(crate) filter: BloomFilter,
}

/// A segment on its way.
pub(crate) struct SegmentBuilder<S> {
    pub(crate) sink: S,
    block_bytes: usize,
    block: BlockBuilder,
    /// Removals in the block.
    removed_count: u64,
    index: Index,
    families: Families,
    filter: Option<BloomBuilder>,
    first: Vec<u8>,
    /// The last key of the block before.
    before: Vec<u8>,
}

impl<S: Sink> SegmentBuilder<S> {
    /// Blocks of about this size, the first of which will lie at `start`.
    pub(crate) fn new(sink: S, start: u64, block_bytes: usize) -> SegmentBuilder<S> {
        SegmentBuilder {
            sink,
            block_bytes: block_bytes.min(BLOCK_BYTES_MAX),
            block: BlockBuilder::default(),
            removed_count: 0,
            index: Index::starting_at(start),
            families: Families::default(),
            filter: None,
            first: Vec::new(),
            before: Vec::new(),
        }
    }

    /// The same with a filter.
    pub(crate) fn filtered(mut self) -> SegmentBuilder<S> {
        self.filter = Some(BloomBuilder::default());
        self
    }

    /// Appends an entry, whose key must be above the last one.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], is_removed: bool, value: &[u8]) -> Result<(), Error> {
        debug_assert!(self.block.last() < key, "keys rise");
        if self.block.byte_count() >= self.block_bytes || !self.block.takes(value) {
            self.end_block()?;
        }
        if self.block.entry_count() == 0 {
            self.first.clear();
            self.first.extend_from_slice(key);
        }
        self.block.push(key, is_removed, value);
        if let Some(filter) = &mut self.filter {
            filter.push(key);
        }
        self.families.add(family_of(key)?, if is_removed { -1 } else { 1 });
        self.removed_count += u64::from(is_removed);
        Ok(())
    }

    /// About how many bytes there are.
    pub(crate) fn byte_count(&self) -> u64 {
        self.index.end() + self.block.byte_count() as u64
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let byte_count = self.sink.take(self.block.finish())?;
        let removed_count = std::mem::take(&mut self.removed_count);
        let content = Content { byte_count, entry_count: self.block.entry_count() as u64, removed_count };
        self.index.push(&self.before, &self.first, content);
        self.before.clear();
        self.before.extend_from_slice(self.block.last());
        self.block.clear();
        Ok(())
    }

    /// The sink with all blocks, and what is known of them. The families are as counted from the keys.
    pub(crate) fn finish(mut self) -> Result<(S, Summary), Error> {
        if self.block.entry_count() > 0 {
            self.end_block()?;
        }
        self.index.finish(&self.before);
        let filter = self.filter.map(BloomBuilder::finish).unwrap_or_default();
        Ok((self.sink, Summary { index: self.index, families: self.families, filter }))
    }
}
