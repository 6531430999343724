//! What a container's indexes do for a query: chosen for running it, told to those who ask, refused where the policy says so.

use crate::queries::{Query, innermost};
use crate::{DocumentsHandle, Error, QueryScope};
use astrarium_sql_plan::physical::IndexUtilization;
use astrarium_store::FeedScope;

impl DocumentsHandle<'_> {
    /// Refuses a query with a filter that no index serves: for clients that forbid scans.
    pub fn check_no_scan(self, query: &Query) -> Result<(), Error> {
        let DocumentsHandle { core, container } = self;
        let planned = core.planned(container, query)?;
        let plan = innermost(&planned.plan);
        let has_filter = plan.filters.iter().any(|filters| !filters.is_empty());
        let index = core.index_plan(container, &planned)?;
        let scans = index.is_none_or(|index| !index.serves_filter());
        if plan.reads_documents() && has_filter && scans && !core.is_index_lost(container) {
            return Err(Error::invalid(
                "An invalid query has been specified with filters against path(s) excluded from indexing. Consider \
                 adding allow scan header in the request.",
            ));
        }
        Ok(())
    }

    /// The indexes that a query uses, and those that would help it.
    pub fn index_utilization(self, query: &Query, scope: &QueryScope) -> Result<IndexUtilization, Error> {
        let DocumentsHandle { core, container } = self;
        let planned = core.planned(container, query)?;
        let index = planned.index.as_ref().map_err(|error| Error::invalid(error.to_string()))?;
        let mut utilization = index.as_ref().map(|index| index.utilization()).unwrap_or_default();
        // Without any other index the service names the one that the partition key is found by.
        if let QueryScope::Given(FeedScope::Partition(_)) = scope
            && utilization == IndexUtilization::default()
        {
            let paths = &container.definition.partition_key.paths;
            utilization.utilized_single = paths.iter().map(|path| format!("{}/?", path.as_str())).collect();
        }
        Ok(utilization)
    }
}
