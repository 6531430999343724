//! One page of a query: opens the operators that its plan asks for, and takes their rows until the page is full.

use crate::access::{PageAccess, PageRanges, document_count, finder};
use crate::budget::Limits;
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::index_only::{Asking, IndexOnlyAnswer};
use crate::kept::KeptRows;
use crate::long_key::{AfterRow, LongKey};
use crate::operators::finished::{Collector, Finished, find_keys, groups_of_index, resume_after};
use crate::operators::limit::{Offered, PageLimiter};
use crate::operators::merge::MergeOfRanges;
use crate::operators::ordered_scan::{Scanned, is_lacking};
use crate::operators::sort::RowOrder;
use crate::operators::stream::StreamRows;
use crate::operators::{LastTaken, OutputRow, RowBatch, RowMark, RowSource};
use crate::order_start::OrderStart;
use crate::report::{OperatorReport, Stage, expected, reports};
use crate::resume::{Resume, ResumePlace};
use crate::rows::{AccessWork, Input, PricedWork, number_before};
use crate::runtime::Runtime;
use crate::scan::Job;
use astrarium_env::Instant;
use astrarium_sql_plan::explain::explain;
use astrarium_sql_plan::physical::{PageDemand, PageForm, PhysicalPlan, choose_page, has_reversed_ties};
use astrarium_sql_plan::plan::{Order, QueryPlan};
use std::sync::Arc;

/// A page of rows.
#[derive(Debug, Default)]
pub struct Page {
    /// Rows as JSON.
    pub rows: Vec<Vec<u8>>,
    /// Where to go on, if there may be more.
    pub resume: Option<Resume>,
    /// What of all that is priced.
    pub priced: PricedWork,
    /// What the ways to documents did: what the access of the plan is told to have done, in EXPLAIN and in metrics.
    pub access: AccessWork,
    /// Whether documents of equal sort keys come in descending order of their numbers.
    pub reverse_ties: bool,
    /// Whether the rows came in the order of an index, without sorting.
    pub in_index_order: bool,
    /// Whether every page of the query looks at documents of its own; otherwise each looks at all of them.
    pub incremental: bool,
    /// Rows that belong to the next pages and need not be computed again.
    pub kept: Option<KeptRows>,
    /// What each operator did, in the order in which they work; nothing unless the limits ask for it.
    pub operators: Vec<OperatorReport>,
}

/// Makes one page of a query, from where its rows begin or from where the page before ended, whichever is further on.
pub async fn run(
    runtime: &Runtime,
    plan: &Arc<QueryPlan>,
    input: &Input,
    (from, resume): (Option<&OrderStart>, Option<Resume>),
    limits: Limits,
) -> Result<Page, ExecuteError> {
    let job = Job::new(runtime, plan, input, limits);
    let mut taken = PageLimiter::new((plan.offset, plan.limit), &limits, resume.as_ref());
    if taken.is_done() {
        return Ok(Page::default());
    }
    let mut execution = Execution::new(&job);
    let is_first = resume.is_none();
    let place = resume.map(|resume| resume.place);
    let range_id = streamed_range(plan, input, place.as_ref())?;
    let ranges = PageRanges::of(input, range_id)?;
    let begins = begins(input, range_id, place.as_ref());
    let PageStart { after, place, order, prior } = start(&mut execution, input, (from, place)).await?;
    let began = Instant::now();
    let demand = demand(&limits, input, &taken, (&place, after.as_ref()));
    let mut access = choose(plan, ranges.as_ref(), demand).await?;
    execution.access.lookup += began.elapsed();
    let mut parts = PageParts { input, after, place, order: order.clone(), taken: &taken };
    let answer = if access.physical.is_index_only() {
        let answered = answer(&mut execution, &mut access, &mut parts).await?;
        if answered.is_none() {
            access = choose(plan, ranges.as_ref(), PageDemand { needs_documents: true, ..demand }).await?;
        }
        answered
    } else {
        None
    };
    let mut rows = match answer {
        Some(rows) => RowSource::Finished(rows),
        None => open(&mut execution, &mut access, parts).await?,
    };
    let (in_index_order, incremental) = rows.order();
    let mut last = LastTaken::of_page(prior);
    let (mut place, mut kept) = (None, None);
    let is_paid_by_row = is_paid_by_row(&job);
    while let Some(batch) = rows.next(&mut execution, &taken).await? {
        let stage = Stage::begin(&execution);
        let end = take(&mut taken, &mut execution, batch, &mut last, &order);
        stage.limited(&mut execution);
        if let Some((found, rest)) = end {
            place = found;
            if let (Some(_), RowSource::Finished(rows)) = (&place, &rows) {
                kept = rows.kept(rest, (order.clone(), is_paid_by_row), taken.given + taken.skipped, &limits);
            }
            break;
        }
    }
    let mut priced = price(&execution.access, &rows, (is_first, is_paid_by_row), taken.priced);
    priced.add(if begins { beginning(input, range_id).await? } else { PricedWork::default() });
    let there = if limits.explain { document_count(input).await? } else { None };
    let operators = reports(&execution, (&access.physical, there), &taken);
    let resume = taken.resume(place);
    Ok(Page {
        rows: taken.rows,
        resume,
        kept,
        priced,
        access: execution.access,
        reverse_ties: order.reverse_ties,
        in_index_order,
        incremental,
        operators,
    })
}

