//! Walks the keys of one part, upwards or downwards.
//!
//! In: a part and where to begin. Out: one entry after the other, removals included.
//! Upwards a key is made from the one before it. Downwards the keys between two restarts are decoded together and given
//! out from the last one, so going back costs about what going forward does.
//! Invariant: while [`Walk::is_valid`], there is a key.

use super::block::{BlockCursor, Segment};
use super::part::{Part, Reading};
use astrarium_kv::Error;
use std::cmp::Ordering;

/// A walk over the entries of a part.
pub(super) trait Walk {
    /// Whether it stands at an entry.
    fn is_valid(&self) -> bool;
    /// The key it stands at.
    fn key(&self) -> &[u8];
    /// Whether that key is removed.
    fn is_removed(&self) -> bool;
    /// Goes on to the next entry, if there is one.
    fn advance(&mut self) -> Result<(), Error>;
    /// Which of two keys comes first on the way, given how they compare.
    fn direct(order: Ordering) -> Ordering;
}

/// Upwards.
pub(super) struct Upwards<'a> {
    part: &'a Part,
    reading: Reading,
    /// The block that is being read.
    block_number: usize,
    block: BlockCursor,
    is_valid: bool,
}

impl<'a> Upwards<'a> {
    /// At the first entry that is not below the target.
    pub(super) fn seek(part: &'a Part, target: &[u8], reading: Reading) -> Result<Upwards<'a>, Error> {
        let mut walk = Upwards {
            part,
            reading,
            block_number: part.index.find(target),
            block: BlockCursor::new(),
            is_valid: part.index.block_count() > 0,
        };
        if walk.is_valid {
            walk.load()?;
            if !walk.block.seek(target)? {
                walk.next_block()?;
            }
        }
        Ok(walk)
    }

    fn load(&mut self) -> Result<(), Error> {
        let (bytes, place) = self.part.block(self.block_number, self.reading)?;
        self.block.load(bytes, place)
    }

    fn next_block(&mut self) -> Result<(), Error> {
        self.block_number += 1;
        self.is_valid = self.block_number < self.part.index.block_count();
        if self.is_valid {
            self.load()?;
            self.is_valid = self.block.advance()?;
        }
        Ok(())
    }
}

impl Walk for Upwards<'_> {
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

    #[inline]
    fn advance(&mut self) -> Result<(), Error> {
        if self.block.advance()? { Ok(()) } else { self.next_block() }
    }

    fn direct(order: Ordering) -> Ordering {
        order
    }
}

/// Downwards.
pub(super) struct Downwards<'a> {
    part: &'a Part,
    block_number: usize,
    block: BlockCursor,
    restart: usize,
    segment: Segment,
    is_valid: bool,
}

impl<'a> Downwards<'a> {
    /// At the last entry below the target.
    pub(super) fn seek(part: &'a Part, target: &[u8]) -> Result<Downwards<'a>, Error> {
        let found = part.index.find_below(target);
        let mut walk = Downwards {
            part,
            block_number: found.unwrap_or(0),
            block: BlockCursor::new(),
            restart: 0,
            segment: Segment::default(),
            is_valid: found.is_some(),
        };
        if !walk.is_valid {
            return Ok(walk);
        }
        walk.load()?;
        let Some(restart) = walk.block.last_restart(target, Ordering::is_lt)? else {
            walk.previous_block()?;
            return Ok(walk);
        };
        walk.read_segment(restart)?;
        while walk.segment.last().is_some_and(|(key, _)| key >= target) {
            walk.segment.pop();
        }
        walk.settle()?;
        Ok(walk)
    }

    fn load(&mut self) -> Result<(), Error> {
        let (bytes, place) = self.part.block(self.block_number, Reading::Cached)?;
        self.block.load(bytes, place)
    }

    fn read_segment(&mut self, restart: usize) -> Result<(), Error> {
        self.restart = restart;
        self.block.read_segment(restart, &mut self.segment)
    }

    /// Finds a segment with an entry, from the present one backwards.
    fn settle(&mut self) -> Result<(), Error> {
        while self.is_valid && self.segment.last().is_none() {
            match self.restart.checked_sub(1) {
                Some(restart) => self.read_segment(restart)?,
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
            Some(restart) => self.read_segment(restart),
            None => Ok(()),
        }
    }
}

impl Walk for Downwards<'_> {
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    fn key(&self) -> &[u8] {
        self.segment.last().map_or(&[], |(key, _)| key)
    }

    fn is_removed(&self) -> bool {
        self.segment.last().is_some_and(|(_, is_removed)| is_removed)
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.segment.pop();
        self.settle()
    }

    fn direct(order: Ordering) -> Ordering {
        order.reverse()
    }
}
