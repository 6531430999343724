//! Opens the ways to documents that were chosen (`sql-plan::physical`), and tells what the choice depends on.
//!
//! In: an [`IndexPlan`], the ranges of a page. Out: what is known of each range; numbers of documents in their order, or nothing
//! where all are scanned.
//! Invariant: documents come in the order of their numbers by every way.

use crate::error::ExecuteError;
use crate::expired::Expired;
use crate::rows::Input;
use astrarium_catalog::container::Range;
use astrarium_index::{Candidates, Finder, IndexSet, Ordered, Served};
use astrarium_keys::index_entry::Family;
use astrarium_sql_plan::physical::{
    AccessPath, IndexPlan, KnownRange, OrderEntries, PhysicalPlan, PlannedAccess, Statistics,
};
use astrarium_store::{FeedError, FeedReader, FeedScope};
use std::pin::Pin;
use std::sync::Arc;

/// How a query's documents are found in one range.
pub(crate) struct Found {
    pub(crate) finder: Finder,
    pub(crate) candidates: Candidates,
}

/// The ranges that a page looks at, with their indexes.
pub(crate) struct PageRanges<'a> {
    pub(crate) reader: &'a FeedReader,
    pub(crate) plan: &'a IndexPlan,
    ranges: Vec<(&'a Range, Option<Served>)>,
}

impl<'a> PageRanges<'a> {
    /// The ranges of an input, or the one with this id; nothing if there is nothing to choose.
    pub(crate) fn of(input: &'a Input, only: Option<u32>) -> Result<Option<PageRanges<'a>>, ExecuteError> {
        let Input::Container(reader, scope, Some(plan)) = input else { return Ok(None) };
        if !plan.has_choice() {
            return Ok(None);
        }
        let mut ranges = reader.ranges(scope)?;
        ranges.retain(|range| only.is_none_or(|id| range.id == id));
        let set = &plan.indexes.active;
        let with_scope = |range| (range, scope_entries(set, reader, scope, range));
        Ok(Some(PageRanges { reader, plan, ranges: ranges.into_iter().map(with_scope).collect() }))
    }

    /// What is known of them.
    pub(crate) fn known(&self) -> Result<Vec<KnownRange<'_, RangeIndex<'a>>>, ExecuteError> {
        let known = self.ranges.iter().map(|(range, scope)| {
            let statistics = RangeIndex::new(self.reader, range, self.plan)?;
            Ok(KnownRange { statistics, scope: scope.as_ref() })
        });
        known.collect()
    }
}

/// The ways of a page to the documents of its ranges, ready to be gone.
pub(crate) struct PageAccess<'p, 'a> {
    pub(crate) ranges: Vec<KnownRange<'p, RangeIndex<'a>>>,
    pub(crate) physical: PhysicalPlan<'p>,
}

impl<'p, 'a> PageAccess<'p, 'a> {
    /// Each range with the way to its documents; nothing if all are read.
    pub(crate) fn ways(&mut self) -> impl Iterator<Item = (&mut RangeIndex<'a>, &PlannedAccess<'p>)> {
        self.ranges.iter_mut().map(|range| &mut range.statistics).zip(&self.physical.accesses)
    }
}

/// What looks into the indexes of a range.
pub(crate) fn finder(reader: &FeedReader, range: &Range) -> Result<Finder, FeedError> {
    Ok(Finder { snapshot: Arc::clone(reader.view(range.shard)?), shard: range.shard.0 })
}

/// About how many documents an input has, where an index can tell.
pub(crate) async fn document_count(input: &Input) -> Result<Option<u64>, ExecuteError> {
    let Input::Container(reader, scope, Some(plan)) = input else { return Ok(None) };
    let set = &plan.indexes.active;
    if !set.is_used() {
        return Ok(None);
    }
    let mut count = 0;
    for range in reader.ranges(scope)? {
        let finder = finder(reader, range)?;
        count += match scope_entries(set, reader, scope, range) {
            Some(served) => finder.estimate(&served).await?,
            None => finder.count(set.documents()).await?,
        };
    }
    Ok(Some(count))
}

/// The entries of a scope, if it is not a whole range.
fn scope_entries(set: &IndexSet, reader: &FeedReader, scope: &FeedScope, range: &Range) -> Option<Served> {
    let is_one = match scope {
        FeedScope::All | FeedScope::Range(_) => return None,
        FeedScope::Partition(_) => true,
        FeedScope::Slice(_) => false,
    };
    Some(set.partitions(reader.slice(scope, range).partitions(), is_one))
}

/// What is known of the documents that have expired.
enum ExpiredEntries {
    /// Nobody has asked.
    Unasked,
    /// The index does not tell.
    Untold,
    Known(Expired),
}

/// The indexes of one range: what is known of them, and what of them is open.
pub(crate) struct RangeIndex<'a> {
    pub(crate) range: &'a Range,
    reader: &'a FeedReader,
    pub(crate) finder: Finder,
    set: &'a IndexSet,
    /// Postings whose first entries were read for a choice, by the address of what describes them, which stays where it is
    /// while a page is made.
    opened: Vec<(usize, Candidates)>,
    expired: ExpiredEntries,
}

