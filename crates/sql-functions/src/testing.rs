//! What the tests of the groups share: calls written as text, and generated values.
//!
//! Arguments and results are written as JSON, with `undefined`, `NaN`, `Infinity` and `-Infinity` besides.

use std::sync::Arc;

use astrarium_value::json::Text;
use astrarium_value::{Object, Value};
use proptest::prelude::*;

use crate::{Context, find};

/// Calls the function with arguments written as one JSON array and compares with the result written as JSON.
#[track_caller]
pub(crate) fn check(name: &str, arguments: &str, expected: &str) {
    check_in(&Context::default(), name, arguments, expected);
}

/// Like [`check`], in a context of the caller's.
#[track_caller]
pub(crate) fn check_in(context: &Context<'_>, name: &str, arguments: &str, expected: &str) {
    let function = find(name).unwrap_or_else(|| panic!("no function {name}"));
    let arguments = list(arguments);
    assert!(function.takes(arguments.len()), "{name} takes {:?}", function.arguments);
    let result = (function.evaluate)(context, &arguments);
    assert_eq!(print(&result), print(&value(expected)), "{name}({arguments:?})");
}

/// Runs many cases of `(name, arguments, expected)`.
#[track_caller]
pub(crate) fn check_all(cases: &[(&str, &str, &str)]) {
    for (name, arguments, expected) in cases {
        check(name, arguments, expected);
    }
}

/// Arguments that no reader of text, numbers, arrays or objects accepts all of: every function of typed arguments
/// gives undefined for those that are not of its type.
#[track_caller]
pub(crate) fn check_wrong_types(name: &str, template: &str, wrong: &[&str]) {
    for value in wrong {
        check(name, &template.replace('?', value), "undefined");
    }
}

/// A value from JSON text or one of the words JSON does not have.
pub(crate) fn value(text: &str) -> Value {
    let list = list(&format!("[{text}]"));
    list.into_iter().next().unwrap_or_default()
}

/// The elements of an array in JSON, where the words JSON does not have stand for values as well.
pub(crate) fn list(text: &str) -> Vec<Value> {
    const WORDS: [&str; 4] = ["undefined", "-Infinity", "Infinity", "NaN"];
    let text = match text.strip_prefix('[') {
        Some(_) => text.to_owned(),
        None => format!("[{text}]"),
    };
    let marked = WORDS
        .iter()
        .fold(text, |text, word| replace_outside_strings(&text, word, &format!("\"\\u0001{word}\"")));
    let parsed = Text::parse(marked.as_bytes()).unwrap_or_else(|error| panic!("{marked}: {error}"));
    match unmark(parsed.root().to_value()) {
        Value::Array(values) => values,
        other => panic!("{other:?} is no array"),
    }
}

fn replace_outside_strings(text: &str, word: &str, by: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    let mut inside = false;
    while let Some(letter) = rest.chars().next() {
        if inside && letter == '\\' {
            result.push_str(&rest[..2]);
            rest = &rest[2..];
            continue;
        }
        inside ^= letter == '"';
        if !inside && rest.starts_with(word) {
            result.push_str(by);
            rest = &rest[word.len()..];
            continue;
        }
        result.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    result
}

fn unmark(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('\u{1}') => match &text[1..] {
            "undefined" => Value::Undefined,
            number => Value::Number(number.parse().unwrap()),
        },
        Value::Array(values) => Value::Array(values.into_iter().map(unmark).collect()),
        Value::Object(object) => Value::Object(Object::from_members(
            object.iter().map(|(name, value)| (Arc::from(name), unmark(value.clone()))),
        )),
        other => other,
    }
}

/// JSON, or the word for what JSON cannot say.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Undefined => "undefined".to_owned(),
        Value::Number(number) if !number.is_finite() => format!("{number}"),
        other => {
            let mut out = Vec::new();
            other.write_json(&mut out);
            String::from_utf8(out).unwrap()
        }
    }
}

/// Any value, small, from pools that make equal parts and corner cases likely.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let text = proptest::sample::select(vec![
        "",
        "a",
        "A",
        "ab",
        "abc",
        "😀",
        "a😀b",
        "é",
        "%",
        "_",
        "[a-c]",
        "(a+)+$",
        "yyyy",
        "day",
        "hh",
        "ns",
        "2024-02-29T12:00:00.1234567Z",
        "9999-12-31T23:59:59.9999999Z",
        "0001-01-01",
        "true",
        " null ",
        "[1,2]",
        "{\"a\":1}",
        "1e3",
        "i",
        "the running dogs",
        "cosine",
        "Point",
        "Polygon",
    ]);
    let number = prop_oneof![
        proptest::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            0.5,
            1e9,
            -1e9,
            1e18,
            9.3e18,
            -9.3e18,
            1e300,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]),
        any::<f64>(),
        (-20i32..20).prop_map(f64::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text.clone().prop_map(Value::from),
    ];
    let name = proptest::sample::select(vec!["a", "b", "type", "coordinates", "term", "distance"])
        .prop_map(Arc::from);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(Object::from_members(members))),
        ]
    })
}
