//! Where the blocks of a segment are, by the keys they begin with: all that is kept in memory of a run on disk.
//!
//! In: blocks as they are built, or the bytes that [`Index::encode`] wrote. Out: which block a key belongs to.
//! Invariants
//! - A fence is above every key of the block before and not above any key of its own; it is cut as short as that allows.
//! - Ordinals count the entries of all blocks before, so a place in a block is a place in the segment.

use crate::block::shared_bytes;
use crate::varint;
use std::ops::Range;

/// The blocks of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    fences: Vec<u8>,
    blocks: Vec<BlockPlace>,
    /// The last key of all.
    last: Vec<u8>,
    /// Where the last block ends.
    end: u64,
    entry_count: u64,
    /// How many of the entries are removals.
    removed_count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockPlace {
    /// Where the block's fence ends.
    fence_end: u32,
    /// Where the block begins.
    start: u64,
    /// Entries before the block.
    ordinal: u64,
    /// Removals among them.
    removed: u64,
}

/// How much a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "each says what it counts")]
pub(crate) struct Content {
    pub(crate) byte_count: u64,
    pub(crate) entry_count: u64,
    /// How many of the entries are removals.
    pub(crate) removed_count: u64,
}

impl Index {
    /// An index whose first block begins here.
    pub(crate) fn starting_at(start: u64) -> Index {
        Index { end: start, ..Index::default() }
    }

    /// Adds a block: the key before it (empty if there is none), its first key, and what it holds.
    pub(crate) fn push(&mut self, before: &[u8], first: &[u8], content: Content) {
        let needed = if self.blocks.is_empty() { first.len() } else { shared_bytes(before, first) + 1 };
        self.push_fence(&first[..needed.min(first.len())], content);
    }

    fn push_fence(&mut self, fence: &[u8], content: Content) {
        self.fences.extend_from_slice(fence);
        let fence_end = self.fences.len() as u32;
        let (ordinal, removed) = (self.entry_count, self.removed_count);
        self.blocks.push(BlockPlace { fence_end, start: self.end, ordinal, removed });
        self.end += content.byte_count;
        self.entry_count += content.entry_count;
        self.removed_count += content.removed_count;
    }

    /// Names the last key, when all blocks are there.
    pub(crate) fn finish(&mut self, last: &[u8]) {
        self.last = last.to_vec();
    }

    /// The first key; empty if there is none.
    pub(crate) fn first(&self) -> &[u8] {
        if self.blocks.is_empty() { &[] } else { self.fence(0) }
    }

    /// The last key; empty if there is none.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// The keys that a block can have: from the first up to the second, which is not among them.
    pub(crate) fn keys_of(&self, block: usize) -> (Vec<u8>, Vec<u8>) {
        let end = if block + 1 < self.blocks.len() {
            self.fence(block + 1).to_vec()
        } else {
            [&self.last[..], &[0]].concat()
        };
        (self.fence(block).to_vec(), end)
    }

    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// How many of the entries are removals.
    pub(crate) fn removed_count(&self) -> u64 {
        self.removed_count
    }

    /// Where a block lies.
    pub(crate) fn bytes_of(&self, block: usize) -> Range<u64> {
        self.blocks[block].start..self.blocks.get(block + 1).map_or(self.end, |next| next.start)
    }

    /// What a block holds.
    pub(crate) fn content_of(&self, block: usize) -> Content {
        let bytes = self.bytes_of(block);
        let next = self.blocks.get(block + 1);
        let (entries, removed) =
            next.map_or((self.entry_count, self.removed_count), |next| (next.ordinal, next.removed));
        Content {
            byte_count: bytes.end - bytes.start,
            entry_count: entries - self.blocks[block].ordinal,
            removed_count: removed - self.blocks[block].removed,
        }
    }

    /// Entries before a block, and how many of them are removals.
    pub(crate) fn before(&self, block: usize) -> (u64, u64) {
        (self.blocks[block].ordinal, self.blocks[block].removed)
    }

