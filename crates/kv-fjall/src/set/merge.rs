//! Several parts as one: of entries with the same key, that of the newest part counts.
//!
//! In: walks over parts, the newest first. Out: each key once, in order ([`Merge`]); or one part made of several
//! ([`PartMerge`]), bit by bit, so that whoever merges can look after other things in between.
//! Invariants
//! - Removals stay in a merged part, since older parts may hold the key, unless there is no older part.
//! - The family sums of a merged part are those of its inputs added; at the bottom of the set they are counted anew,
//!   so that a miscount by a caller does not stay for ever.

use super::builder::{PartBuilder, Sink, Summary};
use super::cursor::{Upwards, Walk};
use super::families::Families;
use super::part::{Part, Reading};
use super::start::{Start, start_of};
use astrarium_kv::Error;
use std::cmp::Ordering;
use std::sync::Arc;

/// Many walks as one.
pub(super) struct Merge<W> {
    walks: Vec<W>,
    /// How the key of each walk begins: most keys are told apart by that, and without a look at them.
    starts: Vec<Start>,
    /// Walks that stand at an entry, in the order of their entries, of equal ones the newest first.
    order: Vec<u32>,
}

impl<W: Walk> Merge<W> {
    pub(super) fn new(walks: Vec<W>) -> Merge<W> {
        let mut order: Vec<u32> =
            (0..walks.len() as u32).filter(|index| walks[*index as usize].is_valid()).collect();
        let starts = walks.iter().map(|walk| start_of(walk.key())).collect();
        let mut merge = Merge { walks, starts, order: Vec::new() };
        order.sort_unstable_by(|left, right| merge.compare(*left, *right));
        merge.order = order;
        merge
    }

    /// The entry it stands at.
    #[inline]
    pub(super) fn current(&self) -> Option<&W> {
        self.order.first().map(|first| &self.walks[*first as usize])
    }

    /// Goes on to the next key.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        while let [first, second, ..] = self.order[..]
            && self.starts[first as usize] == self.starts[second as usize]
            && self.walks[first as usize].key() == self.walks[second as usize].key()
        {
            // Older entries of the same key do not count.
            self.step(1)?;
        }
        if self.order.is_empty() { Ok(()) } else { self.step(0) }
    }

    /// Moves the walk at this place of the order, and puts it where it belongs then.
    #[inline]
    fn step(&mut self, place: usize) -> Result<(), Error> {
        let moved = self.order[place];
        self.walks[moved as usize].advance()?;
        if !self.walks[moved as usize].is_valid() {
            self.order.remove(place);
            return Ok(());
        }
        self.starts[moved as usize] = start_of(self.walks[moved as usize].key());
        let later = &self.order[place + 1..];
        let is_before = |other: &u32| self.compare(*other, moved).is_lt();
        // Mostly it stays where it is: entries of one part come in rows.
        if !later.first().is_some_and(is_before) {
            return Ok(());
        }
        let passed = later.partition_point(is_before);
        self.order.copy_within(place + 1..=place + passed, place);
        self.order[place + passed] = moved;
        Ok(())
    }

    #[inline]
    fn compare(&self, left: u32, right: u32) -> Ordering {
        let (left_walk, right_walk) = (&self.walks[left as usize], &self.walks[right as usize]);
        let order = self.starts[left as usize].cmp(&self.starts[right as usize]);
        let order = order.then_with(|| left_walk.key().cmp(right_walk.key()));
        W::direct(order).then(left.cmp(&right))
    }
}

/// One part being made of several.
pub(super) struct PartMerge<'a, S> {
    parts: &'a [Arc<Part>],
    merge: Merge<Upwards<'a>>,
    builder: PartBuilder<S>,
    is_bottom: bool,
}

impl<'a, S: Sink> PartMerge<'a, S> {
    /// Of these parts, the newest first; `is_bottom` says that no part is older than all of them.
    pub(super) fn new(
        parts: &'a [Arc<Part>],
        builder: PartBuilder<S>,
        is_bottom: bool,
    ) -> Result<PartMerge<'a, S>, Error> {
        let walks: Result<Vec<_>, _> =
            parts.iter().map(|part| Upwards::seek(part, &[], Reading::Once)).collect();
        Ok(PartMerge { parts, merge: Merge::new(walks?), builder: builder.filtered(), is_bottom })
    }

    /// Takes in so many keys; false when all are in.
    pub(super) fn work(&mut self, key_count: usize) -> Result<bool, Error> {
        for _ in 0..key_count {
            let Some(entry) = self.merge.current() else { return Ok(false) };
            if !(self.is_bottom && entry.is_removed()) {
                self.builder.push(entry.key(), entry.is_removed())?;
            }
            self.merge.advance()?;
        }
        Ok(true)
    }

    /// The merged part's blocks, and what is known of them.
    pub(super) fn finish(self) -> Result<(S, Summary), Error> {
        let (sink, mut summary) = self.builder.finish()?;
        if !self.is_bottom {
            summary.families = Families::total(self.parts.iter().map(|part| &part.families));
        }
        Ok((sink, summary))
    }
}
