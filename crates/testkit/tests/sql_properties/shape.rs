//! Queries before they have names, and their text.
//!
//! In a shape, sources are numbers: 0 is the first in scope, 1 the newest, 2 one between. Printing knows which names are
//! in scope where, so every name in a text is bound, and shrinking keeps it so. Everything is in parentheses: precedence
//! is the business of case files.

use std::fmt::{self, Write as _};

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
    let name = match number {
        0 => &names[0],
        1 => &names[names.len() - 1],
        _ => &names[names.len() / 2],
    };
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
