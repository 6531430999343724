//! What of a query is priced: a function of the query and the policy, so that a charge does not depend on the way that was
//! chosen to the documents.
//!
//! In: a plan, what it asks of indexes, the container's indexes. Out: a [`PricedFilter`]. A query pays for what it looks up
//! in indexes, and for each document that meets the conditions which indexes serve: these are among the documents that any
//! way finds, and no way has to read others. Where no index serves, that is every document.
//! Not here: prices (`database::charge`), counting (`sql-exec`).

use crate::expression::Expr;
use crate::needs::{Computed, Requirements};
use crate::plan::QueryPlan;
use astrarium_index::entry::Family;
use astrarium_index::{Access, Condition, IndexSet, Need, Predicate};

/// What of a query is priced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PricedFilter {
    /// Values and ranges of values that are looked up in indexes.
    pub seeks: u64,
    /// Paths all of whose entries are read, for conditions that no order of values helps.
    pub scanned: Vec<Family>,
    /// For each condition on a document alone, whether an index serves it.
    pub served: Vec<bool>,
    /// Whether indexes serve what is asked of parts of documents: then only those with a row meet it.
    pub needs_row: bool,
    /// Whether an index has the order of the query: then a page pays for the documents of its rows.
    pub is_ordered: bool,
}

impl PricedFilter {
    pub(super) fn new(
        plan: &QueryPlan,
        (set, computed): (&IndexSet, &[Computed]),
        requirements: &Requirements,
        access: &Access,
        is_ordered: bool,
    ) -> PricedFilter {
        if !set.is_used() {
            return PricedFilter::default();
        }
        let need = &requirements.needed.need;
        let mut scanned = Vec::new();
        find_scanned(need, set, &mut scanned);
        let (served, needs_row) = served(plan, (set, computed), requirements, access);
        PricedFilter { seeks: seeks(access) + u64::from(is_ordered), scanned, served, needs_row, is_ordered }
    }
}

/// Values and ranges of values of an access.
fn seeks(access: &Access) -> u64 {
    match access {
        Access::Everything => 0,
        Access::Nothing => 1,
        Access::Entries(served) if served.is_terms() => served.ranges.len() as u64,
        Access::Entries(_) => 1,
        Access::All(parts) | Access::Any(parts) | Access::Combined { apart: parts, .. } => {
            parts.iter().map(seeks).sum()
        }
    }
}

/// The paths whose entries are all read: what is asked of their texts has no range of values, as CONTAINS.
fn find_scanned(need: &Need, set: &IndexSet, found: &mut Vec<Family>) {
    match need {
        Need::One { condition: Condition { predicate: Predicate::Types(_), .. }, exact: false } => {
            if let Access::Entries(served) = set.access(need)
                && !found.contains(&served.family)
            {
                found.push(served.family);
            }
        }
        Need::All(needs) | Need::Any(needs) => needs.iter().for_each(|need| find_scanned(need, set, found)),
        _ => {}
    }
}

/// Which conditions on documents indexes serve, and whether they serve what is asked of their parts.
fn served(
    plan: &QueryPlan,
    (set, computed): (&IndexSet, &[Computed]),
    requirements: &Requirements,
    access: &Access,
) -> (Vec<bool>, bool) {
    let own: &[Expr] = plan.filters.get(1).map_or(&[], Vec::as_slice);
    if *access == Access::Everything {
        return (vec![false; own.len()], false);
    }
    let is_joined = plan.sources.len() > 1;
    if !is_joined
        && (own.len() == 1 || (requirements.needed.complete && set.serves(&requirements.needed.need)))
    {
        return (vec![true; own.len()], false);
    }
    let serves =
        |part: &QueryPlan| set.access(&Requirements::of(part, computed).needed.need) != Access::Everything;
    let alone = |condition: &Expr| {
        let filters = vec![Vec::new(), vec![condition.clone()]];
        serves(&QueryPlan { sources: plan.sources[..1].to_vec(), filters, ..QueryPlan::nothing() })
    };
    let conditions = own.iter().map(alone).collect();
    let needs_row = is_joined && {
        let mut rest = plan.clone();
        rest.filters[1].clear();
        serves(&rest)
    };
    (conditions, needs_row)
}
