//! Rows and time of the operators that work within a document, counted only while a query is explained.
//!
//! Each thread of a query has a tally with its budget; when it is done, its counts go to the sum that they share.

use astrarium_env::Instant;
use astrarium_sql_plan::plan::QueryPlan;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// An operator within a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowOperator {
    /// A condition, by the number of sources it needs and its place among those that need as many.
    Condition(usize, usize),
    /// A source.
    Source(usize),
    /// The projection.
    Projection,
    /// Taking rows into groups.
    Grouping,
    /// Taking rows into what sorts them, ranks them or keeps each once.
    Collecting,
}

/// Rows that an operator gave, and how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OperatorWork {
    pub(crate) rows: u64,
    pub(crate) time: Duration,
}

/// The counts of all threads.
#[derive(Debug, Default)]
pub(crate) struct TallySum(Mutex<BTreeMap<RowOperator, OperatorWork>>);

impl TallySum {
    pub(crate) fn of(&self, operator: RowOperator) -> OperatorWork {
        self.0.lock().get(&operator).copied().unwrap_or_default()
    }
}

/// The counts of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The plan that is counted, by its address: subqueries are plans, too.
    plan: usize,
    counts: RefCell<BTreeMap<RowOperator, OperatorWork>>,
    /// The time of all operators.
    total: Cell<Duration>,
}

impl Tally {
    pub(crate) fn new(plan: &QueryPlan) -> Tally {
        Tally { plan: address(plan), counts: RefCell::default(), total: Cell::default() }
    }

    pub(crate) fn is_of(&self, plan: &QueryPlan) -> bool {
        self.plan == address(plan)
    }

    pub(crate) fn filtered(&self, source_count: usize, place: usize, passes: bool, time: Duration) {
        self.add(RowOperator::Condition(source_count, place), u64::from(passes), time);
    }

    pub(crate) fn joined(&self, source: usize, rows: u64, time: Duration) {
        self.add(RowOperator::Source(source), rows, time);
    }

    pub(crate) fn projected(&self, is_row: bool, time: Duration) {
        self.add(RowOperator::Projection, u64::from(is_row), time);
    }

    /// Does the work of an operator that others work in, whose time is not its own.
    pub(crate) fn around<T>(&self, operator: RowOperator, work: impl FnOnce() -> T) -> T {
        let (began, before) = (Instant::now(), self.total.get());
        let done = work();
        let of_others = self.total.get().saturating_sub(before);
        self.add(operator, 1, began.elapsed().saturating_sub(of_others));
        done
    }

    fn add(&self, operator: RowOperator, rows: u64, time: Duration) {
        let mut counts = self.counts.borrow_mut();
        let work = counts.entry(operator).or_default();
        work.rows += rows;
        work.time += time;
        self.total.set(self.total.get() + time);
    }

    /// Adds what was counted to the sum.
    pub(crate) fn flush(&self, sum: &TallySum) {
        let mut all = sum.0.lock();
        for (operator, own) in std::mem::take(&mut *self.counts.borrow_mut()) {
            let work = all.entry(operator).or_default();
            work.rows += own.rows;
            work.time += own.time;
        }
    }
}

fn address(plan: &QueryPlan) -> usize {
    std::ptr::from_ref(plan).addr()
}
