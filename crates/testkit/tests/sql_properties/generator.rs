//! Random documents, and random queries that make sense over them.
//!
//! A query is made as a [`Shape`] in which sources are numbers, and printed afterwards, when it is known which names are
//! in scope where; so every name in the text is bound, and shrinking keeps it so. Everything is in parentheses: precedence
//! is the business of case files. Division by zero, sums that depend on the order of rows, and the order of arrays and
//! objects are left out, because the language does not define what comes of them.

use astrarium_testkit::sql::naive::functions::{AGGREGATES, FUNCTIONS};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::{self, Write as _};

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
const LITERALS: [&str; 14] = [
    "undefined",
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "2.5",
    "-1",
    "\"a\"",
    "\"ab\"",
    "\"\"",
    "[1, \"a\"]",
    "{\"k\": 1}",
];
/// Parameters that every query is asked with, as names and JSON.
pub(crate) const PARAMETERS: [(&str, &str); 4] = [
    ("@number", "1"),
    ("@text", "\"ab\""),
    ("@list", "[1,\"a\",{\"k\":2}]"),
    ("@object", "{\"k\":1,\"list\":[2]}"),
];
const PARAMETER_USES: [&str; 6] = ["@number", "@text", "@list", "@object", "@list[2].k", "@object.list"];
/// Paths below an item or an element.
const PATHS: [&str; 15] = [
    ".n",
    ".s",
    ".m",
    ".t",
    ".pk",
    ".id",
    ".list",
    ".o",
    ".o.k",
    ".o.list",
    ".list[0]",
    ".list[1].k",
    "[\"n\"]",
    ".missing",
    ".o.k.deep",
];
/// Paths that hold arrays more often than not.
const ARRAYS: [&str; 3] = [".list", ".o.list", ".missing"];
/// Paths that hold no array or object, so that their order is defined.
const SCALARS: [&str; 6] = [".n", ".s", ".m", ".t", ".pk", ".id"];
const OPERATORS: [&str; 14] = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "||", "&", "|", "AND", "OR"];

