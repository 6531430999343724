//! What some documents of a container tell of all: which paths they have with which types and values, what indexing each path costs, and
//! which partition keys have most of them.
//!
//! In: a bounded number of documents of each key range, from places spread evenly over their order of insertion. Out: [`SampledSchema`],
//! [`SampledCosts`], [`SampledKeys`].
//! Invariants
//! - Documents, bytes, paths, depth, values, shapes and keys are bounded, whatever clients store.
//! - System properties are left out of the schema: every document has them.

mod partition_keys;
mod shapes;

pub use partition_keys::{SampledKey, SampledKeys};
pub use shapes::SampledShape;

use crate::{DocumentsHandle, Error, FeedPosition, FeedScope, Floors, PageLimit, RangeUsage};
use astrarium_env::yield_if_due;
use astrarium_index::{IndexPathCost, Stored};
use astrarium_keys::body::Body;
use astrarium_store::{DocumentMemory, etag_text};
use astrarium_value::json::{Kind, Node, Text};
use astrarium_value::{compare_numbers, compare_text};
use shapes::ShapeCounts;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Documents of a sample.
const DOCUMENTS_MAX: usize = 300;
/// Bytes of a sample's documents.
const BYTES_MAX: usize = 4 << 20;
/// Key ranges that a sample is taken of.
const RANGES_MAX: usize = 20;
/// Places of all ranges together that a sample is read from, and of one.
const PLACES_MAX: usize = 40;
const RANGE_PLACES_MAX: usize = 20;
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
    /// The kinds of documents, by the names of their properties; the most frequent first.
    pub shapes: Vec<SampledShape>,
    /// Documents of kinds that are not told.
    pub other_shapes: u64,
}

