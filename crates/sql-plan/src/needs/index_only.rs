//! Queries that an index could answer without documents.
//!
//! Invariants
//! - Only queries over the documents themselves, without joins, whose whole filter is an exact need.
//! - `Extreme` and `Values` look at one path, and the filter, if there is one, at that path alone.

use super::{Needed, Paths};
use crate::expression::Expr;
use crate::plan::{Aggregate, Grouping, Order, Projection, QueryPlan};
use astrarium_index::{Need, Path};
use astrarium_sql_functions::aggregates::AggregateFunction;

/// What of an index answers a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexOnly {
    /// How many documents meet the need: the value of the plan's one aggregate.
    Count,
    /// The least or greatest value at a path among documents that meet the need: the value of the plan's one aggregate.
    /// It is undefined if there are none, and if one of them is an array or object.
    Extreme {
        /// The path.
        path: Path,
        /// Whether the greatest is asked for.
        maximum: bool,
    },
    /// The distinct values at a path among documents that meet the need, each with the number of its documents: the
    /// plan's groups, or its rows before DISTINCT.
    Values {
        /// The path.
        path: Path,
        /// Whether documents without a value there make a row too: a group of their own, or an empty object.
        undefined: bool,
    },
}

/// Whether an index could answer a query alone, and how.
pub(super) fn index_only(plan: &QueryPlan, paths: &Paths<'_>, needed: &Needed) -> Option<IndexOnly> {
    let rows_are_documents = plan.grouping.is_none() && !plan.distinct;
    if rows_are_documents || plan.sources.len() != 1 || matches!(plan.order, Order::Rank(_)) {
        return None;
    }
    if !needed.decides() {
        return None;
    }
    match &plan.grouping {
        Some(grouping) => grouped(plan, grouping, paths, needed),
        None if plan.distinct => distinct(plan, paths, needed),
        None => None,
    }
}

fn grouped(plan: &QueryPlan, grouping: &Grouping, paths: &Paths<'_>, needed: &Needed) -> Option<IndexOnly> {
    match (&grouping.keys[..], &grouping.aggregates[..]) {
        ([], [aggregate]) if counts_rows(plan, aggregate) => Some(IndexOnly::Count),
        ([], [Aggregate { function, argument }]) => {
            let maximum = match function {
                AggregateFunction::Minimum => false,
                AggregateFunction::Maximum => true,
                _ => return None,
            };
            let path = paths.plain(argument)?;
            is_only_about(&needed.need, &path).then_some(IndexOnly::Extreme { path, maximum })
        }
        ([key], aggregates) => {
            let path = paths.plain(key)?;
            let served = |aggregate: &Aggregate| {
                counts_rows(plan, aggregate)
                    || is_of_values(aggregate.function)
                        && paths.plain(&aggregate.argument).as_ref() == Some(&path)
            };
            let served = aggregates.iter().all(served) && is_only_about(&needed.need, &path);
            served.then(|| IndexOnly::Values { undefined: needed.need == Need::Anything, path })
        }
        _ => None,
    }
}

fn distinct(plan: &QueryPlan, paths: &Paths<'_>, needed: &Needed) -> Option<IndexOnly> {
    let (path, as_object) = match &plan.projection {
        Projection::Value(value) => (paths.plain(value)?, false),
        Projection::Members(members) => {
            let mut path = None;
            for (_, member) in members.iter().filter(|(_, member)| member.as_constant().is_none()) {
                let own = paths.plain(member)?;
                if path.get_or_insert_with(|| own.clone()) != &own {
                    return None;
                }
            }
            (path?, true)
        }
        Projection::Star(_) => return None,
    };
    let ordered = plan.order_keys().iter().all(|key| paths.plain(&key.key).as_ref() == Some(&path));
    let undefined = as_object && needed.need == Need::Anything;
    (ordered && is_only_about(&needed.need, &path)).then_some(IndexOnly::Values { path, undefined })
}

/// Whether an aggregate counts rows, whatever they hold.
fn counts_rows(plan: &QueryPlan, aggregate: &Aggregate) -> bool {
    let always_defined = match &aggregate.argument {
        Expr::Constant(value) => !value.is_undefined(),
        Expr::Path(slot, steps) => {
            steps.is_empty() && plan.sources.first().is_some_and(|source| source.slot == *slot)
        }
        _ => false,
    };
    aggregate.function == AggregateFunction::Count && always_defined
}

/// Whether an aggregate of a group's own value follows from the value and how often it occurs.
fn is_of_values(function: AggregateFunction) -> bool {
    matches!(
        function,
        AggregateFunction::Count
            | AggregateFunction::Minimum
            | AggregateFunction::Maximum
            | AggregateFunction::Sum
            | AggregateFunction::Average
    )
}

/// Whether a need speaks of no other path.
fn is_only_about(need: &Need, path: &Path) -> bool {
    match need {
        Need::Anything | Need::Nothing => true,
        Need::One { condition, .. } => condition.path == *path,
        Need::All(needs) | Need::Any(needs) => needs.iter().all(|need| is_only_about(need, path)),
    }
}
