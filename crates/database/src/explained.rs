//! How a query runs, for people: its operators as text and as values, with what they are expected to find and what they found.
//!
//! In: a query, where it looks, whether to run it. Out: lines, or an [`Explanation`].
//! Invariant: what is told is what is done: the operators are those of the plan that a page is made by.

use crate::charge::FAILURE_CHARGE;
use crate::queries::{Query, inner_limits};
use crate::{AccountCore, Container, DocumentsHandle, Error, Limits, QueryPage, QueryScope};
use astrarium_env::{self as env, Instant};
use astrarium_sql_exec::{Input, OperatorReport};
use astrarium_sql_plan::QueryPlan;
use astrarium_store::FeedScope;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Pages of a query that is run to be explained.
const PAGES_MAX: u64 = 20;
/// Rows of each of them.
const PAGE_ROWS: usize = 1_000;
/// A run ends after this time, wherever it is.
const RUN_TIME: Duration = Duration::from_secs(10);

/// How a query runs.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The operators in the order in which they work.
    pub operators: Vec<ExplainedOperator>,
    /// The same as lines of text.
    pub text: String,
    /// What running it came to, if it was run.
    pub run: Option<ExplainedRun>,
}

/// An operator of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedOperator {
    /// Its kind: access, filter, join, group, sort, rank, project, distinct, limit.
    pub operator: &'static str,
    /// What it does, for people.
    pub detail: String,
    /// About how many rows it was expected to give, where anything is known of it.
    pub estimated_rows: Option<u64>,
    /// What it did, if the query was run.
    pub work: Option<ExplainedWork>,
}

/// What an operator did, in all pages that were run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplainedWork {
    /// Rows it gave.
    pub rows: u64,
    /// Entries of indexes it read.
    pub entries: u64,
    /// Documents it read.
    pub documents: u64,
    /// Bytes of documents it read, or of rows that it gave to the client.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

/// What running a query came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ExplainedRun {
    /// Rows that the client would get.
    pub rows: u64,
    /// Pages.
    pub pages: u64,
    /// Request units.
    pub charge: f64,
    /// Whether that was all: otherwise the run ended for its length. Without a page, in the first one.
    pub is_complete: bool,
}

