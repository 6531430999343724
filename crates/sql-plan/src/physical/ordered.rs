//! Whether the rows of ORDER BY come from entries in that order, or are sorted.
//!
//! Entries in order cost as many documents as the page has to look at until it is full; sorting costs all documents that
//! pass the filter, for every page. Over several ranges the entries of all of them are merged, so it is one choice for all.
//! An index of one path has no entries for documents without it; those are equal in the order, before all others.

use super::postings::rough_estimate;
use super::{IndexPlan, IndexUse, KnownRange, Statistics};
use crate::cost::{DOCUMENT_BY_NUMBER, DOCUMENT_IN_SCAN, ENTRY, LISTED_MAX, NEGLIGIBLE};
use astrarium_index::{Access, Ordered};

/// How documents without an entry are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// By looking at documents one after another.
    AmongAll,
    /// By the numbers of all documents and of those with an entry.
    Listed,
}

/// What a page asks of an order.
#[derive(Debug, Clone, Copy)]
pub struct OrderDemand {
    /// Rows that the page needs.
    pub rows: u64,
    /// Whether the page goes on among the documents without an entry; none if it is the first.
    pub is_lacking: Option<bool>,
    /// Whether indexes are used.
    pub index_use: IndexUse,
}

/// How an order is read in one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderWay {
    /// How documents without an entry are found, if there are some.
    pub lacking: Option<Lacking>,
    /// About how many documents pass the filter.
    pub matching: u64,
}

/// What is known of the order in one range.
struct Extent {
    /// Documents of the range.
    size: u64,
    /// Entries that the conditions leave.
    entries: u64,
    /// Documents without an entry.
    lacking: u64,
    /// Documents that pass the filter.
    matching: u64,
    /// Nanoseconds to read these for sorting.
    sorting: u128,
}

/// For each range how its entries are read; none if sorting is cheaper, or if some range has documents that only sorting puts
/// in their place.
pub async fn choose_order<'a, S: Statistics>(
    plan: &'a IndexPlan,
    ordered: &'a Ordered,
    demand: OrderDemand,
    ranges: &mut [KnownRange<'a, S>],
) -> Result<Option<Vec<OrderWay>>, S::Error> {
    if demand.index_use == IndexUse::Never {
        return Ok(None);
    }
    let by_cost = demand.index_use == IndexUse::ByCost;
    let mut extents = Vec::with_capacity(ranges.len());
    for range in ranges {
        if range.statistics.excluded().await? > 0 {
            return Ok(None);
        }
        let Some(extent) = extent(plan, ordered, range, by_cost).await? else { return Ok(None) };
        extents.push(extent);
    }
    let matching: u64 = extents.iter().map(|extent| extent.matching).fold(0, u64::saturating_add);
    let mut found = Vec::with_capacity(extents.len());
    let mut cost = 0_u128;
    for extent in &extents {
        // Every range gives its part of the page.
        let rows = u128::from(demand.rows) * u128::from(extent.matching);
        let needed = extent.needed(rows.div_ceil(u128::from(matching.max(1))));
        let lacking = (extent.lacking > 0).then(|| extent.way(needed));
        found.push(OrderWay { lacking, matching: extent.matching });
        cost = cost.saturating_add(extent.cost(ordered.backward, needed, demand.is_lacking));
    }
    let sorting: u128 = extents.iter().map(|extent| extent.sorting).sum();
    let is_cheaper = cost <= sorting.max(u128::from(NEGLIGIBLE)) && matching > 0;
    Ok((is_cheaper || !by_cost).then_some(found))
}

async fn extent<'a, S: Statistics>(
    plan: &'a IndexPlan,
    ordered: &'a Ordered,
    range: &mut KnownRange<'a, S>,
    by_cost: bool,
) -> Result<Option<Extent>, S::Error> {
    let statistics = &mut range.statistics;
    let size = statistics.documents().await?;
    let order = statistics.order(ordered).await?;
    let lacking = if ordered.complete { 0 } else { size.saturating_sub(order.all) };
    if lacking > 0 && !ordered.all_types {
        // Arrays and objects are among them.
        return Ok(None);
    }
    let mut matching = size;
    let mut each = DOCUMENT_IN_SCAN;
    if by_cost {
        if let Some(scope) = range.scope {
            matching = matching.min(statistics.estimate(scope).await?);
        }
        if plan.access != Access::Everything {
            matching = matching.min(rough_estimate(&plan.access, statistics).await?);
            each = DOCUMENT_BY_NUMBER;
        }
    }
    let sorting = u128::from(matching) * u128::from(each);
    Ok(Some(Extent { size, entries: order.within, lacking, matching, sorting }))
}

impl Extent {
    /// About how many documents in order are looked at until so many pass.
    fn needed(&self, rows: u128) -> u128 {
        rows * (u128::from(self.entries) + u128::from(self.lacking)) / u128::from(self.matching.max(1))
    }

    /// The cheaper way to the first so many documents without an entry.
    fn way(&self, needed: u128) -> Lacking {
        let is_cheaper = self.listing(needed) < self.among_all(needed);
        if is_cheaper && self.size <= LISTED_MAX { Lacking::Listed } else { Lacking::AmongAll }
    }

    fn among_all(&self, needed: u128) -> u128 {
        let lacking = u128::from(self.lacking.max(1));
        needed.min(lacking) * u128::from(self.size) / lacking * u128::from(DOCUMENT_BY_NUMBER)
    }

    fn listing(&self, needed: u128) -> u128 {
        let numbers = u128::from(self.size) + u128::from(self.entries);
        numbers * u128::from(ENTRY) + needed.min(u128::from(self.lacking)) * u128::from(DOCUMENT_BY_NUMBER)
    }

    /// What so many documents in order cost, from the beginning or from where a page goes on.
    fn cost(&self, backward: bool, needed: u128, is_lacking: Option<bool>) -> u128 {
        let (entries, lacking) = (u128::from(self.entries), u128::from(self.lacking));
        let with = |count: u128| count.min(entries) * u128::from(DOCUMENT_BY_NUMBER);
        let without = |count: u128| match self.way(count) {
            _ if count == 0 || lacking == 0 => 0,
            Lacking::AmongAll => self.among_all(count),
            Lacking::Listed => self.listing(count),
        };
        match (backward, is_lacking) {
            (false, Some(false)) => with(needed),
            (false, _) => without(needed) + with(needed.saturating_sub(lacking)),
            (true, Some(true)) => without(needed),
            (true, _) => with(needed) + without(needed.saturating_sub(entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the documents without an entry are found, where a page needs so many of them.
    fn check(size: u64, lacking: u64, needed: u128, expected: Lacking) {
        let extent = Extent { size, entries: size - lacking, lacking, matching: size, sorting: 0 };
        assert_eq!(extent.way(needed), expected, "{lacking} of {size}, {needed} needed");
    }

    #[test]
    fn few_documents_without_a_path_are_listed() {
        check(20_000, 20, 100, Lacking::Listed);
        check(20_000, 19_980, 100, Lacking::AmongAll);
        check(1_000_000, 500_000, 100, Lacking::AmongAll);
        check(1_000_000, 1_000, 100, Lacking::Listed);
        // A list of everything would take too much memory.
        check(10_000_000, 1_000, 100, Lacking::AmongAll);
    }
}
