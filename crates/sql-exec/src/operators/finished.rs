//! Rows that are known only when all documents were seen: sorted, distinct, grouped, ranked; or what an index tells instead.
//!
//! In: an input, where the page before ended. Out: the rows after that, in order, as many as the page can need.

use super::distinct::Distinct;
use super::group::{FinishedGroup, GROUP_BYTES, Groups, RowPlace};
use super::rank::{self, ScoredRow};
use super::sort::{RowOrder, SortedRow};
use super::top_k::{TopK, sort_keys};
use super::{OutputRow, RowBatch, RowMark};
use crate::access::PageAccess;
use crate::budget::{Budget, KeptUse, Limits};
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::frame::Datum;
use crate::index_only::{IndexOnlyAnswer, Occurrence, document_with, groups};
use crate::kept::KeptRows;
use crate::long_key::AfterRow;
use crate::pipeline::{CurrentRow, Flow};
use crate::report::Stage;
use crate::resume::ResumePlace;
use crate::rows::{Input, PricedWork};
use crate::sinks::{CollectorSink, GroupsSink, ScoreSink, StatisticsSink};
use crate::tally::RowOperator;
use astrarium_index::Path;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::{Grouping, QueryPlan, RankComponent};
use astrarium_value::Value;
use std::collections::BTreeMap;

/// Bytes of rows that a page computes for the next ones at most.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// All rows that the page can need, and as many for the next ones as memory holds.
pub(crate) struct Finished {
    rows: Option<Vec<OutputRow>>,
    /// Whether no rows come after these.
    is_whole: bool,
}

/// Bytes of rows that are collected for the next pages.
fn spare_bytes_max(limits: &Limits) -> usize {
    if limits.kept_use == KeptUse::Never { 0 } else { SPARE_BYTES_MAX.min(limits.memory_bytes_max / 8) }
}

/// What rows are collected in: the first ones of an order, or each once.
pub(crate) enum Collector {
    TopK(TopK),
    Distinct(Distinct),
}

impl Collector {
    pub(crate) fn new(
        plan: &QueryPlan,
        order: RowOrder,
        after: Option<AfterRow>,
        wanted: u64,
        limits: &Limits,
    ) -> Collector {
        if plan.distinct {
            return Collector::Distinct(Distinct::new(order, after));
        }
        // One more than the page takes tells whether there is a next one.
        let count_max = usize::try_from(wanted.saturating_add(1)).unwrap_or(usize::MAX);
        Collector::TopK(TopK::new(order, after, count_max).sparing(spare_bytes_max(limits)))
    }

    /// Takes a row.
    pub(crate) fn take(
        &mut self,
        row: &CurrentRow<'_>,
        plan: &QueryPlan,
        place: RowPlace,
    ) -> Result<(), EvaluateError> {
        match self {
            Collector::TopK(rows) => rows.take(row, plan, place),
            Collector::Distinct(rows) => rows.take(row, plan, place),
        }
    }

    /// The same with no rows yet.
    pub(crate) fn empty(&self) -> Collector {
        match self {
            Collector::TopK(rows) => Collector::TopK(rows.empty()),
            Collector::Distinct(rows) => Collector::Distinct(rows.empty()),
        }
    }

    /// Takes in the rows of another part of the documents.
    pub(crate) fn merge(&mut self, later: Collector, budget: &Budget) -> Result<(), EvaluateError> {
        match (self, later) {
            (Collector::TopK(rows), Collector::TopK(later)) => rows.merge(later, budget),
            (Collector::Distinct(rows), Collector::Distinct(later)) => rows.merge(later, budget),
            _ => unreachable!("the collectors of a query are of one kind"),
        }
    }

    /// Says what it holds, once a part of the documents is over; what cannot be part of the page is dropped.
    pub(crate) fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        match self {
            Collector::TopK(rows) => rows.settle(budget),
            Collector::Distinct(rows) => rows.settle(budget),
        }
    }

    /// The rows after the last one given, in order, and whether these are all.
    pub(crate) fn finish(self) -> (Vec<SortedRow>, bool) {
        match self {
            Collector::TopK(rows) => rows.finish(),
            Collector::Distinct(rows) => (rows.finish(), true),
        }
    }
}