impl DocumentsHandle<'_> {
    /// Prints how the first page of a query over all documents would be made: the operators of its plan in the order in which
    /// they work, without figures that depend on the number of documents.
    pub async fn plan_text(self, query: &Query) -> Result<String, Error> {
        let DocumentsHandle { core, container } = self;
        let (container, own) = (Arc::clone(container), query.clone());
        let limits = Limits::default();
        core.run_query(query, limits, move |core, _| {
            let (container, query) = (Arc::clone(&container), own.clone());
            Box::pin(async move {
                let scope = QueryScope::Given(FeedScope::All);
                let mut text = String::new();
                for (plan, input, limits) in core.stages(container, &query, &scope, limits).await? {
                    text.push_str(&astrarium_sql_exec::describe(&plan, &input, &limits).await?);
                }
                Ok(text)
            })
        })
        .await
    }

    /// Prints how a query runs: the operators of its plan in the order in which they work, each with what it was expected to
    /// find and what it did in the first page. The page comes too, for what it cost.
    pub async fn explain(
        self,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<(String, QueryPage), Error> {
        let limits = Limits { explain: true, ..limits };
        let page = self.query(query, scope, None, limits).await?;
        let mut text = String::new();
        for operator in &page.operators {
            text.push_str(&explained(operator, true).line());
        }
        let more = if page.resume.is_some() { ", more to come" } else { "" };
        let _ = writeln!(
            text,
            "first page: {} rows{more}; looked at {} index entries and {} documents ({} bytes){}; {} microseconds, {} RU",
            page.rows.len(),
            page.index_entries,
            page.documents,
            page.document_bytes,
            if page.in_index_order { ", in the order of the index" } else { "" },
            page.times.total.as_micros(),
            page.charge,
        );
        Ok((text, page))
    }

    /// Tells how a query runs, without running it or with what running it came to, as far as a bounded run goes.
    pub async fn explanation(
        self,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
        runs: bool,
    ) -> Result<Explanation, Error> {
        let limits = Limits { row_count_max: PAGE_ROWS, explain: true, ..limits };
        let (reports, run) = if runs {
            let (reports, run) = Box::pin(self.run_explained(query, scope, limits)).await?;
            (reports, Some(run))
        } else {
            (Vec::new(), None)
        };
        let was_run = run.is_some_and(|run| run.pages > 0);
        let reports = if was_run { reports } else { self.expected(query, scope, limits).await? };
        let operators: Vec<ExplainedOperator> =
            reports.iter().map(|report| explained(report, was_run)).collect();
        let text = operators.iter().map(ExplainedOperator::line).collect();
        Ok(Explanation { operators, text, run })
    }

    /// Runs some pages, for ten seconds or as long as a query may take; gives what each operator did in all of them. A page that is not
    /// done by then counts for nothing.
    async fn run_explained(
        self,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<(Vec<OperatorReport>, ExplainedRun), Error> {
        let (began, time_max) =
            (Instant::now(), RUN_TIME.min(Duration::from_micros(limits.query_micros_max)));
        let (mut reports, mut run, mut resume) = (Vec::new(), ExplainedRun::default(), None);
        loop {
            let rest = time_max.saturating_sub(began.elapsed());
            let micros = u64::try_from(rest.as_micros()).unwrap_or(u64::MAX);
            let page_micros = limits.page_micros.min(micros);
            let limits = Limits { query_micros_max: micros, page_micros, ..limits };
            // The page ends by itself, unless it waits: for its turn, or for storage.
            let page = match env::timeout(rest, self.query(query, scope, resume.take(), limits)).await {
                Some(Err(Error::Timeout(_))) if began.elapsed() >= time_max => None,
                page => page.transpose()?,
            };
            let Some(page) = page else {
                (run.is_complete, run.charge) = (false, run.charge.max(FAILURE_CHARGE));
                return Ok((reports, run));
            };
            run.pages += 1;
            run.rows += page.rows.len() as u64;
            run.charge += page.charge;
            add(&mut reports, page.operators);
            resume = page.resume;
            run.is_complete = resume.is_none();
            if run.is_complete || run.pages >= PAGES_MAX || began.elapsed() >= time_max {
                return Ok((reports, run));
            }
        }
    }

    /// The operators of a query's first page, with what they are expected to find.
    async fn expected(
        self,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<Vec<OperatorReport>, Error> {
        let DocumentsHandle { core, container } = self;
        let (container, own, scope) = (Arc::clone(container), query.clone(), scope.clone());
        core.run_query(query, limits, move |core, _| {
            let (container, query, scope) = (Arc::clone(&container), own.clone(), scope.clone());
            Box::pin(async move {
                let mut reports = Vec::new();
                for (plan, input, limits) in core.stages(container, &query, &scope, limits).await? {
                    reports.extend(astrarium_sql_exec::expect(&plan, &input, &limits).await?);
                }
                Ok(reports)
            })
        })
        .await
    }
}

impl AccountCore {
    /// The plans that a page of a query is made by, those of queries that its rows come from first, each with what it reads.
    async fn stages(
        &self,
        container: Arc<Container>,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<Vec<(Arc<QueryPlan>, Input, Limits)>, Error> {
        let prepared = self.attempt(&container, |trial| async move {
            let planned = self.planned(&trial.container, query)?;
            let input = self.input(&trial.container, &planned, scope).await?;
            Ok((planned, input))
        });
        let (planned, mut input) = prepared.await?;
        let mut plans = vec![&planned.plan];
        while let Some(inner) = plans.last().and_then(|plan| plan.input.as_ref()) {
            plans.push(inner);
        }
        let mut stages = Vec::new();
        for (place, plan) in plans.into_iter().enumerate().rev() {
            let limits = if place > 0 { inner_limits(plan, limits) } else { limits };
            let read = std::mem::replace(&mut input, Input::Values(Arc::from([])));
            stages.push((Arc::clone(plan), read, limits));
        }
        Ok(stages)
    }
}

/// Adds what a further page did, if it was made in the same way.
fn add(reports: &mut Vec<OperatorReport>, page: Vec<OperatorReport>) {
    if reports.is_empty() {
        *reports = page;
        return;
    }
    let is_same = |pair: (&OperatorReport, &OperatorReport)| pair.0.operator == pair.1.operator;
    if reports.len() != page.len() || !reports.iter().zip(&page).all(is_same) {
        return;
    }
    for (sum, report) in reports.iter_mut().zip(page) {
        sum.rows += report.rows;
        sum.entries += report.entries;
        sum.documents += report.documents;
        sum.bytes += report.bytes;
        sum.time += report.time;
    }
}

fn explained(report: &OperatorReport, was_run: bool) -> ExplainedOperator {
    let OperatorReport { rows, entries, documents, bytes, time, .. } = *report;
    ExplainedOperator {
        operator: report.operator,
        detail: report.text.clone(),
        estimated_rows: report.estimated_rows,
        work: was_run.then_some(ExplainedWork { rows, entries, documents, bytes, time }),
    }
}

impl ExplainedOperator {
    fn line(&self) -> String {
        let figures = match (&self.work, self.estimated_rows) {
            (None, None) => String::new(),
            (None, Some(estimated)) => format!(" [about {estimated} expected]"),
            (Some(work), estimated) => format!(" [{}]", figures(work, estimated)),
        };
        format!("{}{figures}\n", self.detail)
    }
}

/// What an operator was expected to find, and what it did.
fn figures(operator: &ExplainedWork, estimated: Option<u64>) -> String {
    let mut parts = Vec::new();
    if let Some(estimated) = estimated {
        parts.push(format!("about {estimated} expected"));
    }
    parts.push(format!("{} rows", operator.rows));
    if operator.entries > 0 {
        parts.push(format!("{} entries", operator.entries));
    }
    if operator.documents > 0 {
        parts.push(format!("{} documents", operator.documents));
    }
    if operator.bytes > 0 {
        parts.push(format!("{} bytes", operator.bytes));
    }
    parts.push(format!("{} microseconds", operator.time.as_micros()));
    parts.join(", ")
}
