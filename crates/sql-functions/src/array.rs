//! Functions of arrays, taken as lists or as sets.
//!
//! Elements are compared by full equality, as the operator `=` does. Undefined elements, which literals never leave in an
//! array, are skipped by the functions that compute something from elements.
//! Invariants
//! - Sets keep the order in which elements first came; the steps grow with the number of elements, not its square.

use std::cmp::Ordering;
use std::collections::HashSet;

use astrarium_value::{Object, Value};

use crate::arguments::{array, at, count, integer};
use crate::limits::{ARRAY_BYTES_MAX, approximate_bytes, may_go_on};
use crate::operators::{all_true, any_true, equals, truth_value};
use crate::{ANY_COUNT, FunctionIndexUse, ScalarFunction};

const CONTAINS: Option<FunctionIndexUse> = Some(FunctionIndexUse::ArrayContains { array: 0, first: 1 });

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "ARRAY_CONCAT",
        signature: "(...arrays: array) -> array",
        arguments: 2..=ANY_COUNT,
        summary: "The elements of all arrays in order.",
        example: Some((r#"[1,2],[3],["a"]"#, r#"[1,2,3,"a"]"#)),
        evaluate: |_, arguments| concat(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_CONTAINS",
        signature: "(array: array, value: any, partial?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "True when the array has the value, or with a third argument true an object with its members.",
        example: Some((r#"[{"name":"Ada","born":1815}],{"name":"Ada"},true"#, "true")),
        evaluate: |_, arguments| contains(arguments).unwrap_or_default(),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "_TRY_ARRAY_CONTAINS",
        signature: "(array: array, value: any, partial?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "As ARRAY_CONTAINS; the name that the service's own planner uses.",
        example: Some(("[1,2],2", "true")),
        evaluate: |_, arguments| contains(arguments).unwrap_or_default(),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_CONTAINS_ALL",
        signature: "(array: array, ...values: any) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the array has all the values.",
        example: Some((r#"["a","b","c"],"a","c""#, "true")),
        evaluate: |_, arguments| contains_many(arguments, false).unwrap_or_default(),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_CONTAINS_ANY",
        signature: "(array: array, ...values: any) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the array has one of the values.",
        example: Some((r#"["a","b","c"],"x","c""#, "true")),
        evaluate: |_, arguments| contains_many(arguments, true).unwrap_or_default(),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_LENGTH",
        signature: "(array: array) -> number",
        arguments: 1..=1,
        summary: "How many elements the array has.",
        example: Some((r#"["a","b","c"]"#, "3")),
        evaluate: |_, arguments| array(arguments, 0).map(|values| count(values.len())).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_SLICE",
        signature: "(array: array, start: number, length?: number) -> array",
        arguments: 2..=3,
        summary: "The elements from a place on, counted from the end when negative, at most so many.",
        example: Some((r#"["a","b","c","d"],1,2"#, r#"["b","c"]"#)),
        evaluate: |_, arguments| slice(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_AVG",
        signature: "(array: array) -> number",
        arguments: 1..=1,
        summary: "The mean of an array of numbers.",
        example: Some(("[1,2,6]", "3")),
        evaluate: |_, arguments| average(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_MAX",
        signature: "(array: array) -> any",
        arguments: 1..=1,
        summary: "The greatest of an array of primitive values, in the order of types.",
        example: Some(("[1,7,3]", "7")),
        evaluate: |_, arguments| extreme(arguments, Ordering::Greater).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_MEDIAN",
        signature: "(array: array) -> number",
        arguments: 1..=1,
        summary: "The median of an array of numbers.",
        example: Some(("[1,2,9]", "2")),
        evaluate: |_, arguments| median(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_MIN",
        signature: "(array: array) -> any",
        arguments: 1..=1,
        summary: "The least of an array of primitive values, in the order of types.",
        example: Some(("[4,1,3]", "1")),
        evaluate: |_, arguments| extreme(arguments, Ordering::Less).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ARRAY_SUM",
        signature: "(array: array) -> number",
        arguments: 1..=1,
        summary: "The sum of an array of numbers.",
        example: Some(("[1,2,3]", "6")),
        evaluate: |_, arguments| {
            numbers(arguments).map(|numbers| Value::Number(numbers.iter().sum())).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SETDIFFERENCE",
        signature: "(first: array, second: array) -> array",
        arguments: 2..=2,
        summary: "The distinct elements of the first array that the second does not have.",
        example: Some(("[1,2,3],[2]", "[1,3]")),
        evaluate: |_, arguments| difference(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SETEQUAL",
        signature: "(first: array, second: array) -> boolean",
        arguments: 2..=2,
        summary: "True when both arrays have the same elements, whatever their order and number.",
        example: Some(("[1,2,2],[2,1]", "true")),
        evaluate: |_, arguments| set_equal(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SETINTERSECT",
        signature: "(first: array, second: array) -> array",
        arguments: 2..=2,
        summary: "The distinct elements that both arrays have, in the order of the second.",
        example: Some(("[1,2,3],[3,2,5]", "[3,2]")),
        evaluate: |_, arguments| intersection(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SETUNION",
        signature: "(first: array, second: array) -> array",
        arguments: 2..=2,
        summary: "The distinct elements of both arrays.",
        example: Some(("[1,2],[2,3]", "[1,2,3]")),
        evaluate: |_, arguments| union(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
];

fn concat(arguments: &[Value]) -> Option<Value> {
    let mut result = Vec::new();
    let mut bytes = 0_usize;
    for place in 0..arguments.len() {
        let values = array(arguments, place)?;
        // The same large array may be named thousands of times.
        bytes = bytes.saturating_add(approximate_bytes(at(arguments, place)));
        if bytes > ARRAY_BYTES_MAX {
            return None;
        }
        result.extend_from_slice(values);
    }
    Some(Value::Array(result))
}

/// Only `true` as third argument asks for a partial match; an undefined one does not make the call undefined.
fn contains(arguments: &[Value]) -> Option<Value> {
    let (values, needle) = (array(arguments, 0)?, at(arguments, 1));
    if needle.is_undefined() {
        return None;
    }
    let found = match (at(arguments, 2), needle) {
        (Value::Bool(true), Value::Object(wanted)) => {
            values.iter().any(|value| matches!(value, Value::Object(object) if has_members(object, wanted)))
        }
        _ => has(values, needle),
    };
    Some(Value::Bool(found))
}

/// Partial at the top level only: each wanted member must be there and fully equal.
fn has_members(object: &Object, wanted: &Object) -> bool {
    // Looking names up one by one takes the product of both sizes; beyond a screenful, sort instead.
    const LOOKUPS_MAX: usize = 1024;
    if object.len().saturating_mul(wanted.len()) <= LOOKUPS_MAX {
        return wanted.iter().all(|(name, value)| object.get(name) == Some(value));
    }
    let sorted = object.sorted_members();
    let mut rest = sorted.as_slice();
    wanted.sorted_members().iter().all(|(name, value)| {
        let skipped = rest.iter().take_while(|(own, _)| own != name).count();
        let found = rest.get(skipped);
        rest = rest.get(skipped + 1..).unwrap_or_default();
        found.is_some_and(|(_, own)| own == value)
    })
}

fn has(values: &[Value], needle: &Value) -> bool {
    values.iter().any(|value| equals(value, needle) == Some(true))
}

fn contains_many(arguments: &[Value], any: bool) -> Option<Value> {
    let values = array(arguments, 0)?;
    let tests = arguments.iter().skip(1).map(|needle| match needle {
        Value::Undefined => None,
        needle => Some(may_go_on(values.len()) && has(values, needle)),
    });
    Some(truth_value(if any { any_true(tests) } else { all_true(tests) }))
}

fn slice(arguments: &[Value]) -> Option<Value> {
    let values = array(arguments, 0)?;
    let start = integer(arguments, 1)?;
    let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let start = if start < 0 { values.len().saturating_sub(from_end) } else { from_end.min(values.len()) };
    let most = if arguments.len() > 2 { integer(arguments, 2)? } else { i64::MAX };
    let most = usize::try_from(most.max(0)).unwrap_or(usize::MAX);
    let end = start.saturating_add(most).min(values.len());
    Some(Value::Array(values[start..end].to_vec()))
}

/// The elements as numbers; none when another type is among them.
fn numbers(arguments: &[Value]) -> Option<Vec<f64>> {
    let defined = array(arguments, 0)?.iter().filter(|value| !value.is_undefined());
    defined
        .map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
        .collect()
}

fn average(arguments: &[Value]) -> Option<Value> {
    let numbers = numbers(arguments)?;
    (!numbers.is_empty()).then(|| Value::Number(numbers.iter().sum::<f64>() / numbers.len() as f64))
}

fn median(arguments: &[Value]) -> Option<Value> {
    let mut numbers = numbers(arguments)?;
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    let even = numbers.len().is_multiple_of(2);
    Some(Value::Number(if even { f64::midpoint(numbers[middle - 1], upper) } else { upper }))
}

/// The element that stands on the wanted side of all others; none for arrays, objects and no elements.
fn extreme(arguments: &[Value], wanted: Ordering) -> Option<Value> {
    let mut best: Option<&Value> = None;
    for value in array(arguments, 0)?.iter().filter(|value| !value.is_undefined()) {
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            return None;
        }
        if best.is_none_or(|best| value.cmp(best) == wanted) {
            best = Some(value);
        }
    }
    best.cloned()
}

fn difference(arguments: &[Value]) -> Option<Value> {
    let (first, second) = (array(arguments, 0)?, array(arguments, 1)?);
    let mut excluded: HashSet<&Value> = second.iter().collect();
    Some(distinct(first.iter().filter(|value| excluded.insert(value))))
}

fn intersection(arguments: &[Value]) -> Option<Value> {
    let (first, second) = (array(arguments, 0)?, array(arguments, 1)?);
    let mut wanted: HashSet<&Value> = first.iter().collect();
    // Taking the element out keeps a second occurrence from being taken again.
    Some(distinct(second.iter().filter(|value| wanted.remove(value))))
}

fn union(arguments: &[Value]) -> Option<Value> {
    let (first, second) = (array(arguments, 0)?, array(arguments, 1)?);
    let mut seen: HashSet<&Value> = HashSet::new();
    Some(distinct(first.iter().chain(second).filter(|value| seen.insert(value))))
}

fn distinct<'a>(values: impl Iterator<Item = &'a Value>) -> Value {
    Value::Array(values.cloned().collect())
}

fn set_equal(arguments: &[Value]) -> Option<Value> {
    let first: HashSet<&Value> = array(arguments, 0)?.iter().collect();
    let second: HashSet<&Value> = array(arguments, 1)?.iter().collect();
    Some(Value::Bool(first == second))
}

#[cfg(test)]
mod tests;
