//! What a container's indexes could do for a query: a function of the query and the policy, so it is kept with the plan.

use crate::needs::{Computed, IndexOnly, Requirements};
use crate::plan::{Order, QueryPlan};
use astrarium_index::{Access, Indexes, Ordered};
use std::sync::Arc;

/// What indexes could do for a query.
#[derive(Debug, Clone)]
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
        let Requirements { needed, order: paths, only } = Requirements::of(plan, computed);
        let need = needed.need;
        let order = paths.as_ref().and_then(|paths| set.order(paths, &need));
        if let (Some([path]), Order::Keys(_), None) = (paths.as_deref(), &plan.order, &order)
            && !path.path.is_repeated()
        {
            return Err(OrderExcluded);
        }
        let access = set.access(&need);
        let only = only.filter(|_| set.is_used() && set.serves(&need));
        Ok(IndexPlan { indexes, access, order, only })
    }
}
