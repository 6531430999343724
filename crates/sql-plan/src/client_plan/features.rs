//! What a client says it can merge, and what a plan asks of it.
//!
//! A plan that asks for more is refused: a client that does not know a field ignores it and returns wrong rows.

use super::{ClientQuery, DistinctType, HybridSearchInfo, QueryInfo};
use crate::error::PlanError;
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_syntax::Span;

/// The feature that lets components of a hybrid search go without the rewrite of ORDER BY.
pub(super) const SKIP_ORDER_REWRITE: &str = "HybridSearchSkipOrderByRewrite";

/// The features that a client lists.
pub(super) struct Features<'a> {
    names: Vec<&'a str>,
}

impl<'a> Features<'a> {
    /// Reads the list, names between commas.
    pub(super) fn listed(list: &'a str) -> Features<'a> {
        Features { names: list.split(',').map(str::trim).collect() }
    }

    /// Whether the client lists a feature.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Refuses a plan that the client cannot carry out.
    pub(super) fn check(&self, plan: &ClientQuery, span: Span) -> Result<(), PlanError> {
        let needed = match plan {
            ClientQuery::Plain(info) => of_query(info),
            ClientQuery::Hybrid(info) => of_hybrid(info),
        };
        let missing: Vec<String> = needed
            .into_iter()
            .filter(|(name, needed)| *needed && !self.has(name))
            .map(|(name, _)| format!("\nQuery contained {name}, which the calling client does not support."))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the \
             requested features:{}",
            missing.concat()
        );
        Err(PlanError::new(span, "", message))
    }
}

/// Every feature with whether the plan needs it, in the order in which the service names them.
fn of_query(info: &QueryInfo) -> Vec<(&'static str, bool)> {
    let in_list: Vec<AggregateFunction> = info.members.iter().filter_map(|(_, function)| *function).collect();
    let uses = |wanted: &[AggregateFunction]| {
        in_list.iter().chain(&info.aggregate).any(|function| wanted.contains(function))
    };
    vec![
        ("Aggregate", info.aggregate.is_some()),
        ("Distinct", info.distinct != DistinctType::None && info.distinct_count_alias.is_none()),
        ("GroupBy", !info.group_by.is_empty()),
        ("MultipleAggregates", in_list.len() > 1),
        ("MultipleOrderBy", info.order_by.len() > 1),
        ("OffsetAndLimit", info.offset.is_some() || info.limit.is_some()),
        ("OrderBy", info.order_by.len() == 1),
        ("Top", info.top.is_some()),
        ("NonValueAggregate", !in_list.is_empty()),
        ("DCount", info.distinct_count_alias.is_some()),
        ("NonStreamingOrderBy", info.non_streaming_order),
        ("ListAndSetAggregate", uses(&[AggregateFunction::MakeList, AggregateFunction::MakeSet])),
        ("CountIf", uses(&[AggregateFunction::CountIf])),
    ]
}

fn of_hybrid(info: &HybridSearchInfo) -> Vec<(&'static str, bool)> {
    vec![("HybridSearch", true), ("WeightedRankFusion", !info.weights.is_empty())]
}
