//! Writes merged segments: of runs, of segments in memory, or of one segment without its damaged blocks.
//!
//! In: segments of several ages, the newest first. Out: segments of one age, in blobs that are complete and synced, and that are
//! removed unless they are kept.
//! Long work is done bit by bit; in between the merger does what is more urgent.
//! Invariants
//! - Removals stay in what is merged, since older segments may hold the key, unless there is none older.
//! - The family sums of all segments together stay what they were, whichever of them has which. When all runs are merged at once
//!   they are counted anew, so that a miscount by a caller does not stay for ever.

use crate::block::BlockCursor;
use crate::builder::{SegmentBuilder, Summary};
use crate::cursor::{EntryCursor, ForwardCursor};
use crate::dropped::DroppedPrefixes;
use crate::families::{Families, FamilyKey};
use crate::lost::LostRange;
use crate::merge::MergeCursor;
use crate::merger::{Halt, Merger};
use crate::policy::Scope;
use crate::segment::{Reading, Segment};
use crate::stored::{FIRST_BLOCK, SegmentBlob, SegmentWriter};
use crate::{Error, FAMILY_BYTES};
use std::sync::Arc;

/// Keys merged between two looks for more urgent work: about half a millisecond.
pub(crate) const KEYS_AT_ONCE: usize = 8192;

/// Blocks copied between two such looks.
const BLOCKS_AT_ONCE: usize = 8;

/// What is merged.
pub(crate) struct Inputs<'a> {
    /// The newest first; each in the order of its keys.
    pub(crate) runs: Vec<&'a [Arc<Segment>]>,
    /// Up to which key; nothing for all.
    pub(crate) cut: Option<&'a [u8]>,
    /// Whether no segment with such keys is older.
    pub(crate) is_bottom: bool,
    /// Whether what is written has Bloom filters. Those of a run that is cut would take memory that grows with the set, and spare
    /// little: most of what is looked for is in the largest run.
    pub(crate) is_filtered: bool,
    /// How families have grown by what is merged and gone afterwards; nothing where what is left is to be counted.
    pub(crate) sums: Option<Families>,
}

/// Segments that were written; their blobs go unless they are kept.
#[derive(Default)]
pub(crate) struct WrittenSegments {
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Sums that no segment has, because there is none.
    pub(crate) sums: Families,
    is_kept: bool,
}

impl WrittenSegments {
    /// They are named, or may be.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for WrittenSegments {
    fn drop(&mut self) {
        if !self.is_kept {
            self.segments.iter().filter_map(|segment| segment.blob()).for_each(SegmentBlob::replaced);
        }
    }
}

/// Segments on their way: one is open at a time.
struct Writing {
    builder: Option<SegmentBuilder<SegmentWriter>>,
    is_filtered: bool,
    written: WrittenSegments,
    /// Sums that no segment has yet; nothing where they are counted.
    sums: Option<Families>,
}

impl Writing {
    /// Completes the open segment; `next` is the family that the next one begins with.
    fn end_segment(&mut self, next: Option<&FamilyKey>) -> Result<(), Error> {
        let Some(builder) = self.builder.take() else { return Ok(()) };
        let (writer, mut summary) = builder.finish()?;
        if let Some(sums) = &mut self.sums {
            summary.families = sums.take_share(&summary.families, next);
        }
        self.written.segments.push(Arc::new(writer.finish(summary)?));
        Ok(())
    }
}

impl Merger {
    /// Merges into segments of about the size that the options say.
    pub(crate) fn write_segments(
        &mut self,
        inputs: Inputs<'_>,
        scope: Scope,
    ) -> Result<WrittenSegments, Halt> {
        let cursors = inputs.runs.iter().map(|run| ForwardCursor::seek(run, &[], Reading::Once));
        let mut merge = MergeCursor::new(cursors.collect::<Result<Vec<_>, _>>()?);
        let is_within = |key: &[u8]| inputs.cut.is_none_or(|cut| key < cut);
        let mut dropped = DroppedPrefixes::new(self.engine.dropped());
        let mut sums = inputs.sums;
        if let Some(sums) = &mut sums {
            sums.leave_out(dropped.clone());
        }
        let mut writing = Writing {
            builder: None,
            is_filtered: inputs.is_filtered,
            written: WrittenSegments::default(),
            sums,
        };
        loop {
            for _ in 0..KEYS_AT_ONCE {
                let Some(entry) = merge.current().filter(|entry| is_within(entry.key())) else {
                    writing.end_segment(None)?;
                    writing.written.sums = writing.sums.take().unwrap_or_default();
                    return Ok(std::mem::take(&mut writing.written));
                };
                let is_useless = (inputs.is_bottom && entry.is_removed()) || dropped.covers(entry.key());
                if !is_useless {
                    self.builder(&mut writing, entry.key())?.push(
                        entry.key(),
                        entry.is_removed(),
                        entry.value(),
                    )?;
                }
                merge.advance()?;
            }
            self.attend(scope)?;
        }
    }

