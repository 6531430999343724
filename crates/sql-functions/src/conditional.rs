//! Functions that choose one of their arguments.

use astrarium_value::Value;

use crate::ScalarFunction;
use crate::arguments::{at, integer};
use crate::{ANY_COUNT, operators};

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "CHOOSE",
        signature: "(place: number, ...values: any) -> any",
        arguments: 2..=ANY_COUNT,
        summary: "The argument at a place, counted from 1 after the first argument.",
        example: Some((r#"2,"a","b","c""#, r#""b""#)),
        evaluate: |_, arguments| choose(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "IIF",
        signature: "(condition: any, then: any, otherwise: any) -> any",
        arguments: 3..=3,
        summary: "The second argument when the first is true and nothing else, otherwise the third.",
        example: Some((r#"true,"yes","no""#, r#""yes""#)),
        evaluate: |_, arguments| {
            operators::conditional(at(arguments, 0), at(arguments, 1).clone(), at(arguments, 2).clone())
        },
        ..ScalarFunction::PLAIN
    },
];

fn choose(arguments: &[Value]) -> Option<Value> {
    let place = usize::try_from(integer(arguments, 0)?).ok()?;
    // Place 0 would be the place itself.
    (place > 0).then(|| at(arguments, place).clone())
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_all, check_wrong_types};

    #[test]
    fn choices() {
        check_all(&[
            ("CHOOSE", "[0, \"abc\", 1, true, [1]]", "undefined"),
            ("CHOOSE", "[1, \"abc\", 1, true, [1]]", "\"abc\""),
            ("CHOOSE", "[4, \"abc\", 1, true, [1]]", "[1]"),
            ("CHOOSE", "[5, \"abc\", 1, true, [1]]", "undefined"),
            ("CHOOSE", "[-1, \"abc\"]", "undefined"),
            ("CHOOSE", "[2, 1, undefined]", "undefined"),
            ("IIF", "[true, 123, 456]", "123"),
            ("IIF", "[false, 123, 456]", "456"),
            ("IIF", "[123, 123, 456]", "456"),
            ("IIF", "[\"ABC\", 123, 456]", "456"),
            ("IIF", "[undefined, 123, null]", "null"),
            ("IIF", "[true, undefined, 456]", "undefined"),
        ]);
        check_wrong_types(
            "CHOOSE",
            "[?, 1, 2]",
            &["undefined", "null", "true", "\"1\"", "1.5", "[1]", "{}", "NaN"],
        );
    }
}
