//! Queries of a case: every construct that an index serves, and its opposite, over the case's words.
//!
//! A query is text with places for words: `{p3}` is a path of the item, `{v3}` a value, `{s3}` a text, `{l3}` a pattern of
//! LIKE, `{w3}` an array or object, `{m3}` the step into a property. Of a composite index, `{o3}` are its paths to order
//! by, `{f3}` conditions on its first paths, `{q3}` its last path.

use crate::policies::Definition;
use crate::words::{Words, member};
use astrarium_testkit::json::escape;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
const TYPE_TESTS: [&str; 10] = [
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_INTEGER",
    "IS_FINITE_NUMBER",
];
const REGULAR: [&str; 7] = ["^a", "^ab", "^x", "^xx?", "^a|b", "b$", "^é"];
/// Texts up to this length stand in the query itself; longer ones are parameters.
const INLINE_MAX: usize = 200;

/// A query with places for words.
#[derive(Debug, Clone)]
pub(crate) struct Query(String);

impl Query {
    /// The text, with words in their places.
    pub(crate) fn text(&self, words: &Words, definition: &Definition) -> String {
        let mut text = String::new();
        let mut rest = self.0.as_str();
        while let Some(start) = rest.find('{') {
            text.push_str(&rest[..start]);
            let end = rest[start..].find('}').map_or(rest.len(), |length| start + length);
            let (kind, number) = rest[start + 1..end].split_at(1);
            let number: usize = number.parse().expect("a place for a word");
            text.push_str(&word(kind, number, words, definition));
            rest = &rest[end + 1..];
        }
        text + rest
    }
}

fn word(kind: &str, number: usize, words: &Words, definition: &Definition) -> String {
    let quoted = |text: &str| format!("\"{}\"", escape(text));
    match kind {
        "p" => words.reference("c", number),
        "m" => member(words.name(number)),
        "s" => quoted(&words.text(number)),
        "l" => {
            let literal: String =
                words.text(number).chars().filter(|letter| !"%_[]^\\".contains(*letter)).collect();
            quoted(
                &[format!("{literal}%"), literal.clone(), format!("%{literal}"), format!("{literal}_")]
                    [number % 4],
            )
        }
        "w" => {
            let (value, name) = (value(number / 6, words), escape(words.name(number)));
            match number % 6 {
                0 => "[]".to_owned(),
                1 => format!("[{value}]"),
                2 => format!("{{\"{name}\": {value}}}"),
                3 => format!("[{value}, {value}, [{value}]]"),
                4 => format!("{{\"{name}\": [{value}]}}"),
                _ => "{}".to_owned(),
            }
        }
        "o" => definition.order(words, number).unwrap_or_else(|| words.reference("c", number)),
        "f" => of_composite(number, words, definition),
        "q" => {
            let paths = definition.composite(words, number).unwrap_or_else(|| vec![number]);
            words.reference("c", *paths.last().unwrap_or(&number))
        }
        _ => value(number, words),
    }
}

/// Conditions on the first paths of a composite index: equalities, and something else on the last of them.
fn of_composite(number: usize, words: &Words, definition: &Definition) -> String {
    let paths = definition.composite(words, number).unwrap_or_else(|| vec![number, number + 1]);
    let (count, number) = (1 + number / 8 % paths.len(), number / 24);
    let one = |(place, path): (usize, &usize)| {
        let (path, value, other) =
            (words.reference("c", *path), value(number + place, words), value(number * 3 + 1, words));
        match if place + 1 < count { number % 3 } else { number % 11 } {
            0 | 1 | 9 => format!("{path} = {value}"),
            2 => format!("{path} IN ({value}, {other})"),
            3 => format!("{path} > {value}"),
            4 => format!("{path} <= {value}"),
            5 => format!("{path} BETWEEN {value} AND {other}"),
            6 => format!("{path} != {value}"),
            7 => format!("IS_DEFINED({path})"),
            8 => format!("STARTSWITH({path}, \"{}\")", escape(&words.text(number))),
            _ => format!("NOT IS_STRING({path})"),
        }
    };
    let mut conditions: Vec<String> = paths[..count].iter().enumerate().map(one).collect();
    if number % 2 == 1 {
        conditions.reverse();
    }
    format!("({})", conditions.join(" AND "))
}

/// A value, as text or as a parameter.
fn value(number: usize, words: &Words) -> String {
    let text = words.value(number).to_string();
    if number % 2 == 1 || text.len() > INLINE_MAX { format!("@v{}", words.parameter(number)) } else { text }
}

