//! Which indexes a query could use, for the header that tells clients so.
//!
//! Single paths are those of all conditions and of ORDER BY. Composite indexes are useful for several equalities, for
//! equalities and one range, and for an order of several paths. Which of them exist is for the caller to say.

use super::Requirements;
use astrarium_index::{Condition, Need, OrderPath, Path, PathStep, Predicate};
use std::fmt::Write as _;

/// Candidates listed at most, of each sort.
const CANDIDATES_MAX: usize = 32;
/// Paths of a composite index at most, as on the service.
const COMPOSITE_PATHS_MAX: usize = 8;

/// How a query looks at a path, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathUse {
    /// It equals something.
    Equality,
    /// It lies in a range, or differs from something.
    Range,
    /// A function looks at it: its type, or its beginning.
    Function,
    /// Rows are sorted by it.
    Order,
}

/// A path that an index would help with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedPath {
    /// The path.
    pub path: Path,
    /// What for; the strictest of all uses.
    pub usage: PathUse,
}

/// The indexes that a query could use.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedPaths {
    /// Indexes of one path, each path once, in the order of the query.
    pub single: Vec<UsedPath>,
    /// Composite indexes for the filter: the paths of each, equalities first; their directions do not matter.
    pub filter_composite: Vec<Vec<OrderPath>>,
    /// The composite index for the order, with its directions.
    pub order_composite: Option<Vec<OrderPath>>,
}

/// The indexes that a query could use, whether or not they exist.
pub fn used_paths(requirements: &Requirements) -> UsedPaths {
    let need = &requirements.needed.need;
    let mut used = UsedPaths { single: Vec::new(), filter_composite: of_filter(need), order_composite: None };
    visit(need, &mut |condition| used.add(&condition.path, usage_of(&condition.predicate)));
    let order = requirements.order.as_deref().unwrap_or_default();
    for key in order {
        used.add(&key.path, PathUse::Order);
    }
    used.order_composite = (order.len() > 1).then(|| order.to_vec());
    used
}

/// A single index as clients write it: `/a/[]/b/?`.
pub fn single_spec(path: &Path) -> String {
    let mut text = written(path);
    text.push_str("/?");
    text
}

/// One path of a composite index as clients read it: `/a/b ASC`.
pub fn composite_spec(path: &OrderPath) -> String {
    let mut text = written(&path.path);
    text.push_str(if path.descending { " DESC" } else { " ASC" });
    text
}

fn written(path: &Path) -> String {
    let mut text = String::new();
    for step in &path.0 {
        match step {
            PathStep::Elements => text.push_str("/[]"),
            PathStep::Name(name) if is_plain(name) => {
                text.push('/');
                text.push_str(name);
            }
            PathStep::Name(name) => {
                let _always_fits = write!(text, "/\"{}\"", name.replace('"', "\\\""));
            }
        }
    }
    text
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

impl UsedPaths {
    fn add(&mut self, path: &Path, usage: PathUse) {
        if let Some(used) = self.single.iter_mut().find(|used| used.path == *path) {
            used.usage = used.usage.min(usage);
        } else if self.single.len() < CANDIDATES_MAX {
            self.single.push(UsedPath { path: path.clone(), usage });
        }
    }
}

fn visit(need: &Need, found: &mut dyn FnMut(&Condition)) {
    match need {
        Need::Anything | Need::Nothing => {}
        Need::One { condition, .. } => found(condition),
        Need::All(needs) | Need::Any(needs) => needs.iter().for_each(|need| visit(need, found)),
    }
}

fn usage_of(predicate: &Predicate) -> PathUse {
    match predicate {
        Predicate::OneOf(_) => PathUse::Equality,
        Predicate::Not(_) | Predicate::Between(..) => PathUse::Range,
        Predicate::Prefix(_) | Predicate::Types(_) => PathUse::Function,
    }
}

/// Composite indexes for what all documents meet: equalities first, then at most one range.
fn of_filter(need: &Need) -> Vec<Vec<OrderPath>> {
    let conjuncts = if let Need::All(needs) = need { &needs[..] } else { std::slice::from_ref(need) };
    let (mut equal, mut ranges): (Vec<OrderPath>, Vec<OrderPath>) = (Vec::new(), Vec::new());
    for conjunct in conjuncts {
        let Need::One { condition, .. } = conjunct else { continue };
        let list = match condition.predicate {
            Predicate::OneOf(_) => &mut equal,
            Predicate::Between(..) => &mut ranges,
            _ => continue,
        };
        let path = OrderPath { path: condition.path.clone(), descending: false };
        if !path.path.is_repeated() && !list.contains(&path) {
            list.push(path);
        }
    }
    equal.truncate(COMPOSITE_PATHS_MAX);
    ranges.retain(|path| !equal.contains(path));
    match equal.len() {
        0 => Vec::new(),
        1 if ranges.is_empty() => Vec::new(),
        _ if ranges.is_empty() => vec![equal],
        _ => {
            equal.truncate(COMPOSITE_PATHS_MAX - 1);
            let with = |range: OrderPath| equal.iter().cloned().chain([range]).collect();
            ranges.into_iter().take(CANDIDATES_MAX).map(with).collect()
        }
    }
}
