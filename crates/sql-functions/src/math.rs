//! Functions of numbers.
//!
//! All take and give doubles; anything that is no number gives undefined. NaN and the infinities are results like any
//! other here: whoever writes them as JSON refuses them.
//! Not here: operators (`operators`), 64-bit integers (`integer`).

use std::f64::consts::PI;

use astrarium_value::Value;

use crate::arguments::{integer, number};
use crate::{Context, FunctionIndexUse, ScalarFunction};

/// Comparisons of these with a constant turn into ranges of their argument.
const NUMBER_RANGE: Option<FunctionIndexUse> = Some(FunctionIndexUse::NumberRange { number: 0 });

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "ABS",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The number without its sign.",
        example: Some(("-1.5", "1.5")),
        evaluate: |_, arguments| of_one(arguments, f64::abs),
        index_use: NUMBER_RANGE,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ACOS",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The angle in radians whose cosine is the number.",
        example: Some(("1", "0")),
        evaluate: |_, arguments| of_one(arguments, f64::acos),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ASIN",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The angle in radians whose sine is the number.",
        example: Some(("0", "0")),
        evaluate: |_, arguments| of_one(arguments, f64::asin),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ATAN",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The angle in radians whose tangent is the number.",
        example: Some(("0", "0")),
        evaluate: |_, arguments| of_one(arguments, f64::atan),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CEILING",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The least whole number that is not below the number.",
        example: Some(("1.2", "2")),
        evaluate: |_, arguments| of_one(arguments, f64::ceil),
        index_use: NUMBER_RANGE,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "COS",
        signature: "(angle: number) -> number",
        arguments: 1..=1,
        summary: "The cosine of an angle in radians.",
        example: Some(("0", "1")),
        evaluate: |_, arguments| of_one(arguments, f64::cos),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "COT",
        signature: "(angle: number) -> number",
        arguments: 1..=1,
        summary: "The cotangent of an angle in radians.",
        example: Some(("1", "0.6420926159343306")),
        evaluate: |_, arguments| of_one(arguments, |angle| 1.0 / angle.tan()),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DEGREES",
        signature: "(radians: number) -> number",
        arguments: 1..=1,
        summary: "The angle in degrees of one in radians.",
        example: Some(("3.141592653589793", "180")),
        evaluate: |_, arguments| of_one(arguments, |angle| angle * 180.0 / PI),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "EXP",
        signature: "(power: number) -> number",
        arguments: 1..=1,
        summary: "The number e raised to a power.",
        example: Some(("0", "1")),
        evaluate: |_, arguments| of_one(arguments, f64::exp),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "FLOOR",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The greatest whole number that is not above the number.",
        example: Some(("-1.2", "-2")),
        evaluate: |_, arguments| of_one(arguments, f64::floor),
        index_use: NUMBER_RANGE,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LOG10",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The logarithm to base 10.",
        example: Some(("1000", "3")),
        evaluate: |_, arguments| of_one(arguments, f64::log10),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "RADIANS",
        signature: "(degrees: number) -> number",
        arguments: 1..=1,
        summary: "The angle in radians of one in degrees.",
        example: Some(("180", "3.141592653589793")),
        evaluate: |_, arguments| of_one(arguments, |angle| angle * PI / 180.0),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SIGN",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "-1, 0 or 1 by the sign of the number.",
        example: Some(("-7", "-1")),
        evaluate: |_, arguments| of_one(arguments, sign),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SIN",
        signature: "(angle: number) -> number",
        arguments: 1..=1,
        summary: "The sine of an angle in radians.",
        example: Some(("0", "0")),
        evaluate: |_, arguments| of_one(arguments, f64::sin),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SQRT",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The square root of the number.",
        example: Some(("9", "3")),
        evaluate: |_, arguments| of_one(arguments, f64::sqrt),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SQUARE",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The number times itself.",
        example: Some(("3", "9")),
        evaluate: |_, arguments| of_one(arguments, |number| number * number),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TAN",
        signature: "(angle: number) -> number",
        arguments: 1..=1,
        summary: "The tangent of an angle in radians.",
        example: Some(("0", "0")),
        evaluate: |_, arguments| of_one(arguments, f64::tan),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TRUNC",
        signature: "(number: number) -> number",
        arguments: 1..=1,
        summary: "The number without its fraction.",
        example: Some(("-1.7", "-1")),
        evaluate: |_, arguments| of_one(arguments, f64::trunc),
        index_use: NUMBER_RANGE,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ATN2",
        signature: "(y: number, x: number) -> number",
        arguments: 2..=2,
        summary: "The angle in radians between the x axis and the point (x, y), given as y, x.",
        example: Some(("1,0", "1.5707963267948966")),
        evaluate: |_, arguments| of_two(arguments, f64::atan2),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "POWER",
        signature: "(base: number, exponent: number) -> number",
        arguments: 2..=2,
        summary: "The first number raised to the second.",
        example: Some(("2,10", "1024")),
        evaluate: |_, arguments| of_two(arguments, f64::powf),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LOG",
        signature: "(number: number, base?: number) -> number",
        arguments: 1..=2,
        summary: "The natural logarithm, or the logarithm to a base.",
        example: Some(("8,2", "3")),
        evaluate: |_, arguments| {
            if arguments.len() > 1 { of_two(arguments, logarithm) } else { of_one(arguments, f64::ln) }
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "PI",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "The ratio of a circle's circumference to its diameter.",
        evaluate: |_, _| Value::Number(PI),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "RAND",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "A random number from 0 up to but without 1, another for each evaluation.",
        evaluate: |context, _| random(context),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ROUND",
        signature: "(number: number, digits?: number) -> number",
        arguments: 1..=2,
        summary: "The nearest whole number, or the nearest with so many decimal digits; halves away from zero.",
        example: Some(("2.345,1", "2.3")),
        evaluate: |_, arguments| round(arguments).unwrap_or_default(),
        index_use: NUMBER_RANGE,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "NUMBERBIN",
        signature: "(number: number, size?: number) -> number",
        arguments: 1..=2,
        summary: "The number rounded down to a multiple of a bin size, 1 unless given.",
        example: Some(("37.5,10", "30")),
        evaluate: |_, arguments| number_bin(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
];

fn of_one(arguments: &[Value], compute: fn(f64) -> f64) -> Value {
    number(arguments, 0).map(compute).map(Value::Number).unwrap_or_default()
}

fn of_two(arguments: &[Value], compute: fn(f64, f64) -> f64) -> Value {
    match (number(arguments, 0), number(arguments, 1)) {
        (Some(a), Some(b)) => Value::Number(compute(a, b)),
        _ => Value::Undefined,
    }
}

fn sign(number: f64) -> f64 {
    // `signum` gives 1 for zero.
    if number == 0.0 { 0.0 } else { number.signum() }
}

/// Base 10 has a function of its own that is exact at powers of ten, where a quotient is not.
fn logarithm(number: f64, base: f64) -> f64 {
    if (base - 10.0).abs() < f64::EPSILON { number.log10() } else { number.ln() / base.ln() }
}

/// The top 53 of 64 random bits, as a fraction.
fn random(context: &Context<'_>) -> Value {
    const BITS: u32 = 53;
    let bits = (context.random)() >> (u64::BITS - BITS);
    Value::Number(bits as f64 / (1_u64 << BITS) as f64)
}

fn round(arguments: &[Value]) -> Option<Value> {
    let number = number(arguments, 0)?;
    if arguments.len() < 2 {
        return Some(Value::Number(number.round()));
    }
    let digits = integer(arguments, 1)?;
    // Outside this range the scale is no double: no double has that many digits, or all of them are rounded away.
    let result = match digits {
        309.. => number,
        ..-308 => 0.0,
        _ => {
            let scale = 10_f64.powi(digits as i32);
            let rounded = (number * scale).round() / scale;
            if rounded.is_finite() { rounded } else { number }
        }
    };
    Some(Value::Number(result))
}

fn number_bin(arguments: &[Value]) -> Option<Value> {
    let number_given = number(arguments, 0)?;
    let size = if arguments.len() > 1 { number(arguments, 1)? } else { 1.0 };
    (size != 0.0).then(|| Value::Number((number_given / size).floor() * size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, check_all, check_in, check_wrong_types};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn only_numbers() {
        for function in FUNCTIONS {
            let wrong = ["undefined", "null", "true", "\"1\"", "[1]", "{}"];
            match *function.arguments.end() {
                1 => check_wrong_types(function.name, "[?]", &wrong),
                2 => {
                    check_wrong_types(function.name, "[?, 2]", &wrong);
                    check_wrong_types(function.name, "[2, ?]", &wrong);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn single_numbers() {
        check_all(&[
            ("ABS", "[-1]", "1"),
            ("ABS", "[-Infinity]", "Infinity"),
            ("ACOS", "[-1]", "3.141592653589793"),
            ("ACOS", "[2]", "NaN"),
            ("ASIN", "[-1]", "-1.5707963267948966"),
            ("ATAN", "[-45.01]", "-1.5485826962062663"),
            ("CEILING", "[123.45]", "124"),
            ("CEILING", "[-45.72]", "-45"),
            ("CEILING", "[-0.5]", "0"),
            ("COS", "[14.78]", "-0.5994654261946543"),
            ("COT", "[124.1332]", "-0.040311998371148884"),
            ("DEGREES", "[1.5707963267948966]", "90"),
            ("DEGREES", "[4.71238898038469]", "270"),
            ("EXP", "[10]", "22026.465794806718"),
            ("EXP", "[20]", "485165195.4097903"),
            ("FLOOR", "[-145.12]", "-146"),
            ("FLOOR", "[62.6]", "62"),
            ("LOG10", "[5]", "0.6989700043360189"),
            ("LOG10", "[100]", "2"),
            ("LOG10", "[0]", "-Infinity"),
            ("RADIANS", "[-45.01]", "-0.7855726963226477"),
            ("RADIANS", "[0.1472738]", "0.002570412711923625"),
            ("RADIANS", "[197.1099392]", "3.4402174274458375"),
            ("SIGN", "[-2]", "-1"),
            ("SIGN", "[0]", "0"),
            ("SIGN", "[2]", "1"),
            ("SIGN", "[NaN]", "NaN"),
            ("SIN", "[45.175643]", "0.929607286611012"),
            ("SQRT", "[17]", "4.123105625617661"),
            ("SQRT", "[-1]", "NaN"),
            ("SQUARE", "[-3]", "9"),
            ("TAN", "[1.5707963267948966]", "16331239353195370"),
            ("TAN", "[124.1332]", "-24.80651023035602"),
            ("TRUNC", "[-2.78]", "-2"),
            ("TRUNC", "[0.0000714]", "0"),
        ]);
    }

    #[test]
    fn two_numbers() {
        check_all(&[
            ("ATN2", "[35.175643, 129.44]", "0.265344532064832"),
            ("POWER", "[2.5, 3]", "15.625"),
            ("POWER", "[0, 0]", "1"),
            ("POWER", "[-1, 0.5]", "NaN"),
            ("LOG", "[5]", "1.6094379124341003"),
            ("LOG", "[2, 10]", "0.3010299956639812"),
            ("LOG", "[8, 2]", "3"),
            ("LOG", "[8, 1]", "Infinity"),
            ("PI", "[]", "3.141592653589793"),
            ("ROUND", "[2.5]", "3"),
            ("ROUND", "[-2.5]", "-3"),
            ("ROUND", "[0.5]", "1"),
            ("ROUND", "[4840904997601420]", "4840904997601420"),
            ("ROUND", "[2.345, 2]", "2.35"),
            ("ROUND", "[1234.5, -2]", "1200"),
            ("ROUND", "[1234.5, 400]", "1234.5"),
            ("ROUND", "[1e300, 300]", "1e300"),
            ("ROUND", "[1234.5, -400]", "0"),
            ("ROUND", "[1.5, 0.5]", "undefined"),
            ("NUMBERBIN", "[37.752, -100]", "100"),
            ("NUMBERBIN", "[37.752, 10]", "30"),
            ("NUMBERBIN", "[37.752]", "37"),
            ("NUMBERBIN", "[37.752, 0]", "undefined"),
            ("NUMBERBIN", "[37.752, 0.1]", "37.7"),
            ("NUMBERBIN", "[37.752, 0.01]", "37.75"),
            ("NUMBERBIN", "[-1.5, 1]", "-2"),
        ]);
    }

    #[test]
    fn random_numbers_fill_the_unit_interval() {
        let bits = AtomicU64::new(0);
        let random = || bits.load(Ordering::Relaxed);
        let context = Context { random: &random, ..Context::default() };
        check_in(&context, "RAND", "[]", "0");
        bits.store(1 << 63, Ordering::Relaxed);
        check_in(&context, "RAND", "[]", "0.5");
        bits.store(u64::MAX, Ordering::Relaxed);
        check_in(&context, "RAND", "[]", "0.9999999999999999");
        check("RAND", "[]", "0");
    }
}
