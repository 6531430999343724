//! The range index: every value at every place that the policy includes, in the order of values.
//!
//! A scalar is its term; an array or object is its type alone, and its elements and members are places of their own.
//! One structure serves equality, ranges, prefixes, types, existence and order.

use super::{IndexKind, Ordered, Served, TermRange, after, strictest};
use crate::condition::{Condition, OrderPath, Path, PathStep, Predicate, Type};
use crate::document::Document;
use crate::entries::Entries;
use crate::policy::{Coverage, Policy, PolicyDescent};
use astrarium_keys::index_entry::{Family, is_shortened, push_term, push_text_start, push_text_term, tag};
use astrarium_value::Value;
use astrarium_value::json::{Kind, Node};
use std::ops::Bound;

/// Begins the description of a family of this kind.
const KIND: u8 = 1;
const NAME: u8 = 1;
const ELEMENTS: u8 = 2;

#[derive(Debug)]
pub(super) struct RangeKind {
    generation: u8,
    policy: Policy,
}

impl RangeKind {
    pub(super) fn new(generation: u8, policy: Policy) -> RangeKind {
        RangeKind { generation, policy }
    }

    fn family(&self, path: &Path) -> Family {
        path_family(self.generation, path)
    }
}

/// The family of the entries of a path.
pub(crate) fn path_family(generation: u8, path: &Path) -> Family {
    let mut description = vec![KIND];
    for step in &path.0 {
        match step {
            PathStep::Name(name) => push_name(&mut description, name),
            PathStep::Elements => description.push(ELEMENTS),
        }
    }
    Family::of(generation, &description)
}

/// The family of the entries of a property at the top of documents.
pub(super) fn property_family(generation: u8, name: &str) -> Family {
    let mut description = vec![KIND];
    push_name(&mut description, name);
    Family::of(generation, &description)
}

/// A step of a description: names are told apart from each other by their length.
fn push_name(description: &mut Vec<u8>, name: &str) {
    description.push(NAME);
    description.extend_from_slice(&(name.len() as u32).to_be_bytes());
    description.extend_from_slice(name.as_bytes());
}

impl IndexKind for RangeKind {
    fn entries(&self, document: &Document<'_>, out: &mut Entries<'_>) {
        let mut walker = Walker { index: self, out, description: vec![KIND] };
        let start = self.policy.start();
        // A computed property hides what a document has under its name.
        for (name, member) in document.root.members().filter(|(name, _)| !self.policy.is_computed(name)) {
            walker.member(&name, member, start);
        }
        for (name, value) in document.added {
            let length = walker.description.len();
            push_name(&mut walker.description, name);
            walker.value(value, self.policy.property(start, name));
            walker.description.truncate(length);
        }
    }

    fn serve(&self, condition: &Condition) -> Option<Served> {
        let coverage = self.policy.covers(&condition.path);
        let (mut ranges, exact, of_scalars) = ranges(&condition.predicate);
        if matches!(&ranges[..], [only] if only.start == [tag::NULL] && only.end == [tag::END]) {
            // Undefined has no entry here.
            ranges = vec![TermRange::everything()];
        }
        let covered = coverage == Coverage::Everything || (coverage == Coverage::Scalars && of_scalars);
        covered.then(|| Served {
            family: self.family(&condition.path),
            ranges,
            exact,
            repeated: condition.path.is_repeated(),
            shown: shown(&condition.path),
        })
    }

    fn order(&self, order: &[OrderPath], conditions: &[&Condition]) -> Option<Ordered> {
        let [only] = order else { return None };
        let coverage = self.policy.covers(&only.path);
        if coverage == Coverage::Nothing || only.path.is_repeated() {
            return None;
        }
        // Whatever meets a condition on the path has a value there, and so an entry.
        let served = strictest(conditions, &only.path).and_then(|(_, condition)| self.serve(condition));
        Some(Ordered {
            all_types: coverage == Coverage::Everything,
            family: self.family(&only.path),
            backward: only.descending,
            complete: served.is_some(),
            within: served.map_or_else(TermRange::everything, |served| TermRange::around(&served.ranges)),
            fixed: Vec::new(),
            inverted: vec![false],
            shown: shown(&only.path),
        })
    }
}

