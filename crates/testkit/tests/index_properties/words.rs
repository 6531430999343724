//! The words of a case: values, names and paths that its documents, policies and queries share, so that they meet.
//!
//! Shapes of documents and queries refer to words by number, and any number is a word: a case stays whole while it
//! shrinks. Among the values are the edges of numbers and texts, among the names every kind of character.

use astrarium_testkit::json::{Json, escape};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Numbers at which doubles, 64-bit integers and their conversions turn.
const NUMBERS: [&str; 32] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.0",
    "2",
    "0.1",
    "0.30000000000000004",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740991",
    "-9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "123456789012345678901234567890",
    "5e-324",
    "-5e-324",
    "2.2250738585072014e-308",
    "2.225073858507201e-308",
    "1e308",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "1e-7",
    "1e21",
    "1e20",
    "100",
    "1e2",
    "-1e-300",
];

/// Pieces of texts: what sorts differently by bytes, by UTF-16 units and by characters, and what escapes.
const PIECES: [&str; 16] = [
    "",
    "a",
    "ab",
    "b",
    "A",
    "é",
    "\u{0}",
    "\u{1}",
    "\u{7F}",
    "\u{D7FF}",
    "\u{E000}",
    "\u{FFFF}",
    "\u{10000}",
    "\u{10FFFF}",
    "%_[",
    "\"\\",
];

/// How often the beginning of a text is repeated: on both sides of where index entries cut.
const REPEATS: [usize; 9] = [0, 0, 0, 0, 31, 47, 48, 95, 600];

/// Names of properties besides random ones; the last are those that the database gives values of its own.
const NAMES: [&str; 32] = [
    "a",
    "b",
    "c",
    "d",
    "a",
    "b",
    "",
    " ",
    "a b",
    "a/b",
    "a.b",
    "a\"b",
    "a'b",
    "a\\b",
    "[]",
    "?",
    "*",
    "0",
    "null",
    "length",
    "é",
    "\u{E000}",
    "\u{10000}",
    "\u{1}",
    "$v",
    "_x",
    "_ts",
    "_etag",
    "_rid",
    "_self",
    "_attachments",
    "_lsn",
];

/// Names that documents of a case have anyway.
const TAKEN: [&str; 6] = ["cp", "id", "pk", "sub", "n", "ttl"];

/// What documents, policies and queries of a case are made of.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    /// Scalars as JSON.
    values: Vec<Json>,
    /// Names of properties.
    names: Vec<String>,
    /// Places in documents, as numbers of names.
    paths: Vec<Vec<usize>>,
}

impl Words {
    /// A value.
    pub(crate) fn value(&self, number: usize) -> &Json {
        &self.values[number % self.values.len()]
    }

    /// A text: one of the values, or what begins one.
    pub(crate) fn text(&self, number: usize) -> String {
        let texts: Vec<&str> = self.values.iter().filter_map(Json::as_text).collect();
        let Some(text) = texts.get(number % texts.len().max(1)) else { return "a".to_owned() };
        let count = text.chars().count();
        let keep = [count, count, 1, count.saturating_sub(1), count / 2, 96, 97, 33][number / 8 % 8];
        text.chars().take(keep).collect()
    }

    /// A name.
    pub(crate) fn name(&self, number: usize) -> &str {
        &self.names[number % self.names.len()]
    }

    /// The names of a path.
    pub(crate) fn path(&self, number: usize) -> Vec<&str> {
        self.paths[number % self.paths.len()].iter().map(|name| self.name(*name)).collect()
    }

    /// A path in the language of queries.
    pub(crate) fn reference(&self, root: &str, number: usize) -> String {
        self.path(number).iter().fold(root.to_owned(), |text, name| text + &member(name))
    }

    /// Values as parameters `@v0`, `@v1` and so on.
    pub(crate) fn parameters(&self) -> Vec<(String, Json)> {
        let numbered = self.values.iter().enumerate();
        numbered.map(|(number, value)| (format!("@v{number}"), value.clone())).collect()
    }

    /// The number of a value's parameter.
    pub(crate) fn parameter(&self, number: usize) -> usize {
        number % self.values.len()
    }
}

/// The step into a property in the language of queries.
pub(crate) fn member(name: &str) -> String {
    format!("[\"{}\"]", escape(name))
}

/// Any words.
pub(crate) fn words() -> BoxedStrategy<Words> {
    let path = prop_oneof![6 => vec(0_usize..8, 1), 3 => vec(0_usize..8, 2), 1 => vec(0_usize..8, 3)];
    (vec(scalar(), 2..8), vec(name(), 2..4), vec(path, 2..4))
        .prop_map(|(values, names, paths)| Words { values, names, paths })
        .boxed()
}

fn scalar() -> BoxedStrategy<Json> {
    let word = |text: &str| Json::Word(text.to_owned());
    prop_oneof![
        1 => select(vec!["null", "true", "false"]).prop_map(word),
        3 => select(NUMBERS.to_vec()).prop_map(word),
        1 => any::<i64>().prop_map(|number| Json::Word(number.to_string())),
        1 => (-3_i32..4).prop_map(|number| Json::Word(number.to_string())),
        1 => any::<f64>().prop_filter("JSON has finite numbers", |number| number.is_finite())
            .prop_map(|number| Json::Word(format!("{number:e}"))),
        5 => text().prop_map(Json::Text),
    ]
    .boxed()
}

/// Texts that share beginnings of many lengths.
fn text() -> BoxedStrategy<String> {
    let begun = (
        select(vec!["x", "é", "\u{0}", "\u{E000}"]),
        select(REPEATS.to_vec()),
        vec(select(PIECES.to_vec()), 0..3),
    )
        .prop_map(|(letter, count, pieces)| letter.repeat(count) + &pieces.concat());
    prop_oneof![6 => begun, 1 => "\\PC{0,12}", 1 => vec(any::<char>(), 0..8).prop_map(String::from_iter)]
        .boxed()
}

fn name() -> BoxedStrategy<String> {
    prop_oneof![8 => select(NAMES.to_vec()).prop_map(str::to_owned), 1 => vec(any::<char>(), 0..6).prop_map(String::from_iter)]
        // A backslash at the end of a name cannot be written in a policy.
        .prop_filter("a name of the user's own", |name| !TAKEN.contains(&name.as_str()) && !name.ends_with('\\'))
        .boxed()
}
