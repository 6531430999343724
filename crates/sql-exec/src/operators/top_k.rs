//! Top-k: of rows in an order, those that a page can need. The rest is dropped as soon as it is known to be too far behind.

use super::group::RowPlace;
use super::project::output;
use super::sort::{RowOrder, SortedRow};
use crate::budget::Budget;
use crate::long_key::LastRow;
use crate::pipeline::CurrentRow;
use astrarium_sql_plan::evaluate::{EvaluateError, evaluate};
use astrarium_sql_plan::plan::QueryPlan;
use astrarium_value::Value;
use std::cmp::Ordering;

/// Collects the first rows of an order.
pub(crate) struct TopK {
    order: RowOrder,
    /// Only rows after this one count.
    after: Option<LastRow>,
    /// Rows kept at most.
    count_max: usize,
    rows: Vec<SortedRow>,
    /// The last row of the page as far as is known: whatever comes after it is not needed.
    worst: Option<LastRow>,
    bytes: usize,
}

/// The sort keys of a row.
pub(crate) fn sort_keys(plan: &QueryPlan, row: &CurrentRow<'_>) -> Result<Vec<Value>, EvaluateError> {
    plan.order_keys().iter().map(|key| evaluate(&key.key, row).map(std::borrow::Cow::into_owned)).collect()
}

impl TopK {
    pub(crate) fn new(order: RowOrder, after: Option<LastRow>, count_max: usize) -> TopK {
        TopK { order, after, count_max, rows: Vec::new(), worst: None, bytes: 0 }
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
        self.add(SortedRow { keys, place, json }, row.machine.budget)
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
        if enough || budget.hold(self.bytes).is_err() {
            self.shrink();
            budget.hold(self.bytes)?;
        }
        Ok(())
    }

    /// Sorts, and drops what cannot be part of the page.
    fn shrink(&mut self) {
        self.order.sort(&mut self.rows);
        self.rows.truncate(self.count_max);
        if self.rows.len() == self.count_max {
            self.worst = self.rows.last().map(|row| (row.keys.clone(), row.place));
        }
        self.bytes = self.rows.iter().map(SortedRow::bytes).sum();
    }

    /// Drops what cannot be part of the page, once a part of the documents is over.
    pub(crate) fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        self.shrink();
        budget.hold(self.bytes)
    }

    /// The same with no rows yet.
    pub(crate) fn empty(&self) -> TopK {
        TopK::new(self.order.clone(), self.after.clone(), self.count_max)
    }

    /// Takes in the rows of another part of the documents.
    pub(crate) fn merge(&mut self, other: TopK, budget: &Budget) -> Result<(), EvaluateError> {
        for row in other.rows {
            if self.wants(&row.keys, row.place) {
                self.add(row, budget)?;
            }
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Vec<SortedRow> {
        self.order.sort(&mut self.rows);
        self.rows
    }
}
