//! What a container's indexes could do for a query: a function of the query and the policy, so it is kept with the plan.

use super::PricedFilter;
use crate::needs::{Computed, IndexOnly, Requirements};
use crate::plan::{Order, QueryPlan};
use astrarium_index::{
    Access, Condition, IndexSet, Indexes, Need, OrderPath, Ordered, Path, Predicate, Served, Type,
};
use std::sync::Arc;

/// What indexes could do for a query.
#[derive(Debug, Clone)]
pub struct IndexPlan {
    /// The container's indexes.
    pub indexes: Arc<Indexes>,
    /// What the query asks of indexes.
    pub requirements: Requirements,
    /// Documents that can pass the filter.
    pub access: Access,
    /// Whether documents that were left out of the index on purpose are no rows of the query: its filter or order is served by an
    /// index, as on the service. It follows from query and policy, so a page that reads all documents gives the same rows.
    pub hides_left_out: bool,
    /// Entries in the query's order.
    pub order: Option<Ordered>,
    /// What of the index could answer the query alone.
    pub only: Option<AnswerEntries>,
    /// What of it is priced.
    pub priced: PricedFilter,
}

/// The entries that could answer a query without documents.
#[derive(Debug, Clone)]
pub enum AnswerEntries {
    /// Those of all documents that meet the filter are counted.
    Count,
    /// The first or the last has the least or the greatest value.
    Extreme {
        /// The entries of the path that the filter leaves.
        entries: Served,
        /// Whether the greatest is asked for.
        maximum: bool,
    },
    /// Each value has its entries.
    Values {
        /// The entries of the path that the filter leaves.
        entries: Served,
        /// The path.
        path: Path,
        /// All entries of the path, where documents that have none make a row too.
        all: Option<Ordered>,
    },
}

/// No index has the path that the query sorts by, and the service sorts by nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The index path corresponding to the specified order-by item is excluded.")]
pub struct OrderExcluded;

impl IndexPlan {
    /// What indexes could do for a query that reads documents. `computed` are the computed properties that they hold.
    pub fn new(
        plan: &QueryPlan,
        indexes: Arc<Indexes>,
        computed: &[Computed],
    ) -> Result<IndexPlan, OrderExcluded> {
        let set = &indexes.active;
        let requirements = Requirements::of(plan, computed);
        let (need, paths) = (&requirements.needed.need, requirements.order.as_deref());
        let order = paths.and_then(|paths| set.order(paths, need));
        if let (Some([path]), Order::Keys(_), None) = (paths, &plan.order, &order)
            && !path.path.is_repeated()
        {
            return Err(OrderExcluded);
        }
        let access = set.access(need);
        let hides_left_out = set.is_used() && (access != Access::Everything || order.is_some());
        let only = requirements.only.as_ref().filter(|_| set.is_used() && set.serves(need));
        let only = only.and_then(|only| answer_entries(only, set, &access));
        let priced = PricedFilter::new(plan, (set, computed), &requirements, &access, order.is_some());
        Ok(IndexPlan { indexes, requirements, access, hides_left_out, order, only, priced })
    }
}

fn answer_entries(only: &IndexOnly, set: &IndexSet, access: &Access) -> Option<AnswerEntries> {
    Some(match only {
        IndexOnly::Count => AnswerEntries::Count,
        IndexOnly::Extreme { path, maximum } => {
            let (entries, _) = entries_of(path, set, access)?;
            AnswerEntries::Extreme { entries, maximum: *maximum }
        }
        IndexOnly::Values { path, undefined } => {
            let (entries, all) = entries_of(path, set, access)?;
            AnswerEntries::Values { entries, path: path.clone(), all: undefined.then_some(all) }
        }
    })
}

/// The entries of a path that the filter leaves, which is about the same path: so it is one access to its family, or none.
/// With them come all entries of the path.
fn entries_of(path: &Path, set: &IndexSet, access: &Access) -> Option<(Served, Ordered)> {
    let order = OrderPath { path: path.clone(), descending: false };
    let all = set.order(&[order], &Need::Anything).filter(|ordered| ordered.all_types)?;
    let defined = Condition { path: path.clone(), predicate: Predicate::Types(Type::ALL.to_vec()) };
    let defined = || set.access(&Need::One { condition: defined, exact: true });
    let access = if *access == Access::Everything { defined() } else { access.clone() };
    match access {
        Access::Entries(served) if served.exact && served.family == all.family => Some((served, all)),
        _ => None,
    }
}
