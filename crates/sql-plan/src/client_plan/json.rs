//! Plans as the JSON that clients read, members in the order in which the service writes them.

use super::{ClientPlan, ClientQuery, ClientRange, DistinctType, HybridSearchInfo, QueryInfo};
use astrarium_partition::EffectiveRange;
use astrarium_sql_functions::aggregates::AggregateFunction;
use serde_json::{Map, Value, json};

/// The version of the format.
const VERSION: u32 = 2;

impl ClientPlan {
    /// The body of the answer to a query-plan request.
    pub fn to_json(&self) -> Value {
        let ranges: Vec<Value> = self.ranges.iter().map(range).collect();
        match &self.query {
            ClientQuery::Plain(info) => json!({
                "partitionedQueryExecutionInfoVersion": VERSION,
                "queryInfo": query_info(info),
                "hybridSearchQueryInfo": null,
                "queryRanges": ranges,
            }),
            ClientQuery::Hybrid(info) => json!({
                "partitionedQueryExecutionInfoVersion": VERSION,
                "hybridSearchQueryInfo": hybrid(info),
                "queryRanges": ranges,
            }),
        }
    }
}

fn query_info(info: &QueryInfo) -> Value {
    let directions: Vec<&str> =
        info.order_by.iter().map(|key| if key.descending { "Descending" } else { "Ascending" }).collect();
    let expressions: Vec<&str> = info.order_by.iter().map(|key| key.expression.as_str()).collect();
    let aliases: Vec<&str> = info.members.iter().map(|(alias, _)| alias.as_str()).collect();
    let aggregates: Vec<&str> = info.aggregate.map(AggregateFunction::plan_name).into_iter().collect();
    let by_alias: Map<String, Value> = info
        .members
        .iter()
        .map(|(alias, function)| (alias.clone(), function.map(AggregateFunction::plan_name).into()))
        .collect();
    json!({
        "distinctType": match info.distinct {
            DistinctType::None => "None",
            DistinctType::Ordered => "Ordered",
            DistinctType::Unordered => "Unordered",
        },
        "top": info.top,
        "offset": info.offset,
        "limit": info.limit,
        "orderBy": directions,
        "orderByExpressions": expressions,
        "groupByExpressions": info.group_by,
        "groupByAliases": aliases,
        "aggregates": aggregates,
        "groupByAliasToAggregateType": by_alias,
        "rewrittenQuery": info.rewritten_query,
        "hasSelectValue": info.select_value,
        "dCountInfo": info.distinct_count_alias.as_ref().map(|alias| json!({"dCountAlias": alias})),
        "hasNonStreamingOrderBy": info.non_streaming_order,
    })
}

fn hybrid(info: &HybridSearchInfo) -> Value {
    let components: Vec<Value> = info.components.iter().map(query_info).collect();
    json!({
        "globalStatisticsQuery": info.global_statistics_query,
        "componentQueryInfos": components,
        "componentWithoutPayloadQueryInfos": [],
        "projectionQueryInfo": null,
        "componentWeights": info.weights,
        "skip": info.skip,
        "take": info.take,
        "requiresGlobalStatistics": info.requires_global_statistics,
    })
}

/// What keys say includes its end, a point as well as the range of a key's first levels; everything does not.
fn range(range: &ClientRange) -> Value {
    let is_of_keys = range.max != EffectiveRange::full().max;
    json!({
        "min": range.min.to_string(),
        "max": range.max.to_string(),
        "isMinInclusive": true,
        "isMaxInclusive": is_of_keys,
    })
}
