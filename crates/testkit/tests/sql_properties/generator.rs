//! Random documents, and random queries that find something in them.
//!
//! Expressions are made by type, so that most of them have a value and most conditions hold for some rows; a few are made
//! without regard to types. Division by zero, sums that depend on the order of rows, and the order of arrays and objects
//! are left out, because the language does not define what comes of them.

use crate::shape::{First, Join, Node, Selection, Shape};
use astrarium_testkit::sql::naive::functions::{AGGREGATES, FUNCTIONS};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// The container: keys that are ordered by together need an index.
pub(crate) const CONTAINER: &str = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"indexingMode\":\"consistent\",\
    \"includedPaths\":[{\"path\":\"/*\"}],\"compositeIndexes\":[\
    [{\"path\":\"/n\",\"order\":\"ascending\"},{\"path\":\"/s\",\"order\":\"ascending\"}],\
    [{\"path\":\"/n\",\"order\":\"ascending\"},{\"path\":\"/s\",\"order\":\"descending\"}],\
    [{\"path\":\"/m\",\"order\":\"ascending\"},{\"path\":\"/pk\",\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"descending\"}]]}}";

/// Several keys that an index serves.
const ORDERS: [&str; 6] = [
    "c.n, c.s",
    "c.n DESC, c.s DESC",
    "c.n ASC, c.s DESC",
    "c.n DESC, c.s",
    "c.m, c.pk, c.n DESC",
    "c.m DESC, c.pk DESC, c.n",
];

const TEXTS: [&str; 8] = ["", "a", "ab", "abc", "B", "é", "x_y", "50%"];
const PATTERNS: [&str; 8] = ["", "%", "a%", "%b%", "_b", "[a-c]%", "%c", "50%"];
/// Parameters that every query is asked with, as names and JSON.
pub(crate) const PARAMETERS: [(&str, &str); 4] = [
    ("@number", "1"),
    ("@text", "\"ab\""),
    ("@list", "[1,\"a\",{\"k\":2}]"),
    ("@object", "{\"k\":1,\"list\":[2]}"),
];
const NUMBERS: [&str; 7] = ["0", "1", "2", "2.5", "-1", "@number", "@list[2].k"];
const NUMBER_PATHS: [&str; 6] = [".n", ".n", ".n", "[\"n\"]", ".o.k", ".list[0]"];
const TEXT_LITERALS: [&str; 5] = ["\"a\"", "\"ab\"", "\"\"", "\"b\"", "@text"];
const TEXT_PATHS: [&str; 5] = [".s", ".s", ".s", ".id", ".m"];
const ARRAY_LITERALS: [&str; 4] = ["@list", "@object.list", "[1, \"a\"]", "[]"];
const ARRAY_PATHS: [&str; 9] =
    [".list", ".list", ".list", ".list", ".list", ".list", ".o.list", ".o.list", ".missing"];
const CONSTANTS: [&str; 6] = ["undefined", "null", "true", "false", "{\"k\": 1}", "@object"];
/// Paths that hold anything.
const PATHS: [&str; 10] =
    [".m", ".pk", ".t", ".o", ".o.k", ".list[1]", ".list[1].k", ".missing", ".o.k.deep", ".k"];
/// Paths that hold no array or object, so that their order is defined.
const SCALARS: [&str; 6] = [".n", ".s", ".m", ".t", ".pk", ".id"];
const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
const OPERATORS: [&str; 14] = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "||", "&", "|", "AND", "OR"];
const TYPE_CHECKS: [&str; 9] = [
    "IS_ARRAY",
    "IS_BOOL",
    "IS_DEFINED",
    "IS_NULL",
    "IS_NUMBER",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_STRING",
    "IS_INTEGER",
];
/// How many operators may stand above each other.
const DEPTH: usize = 2;