impl Finished {
    fn new((rows, is_whole): (Vec<SortedRow>, bool)) -> Finished {
        Finished { rows: Some(rows.into_iter().map(SortedRow::into_output).collect()), is_whole }
    }

    /// What of the rows that a page did not take is kept for the next ones. `before` are the rows before them.
    pub(crate) fn kept(
        &self,
        rest: Vec<OutputRow>,
        (order, is_paid_by_row): (RowOrder, bool),
        before: u64,
        limits: &Limits,
    ) -> Option<KeptRows> {
        let (bytes_max, mut bytes, mut rows) = (spare_bytes_max(limits), 0, Vec::new());
        let mut ranked_before = None;
        let rest_count = rest.len();
        for OutputRow { json, mark, priced } in rest {
            let (keys, place) = match mark {
                RowMark::Ordered(row) => row,
                RowMark::Counted(place) => {
                    ranked_before = Some(before);
                    (Vec::new(), place)
                }
                RowMark::Document(..) => return None,
            };
            let row = SortedRow { keys, place, json, priced };
            bytes += row.bytes();
            if bytes > bytes_max {
                break;
            }
            rows.push(row);
        }
        let is_whole = self.is_whole && rows.len() == rest_count;
        (bytes_max > 0).then(|| KeptRows::new(rows, is_whole, (order, is_paid_by_row), ranked_before))
    }

    /// All rows, once.
    pub(crate) fn next(&mut self) -> Option<RowBatch> {
        self.rows.take().map(|rows| RowBatch { rows, ..RowBatch::default() })
    }

    /// Sorted or distinct rows.
    pub(crate) async fn collected(
        execution: &mut Execution<'_>,
        input: &Input,
        access: &mut PageAccess<'_, '_>,
        mut collector: Collector,
    ) -> Result<Finished, ExecuteError> {
        let (sink, work) = execution.job.documents(input, Some(access), CollectorSink { collector }).await?;
        execution.count(work);
        collector = sink.collector;
        Ok(Finished::in_order(execution, collector))
    }

    /// Distinct values that an index tells.
    pub(crate) fn of_values(
        execution: &mut Execution<'_>,
        (path, values): (&Path, BTreeMap<Value, Occurrence>),
        mut collector: Collector,
    ) -> Result<Finished, ExecuteError> {
        let plan = execution.plan;
        for (value, found) in values {
            execution.job.bind(&execution.frame, Datum::Value(document_with(path, value)));
            execution.with_machine(|machine| {
                machine.budget.counted(plan, RowOperator::Collecting, || {
                    collector.take(&machine.row(), plan, (found.first, 0))
                })
            })?;
        }
        Ok(Finished::in_order(execution, collector))
    }

    /// What was collected, put in order.
    fn in_order(execution: &mut Execution<'_>, collector: Collector) -> Finished {
        let stage = Stage::begin(execution);
        let rows = collector.finish();
        stage.sorted(execution, rows.0.len());
        Finished::new(rows)
    }

    /// The groups of all rows.
    pub(crate) async fn groups(
        execution: &mut Execution<'_>,
        input: &Input,
        access: &mut PageAccess<'_, '_>,
        grouping: &Grouping,
    ) -> Result<Vec<FinishedGroup>, ExecuteError> {
        let sink = GroupsSink { groups: Groups::new(grouping) };
        let (sink, work) = execution.job.documents(input, Some(access), sink).await?;
        execution.count(work);
        execution.budget.hold(sink.groups.bytes())?;
        let stage = Stage::begin(execution);
        let groups: Vec<FinishedGroup> = sink.groups.finish().collect();
        stage.grouped(execution, groups.len());
        Ok(groups)
    }

    /// Groups with their aggregates, as rows.
    pub(crate) fn grouped(
        execution: &mut Execution<'_>,
        groups: Vec<FinishedGroup>,
        place: Option<ResumePlace>,
        wanted: u64,
    ) -> Result<Finished, ExecuteError> {
        let order = RowOrder::new(execution.plan.order_keys(), false);
        let after = match place {
            Some(ResumePlace::LongKey(long)) => {
                let last = group_keys(execution, &groups, long.last)?;
                let next = group_keys(execution, &groups, long.next)?;
                Some(long.after(last, next, &order.directions()))
            }
            place => resume_after(place)?,
        };
        let plan = execution.plan;
        let mut collector = Collector::new(plan, order, after, wanted, execution.budget.limits());
        execution.with_machine(|machine| {
            for group in groups {
                let row = CurrentRow { machine, keys: &group.keys, aggregates: &group.results };
                machine
                    .budget
                    .counted(plan, RowOperator::Collecting, || collector.take(&row, plan, group.first))?;
            }
            Ok::<(), EvaluateError>(())
        })?;
        Ok(Finished::in_order(execution, collector))
    }

