//! The kinds of index. Each has a file; a new one is a new file and a line in [`all`].

mod composite;
mod range;

use crate::condition::{Condition, OrderPath};
use crate::document::Document;
use crate::entries::Entries;
use crate::policy::Policy;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_keys::index_entry::{Family, is_shortened_term, push_term, term_length};
use astrarium_value::Value;
use std::fmt;

/// One kind of index of a container.
pub trait IndexKind: fmt::Debug + Send + Sync {
    /// Appends the entries of a document. Pure: the same document gives the same entries.
    fn entries(&self, document: &Document<'_>, out: &mut Entries<'_>);

    /// The entries that serve a condition; none if it cannot.
    fn serve(&self, condition: &Condition) -> Option<Served>;

    /// The entries that have documents in an order; none if it cannot.
    fn order(&self, order: &[OrderPath]) -> Option<Ordered>;
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

/// A family whose entries are in a wanted order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// The family.
    pub family: Family,
    /// Whether the wanted order is backwards.
    pub backward: bool,
    /// Whether every document has an entry; otherwise those where the path is undefined have none.
    pub complete: bool,
    /// Whether values of all types have entries; otherwise arrays and objects have none.
    pub all_types: bool,
    /// For each term of an entry, whether its bits are inverted.
    pub inverted: Vec<bool>,
    /// The index for people.
    pub shown: String,
}

impl Ordered {
    /// The terms of an entry with these values.
    pub fn terms(&self, values: &[Value]) -> Vec<u8> {
        let mut terms = Vec::new();
        for (value, inverted) in values.iter().zip(&self.inverted) {
            let start = terms.len();
            push_term(&mut terms, value);
            if *inverted {
                terms[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        terms
    }

    /// How far the terms of an entry go until one stands for several values, that one included; none if all are whole.
    /// Entries that agree so far are in the order of later terms, which is not yet the order of values.
    pub fn shortened_length(&self, terms: &[u8]) -> Option<usize> {
        let mut at = 0;
        for inverted in &self.inverted {
            let rest = &terms[at..];
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
    kinds.push(Box::new(range::RangeIndex::new(generation, Policy::new(definition))));
    for index in &definition.indexing.composite {
        kinds.push(Box::new(composite::CompositeIndex::new(generation, index)));
    }
    kinds
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