type Text = BoxedStrategy<String>;

fn numbered(kind: char) -> Text {
    (0_usize..64).prop_map(move |number| format!("{{{kind}{number}}}")).boxed()
}

fn any_of(list: &'static [&'static str]) -> Text {
    select(list).prop_map(str::to_owned).boxed()
}

/// A place of the item.
fn place() -> Text {
    let own = any_of(&["c.n", "c.id", "c.pk", "c.sub", "c._ts", "c.cp", "c.cp"]);
    let indexed = numbered('p').prop_map(|path| format!("{path}[0]"));
    prop_oneof![12 => numbered('p'), 1 => own, 1 => indexed].boxed()
}

/// A place of an element `x`.
fn element() -> Text {
    prop_oneof![2 => Just("x".to_owned()), 2 => numbered('m').prop_map(|step| format!("x{step}")), 1 => place()].boxed()
}

/// Tests that an index may serve, of a place.
fn test(place: &Text) -> Text {
    let (value, text) = (numbered('v'), numbered('s'));
    let not = any_of(&["", "", "NOT "]);
    let case = any_of(&["", "", ", false", ", true"]);
    let compare = (place.clone(), any_of(&COMPARISONS), value.clone(), any::<bool>()).prop_map(
        |(place, operator, value, turned)| {
            if turned { format!("{value} {operator} {place}") } else { format!("{place} {operator} {value}") }
        },
    );
    let between = (place.clone(), not.clone(), value.clone(), value.clone())
        .prop_map(|(place, not, low, high)| format!("({place} {not}BETWEEN {low} AND {high})"));
    let list = (place.clone(), not.clone(), vec(value.clone(), 1..4))
        .prop_map(|(place, not, values)| format!("({place} {not}IN ({}))", values.join(", ")));
    let texts = any_of(&["STARTSWITH", "STARTSWITH", "STARTSWITH", "ENDSWITH", "CONTAINS", "STRINGEQUALS"]);
    let texts = (texts, place.clone(), text.clone(), case)
        .prop_map(|(name, place, text, case)| format!("{name}({place}, {text}{case})"));
    let like = (place.clone(), not, numbered('l'))
        .prop_map(|(place, not, pattern)| format!("({place} {not}LIKE {pattern})"));
    let regular = (place.clone(), any_of(&REGULAR))
        .prop_map(|(place, pattern)| format!("REGEXMATCH({place}, \"{pattern}\")"));
    let types = (any_of(&TYPE_TESTS), place.clone()).prop_map(|(name, place)| format!("{name}({place})"));
    prop_oneof![
        8 => compare,
        3 => between,
        3 => list,
        5 => texts,
        2 => like,
        1 => regular,
        3 => types,
        2 => arrays(place),
        2 => derived(place),
    ]
    .boxed()
}

/// Tests of arrays and objects.
fn arrays(place: &Text) -> Text {
    let (value, whole) = (numbered('v'), numbered('w'));
    let needle = prop_oneof![3 => value.clone(), 1 => whole.clone()];
    let partly = any_of(&["", ", false", ", true"]);
    prop_oneof![
        3 => (place.clone(), needle, partly).prop_map(|(place, needle, partly)| format!("ARRAY_CONTAINS({place}, {needle}{partly})")),
        1 => (any_of(&["ARRAY_CONTAINS_ANY", "ARRAY_CONTAINS_ALL"]), place.clone(), value.clone(), value.clone())
            .prop_map(|(name, place, one, two)| format!("{name}({place}, {one}, {two})")),
        1 => (place.clone(), value.clone(), value).prop_map(|(place, one, two)| format!("ARRAY_CONTAINS([{one}, {two}], {place})")),
        2 => (place.clone(), any_of(&["=", "!="]), whole).prop_map(|(place, operator, whole)| format!("{place} {operator} {whole}")),
    ]
    .boxed()
}

/// Tests of what follows from a place.
fn derived(place: &Text) -> Text {
    let (value, text) = (numbered('v'), numbered('s'));
    let of_numbers =
        (any_of(&["ABS", "FLOOR", "CEILING", "ROUND"]), place.clone(), any_of(&COMPARISONS), value.clone())
            .prop_map(|(name, place, operator, value)| format!("{name}({place}) {operator} {value}"));
    let beginning =
        (any_of(&["LEFT(", "SUBSTRING("]), place.clone(), 0_usize..4, any_of(&["=", "!=", "<"]), text)
            .prop_map(|(name, place, length, operator, text)| {
                let start = if name == "LEFT(" { "" } else { "0, " };
                format!("{name}{place}, {start}{length}) {operator} {text}")
            });
    let other = (place.clone(), any_of(&["??", "="]), value.clone(), any_of(&COMPARISONS), value).prop_map(
        |(place, between, one, operator, two)| format!("({place} {between} {one}) {operator} {two}"),
    );
    let two = (place.clone(), any_of(&COMPARISONS), place.clone())
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    prop_oneof![2 => of_numbers, 1 => beginning, 1 => other, 1 => two, 1 => place.clone()].boxed()
}

