//! What the operators of a page did, told where a query is explained.
//!
//! In: the plan, how documents are found in each range, what was counted. Out: an [`OperatorReport`] for each operator, in
//! the order in which they work. Nothing of it costs anything where nobody asks.
//! The time of an operator is its own: without that of the operators before it, and summed over all threads.

use crate::execution::Execution;
use crate::operators::limit::PageLimiter;
use crate::tally::{OperatorWork, RowOperator, TallySum};
use astrarium_env::Instant;
use astrarium_sql_plan::explain::{Operator, operators};
use astrarium_sql_plan::physical::PlannedAccess;
use parking_lot::Mutex;
use std::time::Duration;

/// What an operator did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorReport {
    /// The operator, for people.
    pub text: String,
    /// About how many rows it was expected to give, where that was a reason to choose it.
    pub estimated_rows: Option<u64>,
    /// Rows it gave; none if it had nothing to do, because the index had done it.
    pub rows: Option<u64>,
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

/// What the parts of a page tell of themselves.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) tally: TallySum,
    accesses: Mutex<Vec<(u32, String, u64)>>,
}

impl Explained {
    /// Keeps how documents of a range are found; the first choice of a page counts.
    pub(crate) fn note(&self, range_id: u32, access: &PlannedAccess<'_>) {
        let mut accesses = self.accesses.lock();
        if !accesses.iter().any(|(known, ..)| *known == range_id) {
            accesses.push((range_id, access.to_string(), access.documents));
        }
    }
}

/// What operators that see all documents first tell of themselves.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    reading: Duration,
    finishing: Duration,
    groups: Option<u64>,
    sorted: Option<u64>,
}

/// Measures a part of a page.
pub(crate) struct Stage(Option<Instant>);

impl Stage {
    pub(crate) fn begin(execution: &Execution<'_>) -> Stage {
        Stage(execution.reports.is_some().then(Instant::now))
    }

    /// Documents were read, or what an index has in their place.
    pub(crate) fn read(self, execution: &mut Execution<'_>) {
        self.end(execution, |reports, time| reports.reading += time);
    }

    /// Rows were put in order.
    pub(crate) fn sorted(self, execution: &mut Execution<'_>, rows: usize) {
        self.end(execution, |reports, time| {
            reports.finishing += time;
            reports.sorted = Some(rows as u64);
        });
    }

    /// Groups became rows.
    pub(crate) fn grouped(self, execution: &mut Execution<'_>, groups: usize) {
        self.end(execution, |reports, time| {
            reports.finishing += time;
            reports.groups = Some(groups as u64);
        });
    }

    fn end(self, execution: &mut Execution<'_>, keep: impl FnOnce(&mut Reports, Duration)) {
        if let (Some(began), Some(reports)) = (self.0, &mut execution.reports) {
            keep(reports, began.elapsed());
        }
    }
}

/// What each operator of a page did; nothing unless the query is explained.
pub(crate) fn reports(execution: &Execution<'_>, taken: &PageLimiter) -> Vec<OperatorReport> {
    let (Some(reports), Some(explained)) = (&execution.reports, &execution.job.gauge.explained) else {
        return Vec::new();
    };
    execution.budget.flush();
    let mut found: Vec<OperatorReport> = operators(execution.plan)
        .into_iter()
        .map(|(operator, text)| report(execution, reports, explained, operator, text))
        .collect();
    if let Some(last) = found.last_mut() {
        last.is_last = true;
        last.rows = Some(taken.rows.len() as u64);
        last.bytes = taken.rows.iter().map(|row| row.len() as u64).sum();
    }
    found
}

fn report(
    execution: &Execution<'_>,
    reports: &Reports,
    explained: &Explained,
    operator: Operator,
    text: String,
) -> OperatorReport {
    let within = |operator: RowOperator| {
        let OperatorWork { rows, time } = explained.tally.of(operator);
        OperatorReport { rows: Some(rows), time, ..OperatorReport::default() }
    };
    let own = match operator {
        Operator::Access => return access(execution, reports, explained, &text),
        Operator::Filter(level, place) => within(RowOperator::Condition(level, place)),
        Operator::Join(source) => within(RowOperator::Source(source)),
        Operator::Project => within(RowOperator::Projection),
        Operator::Group => {
            OperatorReport { rows: reports.groups, time: reports.finishing, ..OperatorReport::default() }
        }
        Operator::TopK | Operator::Rank if reports.groups.is_none() => {
            OperatorReport { rows: reports.sorted, time: reports.finishing, ..OperatorReport::default() }
        }
        Operator::TopK | Operator::Rank | Operator::Distinct | Operator::OffsetLimit => {
            OperatorReport { rows: reports.sorted, ..OperatorReport::default() }
        }
    };
    OperatorReport { text, ..own }
}

fn access(execution: &Execution<'_>, reports: &Reports, explained: &Explained, text: &str) -> OperatorReport {
    let counts = execution.counts;
    let accesses = explained.accesses.lock();
    let ways = match &accesses[..] {
        [] => "scan".to_owned(),
        [(_, way, _)] => way.clone(),
        several => {
            let ways: Vec<String> =
                several.iter().map(|(range, way, _)| format!("range {range}: {way}")).collect();
            format!("merge of ranges ({})", ways.join("; "))
        }
    };
    let estimated: u64 = accesses.iter().map(|(.., documents)| *documents).sum();
    OperatorReport {
        text: text.replacen("scan documents", &ways, 1),
        estimated_rows: (!accesses.is_empty()).then_some(estimated),
        rows: Some(counts.documents),
        entries: counts.entries,
        documents: counts.documents,
        bytes: counts.bytes,
        time: execution.lookup + execution.load + reports.reading,
        is_last: false,
    }
}
