//! Whether a container's indexing policy lets a query be served at all. Asked when a query runs, not when SDKs ask for its
//! plan: the service's planner does not know the policy either.

use crate::bind::Catalog;
use crate::error::PlanError;
use crate::expression::{Expr, Step};
use crate::plan::{Order, OrderKey, QueryPlan};
use astrarium_catalog::definition::container::{CompositePath, SortOrder};
use astrarium_sql_syntax::Span;

/// Several sort keys need a composite index of the same paths, with the same directions or all of them reversed.
pub(crate) fn check(plan: &QueryPlan, catalog: Catalog<'_>) -> Result<(), PlanError> {
    let (Some(container), Order::Keys(keys), None) = (catalog.container, &plan.order, &plan.grouping) else {
        return Ok(());
    };
    if keys.len() < 2 {
        return Ok(());
    }
    let composites = &container.indexing.composite;
    let served =
        composites.iter().any(|index| serves(&index.paths, keys, false) || serves(&index.paths, keys, true));
    if served {
        return Ok(());
    }
    let message =
        "The order by query does not have a corresponding composite index that it can be served from.";
    Err(PlanError::new(Span::default(), "", message))
}

fn serves(paths: &[CompositePath], keys: &[OrderKey], reversed: bool) -> bool {
    paths.len() == keys.len()
        && paths.iter().zip(keys).all(|(path, key)| {
            let descending = path.order == SortOrder::Descending;
            is_path(&key.key, path.path.segments()) && descending == (key.descending != reversed)
        })
}

fn is_path(key: &Expr, segments: &[Box<str>]) -> bool {
    let Expr::Path(_, steps) = key else { return false };
    steps.len() == segments.len()
        && steps
            .iter()
            .zip(segments)
            .all(|(step, segment)| matches!(step, Step::Name(name) if **name == **segment))
}
