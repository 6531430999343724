//! Values to text and text to values, by way of JSON.

use astrarium_value::Value;
use astrarium_value::json::Text;

use crate::arguments::{at, string, text};

/// Text stays as it is; numbers that JSON does not have are written as words.
pub(super) fn to_string(arguments: &[Value]) -> Value {
    match at(arguments, 0) {
        undefined @ Value::Undefined => undefined.clone(),
        text @ Value::String(_) => text.clone(),
        Value::Number(number) if number.is_nan() => string("NaN"),
        Value::Number(f64::INFINITY) => string("Infinity"),
        Value::Number(f64::NEG_INFINITY) => string("-Infinity"),
        other => {
            let mut json = Vec::new();
            other.write_json(&mut json);
            string(String::from_utf8_lossy(&json))
        }
    }
}

/// The value that the text is in JSON, when it is of the wanted kind; white space around it is allowed.
pub(super) fn parse(arguments: &[Value], wanted: fn(&Value) -> bool) -> Option<Value> {
    let text = Text::parse(text(arguments, 0)?.as_bytes()).ok()?;
    let value = text.root().to_value();
    wanted(&value).then_some(value)
}
