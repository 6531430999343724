//! Whether an index finds a query's documents, and the documents it finds.
//!
//! In: what the indexes could serve ([`IndexPlan`]), the scope of the query. Out: for each range, numbers of documents, or
//! nothing where reading everything is cheaper.
//! Invariant: the choice changes nothing but the cost. Documents come in the order of their numbers either way, and every
//! filter is checked on each of them.

use crate::budget::IndexUse;
use crate::page::ExecuteError;
use astrarium_catalog::container::Range;
use astrarium_index::{Access, Candidates, Finder, Indexes, Ordered, Served, Wanted};
use astrarium_sql_plan::needs::IndexOnly;
use astrarium_store::{FeedReader, FeedScope, KeySlice};
use std::sync::Arc;

/// What indexes could do for a query.
#[derive(Clone)]
pub struct IndexPlan {
    /// The container's indexes.
    pub indexes: Arc<Indexes>,
    /// Documents that can pass the filter.
    pub access: Access,
    /// Entries in the query's order.
    pub order: Option<Ordered>,
    /// What of the index could answer the query alone.
    pub only: Option<IndexOnly>,
}

/// Reading a document by its number costs about so many times what it costs in a scan.
pub(crate) const BY_NUMBER_COST: u64 = 3;
/// A scope of so few documents is read whole.
const SMALL_SCOPE: u64 = 64;
/// Nanoseconds to read and sort one entry, and to look at one document in order of insertion.
const ENTRY_COST: u64 = 40;
const DOCUMENT_COST: u64 = 3_000;

/// How a query's documents are found in one range.
pub(crate) struct Found {
    pub(crate) finder: Finder,
    pub(crate) candidates: Candidates,
}

/// What looks into the indexes of a range.
pub(crate) fn finder(reader: &FeedReader, range: &Range) -> Finder {
    Finder { snapshot: Arc::clone(&reader.snapshot), shard: range.shard.0 }
}

/// Finds documents of one range.
pub(crate) struct Search<'a> {
    pub(crate) plan: &'a IndexPlan,
    pub(crate) reader: &'a FeedReader,
    pub(crate) scope: &'a FeedScope,
    pub(crate) index_use: IndexUse,
}

impl Search<'_> {
    /// The entries of the scope, if it is not the whole range, and about how many documents it has.
    async fn scoped(&self, finder: &Finder, slice: &KeySlice) -> Result<(Option<Served>, u64), ExecuteError> {
        let set = &self.plan.indexes.active;
        let is_one = match self.scope {
            FeedScope::All | FeedScope::Range(_) => {
                return Ok((None, finder.count(set.documents()).await?));
            }
            FeedScope::Partition(_) => true,
            FeedScope::Slice(_) => false,
        };
        let scope = set.partitions(slice.partitions(), is_one);
        let size = finder.estimate(&scope).await?;
        Ok((Some(scope), size))
    }

    /// The documents of a range for a query that looks at all of them, in any order; `None` if a scan is cheaper.
    pub(crate) async fn all(&self, range: &Range) -> Result<Option<Found>, ExecuteError> {
        self.find(range, u64::MAX, |_, estimate, size| estimate.saturating_mul(BY_NUMBER_COST) < size).await
    }

    /// The documents of a range for a query that gives rows in order of insertion, so many a page; `None` if reading in
    /// that order is cheaper.
    pub(crate) async fn in_order(
        &self,
        range: &Range,
        row_count: usize,
    ) -> Result<Option<Found>, ExecuteError> {
        let row_count = row_count as u64;
        self.find(range, row_count, |sorts, estimate, size| {
            if !sorts {
                return estimate < size;
            }
            let looked_at = row_count.saturating_mul(size / estimate.max(1)).min(size);
            estimate.saturating_mul(ENTRY_COST) < looked_at.saturating_mul(DOCUMENT_COST)
        })
        .await
    }

    async fn find(
        &self,
        range: &Range,
        document_count: u64,
        is_worth_it: impl FnOnce(bool, u64, u64) -> bool,
    ) -> Result<Option<Found>, ExecuteError> {
        let set = &self.plan.indexes.active;
        let never = self.index_use == IndexUse::Never;
        if never || !set.is_used() || self.plan.access == Access::Everything {
            return Ok(None);
        }
        let finder = finder(self.reader, range);
        let slice = self.reader.slice(self.scope, range);
        let (scope, size) = self.scoped(&finder, &slice).await?;
        if self.index_use == IndexUse::ByCost && scope.is_some() && size <= SMALL_SCOPE {
            return Ok(None);
        }
        let wanted = Wanted { document_count, scope_count: size };
        let chosen = finder.chosen(&self.plan.access, wanted).await?;
        let sorts = chosen.needs_sorting();
        let mut is_worth_it = Some(is_worth_it).filter(|_| self.index_use == IndexUse::ByCost);
        // Where nothing has to be sorted, preparing tells how many documents there are, and costs no more than an estimate.
        let cheap = !sorts && scope.as_ref().is_none_or(Served::is_terms);
        if !cheap && let Some(is_worth_it) = is_worth_it.take() {
            let estimate = finder.rough_estimate(&chosen).await?;
            if !is_worth_it(sorts, estimate, size) {
                return Ok(None);
            }
        }
        let access = match (scope.map(Access::Entries), chosen) {
            (None, access) => access,
            (Some(scope), Access::All(parts)) => Access::All(std::iter::once(scope).chain(parts).collect()),
            (Some(scope), access) => Access::All(vec![scope, access]),
        };
        let candidates = finder.candidates(set, &access, false).await?.filter(|candidates| {
            is_worth_it.is_none_or(|is_worth_it| is_worth_it(sorts, candidates.estimate, size))
        });
        Ok(candidates.map(|candidates| Found { finder, candidates }))
    }
}
