//! Arithmetic on doubles, bits of 32-bit integers as JavaScript has them, and joining of texts.
//!
//! An operand of a wrong type makes the result undefined. Results may be NaN or infinite; whoever writes JSON decides
//! about those.

use astrarium_value::Value;

use crate::arguments::string;
use crate::limits::TEXT_BYTES_MAX;

/// `a + b`.
pub fn add(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| a + b)
}

/// `a - b`.
pub fn subtract(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| a - b)
}

/// `a * b`.
pub fn multiply(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| a * b)
}

/// `a / b`; by zero gives an infinity or NaN.
pub fn divide(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| a / b)
}

/// `a % b`, with the sign of `a`.
pub fn remainder(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| a % b)
}

/// `-a`.
pub fn negate(a: &Value) -> Value {
    match a {
        Value::Number(a) => Value::Number(-a),
        _ => Value::Undefined,
    }
}

/// `+a`, which only tells numbers from everything else.
pub fn plus(a: &Value) -> Value {
    match a {
        Value::Number(a) => Value::Number(*a),
        _ => Value::Undefined,
    }
}

/// `a & b`.
pub fn bit_and(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| (to_int32(a) & to_int32(b)).into())
}

/// `a | b`.
pub fn bit_or(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| (to_int32(a) | to_int32(b)).into())
}

/// `a ^ b`.
pub fn bit_exclusive_or(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| (to_int32(a) ^ to_int32(b)).into())
}

/// `~a`.
pub fn bit_not(a: &Value) -> Value {
    match a {
        Value::Number(a) => Value::Number((!to_int32(*a)).into()),
        _ => Value::Undefined,
    }
}

/// `a << b`; only the low five bits of `b` count.
pub fn shift_left(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| to_int32(a).wrapping_shl(to_int32(b) as u32).into())
}

/// `a >> b`, keeping the sign.
pub fn shift_right(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| to_int32(a).wrapping_shr(to_int32(b) as u32).into())
}

/// `a >>> b`, on the unsigned number.
pub fn shift_right_unsigned(a: &Value, b: &Value) -> Value {
    numbers(a, b, |a, b| (to_int32(a) as u32).wrapping_shr(to_int32(b) as u32).into())
}

/// `a || b`, two texts joined; undefined beyond the limit of built texts.
pub fn concatenate(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::String(a), Value::String(b)) if a.len().saturating_add(b.len()) <= TEXT_BYTES_MAX => {
            let mut joined = String::with_capacity(a.len() + b.len());
            joined.push_str(a);
            joined.push_str(b);
            string(joined)
        }
        _ => Value::Undefined,
    }
}

fn numbers(a: &Value, b: &Value, compute: impl FnOnce(f64, f64) -> f64) -> Value {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Value::Number(compute(*a, *b)),
        _ => Value::Undefined,
    }
}

/// The number without fraction, modulo 2^32, as a signed integer; 0 for NaN and the infinities.
fn to_int32(number: f64) -> i32 {
    const MODULUS: f64 = 4_294_967_296.0;
    if !number.is_finite() {
        return 0;
    }
    (number.trunc().rem_euclid(MODULUS) as u32).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{print, value};

    #[track_caller]
    fn check(operator: fn(&Value, &Value) -> Value, a: &str, b: &str, expected: &str) {
        assert_eq!(print(&operator(&value(a), &value(b))), print(&value(expected)), "{a} {b}");
    }

    #[test]
    fn numbers_only() {
        let operators = [
            add,
            subtract,
            multiply,
            divide,
            remainder,
            bit_and,
            bit_or,
            bit_exclusive_or,
            shift_left,
            shift_right,
            shift_right_unsigned,
        ];
        for operator in operators {
            for wrong in ["undefined", "null", "true", "\"1\"", "{}", "[]"] {
                check(operator, "0", wrong, "undefined");
                check(operator, wrong, "1", "undefined");
            }
        }
        for wrong in ["undefined", "null", "true", "\"0\"", "{}", "[]"] {
            for operator in [negate, plus, bit_not] {
                assert!(operator(&value(wrong)).is_undefined());
            }
        }
    }

    #[test]
    fn arithmetic() {
        check(add, "1", "2.5", "3.5");
        check(subtract, "1", "2.5", "-1.5");
        check(multiply, "1e308", "10", "Infinity");
        check(divide, "8.9", "0", "Infinity");
        check(divide, "0", "0", "NaN");
        check(remainder, "11", "7", "4");
        check(remainder, "-11", "7", "-4");
        check(remainder, "11", "-7", "4");
        check(remainder, "5.5", "2", "1.5");
        check(remainder, "5", "0", "NaN");
        assert_eq!(print(&negate(&value("0"))), "0");
        assert_eq!(print(&plus(&value("-3"))), "-3");
    }

    #[test]
    fn bits() {
        check(shift_right, "100", "2", "25");
        check(shift_left, "100", "2", "400");
        check(shift_right_unsigned, "100", "0", "100");
        check(bit_and, "100", "1000", "96");
        check(bit_or, "100", "1000", "1004");
        check(bit_exclusive_or, "100", "1000", "908");
        check(bit_or, "4294967295", "0", "-1");
        check(bit_or, "4294967296.9", "0", "0");
        check(bit_or, "-1.9", "0", "-1");
        check(bit_or, "2147483648", "0", "-2147483648");
        check(bit_or, "1e300", "1", "1");
        check(bit_or, "NaN", "1", "1");
        check(bit_or, "Infinity", "2", "2");
        check(shift_left, "1", "31", "-2147483648");
        check(shift_left, "1", "32", "1");
        check(shift_left, "1", "-1", "-2147483648");
        check(shift_right, "-8", "1", "-4");
        check(shift_right_unsigned, "-1", "0", "4294967295");
        check(shift_right_unsigned, "-8", "1", "2147483644");
        assert_eq!(print(&bit_not(&value("65"))), "-66");
    }

    #[test]
    fn texts() {
        check(concatenate, "\"foo\"", "\"bar\"", "\"foobar\"");
        for wrong in ["0", "undefined", "null", "true", "{}", "[]"] {
            check(concatenate, "\"foo\"", wrong, "undefined");
            check(concatenate, wrong, "\"bar\"", "undefined");
        }
        let half: Value = string("a".repeat(TEXT_BYTES_MAX / 2));
        let whole = concatenate(&half, &half);
        assert!(!whole.is_undefined() && concatenate(&whole, &string("a")).is_undefined());
    }
}
