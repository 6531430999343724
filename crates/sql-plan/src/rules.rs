//! Improvements of plans, in a fixed order. Each takes a plan and gives one with the same rows.

mod fold_constants;
mod push_filters_into_joins;

use crate::plan::QueryPlan;
use std::sync::Arc;

/// A rule: its name for explanations, and what it does.
type Rule = (&'static str, fn(QueryPlan) -> QueryPlan);

const RULES: &[Rule] =
    &[("fold constants", fold_constants::apply), ("push filters into joins", push_filters_into_joins::apply)];

pub(crate) fn apply(mut plan: QueryPlan) -> QueryPlan {
    plan.input = plan.input.map(|input| Arc::new(apply(Arc::unwrap_or_clone(input))));
    RULES.iter().fold(plan, |plan, (_, rule)| rule(plan))
}
