//! Top-k: of rows in an order, those that a page can need. The rest is dropped as soon as it is known to be too far behind.

use super::group::RowPlace;
use super::project::output;
use super::sort::{RowOrder, SortedRow};
use crate::budget::Budget;
use crate::hashed_key::compared;
use crate::long_key::{AfterRow, LastRow};
use crate::pipeline::CurrentRow;
use astrarium_sql_plan::evaluate::{EvaluateError, evaluate};
use astrarium_sql_plan::plan::{OrderKey, QueryPlan};
use astrarium_value::Value;
use std::cmp::Ordering;

/// Collects the first rows of an order.
pub(crate) struct TopK {
    order: RowOrder,
    /// Only rows after this one count.
    after: Option<AfterRow>,
    /// Rows that the page needs.
    count_max: usize,
    /// Rows for the next pages are collected, too, as long as all take no more than so many bytes.
    spare_bytes_max: usize,
    rows: Vec<SortedRow>,
    /// The last row that counts as far as is known: rows after it were dropped.
    worst: Option<LastRow>,
    bytes: usize,
}

/// The sort keys of a row, as they are compared.
pub(crate) fn sort_keys(plan: &QueryPlan, row: &CurrentRow<'_>) -> Result<Vec<Value>, EvaluateError> {
    let key = |key: &OrderKey| Ok(compared(evaluate(&key.key, row)?.into_owned()));
    plan.order_keys().iter().map(key).collect()
}

impl TopK {
    pub(crate) fn new(order: RowOrder, after: Option<AfterRow>, count_max: usize) -> TopK {
        TopK { order, after, count_max, spare_bytes_max: 0, rows: Vec::new(), worst: None, bytes: 0 }
    }

    /// The same, with rows for the next pages.
    pub(crate) fn sparing(self, bytes_max: usize) -> TopK {
        TopK { spare_bytes_max: bytes_max, ..self }
    }

    /// Takes a row, unless it cannot be part of the page; then it is not even projected.
    pub(crate) fn take(
        &mut self,
        row: &CurrentRow<'_>,
        plan: &QueryPlan,
        place: RowPlace,
    ) -> Result<(), EvaluateError> {
        let keys = sort_keys(plan, row)?;
        if !self.wants(&keys, place) {
            return Ok(());
        }
        let Some(json) = output(plan, row)? else { return Ok(()) };
        let priced = row.machine.budget.price_of_row();
        self.add(SortedRow { keys, place, json, priced }, row.machine.budget)
    }

    fn wants(&self, keys: &[Value], place: RowPlace) -> bool {
        let is_needed =
            |(worst, at): &LastRow| self.order.compare((keys, place), (worst, *at)) == Ordering::Less;
        self.order.is_after((keys, place), self.after.as_ref()) && self.worst.as_ref().is_none_or(is_needed)
    }

    fn add(&mut self, row: SortedRow, budget: &Budget) -> Result<(), EvaluateError> {
        self.bytes += row.bytes();
        self.rows.push(row);
        let enough = self.rows.len() >= self.count_max.saturating_mul(2).max(1_024);
        if enough && self.bytes > self.spare_bytes_max {
            self.shrink();
        }
        if budget.hold(self.bytes).is_err() {
            self.spare_bytes_max = 0;
            self.shrink();
            budget.hold(self.bytes)?;
        }
        Ok(())
    }

    /// Sorts, and drops what the page does not need and memory does not hold.
    fn shrink(&mut self) {
        self.sort();
        // Not at every row that is too much.
        let is_full = self.bytes > self.spare_bytes_max;
        let bytes_max = if is_full { self.spare_bytes_max / 2 } else { self.spare_bytes_max };
        let (mut count, mut bytes) = (0, 0);
        for row in &self.rows {
            if count >= self.count_max && bytes + row.bytes() > bytes_max {
                break;
            }
            count += 1;
            bytes += row.bytes();
        }
        let is_enough = count >= self.count_max && (count < self.rows.len() || self.spare_bytes_max == 0);
        self.rows.truncate(count);
        if is_enough {
            self.worst = self.rows.last().map(|row| (row.keys.clone(), row.place));
        }
        self.bytes = bytes;
    }

    /// Sorts rows, and drops those after the last that counts.
    fn sort(&mut self) {
        self.order.sort(&mut self.rows);
        if let Some((worst, place)) = &self.worst {
            let counts =
                |row: &SortedRow| self.order.compare((&row.keys, row.place), (worst, *place)).is_le();
            self.rows.truncate(self.rows.partition_point(counts));
        }
    }

    /// Drops what is not needed, once a part of the documents is over.
    pub(crate) fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        self.shrink();
        budget.hold(self.bytes)
    }

    /// The same with no rows yet.
    pub(crate) fn empty(&self) -> TopK {
        TopK::new(self.order.clone(), self.after.clone(), self.count_max).sparing(self.spare_bytes_max)
    }

    /// Takes in the rows of another part of the documents.
    pub(crate) fn merge(&mut self, other: TopK, budget: &Budget) -> Result<(), EvaluateError> {
        for row in other.rows {
            if self.wants(&row.keys, row.place) {
                self.add(row, budget)?;
            }
        }
        // What the other one dropped may belong before rows that are here.
        let is_nearer = |(keys, place): &LastRow| {
            let own = self.worst.as_ref();
            own.is_none_or(|(own, own_place)| self.order.compare((keys, *place), (own, *own_place)).is_lt())
        };
        if let Some(worst) = other.worst.filter(is_nearer) {
            self.worst = Some(worst);
        }
        Ok(())
    }

    /// The rows in order, and whether these are all.
    pub(crate) fn finish(mut self) -> (Vec<SortedRow>, bool) {
        self.sort();
        (self.rows, self.worst.is_none())
    }
}
