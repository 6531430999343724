//! A need while it is put together: what is known about the parts of a filter, and what was left out.
//!
//! A [`Leaf`] still knows which value of the row it speaks about and through which elements, so that two conditions on
//! one element become one, and so that a condition on some element is called exact only where one element is enough.
//! Invariants
//! - `Part::all` and `Part::any` give a normal form: no nesting of the same kind, no `Always` or `Never` inside, and
//!   `Unknown` only as a member of `All`, where it says that a conjunct was left out.
//! - Whatever a client sends, a part has at most [`CONJUNCTS_MAX`] members of `All` and [`BRANCHES_MAX`] of `Any`.

use super::place::{ValueIdentity, ValuePlace};
use super::predicate::{Meet, defined, intersect};
use crate::expression::Slot;
use astrarium_index::{Condition, Need, Path, Predicate, Type};
use std::collections::HashMap;

/// More conjuncts than these are left out: no index gains from them.
const CONJUNCTS_MAX: usize = 64;
/// More alternatives than these are as good as anything.
const BRANCHES_MAX: usize = 256;

/// What is known about a part of a filter.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// It is met by every row.
    Always,
    /// It is met by no row.
    Never,
    /// Nothing an index could use is known.
    Unknown,
    Leaf(Leaf),
    All(Vec<Part>),
    Any(Vec<Part>),
}

/// A condition on a value of the row.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    path: Path,
    identity: Option<ValueIdentity>,
    via: Vec<Slot>,
    predicate: Predicate,
    /// Whether the row passes when the value meets the predicate.
    exact: bool,
}

impl Part {
    /// A predicate on what is at a place.
    pub(super) fn condition(place: ValuePlace, predicate: Predicate, exact: bool) -> Part {
        if place.is_hidden() {
            return Part::Unknown;
        }
        if place.path.0.is_empty() {
            return on_document(&predicate, exact);
        }
        let ValuePlace { path, identity, via, positioned } = place;
        Part::Leaf(Leaf { path, identity, via, predicate, exact: exact && !positioned })
    }

    /// What is at a place is defined.
    pub(super) fn defined(place: ValuePlace) -> Part {
        Part::condition(place, defined(), true)
    }

    /// All of these.
    pub(super) fn all(parts: impl IntoIterator<Item = Part>) -> Part {
        let mut parts = parts.into_iter().filter(|part| !matches!(part, Part::Always));
        let (first, second) = (parts.next(), parts.next());
        let first = match (first, &second) {
            (None, _) => return Part::Always,
            // Most filters are one condition, and one alone stays as it is.
            (Some(only @ (Part::Leaf(_) | Part::Any(_))), None) => return only,
            (first, _) => first,
        };
        let mut conjunction = Conjunction::default();
        for part in first.into_iter().chain(second).chain(parts) {
            let met = match part {
                Part::All(inner) => inner.into_iter().try_for_each(|part| conjunction.add(part)),
                part => conjunction.add(part),
            };
            if met.is_err() {
                return Part::Never;
            }
        }
        conjunction.finish()
    }

    /// At least one of these.
    pub(super) fn any(parts: impl IntoIterator<Item = Part>) -> Part {
        let mut branches: Vec<Part> = Vec::new();
        let mut lists: HashMap<(Path, Option<ValueIdentity>, Vec<Slot>), usize> = HashMap::new();
        let flat = parts.into_iter().flat_map(|part| match part {
            Part::Any(inner) => inner,
            part => vec![part],
        });
        for part in flat {
            match part {
                Part::Never => {}
                Part::Always => return Part::Always,
                Part::Unknown => return Part::Unknown,
                // Lists of one place become one list.
                Part::Leaf(Leaf { path, identity, via, predicate: Predicate::OneOf(values), exact }) => {
                    let key = (path.clone(), identity.clone(), via.clone());
                    let known = lists.get(&key).and_then(|index| branches.get_mut(*index));
                    if let Some(Part::Leaf(Leaf {
                        predicate: Predicate::OneOf(own), exact: own_exact, ..
                    })) = known
                    {
                        own.extend(values);
                        *own_exact &= exact;
                        continue;
                    }
                    lists.insert(key, branches.len());
                    let predicate = Predicate::OneOf(values);
                    branches.push(Part::Leaf(Leaf { path, identity, via, predicate, exact }));
                }
                part => branches.push(part),
            }
        }
        if branches.len() > BRANCHES_MAX {
            return Part::Unknown;
        }
        for branch in &mut branches {
            if let Part::Leaf(Leaf { predicate: Predicate::OneOf(values), .. }) = branch {
                values.sort();
                values.dedup();
            }
        }
        match branches.len() {
            0 => Part::Never,
            1 => branches.remove(0),
            _ => Part::Any(branches),
        }
    }

