//! Turns sorted keys into the blocks of a part and what is known of them.
//!
//! In: keys, rising strictly, each there or removed. Out: blocks into a [`Sink`], then a [`Summary`].
//! Memory is bounded by a block, the index and the filter.

use super::block::{BLOCK_BYTES_MAX, BlockBuilder};
use super::families::{Families, family_of};
use super::filter::{Filter, FilterBuilder};
use super::index::{Content, Index};
use astrarium_kv::Error;

/// Takes finished blocks, one after the other.
pub(super) trait Sink {
    /// Takes a block and tells how many bytes it occupies there.
    fn take(&mut self, block: &[u8]) -> Result<u64, Error>;
}

impl Sink for Vec<u8> {
    fn take(&mut self, block: &[u8]) -> Result<u64, Error> {
        self.extend_from_slice(block);
        Ok(block.len() as u64)
    }
}

/// What is known of the blocks of a part.
pub(super) struct Summary {
    pub(super) index: Index,
    pub(super) families: Families,
    pub(super) filter: Filter,
}

/// A part on its way.
pub(super) struct PartBuilder<S> {
    pub(super) sink: S,
    block_bytes: usize,
    block: BlockBuilder,
    /// Removals in the block.
    removed_count: u64,
    index: Index,
    families: Families,
    filter: Option<FilterBuilder>,
    first: Vec<u8>,
    /// The last key of the block before.
    before: Vec<u8>,
}

impl<S: Sink> PartBuilder<S> {
    /// Blocks of about this size, the first of which will lie at `start`.
    pub(super) fn new(sink: S, start: u64, block_bytes: usize) -> PartBuilder<S> {
        PartBuilder {
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
    pub(super) fn filtered(mut self) -> PartBuilder<S> {
        self.filter = Some(FilterBuilder::default());
        self
    }

    /// Appends a key, which must be above the last one.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], is_removed: bool) -> Result<(), Error> {
        debug_assert!(self.block.last() < key, "keys rise");
        if self.block.byte_count() >= self.block_bytes {
            self.end_block()?;
        }
        if self.block.entry_count() == 0 {
            self.first.clear();
            self.first.extend_from_slice(key);
        }
        self.block.push(key, is_removed);
        if let Some(filter) = &mut self.filter {
            filter.push(key);
        }
        self.families.add(family_of(key)?, if is_removed { -1 } else { 1 });
        self.removed_count += u64::from(is_removed);
        Ok(())
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
    pub(super) fn finish(mut self) -> Result<(S, Summary), Error> {
        if self.block.entry_count() > 0 {
            self.end_block()?;
        }
        self.index.finish(&self.before);
        let filter = self.filter.map(FilterBuilder::finish).unwrap_or_default();
        Ok((self.sink, Summary { index: self.index, families: self.families, filter }))
    }
}