/// Documents with a small vocabulary.
pub(crate) fn documents() -> BoxedStrategy<Vec<String>> {
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        option::weighted(0.85, value)
            .prop_map(move |value| value.map(|value| format!(",\"{name}\":{value}")).unwrap_or_default())
    };
    let number = || {
        prop_oneof![6 => (-3_i32..6).prop_map(|n| n.to_string()), 1 => Just("2.5".to_owned()), 1 => Just("null".to_owned())].boxed()
    };
    let text = || select(TEXTS.to_vec()).prop_map(|text| format!("\"{text}\"")).boxed();
    let scalar = || {
        prop_oneof![3 => number(), 3 => text(), 1 => Just("true".to_owned()), 1 => Just("false".to_owned())]
            .boxed()
    };
    let element = || prop_oneof![3 => scalar(), 1 => scalar().prop_map(|value| format!("{{\"k\":{value},\"n\":1}}")), 1 => Just("[1]".to_owned())];
    let list = move || vec(element(), 0..4).prop_map(|items| format!("[{}]", items.join(","))).boxed();
    let object = (scalar(), list()).prop_map(|(k, list)| format!("{{\"k\":{k},\"list\":{list}}}"));
    let key = select(vec!["\"a\"", "\"b\"", "\"c\"", "1", "null"]).prop_map(str::to_owned).boxed();
    let document = (
        member("pk", key),
        member("n", number()),
        member("s", text()),
        member("m", scalar()),
        member("t", select(vec!["true", "false"]).prop_map(str::to_owned).boxed()),
        member("list", prop_oneof![5 => list(), 1 => scalar()].boxed()),
        member("o", prop_oneof![5 => object, 1 => Just("7".to_owned())].boxed()),
    );
    let document = document.prop_map(|(a, b, c, d, e, f, g)| format!("{a}{b}{c}{d}{e}{f}{g}"));
    vec(document, 0..17)
        .prop_map(|bodies| {
            let numbered = bodies.iter().enumerate();
            numbered.map(|(number, body)| format!("{{\"id\":\"{}\"{body}}}", (number * 7) % 17)).collect()
        })
        .boxed()
}

/// Expressions of each type, up to a depth.
#[derive(Clone)]
struct Level {
    number: BoxedStrategy<Node>,
    text: BoxedStrategy<Node>,
    array: BoxedStrategy<Node>,
    condition: BoxedStrategy<Node>,
    any: BoxedStrategy<Node>,
}

/// A path: mostly of the first source, sometimes of a newer one.
fn path(paths: &'static [&'static str]) -> BoxedStrategy<(usize, &'static str)> {
    (prop_oneof![9 => Just(0_usize), 1 => Just(1), 1 => Just(2)], select(paths)).boxed()
}

fn at(paths: &'static [&'static str]) -> BoxedStrategy<Node> {
    path(paths).prop_map(|(name, path)| Node::Path(name, path)).boxed()
}

fn literal(literals: &'static [&'static str]) -> BoxedStrategy<Node> {
    select(literals).prop_map(Node::Literal).boxed()
}

fn call(names: &'static [&'static str], arguments: Vec<BoxedStrategy<Node>>) -> BoxedStrategy<Node> {
    (select(names), arguments).prop_map(|(name, arguments)| Node::Call(name, arguments)).boxed()
}

fn boxed(strategy: &BoxedStrategy<Node>) -> BoxedStrategy<Box<Node>> {
    strategy.clone().prop_map(Box::new).boxed()
}

fn binary(
    operators: &'static [&'static str],
    left: &BoxedStrategy<Node>,
    right: &BoxedStrategy<Node>,
) -> BoxedStrategy<Node> {
    let parts = (select(operators), boxed(left), boxed(right));
    parts.prop_map(|(operator, left, right)| Node::Binary(operator, left, right)).boxed()
}

fn either(condition: &BoxedStrategy<Node>, value: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    let parts = (boxed(condition), boxed(value), boxed(value));
    parts.prop_map(|(condition, then, otherwise)| Node::Conditional(condition, then, otherwise)).boxed()
}

impl Level {
    /// Literals and paths.
    fn lowest() -> Level {
        // The newest source is an element more often than not.
        let element = Just(Node::Path(1, "")).boxed();
        let number =
            prop_oneof![4 => at(&NUMBER_PATHS), 2 => element.clone(), 3 => literal(&NUMBERS)].boxed();
        let text =
            prop_oneof![4 => at(&TEXT_PATHS), 2 => element.clone(), 3 => literal(&TEXT_LITERALS)].boxed();
        let array = prop_oneof![5 => at(&ARRAY_PATHS), 1 => literal(&ARRAY_LITERALS)].boxed();
        let condition = prop_oneof![2 => at(&[".t"]), 1 => literal(&["true", "false"])].boxed();
        let any = prop_oneof![2 => number.clone(), 2 => text.clone(), 1 => array.clone(), 2 => at(&PATHS), 1 => literal(&CONSTANTS)];
        Level { number, text, array, condition, any: any.boxed() }
    }

    fn of(subqueries: bool) -> Level {
        (0..DEPTH).fold(Level::lowest(), |below, _| Level::above(&below, subqueries))
    }