    /// Not above any key of a block, and above every key before it.
    pub(crate) fn fence(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.blocks[before].fence_end);
        &self.fences[start as usize..self.blocks[block].fence_end as usize]
    }

    /// The last block that may hold keys not above the target; the first one if none does.
    pub(crate) fn find(&self, target: &[u8]) -> usize {
        self.partition(|fence| fence <= target).saturating_sub(1)
    }

    /// The same where it is not before a block: looks near that one first, at distances that double.
    pub(crate) fn find_from(&self, block: usize, target: &[u8]) -> usize {
        let (mut low, mut distance) = (block, 1);
        while let Some(next) = Some(low + distance).filter(|next| *next < self.blocks.len())
            && self.fence(next) <= target
        {
            low = next;
            distance *= 2;
        }
        let mut high = (low + distance).min(self.blocks.len());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            if self.fence(middle) <= target { low = middle } else { high = middle }
        }
        low
    }

    /// The last block that may hold keys below the target.
    pub(crate) fn find_below(&self, target: &[u8]) -> Option<usize> {
        self.partition(|fence| fence < target).checked_sub(1)
    }

    fn partition(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.blocks.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if is_before(self.fence(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Whether no key of the segment can be in the range.
    pub(crate) fn misses(&self, start: &[u8], end: &[u8]) -> bool {
        self.blocks.is_empty() || self.last[..] < *start || *self.fence(0) >= *end
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.blocks.len() as u64);
        for block in 0..self.blocks.len() {
            varint::put_bytes(out, self.fence(block));
            self.content_of(block).encode(out);
        }
        varint::put_bytes(out, &self.last);
    }

    /// Nothing when the bytes are not what [`Index::encode`] writes.
    pub(crate) fn decode(bytes: &[u8], at: &mut usize, start: u64) -> Option<Index> {
        let mut index = Index::starting_at(start);
        for _ in 0..varint::get(bytes, at)? {
            let fence = varint::get_bytes(bytes, at)?;
            let content = Content::decode(bytes, at)?;
            index.end.checked_add(content.byte_count)?;
            index.entry_count.checked_add(content.entry_count)?;
            index.push_fence(fence, content);
        }
        index.last = varint::get_bytes(bytes, at)?.to_vec();
        Some(index)
    }

    /// Where the last block ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes in memory.
    pub(crate) fn byte_count(&self) -> usize {
        self.fences.len() + self.blocks.len() * size_of::<BlockPlace>() + self.last.len()
    }
}

impl Content {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        varint::put(out, self.byte_count);
        varint::put(out, self.entry_count);
        varint::put(out, self.removed_count);
    }

    /// Nothing when the bytes are not what [`Content::encode`] writes.
    pub(crate) fn decode(bytes: &[u8], at: &mut usize) -> Option<Content> {
        let mut next = || varint::get(bytes, at);
        let content = Content { byte_count: next()?, entry_count: next()?, removed_count: next()? };
        (content.removed_count <= content.entry_count).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_find_their_blocks() {
        let mut index = Index::starting_at(8);
        let content = |byte_count, entry_count| Content { byte_count, entry_count, removed_count: 2 };
        index.push(b"", b"bb", content(100, 3));
        index.push(b"d", b"dog", content(50, 4));
        index.push(b"dot", b"egg", content(25, 5));
        index.finish(b"end");
        assert_eq!((index.fence(0), index.fence(1), index.fence(2)), (&b"bb"[..], &b"do"[..], &b"e"[..]));
        assert_eq!((index.bytes_of(0), index.bytes_of(2), index.end()), (8..108, 158..183, 183));
        assert_eq!((index.before(2), index.entry_count(), index.removed_count()), ((7, 4), 12, 6));
        assert_eq!((index.content_of(1), index.content_of(2)), (content(50, 4), content(25, 5)));
        for (key, at, below) in [
            ("a", 0, None),
            ("bb", 0, None),
            ("cat", 0, Some(0)),
            ("do", 1, Some(0)),
            ("dz", 1, Some(1)),
            ("e", 2, Some(1)),
            ("z", 2, Some(2)),
        ] {
            assert_eq!((index.find(key.as_bytes()), index.find_below(key.as_bytes())), (at, below), "{key}");
        }
        assert!(index.misses(b"a", b"bb") && index.misses(b"ene", b"z"));
        assert!(!index.misses(b"a", b"bba") && !index.misses(b"end", b"z") && !index.misses(b"c", b"d"));
        let mut bytes = Vec::new();
        index.encode(&mut bytes);
        assert_eq!(Index::decode(&bytes, &mut 0, 8), Some(index));
        assert_eq!(Index::decode(&bytes[..bytes.len() - 1], &mut 0, 8), None);
    }
}
