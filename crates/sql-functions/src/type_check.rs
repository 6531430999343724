//! Functions that ask for the type of a value; they answer for undefined too.

use astrarium_value::Value;

use crate::arguments::{at, number, text, whole};
use crate::date_time::parse;
use crate::{FunctionIndexUse, ScalarFunction, TypeName};

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "IS_DEFINED",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is not undefined.",
        example: Some(("null", "true")),
        evaluate: |_, arguments| Value::Bool(!at(arguments, 0).is_undefined()),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Defined }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_ARRAY",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is an array.",
        example: Some(("[1]", "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::Array(_))),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Array }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_BOOL",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a boolean.",
        example: Some(("true", "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::Bool(_))),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Boolean }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_NULL",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is null.",
        example: Some(("null", "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::Null)),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Null }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_NUMBER",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a number.",
        example: Some(("1.5", "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::Number(_))),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Number }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_OBJECT",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is an object.",
        example: Some((r#"{"a":1}"#, "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::Object(_))),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Object }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_PRIMITIVE",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is null, a boolean, a number or a text.",
        example: Some(("[1]", "false")),
        evaluate: |_, arguments| {
            Value::Bool(matches!(
                at(arguments, 0),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)
            ))
        },
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Primitive }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_STRING",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a text.",
        example: Some((r#""a""#, "true")),
        evaluate: |_, arguments| Value::Bool(matches!(at(arguments, 0), Value::String(_))),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::String }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_FINITE_NUMBER",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a number and neither infinite nor NaN.",
        example: Some(("1.5", "true")),
        evaluate: |_, arguments| Value::Bool(number(arguments, 0).is_some_and(f64::is_finite)),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Number }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_INTEGER",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a number without fraction that fits in 64 bits.",
        example: Some(("1.5", "false")),
        evaluate: |_, arguments| Value::Bool(number(arguments, 0).and_then(whole).is_some()),
        index_use: Some(FunctionIndexUse::TypeCheck { value: 0, name: TypeName::Number }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IS_DATETIME",
        signature: "(value: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is a text that the date functions accept.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "true")),
        evaluate: |_, arguments| Value::Bool(text(arguments, 0).and_then(parse).is_some()),
        ..ScalarFunction::PLAIN
    },
];

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn every_type() {
        let values = ["undefined", "null", "true", "1.5", "\"a\"", "[1]", "{\"a\":1}", "NaN"];
        for (name, expected) in [
            ("IS_DEFINED", [false, true, true, true, true, true, true, true]),
            ("IS_NULL", [false, true, false, false, false, false, false, false]),
            ("IS_BOOL", [false, false, true, false, false, false, false, false]),
            ("IS_BOOLEAN", [false, false, true, false, false, false, false, false]),
            ("IS_NUMBER", [false, false, false, true, false, false, false, true]),
            ("IS_STRING", [false, false, false, false, true, false, false, false]),
            ("IS_ARRAY", [false, false, false, false, false, true, false, false]),
            ("IS_OBJECT", [false, false, false, false, false, false, true, false]),
            ("IS_PRIMITIVE", [false, true, true, true, true, false, false, true]),
            ("IS_FINITE_NUMBER", [false, false, false, true, false, false, false, false]),
            ("IS_INTEGER", [false; 8]),
            ("IS_DATETIME", [false; 8]),
        ] {
            for (value, expected) in values.iter().zip(expected) {
                check(name, &format!("[{value}]"), &expected.to_string());
            }
        }
    }

    #[test]
    fn integers() {
        for (value, expected) in [
            ("3454.123", false),
            ("5523432", true),
            ("-0.0", true),
            ("-9223372036854775808", true),
            ("9223372036854775807", true),
            ("18446744073709551615", false),
            ("-9223372036854777856", false),
            ("Infinity", false),
        ] {
            check("IS_INTEGER", &format!("[{value}]"), &expected.to_string());
        }
    }

    #[test]
    fn dates() {
        for (value, expected) in [
            ("2024-12-12", true),
            ("2024-12-12Z", true),
            ("2024-12-12 20:21:25", true),
            ("2024-12-12T20:21:25Z", true),
            ("2024-12-12T20:21:25.123", true),
            ("2024-12-12 20:21:25.123Z", true),
            ("2024-12-12T20Z", false),
            ("2024-12-12 20:21:25.", false),
            ("2024-12-12T20:21:25.12345678Z", false),
            ("2024-13-12", false),
            ("2023-02-29", false),
            ("24-12-12", false),
            (" 2024-12-12", false),
            ("2024-12-12T20:21:25+01:00", false),
        ] {
            check("IS_DATETIME", &format!("[\"{value}\"]"), &expected.to_string());
        }
    }
}