    /// One operator more.
    fn above(below: &Level, subqueries: bool) -> Level {
        let Level { number, text, array, condition, any } = Level::operators(below);
        if !subqueries {
            return Level { number, text, array, condition, any };
        }
        let scalar = |value: &BoxedStrategy<Node>| {
            let parts = (boxed(value), option::weighted(0.3, boxed(&below.condition)));
            parts.prop_map(|(value, filter)| Node::Scalar(value, filter)).boxed()
        };
        let elements = |form: &'static str, value: &BoxedStrategy<Node>| {
            let filter = option::weighted(0.6, boxed(&below.condition));
            let parts = (proptest::bool::weighted(0.3), path(&ARRAY_PATHS), filter, boxed(value));
            parts.prop_map(move |(distinct, of, filter, value)| Node::Elements {
                form,
                distinct,
                of,
                filter,
                value,
            })
        };
        let plain = Level::lowest();
        let filter = option::weighted(0.4, boxed(&below.condition));
        let aggregate = (
            select(&AGGREGATES[..]),
            path(&ARRAY_PATHS),
            filter,
            prop_oneof![boxed(&plain.number), boxed(&plain.any)],
        )
            .prop_map(|(name, of, filter, value)| Node::Aggregate { name, of, filter, value });
        Level {
            number: prop_oneof![8 => number, 2 => aggregate, 1 => scalar(&below.number)].boxed(),
            text: prop_oneof![8 => text, 1 => scalar(&below.text)].boxed(),
            array: prop_oneof![3 => array, 2 => elements("ARRAY", &below.any)].boxed(),
            condition: prop_oneof![8 => condition, 1 => elements("EXISTS", &below.any), 1 => scalar(&below.condition)].boxed(),
            any,
        }
    }

    fn operators(below: &Level) -> Level {
        let Level { number, text, array, condition, any } = below;
        let (low, high) = (number.clone(), number.clone());
        let numbers = prop_oneof![
            3 => number.clone(),
            3 => binary(&["+", "-", "*"], &low, &high),
            1 => binary(&["&", "|", "^"], &low, &high),
            1 => (select(vec!["/ 2", "% 3"]), boxed(number)).prop_map(|(by, node)| Node::Divided(by, node)),
            1 => (select(vec!["-", "+", "~"]), boxed(number)).prop_map(|(sign, node)| Node::Unary(sign, node)),
            1 => call(&["ABS", "FLOOR", "CEILING", "SIGN"], vec![number.clone()]),
            1 => call(&["LENGTH"], vec![text.clone()]),
            1 => call(&["ARRAY_LENGTH"], vec![array.clone()]),
            1 => call(&["INDEX_OF"], vec![text.clone(), text.clone()]),
            1 => either(condition, number),
            1 => binary(&["??"], number, number),
        ];
        let texts = prop_oneof![
            3 => text.clone(),
            2 => binary(&["||"], text, text),
            1 => call(&["CONCAT"], vec![text.clone(), text.clone()]),
            2 => call(&["UPPER", "LOWER", "REVERSE"], vec![text.clone()]),
            1 => call(&["LEFT"], vec![text.clone(), number.clone()]),
            1 => call(&["SUBSTRING"], vec![text.clone(), number.clone(), number.clone()]),
            1 => either(condition, text),
        ];
        let arrays = prop_oneof![
            3 => array.clone(),
            1 => vec(any.clone(), 0..3).prop_map(Node::Array),
            1 => call(&["ARRAY_CONCAT", "SETUNION", "SETINTERSECT"], vec![array.clone(), array.clone()]),
        ];
        let wild = select(&FUNCTIONS[..]).prop_flat_map({
            let any = any.clone();
            move |(name, count)| {
                vec(any.clone(), count).prop_map(move |arguments| Node::Call(name, arguments))
            }
        });
        let anything = prop_oneof![
            3 => number.clone(),
            3 => text.clone(),
            2 => array.clone(),
            2 => condition.clone(),
            2 => any.clone(),
            1 => vec(any.clone(), 0..3).prop_map(Node::Object),
            1 => binary(&OPERATORS, any, any),
            1 => either(condition, any),
            1 => binary(&["??"], any, any),
            1 => wild,
        ];
        Level {
            number: numbers.boxed(),
            text: texts.boxed(),
            array: arrays.boxed(),
            condition: Level::conditions(below),
            any: anything.boxed(),
        }
    }

    fn conditions(below: &Level) -> BoxedStrategy<Node> {
        let Level { number, text, array, condition, any } = below;
        let listed = |value: &BoxedStrategy<Node>| {
            let parts = (boxed(value), vec(value.clone(), 1..4), any_bool());
            parts.prop_map(|(value, list, negated)| Node::In(value, list, negated))
        };
        let between = |value: &BoxedStrategy<Node>| {
            let parts = (boxed(value), boxed(value), boxed(value), any_bool());
            parts.prop_map(|(value, low, high, negated)| Node::Between(value, low, high, negated))
        };
        let like = (boxed(text), select(&PATTERNS[..]), any_bool());
        let texts = ["CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"];
        prop_oneof![
            2 => condition.clone(),
            4 => binary(&COMPARISONS, number, number),
            3 => binary(&COMPARISONS, text, text),
            1 => binary(&["=", "!="], array, array),
            2 => binary(&["=", "!="], any, any),
            2 => call(&TYPE_CHECKS, vec![any.clone()]),
            2 => boxed(condition).prop_map(|condition| Node::Unary("NOT", condition)),
            3 => binary(&["AND", "OR"], condition, condition),
            1 => listed(number),
            1 => listed(any),
            1 => between(number),
            1 => between(any),
            1 => like.prop_map(|(text, pattern, negated)| Node::Like(text, pattern, negated)),
            2 => (select(texts.to_vec()), vec(text.clone(), 2)).prop_map(|(name, arguments)| Node::Call(name, arguments)),
            1 => call(&["ARRAY_CONTAINS"], vec![array.clone(), any.clone()]),
            1 => either(condition, condition),
        ]
        .boxed()
    }
}

