//! Cursors over the keys of one run (or one segment in memory), upwards or downwards.
//!
//! In: segments in the order of their keys, and where to begin. Out: one entry after the other, removals included.
//! Upwards a key is made from the one before it. Downwards the keys of a restart interval are decoded together and given
//! out from the last one, so going back costs about what going forward does.
//! Invariant: while [`EntryCursor::is_valid`], there is a key.

use crate::Error;
use crate::block::{BlockCursor, Interval};
use crate::segment::{Reading, Segment};
use std::cmp::Ordering;
use std::sync::Arc;

/// A cursor over entries.
pub(crate) trait EntryCursor {
    /// Whether it stands at an entry.
    fn is_valid(&self) -> bool;
    /// The key it stands at.
    fn key(&self) -> &[u8];
    /// Whether that key is removed.
    fn is_removed(&self) -> bool;
    /// The value of the entry; empty for one without.
    fn value(&self) -> &[u8];
    /// Goes on to the next entry, if there is one.
    fn advance(&mut self) -> Result<(), Error>;
    /// Which of two keys comes first on the way, given how they compare.
    fn direct(order: Ordering) -> Ordering;
}

/// ForwardCursor.
pub(crate) struct ForwardCursor<'a> {
    /// The segment that is being read, and those after it.
    segments: &'a [Arc<Segment>],
    reading: Reading,
    /// The block that is being read.
    block_number: usize,
    block: BlockCursor,
    is_valid: bool,
}

impl<'a> ForwardCursor<'a> {
    /// At the first entry that is not below the target. No segment ends below it, as [`crate::run::SortedRun::within`] gives them.
    pub(crate) fn seek(
        segments: &'a [Arc<Segment>],
        target: &[u8],
        reading: Reading,
    ) -> Result<ForwardCursor<'a>, Error> {
        debug_assert!(segments.first().is_none_or(|first| first.index.last() >= target), "sought below");
        let mut cursor =
            ForwardCursor { segments, reading, block_number: 0, block: BlockCursor::new(), is_valid: false };
        cursor.enter_segment(target)?;
        Ok(cursor)
    }

    /// Goes on to the first entry that is not below the target, which is above the present one: near ones are found soonest.
    pub(crate) fn seek_on(&mut self, target: &[u8]) -> Result<(), Error> {
        if self.block.seek_on(target)? {
            return Ok(());
        }
        let index = &self.segments[0].index;
        if index.last() < target {
            let skipped = self.segments.iter().take_while(|segment| segment.index.last() < target).count();
            self.segments = &self.segments[skipped..];
            return self.enter_segment(target);
        }
        let block_number = index.find_from(self.block_number, target);
        if block_number == self.block_number {
            return self.next_block();
        }
        self.block_number = block_number;
        self.load()?;
        if self.block.seek(target)? { Ok(()) } else { self.next_block() }
    }

    /// Goes to the first entry of the first segment that is not below the target.
    fn enter_segment(&mut self, target: &[u8]) -> Result<(), Error> {
        let Some(segment) = self.segments.first() else {
            self.is_valid = false;
            return Ok(());
        };
        let target = target.max(segment.from());
        self.is_valid = true;
        self.block_number = segment.index.find(target);
        self.load()?;
        if self.block.seek(target)? { Ok(()) } else { self.next_block() }
    }

    fn load(&mut self) -> Result<(), Error> {
        let (bytes, place) = self.segments[0].block(self.block_number, self.reading)?;
        self.block.load(bytes, place)
    }

    fn next_block(&mut self) -> Result<(), Error> {
        self.block_number += 1;
        if self.block_number >= self.segments[0].index.block_count() {
            self.segments = &self.segments[1..];
            return self.enter_segment(&[]);
        }
        self.load()?;
        self.is_valid = self.block.advance()?;
        Ok(())
    }
}

