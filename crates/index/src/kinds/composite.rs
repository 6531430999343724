//! The composite index: several properties of a document in one entry, each in its own direction.
//!
//! Every document has one entry; what a document does not have is `undefined` in it. So it serves an order of all its
//! paths; equalities on the first paths, with a range on the next one; and an order of the last paths among documents
//! that are equal in the first.
//! Invariants
//! - Entries with equal terms are in the order of document numbers, whatever the directions are.
//! - A bound on a term holds for the bytes of the entry, whatever terms come after: no term begins another one.

use super::range::ranges;
use super::{IndexKind, Ordered, Served, TermRange, Together, after, push_directed_term, strictest};
use crate::condition::{Condition, OrderPath, Path, PathStep, Predicate};
use crate::document::Document;
use crate::entries::Entries;
use astrarium_catalog::definition::container::{self, SortOrder};
use astrarium_keys::index_entry::{Family, is_shortened};
use astrarium_value::json::Node;
use astrarium_value::{PropertyPath, Value};

/// Begins the description of a family of this kind.
const KIND: u8 = 2;
/// Combinations of values that are looked for at most, one range of entries each.
const COMBINATIONS_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct CompositeKind {
    family: Family,
    parts: Vec<CompositeComponent>,
    shown: String,
}

#[derive(Debug)]
struct CompositeComponent {
    property: PropertyPath,
    path: Path,
    descending: bool,
    /// Whether entries have what queries read at the path.
    is_stored: bool,
}

/// The entries of documents that meet conditions on the first paths.
struct Bounds {
    ranges: Vec<TermRange>,
    exact: bool,
    /// The places of the conditions, one for each path.
    conditions: Vec<usize>,
}

impl CompositeKind {
    pub(super) fn new(
        generation: u8,
        index: &container::CompositeIndex,
        is_stored: &dyn Fn(&Path) -> bool,
    ) -> CompositeKind {
        let mut description = vec![KIND];
        let mut parts = Vec::new();
        let mut shown = Vec::new();
        for path in &index.paths {
            let descending = path.order == SortOrder::Descending;
            description.push(u8::from(descending));
            description.extend((path.path.segments().len() as u32).to_be_bytes());
            for name in path.path.segments() {
                description.extend((name.len() as u32).to_be_bytes());
                description.extend(name.as_bytes());
            }
            let steps = path.path.segments().iter().map(|name| PathStep::Name((&**name).into()));
            let own = Path(steps.collect());
            let is_stored = is_stored(&own);
            parts.push(CompositeComponent { property: path.path.clone(), path: own, descending, is_stored });
            shown.push(format!("{} {}", path.path.as_str(), if descending { "DESC" } else { "ASC" }));
        }
        CompositeKind { family: Family::of(generation, &description), parts, shown: shown.join(", ") }
    }

    /// What conditions say about the first paths: equalities, then anything on one more path.
    fn bounds(&self, conditions: &[&Condition]) -> Option<Bounds> {
        let mut starts: Vec<Vec<u8>> = vec![Vec::new()];
        let mut found = Bounds { ranges: Vec::new(), exact: true, conditions: Vec::new() };
        for part in self.parts.iter().take_while(|part| part.is_stored) {
            let Some((place, condition)) = strictest(conditions, &part.path) else { break };
            found.conditions.push(place);
            match &condition.predicate {
                Predicate::OneOf(values) if values.len() * starts.len() <= COMBINATIONS_MAX => {
                    found.exact &= !values.iter().any(is_shortened);
                    starts = part.after_each(&starts, values);
                }
                predicate => {
                    let (terms, exact, _) = ranges(predicate);
                    found.exact &= exact;
                    found.ranges = part.within_each(&starts, &terms);
                    return Some(found);
                }
            }
        }
        if found.conditions.is_empty() {
            return None;
        }
        let is_point = found.conditions.len() == self.parts.len();
        let range = |start: Vec<u8>| TermRange { end: after(&start), start, is_point };
        found.ranges = starts.into_iter().map(range).collect();
        Some(found)
    }

    /// The entries that begin with `fixed`, in the order of their last terms.
    fn ordered(
        &self,
        backward: bool,
        fixed: Vec<u8>,
        order_length: usize,
        conditions: &[&Condition],
    ) -> Ordered {
        let bounds = self.bounds(conditions);
        let first = self.parts.len() - order_length;
        Ordered {
            family: self.family,
            backward,
            within: bounds.map_or_else(TermRange::everything, |bounds| TermRange::around(&bounds.ranges)),
            complete: true,
            all_types: true,
            fixed,
            inverted: self.parts[first..].iter().map(|part| part.descending).collect(),
            shown: self.shown.clone(),
        }
    }
}

