//! What a container's indexes do for a query: chosen for running it, told to those who ask, refused where the policy says so.

use crate::queries::{Query, innermost};
use crate::{Account, Error, Limits, QueryPage, QueryScope};
use astrarium_catalog::container::Container;
use astrarium_index::{Access, Need, OrderPath};
use astrarium_sql_plan::needs::{Computed, composite_spec, single_spec, used_paths};
use astrarium_store::FeedScope;
use std::fmt::Write as _;
use std::sync::Arc;

/// The indexes that a query uses, and those that would help it, as policies write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUtilization {
    /// Paths whose index serves.
    pub utilized_single: Vec<String>,
    /// Paths that the policy leaves out.
    pub potential_single: Vec<String>,
    /// Composite indexes that serve.
    pub utilized_composite: Vec<Vec<String>>,
    /// Composite indexes that the policy could add.
    pub potential_composite: Vec<Vec<String>>,
}

impl Account {
    /// Refuses a query with a filter that no index serves: for clients that forbid scans.
    pub fn check_no_scan(&self, container: &Arc<Container>, query: &Query) -> Result<(), Error> {
        let planned = self.planned(container, query)?;
        let plan = innermost(&planned.plan);
        let has_filter = plan.filters.iter().any(|filters| !filters.is_empty());
        let index = self.index_plan(container, &planned)?;
        let scans = index.is_none_or(|index| index.access == Access::Everything);
        if plan.reads_documents() && has_filter && scans && !self.is_index_lost(container) {
            return Err(Error::invalid(
                "An invalid query has been specified with filters against path(s) excluded from indexing. Consider \
                 adding allow scan header in the request.",
            ));
        }
        Ok(())
    }

    /// The indexes that a query uses, and those that would help it.
    pub fn index_utilization(
        &self,
        container: &Arc<Container>,
        query: &Query,
        scope: &QueryScope,
    ) -> Result<IndexUtilization, Error> {
        let planned = self.planned(container, query)?;
        let indexes = self.indexes(container);
        let set = &indexes.active;
        let used = used_paths(&planned.plan, &Computed::of(container.indexed_by()));
        let mut utilization = IndexUtilization::default();
        for path in used.single {
            let list = if set.is_used() && set.covers(&path.path) {
                &mut utilization.utilized_single
            } else {
                &mut utilization.potential_single
            };
            list.push(single_spec(&path.path));
        }
        let serving = if set.is_used() { set.combinations(&used.need) } else { Vec::new() };
        let specs = |paths: &[OrderPath]| paths.iter().map(composite_spec).collect::<Vec<String>>();
        utilization.utilized_composite = serving.iter().map(|(paths, _)| specs(paths)).collect();
        for wanted in used.filter_composite {
            let is_had = |(paths, count): &(Vec<OrderPath>, usize)| {
                wanted.len() <= *count
                    && wanted.iter().all(|own| paths[..*count].iter().any(|path| path.path == own.path))
            };
            if !serving.iter().any(is_had) {
                utilization.potential_composite.push(specs(&wanted));
            }
        }
        if let Some(paths) = used.order_composite {
            let list = if set.order(&paths, &Need::Anything).is_some() {
                &mut utilization.utilized_composite
            } else {
                &mut utilization.potential_composite
            };
            let own = specs(&paths);
            if !list.contains(&own) {
                list.push(own);
            }
        }
        // Without any other index the service names the one that the partition key is found by.
        if let QueryScope::Given(FeedScope::Partition(_)) = scope
            && utilization == IndexUtilization::default()
        {
            let paths = &container.definition.partition_key.paths;
            utilization.utilized_single = paths.iter().map(|path| format!("{}/?", path.as_str())).collect();
        }
        Ok(utilization)
    }

    /// Prints the plan of a query.
    pub fn plan_text(&self, container: &Arc<Container>, query: &Query) -> Result<String, Error> {
        Ok(astrarium_sql_plan::explain::explain(&self.planned(container, query)?.plan))
    }

    /// Prints how a query runs: its plan, the indexes it can use, and what its first page really looked at. The page comes
    /// too, for what it cost.
    pub async fn explain_query(
        &self,
        container: &Arc<Container>,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<(String, QueryPage), Error> {
        let planned = self.planned(container, query)?;
        let mut text = astrarium_sql_plan::explain::explain(&planned.plan);
        let index = self.index_plan(container, &planned)?;
        match &index {
            None => text.push_str("index: none, the policy has no index\n"),
            Some(index) => {
                let _ = writeln!(text, "index for the filter: {}", shown(&index.access));
                if let Some(order) = &index.order {
                    let direction = if order.backward { " backwards" } else { "" };
                    let _ = writeln!(text, "index for the order: {}{direction}", order.shown);
                }
                if let Some(only) = &index.only {
                    let _ = writeln!(text, "answer from the index alone: {only:?}");
                }
            }
        }
        let page = self.query_documents(container, query, scope, None, limits).await?;
        let more = if page.resume.is_some() { ", more to come" } else { "" };
        let _ = writeln!(
            text,
            "first page: {} rows{more}; looked at {} index entries and {} documents ({} bytes){}; {} microseconds, {} RU",
            page.rows.len(),
            page.index_entries,
            page.documents,
            page.document_bytes,
            if page.in_index_order { ", in the order of the index" } else { "" },
            page.times.total.as_micros(),
            page.charge,
        );
        Ok((text, page))
    }
}

/// An access for people.
fn shown(access: &Access) -> String {
    let list = |parts: &[Access], word: &str| {
        let parts: Vec<String> = parts.iter().map(shown).collect();
        format!("({})", parts.join(word))
    };
    match access {
        Access::Everything => "none, all documents are looked at".to_owned(),
        Access::Nothing => "none, no document can pass".to_owned(),
        Access::Entries(served) => {
            let points = served.ranges.iter().filter(|range| range.is_point).count();
            let exact = if served.exact { "" } else { ", checked again" };
            format!("{} [{} terms, {} ranges{exact}]", served.shown, points, served.ranges.len() - points)
        }
        Access::All(parts) => list(parts, " and "),
        Access::Any(parts) => list(parts, " or "),
        Access::Combined { apart, together } => {
            let entries: Vec<Access> =
                together.iter().map(|together| Access::Entries(together.served.clone())).collect();
            format!("{}, at once by {}", list(apart, " and "), list(&entries, " or "))
        }
    }
}