impl EntryCursor for ForwardCursor<'_> {
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.block.key()
    }

    fn is_removed(&self) -> bool {
        self.block.is_removed()
    }

    fn value(&self) -> &[u8] {
        self.block.value()
    }

    #[inline]
    fn advance(&mut self) -> Result<(), Error> {
        if self.block.advance()? { Ok(()) } else { self.next_block() }
    }

    fn direct(order: Ordering) -> Ordering {
        order
    }
}

/// BackwardCursor.
pub(crate) struct BackwardCursor<'a> {
    /// Those before the segment that is being read, and that one.
    segments: &'a [Arc<Segment>],
    block_number: usize,
    block: BlockCursor,
    restart: usize,
    interval: Interval,
    is_valid: bool,
}

impl<'a> BackwardCursor<'a> {
    /// At the last entry below the target.
    pub(crate) fn seek(segments: &'a [Arc<Segment>], target: &[u8]) -> Result<BackwardCursor<'a>, Error> {
        let skipped = segments.iter().rev().take_while(|segment| segment.start() >= target).count();
        let segments = &segments[..segments.len() - skipped];
        let found = segments.last().and_then(|segment| segment.index.find_below(target));
        let mut cursor = BackwardCursor {
            segments,
            block_number: found.unwrap_or(0),
            block: BlockCursor::new(),
            restart: 0,
            interval: Interval::default(),
            is_valid: found.is_some(),
        };
        if !cursor.is_valid {
            return Ok(cursor);
        }
        cursor.load()?;
        let Some(restart) = cursor.block.last_restart(target, Ordering::is_lt)? else {
            cursor.previous_block()?;
            cursor.settle()?;
            return Ok(cursor);
        };
        cursor.read_interval(restart)?;
        while cursor.interval.last().is_some_and(|(key, _, _)| key >= target) {
            cursor.interval.pop();
        }
        cursor.settle()?;
        Ok(cursor)
    }

    fn load(&mut self) -> Result<(), Error> {
        let Some(segment) = self.segments.last() else { return Ok(()) };
        let (bytes, place) = segment.block(self.block_number, Reading::Cached)?;
        self.block.load(bytes, place)
    }

    fn from(&self) -> &[u8] {
        self.segments.last().map_or(&[], |segment| segment.from())
    }

    fn read_interval(&mut self, restart: usize) -> Result<(), Error> {
        self.restart = restart;
        self.block.read_interval(restart, &mut self.interval)
    }

    /// Finds a interval with an entry, from the present one backwards.
    fn settle(&mut self) -> Result<(), Error> {
        while self.is_valid {
            match (self.interval.last(), self.restart.checked_sub(1)) {
                (Some((key, _, _)), _) if key >= self.from() => break,
                // Keys below are not in the segment any more.
                (Some(_), _) => {
                    self.block_number = 0;
                    self.previous_block()?;
                }
                (None, Some(restart)) => self.read_interval(restart)?,
                (None, None) => self.previous_block()?,
            }
        }
        Ok(())
    }

    fn previous_block(&mut self) -> Result<(), Error> {
        if let Some(block_number) = self.block_number.checked_sub(1) {
            self.block_number = block_number;
        } else {
            self.segments = &self.segments[..self.segments.len() - 1];
            let Some(before) = self.segments.last() else {
                self.is_valid = false;
                return Ok(());
            };
            self.block_number = before.index.block_count() - 1;
        }
        self.load()?;
        match self.block.restart_count().checked_sub(1) {
            Some(restart) => self.read_interval(restart),
            None => Ok(()),
        }
    }
}

impl EntryCursor for BackwardCursor<'_> {
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    fn key(&self) -> &[u8] {
        self.interval.last().map_or(&[], |(key, _, _)| key)
    }

    fn is_removed(&self) -> bool {
        self.interval.last().is_some_and(|(_, _, is_removed)| is_removed)
    }

    fn value(&self) -> &[u8] {
        self.interval.last().map_or(&[], |(_, value, _)| value)
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.interval.pop();
        self.settle()
    }

    fn direct(order: Ordering) -> Ordering {
        order.reverse()
    }
}
