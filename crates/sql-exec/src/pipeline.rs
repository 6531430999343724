//! From one bound document to rows: joins, filters, projection, and subqueries, which are the same again.

use crate::budget::{Budget, charge_row};
use crate::frame::{Datum, Frame};
use crate::operators::groups::Groups;
use crate::page::Runtime;
use astrarium_env::charge;
use astrarium_sql_functions::Context;
use astrarium_sql_functions::limits::{approximate_bytes, weight};
use astrarium_sql_plan::evaluate::{EvaluateError, Row, bounded, evaluate, is_true};
use astrarium_sql_plan::expression::SubqueryForm;
use astrarium_sql_plan::expression::{Expr, Slot, Step};
use astrarium_sql_plan::plan::{Projection, QueryPlan, SourceKind};
use astrarium_value::{Object, Value};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
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

    /// Calls `visit` for each row of a query until it has seen enough.
    pub(crate) fn visit(
        &self,
        plan: &QueryPlan,
        visit: &mut dyn FnMut() -> Result<Flow, EvaluateError>,
    ) -> Result<(), EvaluateError> {
        let _seen_enough = self.for_each_row(plan, 0, None, visit)?;
        Ok(())
    }

    /// The same from a place on; `track` tells in each visit where the row is.
    pub(crate) fn visit_from(
        &self,
        plan: &QueryPlan,
        track: &Track,
        visit: &mut dyn FnMut() -> Result<Flow, EvaluateError>,
    ) -> Result<(), EvaluateError> {
        let _seen_enough = self.for_each_row(plan, 0, Some(track), visit)?;
        Ok(())
    }

    /// Calls `visit` for each row of the sources from `index` on that passes the filters.
    fn for_each_row(
        &self,
        plan: &QueryPlan,
        index: usize,
        track: Option<&Track>,
        visit: &mut dyn FnMut() -> Result<Flow, EvaluateError>,
    ) -> Result<Flow, EvaluateError> {
        for condition in &plan.filters[index] {
            if !is_true(&*evaluate(condition, &self.row())?) {
                return Ok(Flow::Continue(()));
            }
        }
        let Some(source) = plan.sources.get(index) else { return visit() };
        let items = match &source.kind {
            // Bound by whoever reads the documents.
            SourceKind::Documents => return self.for_each_row(plan, index + 1, track, visit),
            SourceKind::Value(value) => match self.evaluate(value)? {
                Value::Undefined => Vec::new(),
                value => vec![Datum::Value(value)],
            },
            SourceKind::Elements(value) => self.elements(value)?,
            SourceKind::Rows(query) => self.rows(query)?.into_iter().map(Datum::Value).collect(),
            SourceKind::ElementsOfRows(query) => self.rows(query)?.into_iter().flat_map(elements).collect(),
        };
        // They are put in a list, and dropped again.
        charge(items.len() as u64)?;
        self.budget.check_moment(items.len() * size_of::<Datum>())?;
        let (resuming, from) = track.map_or((false, 0), |track| track.start_of(index));
        for (position, item) in items.into_iter().enumerate().skip(from) {
            if let Some(track) = track {
                track.set(index, position, resuming && position == from);
                if track.is_over(index, self.budget) {
                    return Ok(Flow::Break(()));
                }
            }
            charge_row()?;
            self.frame.set(source.slot, item);
            if self.for_each_row(plan, index + 1, track, visit)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// The elements of an array. Those of an array in a stored document stay text until something of them is asked for.
    fn elements(&self, array: &Expr) -> Result<Vec<Datum>, EvaluateError> {
        if let Expr::Path(slot, steps) = array
            && let Some(elements) = self.frame.elements(*slot, steps)
        {
            return Ok(elements);
        }
        let value = self.value(array)?;
        // A constant array is copied.
        charge(weight(&value))?;
        Ok(elements(value.into_owned()))
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
                keep(project(&plan.projection, &row)?)?;
            }
        } else {
            self.visit(plan, &mut || {
                keep(project(&plan.projection, &self.row())?)?;
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
            found = project(&plan.projection, &self.row())?.is_some();
            Ok(if found { Flow::Break(()) } else { Flow::Continue(()) })
        })?;
        Ok(found)
    }
}

/// The elements of an array; nothing for any other value.
fn elements(value: Value) -> Vec<Datum> {
    if let Value::Array(items) = value { items.into_iter().map(Datum::Value).collect() } else { Vec::new() }
}

/// Rows between two looks at whether a page's time is over; so many are made at least, so that every page gets further.
const ROWS_PER_LOOK: u64 = 1_024;

/// How far the loops over a query's sources are, so that a page can go on in the middle of a product without making the
/// rows before it again.
pub(crate) struct Track {
    start: Vec<u32>,
    at: RefCell<Vec<u32>>,
    rows: Cell<u64>,
    /// Whether the page's time was over before all rows were made.
    over: Cell<bool>,
    /// Whether all outer loops are still where the page goes on.
    resuming: Cell<bool>,
}

impl Track {
    /// Starts at the positions of a row; at the beginning if there are none.
    pub(crate) fn new(source_count: usize, start: Vec<u32>) -> Track {
        let resuming = Cell::new(start.len() == source_count);
        let at = RefCell::new(vec![0; source_count]);
        Track { start, at, rows: Cell::new(0), over: Cell::new(false), resuming }
    }

    /// The positions of the first row that was not made, if the page's time was over before it.
    pub(crate) fn unfinished(&self) -> Option<Vec<u32>> {
        self.over.get().then(|| self.row())
    }

    /// Whether the page's time is over, asked at a row of a source. The rows below it have not been begun then.
    fn is_over(&self, source: usize, budget: &Budget) -> bool {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if !rows.is_multiple_of(ROWS_PER_LOOK) || !budget.page_is_over() {
            return false;
        }
        if let Some(below) = self.at.borrow_mut().get_mut(source + 1..) {
            below.fill(0);
        }
        self.over.set(true);
        true
    }

    /// The positions of the row that is visited.
    pub(crate) fn row(&self) -> Vec<u32> {
        self.at.borrow().clone()
    }

    fn start_of(&self, source: usize) -> (bool, usize) {
        let resuming = self.resuming.get();
        (resuming, if resuming { self.start[source] as usize } else { 0 })
    }

    fn set(&self, source: usize, position: usize, resuming: bool) {
        self.at.borrow_mut()[source] = position as u32;
        self.resuming.set(resuming);
    }
}

/// The value of a row; none if a `VALUE` is undefined.
pub(crate) fn project(projection: &Projection, row: &CurrentRow<'_>) -> Result<Option<Value>, EvaluateError> {
    let value = match projection {
        Projection::Star(slot) => row.path(*slot, &[]),
        Projection::Value(value) => evaluate(value, row)?.into_owned(),
        Projection::Members(members) => {
            let mut values = Vec::with_capacity(members.len());
            for (name, member) in members {
                values.push((name.clone(), evaluate(member, row)?.into_owned()));
            }
            bounded(Value::Object(Object::from_members(values)))?
        }
    };
    Ok((!value.is_undefined()).then_some(value))
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
