//! The filter: whether the row that the frame holds passes conditions.

use crate::pipeline::Machine;
use astrarium_env::Instant;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::evaluate::{EvaluateError, evaluate, is_true};
use astrarium_sql_plan::plan::QueryPlan;

impl Machine<'_> {
    /// Whether the row passes what can be checked once so many sources are bound.
    pub(crate) fn passes(&self, plan: &QueryPlan, source_count: usize) -> Result<bool, EvaluateError> {
        let conditions = &plan.filters[source_count];
        let Some(tally) = self.budget.tally(plan).filter(|_| !conditions.is_empty()) else {
            return self.all_hold(plan, source_count);
        };
        for (place, condition) in conditions.iter().enumerate() {
            let began = Instant::now();
            let holds = is_true(&*evaluate(condition, &self.row())?);
            tally.filtered(source_count, place, holds, began.elapsed());
            if !holds {
                self.note_miss(plan, source_count, place);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn all_hold(&self, plan: &QueryPlan, source_count: usize) -> Result<bool, EvaluateError> {
        for (place, condition) in plan.filters[source_count].iter().enumerate() {
            if !is_true(&*evaluate(condition, &self.row())?) {
                self.note_miss(plan, source_count, place);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes for the price of the document that it fails a condition. One that comes later and that an index serves decides,
    /// too, whether the document had to be read at all.
    fn note_miss(&self, plan: &QueryPlan, source_count: usize, place: usize) {
        let fails = |condition: &Expr| evaluate(condition, &self.row()).is_ok_and(|value| !is_true(&value));
        self.budget.miss(plan, source_count, place, |later| {
            plan.filters[source_count].get(later).is_some_and(fails)
        });
    }
}
