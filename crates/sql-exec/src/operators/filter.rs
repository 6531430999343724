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
            return self.all_hold(conditions);
        };
        for (place, condition) in conditions.iter().enumerate() {
            let began = Instant::now();
            let holds = is_true(&*evaluate(condition, &self.row())?);
            tally.filtered(source_count, place, holds, began.elapsed());
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn all_hold(&self, conditions: &[Expr]) -> Result<bool, EvaluateError> {
        for condition in conditions {
            if !is_true(&*evaluate(condition, &self.row())?) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
