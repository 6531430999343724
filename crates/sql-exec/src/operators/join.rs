//! The join: binds the values of each source in turn, each once for each row of those before it, and checks every condition
//! as soon as its sources are bound.
//!
//! In: the frame with a document. Out: a visit for each row. A [`Track`] tells where a row is, so that a page can go on in
//! the middle of a large product without making the rows before it again.

use crate::budget::{Budget, charge_row};
use crate::frame::Datum;
use crate::pipeline::{Flow, Machine};
use astrarium_env::{Instant, charge};
use astrarium_sql_functions::limits::weight;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::{PlanSource, QueryPlan, SourceKind};
use astrarium_value::Value;
use std::cell::{Cell, RefCell};

impl Machine<'_> {
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
        if !self.passes(plan, index)? {
            return Ok(Flow::Continue(()));
        }
        let Some(source) = plan.sources.get(index) else {
            self.budget.note_row(plan);
            return visit();
        };
        if matches!(source.kind, SourceKind::Documents) {
            // Bound by whoever reads the documents.
            return self.for_each_row(plan, index + 1, track, visit);
        }
        let began = self.budget.tally(plan).map(|tally| (tally, Instant::now()));
        let items = self.items(source)?;
        if let Some((tally, began)) = began {
            tally.joined(index, items.len() as u64, began.elapsed());
        }
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

    /// The values of a source for the row at hand.
    fn items(&self, source: &PlanSource) -> Result<Vec<Datum>, EvaluateError> {
        Ok(match &source.kind {
            SourceKind::Documents => Vec::new(),
            SourceKind::Value(value) => match self.evaluate(value)? {
                Value::Undefined => Vec::new(),
                value => vec![Datum::Value(value)],
            },
            SourceKind::Elements(value) => self.elements(value)?,
            SourceKind::Rows(query) => self.rows(query)?.into_iter().map(Datum::Value).collect(),
            SourceKind::ElementsOfRows(query) => self.rows(query)?.into_iter().flat_map(elements).collect(),
        })
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
