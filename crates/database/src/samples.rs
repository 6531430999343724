//! What some documents of a container tell of all: which paths they have with which types and values, and what indexing each path costs.
//!
//! In: a bounded number of documents, some of each key range. Out: [`SampledSchema`], [`SampledCosts`].
//! Invariants
//! - Documents, bytes, paths, depth and values are bounded, whatever clients store.
//! - System properties are left out of the schema: every document has them.

use crate::{DocumentsHandle, Error, FeedScope, PageLimit};
use astrarium_env::yield_if_due;
use astrarium_index::{IndexPathCost, Stored};
use astrarium_keys::body::Body;
use astrarium_store::etag_text;
use astrarium_value::json::{Kind, Node, Text};
use std::collections::BTreeMap;

/// Documents of a sample.
const DOCUMENTS_MAX: usize = 300;
/// Bytes of a sample's documents.
const BYTES_MAX: usize = 4 << 20;
/// Key ranges that a sample is taken of.
const RANGES_MAX: usize = 20;
/// Paths that are told.
const PATHS_MAX: usize = 1_000;
/// Levels of documents that are looked into.
const DEPTH_MAX: usize = 12;
/// Elements of an array that are looked at.
const ELEMENTS_MAX: usize = 50;
/// Values of a path that are counted.
const COUNTED_MAX: usize = 100;
/// Values of a path that are told.
const VALUES_MAX: usize = 10;
/// Longest value that is told, as JSON.
const VALUE_BYTES_MAX: usize = 120;

/// The step into the elements of an array.
pub const ELEMENTS_STEP: &str = "[]";

/// What documents look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledSchema {
    /// How many documents were looked at.
    pub sampled: u64,
    /// The paths in them, in their order.
    pub paths: Vec<SampledPath>,
}

/// A place in documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledPath {
    /// Names of properties, and [`ELEMENTS_STEP`].
    pub path: Vec<String>,
    /// How often each type was there.
    pub types: BTreeMap<&'static str, u64>,
    /// The most frequent scalar values, as JSON.
    pub values: Vec<String>,
}

/// What indexing costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledCosts {
    /// How many documents were looked at.
    pub sampled: u64,
    /// What each path adds to their index, the most expensive first.
    pub paths: Vec<IndexPathCost>,
}

impl DocumentsHandle<'_> {
    /// What the documents of the container look like.
    pub async fn sampled_schema(self) -> Result<SampledSchema, Error> {
        let documents = self.sample().await?;
        let mut found = PathCounts::default();
        for body in &documents {
            yield_if_due().await;
            if let Ok(text) = Text::parse(body.text()) {
                found.members(text.root(), &mut Vec::new());
            }
        }
        Ok(SampledSchema { sampled: documents.len() as u64, paths: found.finish() })
    }

    /// What indexing each path costs by the container's policy.
    pub async fn sampled_index_costs(self) -> Result<SampledCosts, Error> {
        let documents = self.sample().await?;
        let etag = |body: &Body| etag_text(body.header.etag, body.header.timestamp);
        let etags: Vec<String> = documents.iter().map(etag).collect();
        let stored: Vec<Stored<'_>> =
            documents.iter().zip(&etags).map(|(body, etag)| as_stored(body, etag)).collect();
        let computed = self.container.definition.computed_properties.iter();
        let computed: Vec<String> = computed.map(|property| property.name.clone()).collect();
        let paths = self.core.indexes(self.container).path_costs(&stored, &computed).await;
        Ok(SampledCosts { sampled: documents.len() as u64, paths })
    }

    /// Some documents of each key range.
    async fn sample(self) -> Result<Vec<Body>, Error> {
        let ranges: Vec<u32> = self.container.ranges.iter().map(|range| range.id).take(RANGES_MAX).collect();
        let share = ranges.len().max(1);
        let limit = PageLimit { count_max: DOCUMENTS_MAX.div_ceil(share), bytes_max: BYTES_MAX / share };
        let mut documents = Vec::new();
        for range in ranges {
            match self.read_feed(&FeedScope::Range(range), None, limit).await {
                Ok(page) => documents.extend(page.documents),
                // Replaced a moment ago.
                Err(Error::KeyRangeGone) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(documents)
    }
}

/// A document as indexes see it. Where it is stored makes no difference to its paths.
fn as_stored<'b>(body: &'b Body, etag: &'b str) -> Stored<'b> {
    Stored {
        number: body.header.number,
        text: body.text(),
        timestamp: body.header.timestamp,
        ttl: body.header.ttl,
        etag,
        partition: &[],
        directive: body.header.index_directive,
        is_built: true,
        is_gone: false,
    }
}

#[derive(Default)]
struct PathCounts {
    paths: BTreeMap<Vec<String>, PathCount>,
}

#[derive(Default)]
struct PathCount {
    types: BTreeMap<&'static str, u64>,
    values: BTreeMap<String, u64>,
}

impl PathCounts {
    fn members(&mut self, object: Node<'_>, path: &mut Vec<String>) {
        for (name, member) in object.members() {
            path.push(name.into_owned());
            self.node(member, path);
            path.pop();
        }
    }

    fn node(&mut self, node: Node<'_>, path: &mut Vec<String>) {
        if !self.count(node, path) || path.len() >= DEPTH_MAX {
            return;
        }
        match node.kind() {
            Kind::Object => self.members(node, path),
            Kind::Array => {
                path.push(ELEMENTS_STEP.to_owned());
                for element in node.elements().take(ELEMENTS_MAX) {
                    self.node(element, path);
                }
                path.pop();
            }
            _ => {}
        }
    }

    /// Counts a value; tells whether there is room for its path.
    fn count(&mut self, node: Node<'_>, path: &[String]) -> bool {
        if !self.paths.contains_key(path) {
            if self.paths.len() >= PATHS_MAX {
                return false;
            }
            self.paths.insert(path.to_vec(), PathCount::default());
        }
        let Some(count) = self.paths.get_mut(path) else { return false };
        *count.types.entry(type_name(node.kind())).or_default() += 1;
        let raw = node.raw();
        let is_value = !matches!(node.kind(), Kind::Object | Kind::Array) && raw.len() <= VALUE_BYTES_MAX;
        if is_value {
            if let Some(known) = count.values.get_mut(raw) {
                *known += 1;
            } else if count.values.len() < COUNTED_MAX {
                count.values.insert(raw.to_owned(), 1);
            }
        }
        true
    }

    fn finish(self) -> Vec<SampledPath> {
        let told = |(path, count): (Vec<String>, PathCount)| {
            let mut values: Vec<(String, u64)> = count.values.into_iter().collect();
            values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
            values.truncate(VALUES_MAX);
            let values = values.into_iter().map(|(value, _)| value).collect();
            SampledPath { path, types: count.types, values }
        };
        self.paths.into_iter().map(told).collect()
    }
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "boolean",
        Kind::Number => "number",
        Kind::String => "string",
        Kind::Array => "array",
        Kind::Object => "object",
    }
}
