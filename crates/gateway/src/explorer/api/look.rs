//! What there is: databases and containers, paths in documents, key ranges and their traffic, what indexes cost, the last requests.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::{named_container, parameter};
use crate::database::partition::Component;
use crate::database::{
    Container, ContainerOverview, DatabaseOverview, Error, SampledKey, SampledPath, SampledRange,
    SampledShape,
};
use serde_json::{Value, json};
use std::sync::Arc;

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
    let paths: Vec<String> = schema.paths.iter().map(shown_path).collect();
    let shapes: Vec<String> = schema.shapes.iter().map(shown_shape).collect();
    let documents = documents_of(call, &container).await?;
    Ok(format!(
        "{{\"sampled\":{},\"documents\":{documents},\"paths\":[{}],\"shapes\":[{}],\"otherShapes\":{}}}",
        schema.sampled,
        paths.join(","),
        shapes.join(","),
        schema.other_shapes
    ))
}

/// Values are JSON already, numbers as they are stored.
fn shown_path(path: &SampledPath) -> String {
    let (names, types) = (json!(path.path), json!(path.types));
    let range = |range: &Option<SampledRange>| {
        range.as_ref().map_or("null".to_owned(), |range| format!("[{},{}]", range.least, range.greatest))
    };
    let lengths = path.lengths.map_or(Value::Null, |(least, greatest)| json!([least, greatest]));
    format!(
        "{{\"path\":{names},\"types\":{types},\"values\":[{}],\"numbers\":{},\"texts\":{},\"lengths\":{lengths}}}",
        path.values.join(","),
        range(&path.numbers),
        range(&path.texts)
    )
}

fn shown_shape(shape: &SampledShape) -> String {
    let constants: Vec<String> =
        shape.constants.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!(
        "{{\"count\":{},\"names\":{},\"constants\":{{{}}}}}",
        shape.count,
        json!(shape.names),
        constants.join(",")
    )
}

/// How many documents a container has.
async fn documents_of(call: &ExplorerCall<'_>, container: &Arc<Container>) -> Result<u64, ApiRefusal> {
    let documents = call.gateway.shared.account.documents(container);
    let mut count = 0;
    for range in &container.ranges {
        match documents.range_usage(range).await {
            // Replaced a moment ago.
            Err(Error::KeyRangeGone) => {}
            usage => count += usage?.documents,
        }
    }
    Ok(count)
}

/// The partition keys that most documents have, as far as a sample tells.
pub(super) async fn partition_keys(call: &ExplorerCall<'_>) -> Result<String, ApiRefusal> {
    let container = named_container(call).await?;
    let found = call.gateway.shared.account.documents(&container).sampled_keys().await?;
    let component = |component: &Component| match component {
        Component::Undefined => json!({}),
        Component::Null => Value::Null,
        Component::Bool(value) => json!(value),
        Component::Number(value) => json!(value),
        Component::String(value) => json!(&**value),
    };
    let key = |key: &SampledKey| {
        json!({
            "key": key.key.components().iter().map(component).collect::<Vec<_>>(),
            "range": key.range_id.to_string(),
            "sampled": key.sampled,
            "documents": key.documents,
            "bytes": key.bytes,
        })
    };
    let keys: Vec<Value> = found.keys.iter().map(key).collect();
    Ok(json!({"sampled": found.sampled, "documents": found.documents, "partial": found.is_partial, "keys": keys}).to_string())
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
    let status = shared.account.catalog().resharding_status(container.rid()).await?;
    let percent = (status.progress * 100.0).round();
    Ok(json!({"ranges": shown, "pending": status.is_pending, "progressPercent": percent}).to_string())
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