    /// Ranked rows, without those that were given or skipped.
    pub(crate) async fn ranked(
        execution: &mut Execution<'_>,
        input: &Input,
        access: &mut PageAccess<'_, '_>,
        components: &[RankComponent],
        before: u64,
    ) -> Result<Finished, ExecuteError> {
        let count = StatisticsSink { components: components.into(), statistics: Vec::new() };
        // Scores compare a document with all others, whatever the filter leaves.
        let (count, _) = execution.job.documents(input, None, count).await?;
        let score = ScoreSink {
            components: components.into(),
            statistics: count.statistics.into(),
            rows: Vec::new(),
            bytes: 0,
        };
        let (score, work) = execution.job.documents(input, Some(access), score).await?;
        execution.count(work);
        let stage = Stage::begin(execution);
        let ranked = rank::order(components, score.rows);
        stage.sorted(execution, ranked.len());
        let rest = ranked.into_iter().skip(usize::try_from(before).unwrap_or(usize::MAX));
        let output = |row: ScoredRow| OutputRow {
            json: row.json,
            mark: RowMark::Counted(row.place),
            priced: PricedWork::default(),
        };
        let rows = rest.map(output).collect();
        Ok(Finished { rows: Some(rows), is_whole: true })
    }
}

/// Where a page in an order goes on, unless keys have to be found again.
pub(crate) fn resume_after(place: Option<ResumePlace>) -> Result<Option<AfterRow>, ExecuteError> {
    match place {
        None => Ok(None),
        Some(ResumePlace::Row(number, index)) => Ok(Some((Vec::new(), (number, index)).into())),
        Some(ResumePlace::Key(keys, number, index)) => Ok(Some((keys, (number, index)).into())),
        Some(_) => Err(ExecuteError::ForeignPosition),
    }
}

/// The sort keys of a row, read again from its document; none if it is gone.
pub(crate) async fn find_keys(
    execution: &mut Execution<'_>,
    input: &Input,
    (number, wanted): RowPlace,
) -> Result<Option<Vec<Value>>, ExecuteError> {
    let Some(datum) = input.document(number).await? else { return Ok(None) };
    execution.job.bind(&execution.frame, datum);
    let (mut index, mut found) = (0, None);
    execution.with_machine(|machine| {
        machine.visit(execution.plan, &mut || {
            if index == wanted {
                found = Some(sort_keys(execution.plan, &machine.row())?);
                return Ok(Flow::Break(()));
            }
            index += 1;
            Ok(Flow::Continue(()))
        })
    })?;
    Ok(found)
}

/// The sort keys of a group, which is known by its first row; none if it is gone.
fn group_keys(
    execution: &Execution<'_>,
    groups: &[FinishedGroup],
    first: RowPlace,
) -> Result<Option<Vec<Value>>, EvaluateError> {
    let Some(group) = groups.iter().find(|group| group.first == first) else { return Ok(None) };
    execution.with_machine(|machine| {
        let row = CurrentRow { machine, keys: &group.keys, aggregates: &group.results };
        sort_keys(execution.plan, &row).map(Some)
    })
}

/// The groups that an index tells, held by the page; none if it does not tell them after all.
pub(crate) fn groups_of_index(
    execution: &mut Execution<'_>,
    answer: IndexOnlyAnswer<'_>,
    grouping: &Grouping,
) -> Result<Option<Vec<FinishedGroup>>, ExecuteError> {
    let stage = Stage::begin(execution);
    let Some(groups) = groups(answer, grouping) else { return Ok(None) };
    let held = |group: &FinishedGroup| GROUP_BYTES + group.keys.iter().map(approximate_bytes).sum::<usize>();
    execution.budget.hold(groups.iter().map(held).sum())?;
    stage.grouped(execution, groups.len());
    Ok(Some(groups))
}
