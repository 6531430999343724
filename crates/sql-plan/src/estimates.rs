//! About how many rows each operator of a page gives, for people who compare that with what came.
//!
//! In: a plan, how its documents are found, about how many there are. Out: a figure for each operator, none where nothing is known. Nothing is chosen by these: the
//! figure of the access is that of the cost model, the others follow from it.
//! - A filter that an index was used for lets through what the index found. Of documents that are all read, nothing is known of how many pass,
//!   and System R's rule of thumb is taken: a tenth of them for equality, a third for anything else.
//! - How many elements an array has, how many groups there are and how many rows are equal is not known, nor what follows from it.

use crate::explain::Operator;
use crate::expression::Expr;
use crate::physical::{AccessPath, PhysicalPlan, PlannedAccess};
use crate::plan::QueryPlan;
use astrarium_sql_syntax::ast::BinaryOperator;

/// One of so many documents passes a filter for equality that no index knows of.
const EQUALITY_DIVISOR: u64 = 10;
/// The same for any other filter.
const FILTER_DIVISOR: u64 = 3;

/// The rows that operators are expected to give, which are those of the plan in their order.
pub fn estimated_rows(
    plan: &QueryPlan,
    (physical, there): (&PhysicalPlan<'_>, Option<u64>),
    operators: impl Iterator<Item = Operator>,
) -> Vec<Option<u64>> {
    let is_scan = physical.accesses.iter().all(|access| access.path == AccessPath::Scan);
    let mut rows = None;
    operators
        .map(|operator| {
            rows = match operator {
                // A plan whose rows come from another query's finds no documents.
                Operator::Access if plan.input.is_some() => None,
                Operator::Access => found(physical).or(there),
                Operator::Filter(0, _) => rows,
                Operator::Filter(level, place) if is_scan => rows
                    .zip(plan.filters.get(level).and_then(|filters| filters.get(place)))
                    .map(|(rows, condition)| passing(rows, condition)),
                Operator::Filter(..) | Operator::Rank | Operator::Project => rows,
                Operator::TopK => match plan.limit {
                    Some(limit) => rows.map(|rows| rows.min(plan.offset.saturating_add(limit))),
                    None => rows,
                },
                Operator::Group
                    if plan.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty()) =>
                {
                    Some(1)
                }
                Operator::Join(_) | Operator::Group | Operator::Distinct => None,
                Operator::OffsetLimit => {
                    let left = rows.map(|rows| rows.saturating_sub(plan.offset));
                    left.map(|left| plan.limit.map_or(left, |limit| left.min(limit)))
                }
            };
            rows
        })
        .collect()
}

/// About how many documents are found, as far as the choice of a way to them depended on it.
fn found(physical: &PhysicalPlan<'_>) -> Option<u64> {
    let estimates = physical.accesses.iter().map(PlannedAccess::expected);
    let known = estimates.collect::<Option<Vec<u64>>>().filter(|known| !known.is_empty())?;
    Some(known.into_iter().sum())
}

fn passing(rows: u64, condition: &Expr) -> u64 {
    match condition {
        Expr::Binary(BinaryOperator::Equal, ..) => rows.div_ceil(EQUALITY_DIVISOR),
        Expr::And(all) => all.iter().fold(rows, passing),
        _ => rows.div_ceil(FILTER_DIVISOR),
    }
}
