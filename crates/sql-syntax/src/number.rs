//! Number literals: exact integers where the text has them, doubles otherwise.
//!
//! The language has one number type, the IEEE double, but the `Int*` functions see 64-bit integers, so a literal keeps
//! its integer. Invariant: a value that is a whole number inside 64 bits is always `Integer` (except -0), hence equal
//! literals have one form and print alike.

use std::fmt;

/// 2^63: the first double above the 64-bit integers.
const INTEGER_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The value of a number literal. Build it with `Number::integer` and `Number::double`.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// A whole number of 64 bits, exact even above 2^53.
    Integer(i64),
    /// Anything else: fractions, large numbers, -0, NaN and the infinities.
    Double(f64),
}

impl Number {
    /// The number with this integer value.
    pub fn integer(value: i64) -> Self {
        Self::Integer(value)
    }

    /// The number with this value, as `Integer` when it is a whole number in range.
    pub fn double(value: f64) -> Self {
        let whole = value.fract() == 0.0 && (-INTEGER_LIMIT..INTEGER_LIMIT).contains(&value);
        if value.is_nan() {
            Self::Double(f64::NAN)
        } else if whole && !(value == 0.0 && value.is_sign_negative()) {
            Self::Integer(value as i64)
        } else {
            Self::Double(value)
        }
    }

    /// The value that expressions compute with.
    pub fn to_double(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Double(value) => value,
        }
    }

    /// The same number with the other sign.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Integer(0) => Self::Double(-0.0),
            Self::Integer(value) => value.checked_neg().map_or(Self::Double(INTEGER_LIMIT), Self::Integer),
            Self::Double(value) => Self::double(-value),
        }
    }

    /// Whether the printed form begins with a minus sign.
    pub fn is_negative(self) -> bool {
        match self {
            Self::Integer(value) => value < 0,
            Self::Double(value) => value.is_sign_negative() && !value.is_nan(),
        }
    }

    /// Reads an unsigned literal in any form of the language; `None` when its value is out of range.
    pub(crate) fn read(literal: &str) -> Option<Self> {
        if let Some(digits) = literal.strip_prefix("0x").or_else(|| literal.strip_prefix("0X")) {
            let value = u64::from_str_radix(digits, 16).ok()?;
            return Some(i64::try_from(value).map_or(Self::Double(value as f64), Self::Integer));
        }
        if let Ok(value) = literal.parse::<i64>() {
            return Some(Self::Integer(value));
        }
        let value = literal.parse::<f64>().ok()?;
        value.is_finite().then(|| Self::double(value))
    }
}

impl PartialEq for Number {
    /// Equal when they print alike: NaN equals itself, and -0 differs from 0.
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Integer(left), Self::Integer(right)) => left == right,
            (Self::Double(left), Self::Double(right)) => left.to_bits() == right.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    /// The shortest form that reads back as the same number; an exponent has a sign and at least two digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match *self {
            Self::Integer(value) => return write!(formatter, "{value}"),
            Self::Double(value) => value,
        };
        if value.is_nan() {
            return formatter.write_str("NaN");
        }
        if value.is_infinite() {
            return formatter.write_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
        }
        let scientific = format!("{value:e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        match exponent.parse::<i32>() {
            Ok(exponent) if !(-5..17).contains(&exponent) => {
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(formatter, "{digits}e{sign}{:02}", exponent.unsigned_abs())
            }
            _ => write!(formatter, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_print_in_one_form() {
        for (literal, printed) in [
            ("0", "0"),
            ("007", "7"),
            ("12", "12"),
            ("2.0", "2"),
            ("1.", "1"),
            (".5", "0.5"),
            ("1e3", "1000"),
            ("1.50", "1.5"),
            ("0x1F", "31"),
            ("0xFFFFFFFFFFFFFFFF", "1.8446744073709552e+19"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9.223372036854776e+18"),
            ("1e18", "1000000000000000000"),
            ("1.79769e+308", "1.79769e+308"),
            ("0.00001", "0.00001"),
            ("0.000001", "1e-06"),
            ("5e-324", "5e-324"),
            ("0.1234567890123456789", "0.12345678901234568"),
        ] {
            let number = Number::read(literal).unwrap();
            assert_eq!(number.to_string(), printed, "{literal}");
            assert_eq!(Number::read(printed), Some(number), "{literal}");
        }
        assert_eq!(Number::read("1e9999"), None);
        assert_eq!(Number::read("0x10000000000000000"), None);
    }

    #[test]
    fn signs() {
        assert_eq!(Number::Integer(0).negate().to_string(), "-0");
        assert_eq!(Number::Integer(0).negate().negate(), Number::Integer(0));
        assert_eq!(Number::Integer(i64::MIN).negate().negate(), Number::Integer(i64::MIN));
        assert_eq!(Number::double(f64::INFINITY).negate().to_string(), "-Infinity");
        assert_eq!(Number::double(f64::NAN).negate(), Number::double(f64::NAN));
        assert!(!Number::double(-f64::NAN).is_negative());
    }
}
