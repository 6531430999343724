//! The operators of a query, one file each.
//!
//! Within a document, rows are pushed: `join` binds sources, `filter` checks conditions, `project` makes the row. Between
//! documents rows are pulled in batches: [`RowSource`] is what stands on top of a page, and each of its forms says after every
//! row where a next page goes on ([`RowMark`]).
//! - `stream`: rows as documents are found, in order of insertion;
//! - `merge`: rows in the order of an index, of one range or merged from several (`ordered_scan` reads one of them);
//! - `finished`: rows that are known only when all documents were seen: `top_k`, `distinct`, `group`, `rank`, sorted by `sort`;
//! - `limit`: takes rows into the page.
//!
//! A new operator is a file here; if it needs all documents first, it is a `DocumentSink` (`scan`) that `finished` opens.

pub(crate) mod distinct;
pub(crate) mod filter;
pub(crate) mod finished;
pub(crate) mod group;
pub(crate) mod join;
pub(crate) mod limit;
pub(crate) mod merge;
pub(crate) mod ordered_scan;
pub(crate) mod project;
pub(crate) mod rank;
pub(crate) mod sort;
pub(crate) mod stream;
pub(crate) mod top_k;

use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::long_key::{Directions, LastRow, LongKey, Neighbours, is_long};
use crate::resume::{PartialDocument, ResumePlace};
use crate::rows::{AccessWork, PricedWork};
use astrarium_store::FeedPosition;
use astrarium_value::Value;
use finished::Finished;
use group::RowPlace;
use limit::PageLimiter;
use merge::MergeOfRanges;
use stream::StreamRows;

/// A row on its way into a page.
pub(crate) struct OutputRow {
    pub(crate) json: Vec<u8>,
    pub(crate) mark: RowMark,
    /// What it costs where rows come in the order of an index: its document, and those before it that gave no row.
    pub(crate) priced: PricedWork,
}

/// Where a row is.
#[derive(Debug)]
pub(crate) enum RowMark {
    /// In a document: the position right before that, and where in it, if it gives several rows.
    Document(Option<FeedPosition>, Option<PartialDocument>),
    /// In an order: its sort keys, its document, its index there.
    Ordered(LastRow),
    /// In a ranking, where rows are counted: its document, its index there.
    Counted(RowPlace),
}

/// The last row that a page has taken, and what a position after it needs besides.
#[derive(Default)]
pub(crate) struct LastTaken {
    last: Option<RowMark>,
    /// The keys of the row before it that has others, where they are long.
    before: Option<Vec<Value>>,
    /// The position that the page began at, if its keys are long.
    prior: Option<Box<LongKey>>,
}

impl LastTaken {
    /// Of a page that has taken none yet.
    pub(crate) fn of_page(prior: Option<Box<LongKey>>) -> LastTaken {
        LastTaken { prior, ..LastTaken::default() }
    }

    /// Notes that the page took a row.
    pub(crate) fn take(&mut self, mark: RowMark) {
        if let (Some(RowMark::Ordered((last, _))), RowMark::Ordered((keys, _))) = (&mut self.last, &mark)
            && is_long(keys)
            && last != keys
        {
            self.before = Some(std::mem::take(last));
        }
        self.last = Some(mark);
    }
}

/// Rows that follow each other.
#[derive(Default)]
pub(crate) struct RowBatch {
    pub(crate) rows: Vec<OutputRow>,
    /// What was read for them and is not counted yet.
    pub(crate) counts: AccessWork,
    /// Where a next page goes on if this one is full after the last of them; none if it has to see another row first.
    pub(crate) after: Option<ResumePlace>,
    /// Where a next page goes on because this one ends here, full or not.
    pub(crate) end: Option<ResumePlace>,
}

/// What stands on top of a page.
#[expect(
    clippy::large_enum_variant,
    reason = "a page has one of it, and the largest is the common one, which shall not allocate"
)]
pub(crate) enum RowSource<'a> {
    Stream(StreamRows<'a>),
    Merged(MergeOfRanges<'a>),
    Finished(Finished),
}

impl RowSource<'_> {
    /// The next rows; none at the end.
    pub(crate) async fn next(
        &mut self,
        execution: &mut Execution<'_>,
        taken: &PageLimiter,
    ) -> Result<Option<RowBatch>, ExecuteError> {
        match self {
            RowSource::Stream(rows) => rows.next(execution, taken).await,
            RowSource::Merged(rows) => rows.next(execution).await,
            RowSource::Finished(rows) => Ok(rows.next()),
        }
    }

    /// Whether the rows come in the order of an index without sorting, and whether each page looks at documents of its own.
    pub(crate) fn order(&self) -> (bool, bool) {
        (matches!(self, RowSource::Merged(_)), !matches!(self, RowSource::Finished(_)))
    }

    /// Where a page goes on that ends between two rows; none if nothing was given, so that it would not get further.
    pub(crate) fn position(
        taken: &mut LastTaken,
        next: &RowMark,
        directions: &Directions<'_>,
    ) -> Option<ResumePlace> {
        match (taken.last.take(), next) {
            (_, RowMark::Document(position, partial)) => {
                Some(ResumePlace::Stream(position.clone(), partial.clone()))
            }
            (_, RowMark::Counted(_)) => Some(ResumePlace::Count),
            (Some(RowMark::Ordered(last)), RowMark::Ordered(next)) => {
                Some(if directions.descending.is_empty() {
                    ResumePlace::Row(last.1.0, last.1.1)
                } else {
                    let (before, prior) = (taken.before.as_deref(), taken.prior.as_deref());
                    directions.between(last, &Neighbours { before, next, prior })
                })
            }
            (_, RowMark::Ordered(_)) => None,
        }
    }
}
