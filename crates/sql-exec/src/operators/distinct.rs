//! Distinct rows: each value once, from the first row in the order that has it.

use super::group::RowPlace;
use super::project::{project, refuse_not_json};
use super::sort::{RowOrder, SortedRow};
use super::top_k::sort_keys;
use crate::budget::Budget;
use crate::long_key::AfterRow;
use crate::pipeline::CurrentRow;
use crate::rows::PricedWork;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::QueryPlan;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::cmp::Ordering;

/// Collects distinct rows. All of them are kept, for any of them may come again earlier in the order.
pub(crate) struct Distinct {
    order: RowOrder,
    /// Only rows after this one count.
    after: Option<AfterRow>,
    rows: Vec<SortedRow>,
    /// The row of each value.
    by_value: HashMap<Value, usize, RandomState>,
    bytes: usize,
}

impl Distinct {
    pub(crate) fn new(order: RowOrder, after: Option<AfterRow>) -> Distinct {
        Distinct { order, after, rows: Vec::new(), by_value: HashMap::default(), bytes: 0 }
    }

    /// Takes a row.
    pub(crate) fn take(
        &mut self,
        row: &CurrentRow<'_>,
        plan: &QueryPlan,
        place: RowPlace,
    ) -> Result<(), EvaluateError> {
        let keys = sort_keys(plan, row)?;
        let Some(value) = project(plan, row)? else { return Ok(()) };
        let mut json = Vec::new();
        refuse_not_json(&value)?;
        value.write_json(&mut json);
        let priced = PricedWork::default();
        self.add(SortedRow { keys, place, json, priced }, value, row.machine.budget)
    }

    fn add(&mut self, row: SortedRow, value: Value, budget: &Budget) -> Result<(), EvaluateError> {
        if let Some(&known) = self.by_value.get(&value) {
            let own = &self.rows[known];
            if self.order.compare((&row.keys, row.place), (&own.keys, own.place)) == Ordering::Less {
                self.rows[known] = row;
            }
            return Ok(());
        }
        self.bytes += approximate_bytes(&value) + row.bytes();
        self.by_value.insert(value, self.rows.len());
        self.rows.push(row);
        budget.hold(self.bytes)
    }

    /// The same with no rows yet.
    pub(crate) fn empty(&self) -> Distinct {
        Distinct::new(self.order.clone(), self.after.clone())
    }

    /// Says how much it holds, once a part of the documents is over.
    pub(crate) fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        budget.hold(self.bytes)
    }

    /// Takes in the rows of another part of the documents.
    pub(crate) fn merge(&mut self, other: Distinct, budget: &Budget) -> Result<(), EvaluateError> {
        let mut values: Vec<(usize, Value)> =
            other.by_value.into_iter().map(|(value, index)| (index, value)).collect();
        values.sort_unstable_by_key(|(index, _)| *index);
        for (row, (_, value)) in other.rows.into_iter().zip(values) {
            self.add(row, value, budget)?;
        }
        Ok(())
    }

    /// The rows after the last one given, in order: all of them.
    pub(crate) fn finish(mut self) -> Vec<SortedRow> {
        self.order.sort(&mut self.rows);
        let (order, after) = (&self.order, self.after.as_ref());
        self.rows.retain(|row| order.is_after((&row.keys, row.place), after));
        self.rows
    }
}
