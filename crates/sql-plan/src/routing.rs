//! Which partition keys a filter leaves: the partitions that a query has to look at.
//!
//! In: a plan and the partition key definition. Out: everything, or a list of keys (whole, or prefixes of hierarchical
//! ones). Only equality, IN, OR of those and boolean use of the key itself count, as on the service; a condition that
//! says nothing about the key leaves everything.

use crate::expression::{Expr, Step};
use crate::plan::{QueryPlan, SourceKind};
use astrarium_partition::{Component, PartitionKey, PartitionKeyDefinition};
use astrarium_sql_syntax::ast::{BinaryOperator, UnaryOperator};
use astrarium_value::Value;

/// The keys of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Route {
    /// Any partition may have rows.
    Everything,
    /// Only these may; each has one component per level that is pinned, the outermost first. Empty: no rows at all.
    Keys(Vec<PartitionKey>),
}

/// Keys listed at most; more than that are as good as everything.
const KEY_COUNT_MAX: usize = 1_000;

/// Finds the keys of a plan.
pub fn route(plan: &QueryPlan, definition: &PartitionKeyDefinition) -> Route {
    let Some(source) = plan.sources.first().filter(|source| matches!(source.kind, SourceKind::Documents))
    else {
        return Route::Everything;
    };
    let mut levels: Vec<Option<Vec<Value>>> = vec![None; definition.paths.len()];
    for condition in conditions(plan) {
        for (level, path) in definition.paths.iter().enumerate() {
            let own = |expression: &Expr| is_path(expression, source.slot, path.segments());
            if let Some(values) = allowed(condition, &own) {
                levels[level] = Some(intersect(levels[level].take(), values));
            }
        }
    }
    let mut keys = vec![Vec::new()];
    for values in levels.into_iter().map_while(|level| level) {
        if keys.len().saturating_mul(values.len()) > KEY_COUNT_MAX {
            return Route::Everything;
        }
        let components: Vec<Component> = values.iter().map(component).collect();
        keys = keys
            .iter()
            .flat_map(|key| {
                components
                    .iter()
                    .map(move |component| [key.as_slice(), std::slice::from_ref(component)].concat())
            })
            .collect();
    }
    match keys.first() {
        Some(first) if first.is_empty() => Route::Everything,
        _ => Route::Keys(keys.into_iter().map(PartitionKey::new).collect()),
    }
}

/// What every row meets: the filter, and those of subqueries without whose rows there are none.
fn conditions(plan: &QueryPlan) -> Vec<&Expr> {
    let mut all: Vec<&Expr> = plan.filters.iter().flatten().collect();
    for source in &plan.sources {
        if let SourceKind::Rows(inner) | SourceKind::ElementsOfRows(inner) = &source.kind
            && inner.grouping.is_none()
        {
            all.extend(conditions(inner));
        }
    }
    all
}

/// The values that a condition allows a path to have; none if it says nothing about it.
fn allowed(condition: &Expr, is_key: &dyn Fn(&Expr) -> bool) -> Option<Vec<Value>> {
    match condition {
        Expr::Binary(BinaryOperator::Equal, left, right) => match (left, right) {
            (key, other) if is_key(key) => Some(vec![other.as_constant()?.clone()]),
            (other, key) if is_key(key) => Some(vec![other.as_constant()?.clone()]),
            _ => None,
        },
        Expr::In(key, list) if is_key(key) => list.iter().map(|item| item.as_constant().cloned()).collect(),
        Expr::Like(key, pattern) if is_key(key) => Some(vec![Value::String(pattern.literal()?.into())]),
        Expr::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(allowed(part, is_key)?);
            }
            Some(all)
        }
        Expr::And(parts) => {
            let known = parts.iter().filter_map(|part| allowed(part, is_key));
            known.fold(None, |left, right| Some(intersect(left, right)))
        }
        Expr::Unary(UnaryOperator::Not, key) if is_key(key) => Some(vec![Value::Bool(false)]),
        key if is_key(key) => Some(vec![Value::Bool(true)]),
        Expr::Constant(value) if !matches!(value, Value::Bool(true)) => Some(Vec::new()),
        _ => None,
    }
}

/// Values in both lists, sorted and each once.
fn intersect(left: Option<Vec<Value>>, mut right: Vec<Value>) -> Vec<Value> {
    right.sort();
    right.dedup();
    let Some(left) = left else { return right };
    // The left list is the result of an earlier call, so it is sorted.
    right.retain(|value| left.binary_search(value).is_ok());
    right
}

fn is_path(expression: &Expr, slot: usize, segments: &[Box<str>]) -> bool {
    let Expr::Path(own, steps) = expression else { return false };
    *own == slot
        && steps.len() == segments.len()
        && steps
            .iter()
            .zip(segments)
            .all(|(step, segment)| matches!(step, Step::Name(name) if **name == **segment))
}

/// A value as a component; what is no scalar stands where documents without a scalar key are.
fn component(value: &Value) -> Component {
    match value {
        Value::Null => Component::Null,
        Value::Bool(value) => Component::Bool(*value),
        Value::Number(number) => Component::Number(*number),
        Value::String(text) => Component::String((&**text).into()),
        Value::Undefined | Value::Array(_) | Value::Object(_) => Component::Undefined,
    }
}
