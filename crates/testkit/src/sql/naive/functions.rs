//! Some functions and the aggregates, for the naive evaluator: enough of each kind for random queries.

use super::Unknown;
use super::data::{Data, equal, total_order};
use std::cmp::Ordering;

/// Functions that random queries may call, with the number of their arguments.
pub const FUNCTIONS: [(&str, usize); 31] = [
    ("IS_ARRAY", 1),
    ("IS_BOOL", 1),
    ("IS_DEFINED", 1),
    ("IS_NULL", 1),
    ("IS_NUMBER", 1),
    ("IS_OBJECT", 1),
    ("IS_PRIMITIVE", 1),
    ("IS_STRING", 1),
    ("IS_INTEGER", 1),
    ("LENGTH", 1),
    ("UPPER", 1),
    ("LOWER", 1),
    ("REVERSE", 1),
    ("CONCAT", 2),
    ("CONTAINS", 2),
    ("STARTSWITH", 2),
    ("ENDSWITH", 2),
    ("STRINGEQUALS", 2),
    ("INDEX_OF", 2),
    ("LEFT", 2),
    ("SUBSTRING", 3),
    ("ABS", 1),
    ("FLOOR", 1),
    ("CEILING", 1),
    ("SIGN", 1),
    ("ARRAY_LENGTH", 1),
    ("ARRAY_CONTAINS", 2),
    ("ARRAY_CONCAT", 2),
    ("SETUNION", 2),
    ("SETINTERSECT", 2),
    ("IIF", 3),
];

/// Aggregates that random queries may call.
pub const AGGREGATES: [&str; 6] = ["COUNT", "COUNTIF", "SUM", "AVG", "MIN", "MAX"];

pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The result of a function.
pub(super) fn call(name: &str, arguments: &[Data]) -> Result<Data, Unknown> {
    let name = name.to_ascii_uppercase();
    Ok(match (name.as_str(), arguments) {
        ("IS_ARRAY", [value]) => Data::Bool(matches!(value, Data::Array(_))),
        ("IS_BOOL", [value]) => Data::Bool(matches!(value, Data::Bool(_))),
        ("IS_DEFINED", [value]) => Data::Bool(!matches!(value, Data::Undefined)),
        ("IS_NULL", [value]) => Data::Bool(matches!(value, Data::Null)),
        ("IS_NUMBER", [value]) => Data::Bool(matches!(value, Data::Number(_))),
        ("IS_OBJECT", [value]) => Data::Bool(matches!(value, Data::Object(_))),
        ("IS_PRIMITIVE", [value]) => {
            Data::Bool(matches!(value, Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_)))
        }
        ("IS_STRING", [value]) => Data::Bool(matches!(value, Data::Text(_))),
        ("IS_INTEGER", [value]) => Data::Bool(matches!(value, Data::Number(number) if number.fract() == 0.0)),
        ("IIF", [condition, then, otherwise]) => {
            if matches!(condition, Data::Bool(true)) {
                then.clone()
            } else {
                otherwise.clone()
            }
        }
        (_, [Data::Text(text)]) => one_text(&name, text)?,
        (_, [Data::Text(left), Data::Text(right)]) => two_texts(&name, left, right)?,
        (_, [Data::Number(number)]) => one_number(&name, *number)?,
        ("LEFT", [Data::Text(text), Data::Number(count)]) => cut(text, 0.0, *count),
        ("SUBSTRING", [Data::Text(text), Data::Number(start), Data::Number(count)]) => {
            cut(text, *start, *count)
        }
        ("ARRAY_LENGTH", [Data::Array(items)]) => Data::Number(items.len() as f64),
        ("ARRAY_CONTAINS", [Data::Array(_), Data::Undefined]) => Data::Undefined,
        ("ARRAY_CONTAINS", [Data::Array(items), wanted]) => Data::Bool(contains(items, wanted)),
        ("ARRAY_CONCAT", [Data::Array(left), Data::Array(right)]) => {
            Data::Array([left.as_slice(), right].concat())
        }
        ("SETUNION", [Data::Array(left), Data::Array(right)]) => {
            Data::Array(unique(left.iter().chain(right)))
        }
        ("SETINTERSECT", [Data::Array(left), Data::Array(right)]) => {
            Data::Array(unique(right.iter().filter(|item| contains(left, item))))
        }
        _ if FUNCTIONS.iter().any(|(own, count)| *own == name && *count == arguments.len()) => {
            Data::Undefined
        }
        _ => return Err(format!("the function {name}")),
    })
}