/// What a page costs, the rows that it took among it.
fn price(
    access: &AccessWork,
    source: &RowSource<'_>,
    (is_first, is_paid_by_row): (bool, bool),
    rows: PricedWork,
) -> PricedWork {
    let mut priced = match source {
        RowSource::Stream(_) | RowSource::Merged(_) => access.priced,
        // What looks at everything is paid by the first page, whoever does it again.
        RowSource::Finished(_) if !is_first => PricedWork::default(),
        RowSource::Finished(_) if is_paid_by_row => access.fruitless,
        RowSource::Finished(_) => access.priced,
    };
    if is_paid_by_row {
        priced.add(rows);
    }
    priced
}

/// Whether a page pays for the documents of its rows though rows are put in order: an index has the order, and where it is
/// cheaper to sort, that is no reason to pay for more.
fn is_paid_by_row(job: &Job) -> bool {
    let is_ordered = job.gauge.priced().is_some_and(|priced| priced.is_ordered);
    is_ordered && !job.plan.distinct && job.plan.grouping.is_none()
}

/// Whether a page is the first of its query, or of a range that has pages of its own.
fn begins(input: &Input, range_id: Option<u32>, place: Option<&ResumePlace>) -> bool {
    match (input, place) {
        (_, None) => true,
        (Input::Container(_, scope, _), Some(ResumePlace::Stream(Some(position), None))) => {
            range_id.is_some() && number_before(scope, Some(position)) == Some(0)
        }
        _ => false,
    }
}

/// What a query pays for once: looking into the indexes of the ranges that it is over, or of the one that the page is of.
async fn beginning(input: &Input, range_id: Option<u32>) -> Result<PricedWork, ExecuteError> {
    let Input::Container(reader, scope, index) = input else {
        return Ok(PricedWork { ranges: 1, ..PricedWork::default() });
    };
    let mut ranges = reader.ranges(scope)?;
    ranges.retain(|range| range_id.is_none_or(|id| range.id == id));
    let mut work = PricedWork { ranges: ranges.len() as u64, ..PricedWork::default() };
    let Some(index) = index else { return Ok(work) };
    work.seeks = index.priced.seeks;
    for range in ranges {
        for family in &index.priced.scanned {
            work.scanned_entries += finder(reader, range)?.count(*family).await?;
        }
    }
    Ok(work)
}

/// How the first page of a query would be made: a line for each operator, without figures that depend on the number of
/// documents.
pub async fn describe(plan: &Arc<QueryPlan>, input: &Input, limits: &Limits) -> Result<String, ExecuteError> {
    foresee(plan, input, limits, explain).await
}

/// The same operators, with what they are expected to find.
pub async fn expect(
    plan: &Arc<QueryPlan>,
    input: &Input,
    limits: &Limits,
) -> Result<Vec<OperatorReport>, ExecuteError> {
    let there = document_count(input).await?;
    foresee(plan, input, limits, |plan, physical| expected(plan, physical, there)).await
}