    /// Whether rows that meet it have an element in that slot: no other condition has to say so.
    pub(super) fn implies_element(&self, slot: Slot) -> bool {
        match self {
            Part::Never => true,
            Part::Always | Part::Unknown => false,
            Part::Leaf(leaf) => leaf.via.contains(&slot),
            Part::All(parts) => parts.iter().any(|part| part.implies_element(slot)),
            Part::Any(parts) => parts.iter().all(|part| part.implies_element(slot)),
        }
    }

    /// The part for "there are elements in these slots that meet it". Conditions stay exact where no two of them have
    /// to be met by the same elements.
    pub(super) fn for_some(mut self, slots: &[Slot]) -> Part {
        let separate = self.is_separate(slots);
        self.for_each_leaf(&mut |leaf| {
            if leaf.is_via(slots) {
                leaf.via.retain(|slot| !slots.contains(slot));
                leaf.identity = None;
                leaf.exact &= separate;
            }
        });
        self
    }

    fn is_separate(&self, slots: &[Slot]) -> bool {
        match self {
            Part::Always | Part::Never | Part::Unknown | Part::Leaf(_) => true,
            Part::All(parts) => {
                parts.iter().filter(|part| part.is_via(slots)).count() <= 1
                    && parts.iter().all(|part| part.is_separate(slots))
            }
            Part::Any(parts) => parts.iter().all(|part| part.is_separate(slots)),
        }
    }

    fn is_via(&self, slots: &[Slot]) -> bool {
        match self {
            Part::Always | Part::Never | Part::Unknown => false,
            Part::Leaf(leaf) => leaf.is_via(slots),
            Part::All(parts) | Part::Any(parts) => parts.iter().any(|part| part.is_via(slots)),
        }
    }

    fn for_each_leaf(&mut self, change: &mut dyn FnMut(&mut Leaf)) {
        match self {
            Part::Always | Part::Never | Part::Unknown => {}
            Part::Leaf(leaf) => change(leaf),
            Part::All(parts) | Part::Any(parts) => {
                for part in parts {
                    part.for_each_leaf(change);
                }
            }
        }
    }

    fn as_leaf(&self) -> Option<&Leaf> {
        if let Part::Leaf(leaf) = self { Some(leaf) } else { None }
    }

    /// The need, and whether nothing was left out of it.
    pub(super) fn finish(self) -> (Need, bool) {
        let several = |parts: Vec<Part>| {
            let (needs, complete): (Vec<Need>, Vec<bool>) = parts.into_iter().map(Part::finish).unzip();
            (needs, complete.into_iter().all(|complete| complete))
        };
        match self {
            Part::Always => (Need::Anything, true),
            Part::Never => (Need::Nothing, true),
            Part::Unknown => (Need::Anything, false),
            Part::Leaf(leaf) => {
                let exact = leaf.exact && leaf.via.is_empty();
                let condition = Condition { path: leaf.path, predicate: leaf.predicate };
                (Need::One { condition, exact }, true)
            }
            Part::All(parts) => {
                let (needs, complete) = several(parts);
                (Need::all(needs), complete)
            }
            Part::Any(parts) => {
                let (needs, complete) = several(parts);
                (Need::any(needs), complete)
            }
        }
    }
}

