//! Cursors over the keys of one segment, upwards or downwards.
//!
//! In: a segment and where to begin. Out: one entry after the other, removals included.
//! ForwardCursor a key is made from the one before it. BackwardCursor the keys between two restarts are decoded together and given
//! out from the last one, so going back costs about what going forward does.
//! Invariant: while [`EntryCursor::is_valid`], there is a key.

use crate::Error;
use crate::block::{BlockCursor, Interval};
use crate::segment::{Reading, Segment};
use std::cmp::Ordering;

/// A cursor over the entries of a segment.
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
    segment: &'a Segment,
    reading: Reading,
    /// The block that is being read.
    block_number: usize,
    block: BlockCursor,
    is_valid: bool,
}

impl<'a> ForwardCursor<'a> {
    /// At the first entry that is not below the target.
    pub(crate) fn seek(
        segment: &'a Segment,
        target: &[u8],
        reading: Reading,
    ) -> Result<ForwardCursor<'a>, Error> {
        let mut cursor = ForwardCursor {
            segment,
            reading,
            block_number: segment.index.find(target),
            block: BlockCursor::new(),
            is_valid: segment.index.block_count() > 0,
        };
        if cursor.is_valid {
            cursor.load()?;
            if !cursor.block.seek(target)? {
                cursor.next_block()?;
            }
        }
        Ok(cursor)
    }

    /// Goes on to the first entry that is not below the target, which is above the present one: near ones are found soonest.
    pub(crate) fn seek_on(&mut self, target: &[u8]) -> Result<(), Error> {
        if self.block.seek_on(target)? {
            return Ok(());
        }
        let block_number = self.segment.index.find_from(self.block_number, target);
        if block_number == self.block_number {
            return self.next_block();
        }
        self.block_number = block_number;
        self.load()?;
        if self.block.seek(target)? { Ok(()) } else { self.next_block() }
    }

    fn load(&mut self) -> Result<(), Error> {
        let (bytes, place) = self.segment.block(self.block_number, self.reading)?;
        self.block.load(bytes, place)
    }

    fn next_block(&mut self) -> Result<(), Error> {
        self.block_number += 1;
        self.is_valid = self.block_number < self.segment.index.block_count();
        if self.is_valid {
            self.load()?;
            self.is_valid = self.block.advance()?;
        }
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
    segment: &'a Segment,
    block_number: usize,
    block: BlockCursor,
    restart: usize,
    interval: Interval,
    is_valid: bool,
}

impl<'a> BackwardCursor<'a> {
    /// At the last entry below the target.
    pub(crate) fn seek(segment: &'a Segment, target: &[u8]) -> Result<BackwardCursor<'a>, Error> {
        let found = segment.index.find_below(target);
        let mut cursor = BackwardCursor {
            segment,
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
        let (bytes, place) = self.segment.block(self.block_number, Reading::Cached)?;
        self.block.load(bytes, place)
    }

    fn read_interval(&mut self, restart: usize) -> Result<(), Error> {
        self.restart = restart;
        self.block.read_interval(restart, &mut self.interval)
    }

    /// Finds a interval with an entry, from the present one backwards.
    fn settle(&mut self) -> Result<(), Error> {
        while self.is_valid && self.interval.last().is_none() {
            match self.restart.checked_sub(1) {
                Some(restart) => self.read_interval(restart)?,
                None => self.previous_block()?,
            }
        }
        Ok(())
    }

    fn previous_block(&mut self) -> Result<(), Error> {
        let Some(block_number) = self.block_number.checked_sub(1) else {
            self.is_valid = false;
            return Ok(());
        };
        self.block_number = block_number;
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
