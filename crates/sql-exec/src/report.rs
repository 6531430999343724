//! What the operators of a page did, told where a query is explained.
//!
//! In: the plan of the page, what was counted. Out: an [`OperatorReport`] for each operator, in
//! the order in which they work. Nothing of it costs anything where nobody asks.
//! The time of an operator is its own: without that of the operators before it, and summed over all threads.

use crate::execution::Execution;
use crate::operators::limit::PageLimiter;
use crate::rows::AccessWork;
use crate::tally::{OperatorWork, RowOperator, TallySum};
use astrarium_env::Instant;
use astrarium_sql_plan::QueryPlan;
use astrarium_sql_plan::estimates::estimated_rows;
use astrarium_sql_plan::explain::{Operator, operators};
use astrarium_sql_plan::physical::PhysicalPlan;
use std::time::Duration;

/// What an operator did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorReport {
    /// What kind of operator it is.
    pub operator: &'static str,
    /// The operator, for people.
    pub text: String,
    /// About how many rows it was expected to give, where anything is known of it.
    pub estimated_rows: Option<u64>,
    /// Rows it gave.
    pub rows: u64,
    /// Entries of indexes it read.
    pub entries: u64,
    /// Documents it read.
    pub documents: u64,
    /// Bytes of documents it read, or of the rows that it gave to the client.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
    /// Whether its rows go to the client.
    pub is_last: bool,
}

/// What operators that see all documents first tell of themselves.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    sorting: Duration,
    grouping: Duration,
    /// Taking rows into the page.
    limiting: Duration,
    groups: Option<u64>,
    sorted: Option<u64>,
}

/// Measures a part of a page.
pub(crate) struct Stage(Option<Instant>);

impl Stage {
    pub(crate) fn begin(execution: &Execution<'_>) -> Stage {
        Stage(execution.reports.is_some().then(Instant::now))
    }

    /// Rows were put in order.
    pub(crate) fn sorted(self, execution: &mut Execution<'_>, rows: usize) {
        self.end(execution, |reports, time| {
            reports.sorting += time;
            reports.sorted = Some(rows as u64);
        });
    }

    /// Groups are finished.
    pub(crate) fn grouped(self, execution: &mut Execution<'_>, groups: usize) {
        self.end(execution, |reports, time| {
            reports.grouping += time;
            reports.groups = Some(groups as u64);
        });
    }

    /// Rows were skipped, or taken into the page.
    pub(crate) fn limited(self, execution: &mut Execution<'_>) {
        self.end(execution, |reports, time| reports.limiting += time);
    }

    fn end(self, execution: &mut Execution<'_>, keep: impl FnOnce(&mut Reports, Duration)) {
        if let (Some(began), Some(reports)) = (self.0, &mut execution.reports) {
            keep(reports, began.elapsed());
        }
    }
}

/// What each operator of a page did, of a container with about so many documents; nothing unless the query is explained.
pub(crate) fn reports(
    execution: &Execution<'_>,
    (physical, there): (&PhysicalPlan<'_>, Option<u64>),
    taken: &PageLimiter,
) -> Vec<OperatorReport> {
    let (Some(reports), Some(tally)) = (&execution.reports, &execution.job.gauge.explained) else {
        return Vec::new();
    };
    execution.budget.flush();
    let mut found: Vec<OperatorReport> = estimated(execution.plan, physical, there)
        .map(|(operator, text, estimated_rows)| OperatorReport {
            operator: operator.name(),
            text,
            estimated_rows,
            ..report(execution, reports, tally, operator)
        })
        .collect();
    if let Some(last) = found.last_mut() {
        last.is_last = true;
        last.rows = taken.rows.len() as u64;
        last.bytes = taken.rows.iter().map(|row| row.len() as u64).sum();
    }
    found
}

fn report(
    execution: &Execution<'_>,
    reports: &Reports,
    tally: &TallySum,
    operator: Operator,
) -> OperatorReport {
    let plan = execution.plan;
    let of = |rows: u64, time: Duration| OperatorReport { rows, time, ..OperatorReport::default() };
    let within = |operator: RowOperator| {
        let OperatorWork { rows, time } = tally.of(operator);
        of(rows, time)
    };
    let collecting = tally.of(RowOperator::Collecting).time;
    let (sorted, groups) = (reports.sorted.unwrap_or_default(), reports.groups.unwrap_or_default());
    match operator {
        Operator::Access => access(execution),
        Operator::Filter(level, place) => within(RowOperator::Condition(level, place)),
        Operator::Join(source) => within(RowOperator::Source(source)),
        Operator::Project => within(RowOperator::Projection),
        Operator::Group => of(groups, tally.of(RowOperator::Grouping).time + reports.grouping),
        // Where equal rows are looked for, too, that is what takes rows in; then they are put in order.
        Operator::TopK | Operator::Rank if plan.distinct => of(sorted, reports.sorting),
        Operator::TopK | Operator::Rank => of(sorted, collecting + reports.sorting),
        Operator::Distinct if plan.order_keys().is_empty() => of(sorted, collecting + reports.sorting),
        Operator::Distinct => of(sorted, collecting),
        Operator::OffsetLimit => of(0, reports.limiting),
    }
}

/// The operators of a page that is not made, with what they are expected to find.
pub(crate) fn expected(
    plan: &QueryPlan,
    physical: &PhysicalPlan<'_>,
    there: Option<u64>,
) -> Vec<OperatorReport> {
    let report = |(operator, text, estimated_rows): (Operator, String, Option<u64>)| OperatorReport {
        operator: operator.name(),
        text,
        estimated_rows,
        ..OperatorReport::default()
    };
    estimated(plan, physical, there).map(report).collect()
}

/// The operators of a page with their texts, and about how many rows each is expected to give.
fn estimated(
    plan: &QueryPlan,
    physical: &PhysicalPlan<'_>,
    there: Option<u64>,
) -> impl Iterator<Item = (Operator, String, Option<u64>)> {
    let operators = operators(plan, physical, &physical.to_string());
    let rows = estimated_rows(plan, (physical, there), operators.iter().map(|(operator, _)| *operator));
    operators.into_iter().zip(rows).map(|((operator, text), rows)| (operator, text, rows))
}

fn access(execution: &Execution<'_>) -> OperatorReport {
    let AccessWork { documents, bytes, entries, lookup, load, .. } = execution.access;
    OperatorReport {
        rows: documents,
        entries,
        documents,
        bytes,
        time: lookup + load,
        ..OperatorReport::default()
    }
}
