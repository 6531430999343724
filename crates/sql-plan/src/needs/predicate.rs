//! From comparisons with constants to predicates, and what two predicates on one value come to.
//!
//! Invariants
//! - Constants in predicates are null, booleans, numbers other than NaN, and text; never arrays or objects.
//! - `OneOf` is sorted and holds each value once; 0 has no sign.

use astrarium_index::{Predicate, Type};
use astrarium_sql_syntax::ast::BinaryOperator;
use astrarium_value::Value;
use std::cmp::Ordering;
use std::ops::Bound;

/// What two predicates on one value come to.
#[derive(Debug, PartialEq)]
pub(super) enum Meet {
    /// One predicate that says both.
    Both(Predicate),
    /// Nothing meets both.
    Nothing,
    /// They have to stand beside each other.
    Apart,
}

/// The value is defined.
pub(super) fn defined() -> Predicate {
    Predicate::Types(Type::ALL.to_vec())
}

/// The value is null, a boolean, a number or text.
pub(super) fn primitive() -> Predicate {
    Predicate::Types(vec![Type::Null, Type::Bool, Type::Number, Type::String])
}

/// A constant as predicates hold it; none for what nothing equals, and for what they do not hold.
pub(super) fn constant(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_nan() => None,
        // Adding zero takes the sign from zero and changes nothing else.
        Value::Number(number) => Some(Value::Number(number + 0.0)),
        Value::Null | Value::Bool(_) | Value::String(_) => Some(value.clone()),
        Value::Undefined | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value is one of these constants; none if there are none.
pub(super) fn one_of(mut values: Vec<Value>) -> Option<Predicate> {
    values.sort();
    values.dedup();
    (!values.is_empty()).then_some(Predicate::OneOf(values))
}

/// The values of the constant's type that compare so with it: `value operator constant`. None if there are none.
pub(super) fn range(operator: BinaryOperator, value: &Value) -> Option<Predicate> {
    let value = constant(value)?;
    let (low, high) = match operator {
        BinaryOperator::Less => (Bound::Unbounded, Bound::Excluded(value)),
        BinaryOperator::LessOrEqual => (Bound::Unbounded, Bound::Included(value)),
        BinaryOperator::Greater => (Bound::Excluded(value), Bound::Unbounded),
        BinaryOperator::GreaterOrEqual => (Bound::Included(value), Bound::Unbounded),
        _ => return None,
    };
    between(low, high)
}

/// The values between two bounds of one type. Types of one or two values are listed. None if there are none.
pub(super) fn between(low: Bound<Value>, high: Bound<Value>) -> Option<Predicate> {
    let few = match value_of(&low).or(value_of(&high))? {
        Value::Null => vec![Value::Null],
        Value::Bool(_) => vec![Value::Bool(false), Value::Bool(true)],
        _ => match (&low, &high) {
            (Bound::Included(a), Bound::Included(b)) if a == b => vec![a.clone()],
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a >= b => {
                return None;
            }
            _ => return Some(Predicate::Between(low, high)),
        },
    };
    one_of(few.into_iter().filter(|value| is_above(value, &low) && is_below(value, &high)).collect())
}

/// What both predicates together say.
pub(super) fn intersect(left: &Predicate, right: &Predicate) -> Meet {
    use Predicate::{Between, Not, OneOf, Prefix, Types};
    match (left, right) {
        (OneOf(values), other) | (other, OneOf(values)) => {
            let values = values.iter().filter(|value| holds(other, value)).cloned().collect();
            one_of(values).map_or(Meet::Nothing, Meet::Both)
        }
        (Types(one), Types(two)) => {
            let types: Vec<Type> = one.iter().filter(|name| two.contains(name)).copied().collect();
            if types.is_empty() { Meet::Nothing } else { Meet::Both(Types(types)) }
        }
        (Types(types), Not(value)) | (Not(value), Types(types)) => {
            match Type::of(value).is_some_and(|own| types.contains(&own)) {
                false => Meet::Both(Types(types.clone())),
                true if types.len() == Type::ALL.len() => Meet::Both(Not(value.clone())),
                true => Meet::Apart,
            }
        }
        (Types(types), other) | (other, Types(types)) => {
            if type_of(other).is_some_and(|own| types.contains(&own)) {
                Meet::Both(other.clone())
            } else {
                Meet::Nothing
            }
        }
        (Not(one), Not(two)) if one == two => Meet::Both(left.clone()),
        (Not(_), Not(_)) => Meet::Apart,
        (Not(value), other) | (other, Not(value)) if !holds(other, value) => Meet::Both(other.clone()),
        (one, two) if type_of(one) != type_of(two) && !matches!((one, two), (Not(_), _) | (_, Not(_))) => {
            Meet::Nothing
        }
        (Prefix(one), Prefix(two)) if one.starts_with(&**two) => Meet::Both(left.clone()),
        (Prefix(one), Prefix(two)) if two.starts_with(&**one) => Meet::Both(right.clone()),
        (Prefix(_), Prefix(_)) => Meet::Nothing,
        (Between(low, high), Between(other_low, other_high)) => {
            let low = if is_tighter(low, other_low, Ordering::Greater) { low } else { other_low };
            let high = if is_tighter(high, other_high, Ordering::Less) { high } else { other_high };
            between(low.clone(), high.clone()).map_or(Meet::Nothing, Meet::Both)
        }
        _ => Meet::Apart,
    }
}

/// Whether a constant meets a predicate.
pub(super) fn holds(predicate: &Predicate, value: &Value) -> bool {
    match predicate {
        Predicate::OneOf(values) => values.binary_search(value).is_ok(),
        Predicate::Not(other) => value != other,
        Predicate::Between(low, high) => {
            type_of(predicate) == Type::of(value) && is_above(value, low) && is_below(value, high)
        }
        Predicate::Prefix(prefix) => matches!(value, Value::String(text) if text.starts_with(&**prefix)),
        Predicate::Types(types) => Type::of(value).is_some_and(|own| types.contains(&own)),
    }
}

/// The one type that a predicate allows, if there is one.
fn type_of(predicate: &Predicate) -> Option<Type> {
    match predicate {
        Predicate::Between(low, high) => Type::of(value_of(low).or(value_of(high))?),
        Predicate::Prefix(_) => Some(Type::String),
        Predicate::OneOf(_) | Predicate::Not(_) | Predicate::Types(_) => None,
    }
}

fn value_of(bound: &Bound<Value>) -> Option<&Value> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

fn is_above(value: &Value, low: &Bound<Value>) -> bool {
    match low {
        Bound::Included(low) => value >= low,
        Bound::Excluded(low) => value > low,
        Bound::Unbounded => true,
    }
}

fn is_below(value: &Value, high: &Bound<Value>) -> bool {
    match high {
        Bound::Included(high) => value <= high,
        Bound::Excluded(high) => value < high,
        Bound::Unbounded => true,
    }
}

/// Whether a bound allows less than another on its side: `inward` is where values of tighter bounds lie.
fn is_tighter(bound: &Bound<Value>, other: &Bound<Value>, inward: Ordering) -> bool {
    match (value_of(bound), value_of(other)) {
        (Some(own), Some(value)) => match own.cmp(value) {
            Ordering::Equal => matches!(bound, Bound::Excluded(_)),
            order => order == inward,
        },
        (own, _) => own.is_some(),
    }
}
