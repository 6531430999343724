//! The order of rows: by sort keys, then by document and by place in it.
//!
//! Invariant: the order is total, so a page can go on right after the last row given. Documents of equal keys come in the
//! direction in which an index would be read.

use super::group::RowPlace;
use super::{OutputRow, RowMark};
use crate::long_key::{AfterRow, Directions};
use crate::rows::PricedWork;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::plan::OrderKey;
use astrarium_value::Value;
use std::cmp::Ordering;

/// A row in order.
#[derive(Debug, Clone)]
pub(crate) struct SortedRow {
    pub(crate) keys: Vec<Value>,
    pub(crate) place: RowPlace,
    pub(crate) json: Vec<u8>,
    /// What it costs where rows come in the order of an index.
    pub(crate) priced: PricedWork,
}

impl SortedRow {
    /// About how much memory it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.json.len() + 100 + self.keys.iter().map(approximate_bytes).sum::<usize>()
    }

    /// The row as a page takes it.
    pub(crate) fn into_output(self) -> OutputRow {
        OutputRow { json: self.json, mark: RowMark::Ordered((self.keys, self.place)), priced: self.priced }
    }
}

/// By what rows are sorted.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowOrder {
    descending: Vec<bool>,
    /// Whether of rows with equal keys those of later documents come first.
    pub(crate) reverse_ties: bool,
}

impl RowOrder {
    pub(crate) fn new(keys: &[OrderKey], reverse_ties: bool) -> RowOrder {
        RowOrder { descending: keys.iter().map(|key| key.descending).collect(), reverse_ties }
    }

    /// An order by keys with these directions.
    #[cfg(test)]
    pub(crate) fn of(descending: &[bool]) -> RowOrder {
        RowOrder { descending: descending.to_vec(), reverse_ties: false }
    }

    /// The directions of keys and of rows with equal ones.
    pub(crate) fn directions(&self) -> Directions<'_> {
        Directions { descending: &self.descending, reverse_ties: self.reverse_ties }
    }

    /// Which of two rows comes first.
    pub(crate) fn compare(&self, left: (&[Value], RowPlace), right: (&[Value], RowPlace)) -> Ordering {
        for ((left, right), descending) in left.0.iter().zip(right.0).zip(&self.descending) {
            let order = left.cmp(right);
            if order != Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        let by_document = left.1.0.cmp(&right.1.0);
        let by_document = if self.reverse_ties { by_document.reverse() } else { by_document };
        by_document.then(left.1.1.cmp(&right.1.1))
    }

    /// Whether a row comes after another one.
    pub(crate) fn is_after(&self, row: (&[Value], RowPlace), last: Option<&AfterRow>) -> bool {
        last.is_none_or(|AfterRow { row: (keys, place), long }| {
            self.compare(row, (keys, *place)) == Ordering::Greater
                && long.as_ref().is_none_or(|long| long.precedes(row, self))
        })
    }

    /// Puts rows in order.
    pub(crate) fn sort(&self, rows: &mut [SortedRow]) {
        rows.sort_by(|left, right| self.compare((&left.keys, left.place), (&right.keys, right.place)));
    }
}