/// A path as policies write it.
pub(crate) fn shown(path: &Path) -> String {
    let mut text = String::new();
    for step in &path.0 {
        text.push('/');
        match step {
            PathStep::Elements => text.push_str("[]"),
            PathStep::Name(name) => {
                let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if plain {
                    text.push_str(name);
                } else {
                    text.push('"');
                    text.push_str(&name.replace('"', "\\\""));
                    text.push('"');
                }
            }
        }
    }
    text.push_str("/?");
    text
}

/// Walks a document and its policy together.
struct Walker<'w, 'o> {
    index: &'w RangeKind,
    out: &'w mut Entries<'o>,
    /// The family of the place where the walk stands, spelt out.
    description: Vec<u8>,
}

impl Walker<'_, '_> {
    fn node(&mut self, node: Node<'_>, walk: PolicyDescent) {
        match node.kind() {
            Kind::Array => {
                self.container(tag::ARRAY, walk);
                let inner = self.index.policy.elements(walk);
                if !Policy::is_over(inner) {
                    self.description.push(ELEMENTS);
                    for element in node.elements() {
                        self.node(element, inner);
                    }
                    self.description.pop();
                }
            }
            Kind::Object => {
                self.container(tag::OBJECT, walk);
                self.members(node, walk);
            }
            _ if self.index.policy.at(walk) == Coverage::Nothing => {}
            Kind::Null => self.entry(|key| key.push(tag::NULL)),
            Kind::Bool => {
                let tag = if node.as_bool() == Some(true) { tag::TRUE } else { tag::FALSE };
                self.entry(|key| key.push(tag));
            }
            Kind::Number => {
                if let Some(number) = node.as_f64() {
                    self.entry(|key| push_term(key, &Value::Number(number)));
                }
            }
            Kind::String => {
                if let Some(text) = node.as_str() {
                    self.entry(|key| push_text_term(key, &text));
                }
            }
        }
    }

    fn members(&mut self, object: Node<'_>, walk: PolicyDescent) {
        for (name, member) in object.members() {
            self.member(&name, member, walk);
        }
    }

    fn member(&mut self, name: &str, member: Node<'_>, walk: PolicyDescent) {
        let inner = self.index.policy.property(walk, name);
        if Policy::is_over(inner) {
            return;
        }
        let length = self.description.len();
        push_name(&mut self.description, name);
        self.node(member, inner);
        self.description.truncate(length);
    }

    /// The same for a value that is not part of the text.
    fn value(&mut self, value: &Value, walk: PolicyDescent) {
        match value {
            Value::Undefined => {}
            Value::Array(items) => {
                self.container(tag::ARRAY, walk);
                self.description.push(ELEMENTS);
                let inner = self.index.policy.elements(walk);
                for item in items {
                    self.value(item, inner);
                }
                self.description.pop();
            }
            Value::Object(object) => {
                self.container(tag::OBJECT, walk);
                let length = self.description.len();
                for (name, member) in object.iter() {
                    push_name(&mut self.description, name);
                    self.value(member, self.index.policy.property(walk, name));
                    self.description.truncate(length);
                }
            }
            scalar if self.index.policy.at(walk) != Coverage::Nothing => {
                self.entry(|key| push_term(key, scalar));
            }
            _ => {}
        }
    }

    fn container(&mut self, tag: u8, walk: PolicyDescent) {
        if self.index.policy.at(walk) == Coverage::Everything {
            self.entry(|key| key.push(tag));
        }
    }

    fn entry(&mut self, terms: impl FnOnce(&mut Vec<u8>)) {
        let family = Family::of(self.index.generation, &self.description);
        self.out.push(family, terms);
    }
}

