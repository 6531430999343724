//! What a query gave, and whether that is what was expected.
//!
//! In: rows as JSON, or a refusal; patterns. Out: a description of the difference.
//! Invariants
//! - Numbers are compared as doubles, exactly unless a tolerance is given; the order of members does not matter.
//! - A pattern may have `<any>` for a value and `...` for further members or elements, nothing else.
//!
//! Not here: asking (`stage`).

use super::case_file::{Refusal, Rows};
use crate::json::Json;
use astrarium_database::{Error, Kind, QueryFault};
use std::cmp::Ordering;

/// What came of a query.
pub type QueryAnswer = Result<Vec<Json>, Error>;

/// Whether a value is as expected.
pub fn same(expected: &Json, actual: &Json, tolerance: f64) -> bool {
    match (expected, actual) {
        (Json::Hole(_), _) => true,
        (Json::Word(expected), Json::Word(actual)) => same_word(expected, actual, tolerance),
        (Json::Text(expected), Json::Text(actual)) => expected == actual,
        (Json::Array { items, open }, Json::Array { items: actual, .. }) => {
            let long_enough = items.len() == actual.len() || (*open && items.len() < actual.len());
            long_enough && items.iter().zip(actual).all(|(item, actual)| same(item, actual, tolerance))
        }
        (Json::Object { members, open }, Json::Object { members: actual_members, .. }) => {
            (*open || members.len() == actual_members.len())
                && members.iter().all(|(name, value)| {
                    actual.get(name).is_some_and(|actual| same(value, actual, tolerance))
                })
        }
        _ => false,
    }
}

fn same_word(expected: &str, actual: &str, tolerance: f64) -> bool {
    match (expected.parse::<f64>(), actual.parse::<f64>()) {
        (Ok(expected), Ok(actual)) => {
            let greatest = expected.abs().max(actual.abs());
            // The first also holds for infinities; a tolerance of 0 leaves only it.
            expected.partial_cmp(&actual) == Some(Ordering::Equal)
                || (expected - actual).abs() <= tolerance * greatest
        }
        _ => expected == actual,
    }
}

/// Whether rows are as expected.
pub fn rows_match(expected: &Rows, actual: &[Json], tolerance: f64) -> bool {
    if expected.rows.len() != actual.len() {
        return false;
    }
    if expected.ordered {
        return expected.rows.iter().zip(actual).all(|(expected, actual)| same(expected, actual, tolerance));
    }
    let mut left: Vec<&Json> = actual.iter().collect();
    expected.rows.iter().all(|expected| {
        let found = left.iter().position(|actual| same(expected, actual, tolerance));
        found.map(|index| left.swap_remove(index)).is_some()
    })
}

/// The refusal of a query, as a case file would state it.
pub fn refusal(query: &str, error: &Error) -> Refusal {
    let status = if error.kind() == Kind::Request { 400 } else { 500 };
    match error {
        Error::Query(faults) => match faults.first() {
            Some(fault) => Refusal {
                status,
                code: Some(fault.code.to_owned()).filter(|code| !code.is_empty()),
                piece: Some(piece(query, fault)),
                message: fault.message.clone(),
            },
            None => Refusal { status, code: None, piece: None, message: String::new() },
        },
        other => Refusal { status, code: None, piece: None, message: other.to_string() },
    }
}

/// The piece of a query that a fault names.
fn piece(query: &str, fault: &QueryFault) -> String {
    let units: Vec<u16> = query.encode_utf16().collect();
    units.get(fault.start..fault.end).map_or("(outside of the text)".to_owned(), String::from_utf16_lossy)
}

/// Whether a refusal is as expected.
pub fn refusal_matches(expected: &Refusal, actual: &Refusal) -> bool {
    let agrees =
        |expected: &Option<String>, actual: &Option<String>| expected.is_none() || expected == actual;
    expected.status == actual.status
        && agrees(&expected.code, &actual.code)
        && agrees(&expected.piece, &actual.piece)
        && actual.message.starts_with(&expected.message)
}

/// The lines that state a refusal.
pub fn refusal_lines(refusal: &Refusal) -> Vec<String> {
    let status = refusal.status.to_string();
    let first = match (&refusal.code, &refusal.piece) {
        (None, None) => status,
        (Some(code), None) => format!("{status} {code}"),
        (code, Some(piece)) => format!("{status} {} {piece}", code.as_deref().unwrap_or("-")),
    };
    let message = Some(&refusal.message).filter(|message| !message.is_empty());
    std::iter::once(first).chain(message.cloned()).collect()
}

/// An answer in short, for reports.
pub fn shown(answer: &QueryAnswer) -> String {
    let lines: Vec<String> = match answer {
        Ok(rows) => rows.iter().map(Json::to_string).collect(),
        Err(Error::Query(faults)) => faults
            .iter()
            .map(|fault| format!("{} {}..{} {}", fault.code, fault.start, fault.end, fault.message))
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    indented(&lines)
}

/// Lines of a report.
pub fn indented(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "    " + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_meaning() {
        let check = |expected: &str, actual: &str, tolerance: f64, result: bool| {
            let (pattern, value) = (Json::parse_pattern(expected).unwrap(), Json::parse(actual).unwrap());
            assert_eq!(same(&pattern, &value, tolerance), result, "{expected} {actual}");
        };
        check("{\"a\":1,\"b\":[2.0]}", "{\"b\":[2],\"a\":1e0}", 0.0, true);
        check("{\"a\":1}", "{\"a\":1,\"b\":2}", 0.0, false);
        check("{\"a\":1,...}", "{\"b\":2,\"a\":1}", 0.0, true);
        check("[1,...]", "[1,2]", 0.0, true);
        check("[1,2]", "[2,1]", 0.0, false);
        check("1", "1.0000000001", 0.0, false);
        check("1", "1.0000000001", 1e-9, true);
        check("true", "1", 0.0, false);
        check("\"1\"", "1", 0.0, false);
        check("<any>", "{}", 0.0, true);
    }

    #[test]
    fn rows_in_any_order_are_a_multiset() {
        let rows = |text: &str| text.split(' ').map(|row| Json::parse(row).unwrap()).collect::<Vec<_>>();
        let expected = |ordered| Rows { rows: rows("1 1 2"), ordered };
        assert!(rows_match(&expected(false), &rows("2 1 1"), 0.0));
        assert!(!rows_match(&expected(true), &rows("2 1 1"), 0.0));
        assert!(!rows_match(&expected(false), &rows("2 2 1"), 0.0));
        assert!(!rows_match(&expected(false), &rows("1 2"), 0.0));
    }
}
