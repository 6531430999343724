//! A part of the set: sorted keys in blocks, in memory or in a file, that never change.
//!
//! The set is a list of parts, the newest first: an entry of a newer part counts over the same key in an older one.
//! In: what a builder made, or a file. Out: blocks, counts, places.
//! Invariant: a part in a file that has been replaced removes its file when the last view that holds it is gone.
//!
//! Not here: walking the keys (`cursor`), the list (`parts`).

use super::block::BlockCursor;
use super::builder::Summary;
use super::families::Families;
use super::filter::Filter;
use super::index::Index;
use super::run_file::RunFile;
use astrarium_kv::Error;
use bytes::Bytes;
use std::ops::Range;

pub(super) struct Part {
    pub(super) index: Index,
    pub(super) families: Families,
    pub(super) filter: Filter,
    /// The share of the removals that hide a key of an older part. The others are left of keys that came and went within
    /// the part.
    pub(super) hiding_share: f64,
    source: Source,
}

enum Source {
    Memory {
        /// The blocks, at the places the index says.
        image: Bytes,
        /// First and last commit group whose changes are here.
        groups: (u64, u64),
    },
    File(RunFile),
}

/// Whether blocks that were read from a file are worth keeping in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// They will be asked for again.
    Cached,
    /// Each is read once, in order.
    Once,
}

impl Part {
    pub(super) fn in_memory(image: Bytes, summary: Summary, groups: (u64, u64)) -> Part {
        Part::new(summary, Source::Memory { image, groups })
    }

    pub(super) fn in_file(file: RunFile, summary: Summary) -> Part {
        Part::new(summary, Source::File(file))
    }

    fn new(summary: Summary, source: Source) -> Part {
        let Summary { index, families, filter } = summary;
        let removed = index.removed_count();
        let added = (index.entry_count() - removed) as f64;
        let hiding_share = match removed {
            0 => 0.0,
            removed => ((added - families.sum() as f64) / removed as f64).clamp(0.0, 1.0),
        };
        Part { index, families, filter, hiding_share, source }
    }

    /// First and last commit group, of a part in memory.
    pub(super) fn groups(&self) -> Option<(u64, u64)> {
        match &self.source {
            Source::Memory { groups, .. } => Some(*groups),
            Source::File(_) => None,
        }
    }

    pub(super) fn file(&self) -> Option<&RunFile> {
        match &self.source {
            Source::Memory { .. } => None,
            Source::File(file) => Some(file),
        }
    }

    /// Bytes that the part takes where it is: in memory with all that is known of it, or on disk.
    pub(super) fn byte_count(&self) -> u64 {
        match &self.source {
            Source::Memory { image, .. } => {
                let known = self.index.byte_count() + self.families.byte_count() + self.filter.byte_count();
                (image.len() + known) as u64
            }
            Source::File(file) => file.byte_count(),
        }
    }

    /// A block that is there: the bytes it is part of, and where.
    pub(super) fn block(&self, block: usize, reading: Reading) -> Result<(Bytes, Range<usize>), Error> {
        let place = self.index.bytes_of(block);
        match &self.source {
            Source::Memory { image, .. } => Ok((image.clone(), place.start as usize..place.end as usize)),
            Source::File(file) => {
                let bytes = file.block(block, place, reading)?;
                let length = bytes.len();
                Ok((bytes, 0..length))
            }
        }
    }

    /// How many entries are below the target, and about how many of those are removals.
    pub(super) fn rank(&self, target: &[u8]) -> Result<(u64, u64), Error> {
        let Some(block) = self.index.find_below(target) else { return Ok((0, 0)) };
        let (bytes, place) = self.block(block, Reading::Cached)?;
        let mut cursor = BlockCursor::new();
        cursor.load(bytes, place)?;
        let rank = cursor.rank(target)? as u64;
        let (entries, removed) = self.index.before(block);
        let content = self.index.content_of(block);
        Ok((entries + rank, removed + content.removed_count * rank / content.entry_count.max(1)))
    }
}
