//! What evaluates expressions for the row that a frame holds, and subqueries, which are rows again.

use crate::budget::Budget;
use crate::frame::Frame;
use crate::operators::group::Groups;
use crate::operators::project::project;
use crate::runtime::Runtime;
use astrarium_env::charge;
use astrarium_sql_functions::Context;
use astrarium_sql_functions::limits::{approximate_bytes, weight};
use astrarium_sql_plan::evaluate::{EvaluateError, Row, evaluate, is_true};
use astrarium_sql_plan::expression::SubqueryForm;
use astrarium_sql_plan::expression::{Expr, Slot, Step};
use astrarium_sql_plan::plan::QueryPlan;
use astrarium_value::Value;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Whether to go on with the next row.
pub(crate) type Flow = ControlFlow<()>;

/// What everything below a query shares.
pub(crate) struct Machine<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) context: Context<'a>,
    pub(crate) budget: &'a Budget,
    pub(crate) frame: &'a Frame,
}

/// A row as expressions see it: the frame, and after grouping the group's values.
pub(crate) struct CurrentRow<'a> {
    pub(crate) machine: &'a Machine<'a>,
    pub(crate) keys: &'a [Value],
    pub(crate) aggregates: &'a [Value],
}

impl<'a> Machine<'a> {
    /// The row that the frame holds.
    pub(crate) fn row(&'a self) -> CurrentRow<'a> {
        CurrentRow { machine: self, keys: &[], aggregates: &[] }
    }

    /// The value of an expression, borrowed if it is a constant.
    pub(crate) fn value<'e>(&self, expression: &'e Expr) -> Result<Cow<'e, Value>, EvaluateError> {
        evaluate(expression, &self.row())
    }

    pub(crate) fn evaluate(&self, expression: &Expr) -> Result<Value, EvaluateError> {
        evaluate(expression, &self.row()).map(std::borrow::Cow::into_owned)
    }

    /// All rows of a subquery.
    pub(crate) fn rows(&self, plan: &QueryPlan) -> Result<Vec<Value>, EvaluateError> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        let mut keep = |row: Option<Value>| {
            if let Some(row) = row {
                charge(weight(&row))?;
                bytes += approximate_bytes(&row);
                self.budget.check_moment(bytes)?;
                rows.push(row);
            }
            Ok::<(), EvaluateError>(())
        };
        if let Some(grouping) = &plan.grouping {
            let mut groups = Groups::new(grouping);
            self.visit(plan, &mut || {
                groups.add(self, grouping, (0, 0))?;
                self.budget.check_moment(groups.bytes())?;
                Ok(Flow::Continue(()))
            })?;
            for group in groups.finish() {
                let row = CurrentRow { machine: self, keys: &group.keys, aggregates: &group.results };
                keep(project(plan, &row)?)?;
            }
        } else {
            self.visit(plan, &mut || {
                keep(project(plan, &self.row())?)?;
                Ok(Flow::Continue(()))
            })?;
        }
        if plan.distinct {
            let mut seen = std::collections::BTreeSet::new();
            rows.retain(|row| seen.insert(row.clone()));
        }
        Ok(rows)
    }

    /// Whether a subquery has a row.
    fn has_row(&self, plan: &QueryPlan) -> Result<bool, EvaluateError> {
        if plan.grouping.is_some() {
            return Ok(!self.rows(plan)?.is_empty());
        }
        let mut found = false;
        self.visit(plan, &mut || {
            found = project(plan, &self.row())?.is_some();
            Ok(if found { Flow::Break(()) } else { Flow::Continue(()) })
        })?;
        Ok(found)
    }
}

impl Row for CurrentRow<'_> {
    fn path(&self, slot: Slot, steps: &[Step]) -> Value {
        self.machine.frame.path(slot, steps)
    }

    fn group_key(&self, index: usize) -> Value {
        self.keys.get(index).cloned().unwrap_or_default()
    }

    fn aggregate(&self, index: usize) -> Value {
        self.aggregates.get(index).cloned().unwrap_or_default()
    }

    fn subquery(&self, form: SubqueryForm, plan: &QueryPlan) -> Result<Value, EvaluateError> {
        let machine = self.machine;
        Ok(match form {
            SubqueryForm::Exists => Value::Bool(machine.has_row(plan)?),
            SubqueryForm::Array => Value::Array(machine.rows(plan)?),
            SubqueryForm::First => machine.rows(plan)?.into_iter().next().unwrap_or_default(),
            SubqueryForm::Last => machine.rows(plan)?.pop().unwrap_or_default(),
            SubqueryForm::All => Value::Bool(machine.rows(plan)?.iter().all(is_true)),
            SubqueryForm::Scalar => {
                let mut rows = machine.rows(plan)?;
                if rows.len() > 1 {
                    return Err(EvaluateError::Query(
                        "The cardinality of a scalar subquery result set cannot be greater than one."
                            .to_owned(),
                    ));
                }
                rows.pop().unwrap_or_default()
            }
        })
    }

    fn user_defined(&self, name: &str, arguments: &[Value]) -> Result<Value, EvaluateError> {
        self.machine.runtime.user_functions.call(name, arguments).map_err(EvaluateError::Query)
    }

    fn context(&self) -> &Context<'_> {
        &self.machine.context
    }
}
