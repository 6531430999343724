//! Several segments as one: of entries with the same key, that of the newest segment counts.
//!
//! In: cursors over runs and segments, the newest first. Out: each key once, in order.

use crate::Error;
use crate::cursor::{EntryCursor, ForwardCursor};
use crate::head::{KeyHead, head_of};
use std::cmp::Ordering;

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
