//! OFFSET and LIMIT, and the bounds of a page: the last operator, which takes rows until one of them is reached.

use crate::budget::Limits;
use crate::resume::{Resume, ResumePlace};
use crate::rows::PricedWork;

/// Takes rows into a page.
pub(crate) struct PageLimiter {
    offset: u64,
    limit: Option<u64>,
    row_count_max: usize,
    byte_count_max: usize,
    /// Rows given and skipped, by the pages before too.
    pub(crate) given: u64,
    pub(crate) skipped: u64,
    pub(crate) rows: Vec<Vec<u8>>,
    bytes: usize,
    /// What the rows cost that were taken or skipped, where rows are what is paid.
    pub(crate) priced: PricedWork,
}

/// What came of offering a row to the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// Taken, or skipped for OFFSET.
    Taken,
    /// The page is full; the row belongs to the next one.
    Full,
    /// LIMIT is reached: nothing more will come.
    Done,
}

impl PageLimiter {
    pub(crate) fn new(
        (offset, limit): (u64, Option<u64>),
        limits: &Limits,
        resume: Option<&Resume>,
    ) -> PageLimiter {
        PageLimiter {
            offset,
            limit,
            row_count_max: limits.row_count_max,
            byte_count_max: limits.byte_count_max,
            given: resume.map_or(0, |resume| resume.given),
            skipped: resume.map_or(0, |resume| resume.skipped),
            rows: Vec::new(),
            bytes: 0,
            priced: PricedWork::default(),
        }
    }

    /// Offers a row to the page, which takes its text.
    pub(crate) fn offer(&mut self, json: &mut Vec<u8>) -> Offered {
        if self.is_done() {
            return Offered::Done;
        }
        if self.skipped < self.offset {
            self.skipped += 1;
            return Offered::Taken;
        }
        if self.is_full() || (!self.rows.is_empty() && self.bytes + json.len() > self.byte_count_max) {
            return Offered::Full;
        }
        self.bytes += json.len();
        self.given += 1;
        self.rows.push(std::mem::take(json));
        Offered::Taken
    }

    /// Whether LIMIT is reached.
    pub(crate) fn is_done(&self) -> bool {
        self.limit.is_some_and(|limit| self.given >= limit)
    }

    /// Whether the page has as many rows as it may have.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= self.row_count_max
    }

    /// Rows that the page still needs, those included that OFFSET skips.
    pub(crate) fn wanted(&self) -> u64 {
        let room = self.room() as u64;
        let left = self.limit.map_or(room, |limit| room.min(limit - self.given.min(limit)));
        self.to_skip().saturating_add(left)
    }

    /// Rows of one document that it makes sense to make: one more than fit tells that the page is full.
    pub(crate) fn wanted_of_document(&self) -> u64 {
        let left = self.limit.map_or(u64::MAX, |limit| limit - self.given.min(limit));
        (self.room() as u64).saturating_add(1).min(left).saturating_add(self.to_skip())
    }

    /// Rows that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.row_count_max.saturating_sub(self.rows.len())
    }

    /// Bytes that a page may have.
    pub(crate) fn byte_count_max(&self) -> usize {
        self.byte_count_max
    }

    /// Where a next page goes on, after what was given and skipped.
    pub(crate) fn resume(&self, place: Option<ResumePlace>) -> Option<Resume> {
        place.map(|place| Resume { given: self.given, skipped: self.skipped, place, kept: 0 })
    }

    /// Rows that OFFSET still skips.
    pub(crate) fn to_skip(&self) -> u64 {
        self.offset - self.skipped.min(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of offering rows of so many bytes, as letters, and how many are still wanted.
    fn check(
        offset: u64,
        limit: Option<u64>,
        limits: (usize, usize),
        sizes: &[usize],
        expected: (&str, u64),
    ) {
        let limits = Limits { row_count_max: limits.0, byte_count_max: limits.1, ..Limits::default() };
        let mut taken = PageLimiter::new((offset, limit), &limits, None);
        let offers = sizes.iter().map(|size| match taken.offer(&mut vec![b' '; *size]) {
            Offered::Taken => 't',
            Offered::Full => 'f',
            Offered::Done => 'd',
        });
        let offers: String = offers.collect();
        assert_eq!((offers.as_str(), taken.wanted()), expected, "{offset} {limit:?} {limits:?} {sizes:?}");
    }

    #[test]
    fn rows_are_taken_until_a_bound_is_reached() {
        check(0, None, (3, 100), &[1; 4], ("tttf", 0));
        check(0, None, (3, 100), &[90, 20], ("tf", 2));
        // A row that alone is too large still comes, so every page gets further.
        check(0, None, (3, 100), &[200, 1], ("tf", 2));
        check(0, Some(2), (3, 100), &[1; 4], ("ttdd", 0));
        check(2, Some(2), (3, 100), &[1; 3], ("ttt", 1));
        check(2, None, (3, 100), &[1; 1], ("t", 4));
    }
}
