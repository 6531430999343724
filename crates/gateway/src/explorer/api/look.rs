//! What there is: databases and containers, paths in documents, key ranges and their traffic, what indexes cost, the last requests.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::{named_container, parameter};
use crate::database::{ContainerOverview, DatabaseOverview, Error};
use serde_json::json;

/// All databases and containers.
pub(super) async fn overview(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let databases = call.gateway.shared.account.monitoring().overview().await?;
    let container = |container: &ContainerOverview| {
        json!({
            "id": container.id,
            "documents": container.usage.map(|usage| usage.documents),
            "bytes": container.usage.map(|usage| usage.bytes),
            "throughput": container.throughput,
            "partitionKey": container.partition_key,
            "ranges": container.ranges,
        })
    };
    let database = |database: &DatabaseOverview| {
        let containers: Vec<_> = database.containers.iter().map(container).collect();
        json!({"id": database.id, "throughput": database.throughput, "containers": containers})
    };
    Ok(json!({"databases": databases.iter().map(database).collect::<Vec<_>>()}).to_string())
}

/// What documents look like.
pub(super) async fn schema(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let container = named_container(call).await?;
    let schema = call.gateway.shared.account.documents(&container).sampled_schema().await?;
    let path = |path: &crate::database::SampledPath| {
        // Values are JSON already, numbers as they are stored.
        let (names, types) = (json!(path.path), json!(path.types));
        format!("{{\"path\":{names},\"types\":{types},\"values\":[{}]}}", path.values.join(","))
    };
    let paths: Vec<String> = schema.paths.iter().map(path).collect();
    Ok(format!("{{\"sampled\":{},\"paths\":[{}]}}", schema.sampled, paths.join(",")))
}

/// The key ranges of a container, with what they hold and what was asked of them since the start.
pub(super) async fn ranges(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let shared = &call.gateway.shared;
    let container = named_container(call).await?;
    let traffic = shared.metrics.usage.of_container(container.rid());
    let documents = shared.account.documents(&container);
    let mut shown = Vec::with_capacity(container.ranges.len());
    for range in &container.ranges {
        let usage = match documents.range_usage(range).await {
            // Replaced a moment ago.
            Err(Error::KeyRangeGone) => continue,
            usage => usage?,
        };
        let traffic = traffic.get(&range.id).copied().unwrap_or_default();
        shown.push(json!({
            "id": range.id.to_string(),
            "minInclusive": range.keys.min.to_string(),
            "maxExclusive": range.keys.max.to_string(),
            "documents": usage.documents,
            "bytes": usage.bytes,
            "requests": traffic.requests,
            "charge": traffic.charge,
            "throttled": traffic.throttled,
        }));
    }
    Ok(json!({"ranges": shown}).to_string())
}

/// The last requests of all clients, and whether there are more than fit into one answer.
pub(super) fn requests(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let after = match parameter(call, "after") {
        None => 0,
        Some(text) => {
            text.parse().map_err(|_| ApiRefusal::bad_request("after is the number of a request."))?
        }
    };
    let (requests, more) = call.explorer.requests.after(after);
    Ok(format!("{{\"requests\":{requests},\"more\":{more}}}"))
}

/// What indexing each path of a container costs.
pub(super) async fn index_costs(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let container = named_container(call).await?;
    let costs = call.gateway.shared.account.documents(&container).sampled_index_costs().await?;
    let path = |cost: &crate::database::IndexPathCost| json!({"path": cost.path, "terms": cost.terms, "bytes": cost.bytes});
    let paths: Vec<_> = costs.paths.iter().map(path).collect();
    Ok(json!({"documents": costs.sampled, "paths": paths}).to_string())
}
