//! A condition is checked as soon as the sources it reads are bound, not after the whole product of the joins.

use crate::expression::Expr;
use crate::plan::{QueryPlan, SourceKind};

/// Splits the filter at its ANDs and moves each part to the first place where it can be checked; in subqueries too.
pub(super) fn apply(mut plan: QueryPlan) -> QueryPlan {
    let conditions: Vec<Expr> = std::mem::take(&mut plan.filters).into_iter().flatten().collect();
    plan.filters = vec![Vec::new(); plan.sources.len() + 1];
    for condition in conditions.into_iter().flat_map(split) {
        let place = first_place(&plan, &condition);
        plan.filters[place].push(condition);
    }
    for source in &mut plan.sources {
        if let SourceKind::Rows(inner) | SourceKind::ElementsOfRows(inner) = &mut source.kind {
            let taken = std::mem::replace(&mut **inner, QueryPlan::nothing());
            **inner = apply(taken);
        }
    }
    plan
}

/// The parts of a chain of ANDs: a row passes when each of them is true.
fn split(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(split).collect(),
        other => vec![other],
    }
}

fn first_place(plan: &QueryPlan, condition: &Expr) -> usize {
    let mut slots = Vec::new();
    condition.slots(&mut slots);
    let needs =
        |slot| plan.sources.iter().position(|source| source.slot == slot).map_or(0, |index| index + 1);
    slots.into_iter().map(needs).max().unwrap_or(0)
}
