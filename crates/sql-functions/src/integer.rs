//! Functions of 64-bit integers, which wrap around as machine integers do.
//!
//! Values hold doubles, so an argument is exact up to 2^53; a literal beyond that is rounded to a double before it
//! comes here, and 2^63 counts as the largest integer (`arguments::whole`). Inside a call everything is exact, and
//! the result is rounded to a double. An argument with a fraction, or beyond 64 bits, gives undefined.

use astrarium_value::Value;

use crate::ScalarFunction;
use crate::arguments::integer;

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "INTADD",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The sum of two integers.",
        example: Some(("20,10", "30")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a.wrapping_add(b))).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTSUB",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The difference of two integers.",
        example: Some(("25,50", "-25")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a.wrapping_sub(b))).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTMUL",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The product of two integers.",
        example: Some(("5,-2", "-10")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a.wrapping_mul(b))).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTDIV",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The quotient of two integers without its fraction.",
        example: Some(("-7,2", "-3")),
        evaluate: |_, arguments| {
            of_two(arguments, |a, b| (b != 0).then(|| a.wrapping_div(b))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTMOD",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "What remains of a division of two integers, with the sign of the first.",
        example: Some(("12,5", "2")),
        evaluate: |_, arguments| {
            of_two(arguments, |a, b| (b != 0).then(|| a.wrapping_rem(b))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITAND",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The bits that both integers have.",
        example: Some(("15,25", "9")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a & b)).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITOR",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The bits that either integer has.",
        example: Some(("56,100", "124")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a | b)).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITXOR",
        signature: "(first: number, second: number) -> number",
        arguments: 2..=2,
        summary: "The bits that exactly one of the integers has.",
        example: Some(("56,100", "92")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a ^ b)).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITNOT",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The bits that the integer does not have.",
        example: Some(("65", "-66")),
        evaluate: |_, arguments| integer(arguments, 0).map(|a| from_integer(!a)).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITLEFTSHIFT",
        signature: "(number: number, places: number) -> number",
        arguments: 2..=2,
        summary: "The integer's bits moved up by a number of places.",
        example: Some(("16,4", "256")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a.wrapping_shl(b as u32))).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INTBITRIGHTSHIFT",
        signature: "(number: number, places: number) -> number",
        arguments: 2..=2,
        summary: "The integer's bits moved down by a number of places, keeping its sign.",
        example: Some(("-16,2", "-4")),
        evaluate: |_, arguments| of_two(arguments, |a, b| Some(a.wrapping_shr(b as u32))).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
];

fn of_two(arguments: &[Value], compute: fn(i64, i64) -> Option<i64>) -> Option<Value> {
    compute(integer(arguments, 0)?, integer(arguments, 1)?).map(from_integer)
}

fn from_integer(number: i64) -> Value {
    Value::Number(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check_all, check_wrong_types};

    #[test]
    fn only_integers() {
        let wrong = ["undefined", "null", "true", "\"1\"", "[1]", "{}", "0.5", "NaN", "Infinity", "1e19"];
        for function in FUNCTIONS {
            if function.takes(1) {
                check_wrong_types(function.name, "[?]", &wrong);
            } else {
                check_wrong_types(function.name, "[?, 2]", &wrong);
                check_wrong_types(function.name, "[2, ?]", &wrong);
            }
        }
    }

    #[test]
    fn results() {
        check_all(&[
            ("INTADD", "[20, 10]", "30"),
            ("INTADD", "[9223372036854775807, 1]", "-9223372036854775808"),
            ("INTSUB", "[25, 50]", "-25"),
            ("INTSUB", "[-9223372036854775808, 1]", "9223372036854775807"),
            ("INTMUL", "[5, -2]", "-10"),
            ("INTMUL", "[4294967296, 4294967296]", "0"),
            ("INTMUL", "[3037000500, 3037000500]", "-9223372036709301616"),
            ("INTDIV", "[10, -2]", "-5"),
            ("INTDIV", "[-7, 2]", "-3"),
            ("INTDIV", "[10, 0]", "undefined"),
            ("INTDIV", "[-9223372036854775808, -1]", "-9223372036854775808"),
            ("INTMOD", "[12, 5]", "2"),
            ("INTMOD", "[12, -5]", "2"),
            ("INTMOD", "[-12, -5]", "-2"),
            ("INTMOD", "[12, 0]", "undefined"),
            ("INTMOD", "[-9223372036854775808, -1]", "0"),
            ("INTBITAND", "[15, 25]", "9"),
            ("INTBITOR", "[56, 100]", "124"),
            ("INTBITXOR", "[56, 100]", "92"),
            ("INTBITNOT", "[65]", "-66"),
            ("INTBITLEFTSHIFT", "[16, 4]", "256"),
            ("INTBITLEFTSHIFT", "[1, 40]", "1099511627776"),
            ("INTBITLEFTSHIFT", "[1, 64]", "1"),
            ("INTBITRIGHTSHIFT", "[16, 4]", "1"),
            ("INTBITRIGHTSHIFT", "[-16, 2]", "-4"),
        ]);
    }
}