fn contains(items: &[Data], wanted: &Data) -> bool {
    items.iter().any(|item| equal(item, wanted))
}

fn unique<'a>(items: impl Iterator<Item = &'a Data>) -> Vec<Data> {
    let mut seen = Vec::new();
    for item in items {
        if !contains(&seen, item) {
            seen.push(item.clone());
        }
    }
    seen
}

fn one_text(name: &str, text: &str) -> Result<Data, Unknown> {
    Ok(match name {
        "LENGTH" => Data::Number(text.encode_utf16().count() as f64),
        "UPPER" => Data::Text(text.to_uppercase()),
        "LOWER" => Data::Text(text.to_lowercase()),
        "REVERSE" => Data::Text(text.chars().rev().collect()),
        "ABS" | "FLOOR" | "CEILING" | "SIGN" | "ARRAY_LENGTH" => Data::Undefined,
        _ => return Err(format!("the function {name}")),
    })
}

fn two_texts(name: &str, left: &str, right: &str) -> Result<Data, Unknown> {
    Ok(match name {
        "CONCAT" => Data::Text(format!("{left}{right}")),
        "CONTAINS" => Data::Bool(left.contains(right)),
        "STARTSWITH" => Data::Bool(left.starts_with(right)),
        "ENDSWITH" => Data::Bool(left.ends_with(right)),
        "STRINGEQUALS" => Data::Bool(left == right),
        "INDEX_OF" => {
            let units = |text: &str| text.encode_utf16().count() as f64;
            Data::Number(left.find(right).map_or(-1.0, |at| units(&left[..at])))
        }
        "LEFT" | "ARRAY_CONTAINS" | "ARRAY_CONCAT" | "SETUNION" | "SETINTERSECT" => Data::Undefined,
        _ => return Err(format!("the function {name}")),
    })
}

fn one_number(name: &str, number: f64) -> Result<Data, Unknown> {
    Ok(match name {
        "ABS" => Data::Number(number.abs()),
        "FLOOR" => Data::Number(number.floor()),
        "CEILING" => Data::Number(number.ceil()),
        "SIGN" if number == 0.0 => Data::Number(0.0),
        "SIGN" => Data::Number(number.signum()),
        "LENGTH" | "UPPER" | "LOWER" | "REVERSE" | "ARRAY_LENGTH" => Data::Undefined,
        _ => return Err(format!("the function {name}")),
    })
}

/// A part of a text of characters that are one unit each.
fn cut(text: &str, start: f64, count: f64) -> Data {
    if start.fract() != 0.0 || count.fract() != 0.0 {
        return Data::Undefined;
    }
    if start < 0.0 || count <= 0.0 {
        return Data::Text(String::new());
    }
    Data::Text(text.chars().skip(start as usize).take(count as usize).collect())
}

/// The result of an aggregate over the values of its argument.
pub(super) fn aggregate(name: &str, values: &[Data]) -> Result<Data, Unknown> {
    let defined: Vec<&Data> = values.iter().filter(|value| !matches!(value, Data::Undefined)).collect();
    let numbers = || -> Option<Vec<f64>> {
        defined
            .iter()
            .map(|value| if let Data::Number(number) = value { Some(*number) } else { None })
            .collect()
    };
    let extreme = |wanted: Ordering| {
        let composed = defined.iter().any(|value| matches!(value, Data::Array(_) | Data::Object(_)));
        let best = defined
            .iter()
            .copied()
            .reduce(|best, next| if total_order(next, best) == wanted { next } else { best });
        best.filter(|_| !composed).cloned().unwrap_or(Data::Undefined)
    };
    Ok(match name.to_ascii_uppercase().as_str() {
        "COUNT" => Data::Number(defined.len() as f64),
        "COUNTIF" => {
            Data::Number(defined.iter().filter(|value| matches!(value, Data::Bool(true))).count() as f64)
        }
        "SUM" => numbers().map_or(Data::Undefined, |numbers| Data::Number(numbers.iter().sum())),
        "AVG" => match numbers() {
            Some(numbers) if !numbers.is_empty() => {
                Data::Number(numbers.iter().sum::<f64>() / numbers.len() as f64)
            }
            _ => Data::Undefined,
        },
        "MIN" => extreme(Ordering::Less),
        "MAX" => extreme(Ordering::Greater),
        other => return Err(format!("the aggregate {other}")),
    })
}
