//! Where the rows of a query can be: its filter's partition keys as ranges of effective keys.
//!
//! In: a bound plan. Out: sorted disjoint ranges, and whether they are one logical partition. The work is `routing`'s;
//! here conditions are first brought into forms that it knows, and keys become places.
//! - Constants are computed, except those of geometries, which the service's planner leaves alone.
//! - `ARRAY_CONTAINS([..], key)`, `IS_NULL(key)`, `IS_BOOL(key)` and `ABS(key) = n` allow few values, like IN.

use super::ClientRange;
use crate::expression::Expr;
use crate::plan::QueryPlan;
use crate::routing::{Route, route};
use crate::rules;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_partition::{
    EffectiveKey, EffectiveRange, PartitionKey, PartitionKeyDefinition, PartitionKind,
};
use astrarium_sql_syntax::ast::BinaryOperator;
use astrarium_value::Value;

/// The ranges of a plan, and whether they are one partition key.
pub(super) fn of(plan: &QueryPlan, container: Option<&ContainerDefinition>) -> (Vec<ClientRange>, bool) {
    if !plan.reads_documents() {
        return (vec![point(EffectiveKey::MIN)], false);
    }
    let Some(container) = container else { return (vec![everything()], false) };
    let definition = &container.partition_key;
    let mut plan = plan.clone();
    each_filter(&mut plan, hide_geometry);
    let mut plan = rules::apply(plan);
    each_filter(&mut plan, few_values);
    let Route::Keys(keys) = route(&plan, definition) else { return (vec![everything()], false) };
    let whole = keys.iter().all(|key| key.components().len() == definition.paths.len());
    if !whole && definition.kind != PartitionKind::MultiHash {
        // Without a hash per level a part of a key is nowhere in particular.
        return (vec![everything()], false);
    }
    let mut ranges: Vec<ClientRange> = keys.into_iter().map(|key| place(definition, key, whole)).collect();
    ranges.sort();
    ranges.dedup();
    let single_key = whole && ranges.len() == 1;
    if ranges.is_empty() {
        ranges.push(point(EffectiveKey::MIN));
    }
    (ranges, single_key)
}

fn everything() -> ClientRange {
    let EffectiveRange { min, max } = EffectiveRange::full();
    ClientRange { min, max }
}

fn point(key: EffectiveKey) -> ClientRange {
    ClientRange { min: key.clone(), max: key }
}

fn place(definition: &PartitionKeyDefinition, key: PartitionKey, whole: bool) -> ClientRange {
    if whole {
        return point(definition.effective(&definition.canonical(key)));
    }
    let EffectiveRange { min, max } = EffectiveRange::of_prefix(definition.effective(&key));
    ClientRange { min, max }
}

fn each_filter(plan: &mut QueryPlan, change: fn(Expr) -> Expr) {
    for filter in plan.filters.iter_mut().flatten() {
        let taken = std::mem::replace(filter, Expr::Constant(Value::Undefined));
        *filter = change(taken);
    }
}

/// Makes calls of spatial functions unknown, by the form that no rule evaluates.
fn hide_geometry(condition: Expr) -> Expr {
    let hidden = |part: Box<Expr>| Box::new(hide_geometry(*part));
    match condition {
        Expr::Call(function, arguments, _) if function.name.starts_with("ST_") => {
            Expr::UserDefined(function.name.into(), arguments)
        }
        Expr::Unary(operator, operand) => Expr::Unary(operator, hidden(operand)),
        Expr::Binary(operator, left, right) => Expr::Binary(operator, hidden(left), hidden(right)),
        Expr::And(parts) => Expr::And(parts.into_iter().map(hide_geometry).collect()),
        Expr::Or(parts) => Expr::Or(parts.into_iter().map(hide_geometry).collect()),
        other => other,
    }
}

/// Turns conditions that only a few values meet into lists of those values.
fn few_values(condition: Expr) -> Expr {
    let list = |value: &Expr, allowed: Vec<Value>| {
        Expr::In(Box::new(value.clone()), allowed.into_iter().map(Expr::Constant).collect())
    };
    match condition {
        Expr::And(parts) => Expr::And(parts.into_iter().map(few_values).collect()),
        Expr::Or(parts) => Expr::Or(parts.into_iter().map(few_values).collect()),
        Expr::Call(function, arguments, settings) => match (function.name, arguments.as_slice()) {
            ("IS_NULL", [value]) => list(value, vec![Value::Null]),
            ("IS_BOOL" | "IS_BOOLEAN", [value]) => list(value, vec![Value::Bool(false), Value::Bool(true)]),
            ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", [Expr::Constant(Value::Array(items)), value]) => {
                list(value, items.clone())
            }
            _ => Expr::Call(function, arguments, settings),
        },
        Expr::Binary(BinaryOperator::Equal, left, right) => match (&*left, &*right) {
            (Expr::Call(function, arguments, _), Expr::Constant(Value::Number(number)))
            | (Expr::Constant(Value::Number(number)), Expr::Call(function, arguments, _))
                if function.name == "ABS" && arguments.len() == 1 =>
            {
                let both = [*number, -*number].map(Value::Number);
                list(&arguments[0], if *number < 0.0 { Vec::new() } else { both.to_vec() })
            }
            _ => Expr::Binary(BinaryOperator::Equal, left, right),
        },
        other => other,
    }
}