/// A negation now and then.
fn any_bool() -> proptest::bool::Weighted {
    proptest::bool::weighted(0.3)
}

fn join(plain: &Level) -> BoxedStrategy<Join> {
    let subquery = (path(&ARRAY_PATHS), option::of(plain.condition.clone()), plain.any.clone());
    prop_oneof![
        4 => path(&ARRAY_PATHS).prop_map(|(name, path)| Join::Iterate(name, path)),
        1 => path(&PATHS).prop_map(|(name, path)| Join::Path(name, path)),
        1 => subquery.prop_map(|(of, filter, value)| Join::Subquery { of, filter, value }),
    ]
    .boxed()
}

fn selection(plain: &Level, full: &Level) -> BoxedStrategy<Selection> {
    let argument =
        prop_oneof![2 => plain.number.clone(), 1 => plain.any.clone(), 1 => plain.condition.clone()];
    let aggregates = vec((select(&AGGREGATES[..]), argument), 1..4);
    let key = prop_oneof![2 => at(&PATHS), 2 => at(&SCALARS), 1 => call(&["UPPER", "IS_NUMBER", "ABS"], vec![at(&SCALARS)])];
    let groups = (vec(key, 1..3), aggregates.clone(), any::<bool>());
    prop_oneof![
        1 => Just(Selection::Star),
        4 => full.any.clone().prop_map(Selection::Value),
        3 => vec(full.any.clone(), 1..4).prop_map(Selection::List),
        2 => aggregates.prop_map(Selection::Aggregates),
        3 => groups.prop_map(|(keys, aggregates, keys_shown)| Selection::Groups { keys, aggregates, keys_shown }),
    ]
    .boxed()
}

fn first(plain: &Level, full: &Level) -> BoxedStrategy<First> {
    let subquery = (any_bool(), full.any.clone(), option::weighted(0.3, plain.condition.clone()));
    prop_oneof![
        12 => Just(First::Container),
        1 => select(&PATHS[..]).prop_map(First::Path),
        1 => select(&ARRAY_PATHS[..]).prop_map(First::Iterate),
        1 => subquery.prop_map(|(distinct, value, filter)| First::Subquery { distinct, value, filter }),
    ]
    .boxed()
}

fn order() -> BoxedStrategy<String> {
    let one = (select(&SCALARS[..]), select(vec!["", " ASC", " DESC"]));
    let one = one.prop_map(|(path, direction)| format!("c{path}{direction}"));
    prop_oneof![3 => one, 2 => select(&ORDERS[..]).prop_map(str::to_owned)].boxed()
}

/// Any query.
pub(crate) fn shape() -> BoxedStrategy<Shape> {
    let (plain, full) = (Level::of(false), Level::of(true));
    let partition = select(vec![
        "c.pk = \"a\"",
        "c.pk IN (\"a\", \"c\")",
        "c.pk = null",
        "c.pk = 1 OR c.pk = \"b\"",
        "\"b\" = c.pk",
    ]);
    let limit = prop_oneof![
        (1_u32..6).prop_map(|take| (take, None)),
        (0_u32..4, 0_u32..5).prop_map(|(skip, take)| (skip, Some(take))),
    ];
    let parts = (
        selection(&plain, &full),
        proptest::bool::weighted(0.2),
        first(&plain, &full),
        prop_oneof![3 => Just(Vec::new()), 2 => vec(join(&plain), 1..3)],
        option::weighted(0.15, partition),
        option::weighted(0.5, full.condition.clone()),
        option::weighted(0.4, order()),
        option::weighted(0.3, limit),
    );
    parts
        .prop_map(|(selection, distinct, first, joins, partition, filter, order, limit)| Shape {
            selection,
            distinct,
            first,
            joins,
            partition,
            filter,
            order,
            limit,
        })
        .boxed()
}
