//! Functions of text: searching, cutting, joining, changing case, and conversion from and to other types.
//!
//! Positions and lengths are UTF-16 units (`utf16`). Case is folded character by character as the invariant culture does,
//! never changing how many characters there are.
//! Not here: regular expressions (`regex`), LIKE (`operators::like`), words and stems (`full_text`).

mod case;
mod convert;
mod cut;
mod search;

use astrarium_value::Value;

use crate::arguments::{array, as_text, number, optional_flag, string, text};
use crate::limits::{REPLICATE_UNITS_MAX, TEXT_BYTES_MAX};
use crate::{ANY_COUNT, FunctionIndexUse, ScalarFunction, utf16};

pub(crate) use case::{fold, lower};

const CONTAINS: Option<FunctionIndexUse> = Some(FunctionIndexUse::Contains { text: 0, first: 1 });

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "CONCAT",
        signature: "(...texts: string) -> string",
        arguments: 2..=ANY_COUNT,
        summary: "The texts joined in order.",
        example: Some((r#""a","b","c""#, r#""abc""#)),
        evaluate: |_, arguments| concat(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CONTAINS",
        signature: "(text: string, part: string, ignoreCase?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "True when the first text contains the second; the third argument makes it ignore case.",
        example: Some((r#""Astrarium","STRA",true"#, "true")),
        evaluate: |_, arguments| search::test(arguments, search::contains).unwrap_or_default(),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CONTAINS_ALL_CI",
        signature: "(text: string, ...parts: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the first text contains all the others, ignoring case.",
        example: Some((r#""Astrarium","ASTRA","um""#, "true")),
        evaluate: |_, arguments| search::contains_many(arguments, true, false),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CONTAINS_ALL_CS",
        signature: "(text: string, ...parts: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the first text contains all the others.",
        example: Some((r#""Astrarium","Astra","um""#, "true")),
        evaluate: |_, arguments| search::contains_many(arguments, false, false),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CONTAINS_ANY_CI",
        signature: "(text: string, ...parts: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the first text contains one of the others, ignoring case.",
        example: Some((r#""Astrarium","x","UM""#, "true")),
        evaluate: |_, arguments| search::contains_many(arguments, true, true),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "CONTAINS_ANY_CS",
        signature: "(text: string, ...parts: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the first text contains one of the others.",
        example: Some((r#""Astrarium","x","um""#, "true")),
        evaluate: |_, arguments| search::contains_many(arguments, false, true),
        index_use: CONTAINS,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STARTSWITH",
        signature: "(text: string, prefix: string, ignoreCase?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "True when the first text begins with the second; the third argument makes it ignore case.",
        example: Some((r#""Astrarium","astra",true"#, "true")),
        evaluate: |_, arguments| search::test(arguments, search::starts_with).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Prefix { text: 0, prefix: 1, ignore_case: Some(2) }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ENDSWITH",
        signature: "(text: string, suffix: string, ignoreCase?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "True when the first text ends with the second; the third argument makes it ignore case.",
        example: Some((r#""Astrarium","rium""#, "true")),
        evaluate: |_, arguments| search::test(arguments, search::ends_with).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Suffix { text: 0, suffix: 1 }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGEQUALS",
        signature: "(first: string, second: string, ignoreCase?: boolean) -> boolean",
        arguments: 2..=3,
        summary: "True when both texts are equal; the third argument makes it ignore case.",
        example: Some((r#""abc","ABC",true"#, "true")),
        evaluate: |_, arguments| search::test(arguments, search::equals).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Equality { text: 0, other: 1, ignore_case: 2 }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "INDEX_OF",
        signature: "(text: string, part: string, start?: number) -> number",
        arguments: 2..=3,
        summary: "The first position of the second text in the first, from a start on, or -1.",
        example: Some((r#""abcabc","c",3"#, "5")),
        evaluate: |_, arguments| search::index_of(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LASTINDEXOF",
        signature: "(text: string, part: string, start?: number) -> number",
        arguments: 2..=3,
        summary: "The last position of the second text in the first, searching backwards from a start, or -1.",
        example: Some((r#""abcabc","c""#, "5")),
        evaluate: |_, arguments| search::last_index_of(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LEFT",
        signature: "(text: string, length: number) -> string",
        arguments: 2..=2,
        summary: "The first units of the text.",
        example: Some((r#""Astrarium",5"#, r#""Astra""#)),
        evaluate: |_, arguments| cut::left(arguments).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Beginning { text: 0 }),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "RIGHT",
        signature: "(text: string, length: number) -> string",
        arguments: 2..=2,
        summary: "The last units of the text.",
        example: Some((r#""Astrarium",4"#, r#""rium""#)),
        evaluate: |_, arguments| cut::right(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SUBSTRING",
        signature: "(text: string, start: number, length: number) -> string",
        arguments: 3..=3,
        summary: "The part of the text that begins at a position and has at most a length.",
        example: Some((r#""Astrarium",1,3"#, r#""str""#)),
        evaluate: |_, arguments| cut::substring(arguments).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Beginning { text: 0 }),
        ..ScalarFunction::PLAIN
    },
    // The four below are known by name only (unsure): what is not found gives the empty text, as in XPath.
    ScalarFunction {
        name: "SUBSTRINGAFTER",
        signature: "(text: string, mark: string) -> string",
        arguments: 2..=2,
        summary: "What follows the first occurrence of the second text in the first.",
        example: Some((r#""a/b/c","/""#, r#""b/c""#)),
        evaluate: |_, arguments| {
            cut::around(arguments, |text, mark| Some(text.split_once(mark)?.1)).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "SUBSTRINGBEFORE",
        signature: "(text: string, mark: string) -> string",
        arguments: 2..=2,
        summary: "What precedes the first occurrence of the second text in the first.",
        example: Some((r#""a/b/c","/""#, r#""a""#)),
        evaluate: |_, arguments| {
            cut::around(arguments, |text, mark| Some(text.split_once(mark)?.0)).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LASTSUBSTRINGAFTER",
        signature: "(text: string, mark: string) -> string",
        arguments: 2..=2,
        summary: "What follows the last occurrence of the second text in the first.",
        example: Some((r#""a/b/c","/""#, r#""c""#)),
        evaluate: |_, arguments| {
            cut::around(arguments, |text, mark| Some(text.rsplit_once(mark)?.1)).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LASTSUBSTRINGBEFORE",
        signature: "(text: string, mark: string) -> string",
        arguments: 2..=2,
        summary: "What precedes the last occurrence of the second text in the first.",
        example: Some((r#""a/b/c","/""#, r#""a/b""#)),
        evaluate: |_, arguments| {
            cut::around(arguments, |text, mark| Some(text.rsplit_once(mark)?.0)).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LENGTH",
        signature: "(text: string) -> number",
        arguments: 1..=1,
        summary: "How many UTF-16 units the text has.",
        example: Some((r#""Astrarium""#, "9")),
        evaluate: |_, arguments| cut::length(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LOWER",
        signature: "(text: string) -> string",
        arguments: 1..=1,
        summary: "The text in lower case.",
        example: Some((r#""Astrarium""#, r#""astrarium""#)),
        evaluate: |_, arguments| text(arguments, 0).map(lower).map(string).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "UPPER",
        signature: "(text: string) -> string",
        arguments: 1..=1,
        summary: "The text in upper case.",
        example: Some((r#""Astrarium""#, r#""ASTRARIUM""#)),
        evaluate: |_, arguments| text(arguments, 0).map(fold).map(string).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "LTRIM",
        signature: "(text: string, characters?: string) -> string",
        arguments: 1..=2,
        summary: "The text without white space, or without the given characters, at its beginning.",
        example: Some((r#""  abc ""#, r#""abc ""#)),
        evaluate: |_, arguments| cut::trim(arguments, true, false).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "RTRIM",
        signature: "(text: string, characters?: string) -> string",
        arguments: 1..=2,
        summary: "The text without white space, or without the given characters, at its end.",
        example: Some((r#""abc--","-""#, r#""abc""#)),
        evaluate: |_, arguments| cut::trim(arguments, false, true).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TRIM",
        signature: "(text: string, characters?: string) -> string",
        arguments: 1..=2,
        summary: "The text without white space, or without the given characters, at both ends.",
        example: Some((r#""  abc ""#, r#""abc""#)),
        evaluate: |_, arguments| cut::trim(arguments, true, true).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "REPLACE",
        signature: "(text: string, old: string, new: string) -> string",
        arguments: 3..=3,
        summary: "The first text with every occurrence of the second replaced by the third.",
        example: Some((r#""abcabc","b","-""#, r#""a-ca-c""#)),
        evaluate: |_, arguments| replace(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "REPLICATE",
        signature: "(text: string, times: number) -> string",
        arguments: 2..=2,
        summary: "The text repeated a number of times, up to 10,000 units in all.",
        example: Some((r#""ab",3"#, r#""ababab""#)),
        evaluate: |_, arguments| replicate(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "REVERSE",
        signature: "(text: string) -> string",
        arguments: 1..=1,
        summary: "The characters of the text from last to first.",
        example: Some((r#""abc""#, r#""cba""#)),
        // By characters, not units: reversed halves of a pair would be no text.
        evaluate: |_, arguments| {
            text(arguments, 0).map_or(Value::Undefined, |text| string(text.chars().rev().collect::<String>()))
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGJOIN",
        signature: "(texts: array, separator: string) -> string",
        arguments: 2..=2,
        summary: "The texts of an array joined with a separator between them.",
        example: Some((r#"["a","b","c"],", ""#, r#""a, b, c""#)),
        evaluate: |_, arguments| join(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGSPLIT",
        signature: "(text: string, separator: string) -> array",
        arguments: 2..=2,
        summary: "The parts of the text between occurrences of a separator.",
        example: Some((r#""a,b,c",",""#, r#"["a","b","c"]"#)),
        evaluate: |_, arguments| cut::split(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TOSTRING",
        signature: "(value: any) -> string",
        arguments: 1..=1,
        summary: "The value as text: text as it is, anything else as JSON without spaces.",
        example: Some((r#"[1,"a"]"#, r#""[1,\"a\"]""#)),
        evaluate: |_, arguments| convert::to_string(arguments),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGTOARRAY",
        signature: "(text: string) -> array",
        arguments: 1..=1,
        summary: "The array that the text is in JSON.",
        example: Some((r#""[1,2]""#, "[1,2]")),
        evaluate: |_, arguments| {
            convert::parse(arguments, |value| matches!(value, Value::Array(_))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGTOBOOLEAN",
        signature: "(text: string) -> boolean",
        arguments: 1..=1,
        summary: "The boolean that the text is in JSON.",
        example: Some((r#""true""#, "true")),
        evaluate: |_, arguments| {
            convert::parse(arguments, |value| matches!(value, Value::Bool(_))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGTONULL",
        signature: "(text: string) -> null",
        arguments: 1..=1,
        summary: "Null when the text is null in JSON.",
        example: Some((r#""null""#, "null")),
        evaluate: |_, arguments| {
            convert::parse(arguments, |value| matches!(value, Value::Null)).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGTONUMBER",
        signature: "(text: string) -> number",
        arguments: 1..=1,
        summary: "The number that the text is in JSON.",
        example: Some((r#""1.5""#, "1.5")),
        evaluate: |_, arguments| {
            convert::parse(arguments, |value| matches!(value, Value::Number(_))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "STRINGTOOBJECT",
        signature: "(text: string) -> object",
        arguments: 1..=1,
        summary: "The object that the text is in JSON.",
        example: Some((r#""{\"a\":1}""#, r#"{"a":1}"#)),
        evaluate: |_, arguments| {
            convert::parse(arguments, |value| matches!(value, Value::Object(_))).unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
];

fn concat(arguments: &[Value]) -> Option<Value> {
    joined(arguments, "")
}

fn join(arguments: &[Value]) -> Option<Value> {
    joined(array(arguments, 0)?, text(arguments, 1)?)
}

/// Adds up the length first: a large separator between many parts must be refused before anything is built.
fn joined(parts: &[Value], separator: &str) -> Option<Value> {
    let mut bytes = separator.len().saturating_mul(parts.len().saturating_sub(1));
    for part in parts {
        bytes = bytes.saturating_add(as_text(part)?.len());
    }
    if bytes > TEXT_BYTES_MAX {
        return None;
    }
    let mut result = String::with_capacity(bytes);
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            result.push_str(separator);
        }
        result.push_str(as_text(part)?);
    }
    Some(string(result))
}

/// An empty text to look for gives undefined, as the SDKs' own engine has it.
fn replace(arguments: &[Value]) -> Option<Value> {
    let (text, old, new) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    if old.is_empty() {
        return None;
    }
    let found = text.matches(old).count();
    let bytes = (text.len() - found * old.len()).saturating_add(found.saturating_mul(new.len()));
    (bytes <= TEXT_BYTES_MAX).then(|| string(text.replace(old, new)))
}

fn replicate(arguments: &[Value]) -> Option<Value> {
    let (text, times) = (text(arguments, 0)?, number(arguments, 1)?.trunc());
    if !times.is_finite() || times < 0.0 {
        return None;
    }
    let fits = utf16::length(text) as f64 * times <= REPLICATE_UNITS_MAX as f64;
    // The empty text fits any number of times, and is not worth repeating.
    let times = if text.is_empty() { 0 } else { times as usize };
    fits.then(|| string(text.repeat(times)))
}

/// The flag that makes a test ignore case, for the tests of `search`.
fn ignores_case(arguments: &[Value]) -> Option<bool> {
    optional_flag(arguments, 2)
}

#[cfg(test)]
mod tests;
