//! A segment of the set: sorted keys in blocks, in memory or in a blob, that never change.
//!
//! The set is a list of segments, the newest first: an entry of a newer segment counts over the same key in an older one.
//! In: what a builder made, or a blob. Out: blocks, counts, places.
//! Invariant: a segment whose blob has been replaced removes it when the last view that holds it is gone.
//!
//! Not here: walking the keys (`cursor`), the list (`view`).

use crate::Error;
use crate::block::BlockCursor;
use crate::bloom::BloomFilter;
use crate::builder::Summary;
use crate::dropped::end_of;
use crate::families::Families;
use crate::index::Index;
use crate::lost::{BadBlock, LostRange};
use crate::stored::{SegmentBlob, SegmentRecord};
use bytes::Bytes;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A segment, or the upper part of one whose lower part has been merged already.
#[derive(Clone)]
pub(crate) struct Segment {
    content: Arc<SegmentContent>,
    /// Keys below this are not in it any more; empty if all are.
    from: Vec<u8>,
}

/// What a segment holds.
pub(crate) struct SegmentContent {
    pub(crate) index: Index,
    pub(crate) families: Families,
    pub(crate) filter: BloomFilter,
    /// The share of the removals that hide a key of an older segment. The others are left of keys that came and went within
    /// the segment.
    pub(crate) hiding_share: f64,
    blocks: SegmentBytes,
}

enum SegmentBytes {
    Memory {
        /// The blocks, at the places the index says.
        image: Bytes,
        /// First and last commit group whose changes are here.
        groups: (u64, u64),
    },
    Stored(SegmentBlob),
}

impl Deref for Segment {
    type Target = SegmentContent;

    fn deref(&self) -> &SegmentContent {
        &self.content
    }
}

/// Whether blocks that were read from a blob are worth keeping in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// They will be asked for again.
    Cached,
    /// Each is read once, in order.
    Once,
}

impl Segment {
    pub(crate) fn in_memory(image: Bytes, summary: Summary, groups: (u64, u64)) -> Segment {
        Segment::new(summary, SegmentBytes::Memory { image, groups })
    }

    pub(crate) fn stored(blob: SegmentBlob, summary: Summary) -> Segment {
        Segment::new(summary, SegmentBytes::Stored(blob))
    }

    fn new(summary: Summary, blocks: SegmentBytes) -> Segment {
        let Summary { index, families, filter } = summary;
        let removed = index.removed_count();
        let added = (index.entry_count() - removed) as f64;
        let hiding_share = match removed {
            0 => 0.0,
            removed => ((added - families.sum() as f64) / removed as f64).clamp(0.0, 1.0),
        };
        let content = SegmentContent { index, families, filter, hiding_share, blocks };
        Segment { content: Arc::new(content), from: Vec::new() }
    }

    /// The same without the keys below this one.
    pub(crate) fn trimmed(&self, from: &[u8]) -> Segment {
        Segment { content: Arc::clone(&self.content), from: from.to_vec() }
    }

    /// Below which keys are not in it any more; empty if all are.
    pub(crate) fn from(&self) -> &[u8] {
        &self.from
    }

    /// No key is below this; empty if there is none.
    pub(crate) fn start(&self) -> &[u8] {
        let first = self.index.first();
        // Mostly nothing was cut off, and this is asked for every run of every read.
        if self.from.is_empty() { first } else { first.max(&self.from) }
    }

    /// Whether no key can be in the range.
    pub(crate) fn misses(&self, start: &[u8], end: &[u8]) -> bool {
        self.index.misses(start, end) || *self.from >= *end
    }

    /// What the manifest says of it, if it is stored.
    pub(crate) fn record(&self) -> Option<SegmentRecord> {
        Some(SegmentRecord { from: self.from.clone(), ..self.blob()?.record().clone() })
    }

    /// First and last commit group, of a segment in memory.
    pub(crate) fn groups(&self) -> Option<(u64, u64)> {
        match &self.blocks {
            SegmentBytes::Memory { groups, .. } => Some(*groups),
            SegmentBytes::Stored(_) => None,
        }
    }

    pub(crate) fn blob(&self) -> Option<&SegmentBlob> {
        match &self.blocks {
            SegmentBytes::Memory { .. } => None,
            SegmentBytes::Stored(blob) => Some(blob),
        }
    }

    /// Bytes that the segment takes where it is: in memory with all that is known of it, or on disk.
    pub(crate) fn byte_count(&self) -> u64 {
        match &self.blocks {
            SegmentBytes::Memory { image, .. } => {
                let known = self.index.byte_count() + self.families.byte_count() + self.filter.byte_count();
                (image.len() + known) as u64
            }
            SegmentBytes::Stored(blob) => blob.byte_count(),
        }
    }

    /// A block that is there: the bytes it is segment of, and where.
    pub(crate) fn block(&self, block: usize, reading: Reading) -> Result<(Bytes, Range<usize>), Error> {
        let place = self.index.bytes_of(block);
        match &self.blocks {
            SegmentBytes::Memory { image, .. } => {
                Ok((image.clone(), place.start as usize..place.end as usize))
            }
            SegmentBytes::Stored(blob) => {
                let bytes = blob.block(block, place, reading).map_err(|error| self.told(error, block))?;
                let length = bytes.len();
                Ok((bytes, 0..length))
            }
        }
    }

    /// Damage of a block, with the keys it concerns.
    fn told(&self, error: Error, block: usize) -> Error {
        match (error, self.blob()) {
            (Error::Damaged { what }, Some(blob)) => {
                let (start, end) = self.index.keys_of(block);
                let range = LostRange { start: start.into(), end: end.into(), what };
                Error::BadBlock(Box::new(BadBlock { number: blob.record().number, range }))
            }
            (error, _) => error,
        }
    }

    /// How many entries are below the target, and about how many of those are removals.
    pub(crate) fn rank(&self, target: &[u8]) -> Result<(u64, u64), Error> {
        let target = target.max(&self.from);
        let Some(block) = self.index.find_below(target) else { return Ok((0, 0)) };
        let (bytes, place) = self.block(block, Reading::Cached)?;
        let mut cursor = BlockCursor::new();
        cursor.load(bytes, place)?;
        let rank = cursor.rank(target)? as u64;
        let (entries, removed) = self.index.before(block);
        let content = self.index.content_of(block);
        Ok((entries + rank, removed + content.removed_count * rank / content.entry_count.max(1)))
    }

    /// How many entries have a key with this prefix.
    pub(crate) fn stored_entries(&self, prefix: &[u8]) -> Result<u64, Error> {
        let end = match end_of(prefix) {
            Some(end) => self.rank(&end)?.0,
            None => self.index.entry_count(),
        };
        Ok(end.saturating_sub(self.rank(prefix)?.0))
    }
}
