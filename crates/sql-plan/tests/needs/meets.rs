//! Whether a document meets a need, straight from the meaning of the words.

use astrarium_index::{Condition, Need, PathStep, Predicate, Type};
use astrarium_value::Value;
use std::ops::Bound;

pub(crate) fn meets(need: &Need, document: &Value) -> bool {
    match need {
        Need::Anything => true,
        Need::Nothing => false,
        Need::One { condition, .. } => condition_met(condition, document),
        Need::All(needs) => needs.iter().all(|need| meets(need, document)),
        Need::Any(needs) => needs.iter().any(|need| meets(need, document)),
    }
}

fn condition_met(condition: &Condition, document: &Value) -> bool {
    let mut values = vec![document];
    for step in &condition.path.0 {
        values = match step {
            PathStep::Name(name) => values.into_iter().filter_map(|value| member(value, name)).collect(),
            PathStep::Elements => values.into_iter().flat_map(elements).collect(),
        };
    }
    values.into_iter().any(|value| predicate_met(&condition.predicate, value))
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    if let Value::Object(object) = value { object.get(name) } else { None }
}

fn elements(value: &Value) -> &[Value] {
    if let Value::Array(elements) = value { elements } else { &[] }
}

fn predicate_met(predicate: &Predicate, value: &Value) -> bool {
    match predicate {
        Predicate::OneOf(values) => {
            assert!(values.is_sorted() && values.iter().all(is_primitive), "{values:?}");
            values.contains(value)
        }
        Predicate::Not(other) => {
            assert!(is_primitive(other), "{other:?}");
            value != other
        }
        Predicate::Between(low, high) => {
            let types: Vec<_> = [low, high].into_iter().filter_map(type_of).collect();
            assert!(types.iter().all(|one| *one == types[0]), "{predicate:?}");
            let above = match low {
                Bound::Included(low) => value >= low,
                Bound::Excluded(low) => value > low,
                Bound::Unbounded => true,
            };
            let below = match high {
                Bound::Included(high) => value <= high,
                Bound::Excluded(high) => value < high,
                Bound::Unbounded => true,
            };
            Type::of(value) == Some(types[0]) && above && below
        }
        Predicate::Prefix(prefix) => matches!(value, Value::String(text) if text.starts_with(&**prefix)),
        Predicate::Types(types) => Type::of(value).is_some_and(|own| types.contains(&own)),
    }
}

fn is_primitive(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_) | Value::Undefined)
}

fn type_of(bound: &Bound<Value>) -> Option<Type> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Type::of(value),
        Bound::Unbounded => None,
    }
}