/// Some element of an array meets a condition.
fn exists() -> Text {
    let condition = trees(test(&element()), 2);
    let of = prop_oneof![4 => numbered('p'), 1 => (numbered('p'), numbered('m')).prop_map(|(path, step)| path + &step)];
    prop_oneof![
        3 => (of.clone(), condition.clone()).prop_map(|(of, condition)| format!("EXISTS(SELECT VALUE x FROM x IN {of} WHERE {condition})")),
        1 => of.clone().prop_map(|of| format!("EXISTS(SELECT VALUE x FROM x IN {of})")),
        1 => (of, numbered('m'), condition)
            .prop_map(|(of, step, condition)| format!("EXISTS(SELECT VALUE x FROM y IN {of} JOIN x IN y{step} WHERE {condition})")),
    ]
    .boxed()
}

/// Tests joined by AND, OR and NOT.
fn trees(test: Text, depth: u32) -> Text {
    test.prop_recursive(depth, 6, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..4).prop_map(|tests| format!("({})", tests.join(" AND "))),
            2 => vec(inner.clone(), 2..4).prop_map(|tests| format!("({})", tests.join(" OR "))),
            1 => inner.clone().prop_map(|test| format!("NOT ({test})")),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("(({a}) ? ({b}) : ({c}))")),
        ]
    })
    .boxed()
}

fn condition() -> Text {
    let together = (0_usize..10_000).prop_map(|number| format!("{{f{number}}}")).boxed();
    trees(prop_oneof![12 => test(&place()), 2 => exists(), 3 => together].boxed(), 2)
}

/// Conditions on the first paths of a composite index, and an order of all its paths or of the last.
fn together_and_ordered() -> Text {
    let order = any_of(&["{o#}", "{q#}", "{q#} DESC"]);
    let more = option::weighted(0.3, test(&place()))
        .prop_map(|test| test.map_or(String::new(), |test| format!(" AND {test}")));
    (any_of(&["VALUE c.id", "TOP 2 VALUE c.id", "*"]), order, more, 0_usize..10_000)
        .prop_map(|(selected, order, more, number)| {
            let order = order.replace('#', &number.to_string());
            format!("SELECT {selected} FROM c WHERE {{f{number}}}{more} ORDER BY {order}")
        })
        .boxed()
}

fn filter() -> Text {
    option::weighted(0.7, condition())
        .prop_map(|condition| condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default())
        .boxed()
}

/// Rows of documents, in order of insertion or sorted, all or some.
fn rows() -> Text {
    let selected = prop_oneof![
        2 => Just("VALUE c.id".to_owned()),
        1 => Just("*".to_owned()),
        2 => place().prop_map(|place| format!("VALUE {place}")),
        2 => (place(), place()).prop_map(|(one, two)| format!("c.id, {one} AS one, {two} AS two")),
    ];
    let one = (place(), any_of(&["", " ASC", " DESC"])).prop_map(|(place, direction)| place + &direction);
    let order = prop_oneof![4 => one, 3 => numbered('o')].prop_map(|order| format!(" ORDER BY {order}"));
    let order = option::weighted(0.5, order).prop_map(Option::unwrap_or_default);
    let limited = prop_oneof![
        3 => Just((String::new(), String::new())),
        1 => (0_u32..5).prop_map(|count| (format!("TOP {count} "), String::new())),
        1 => (0_u32..5, 0_u32..5).prop_map(|(skip, take)| (String::new(), format!(" OFFSET {skip} LIMIT {take}"))),
    ];
    (selected, joined(), filter(), order, limited)
        .prop_map(|(selected, (joined, joined_filter), filter, order, (top, limit))| {
            let filter = if filter.is_empty() || joined.is_empty() {
                filter
            } else {
                format!("{filter} AND {joined_filter}")
            };
            let selected = if joined.is_empty() { selected } else { "c.id, x".to_owned() };
            format!("SELECT {top}{selected} FROM c{joined}{filter}{order}{limit}")
        })
        .boxed()
}

