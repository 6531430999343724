//! Rows that are put in order before any of them is given: sorted, distinct, or groups.
//!
//! Only as many are kept as the page can need where the order alone decides; with DISTINCT all are kept once.
//! Invariants
//! - The order is total: sort keys, then the row's document, in the direction in which an index would be walked, then the
//!   row's place in it. So a page can go on right after the last row given.

use super::groups::RowPlace;
use crate::budget::Budget;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::cmp::Ordering;

/// A row in order.
#[derive(Debug, Clone)]
pub(crate) struct SortedRow {
    pub(crate) keys: Vec<Value>,
    pub(crate) place: RowPlace,
    pub(crate) json: Vec<u8>,
}

/// Collects rows in order.
pub(crate) struct Collector {
    descending: Vec<bool>,
    /// Whether of rows with equal keys those of later documents come first.
    reverse_ties: bool,
    /// Only rows after this one count.
    after: Option<(Vec<Value>, RowPlace)>,
    /// Rows kept at most; all if duplicates are removed.
    count_max: usize,
    rows: Vec<SortedRow>,
    /// The last row of the page as far as is known: whatever comes after it is not needed.
    worst: Option<(Vec<Value>, RowPlace)>,
    /// With DISTINCT: the row of each value.
    distinct: Option<HashMap<Value, usize, RandomState>>,
    bytes: usize,
}

impl Collector {
    pub(crate) fn new(
        descending: Vec<bool>,
        reverse_ties: bool,
        after: Option<(Vec<Value>, RowPlace)>,
        count_max: usize,
        distinct: bool,
    ) -> Collector {
        let distinct = distinct.then(HashMap::default);
        Collector {
            descending,
            reverse_ties,
            after,
            count_max,
            rows: Vec::new(),
            worst: None,
            distinct,
            bytes: 0,
        }
    }

    fn order(&self, left: (&[Value], RowPlace), right: (&[Value], RowPlace)) -> Ordering {
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

    fn is_after(&self, keys: &[Value], place: RowPlace) -> bool {
        self.after.as_ref().is_none_or(|(last, last_place)| {
            self.order((keys, place), (last, *last_place)) == Ordering::Greater
        })
    }

    /// Whether a row with these keys could be part of the page: asked before it is projected.
    pub(crate) fn wants(&self, keys: &[Value], place: RowPlace) -> bool {
        if self.distinct.is_some() {
            return true;
        }
        self.is_after(keys, place)
            && self
                .worst
                .as_ref()
                .is_none_or(|(worst, at)| self.order((keys, place), (worst, *at)) == Ordering::Less)
    }

    /// Takes a row.
    pub(crate) fn add(
        &mut self,
        row: SortedRow,
        value: Option<Value>,
        budget: &Budget,
    ) -> Result<(), EvaluateError> {
        let bytes = row.json.len() + 100 + row.keys.iter().map(approximate_bytes).sum::<usize>();
        if let (Some(distinct), Some(value)) = (&mut self.distinct, value) {
            if let Some(&known) = distinct.get(&value) {
                let better = {
                    let own = &self.rows[known];
                    self.order((&row.keys, row.place), (&own.keys, own.place)) == Ordering::Less
                };
                if better {
                    self.rows[known] = row;
                }
                return Ok(());
            }
            self.bytes += approximate_bytes(&value);
            distinct.insert(value, self.rows.len());
        }
        self.bytes += bytes;
        self.rows.push(row);
        if self.distinct.is_some() {
            return budget.hold(self.bytes);
        }
        let enough = self.rows.len() >= self.count_max.saturating_mul(2).max(1_024);
        if enough || budget.hold(self.bytes).is_err() {
            self.shrink();
            budget.hold(self.bytes)?;
        }
        Ok(())
    }

    /// Drops what cannot be part of the page.
    pub(crate) fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        if self.distinct.is_none() {
            self.shrink();
        }
        budget.hold(self.bytes)
    }

    /// Sorts, and drops what cannot be part of the page.
    fn shrink(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|left, right| self.order((&left.keys, left.place), (&right.keys, right.place)));
        rows.truncate(self.count_max);
        if rows.len() == self.count_max {
            self.worst = rows.last().map(|row| (row.keys.clone(), row.place));
        }
        self.bytes = rows
            .iter()
            .map(|row| row.json.len() + 100 + row.keys.iter().map(approximate_bytes).sum::<usize>())
            .sum();
        self.rows = rows;
    }

    /// A collector of the same kind that has no rows yet.
    pub(crate) fn empty(&self) -> Collector {
        let distinct = self.distinct.is_some();
        Collector::new(
            self.descending.clone(),
            self.reverse_ties,
            self.after.clone(),
            self.count_max,
            distinct,
        )
    }

    /// Takes in the rows of another part of the documents.
    pub(crate) fn merge(&mut self, other: Collector, budget: &Budget) -> Result<(), EvaluateError> {
        let mut values: Vec<Option<Value>> = Vec::new();
        values.resize(other.rows.len(), None);
        for (value, index) in other.distinct.into_iter().flatten() {
            values[index] = Some(value);
        }
        for (row, value) in other.rows.into_iter().zip(values) {
            if self.wants(&row.keys, row.place) {
                self.add(row, value, budget)?;
            }
        }
        Ok(())
    }

    /// The rows after the last one given, in order.
    pub(crate) fn finish(mut self) -> Vec<SortedRow> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|left, right| self.order((&left.keys, left.place), (&right.keys, right.place)));
        rows.retain(|row| self.is_after(&row.keys, row.place));
        rows
    }
}
