//! Several segments as one: of entries with the same key, that of the newest segment counts.
//!
//! In: cursors over segments, the newest first. Out: each key once, in order ([`MergeCursor`]); or one segment made of several
//! ([`SegmentMerge`]), bit by bit, so that whoever merges can look after other things in between.
//! Invariants
//! - Removals stay in a merged segment, since older segments may hold the key, unless there is no older segment.
//! - The family sums of a merged segment are those of its inputs added; at the bottom of the set they are counted anew,
//!   so that a miscount by a caller does not stay for ever.

use crate::Error;
use crate::builder::{SegmentBuilder, Sink, Summary};
use crate::cursor::{EntryCursor, ForwardCursor};
use crate::dropped::DroppedPrefixes;
use crate::families::Families;
use crate::head::{KeyHead, head_of};
use crate::segment::{Reading, Segment};
use std::cmp::Ordering;
use std::sync::Arc;

/// Many cursors as one.
pub(crate) struct MergeCursor<W> {
    cursors: Vec<W>,
    /// How the key of each cursor begins: most keys are told apart by that, and without a look at them.
    starts: Vec<KeyHead>,
    /// Cursors over that stand at an entry, in the order of their entries, of equal ones the newest first.
    order: Vec<u32>,
}

impl<W: EntryCursor> MergeCursor<W> {
    pub(crate) fn new(cursors: Vec<W>) -> MergeCursor<W> {
        let mut order: Vec<u32> =
            (0..cursors.len() as u32).filter(|index| cursors[*index as usize].is_valid()).collect();
        let starts = cursors.iter().map(|cursor| head_of(cursor.key())).collect();
        let mut merge = MergeCursor { cursors, starts, order: Vec::new() };
        order.sort_unstable_by(|left, right| merge.compare(*left, *right));
        merge.order = order;
        merge
    }

    /// The entry it stands at.
    #[inline]
    pub(crate) fn current(&self) -> Option<&W> {
        self.order.first().map(|first| &self.cursors[*first as usize])
    }

    /// Goes on to the next key.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        while let [first, second, ..] = self.order[..]
            && self.starts[first as usize] == self.starts[second as usize]
            && self.cursors[first as usize].key() == self.cursors[second as usize].key()
        {
            // Older entries of the same key do not count.
            self.step(1)?;
        }
        if self.order.is_empty() { Ok(()) } else { self.step(0) }
    }

    /// Moves the cursor at this place of the order, and puts it where it belongs then.
    #[inline]
    fn step(&mut self, place: usize) -> Result<(), Error> {
        self.cursors[self.order[place] as usize].advance()?;
        self.settle(place);
        Ok(())
    }

    /// Puts a cursor that was moved where it belongs.
    #[inline]
    fn settle(&mut self, place: usize) {
        let moved = self.order[place];
        if !self.cursors[moved as usize].is_valid() {
            self.order.remove(place);
            return;
        }
        self.starts[moved as usize] = head_of(self.cursors[moved as usize].key());
        let later = &self.order[place + 1..];
        let is_before = |other: &u32| self.compare(*other, moved).is_lt();
        // Mostly it stays where it is: entries of one segment come in rows.
        if !later.first().is_some_and(is_before) {
            return;
        }
        let passed = later.partition_point(is_before);
        self.order.copy_within(place + 1..=place + passed, place);
        self.order[place + passed] = moved;
    }

    #[inline]
    fn compare(&self, left: u32, right: u32) -> Ordering {
        let (left_cursor, right_cursor) = (&self.cursors[left as usize], &self.cursors[right as usize]);
        let order = self.starts[left as usize].cmp(&self.starts[right as usize]);
        let order = order.then_with(|| left_cursor.key().cmp(right_cursor.key()));
        W::direct(order).then(left.cmp(&right))
    }
}

impl MergeCursor<ForwardCursor<'_>> {
    /// Goes on to the first key that is not below the target.
    #[inline]
    pub(crate) fn seek(&mut self, target: &[u8]) -> Result<(), Error> {
        let head = head_of(target);
        while let Some(first) = self.order.first().map(|first| *first as usize) {
            let order = self.starts[first].cmp(&head);
            if order.then_with(|| self.cursors[first].key().cmp(target)).is_ge() {
                break;
            }
            self.cursors[first].seek_on(target)?;
            self.settle(0);
        }
        Ok(())
    }
}

/// One segment being made of several.
pub(crate) struct SegmentMerge<'a, S> {
    segments: &'a [Arc<Segment>],
    merge: MergeCursor<ForwardCursor<'a>>,
    builder: SegmentBuilder<S>,
    is_bottom: bool,
    dropped: DroppedPrefixes,
}

impl<'a, S: Sink> SegmentMerge<'a, S> {
    /// Of these segments, the newest first; `is_bottom` says that no segment is older than all of them.
    pub(crate) fn new(
        segments: &'a [Arc<Segment>],
        builder: SegmentBuilder<S>,
        is_bottom: bool,
    ) -> Result<SegmentMerge<'a, S>, Error> {
        let cursors: Result<Vec<_>, _> =
            segments.iter().map(|segment| ForwardCursor::seek(segment, &[], Reading::Once)).collect();
        Ok(SegmentMerge {
            segments,
            merge: MergeCursor::new(cursors?),
            builder: builder.filtered(),
            is_bottom,
            dropped: DroppedPrefixes::default(),
        })
    }

    /// The same without keys that are dropped.
    pub(crate) fn without(self, dropped: DroppedPrefixes) -> SegmentMerge<'a, S> {
        SegmentMerge { dropped, ..self }
    }

    /// Takes in so many keys; false when all are in.
    pub(crate) fn work(&mut self, key_count: usize) -> Result<bool, Error> {
        for _ in 0..key_count {
            let Some(entry) = self.merge.current() else { return Ok(false) };
            let is_useless = (self.is_bottom && entry.is_removed()) || self.dropped.covers(entry.key());
            if !is_useless {
                self.builder.push(entry.key(), entry.is_removed(), entry.value())?;
            }
            self.merge.advance()?;
        }
        Ok(true)
    }

    /// The merged segment's blocks, and what is known of them.
    pub(crate) fn finish(self) -> Result<(S, Summary), Error> {
        let (sink, mut summary) = self.builder.finish()?;
        if !self.is_bottom {
            summary.families = Families::total(self.segments.iter().map(|segment| &segment.families));
            summary.families.leave_out(self.dropped.rewound());
        }
        Ok((sink, summary))
    }
}
