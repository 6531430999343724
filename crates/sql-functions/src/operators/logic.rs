//! Three-valued logic: true, false and undefined; anything that is no boolean acts as undefined.

use astrarium_value::Value;

/// What a value counts as in logic.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        _ => None,
    }
}

/// The value of a three-valued result.
pub fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Undefined, Value::Bool)
}

/// `a AND b`: false as soon as one side is false.
pub fn and(a: &Value, b: &Value) -> Value {
    truth_value(all_true([truth(a), truth(b)]))
}

/// `a OR b`: true as soon as one side is true.
pub fn or(a: &Value, b: &Value) -> Value {
    truth_value(any_true([truth(a), truth(b)]))
}

/// `NOT a`.
pub fn not(a: &Value) -> Value {
    truth_value(truth(a).map(|truth| !truth))
}

/// AND over any number of operands; true for none.
pub fn all_true(operands: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for operand in operands {
        match operand {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// OR over any number of operands; false for none.
pub fn any_true(operands: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(false);
    for operand in operands {
        match operand {
            Some(true) => return Some(true),
            None => result = None,
            Some(false) => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{print, value};

    #[track_caller]
    fn check(operator: fn(&Value, &Value) -> Value, a: &str, b: &str, expected: &str) {
        assert_eq!(print(&operator(&value(a), &value(b))), expected, "{a} {b}");
        assert_eq!(print(&operator(&value(b), &value(a))), expected, "{b} {a}");
    }

    #[test]
    fn tables() {
        for (a, b, both, either) in [
            ("true", "true", "true", "true"),
            ("true", "false", "false", "true"),
            ("false", "false", "false", "false"),
            ("true", "undefined", "undefined", "true"),
            ("false", "undefined", "false", "undefined"),
            ("undefined", "undefined", "undefined", "undefined"),
            ("true", "null", "undefined", "true"),
            ("false", "0", "false", "undefined"),
            ("false", "\"\"", "false", "undefined"),
            ("{}", "[]", "undefined", "undefined"),
        ] {
            check(and, a, b, both);
            check(or, a, b, either);
        }
        for (a, expected) in [("true", "false"), ("false", "true"), ("null", "undefined"), ("0", "undefined")]
        {
            assert_eq!(print(&not(&value(a))), expected);
        }
        assert_eq!((all_true([]), any_true([])), (Some(true), Some(false)));
    }
}