/// The least and the greatest value of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledRange {
    /// As JSON.
    pub least: String,
    /// As JSON.
    pub greatest: String,
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
    /// The numbers there are between.
    pub numbers: Option<SampledRange>,
    /// The strings there are between; long ones do not count.
    pub texts: Option<SampledRange>,
    /// Least and greatest number of elements of arrays.
    pub lengths: Option<(usize, usize)>,
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
        let (documents, _memory) = self.sample().await?;
        let (mut found, mut shapes) = (PathCounts::default(), ShapeCounts::default());
        for body in &documents {
            yield_if_due().await;
            if let Ok(text) = Text::parse(body.text()) {
                found.members(text.root(), &mut Vec::new());
                shapes.count(text.root());
            }
        }
        let (shapes, other_shapes) = shapes.finish();
        Ok(SampledSchema { sampled: documents.len() as u64, paths: found.finish(), shapes, other_shapes })
    }

    /// What indexing each path costs by the container's policy.
    pub async fn sampled_index_costs(self) -> Result<SampledCosts, Error> {
        let (documents, _memory) = self.sample().await?;
        let etag = |body: &Body| etag_text(body.header.etag, body.header.timestamp);
        let etags: Vec<String> = documents.iter().map(etag).collect();
        let stored: Vec<Stored<'_>> =
            documents.iter().zip(&etags).map(|(body, etag)| as_stored(body, etag)).collect();
        let computed = self.container.definition.computed_properties.iter();
        let computed: Vec<String> = computed.map(|property| property.name.clone()).collect();
        let paths = self.core.indexes(self.container).path_costs(&stored, &computed).await;
        Ok(SampledCosts { sampled: documents.len() as u64, paths })
    }

    /// Some documents of each key range, with their memory.
    async fn sample(self) -> Result<(Vec<Body>, Vec<DocumentMemory>), Error> {
        let (mut documents, mut memory) = (Vec::new(), Vec::new());
        for sample in self.range_samples(DOCUMENTS_MAX, BYTES_MAX).await? {
            documents.extend(sample.documents);
            memory.extend(sample.memory);
        }
        Ok((documents, memory))
    }

    /// About so many documents, of each key range as many as its share of all of them is.
    async fn range_samples(self, count_max: usize, bytes_max: usize) -> Result<Vec<RangeSample>, Error> {
        let mut samples = Vec::new();
        for range in self.container.ranges.iter().take(RANGES_MAX) {
            match self.range_usage(range).await {
                Ok(usage) => samples.push(RangeSample {
                    range_id: range.id,
                    usage,
                    documents: Vec::new(),
                    memory: Vec::new(),
                }),
                // Replaced a moment ago.
                Err(Error::KeyRangeGone) => {}
                Err(error) => return Err(error),
            }
        }
        let all: u64 = samples.iter().map(|sample| sample.usage.documents).sum();
        let places = (PLACES_MAX / samples.len().max(1)).clamp(1, RANGE_PLACES_MAX);
        for sample in &mut samples {
            let part = sample.usage.documents as f64 / all.max(1) as f64;
            let share = |whole: usize| ((whole as f64 * part).ceil() as usize).max(1);
            // Where all of them fit, nothing is jumped over.
            let is_whole = all <= count_max as u64 && sample.usage.bytes <= share(bytes_max) as u64;
            let places = if is_whole { 1 } else { places };
            let limit = PageLimit {
                count_max: share(count_max).div_ceil(places),
                bytes_max: share(bytes_max).div_ceil(places),
            };
            self.spread(sample, places as u64, limit).await?;
        }
        Ok(samples)
    }

    /// Reads documents of a range from places that are spread evenly over the order in which they came.
    async fn spread(self, sample: &mut RangeSample, places: u64, limit: PageLimit) -> Result<(), Error> {
        let (range_id, mut seen) = (sample.range_id, 0);
        let Some(range) = self.container.ranges.iter().find(|range| range.id == range_id) else {
            return Ok(());
        };
        let last = match self.core.range_high_water(range).await {
            Err(Error::KeyRangeGone) => return Ok(()),
            last => last?,
        };
        for place in 0..places {
            let number = seen.max(last / places * place);
            let position = FeedPosition::Number { range_id, number, floors: Floors::default() };
            let position = (number > 0).then_some(position);
            let page = match self.read_feed(&FeedScope::Range(range_id), position, limit).await {
                Err(Error::KeyRangeGone) => break,
                page => page?,
            };
            seen = page.documents.last().map_or(number, |body| body.header.number.max(number));
            sample.documents.extend(page.documents);
            sample.memory.push(page.memory);
            if page.resume.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// What a sample has of a key range.
struct RangeSample {
    range_id: u32,
    /// What the range holds.
    usage: RangeUsage,
    documents: Vec<Body>,
    memory: Vec<DocumentMemory>,
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
    numbers: Option<SampledRange>,
    texts: Option<SampledRange>,
    lengths: Option<(usize, usize)>,
}

impl PathCount {
    /// Widens the ranges of a path by a value.
    fn widen(&mut self, node: Node<'_>) {
        let number = |json: &str| json.parse::<f64>().unwrap_or_default();
        let text = |json: &str| {
            Text::parse(json.as_bytes()).ok().and_then(|text| Some(text.root().as_str()?.into_owned()))
        };
        match node.kind() {
            Kind::Number if node.raw().len() <= VALUE_BYTES_MAX => {
                widen(&mut self.numbers, node.raw(), |one, other| {
                    compare_numbers(number(one), number(other))
                });
            }
            Kind::String if node.raw().len() <= VALUE_BYTES_MAX => {
                widen(&mut self.texts, node.raw(), |one, other| {
                    compare_text(&text(one).unwrap_or_default(), &text(other).unwrap_or_default())
                });
            }
            Kind::Array => {
                let length = node.elements().count();
                let (least, greatest) = self.lengths.unwrap_or((length, length));
                self.lengths = Some((least.min(length), greatest.max(length)));
            }
            _ => {}
        }
    }
}

/// Makes a range hold a value, which is JSON.
fn widen(range: &mut Option<SampledRange>, value: &str, compare: impl Fn(&str, &str) -> Ordering) {
    let Some(range) = range else {
        *range = Some(SampledRange { least: value.to_owned(), greatest: value.to_owned() });
        return;
    };
    if compare(value, &range.least).is_lt() {
        value.clone_into(&mut range.least);
    } else if compare(value, &range.greatest).is_gt() {
        value.clone_into(&mut range.greatest);
    }
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
        count.widen(node);
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
            let mut values: Vec<(&String, &u64)> = count.values.iter().collect();
            values.sort_by(|left, right| right.1.cmp(left.1).then_with(|| left.0.cmp(right.0)));
            values.truncate(VALUES_MAX);
            let values = values.into_iter().map(|(value, _)| value.clone()).collect();
            let PathCount { types, numbers, texts, lengths, .. } = count;
            SampledPath { path, types, values, numbers, texts, lengths }
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
