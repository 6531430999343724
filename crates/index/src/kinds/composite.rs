//! The composite index: several properties of a document in one entry, each in its own direction.
//!
//! Every document has one entry; what a document does not have is `undefined` in it.

use super::{IndexKind, Ordered, Served};
use crate::condition::{Condition, OrderPath, Path, PathStep};
use crate::document::Document;
use crate::entries::Entries;
use astrarium_catalog::definition::container::{self, SortOrder};
use astrarium_keys::index_entry::{Family, push_term};
use astrarium_value::json::Node;
use astrarium_value::{PropertyPath, Value};

/// Begins the description of a family of this kind.
const KIND: u8 = 2;

#[derive(Debug)]
pub(super) struct CompositeIndex {
    family: Family,
    parts: Vec<Part>,
    shown: String,
}

#[derive(Debug)]
struct Part {
    property: PropertyPath,
    path: Path,
    descending: bool,
}

impl CompositeIndex {
    pub(super) fn new(generation: u8, index: &container::CompositeIndex) -> CompositeIndex {
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
            parts.push(Part { property: path.path.clone(), path: Path(steps.collect()), descending });
            shown.push(format!("{} {}", path.path.as_str(), if descending { "DESC" } else { "ASC" }));
        }
        CompositeIndex { family: Family::of(generation, &description), parts, shown: shown.join(", ") }
    }
}

impl IndexKind for CompositeIndex {
    fn entries(&self, document: &Document<'_>, out: &mut Entries<'_>) {
        out.push(self.family, |key| {
            for part in &self.parts {
                let start = key.len();
                push_term(key, &value_at(document, &part.property));
                if part.descending {
                    key[start..].iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
        });
    }

    fn serve(&self, _: &Condition) -> Option<Served> {
        None
    }

    fn order(&self, order: &[OrderPath]) -> Option<Ordered> {
        let serves = |reversed: bool| {
            order.len() == self.parts.len()
                && self.parts.iter().zip(order).all(|(part, wanted)| {
                    part.path == wanted.path && part.descending == (wanted.descending != reversed)
                })
        };
        let backward = if serves(false) {
            false
        } else if serves(true) {
            true
        } else {
            return None;
        };
        let inverted = self.parts.iter().map(|part| part.descending).collect();
        Some(Ordered {
            family: self.family,
            backward,
            complete: true,
            all_types: true,
            inverted,
            shown: self.shown.clone(),
        })
    }
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