/// A join, and a condition on what it brings.
fn joined() -> BoxedStrategy<(String, String)> {
    let join = (numbered('p'), test(&element()))
        .prop_map(|(path, condition)| (format!(" JOIN x IN {path}"), condition));
    option::weighted(0.2, join).prop_map(Option::unwrap_or_default).boxed()
}

/// Rows of what documents have at a path, in the order of something in it.
fn sub_roots() -> Text {
    let place =
        prop_oneof![3 => numbered('m').prop_map(|step| format!("x{step}")), 1 => Just("x".to_owned())]
            .boxed();
    let filter = option::weighted(0.5, test(&place));
    let filter = filter.prop_map(|test| test.map_or(String::new(), |test| format!(" WHERE {test}")));
    (numbered('p'), filter, place, any_of(&["", " DESC"]))
        .prop_map(|(path, filter, place, direction)| {
            format!("SELECT VALUE x FROM {path} x{filter} ORDER BY {place}{direction}")
        })
        .boxed()
}

fn distinct() -> Text {
    let selected = prop_oneof![
        3 => place().prop_map(|place| format!("VALUE {place}")),
        1 => place().prop_map(|place| format!("{place} AS one")),
        1 => place().prop_map(|place| format!("{place} AS one, 1 AS two")),
        1 => (place(), place()).prop_map(|(one, two)| format!("{one} AS one, {two} AS two")),
    ];
    let sorted = (place(), filter(), any_of(&["", " DESC"])).prop_map(|(place, filter, direction)| {
        format!("SELECT DISTINCT VALUE {place} FROM c{filter} ORDER BY {place}{direction}")
    });
    let plain = (selected, any_of(&["", "TOP 2 "]), own_filter())
        .prop_map(|(selected, top, filter)| format!("SELECT DISTINCT {top}{selected} FROM c{filter}"));
    let counted = (place(), filter()).prop_map(|(place, filter)| {
        format!("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE {place} FROM c{filter})")
    });
    prop_oneof![3 => plain, 2 => sorted, 1 => counted].boxed()
}

/// A filter that often looks at one path only, as queries do that an index answers alone.
fn own_filter() -> Text {
    let own = test(&Just("{p1}".to_owned()).boxed()).prop_map(|test| format!(" WHERE {test}"));
    prop_oneof![2 => Just(String::new()), 2 => own, 2 => filter()].boxed()
}

fn aggregated() -> Text {
    let whole = any_of(&[
        "COUNT(1)",
        "COUNT(c)",
        "MIN(c.n)",
        "MAX(c.n)",
        "SUM(c.n)",
        "AVG(c.n)",
        "MIN({p1})",
        "MAX({p1})",
    ]);
    let of_place =
        (any_of(&["COUNT", "MIN", "MAX"]), place()).prop_map(|(name, place)| format!("{name}({place})"));
    let aggregate = prop_oneof![2 => whole, 3 => of_place].boxed();
    let one = (aggregate.clone(), own_filter())
        .prop_map(|(aggregate, filter)| format!("SELECT VALUE {aggregate} FROM c{filter}"));
    let several = (aggregate.clone(), aggregate.clone(), own_filter())
        .prop_map(|(one, two, filter)| format!("SELECT {one} AS one, {two} AS two FROM c{filter}"));
    let joined = (numbered('p'), test(&element()))
        .prop_map(|(path, test)| format!("SELECT VALUE COUNT(1) FROM c JOIN x IN {path} WHERE {test}"));
    let key = prop_oneof![2 => Just("{p1}".to_owned()), 2 => place()];
    let groups = (key, vec(aggregate, 0..3), own_filter(), any::<bool>()).prop_map(
        |(key, aggregates, filter, shown)| {
            let numbered = aggregates.iter().enumerate().map(|(number, one)| format!("{one} AS a{number}"));
            let shown = (shown || aggregates.is_empty()).then(|| format!("{key} AS k"));
            let selected: Vec<String> = shown.into_iter().chain(numbered).collect();
            format!("SELECT {} FROM c{filter} GROUP BY {key}", selected.join(", "))
        },
    );
    prop_oneof![4 => one, 1 => several, 1 => joined, 3 => groups].boxed()
}

/// Any query.
pub(crate) fn query() -> BoxedStrategy<Query> {
    prop_oneof![6 => rows(), 2 => together_and_ordered(), 1 => sub_roots(), 2 => distinct(), 3 => aggregated()]
        .prop_map(Query)
        .boxed()
}