impl CompositeComponent {
    /// Beginnings of entries, each followed by each of the values; sorted, each once.
    fn after_each(&self, starts: &[Vec<u8>], values: &[Value]) -> Vec<Vec<u8>> {
        let mut longer = Vec::with_capacity(starts.len() * values.len());
        for start in starts {
            for value in values {
                let mut own = start.clone();
                push_directed_term(&mut own, value, self.descending);
                longer.push(own);
            }
        }
        longer.sort_unstable();
        // Values that are shortened have one term.
        longer.dedup();
        longer
    }

    /// Ranges of terms behind each of the beginnings, sorted.
    fn within_each(&self, starts: &[Vec<u8>], terms: &[TermRange]) -> Vec<TermRange> {
        let mut longer = Vec::with_capacity(starts.len() * terms.len());
        for start in starts {
            for range in terms {
                let (low, high) = self.directed(range);
                let behind = |bytes: &[u8]| [&start[..], bytes].concat();
                longer.push(TermRange { start: behind(&low), end: behind(&high), is_point: false });
            }
        }
        longer.sort_unstable_by(|left, right| left.start.cmp(&right.start));
        longer
    }

    /// The bounds of a range of terms where their bits may be inverted. Inverted, what began with the lower bound is the
    /// greatest, and the upper bound and all that begins with it lie below the least.
    fn directed(&self, range: &TermRange) -> (Vec<u8>, Vec<u8>) {
        if !self.descending {
            return (range.start.clone(), range.end.clone());
        }
        let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
        (after(&inverted(&range.end)), after(&inverted(&range.start)))
    }
}

impl IndexKind for CompositeKind {
    fn families(&self) -> Vec<(Family, String)> {
        vec![(self.family, self.shown.clone())]
    }

    fn entries(&self, document: &Document<'_>, out: &mut Entries<'_>) {
        out.push(self.family, |key| {
            for part in &self.parts {
                push_directed_term(key, &value_at(document, &part.property), part.descending);
            }
        });
    }

    fn serve(&self, _: &Condition) -> Option<Served> {
        None
    }

    fn serve_together(&self, conditions: &[&Condition]) -> Option<Together> {
        let bounds = self.bounds(conditions)?;
        let served = Served {
            family: self.family,
            ranges: bounds.ranges,
            exact: bounds.exact,
            repeated: false,
            shown: self.shown.clone(),
        };
        let path =
            |part: &CompositeComponent| OrderPath { path: part.path.clone(), descending: part.descending };
        Some(Together { served, conditions: bounds.conditions, paths: self.parts.iter().map(path).collect() })
    }

    fn order(&self, order: &[OrderPath], conditions: &[&Condition]) -> Option<Ordered> {
        let backward = direction(&self.parts, order)?;
        Some(self.ordered(backward, Vec::new(), self.parts.len(), conditions))
    }

    fn order_within(&self, order: &[OrderPath], conditions: &[&Condition]) -> Option<Ordered> {
        let fixed_count = self.parts.len().checked_sub(order.len()).filter(|count| *count > 0)?;
        let (first, last) = self.parts.split_at(fixed_count);
        let backward = direction(last, order)?;
        let mut fixed = Vec::new();
        for part in first {
            let (_, condition) = strictest(conditions, &part.path).filter(|_| part.is_stored)?;
            match &condition.predicate {
                Predicate::OneOf(values) if values.len() == 1 && !is_shortened(&values[0]) => {
                    push_directed_term(&mut fixed, &values[0], part.descending);
                }
                _ => return None,
            }
        }
        Some(self.ordered(backward, fixed, order.len(), conditions))
    }
}

/// Whether parts have an order forwards or backwards; none if they do not have it.
fn direction(parts: &[CompositeComponent], order: &[OrderPath]) -> Option<bool> {
    let serves = |reversed: bool| {
        order.len() == parts.len()
            && parts.iter().zip(order).all(|(part, wanted)| {
                part.path == wanted.path && part.descending == (wanted.descending != reversed)
            })
    };
    [false, true].into_iter().find(|reversed| serves(*reversed))
}

/// The value of a property; one that the database adds stands before one of the same name in the text.
fn value_at(document: &Document<'_>, path: &PropertyPath) -> Value {
    let Some((first, rest)) = path.segments().split_first() else { return Value::Undefined };
    let Some((_, added)) = document.added.iter().find(|(name, _)| **name == **first) else {
        return document.root.at(path).map(Node::to_value).unwrap_or_default();
    };
    rest.iter().fold(added.clone(), |value, name| match value {
        Value::Object(object) => object.get(name).cloned().unwrap_or_default(),
        _ => Value::Undefined,
    })
}