/// An expression before it has names.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(&'static str),
    /// A path below one of the names in scope; an empty path is the element itself, for an item its `id`.
    Path(usize, &'static str),
    Unary(&'static str, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Divided(&'static str, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    In(Box<Node>, Vec<Node>, bool),
    Between(Box<Node>, Box<Node>, Box<Node>, bool),
    Like(Box<Node>, &'static str, bool),
    Call(&'static str, Vec<Node>),
    Array(Vec<Node>),
    Object(Vec<Node>),
    /// EXISTS or ARRAY over the elements of a path; the element is the newest name in filter and value.
    Elements {
        form: &'static str,
        distinct: bool,
        of: (usize, &'static str),
        filter: Option<Box<Node>>,
        value: Box<Node>,
    },
    /// An aggregate over the elements of a path.
    Aggregate {
        name: &'static str,
        of: (usize, &'static str),
        filter: Option<Box<Node>>,
        value: Box<Node>,
    },
    /// A scalar subquery without a source.
    Scalar(Box<Node>, Option<Box<Node>>),
}

/// The first source.
#[derive(Debug, Clone)]
pub(crate) enum First {
    Container,
    Path(&'static str),
    Iterate(&'static str),
    Subquery { distinct: bool, value: Node, filter: Option<Node> },
}

/// A source after the first.
#[derive(Debug, Clone)]
pub(crate) enum Join {
    Iterate(usize, &'static str),
    Path(usize, &'static str),
    Subquery { of: (usize, &'static str), filter: Option<Node>, value: Node },
}

/// What a row becomes.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    Star,
    Value(Node),
    List(Vec<Node>),
    Aggregates(Vec<(&'static str, Node)>),
    Groups { keys: Vec<Node>, aggregates: Vec<(&'static str, Node)>, keys_shown: bool },
}

/// A query before it has names.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) selection: Selection,
    pub(crate) distinct: bool,
    pub(crate) first: First,
    pub(crate) joins: Vec<Join>,
    pub(crate) partition: Option<&'static str>,
    pub(crate) filter: Option<Node>,
    pub(crate) order: Option<String>,
    pub(crate) limit: Option<(u32, Option<u32>)>,
}

/// Documents with a small vocabulary.
pub(crate) fn documents() -> BoxedStrategy<Vec<String>> {
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        option::weighted(0.8, value)
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
    vec(document, 0..9)
        .prop_map(|bodies| {
            let numbered = bodies.iter().enumerate();
            numbered.map(|(number, body)| format!("{{\"id\":\"{}\"{body}}}", (number * 7) % 10)).collect()
        })
        .boxed()
}

fn path(paths: &'static [&'static str]) -> BoxedStrategy<(usize, &'static str)> {
    (0_usize..4, select(paths)).boxed()
}

fn leaf() -> BoxedStrategy<Node> {
    prop_oneof![
        2 => select(&LITERALS[..]).prop_map(Node::Literal),
        1 => select(&PARAMETER_USES[..]).prop_map(Node::Literal),
        5 => path(&PATHS).prop_map(|(name, path)| Node::Path(name, path)),
        2 => (0_usize..4).prop_map(|name| Node::Path(name, "")),
    ]
    .boxed()
}

fn boxed(strategy: &BoxedStrategy<Node>) -> BoxedStrategy<Box<Node>> {
    strategy.clone().prop_map(Box::new).boxed()
}

/// An expression without subqueries.
pub(crate) fn plain() -> BoxedStrategy<Node> {
    leaf().prop_recursive(3, 16, 3, |inner| operation(&inner.boxed())).boxed()
}

/// Any expression.
pub(crate) fn scalar() -> BoxedStrategy<Node> {
    leaf()
        .prop_recursive(3, 16, 3, |inner| {
            let inner = inner.boxed();
            prop_oneof![4 => operation(&inner), 1 => subquery(&inner)]
        })
        .boxed()
}

fn operation(inner: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    let one = boxed(inner);
    let call = select(&FUNCTIONS[..]).prop_flat_map({
        let inner = inner.clone();
        move |(name, count)| vec(inner.clone(), count).prop_map(move |arguments| Node::Call(name, arguments))
    });
    prop_oneof![
        1 => (select(vec!["NOT", "-", "~", "+"]), one.clone()).prop_map(|(operator, node)| Node::Unary(operator, node)),
        6 => (select(&OPERATORS[..]), one.clone(), one.clone()).prop_map(|(operator, left, right)| Node::Binary(operator, left, right)),
        1 => (select(vec!["/ 2", "% 3"]), one.clone()).prop_map(|(by, node)| Node::Divided(by, node)),
        1 => (one.clone(), one.clone(), one.clone()).prop_map(|(a, b, c)| Node::Conditional(a, b, c)),
        1 => (one.clone(), one.clone()).prop_map(|(left, right)| Node::Binary("??", left, right)),
        1 => (one.clone(), vec(inner.clone(), 1..4), any::<bool>()).prop_map(|(node, list, not)| Node::In(node, list, not)),
        1 => (one.clone(), one.clone(), one.clone(), any::<bool>()).prop_map(|(a, b, c, not)| Node::Between(a, b, c, not)),
        1 => (one, select(&PATTERNS[..]), any::<bool>()).prop_map(|(node, pattern, not)| Node::Like(node, pattern, not)),
        4 => call,
        1 => vec(inner.clone(), 0..3).prop_map(Node::Array),
        1 => vec(inner.clone(), 0..3).prop_map(Node::Object),
    ]
    .boxed()
}

fn subquery(inner: &BoxedStrategy<Node>) -> BoxedStrategy<Node> {
    let one = boxed(inner);
    let elements =
        (select(vec!["EXISTS", "ARRAY"]), any::<bool>(), path(&ARRAYS), option::of(one.clone()), one.clone());
    let aggregate = (select(&AGGREGATES[..]), path(&ARRAYS), option::of(one.clone()), boxed(&plain()));
    prop_oneof![
        3 => elements.prop_map(|(form, distinct, of, filter, value)| Node::Elements { form, distinct, of, filter, value }),
        2 => aggregate.prop_map(|(name, of, filter, value)| Node::Aggregate { name, of, filter, value }),
        1 => (one.clone(), option::of(one)).prop_map(|(value, filter)| Node::Scalar(value, filter)),
    ]
    .boxed()
}

fn join() -> BoxedStrategy<Join> {
    prop_oneof![
        3 => path(&ARRAYS).prop_map(|(name, path)| Join::Iterate(name, path)),
        1 => path(&PATHS).prop_map(|(name, path)| Join::Path(name, path)),
        1 => (path(&ARRAYS), option::of(plain()), plain()).prop_map(|(of, filter, value)| Join::Subquery { of, filter, value }),
    ]
    .boxed()
}

fn selection() -> BoxedStrategy<Selection> {
    let aggregates = || vec((select(&AGGREGATES[..]), plain()), 1..4);
    let keys = vec(path(&PATHS).prop_map(|(name, path)| Node::Path(name, path)), 1..3);
    prop_oneof![
        1 => Just(Selection::Star),
        4 => scalar().prop_map(Selection::Value),
        3 => vec(scalar(), 1..4).prop_map(Selection::List),
        2 => aggregates().prop_map(Selection::Aggregates),
        3 => (keys, aggregates(), any::<bool>())
            .prop_map(|(keys, aggregates, keys_shown)| Selection::Groups { keys, aggregates, keys_shown }),
    ]
    .boxed()
}

fn first() -> BoxedStrategy<First> {
    let subquery = (any::<bool>(), scalar(), option::of(plain()));
    prop_oneof![
        8 => Just(First::Container),
        1 => select(&PATHS[..]).prop_map(First::Path),
        1 => select(&ARRAYS[..]).prop_map(First::Iterate),
        1 => subquery.prop_map(|(distinct, value, filter)| First::Subquery { distinct, value, filter }),
    ]
    .boxed()
}

fn order() -> BoxedStrategy<String> {
    let one = (select(&SCALARS[..]), select(vec!["", " ASC", " DESC"]))
        .prop_map(|(path, how)| format!("c{path}{how}"));
    prop_oneof![3 => one, 2 => select(&ORDERS[..]).prop_map(str::to_owned)].boxed()
}

/// Any query.
pub(crate) fn shape() -> BoxedStrategy<Shape> {
    let partition = select(vec![
        "c.pk = \"a\"",
        "c.pk IN (\"a\", \"c\")",
        "c.pk = null",
        "c.pk = 1 OR c.pk = \"b\"",
        "\"b\" = c.pk",
    ]);
    let limit = (0_u32..4, option::of(0_u32..5));
    let parts = (
        selection(),
        proptest::bool::weighted(0.2),
        first(),
        prop_oneof![3 => Just(Vec::new()), 2 => vec(join(), 1..3)],
        option::weighted(0.2, partition),
        option::weighted(0.6, scalar()),
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

impl fmt::Debug for Shape {
    /// A report of a failure is about the text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

impl Shape {
    /// The text of the query, with `c` for the container.
    pub(crate) fn text(&self) -> String {
        let mut names = vec!["c".to_owned()];
        let first = self.first.text(&mut names);
        let whole = matches!(self.first, First::Container);
        let joins = self.joins.iter().fold(String::new(), |mut text, join| {
            let _ = write!(text, " JOIN {}", join.text(&mut names));
            text
        });
        let (selected, group_by) = self.selected(&mut names);
        let filter: Vec<String> =
            (self.partition.iter().filter(|_| whole).map(|partition| format!("({partition})")))
                .chain(self.filter.iter().map(|filter| filter.text(&mut names)))
                .collect();
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let (top, limit) = match self.limit {
            Some((take, None)) => (format!("TOP {take} "), String::new()),
            Some((skip, Some(take))) => (String::new(), format!(" OFFSET {skip} LIMIT {take}")),
            None => (String::new(), String::new()),
        };
        let filter =
            if filter.is_empty() { String::new() } else { format!(" WHERE {}", filter.join(" AND ")) };
        // The order of groups is by their keys, which c.id and the like are not.
        let order = self
            .order
            .iter()
            .filter(|_| whole && group_by.is_empty())
            .map(|order| format!(" ORDER BY {order}"));
        let order: String = order.collect();
        format!("SELECT {distinct}{top}{selected} FROM {first}{joins}{filter}{group_by}{order}{limit}")
    }

    /// The selection and the GROUP BY clause.
    fn selected(&self, names: &mut Vec<String>) -> (String, String) {
        let listed = |nodes: Vec<String>, prefix: &str| {
            let named = nodes.iter().enumerate().map(|(index, text)| format!("{text} AS {prefix}{index}"));
            named.collect::<Vec<_>>().join(", ")
        };
        let computed = |aggregates: &[(&str, Node)], names: &mut Vec<String>| {
            aggregates.iter().map(|(name, node)| format!("{name}({})", node.text(names))).collect::<Vec<_>>()
        };
        match &self.selection {
            Selection::Star if self.joins.is_empty() => ("*".to_owned(), String::new()),
            Selection::Star => (format!("VALUE {}", named(names, (0, ""))), String::new()),
            Selection::Value(node) => (format!("VALUE {}", node.text(names)), String::new()),
            Selection::List(nodes) => {
                let nodes = nodes.iter().map(|node| node.text(names)).collect();
                (listed(nodes, "v"), String::new())
            }
            Selection::Aggregates(aggregates) => (listed(computed(aggregates, names), "a"), String::new()),
            Selection::Groups { keys, aggregates, keys_shown } => {
                let keys: Vec<String> = keys.iter().map(|key| key.text(names)).collect();
                let aggregates = listed(computed(aggregates, names), "a");
                let shown =
                    if *keys_shown { format!("{}, ", listed(keys.clone(), "k")) } else { String::new() };
                (format!("{shown}{aggregates}"), format!(" GROUP BY {}", keys.join(", ")))
            }
        }
    }
}

/// A path below a name in scope.
fn named(names: &[String], (number, path): (usize, &str)) -> String {
    let name = &names[number % names.len()];
    // The whole item has system properties, of which the naive evaluator knows nothing.
    if path.is_empty() && name == "c" { "c.id".to_owned() } else { format!("{name}{path}") }
}

/// Calls back with one name more in scope.
fn with_name<T>(names: &mut Vec<String>, work: impl FnOnce(&str, &mut Vec<String>) -> T) -> T {
    let name = format!("x{}", names.len());
    names.push(name.clone());
    let done = work(&name, names);
    names.pop();
    done
}

fn filter_text(filter: Option<&Node>, names: &mut Vec<String>) -> String {
    filter.map(|filter| format!(" WHERE {}", filter.text(names))).unwrap_or_default()
}

impl First {
    /// The source; afterwards its name is the only one in scope.
    fn text(&self, names: &mut Vec<String>) -> String {
        let text = match self {
            First::Container => return "c".to_owned(),
            First::Path(path) => format!("c{path} AS x0"),
            First::Iterate(path) => format!("x0 IN c{path}"),
            First::Subquery { distinct, value, filter } => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                let filter = filter_text(filter.as_ref(), names);
                format!("(SELECT {distinct}VALUE {} FROM c{filter}) x0", value.text(names))
            }
        };
        *names = vec!["x0".to_owned()];
        text
    }
}

impl Join {
    fn text(&self, names: &mut Vec<String>) -> String {
        let name = format!("x{}", names.len());
        let text = match self {
            Join::Iterate(number, path) => format!("{name} IN {}", named(names, (*number, path))),
            Join::Path(number, path) => format!("{} AS {name}", named(names, (*number, path))),
            Join::Subquery { of, filter, value } => {
                let of = named(names, *of);
                with_name(names, |element, names| {
                    let filter = filter_text(filter.as_ref(), names);
                    format!("(SELECT VALUE {} FROM {element} IN {of}{filter}) {name}_", value.text(names))
                })
            }
        };
        names.push(if matches!(self, Join::Subquery { .. }) { format!("{name}_") } else { name });
        text
    }
}

impl Node {
    fn text(&self, names: &mut Vec<String>) -> String {
        let joined = |nodes: &[Node], names: &mut Vec<String>| {
            nodes.iter().map(|node| node.text(names)).collect::<Vec<_>>().join(", ")
        };
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Node::Literal(text) => (*text).to_owned(),
            Node::Path(number, path) => named(names, (*number, path)),
            Node::Unary(operator, node) => format!("({operator} {})", node.text(names)),
            Node::Binary(operator, left, right) => {
                format!("({} {operator} {})", left.text(names), right.text(names))
            }
            Node::Divided(by, node) => format!("({} {by})", node.text(names)),
            Node::Conditional(a, b, c) => {
                format!("({} ? {} : {})", a.text(names), b.text(names), c.text(names))
            }
            Node::In(node, list, negated) => {
                format!("({} {}IN ({}))", node.text(names), not(negated), joined(list, names))
            }
            Node::Between(node, low, high, negated) => {
                let (node, low, high) = (node.text(names), low.text(names), high.text(names));
                format!("({node} {}BETWEEN {low} AND {high})", not(negated))
            }
            Node::Like(node, pattern, negated) => {
                format!("({} {}LIKE \"{pattern}\")", node.text(names), not(negated))
            }
            Node::Call(name, arguments) => format!("{name}({})", joined(arguments, names)),
            Node::Array(items) => format!("[{}]", joined(items, names)),
            Node::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .enumerate()
                    .map(|(index, node)| format!("\"m{index}\": {}", node.text(names)))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
            Node::Elements { form, distinct, of, filter, value } => {
                let of = named(names, *of);
                let distinct = if *distinct { "DISTINCT " } else { "" };
                with_name(names, |name, names| {
                    let filter = filter_text(filter.as_deref(), names);
                    format!(
                        "{form}(SELECT {distinct}VALUE {} FROM {name} IN {of}{filter})",
                        value.text(names)
                    )
                })
            }
            Node::Aggregate { name: function, of, filter, value } => {
                let of = named(names, *of);
                with_name(names, |name, names| {
                    let filter = filter_text(filter.as_deref(), names);
                    format!("(SELECT VALUE {function}({}) FROM {name} IN {of}{filter})", value.text(names))
                })
            }
            Node::Scalar(value, filter) => {
                let filter = filter_text(filter.as_deref(), names);
                format!("(SELECT VALUE {}{filter})", value.text(names))
            }
        }
    }
}