/// What is to be told of the way in which the first page of a query comes to its documents.
async fn foresee<T>(
    plan: &Arc<QueryPlan>,
    input: &Input,
    limits: &Limits,
    told: impl FnOnce(&QueryPlan, &PhysicalPlan<'_>) -> T,
) -> Result<T, ExecuteError> {
    let taken = PageLimiter::new((plan.offset, plan.limit), limits, None);
    let ranges = PageRanges::of(input, streamed_range(plan, input, None)?)?;
    let demand = demand(limits, input, &taken, (&None, None));
    let access = choose(plan, ranges.as_ref(), demand).await?;
    Ok(told(plan, &access.physical))
}

/// Makes one page of rows that a page before computed; nothing if they are not among them.
pub fn run_kept(plan: &QueryPlan, kept: &KeptRows, resume: &Resume, limits: Limits) -> Option<Page> {
    let rows = kept.after(resume)?;
    let mut taken = PageLimiter::new((plan.offset, plan.limit), &limits, Some(resume));
    let given_max = kept.given_max(rows);
    let (mut last, mut place) = (LastTaken::of_page(long_key(Some(&resume.place))), None);
    for (index, row) in rows.iter().enumerate() {
        let mark = if kept.is_ranked() {
            RowMark::Counted(row.place)
        } else {
            RowMark::Ordered((row.keys.clone(), row.place))
        };
        let offered = if index < given_max { taken.offer(&mut row.json.clone()) } else { Offered::Full };
        match offered {
            Offered::Taken => {
                last.take(mark);
                taken.priced.add(row.priced);
            }
            Offered::Full => {
                place = RowSource::position(&mut last, &mark, &kept.order().directions());
                break;
            }
            Offered::Done => break,
        }
    }
    let resume = taken.resume(place);
    let priced = if kept.is_paid_by_row() { taken.priced } else { PricedWork::default() };
    Some(Page {
        rows: taken.rows,
        resume,
        priced,
        reverse_ties: kept.order().reverse_ties,
        ..Page::default()
    })
}

/// Where a page ended, if there may be more, and the rows that it did not take.
type PageEnd = (Option<ResumePlace>, Vec<OutputRow>);

/// Takes the rows of a batch into a page; tells if it ends with them.
fn take(
    taken: &mut PageLimiter,
    execution: &mut Execution<'_>,
    batch: RowBatch,
    last: &mut LastTaken,
    order: &RowOrder,
) -> Option<PageEnd> {
    let mut is_untouched = true;
    let mut rows = batch.rows.into_iter();
    while let Some(mut row) = rows.next() {
        match taken.offer(&mut row.json) {
            Offered::Taken => {
                taken.priced.add(row.priced);
                last.take(row.mark);
                is_untouched = false;
            }
            Offered::Full => {
                // A document that was read ahead and is left to the next page is that one's to count.
                if !(is_untouched && matches!(row.mark, RowMark::Document(_, None))) {
                    execution.count(batch.counts);
                }
                let place = RowSource::position(last, &row.mark, &order.directions());
                return Some((place, std::iter::once(row).chain(rows).collect()));
            }
            Offered::Done => return Some((None, Vec::new())),
        }
    }
    execution.count(batch.counts);
    let place = match (batch.end, batch.after) {
        _ if taken.is_done() => None,
        (Some(end), _) => Some(end),
        (None, Some(after)) if taken.is_full() => Some(after),
        _ => return None,
    };
    Some((place, Vec::new()))
}

/// Where a page begins.
struct PageStart {
    /// The row that it comes after in an order.
    after: Option<AfterRow>,
    /// The position, where it is no row of an order.
    place: Option<ResumePlace>,
    order: RowOrder,
    /// The position that was given, if its keys are long.
    prior: Option<Box<LongKey>>,
}

async fn start(
    execution: &mut Execution<'_>,
    input: &Input,
    (from, place): (Option<&OrderStart>, Option<ResumePlace>),
) -> Result<PageStart, ExecuteError> {
    let plan = execution.plan;
    let index = if let Input::Container(_, _, Some(index)) = input { Some(&**index) } else { None };
    let order = RowOrder::new(plan.order_keys(), has_reversed_ties(plan, index));
    let from = from.map(|from| from.row(plan, &order.directions())).transpose()?;
    let is_ordered = plan.grouping.is_none() && (plan.distinct || matches!(plan.order, Order::Keys(_)));
    if !is_ordered {
        return Ok(PageStart { after: None, place, order, prior: None });
    }
    let prior = long_key(place.as_ref());
    let after = match place {
        Some(ResumePlace::LongKey(long)) => {
            let last = find_keys(execution, input, long.last).await?;
            let next = find_keys(execution, input, long.next).await?;
            Some(long.after(last, next, &order.directions()))
        }
        place => resume_after(place)?,
    };
    let after = match (from, after) {
        (Some(from), None) => Some(AfterRow::from(from)),
        (Some(from), Some(after))
            if order.compare((&from.0, from.1), (&after.row.0, after.row.1)).is_gt() =>
        {
            Some(AfterRow { row: from, ..after })
        }
        (_, after) => after,
    };
    Ok(PageStart { after, place: None, order, prior })
}

/// The position that a page begins at, if its keys are long.
fn long_key(place: Option<&ResumePlace>) -> Option<Box<LongKey>> {
    if let Some(ResumePlace::LongKey(long)) = place { Some(Box::new(long.clone())) } else { None }
}

/// The range that a page of rows in order of insertion is in.
fn streamed_range(
    plan: &QueryPlan,
    input: &Input,
    place: Option<&ResumePlace>,
) -> Result<Option<u32>, ExecuteError> {
    let Input::Container(reader, scope, _) = input else { return Ok(None) };
    Ok(match place {
        _ if !plan.is_streamed() => None,
        Some(ResumePlace::Stream(Some(position), _)) => Some(position.range_id()),
        _ => reader.ranges(scope)?.first().map(|range| range.id),
    })
}

/// What a page asks of the choice.
fn demand(
    limits: &Limits,
    input: &Input,
    taken: &PageLimiter,
    (place, after): (&Option<ResumePlace>, Option<&AfterRow>),
) -> PageDemand {
    let is_in_key_order = match (input, place) {
        (Input::Container(_, scope, _), Some(ResumePlace::Stream(position, _))) => {
            number_before(scope, position.as_ref()).is_none()
        }
        _ => false,
    };
    PageDemand {
        rows: taken.wanted(),
        index_use: limits.index_use,
        is_lacking: is_lacking(after),
        is_in_key_order,
        needs_documents: false,
    }
}

/// The ways to documents, as `sql-plan` chooses them.
async fn choose<'p, 'a>(
    plan: &QueryPlan,
    ranges: Option<&'p PageRanges<'a>>,
    demand: PageDemand,
) -> Result<PageAccess<'p, 'a>, ExecuteError> {
    let Some(ranges) = ranges else {
        return Ok(PageAccess { ranges: Vec::new(), physical: PhysicalPlan::of_all(plan) });
    };
    let mut known = ranges.known()?;
    let physical = choose_page(plan, ranges.plan, demand, &mut known).await?;
    Ok(PageAccess { ranges: known, physical })
}

/// What the operators of a page are opened with.
struct PageParts<'t, 'a> {
    input: &'a Input,
    after: Option<AfterRow>,
    place: Option<ResumePlace>,
    order: RowOrder,
    taken: &'t PageLimiter,
}

impl PageParts<'_, '_> {
    fn collector(&self, execution: &Execution<'_>) -> Collector {
        let (order, after) = (self.order.clone(), self.after.clone());
        Collector::new(execution.plan, order, after, self.taken.wanted(), execution.budget.limits())
    }
}

/// The rows that the index alone tells, if it does after all.
async fn answer(
    execution: &mut Execution<'_>,
    access: &mut PageAccess<'_, '_>,
    parts: &mut PageParts<'_, '_>,
) -> Result<Option<Finished>, ExecuteError> {
    let began = Instant::now();
    let mut asking = Asking::default();
    let answer = asking.answer(access).await?;
    execution.count(asking.work);
    execution.access.lookup += began.elapsed();
    let plan = execution.plan;
    match (answer, &plan.grouping) {
        (None, _) => Ok(None),
        (Some(answer), Some(grouping)) => {
            let Some(groups) = groups_of_index(execution, answer, grouping)? else { return Ok(None) };
            Finished::grouped(execution, groups, parts.place.clone(), parts.taken.wanted()).map(Some)
        }
        (Some(IndexOnlyAnswer::Values(path, values)), None) => {
            let collector = parts.collector(execution);
            Finished::of_values(execution, (path, values), collector).map(Some)
        }
        (Some(IndexOnlyAnswer::One(_)), None) => Ok(None),
    }
}

/// Opens the operators of a plan.
async fn open<'a>(
    execution: &mut Execution<'a>,
    access: &mut PageAccess<'_, 'a>,
    parts: PageParts<'_, 'a>,
) -> Result<RowSource<'a>, ExecuteError> {
    let (plan, input, taken) = (execution.plan, parts.input, parts.taken);
    let rows = match (access.physical.form, &plan.order, &plan.grouping) {
        (PageForm::Streamed, ..) => {
            let found = match access.ways().next() {
                Some((index, planned)) => index.found(planned).await?,
                None => None,
            };
            let rows = StreamRows::open(execution, input, found, parts.place, taken.wanted())?;
            return Ok(RowSource::Stream(rows));
        }
        (PageForm::Merged, ..) => {
            let Input::Container(reader, scope, Some(index)) = input else {
                return Err(ExecuteError::ForeignPosition);
            };
            let Some(ordered) = &index.order else { return Err(ExecuteError::ForeignPosition) };
            let scanned = Scanned { reader, scope, plan: index, ordered, wanted: taken.wanted() };
            let rows = MergeOfRanges::open(execution, scanned, parts.after.as_ref(), access);
            return Ok(RowSource::Merged(rows));
        }
        (PageForm::Ranked, Order::Rank(components), _) => {
            if !matches!(parts.place, None | Some(ResumePlace::Count)) {
                return Err(ExecuteError::ForeignPosition);
            }
            let before = taken.given + taken.skipped;
            Finished::ranked(execution, input, access, components, before).await?
        }
        (PageForm::Grouped, _, Some(grouping)) => {
            let groups = Finished::groups(execution, input, access, grouping).await?;
            Finished::grouped(execution, groups, parts.place, taken.wanted())?
        }
        _ => {
            let collector = parts.collector(execution);
            Finished::collected(execution, input, access, collector).await?
        }
    };
    Ok(RowSource::Finished(rows))
}
