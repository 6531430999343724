//! Reading arguments: each reader answers `None` for a wrong type, which a function turns into `Undefined` with `?`.
//!
//! An argument that is not there reads as `Undefined`, so no count of arguments can make a function fail.

use astrarium_value::{Object, Value};

static UNDEFINED: Value = Value::Undefined;

/// The argument at that place, `Undefined` when there is none.
pub(crate) fn at(arguments: &[Value], place: usize) -> &Value {
    arguments.get(place).unwrap_or(&UNDEFINED)
}

pub(crate) fn text(arguments: &[Value], place: usize) -> Option<&str> {
    as_text(at(arguments, place))
}

pub(crate) fn number(arguments: &[Value], place: usize) -> Option<f64> {
    match at(arguments, place) {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

pub(crate) fn boolean(arguments: &[Value], place: usize) -> Option<bool> {
    match at(arguments, place) {
        Value::Bool(flag) => Some(*flag),
        _ => None,
    }
}

pub(crate) fn array(arguments: &[Value], place: usize) -> Option<&[Value]> {
    match at(arguments, place) {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

pub(crate) fn object(arguments: &[Value], place: usize) -> Option<&Object> {
    match at(arguments, place) {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// A number without fraction that fits in 64 bits; see [`whole`].
pub(crate) fn integer(arguments: &[Value], place: usize) -> Option<i64> {
    whole(number(arguments, place)?)
}

/// A flag that may be left out, false then.
pub(crate) fn optional_flag(arguments: &[Value], place: usize) -> Option<bool> {
    if arguments.len() > place { boolean(arguments, place) } else { Some(false) }
}

pub(crate) fn as_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The 64-bit integer a double stands for.
///
/// 2^63 itself is taken as the largest integer: the literal 9223372036854775807 becomes that double when read,
/// and the service counts it as an integer.
pub(crate) fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let fits = number.fract() == 0.0 && (-LIMIT..=LIMIT).contains(&number);
    fits.then_some(number as i64)
}

/// Text as a value.
pub(crate) fn string(text: impl AsRef<str>) -> Value {
    Value::from(text.as_ref())
}

/// A count or position as a value.
pub(crate) fn count(number: usize) -> Value {
    Value::Number(number as f64)
}
