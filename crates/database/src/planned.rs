//! A query planned for a container, once: whoever needs its plan, its route or its indexes asks here.
//!
//! In: a query, a container as it was loaded. Out: a [`PlannedQuery`], which depends on nothing else. It is kept with the
//! query, so that all parts of one request and a second attempt on another thread share it, and with the statement where the
//! query has no parameters, so that the next request with the same text finds it.
//! Invariant: what is kept counts for exactly the loaded container it was made for; another definition is another container.
//!
//! Not here: which of the possible indexes a page uses, which depends on data (`sql-plan::physical`).

use crate::queries::{Query, innermost};
use crate::{AccountCore, Error};
use astrarium_catalog::container::Container;
use astrarium_sql_plan::needs::Computed;
use astrarium_sql_plan::physical::{IndexPlan, OrderExcluded};
use astrarium_sql_plan::routing::{Route, route};
use astrarium_sql_plan::{Catalog, QueryPlan};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A query planned for a container.
#[derive(Debug)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: Arc<QueryPlan>,
    /// The partitions that the filter leaves.
    pub(crate) route: Route,
    /// What indexes could do, or would if the policy had them; nothing if the query reads no documents.
    pub(crate) index: Result<Option<Arc<IndexPlan>>, OrderExcluded>,
}

/// Where the plan of a query is kept.
#[derive(Debug, Default)]
pub(crate) struct PlanSlot {
    kept: Mutex<Option<(Weak<Container>, Arc<PlannedQuery>)>>,
}

impl PlanSlot {
    fn of(&self, container: &Arc<Container>) -> Option<Arc<PlannedQuery>> {
        let kept = self.kept.lock();
        let (owner, planned) = kept.as_ref()?;
        std::ptr::eq(owner.as_ptr(), Arc::as_ptr(container)).then(|| Arc::clone(planned))
    }
}

impl AccountCore {
    /// The plan of a query over a container.
    pub(crate) fn planned(
        &self,
        container: &Arc<Container>,
        query: &Query,
    ) -> Result<Arc<PlannedQuery>, Error> {
        if let Some(planned) = query.slot.of(container) {
            return Ok(planned);
        }
        let plan = query.plan(Catalog { container: Some(&container.definition) })?;
        self.shared.statements.plan_made();
        let reader = innermost(&plan);
        let route = route(reader, &container.definition.partition_key);
        let index = if reader.reads_documents() {
            let computed = Computed::of(container.indexed_by());
            IndexPlan::new(reader, self.indexes(container), &computed).map(|index| Some(Arc::new(index)))
        } else {
            Ok(None)
        };
        let planned = Arc::new(PlannedQuery { plan, route, index });
        *query.slot.kept.lock() = Some((Arc::downgrade(container), Arc::clone(&planned)));
        Ok(planned)
    }

    /// What a container's indexes can do for a query now; refuses an order that no index has.
    pub(crate) fn index_plan(
        &self,
        container: &Arc<Container>,
        planned: &PlannedQuery,
    ) -> Result<Option<Arc<IndexPlan>>, Error> {
        let index = planned.index.as_ref().map_err(|error| Error::invalid(error.to_string()))?;
        Ok(index.clone().filter(|index| index.indexes.active.is_used() && !self.is_index_lost(container)))
    }
}
