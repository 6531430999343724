//! The state of an accumulator as a value, for continuation tokens.
//!
//! Counts are numbers; a sum is a number, or the word for one that JSON lacks, or null once there is none; a mean is
//! `[count, sum]`; an extreme is `[]`, `[value]` or null; lists and sets are arrays. Tokens come back from clients, so
//! reading accepts nothing that writing does not give.

use astrarium_value::{Object, Value};

use super::{Accumulator, AggregateFunction, Extreme};
use crate::arguments::whole;

impl Accumulator {
    /// The state as a value that JSON can hold.
    pub fn to_state(&self) -> Value {
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => Value::Number(*count as f64),
            Accumulator::Sum(sum) => sum.map_or(Value::Null, write_number),
            Accumulator::Average { count, sum } => {
                Value::Array(vec![Value::Number(*count as f64), sum.map_or(Value::Null, write_number)])
            }
            Accumulator::Minimum(extreme) | Accumulator::Maximum(extreme) => match extreme {
                Extreme::Nothing => Value::Array(Vec::new()),
                // The words for numbers that JSON lacks go into an object: a text could be a value itself.
                Extreme::Value(Value::Number(number)) if !number.is_finite() => {
                    let members = [("number".into(), write_number(*number))];
                    Value::Array(vec![Value::Object(Object::from_members(members))])
                }
                Extreme::Value(value) => Value::Array(vec![value.clone()]),
                Extreme::Incomparable => Value::Null,
            },
            Accumulator::MakeList { values, .. } => Value::Array(values.clone()),
            Accumulator::MakeSet { values, .. } => Value::Array(values.iter().cloned().collect()),
        }
    }

    /// The accumulator whose state was written; none when the value is no state of that function.
    pub fn from_state(function: AggregateFunction, state: &Value) -> Option<Accumulator> {
        Some(match (function, state) {
            (AggregateFunction::Count, count) => Accumulator::Count(read_count(count)?),
            (AggregateFunction::CountIf, count) => Accumulator::CountIf(read_count(count)?),
            (AggregateFunction::Sum, Value::Null) => Accumulator::Sum(None),
            (AggregateFunction::Sum, sum) => Accumulator::Sum(Some(read_number(sum)?)),
            (AggregateFunction::Average, Value::Array(parts)) => match parts.as_slice() {
                [count, Value::Null] => Accumulator::Average { count: read_count(count)?, sum: None },
                [count, sum] => {
                    Accumulator::Average { count: read_count(count)?, sum: Some(read_number(sum)?) }
                }
                _ => return None,
            },
            (AggregateFunction::Minimum, extreme) => Accumulator::Minimum(read_extreme(extreme)?),
            (AggregateFunction::Maximum, extreme) => Accumulator::Maximum(read_extreme(extreme)?),
            (AggregateFunction::MakeList | AggregateFunction::MakeSet, Value::Array(values)) => {
                let mut accumulator = function.start();
                for value in values {
                    accumulator.add(value);
                }
                accumulator
            }
            _ => return None,
        })
    }
}

fn write_number(number: f64) -> Value {
    if number.is_finite() { Value::Number(number) } else { format!("{number}").as_str().into() }
}

fn read_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::String(word) if matches!(&**word, "NaN" | "inf" | "-inf") => word.parse().ok(),
        _ => None,
    }
}

fn read_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => u64::try_from(whole(*number)?).ok(),
        _ => None,
    }
}

fn read_extreme(value: &Value) -> Option<Extreme> {
    let Value::Array(values) = value else {
        return matches!(value, Value::Null).then_some(Extreme::Incomparable);
    };
    match values.as_slice() {
        [] => Some(Extreme::Nothing),
        [Value::Object(object)] => {
            let number = read_number(object.get("number")?)?;
            Some(Extreme::Value(Value::Number(number)))
        }
        [Value::Array(_) | Value::Undefined] => None,
        [value] => Some(Extreme::Value(value.clone())),
        _ => None,
    }
}