fn term(value: &Value) -> Vec<u8> {
    let mut term = Vec::new();
    push_term(&mut term, value);
    term
}

fn point(value: &Value) -> TermRange {
    let start = term(value);
    TermRange { end: after(&start), start, is_point: true }
}

fn stretch(start: Vec<u8>, end: Vec<u8>) -> Option<TermRange> {
    (start < end).then_some(TermRange { start, end, is_point: false })
}

/// The terms of a type.
fn terms_of(kind: Type) -> TermRange {
    let (first, beyond) = match kind {
        Type::Null => (tag::NULL, tag::NULL + 1),
        Type::Bool => (tag::FALSE, tag::TRUE + 1),
        Type::Number => (tag::NUMBER, tag::NUMBER + 1),
        Type::String => (tag::STRING, tag::STRING + 1),
        Type::Array => (tag::ARRAY, tag::ARRAY + 1),
        Type::Object => (tag::OBJECT, tag::OBJECT + 1),
    };
    TermRange { start: vec![first], end: vec![beyond], is_point: false }
}

fn is_scalar(kind: Type) -> bool {
    !matches!(kind, Type::Array | Type::Object)
}

/// The terms that meet a predicate; whether all of them do; whether they are all of scalars.
pub(super) fn ranges(predicate: &Predicate) -> (Vec<TermRange>, bool, bool) {
    match predicate {
        Predicate::OneOf(values) => {
            let mut points: Vec<TermRange> = values.iter().map(point).collect();
            points.sort_by(|left, right| left.start.cmp(&right.start));
            points.dedup();
            let scalars = values.iter().filter_map(Type::of).all(is_scalar);
            (points, !values.iter().any(is_shortened), scalars)
        }
        Predicate::Not(value) if is_shortened(value) => {
            (stretch(vec![tag::NULL], vec![tag::END]).into_iter().collect(), false, false)
        }
        Predicate::Not(value) => {
            let own = point(value);
            let around =
                [stretch(vec![tag::NULL], own.start), stretch(own.end, vec![tag::END])].into_iter().flatten();
            (around.collect(), true, false)
        }
        Predicate::Between(low, high) => between(low, high),
        Predicate::Prefix(text) => {
            let mut start = vec![tag::STRING];
            let cut = push_text_start(&mut start, text);
            (vec![TermRange { end: after(&start), start, is_point: false }], !cut, true)
        }
        Predicate::Types(types) => {
            let mut types = types.clone();
            types.sort_unstable();
            types.dedup();
            let mut ranges: Vec<TermRange> = Vec::new();
            for range in types.iter().copied().map(terms_of) {
                ranges.push(range);
            }
            if types.len() == Type::ALL.len() {
                ranges = stretch(vec![tag::NULL], vec![tag::END]).into_iter().collect();
            }
            (ranges, true, types.into_iter().all(is_scalar))
        }
    }
}

fn between(low: &Bound<Value>, high: &Bound<Value>) -> (Vec<TermRange>, bool, bool) {
    let value = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
        Bound::Unbounded => None,
    };
    let Some(kind) = value(low).or_else(|| value(high)).as_ref().and_then(Type::of) else {
        return (Vec::new(), true, true);
    };
    let of_type = terms_of(kind);
    let shortened = |bound: &Bound<Value>| value(bound).is_some_and(|value| is_shortened(&value));
    // Where a bound is shortened, its term stands for values on both sides of it.
    let start = match low {
        Bound::Unbounded => of_type.start,
        Bound::Excluded(value) if !is_shortened(value) => after(&term(value)),
        Bound::Included(value) | Bound::Excluded(value) => term(value),
    };
    let end = match high {
        Bound::Unbounded => of_type.end,
        Bound::Excluded(value) if !is_shortened(value) => term(value),
        Bound::Included(value) | Bound::Excluded(value) => after(&term(value)),
    };
    (stretch(start, end).into_iter().collect(), !shortened(low) && !shortened(high), is_scalar(kind))
}
