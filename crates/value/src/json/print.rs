//! Printing values as JSON the way JavaScript's `JSON.stringify` does, which is how the service prints.
//!
//! In: `Value`, text, numbers. Out: bytes appended to the caller's buffer, no spaces.
//! Invariants
//! - Numbers are the shortest digits that read back as the same double; exponents from 1e21 up and below 1e-6.
//! - Undefined has no JSON form: it prints nothing, and an array skips it. NaN and the infinities print `null`; whoever
//!   sends results to clients refuses them before.

use std::io::Write;

use crate::Value;

impl Value {
    /// Appends the value as JSON without spaces, members in the order in which they came.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Value::Undefined => {}
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Number(number) => write_number(*number, out),
            Value::String(text) => write_string(text, out),
            Value::Array(values) => {
                out.push(b'[');
                for (count, value) in values.iter().filter(|value| !value.is_undefined()).enumerate() {
                    if count > 0 {
                        out.push(b',');
                    }
                    value.write_json(out);
                }
                out.push(b']');
            }
            Value::Object(object) => {
                out.push(b'{');
                for (count, (name, value)) in object.iter().enumerate() {
                    if count > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Whether JSON can say all of the value: it has no NaN and no infinity.
    pub fn is_json(&self) -> bool {
        match self {
            Value::Undefined | Value::Null | Value::Bool(_) | Value::String(_) => true,
            Value::Number(number) => number.is_finite(),
            Value::Array(values) => values.iter().all(Value::is_json),
            Value::Object(object) => object.iter().all(|(_, value)| value.is_json()),
        }
    }
}

/// Appends text as a JSON string; only quotes, backslashes and control characters are escaped.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            append(out, format_args!("{byte:04x}"));
        }
        copied = at + 1;
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

/// Appends a number as JavaScript prints it: whole numbers below 1e21 in full, `-0` as `0`, not-a-number and the
/// infinities as `null`.
pub fn write_number(number: f64, out: &mut Vec<u8>) {
    /// Up to here every whole double is itself and no neighbour, so its decimal form is its shortest one.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        out.extend_from_slice(b"null");
    } else if number.abs() <= EXACT_MAX && number.fract() == 0.0 {
        append(out, format_args!("{}", number as i64));
    } else {
        write_digits(number, out);
    }
}

/// The rules of ECMAScript's Number::toString: with `point` digits before the decimal point, plain notation
/// while -6 < point <= 21, otherwise one digit, the fraction and a signed exponent.
fn write_digits(number: f64, out: &mut Vec<u8>) {
    // Rust gives the same shortest digits, always as "d.ddde-x".
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().expect("an exponent of a finite double");
    let point = exponent + 1;
    if number < 0.0 {
        out.push(b'-');
    }
    match point {
        -5..=0 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + point.unsigned_abs() as usize, b'0');
            out.extend_from_slice(&digits);
        }
        1..=21 if digits.len() <= point as usize => {
            out.extend_from_slice(&digits);
            out.resize(out.len() + point as usize - digits.len(), b'0');
        }
        1..=21 => {
            let (whole, fraction) = digits.split_at(point as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        _ => append(out, format_args!("{mantissa}e{exponent:+}")),
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}
