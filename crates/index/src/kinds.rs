//! The kinds of index. Each has a file; a new one is a new file and a line in `all`.

mod composite;
mod range;

use crate::condition::{Condition, OrderPath, Path, Predicate};
use crate::document::Document;
use crate::entries::Entries;
use crate::policy::{self, Policy};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_keys::index_entry::{Family, is_shortened_term, push_term, tag, term_length};
use astrarium_value::Value;
use std::fmt;

/// One kind of index of a container.
pub trait IndexKind: fmt::Debug + Send + Sync {
    /// Appends the entries of a document. Pure: the same document gives the same entries.
    fn entries(&self, document: &Document<'_>, out: &mut Entries<'_>);

    /// The families that it has whatever documents hold, each with its name for people.
    fn families(&self) -> Vec<(Family, String)> {
        Vec::new()
    }

    /// The entries that serve a condition; none if it cannot.
    fn serve(&self, condition: &Condition) -> Option<Served>;

    /// The entries that serve some of these conditions at once; none if it has no such entries.
    fn serve_together(&self, _conditions: &[&Condition]) -> Option<Together> {
        None
    }

    /// The entries that have documents in an order, whatever documents are asked for; none if it cannot. Of the
    /// documents that do not meet all the conditions, entries may be left out.
    fn order(&self, order: &[OrderPath], conditions: &[&Condition]) -> Option<Ordered>;

    /// The entries that have in an order those documents that meet all the conditions, if it is the conditions that
    /// make it possible.
    fn order_within(&self, _order: &[OrderPath], _conditions: &[&Condition]) -> Option<Ordered> {
        None
    }
}

/// Entries that serve a condition: those of a family whose terms are in one of the ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The family.
    pub family: Family,
    /// Ranges of terms, apart from each other.
    pub ranges: Vec<TermRange>,
    /// Whether every document with such an entry meets the condition.
    pub exact: bool,
    /// Whether a document can have several such entries.
    pub repeated: bool,
    /// The index for people: its path or paths.
    pub shown: String,
}

impl Served {
    /// Whether all ranges are single terms: their documents come in order without sorting.
    pub fn is_terms(&self) -> bool {
        self.ranges.iter().all(|range| range.is_point)
    }
}

/// Entries that serve several conditions at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The entries.
    pub served: Served,
    /// Which of the conditions they serve, by their places in the list that was given. The first is about the first of
    /// `paths`, and so on.
    pub conditions: Vec<usize>,
    /// The paths of the index, those that are not used too.
    pub paths: Vec<OrderPath>,
}

/// Terms from `start` (included) to `end` (not included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermRange {
    /// The first bytes that belong.
    pub start: Vec<u8>,
    /// The first bytes beyond.
    pub end: Vec<u8>,
    /// Whether this is one term: its documents are in the order of their numbers.
    pub is_point: bool,
}

impl TermRange {
    /// All terms of a family.
    pub fn everything() -> TermRange {
        // Tags of terms stay below, inverted or not.
        TermRange { start: Vec::new(), end: vec![0xFF], is_point: false }
    }

    /// The terms of all values that are there.
    pub fn values() -> TermRange {
        TermRange { start: vec![tag::NULL], end: vec![tag::END], is_point: false }
    }

    /// From the first of several ranges to the end of the last.
    pub(crate) fn around(ranges: &[TermRange]) -> TermRange {
        let start = ranges.iter().map(|range| &range.start).min().cloned().unwrap_or_default();
        let end = ranges.iter().map(|range| &range.end).max().cloned().unwrap_or_default();
        TermRange { start, end, is_point: false }
    }
}

/// A family whose entries are in a wanted order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// The family.
    pub family: Family,
    /// Whether the wanted order is backwards.
    pub backward: bool,
    /// The terms to walk: documents with others do not meet the conditions.
    pub within: TermRange,
    /// Whether every document that meets the conditions has an entry there; otherwise those where the path is undefined
    /// have none.
    pub complete: bool,
    /// Whether values of all types have entries; otherwise arrays and objects have none.
    pub all_types: bool,
    /// Terms that all entries begin with which are walked: the order is that of the terms after them.
    pub fixed: Vec<u8>,
    /// For each term of an entry after those, whether its bits are inverted.
    pub inverted: Vec<bool>,
    /// The index for people.
    pub shown: String,
}

impl Ordered {
    /// The terms of an entry with these values.
    pub fn terms(&self, values: &[Value]) -> Vec<u8> {
        let mut terms = self.fixed.clone();
        for (value, inverted) in values.iter().zip(&self.inverted) {
            push_directed_term(&mut terms, value, *inverted);
        }
        terms
    }

    /// How far the terms of an entry go until one stands for several values, that one included; none if all are whole.
    /// Entries that agree so far are in the order of later terms, which is not yet the order of values.
    pub fn shortened_length(&self, terms: &[u8]) -> Option<usize> {
        let mut at = self.fixed.len();
        for inverted in &self.inverted {
            let rest = terms.get(at..).unwrap_or_default();
            let Some(length) = term_length(rest, *inverted) else { return Some(terms.len()) };
            let own = &rest[..length];
            at += length;
            let shortened = if *inverted {
                is_shortened_term(&own.iter().map(|byte| !byte).collect::<Vec<_>>())
            } else {
                is_shortened_term(own)
            };
            if shortened {
                return Some(at);
            }
        }
        None
    }
}

/// The indexes that a container's policies ask for.
pub(crate) fn all(generation: u8, definition: &ContainerDefinition) -> Vec<Box<dyn IndexKind>> {
    let mut kinds: Vec<Box<dyn IndexKind>> = Vec::new();
    kinds.push(Box::new(range::RangeKind::new(generation, Policy::new(definition))));
    for index in &definition.indexing.composite {
        kinds.push(Box::new(composite::CompositeKind::new(generation, index, &|path| {
            policy::is_stored(definition, path)
        })));
    }
    kinds
}

/// The family of the entries of a property at the top of documents.
pub(crate) fn path_family(generation: u8, path: &Path) -> Family {
    range::path_family(generation, path)
}

/// A path as policies write it.
pub(crate) fn shown_path(path: &Path) -> String {
    range::shown(path)
}

/// The family of the entries of a property at the top of documents.
pub(crate) fn property_family(generation: u8, name: &str) -> Family {
    range::property_family(generation, name)
}

/// Appends the term of a value, its bits inverted where greater comes first.
fn push_directed_term(out: &mut Vec<u8>, value: &Value, inverted: bool) {
    let start = out.len();
    push_term(out, value);
    if inverted {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The condition on a path that leaves the fewest documents, as far as its form tells.
fn strictest<'c>(conditions: &[&'c Condition], path: &Path) -> Option<(usize, &'c Condition)> {
    let rank = |condition: &Condition| match &condition.predicate {
        Predicate::OneOf(_) => 0,
        Predicate::Between(..) | Predicate::Prefix(_) => 1,
        Predicate::Types(_) => 2,
        Predicate::Not(_) => 3,
    };
    let own = conditions.iter().copied().enumerate().filter(|(_, condition)| condition.path == *path);
    own.min_by_key(|(_, condition)| rank(condition))
}

/// The first bytes after everything that begins with these.
pub(crate) fn after(bytes: &[u8]) -> Vec<u8> {
    let mut next = bytes.to_vec();
    while next.last() == Some(&0xFF) {
        next.pop();
    }
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    next
}