impl Leaf {
    /// Whether it says only that something is there, below which a condition on one of the paths finds something.
    fn follows_from(&self, paths: &[Path]) -> bool {
        let own = &self.path.0;
        self.exact
            && !self.path.is_repeated()
            && self.predicate == defined()
            && paths.iter().any(|path| path.0.len() > own.len() && path.0.starts_with(own))
    }

    fn is_via(&self, slots: &[Slot]) -> bool {
        self.via.iter().any(|slot| slots.contains(slot))
    }
}

/// A document as a whole is an object, and no index says more about it.
fn on_document(predicate: &Predicate, exact: bool) -> Part {
    match predicate {
        Predicate::Types(types) if !types.contains(&Type::Object) => Part::Never,
        Predicate::Types(_) | Predicate::Not(_) if exact => Part::Always,
        Predicate::Types(_) | Predicate::Not(_) => Part::Unknown,
        Predicate::OneOf(_) | Predicate::Between(..) | Predicate::Prefix(_) => Part::Never,
    }
}

/// Parts that have to be met together; conditions on one value are made one where that can be said.
#[derive(Default)]
struct Conjunction {
    parts: Vec<Entry>,
    groups: HashMap<ValueIdentity, usize>,
    incomplete: bool,
}

enum Entry {
    Part(Part),
    /// Conditions on one value that cannot be made one.
    Value(Vec<Leaf>),
}

/// Nothing meets all parts.
struct Contradiction;

impl Conjunction {
    fn add(&mut self, part: Part) -> Result<(), Contradiction> {
        match part {
            Part::Never => return Err(Contradiction),
            Part::Always => {}
            Part::Unknown => self.incomplete = true,
            Part::Leaf(leaf) => {
                let known = leaf.identity.as_ref().and_then(|identity| self.groups.get(identity)).copied();
                if let Some(Entry::Value(group)) = known.and_then(|index| self.parts.get_mut(index)) {
                    self.incomplete |= !join(group, leaf)?;
                } else if self.is_full() {
                    self.incomplete = true;
                } else {
                    if let Some(identity) = leaf.identity.clone() {
                        self.groups.insert(identity, self.parts.len());
                    }
                    self.parts.push(Entry::Value(vec![leaf]));
                }
            }
            _ if self.is_full() => self.incomplete = true,
            part => self.parts.push(Entry::Part(part)),
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.parts.len() >= CONJUNCTS_MAX
    }

    fn finish(self) -> Part {
        let mut parts: Vec<Part> = Vec::new();
        for entry in self.parts {
            match entry {
                Entry::Part(part) => parts.push(part),
                Entry::Value(leaves) => parts.extend(leaves.into_iter().map(Part::Leaf)),
            }
        }
        let incomplete = self.incomplete || parts.len() > CONJUNCTS_MAX;
        parts.truncate(CONJUNCTS_MAX);
        let paths: Vec<Path> = parts.iter().filter_map(Part::as_leaf).map(|leaf| leaf.path.clone()).collect();
        parts.retain(|part| !part.as_leaf().is_some_and(|leaf| leaf.follows_from(&paths)));
        if incomplete {
            parts.push(Part::Unknown);
        }
        match parts.len() {
            0 => Part::Always,
            1 => parts.remove(0),
            _ => Part::All(parts),
        }
    }
}

/// Adds a condition to those on the same value; false if there are too many.
fn join(group: &mut Vec<Leaf>, mut leaf: Leaf) -> Result<bool, Contradiction> {
    let mut index = 0;
    while let Some(own) = group.get(index) {
        match intersect(&own.predicate, &leaf.predicate) {
            Meet::Nothing => return Err(Contradiction),
            Meet::Both(predicate) => {
                // What is stricter now may say what others of the group said.
                leaf = Leaf { predicate, exact: own.exact && leaf.exact, ..leaf };
                group.remove(index);
                index = 0;
            }
            Meet::Apart => index += 1,
        }
    }
    if group.len() >= CONJUNCTS_MAX {
        return Ok(false);
    }
    group.push(leaf);
    Ok(true)
}
