//! What a container's indexes do for a query: chosen for running it, told to those who ask, refused where the policy says so.

use crate::queries::{Query, innermost};
use crate::{DocumentsHandle, Error, Limits, QueryPage, QueryScope};
use astrarium_sql_exec::OperatorReport;
use astrarium_sql_plan::physical::IndexUtilization;
use astrarium_store::FeedScope;
use std::fmt::Write as _;
use std::sync::Arc;

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

    /// Prints how the first page of a query over all documents would be made: the operators of its plan in the order in which
    /// they work, without figures that depend on the number of documents.
    pub async fn plan_text(self, query: &Query) -> Result<String, Error> {
        let DocumentsHandle { core, container } = self;
        let (container, own) = (Arc::clone(container), query.clone());
        let limits = Limits::default();
        core.run_query(query, limits, move |core, _| {
            let (container, query) = (Arc::clone(&container), own.clone());
            Box::pin(async move { core.describe(container, &query, limits).await })
        })
        .await
    }

    /// Prints how a query runs: the operators of its plan in the order in which they work, each with what it was expected to
    /// find and what it did in the first page. The page comes too, for what it cost.
    pub async fn explain(
        self,
        query: &Query,
        scope: &QueryScope,
        limits: Limits,
    ) -> Result<(String, QueryPage), Error> {
        let limits = Limits { explain: true, ..limits };
        let page = self.query(query, scope, None, limits).await?;
        let mut text = String::new();
        for operator in &page.operators {
            let _ = writeln!(text, "{} [{}]", operator.text, told(operator));
        }
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

/// What an operator was expected to find, and what it did.
fn told(operator: &OperatorReport) -> String {
    let mut parts = Vec::new();
    if let Some(estimated) = operator.estimated_rows {
        parts.push(format!("about {estimated} expected"));
    }
    parts.push(format!("{} rows", operator.rows));
    if operator.entries > 0 {
        parts.push(format!("{} entries", operator.entries));
    }
    if operator.documents > 0 {
        parts.push(format!("{} documents", operator.documents));
    }
    if operator.bytes > 0 {
        parts.push(format!("{} bytes", operator.bytes));
    }
    parts.push(format!("{} microseconds", operator.time.as_micros()));
    parts.join(", ")
}
