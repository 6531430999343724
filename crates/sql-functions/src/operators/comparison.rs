//! Equality of any two defined values, order inside one primitive type, and what is made of them: IN and BETWEEN.
//!
//! Invariants
//! - A comparison with undefined is undefined; equality of different types is false, their order undefined.
//! - Numbers compare as IEEE doubles: NaN equals nothing and has no order. Inside arrays and objects NaN equals NaN, as
//!   in DISTINCT and GROUP BY.

use std::cmp::Ordering;

use astrarium_value::{Value, compare_text};

use super::logic::{all_true, truth_value};

/// Whether two values are equal, or none when one of them is undefined.
pub fn equals(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Undefined, _) | (_, Value::Undefined) => None,
        (Value::Number(a), Value::Number(b)) => Some(a.partial_cmp(b).is_some_and(Ordering::is_eq)),
        (a, b) => Some(a == b),
    }
}

/// The order of two values of the same primitive type, or none.
pub fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(compare_text(a, b)),
        _ => None,
    }
}

/// `a = b`.
pub fn equal(a: &Value, b: &Value) -> Value {
    truth_value(equals(a, b))
}

/// `a != b`.
pub fn not_equal(a: &Value, b: &Value) -> Value {
    truth_value(equals(a, b).map(|equal| !equal))
}

/// `a < b`.
pub fn less(a: &Value, b: &Value) -> Value {
    ordered(a, b, Ordering::is_lt)
}

/// `a <= b`.
pub fn less_or_equal(a: &Value, b: &Value) -> Value {
    ordered(a, b, Ordering::is_le)
}

/// `a > b`.
pub fn greater(a: &Value, b: &Value) -> Value {
    ordered(a, b, Ordering::is_gt)
}

/// `a >= b`.
pub fn greater_or_equal(a: &Value, b: &Value) -> Value {
    ordered(a, b, Ordering::is_ge)
}

/// `value IN (list)`: undefined when the value is, otherwise whether one of the list equals it.
pub fn in_list<'a>(value: &Value, list: impl IntoIterator<Item = &'a Value>) -> Value {
    if value.is_undefined() {
        return Value::Undefined;
    }
    Value::Bool(list.into_iter().any(|candidate| equals(value, candidate) == Some(true)))
}

/// `value BETWEEN low AND high`, which is `value >= low AND value <= high`.
pub fn between(value: &Value, low: &Value, high: &Value) -> Value {
    truth_value(all_true([order(value, low).map(Ordering::is_ge), order(value, high).map(Ordering::is_le)]))
}

fn ordered(a: &Value, b: &Value, holds: fn(Ordering) -> bool) -> Value {
    truth_value(order(a, b).map(holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{list, print, value};

    #[track_caller]
    fn check(operator: fn(&Value, &Value) -> Value, a: &str, b: &str, expected: &str) {
        assert_eq!(print(&operator(&value(a), &value(b))), expected, "{a} {b}");
    }

    #[test]
    fn equality_is_of_any_types() {
        for (a, b, expected) in [
            ("1", "1.0", true),
            ("0", "-0.0", true),
            ("1", "\"1\"", false),
            ("1", "true", false),
            ("null", "null", true),
            ("null", "0", false),
            ("\"Redmond\"", "\"WA\"", false),
            ("[1,[2]]", "[1,[2]]", true),
            ("[1,2]", "[2,1]", false),
            ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true),
            ("{\"a\":1}", "{\"a\":1,\"b\":2}", false),
            ("{}", "[]", false),
            ("{}", "null", false),
            ("NaN", "NaN", false),
            ("[NaN]", "[NaN]", true),
        ] {
            check(equal, a, b, &expected.to_string());
            check(not_equal, b, a, &(!expected).to_string());
        }
        for other in ["undefined", "null", "1", "{}"] {
            check(equal, "undefined", other, "undefined");
            check(not_equal, other, "undefined", "undefined");
        }
    }

    #[test]
    fn order_is_inside_a_primitive_type() {
        for (a, b) in
            [("1", "2"), ("false", "true"), ("\"A\"", "\"a\""), ("\"\"", "\"a\""), ("\"😀\"", "\"\u{ffff}\"")]
        {
            check(less, a, b, "true");
            check(less_or_equal, a, b, "true");
            check(less, a, a, "false");
            check(less_or_equal, a, a, "true");
            check(greater, a, b, "false");
            check(greater_or_equal, b, a, "true");
        }
        check(less_or_equal, "null", "null", "true");
        check(less, "null", "null", "false");
        for (a, b) in [
            ("1", "\"2\""),
            ("null", "1"),
            ("[1]", "[2]"),
            ("{}", "{}"),
            ("undefined", "1"),
            ("undefined", "undefined"),
            ("NaN", "1"),
        ] {
            for operator in [less, less_or_equal, greater, greater_or_equal] {
                check(operator, a, b, "undefined");
            }
        }
    }

    #[test]
    fn lists_and_ranges() {
        let is_in = |needle: &str, candidates: &str| print(&in_list(&value(needle), &list(candidates)));
        assert_eq!(is_in("42", "[1,2,3]"), "false");
        assert_eq!(is_in("42", "[1,undefined,42]"), "true");
        assert_eq!(is_in("\"1\"", "[1]"), "false");
        assert_eq!(is_in("null", "[null]"), "true");
        assert_eq!(is_in("undefined", "[1]"), "undefined");
        let is_between =
            |v: &str, low: &str, high: &str| print(&between(&value(v), &value(low), &value(high)));
        assert_eq!(is_between("42", "15", "1337"), "true");
        assert_eq!(is_between("15", "15", "15"), "true");
        assert_eq!(is_between("14", "15", "1337"), "false");
        assert_eq!(is_between("14", "15", "\"x\""), "false");
        assert_eq!(is_between("16", "15", "\"x\""), "undefined");
        assert_eq!(is_between("\"b\"", "\"a\"", "\"c\""), "true");
        assert_eq!(is_between("undefined", "1", "2"), "undefined");
    }
}