    /// The segment that a key goes into.
    #[inline]
    fn builder<'w>(
        &mut self,
        writing: &'w mut Writing,
        key: &[u8],
    ) -> Result<&'w mut SegmentBuilder<SegmentWriter>, Error> {
        let segment_bytes = self.options().segment_bytes.max(1);
        if writing.builder.as_ref().is_some_and(|builder| builder.byte_count() >= segment_bytes) {
            writing.end_segment(key.first_chunk::<FAMILY_BYTES>())?;
        }
        if writing.builder.is_none() {
            let number = self.next_number();
            let writer = SegmentWriter::create(&self.backing, number)?;
            let builder = SegmentBuilder::new(writer, FIRST_BLOCK, self.options().block_bytes);
            writing.builder = Some(if writing.is_filtered { builder.filtered() } else { builder });
        }
        writing.builder.as_mut().ok_or_else(|| crate::damaged("a segment is written before it is begun"))
    }

    /// Writes a segment anew without the blocks that cannot be read, and tells which keys those held.
    pub(crate) fn write_readable(
        &mut self,
        segment: &Segment,
    ) -> Result<(WrittenSegments, Vec<LostRange>), Halt> {
        let mut lost = Vec::new();
        let mut writing = Writing {
            builder: None,
            is_filtered: segment.filter.byte_count() > 0,
            written: WrittenSegments::default(),
            sums: Some(Families::total([&segment.families].into_iter())),
        };
        let mut block = BlockCursor::new();
        for number in segment.index.find(segment.from())..segment.index.block_count() {
            let (bytes, place) = match segment.block(number, Reading::Once) {
                Ok(found) => found,
                Err(Error::BadBlock(bad)) => {
                    lost.push(bad.range);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            block.load(bytes, place)?;
            while block.advance()? {
                if block.key() < segment.from() {
                    continue;
                }
                let builder = self.builder(&mut writing, block.key())?;
                builder.push(block.key(), block.is_removed(), block.value())?;
            }
            if number % BLOCKS_AT_ONCE == 0 {
                self.attend(Scope::NotRuns)?;
            }
        }
        writing.end_segment(None)?;
        Ok((std::mem::take(&mut writing.written), lost))
    }
}

/// One segment in memory of several, the newest first.
pub(crate) fn merge_in_memory(old: &[Arc<Segment>], block_bytes: usize) -> Result<Segment, Error> {
    let groups = |segment: &Arc<Segment>| segment.groups().unwrap_or_default();
    let (newest, oldest) = (old.first().map(groups), old.last().map(groups));
    let image = Vec::with_capacity(old.iter().map(|segment| segment.byte_count()).sum::<u64>() as usize);
    let mut builder = SegmentBuilder::new(image, 0, block_bytes).filtered();
    let cursors =
        old.iter().map(|segment| ForwardCursor::seek(std::slice::from_ref(segment), &[], Reading::Once));
    let mut merge = MergeCursor::new(cursors.collect::<Result<Vec<_>, _>>()?);
    while let Some(entry) = merge.current() {
        builder.push(entry.key(), entry.is_removed(), entry.value())?;
        merge.advance()?;
    }
    let (mut image, Summary { index, filter, .. }) = builder.finish()?;
    image.shrink_to_fit();
    let families = Families::total(old.iter().map(|segment| &segment.families));
    let groups = (oldest.unwrap_or_default().0, newest.unwrap_or_default().1);
    Ok(Segment::in_memory(image.into(), Summary { index, families, filter }, groups))
}
