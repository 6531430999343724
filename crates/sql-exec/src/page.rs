//! One page of a query: opens the operators that its plan asks for, and takes their rows until the page is full.

use crate::budget::Limits;
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::kept::KeptRows;
use crate::operators::finished::{Collector, Finished, find_keys, resume_after};
use crate::operators::limit::{Offered, PageLimiter};
use crate::operators::merge::MergeOfRanges;
use crate::operators::ordered_scan::Scanned;
use crate::operators::sort::RowOrder;
use crate::operators::stream::StreamRows;
use crate::operators::{OutputRow, RowBatch, RowMark, RowSource};
use crate::report::{OperatorReport, reports};
use crate::resume::{Resume, ResumePlace};
use crate::rows::Input;
use crate::runtime::Runtime;
use crate::scan::Job;
use astrarium_sql_plan::plan::{Order, QueryPlan};
use std::sync::Arc;
use std::time::Duration;

/// A page of rows.
#[derive(Debug, Default)]
pub struct Page {
    /// Rows as JSON.
    pub rows: Vec<Vec<u8>>,
    /// Where to go on, if there may be more.
    pub resume: Option<Resume>,
    /// Documents looked at.
    pub documents: u64,
    /// Bytes of those documents.
    pub document_bytes: u64,
    /// How long rows that are streamed were looked for in indexes, and how long their documents were read.
    pub lookup_and_load: (Duration, Duration),
    /// Entries of indexes looked at.
    pub index_entries: u64,
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

/// Makes one page of a query.
pub async fn run(
    runtime: &Runtime,
    plan: &Arc<QueryPlan>,
    input: &Input,
    resume: Option<Resume>,
    limits: Limits,
) -> Result<Page, ExecuteError> {
    let job = Job::new(runtime, plan, limits);
    let mut taken = PageLimiter::new((plan.offset, plan.limit), &limits, resume.as_ref());
    if taken.is_done() {
        return Ok(Page::default());
    }
    let mut execution = Execution::new(&job);
    let opened = open(&mut execution, input, resume.map(|resume| resume.place), &taken).await?;
    let (in_index_order, incremental) = (opened.is_merged(), !opened.is_finished());
    let Opened { mut rows, order } = opened;
    let mut last: Option<RowMark> = None;
    let (mut place, mut kept) = (None, None);
    while let Some(batch) = rows.next(&mut execution, &taken).await? {
        if let Some((found, rest)) = take(&mut taken, &mut execution, batch, &mut last, &order) {
            place = found;
            if let (Some(_), RowSource::Finished(rows)) = (&place, &rows) {
                kept = rows.kept(rest, order.clone(), taken.given + taken.skipped, &limits);
            }
            break;
        }
    }
    let operators = reports(&execution, &taken);
    let resume = taken.resume(place);
    Ok(Page {
        rows: taken.rows,
        resume,
        kept,
        documents: execution.counts.documents,
        document_bytes: execution.counts.bytes,
        lookup_and_load: (execution.lookup, execution.load),
        index_entries: execution.counts.entries,
        reverse_ties: order.reverse_ties,
        in_index_order,
        incremental,
        operators,
    })
}

/// Makes one page of rows that a page before computed; nothing if they are not among them.
pub fn run_kept(plan: &QueryPlan, kept: &KeptRows, resume: &Resume, limits: Limits) -> Option<Page> {
    let rows = kept.after(resume)?;
    let mut taken = PageLimiter::new((plan.offset, plan.limit), &limits, Some(resume));
    let given_max = kept.given_max(rows);
    let (mut last, mut place) = (None, None);
    for (index, row) in rows.iter().enumerate() {
        let mark = if kept.is_ranked() {
            RowMark::Counted(row.place)
        } else {
            RowMark::Ordered((row.keys.clone(), row.place))
        };
        let offered = if index < given_max { taken.offer(&mut row.json.clone()) } else { Offered::Full };
        match offered {
            Offered::Taken => last = Some(mark),
            Offered::Full => {
                place = RowSource::position(last, &mark, &kept.order().directions());
                break;
            }
            Offered::Done => break,
        }
    }
    let resume = taken.resume(place);
    Some(Page { rows: taken.rows, resume, reverse_ties: kept.order().reverse_ties, ..Page::default() })
}

/// Where a page ended, if there may be more, and the rows that it did not take.
type PageEnd = (Option<ResumePlace>, Vec<OutputRow>);

/// Takes the rows of a batch into a page; tells if it ends with them.
fn take(
    taken: &mut PageLimiter,
    execution: &mut Execution<'_>,
    batch: RowBatch,
    last: &mut Option<RowMark>,
    order: &RowOrder,
) -> Option<PageEnd> {
    let mut is_untouched = true;
    let mut rows = batch.rows.into_iter();
    while let Some(mut row) = rows.next() {
        match taken.offer(&mut row.json) {
            Offered::Taken => (*last, is_untouched) = (Some(row.mark), false),
            Offered::Full => {
                // A document that was read ahead and is left to the next page is that one's to count.
                if !(is_untouched && matches!(row.mark, RowMark::Document(_, None))) {
                    execution.count(batch.counts);
                }
                let place = RowSource::position(last.take(), &row.mark, &order.directions());
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

/// The operators of a page.
struct Opened<'a> {
    rows: RowSource<'a>,
    order: RowOrder,
}

impl Opened<'_> {
    fn is_merged(&self) -> bool {
        matches!(self.rows, RowSource::Merged(_))
    }

    fn is_finished(&self) -> bool {
        matches!(self.rows, RowSource::Finished(_))
    }
}

async fn open<'a>(
    execution: &mut Execution<'a>,
    input: &'a Input,
    place: Option<ResumePlace>,
    taken: &PageLimiter,
) -> Result<Opened<'a>, ExecuteError> {
    let plan = execution.plan;
    let keys = plan.order_keys();
    let rows = match (&plan.order, &plan.grouping) {
        (Order::Rank(components), _) => {
            let before = taken.given + taken.skipped;
            Finished::ranked(execution, input, components, place, before).await?
        }
        (_, Some(grouping)) => Finished::grouped(execution, input, grouping, place, taken.wanted()).await?,
        (Order::None, None) if !plan.distinct => {
            let rows = RowSource::Stream(StreamRows::open(execution, input, place)?);
            return Ok(Opened { rows, order: RowOrder::default() });
        }
        _ => return open_ordered(execution, input, place, taken.wanted()).await,
    };
    Ok(Opened { rows: RowSource::Finished(rows), order: RowOrder::new(keys, false) })
}

/// Sorted or distinct rows.
async fn open_ordered<'a>(
    execution: &mut Execution<'_>,
    input: &'a Input,
    place: Option<ResumePlace>,
    wanted: u64,
) -> Result<Opened<'a>, ExecuteError> {
    let plan = execution.plan;
    let keys = plan.order_keys();
    let indexed = match input {
        Input::Container(reader, scope, Some(index)) => {
            index.order.as_ref().map(|ordered| Scanned { reader, scope, plan: index, ordered, wanted })
        }
        _ => None,
    };
    let first_descends = keys.first().is_some_and(|key| key.descending);
    // A value that comes once comes from its first document, whatever reads it: a position names that document.
    let backward = indexed.map_or(first_descends, |scanned| scanned.ordered.backward);
    let order = RowOrder::new(keys, !plan.distinct && backward);
    let after = match place {
        Some(ResumePlace::LongKey(long)) => {
            let last = find_keys(execution, input, long.last).await?;
            let next = find_keys(execution, input, long.next).await?;
            Some(long.after(last, next, &order.directions()))
        }
        place => resume_after(place)?,
    };
    if let Some(scanned) = indexed.filter(|_| !plan.distinct) {
        let index_use = execution.budget.limits().index_use;
        if let Some(rows) = MergeOfRanges::open(execution, scanned, after.as_ref(), index_use).await? {
            return Ok(Opened { rows: RowSource::Merged(rows), order });
        }
    }
    let collector = Collector::new(plan, order.clone(), after, wanted, execution.budget.limits());
    let rows = Finished::collected(execution, input, collector).await?;
    Ok(Opened { rows: RowSource::Finished(rows), order })
}
