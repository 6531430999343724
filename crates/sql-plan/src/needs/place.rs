//! Which place of a document an expression speaks about, through aliases, joins and subqueries.
//!
//! In: slots as sources bind them. Out: a [`ValuePlace`], or nothing where a value is no part of the document.
//! Invariants
//! - A slot is bound before anything that reads it is looked at, so that resolving ends.
//! - Two expressions with the same identity have the same value in a row.

use super::computed::Computed;
use crate::expression::{Expr, Slot, Step};
use astrarium_index::{Path, PathStep};
use astrarium_value::system_properties;
use std::collections::HashMap;
use std::sync::Arc;

/// One value of a row: a slot, and the steps into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ValueIdentity(Slot, Vec<Key>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Name(Arc<str>),
    Position(usize),
}

/// A value of the document, where it is, and how a row came to it.
#[derive(Debug, Clone)]
pub(super) struct ValuePlace {
    pub(super) path: Path,
    /// Which value of the row it is; none for whichever element of an array.
    pub(super) identity: Option<ValueIdentity>,
    /// The slots of the elements that lead to it, the outermost first.
    pub(super) via: Vec<Slot>,
    /// Whether the path says less than the expression: it has lost a position in an array.
    pub(super) positioned: bool,
}

impl ValuePlace {
    /// The whole of what a slot holds.
    fn of_slot(slot: Slot) -> ValuePlace {
        ValuePlace {
            path: Path::default(),
            identity: Some(ValueIdentity(slot, Vec::new())),
            via: Vec::new(),
            positioned: false,
        }
    }

    /// The place of a property.
    pub(super) fn named(mut self, name: &Arc<str>) -> ValuePlace {
        self.path.0.push(PathStep::Name(name.clone()));
        if let Some(ValueIdentity(_, keys)) = &mut self.identity {
            keys.push(Key::Name(name.clone()));
        }
        self
    }

    /// The place of some element.
    pub(super) fn some_element(mut self) -> ValuePlace {
        self.path.0.push(PathStep::Elements);
        self.identity = None;
        self
    }

    /// The place of the element that a slot holds.
    fn element_of(self, slot: Slot) -> ValuePlace {
        let mut place = self.some_element();
        place.identity = Some(ValueIdentity(slot, Vec::new()));
        place.via.push(slot);
        place
    }

    fn extended(self, steps: &[Step]) -> ValuePlace {
        steps.iter().fold(self, |mut place, step| match step {
            Step::Name(name) => place.named(name),
            Step::Position(position) => {
                place.path.0.push(PathStep::Elements);
                place.positioned = true;
                if let Some(ValueIdentity(_, keys)) = &mut place.identity {
                    keys.push(Key::Position(*position));
                }
                place
            }
        })
    }

    /// Whether it is all that a slot holds, which is always defined.
    pub(super) fn is_whole(&self) -> bool {
        matches!(&self.identity, Some(ValueIdentity(_, keys)) if keys.is_empty())
    }

    /// Whether the place is known to no index.
    pub(super) fn is_hidden(&self) -> bool {
        matches!(self.path.0.first(), Some(PathStep::Name(name)) if system_properties::NOT_INDEXED.contains(&&**name))
    }

    /// The path, if it stands for exactly one value of each document.
    pub(super) fn into_plain(self) -> Option<Path> {
        let plain = self.via.is_empty() && !self.path.is_repeated() && !self.is_hidden();
        (plain && !self.path.0.is_empty()).then_some(self.path)
    }
}

enum SlotBinding<'p> {
    Place(ValuePlace),
    /// A row made of named expressions.
    Members(&'p [(Arc<str>, Expr)]),
}

/// What slots stand for.
pub(super) struct Places<'p> {
    bindings: HashMap<Slot, SlotBinding<'p>>,
    documents: Option<Slot>,
    computed: &'p [Computed],
}

impl<'p> Places<'p> {
    pub(super) fn new(computed: &'p [Computed]) -> Places<'p> {
        Places { bindings: HashMap::new(), documents: None, computed }
    }

    /// A slot holds the documents.
    pub(super) fn bind_documents(&mut self, slot: Slot) {
        self.documents = Some(slot);
        self.bind(slot, ValuePlace::of_slot(slot));
    }

    /// A slot holds what is at a place.
    pub(super) fn bind(&mut self, slot: Slot, place: ValuePlace) {
        self.bindings.insert(slot, SlotBinding::Place(place));
    }

    /// A slot holds the elements of what is at a place; their place.
    pub(super) fn bind_elements(&mut self, slot: Slot, array: ValuePlace) -> ValuePlace {
        let place = array.element_of(slot);
        self.bind(slot, place.clone());
        place
    }

    /// A slot holds an object of expressions.
    pub(super) fn bind_members(&mut self, slot: Slot, members: &'p [(Arc<str>, Expr)]) {
        self.bindings.insert(slot, SlotBinding::Members(members));
    }

    /// The place of a slot's value.
    pub(super) fn of_slot(&self, slot: Slot) -> Option<ValuePlace> {
        self.resolve(slot, &[])
    }

    /// The place that an expression speaks about.
    pub(super) fn of(&self, expression: &Expr) -> Option<ValuePlace> {
        match expression {
            Expr::Path(slot, steps) => self.resolve(*slot, steps),
            Expr::Constant(_) => None,
            other => self.of_computed(other).or_else(|| match other {
                Expr::Access(base, step) => Some(self.of(base)?.extended(std::slice::from_ref(step))),
                _ => None,
            }),
        }
    }

    fn resolve(&self, slot: Slot, steps: &[Step]) -> Option<ValuePlace> {
        match (self.bindings.get(&slot)?, steps) {
            (SlotBinding::Place(place), steps) => {
                Some(place.clone().extended(steps)).filter(|place| !self.is_covered(place))
            }
            (SlotBinding::Members(members), [Step::Name(name), rest @ ..]) => {
                let (_, member) = members.iter().find(|(own, _)| own == name)?;
                Some(self.of(member)?.extended(rest))
            }
            (SlotBinding::Members(_), _) => None,
        }
    }

    /// Whether an index holds a computed property instead of what documents have at a place.
    fn is_covered(&self, place: &ValuePlace) -> bool {
        let first = place.path.0.first();
        matches!(first, Some(PathStep::Name(name)) if self.computed.iter().any(|own| own.name() == name))
    }

    /// An expression that the container has a name for.
    fn of_computed(&self, expression: &Expr) -> Option<ValuePlace> {
        let documents = self.documents?;
        let property = self.computed.iter().find(|property| property.is(expression, documents))?;
        Some(ValuePlace::of_slot(documents).named(property.name()))
    }
}
