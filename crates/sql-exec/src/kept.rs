//! Rows that a page computed and did not give: the next pages have them without looking at documents again.
//!
//! In: sorted, distinct, grouped or ranked rows behind the end of a page. Out: pages of them, from any position at or after
//! that end, so that a page can be asked for twice.
//! Invariants
//! - A page of kept rows has the rows and the positions that computing it from the same data gives.
//! - If memory did not hold all rows, the last one that is kept is never given: it only tells where the page before it ends.
//!
//! Not here: how long rows are kept and for whom (`database::kept_results`).

use crate::operators::sort::{RowOrder, SortedRow};
use crate::resume::{Resume, ResumePlace};
use std::cmp::Ordering;

/// Rows of a query after a position.
#[derive(Debug)]
pub struct KeptRows {
    rows: Vec<SortedRow>,
    /// Whether no rows come after these.
    is_whole: bool,
    order: RowOrder,
    /// Whether a page of them pays for their documents; otherwise the page that computed them paid for all.
    is_paid_by_row: bool,
    /// In a ranking, where rows are counted: how many come before these.
    before: Option<u64>,
}

impl KeptRows {
    pub(crate) fn new(
        rows: Vec<SortedRow>,
        is_whole: bool,
        (order, is_paid_by_row): (RowOrder, bool),
        before: Option<u64>,
    ) -> KeptRows {
        KeptRows { rows, is_whole, order, is_paid_by_row, before }
    }

    /// Whether a page of them pays for their documents.
    pub(crate) fn is_paid_by_row(&self) -> bool {
        self.is_paid_by_row
    }

    /// About how much memory they hold.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(SortedRow::bytes).sum()
    }

    /// The rows after a position, as far as they are kept; none if the position is not among them.
    pub(crate) fn after(&self, resume: &Resume) -> Option<&[SortedRow]> {
        let is_given = |row: &SortedRow, last: (&[astrarium_value::Value], (u64, u32))| {
            self.order.compare((&row.keys, row.place), last) != Ordering::Greater
        };
        let start = match (&resume.place, self.before) {
            (ResumePlace::Count, Some(before)) => {
                usize::try_from((resume.given + resume.skipped).checked_sub(before)?).ok()?
            }
            (ResumePlace::Row(number, index), None) => {
                self.rows.partition_point(|row| is_given(row, (&[], (*number, *index))))
            }
            (ResumePlace::Key(keys, number, index), None) => {
                self.rows.partition_point(|row| is_given(row, (keys, (*number, *index))))
            }
            (ResumePlace::LongKey(long), None) => self.rows.iter().position(|row| row.place == long.next)?,
            _ => return None,
        };
        let rows = self.rows.get(start..)?;
        (self.is_whole || rows.len() > 1).then_some(rows)
    }

    /// How many of the rows after a position may be given.
    pub(crate) fn given_max(&self, rows: &[SortedRow]) -> usize {
        if self.is_whole { rows.len() } else { rows.len() - 1 }
    }

    /// The order that they are in.
    pub(crate) fn order(&self) -> &RowOrder {
        &self.order
    }

    /// Whether rows are counted.
    pub(crate) fn is_ranked(&self) -> bool {
        self.before.is_some()
    }
}
