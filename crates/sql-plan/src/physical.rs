//! The physical plan: by which way documents are found, chosen here and nowhere else.
//!
//! In: a logical plan, what the container's indexes could do for it ([`IndexPlan`]), and [`Statistics`] of ranges of
//! documents. Out: a [`PhysicalPlan`]: what stands on top of a page, and an [`AccessPath`] for each range with what it is
//! expected to find. `sql-exec` carries it out, and `explain` prints it.
//! - `index_plan`: what indexes could do, which depends on the query and the policy, not on data;
//! - `utilization`: the same as index metrics tell it;
//! - `page_plan`: what stands on top of a page;
//! - `answer`: whether the index alone answers;
//! - `ordered`: whether entries in the order of the query are read instead of sorting;
//! - `postings`: which postings are read to find the documents of a filter;
//! - `cost`: what all that costs;
//! - `priced`: what of it clients pay for, whatever was chosen.
//!
//! Invariants
//! - A choice changes costs, never rows: documents come in the same order by every path, and every filter is checked on
//!   each document unless the path is exact.
//! - A new kind of access (nearest neighbours, ranked text) is a variant here, its choice beside the others, and its cursor
//!   in `sql-exec`; positions and operators above do not know how documents are found.

mod answer;
mod index_plan;
mod ordered;
mod page_plan;
mod postings;
mod priced;
mod shown;
mod utilization;

pub use index_plan::{AnswerEntries, IndexPlan, OrderExcluded};
pub use ordered::{Lacking, OrderDemand, OrderWay, choose_order};
pub use page_plan::{KnownRange, PageDemand, PageForm, PhysicalPlan, choose_page, has_reversed_ties};
pub use postings::{Demand, choose_postings};
pub use priced::PricedFilter;
pub use utilization::IndexUtilization;

use astrarium_index::{Ordered, Path, Served};

/// When a query uses an index that could serve it. The answer is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexUse {
    /// When that is cheaper.
    #[default]
    ByCost,
    /// Whenever it can.
    Always,
    /// Not at all.
    Never,
}

/// How documents of one range are found, or what answers in their place.
#[derive(Debug, Clone, PartialEq)]
pub enum AccessPath<'a> {
    /// All documents of the scope are read.
    Scan,
    /// No document can pass.
    Empty,
    /// The postings of single terms, which are in the order of documents.
    Seek(&'a Served),
    /// The postings of ranges of terms, read whole and put in order.
    Range(&'a Served),
    /// The postings of one index for several conditions at once, single terms or ranges.
    Composite(&'a Served),
    /// The documents in all of these; the smallest leads, the others are galloped through.
    Intersection(Vec<PlannedAccess<'a>>),
    /// The documents in at least one of these.
    Union(Vec<PlannedAccess<'a>>),
    /// Entries in the order of the query, and how documents without an entry are found.
    OrderedScan(&'a Ordered, Option<Lacking>),
    /// The index has the answer itself: no document is read.
    IndexOnly(IndexAnswer<'a>),
}

/// What of an index answers a query.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexAnswer<'a> {
    /// How many documents this way finds; all there are for a scan.
    Count(Box<PlannedAccess<'a>>),
    /// The value of the first or the last of these entries.
    Extreme {
        /// The entries.
        entries: &'a Served,
        /// Whether the last has it.
        maximum: bool,
    },
    /// The values of these entries, each with how many it has.
    Values {
        /// The entries.
        entries: &'a Served,
        /// The path that they are of.
        path: &'a Path,
        /// Whether documents without an entry are counted too, by a list of both.
        has_lacking: bool,
    },
}

/// A way to documents with what it is expected to find.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAccess<'a> {
    /// The way.
    pub path: AccessPath<'a>,
    /// About how many documents it finds.
    pub documents: u64,
    /// Whether they are exactly those that meet the need, as far as the index knows all documents.
    pub exact: bool,
    /// Entries that are put in order before the first document is known.
    pub(crate) sorted: u64,
    /// Nanoseconds that it is expected to take, where that was compared.
    pub(crate) cost: f64,
}

impl<'a> PlannedAccess<'a> {
    /// A way that finds about so many documents.
    pub fn of(path: AccessPath<'a>, documents: u64) -> PlannedAccess<'a> {
        PlannedAccess { path, documents, exact: false, sorted: 0, cost: 0.0 }
    }

    /// Reading all of so many documents.
    pub fn scan(documents: u64) -> PlannedAccess<'static> {
        PlannedAccess::of(AccessPath::Scan, documents)
    }

    /// About how many documents it finds, or values; none if nothing depended on it.
    pub fn expected(&self) -> Option<u64> {
        (self.documents > 0 || self.path != AccessPath::Scan).then_some(self.documents)
    }
}

/// What is known of a range of documents and its index, asked for when a choice depends on it.
pub trait Statistics: Send {
    /// Why the index cannot be read.
    type Error: Send;

    /// How many documents the range has.
    fn documents(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// How many of them are left out of the index.
    fn excluded(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// About how many entries there are, told without reading any.
    fn estimate(&mut self, served: &Served) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// About how many documents single terms have. The first of each are read, and kept for whoever opens the same terms:
    /// mostly they are all there are.
    fn seek(&mut self, served: &Served) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Whether the index tells which documents have expired. What it reads for that is kept for whoever leaves them out.
    fn knows_expired(&mut self) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// The entries of an order.
    fn order(&mut self, ordered: &Ordered) -> impl Future<Output = Result<OrderEntries, Self::Error>> + Send;
}

/// How many entries an order has in a range of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderEntries {
    /// All of them.
    pub all: u64,
    /// About how many the conditions of the query leave.
    pub within: u64,
}
