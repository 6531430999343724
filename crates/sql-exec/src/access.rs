//! Opens the way to documents that was chosen (`sql-plan::physical`), and tells what the choice depends on.
//!
//! In: an [`IndexPlan`], a range, a demand. Out: numbers of documents in their order, or nothing where all are scanned.
//! Invariant: the choice changes nothing but the cost. Documents come in the order of their numbers either way, and every
//! filter is checked on each of them.

use crate::budget::Gauge;
use crate::error::ExecuteError;
use astrarium_catalog::container::Range;
use astrarium_index::{Access, Candidates, Finder, IndexSet, Indexes, Ordered, Served};
use astrarium_sql_plan::physical::{
    AccessPath, Demand, IndexPlan, IndexUse, OrderEntries, PlannedAccess, Statistics, choose_postings,
};
use astrarium_store::{FeedError, FeedReader, FeedScope};
use std::pin::Pin;
use std::sync::Arc;

/// How a query's documents are found in one range.
pub(crate) struct Found {
    pub(crate) finder: Finder,
    pub(crate) candidates: Candidates,
}

/// What looks into the indexes of a range.
pub(crate) fn finder(reader: &FeedReader, range: &Range) -> Result<Finder, FeedError> {
    Ok(Finder { snapshot: Arc::clone(reader.view(range.shard)?), shard: range.shard.0 })
}

/// The entries of a scope, if it is not a whole range.
pub(crate) fn scope_entries(
    set: &IndexSet,
    reader: &FeedReader,
    scope: &FeedScope,
    range: &Range,
) -> Option<Served> {
    let is_one = match scope {
        FeedScope::All | FeedScope::Range(_) => return None,
        FeedScope::Partition(_) => true,
        FeedScope::Slice(_) => false,
    };
    Some(set.partitions(reader.slice(scope, range).partitions(), is_one))
}

/// The indexes of one range: what is known of them, and what of them is open.
pub(crate) struct RangeIndex {
    finder: Finder,
    indexes: Arc<Indexes>,
    /// Postings whose first entries were read for a choice, by the address of what describes them, which stays where it is
    /// while a page is made.
    opened: Vec<(usize, Candidates)>,
}

impl RangeIndex {
    pub(crate) fn new(finder: Finder, plan: &IndexPlan) -> RangeIndex {
        RangeIndex { finder, indexes: Arc::clone(&plan.indexes), opened: Vec::new() }
    }

    pub(crate) fn into_finder(self) -> Finder {
        self.finder
    }

    /// The documents of a chosen way, and those left out of the index, which may belong too; none for all documents.
    pub(crate) async fn open(
        &mut self,
        access: &PlannedAccess<'_>,
    ) -> Result<Option<Candidates>, ExecuteError> {
        let Some(found) = self.postings(access).await? else { return Ok(None) };
        if self.excluded().await? == 0 {
            return Ok(Some(found));
        }
        let left_out = self.finder.whole_family(self.indexes.active.excluded());
        let mut all = Candidates::union(vec![found, left_out]);
        all.exact = false;
        Ok(Some(all))
    }

    async fn postings(&mut self, access: &PlannedAccess<'_>) -> Result<Option<Candidates>, ExecuteError> {
        Ok(Some(match &access.path {
            AccessPath::Empty => Candidates::none(),
            AccessPath::Seek(served) => self.terms(served).await?,
            AccessPath::Composite(served) if served.is_terms() => self.terms(served).await?,
            AccessPath::Range(served) | AccessPath::Composite(served) => self.finder.range(served).await?,
            AccessPath::Intersection(parts) => Candidates::intersection(self.parts(parts).await?),
            AccessPath::Union(parts) => Candidates::union(self.parts(parts).await?),
            AccessPath::Scan | AccessPath::OrderedScan(..) | AccessPath::IndexOnly => return Ok(None),
        }))
    }

    fn parts<'s>(
        &'s mut self,
        parts: &'s [PlannedAccess<'s>],
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Candidates>, ExecuteError>> + Send + 's>> {
        Box::pin(async move {
            let mut opened = Vec::with_capacity(parts.len());
            for part in parts {
                opened.extend(self.postings(part).await?);
            }
            Ok(opened)
        })
    }

    async fn terms(&mut self, served: &Served) -> Result<Candidates, ExecuteError> {
        match self.opened.iter().position(|(own, _)| *own == address(served)) {
            Some(place) => Ok(self.opened.swap_remove(place).1),
            None => Ok(self.finder.seek(served).await?),
        }
    }
}

impl Statistics for RangeIndex {
    type Error = ExecuteError;

    async fn documents(&mut self) -> Result<u64, ExecuteError> {
        Ok(self.finder.count(self.indexes.active.documents()).await?)
    }

    async fn excluded(&mut self) -> Result<u64, ExecuteError> {
        Ok(self.finder.count(self.indexes.active.excluded()).await?)
    }

    async fn estimate(&mut self, served: &Served) -> Result<u64, ExecuteError> {
        Ok(self.finder.estimate(served).await?)
    }

    async fn seek(&mut self, served: &Served) -> Result<u64, ExecuteError> {
        let found = self.finder.seek(served).await?;
        let estimate = found.estimate;
        self.opened.push((address(served), found));
        Ok(estimate)
    }

    async fn order(&mut self, ordered: &Ordered) -> Result<OrderEntries, ExecuteError> {
        let all = if ordered.complete { 0 } else { self.finder.count(ordered.family).await? };
        Ok(OrderEntries { all, within: self.finder.estimate_range(ordered.family, &ordered.within).await? })
    }
}

fn address(served: &Served) -> usize {
    std::ptr::from_ref(served).addr()
}

/// Finds documents of one range.
pub(crate) struct RangeSearch<'a> {
    pub(crate) plan: &'a IndexPlan,
    pub(crate) reader: &'a FeedReader,
    pub(crate) scope: &'a FeedScope,
    pub(crate) index_use: IndexUse,
    pub(crate) gauge: &'a Gauge,
}

impl RangeSearch<'_> {
    /// The documents of a range for a query that looks at all of them, in any order; `None` if a scan is cheaper.
    pub(crate) async fn all(&self, range: &Range) -> Result<Option<Found>, ExecuteError> {
        self.find(range, u64::MAX, false).await
    }

    /// The documents of a range for a query that gives rows in order of insertion, so many a page; `None` if reading in
    /// that order is cheaper.
    pub(crate) async fn in_order(
        &self,
        range: &Range,
        row_count: usize,
    ) -> Result<Option<Found>, ExecuteError> {
        self.find(range, row_count as u64, true).await
    }

    async fn find(&self, range: &Range, rows: u64, in_order: bool) -> Result<Option<Found>, ExecuteError> {
        if self.index_use == IndexUse::Never || self.plan.access == Access::Everything {
            return Ok(None);
        }
        let set = &self.plan.indexes.active;
        let scope = scope_entries(set, self.reader, self.scope, range);
        let mut index = RangeIndex::new(finder(self.reader, range)?, self.plan);
        let demand =
            Demand { rows, in_order, whole: false, scope: scope.as_ref(), index_use: self.index_use };
        let planned = choose_postings(self.plan, &demand, &mut index).await?;
        self.gauge.note(range.id, &planned);
        let candidates = index.open(&planned).await?;
        Ok(candidates.map(|candidates| Found { finder: index.into_finder(), candidates }))
    }
}