impl<'a> RangeIndex<'a> {
    fn new(
        reader: &'a FeedReader,
        range: &'a Range,
        plan: &'a IndexPlan,
    ) -> Result<RangeIndex<'a>, ExecuteError> {
        let (finder, set) = (finder(reader, range)?, &plan.indexes.active);
        Ok(RangeIndex { range, reader, finder, set, opened: Vec::new(), expired: ExpiredEntries::Unasked })
    }

    /// The container's indexes.
    pub(crate) fn set(&self) -> &'a IndexSet {
        self.set
    }

    /// What has expired, if it was asked for and the index tells.
    pub(crate) fn expired(&self) -> Option<&Expired> {
        if let ExpiredEntries::Known(expired) = &self.expired { Some(expired) } else { None }
    }

    /// What looks up the documents of a chosen way; none for all documents.
    pub(crate) async fn found(&mut self, access: &PlannedAccess<'_>) -> Result<Option<Found>, ExecuteError> {
        let candidates = self.open(access).await?;
        Ok(candidates.map(|candidates| Found { finder: self.finder.clone(), candidates }))
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
        let left_out = self.finder.whole_family(self.set.excluded());
        let mut all = Candidates::union(vec![found, left_out]);
        all.exact = false;
        Ok(Some(all))
    }

    /// The numbers of documents that have no entry in a family, in order, and how many entries were read.
    pub(crate) async fn lacking(&self, family: Family) -> Result<(Vec<u64>, u64), ExecuteError> {
        lacking(&self.finder, self.set, family).await
    }

    async fn postings(&mut self, access: &PlannedAccess<'_>) -> Result<Option<Candidates>, ExecuteError> {
        Ok(Some(match &access.path {
            AccessPath::Empty => Candidates::none(),
            AccessPath::Seek(served) => self.terms(served).await?,
            AccessPath::Composite(served) if served.is_terms() => self.terms(served).await?,
            AccessPath::Range(served) | AccessPath::Composite(served) => self.finder.range(served).await?,
            AccessPath::Intersection(parts) => Candidates::intersection(self.parts(parts).await?),
            AccessPath::Union(parts) => Candidates::union(self.parts(parts).await?),
            AccessPath::Scan | AccessPath::OrderedScan(..) | AccessPath::IndexOnly(_) => return Ok(None),
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

impl Statistics for RangeIndex<'_> {
    type Error = ExecuteError;

    async fn documents(&mut self) -> Result<u64, ExecuteError> {
        Ok(self.finder.count(self.set.documents()).await?)
    }

    async fn excluded(&mut self) -> Result<u64, ExecuteError> {
        Ok(self.finder.count(self.set.excluded()).await?)
    }

    async fn estimate(&mut self, served: &Served) -> Result<u64, ExecuteError> {
        Ok(self.finder.estimate(served).await?)
    }

    async fn seek(&mut self, served: &Served) -> Result<u64, ExecuteError> {
        if let Some((_, known)) = self.opened.iter().find(|(own, _)| *own == address(served)) {
            return Ok(known.estimate);
        }
        let found = self.finder.seek(served).await?;
        let estimate = found.estimate;
        self.opened.push((address(served), found));
        Ok(estimate)
    }

    async fn knows_expired(&mut self) -> Result<bool, ExecuteError> {
        if matches!(self.expired, ExpiredEntries::Unasked) {
            let is_told = self.range.erasures.is_empty();
            let found =
                if is_told { Expired::find(self.reader, self.set, &self.finder).await? } else { None };
            self.expired = found.map_or(ExpiredEntries::Untold, ExpiredEntries::Known);
        }
        Ok(self.expired().is_some())
    }

    async fn order(&mut self, ordered: &Ordered) -> Result<OrderEntries, ExecuteError> {
        let all = if ordered.complete { 0 } else { self.finder.count(ordered.family).await? };
        Ok(OrderEntries { all, within: self.finder.estimate_range(ordered.family, &ordered.within).await? })
    }
}

/// The numbers of documents that have no entry in a family, in order, and how many entries were read.
pub(crate) async fn lacking(
    finder: &Finder,
    set: &IndexSet,
    family: Family,
) -> Result<(Vec<u64>, u64), ExecuteError> {
    let (mut all, all_entries) = finder.numbers(set.documents()).await?;
    let (with, with_entries) = finder.numbers(family).await?;
    let mut with = with.into_iter().peekable();
    all.retain(|number| {
        while with.next_if(|other| other < number).is_some() {}
        with.peek() != Some(number)
    });
    Ok((all, all_entries + with_entries))
}

fn address(served: &Served) -> usize {
    std::ptr::from_ref(served).addr()
}
