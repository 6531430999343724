//! Kinds of documents: which properties stand together, and which of their values are always the same.

use super::VALUE_BYTES_MAX;
use astrarium_value::json::{Kind, Node};
use std::collections::BTreeMap;

/// Kinds that are told.
const SHAPES_MAX: usize = 20;
/// Properties of a kind that are told.
const NAMES_MAX: usize = 200;

/// Documents with the same properties at the top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledShape {
    /// How many of the sample.
    pub count: u64,
    /// The names of their properties, sorted.
    pub names: Vec<String>,
    /// Those of them with one and the same scalar value in all of them, as JSON.
    pub constants: BTreeMap<String, String>,
}

#[derive(Default)]
pub(super) struct ShapeCounts {
    shapes: BTreeMap<Vec<String>, SampledShape>,
}

impl ShapeCounts {
    pub(super) fn count(&mut self, document: Node<'_>) {
        let mut members: Vec<(String, Node<'_>)> =
            document.members().take(NAMES_MAX).map(|(name, value)| (name.into_owned(), value)).collect();
        members.sort_by(|left, right| left.0.cmp(&right.0));
        let names: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
        let is_first = !self.shapes.contains_key(&names);
        let shape = self.shapes.entry(names).or_default();
        shape.count += 1;
        if is_first {
            let short = members.iter().filter(|(_, value)| is_short(*value));
            shape.constants = short.map(|(name, value)| (name.clone(), value.raw().to_owned())).collect();
        } else {
            for (name, value) in &members {
                if shape.constants.get(name).is_some_and(|known| known != value.raw()) {
                    shape.constants.remove(name);
                }
            }
        }
    }

    /// The most frequent kinds, and how many documents are of others. What is the same in a single document says nothing.
    pub(super) fn finish(self) -> (Vec<SampledShape>, u64) {
        let named = self.shapes.into_iter().map(|(names, shape)| {
            let constants = if shape.count > 1 { shape.constants } else { BTreeMap::new() };
            SampledShape { names, constants, ..shape }
        });
        let mut shapes: Vec<SampledShape> = named.collect();
        shapes.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.names.cmp(&right.names)));
        let others = shapes.split_off(shapes.len().min(SHAPES_MAX));
        (shapes, others.iter().map(|shape| shape.count).sum())
    }
}

fn is_short(value: Node<'_>) -> bool {
    !matches!(value.kind(), Kind::Object | Kind::Array) && value.raw().len() <= VALUE_BYTES_MAX
}
