//! Reaching into values, and choosing between them.

use astrarium_value::Value;

use crate::arguments::whole;

/// `value.name`; undefined when the value is no object or has no such member.
pub fn member(value: &Value, name: &str) -> Value {
    match value {
        Value::Object(object) => object.get(name).cloned().unwrap_or_default(),
        _ => Value::Undefined,
    }
}

/// `value[place]` for a place known while planning.
pub fn element(value: &Value, place: usize) -> Value {
    match value {
        Value::Array(values) => values.get(place).cloned().unwrap_or_default(),
        _ => Value::Undefined,
    }
}

/// `value[key]`: a text names a member of an object, a whole number that is not negative an element of an array.
pub fn index(value: &Value, key: &Value) -> Value {
    match key {
        Value::String(name) => member(value, name),
        Value::Number(number) => match whole(*number).map(usize::try_from) {
            Some(Ok(place)) => element(value, place),
            _ => Value::Undefined,
        },
        _ => Value::Undefined,
    }
}

/// `condition ? then : otherwise`: the first only when the condition is true and nothing else.
pub fn conditional(condition: &Value, then: Value, otherwise: Value) -> Value {
    if matches!(condition, Value::Bool(true)) { then } else { otherwise }
}

/// `a ?? b`: the second only when the first is undefined; null stays null.
pub fn coalesce(a: Value, b: Value) -> Value {
    if a.is_undefined() { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{print, value};

    #[track_caller]
    fn check(whole: &str, key: &str, expected: &str) {
        assert_eq!(print(&index(&value(whole), &value(key))), expected, "{whole}[{key}]");
    }

    #[test]
    fn access() {
        for (whole, key, expected) in [
            ("{\"a\":1}", "\"a\"", "1"),
            ("{\"a\":1}", "\"A\"", "undefined"),
            ("{\"0\":1}", "0", "undefined"),
            ("[5,6]", "1", "6"),
            ("[5,6]", "2", "undefined"),
            ("[5,6]", "-1", "undefined"),
            ("[5,6]", "0.5", "undefined"),
            ("[5,6]", "NaN", "undefined"),
            ("[5,6]", "\"0\"", "undefined"),
            ("\"text\"", "0", "undefined"),
            ("null", "\"a\"", "undefined"),
            ("undefined", "\"a\"", "undefined"),
            ("{\"a\":1}", "null", "undefined"),
        ] {
            check(whole, key, expected);
        }
    }

    #[test]
    fn choice() {
        for condition in ["null", "1", "\"str\"", "{}", "[]", "undefined", "false"] {
            assert_eq!(conditional(&value(condition), 1.0.into(), 2.0.into()), 2.0.into());
        }
        assert_eq!(conditional(&value("true"), 1.0.into(), 2.0.into()), 1.0.into());
        assert_eq!(coalesce(Value::Undefined, 2.0.into()), 2.0.into());
        assert_eq!(coalesce(Value::Null, 2.0.into()), Value::Null);
    }
}
