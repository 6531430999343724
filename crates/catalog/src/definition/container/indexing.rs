//! The indexing policy: which paths of documents are indexed, and by which further indexes.
//!
//! In: the `indexingPolicy` member of a container. Out: [`IndexingPolicy`] with its defaults: all paths included, the
//! etag excluded.
//! Invariants
//! - Unless nothing is indexed, exactly one of the two lists has the root path, so every path has an answer.
//! - No path is in both lists or twice in one.
//!
//! Not here: which of several matching paths decides (`index`), indexes that need the policies of the container
//! beside them (checked by `container`).

use crate::definition::members::{self, Members};
use crate::definition::{Invalid, Named, excerpt};
use astrarium_value::PropertyPath;
use astrarium_value::system_properties::ETAG;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::composite_index::{self, CompositeIndex};
use super::full_text;
use super::index_path::{IndexPath, IndexStep};
use super::spatial_index::{self, SpatialIndex};
use super::vector::{self, VectorIndex};

/// Most included, and most excluded, paths that a policy may list.
const PATHS_MAX: usize = 1_500;

/// Which paths of documents are indexed, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingPolicy {
    /// When the index follows the documents.
    pub mode: IndexingMode,
    /// Whether documents are indexed unless their write says otherwise; false only without an index, and in definitions
    /// that were stored before `IndexingPolicy::normalise`.
    pub automatic: bool,
    /// Paths that are indexed.
    pub included: Vec<IndexPath>,
    /// Paths that are not.
    pub excluded: Vec<IndexPath>,
    /// Indexes over several properties.
    pub composite: Vec<CompositeIndex>,
    /// Indexes over geometries.
    pub spatial: Vec<SpatialIndex>,
    /// Indexes over vectors.
    pub vector: Vec<VectorIndex>,
    /// Properties whose words are indexed.
    pub full_text: Vec<PropertyPath>,
}

/// When the index follows the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingMode {
    /// With every write.
    Consistent,
    /// Some time after the write (of definitions stored before `IndexingPolicy::normalise`; they follow as others do).
    Lazy,
    /// Never: there is no index.
    None,
}

impl Named for IndexingMode {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Consistent, "consistent"), (Self::Lazy, "lazy"), (Self::None, "none")];
}

/// The kinds of index that older policies attach to included paths. They are checked and forgotten: paths have one
/// kind of index now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LegacyKind {
    Hash,
    Range,
    Spatial,
}

impl Named for LegacyKind {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Hash, "Hash"), (Self::Range, "Range"), (Self::Spatial, "Spatial")];
}

impl Default for IndexingPolicy {
    fn default() -> Self {
        IndexingPolicy {
            mode: IndexingMode::Consistent,
            automatic: true,
            included: vec![IndexPath::root()],
            excluded: vec![IndexPath::property(ETAG)],
            composite: Vec::new(),
            spatial: Vec::new(),
            vector: Vec::new(),
            full_text: Vec::new(),
        }
    }
}

impl IndexingPolicy {
    /// Makes of what clients ask for what the service makes of it: an index follows with every write and takes all
    /// documents, unless there is none.
    pub(super) fn normalise(&mut self) {
        if self.mode != IndexingMode::None {
            self.mode = IndexingMode::Consistent;
            self.automatic = true;
        }
    }

    /// Whether both ask for the same entries, whatever the order of their paths. Neither mode is [`IndexingMode::None`].
    pub(super) fn has_same_indexes(&self, other: &IndexingPolicy) -> bool {
        let same = |own: &[IndexPath], others: &[IndexPath]| {
            own.iter().collect::<BTreeSet<_>>() == others.iter().collect::<BTreeSet<_>>()
        };
        self.automatic == other.automatic
            && same(&self.included, &other.included)
            && same(&self.excluded, &other.excluded)
            && self.composite == other.composite
            && self.spatial == other.spatial
            && self.vector == other.vector
            && self.full_text == other.full_text
    }
}

/// Reads the `indexingPolicy` member of a container.
pub(super) fn from_json(container: &Members<'_>) -> Result<IndexingPolicy, Invalid> {
    let Some(body) = container.object("indexingPolicy", "indexingPolicy")? else {
        return Ok(IndexingPolicy::default());
    };
    let mode = body.choice("indexingMode")?.unwrap_or(IndexingMode::Consistent);
    let mut policy = IndexingPolicy {
        mode,
        automatic: body.flag("automatic")?.unwrap_or(mode != IndexingMode::None),
        included: paths(&body, "includedPaths", "an entry of includedPaths")?,
        excluded: paths(&body, "excludedPaths", "an entry of excludedPaths")?,
        composite: composite_index::from_json(&body)?,
        spatial: spatial_index::from_json(&body)?,
        vector: vector::indexes_from_json(&body)?,
        full_text: full_text::indexes_from_json(&body)?,
    };
    check_distinct(&policy)?;
    if mode == IndexingMode::None {
        check_no_index(&policy)?;
    } else {
        complete(&mut policy)?;
    }
    Ok(policy)
}

/// The `indexingPolicy` member as reads show it.
pub(super) fn to_json(policy: &IndexingPolicy) -> Value {
    let paths =
        |paths: &[IndexPath]| paths.iter().map(|path| json!({"path": path.as_str()})).collect::<Value>();
    let mut body = Map::new();
    body.insert("indexingMode".to_owned(), policy.mode.name().into());
    body.insert("automatic".to_owned(), policy.automatic.into());
    body.insert("includedPaths".to_owned(), paths(&policy.included));
    body.insert("excludedPaths".to_owned(), paths(&policy.excluded));
    if !policy.composite.is_empty() {
        body.insert("compositeIndexes".to_owned(), composite_index::to_json(&policy.composite));
    }
    if !policy.spatial.is_empty() {
        body.insert("spatialIndexes".to_owned(), spatial_index::to_json(&policy.spatial));
    }
    if !policy.vector.is_empty() {
        body.insert("vectorIndexes".to_owned(), vector::indexes_to_json(&policy.vector));
    }
    if !policy.full_text.is_empty() {
        body.insert("fullTextIndexes".to_owned(), full_text::indexes_to_json(&policy.full_text));
    }
    Value::Object(body)
}

fn paths(policy: &Members<'_>, name: &str, entry: &'static str) -> Result<Vec<IndexPath>, Invalid> {
    let list = policy.list(name)?;
    // One more than the limit: the etag that we add ourselves comes back with every replace.
    if list.len() > PATHS_MAX + 1 {
        let count = list.len();
        return Err(Invalid::new(format!("Too many {name}: {count}. A policy lists at most {PATHS_MAX}.")));
    }
    let path = |value: &Value| {
        let body = Members::of(value, entry)?;
        check_legacy_indexes(&body)?;
        IndexPath::parse(body.required_text("path")?)
    };
    list.iter().map(path).collect()
}

fn check_legacy_indexes(path: &Members<'_>) -> Result<(), Invalid> {
    for index in path.list("indexes")? {
        let index = Members::of(index, "an index of a path")?;
        index
            .choice::<LegacyKind>("kind")?
            .ok_or_else(|| index.wrong("kind", "'Range', 'Hash' or 'Spatial'"))?;
        index.text("dataType")?;
        if let Some(precision) = index.get("precision") {
            members::whole_number(precision).ok_or_else(|| index.wrong("precision", "a whole number"))?;
        }
    }
    Ok(())
}

fn check_distinct(policy: &IndexingPolicy) -> Result<(), Invalid> {
    let twice = |path: &IndexPath, places: &str| {
        let path = excerpt(path.as_str());
        Err(Invalid::new(format!("The indexing path '{path}' is given {places}. Remove one of them.")))
    };
    let mut included = BTreeSet::new();
    if let Some(path) = policy.included.iter().find(|path| !included.insert(*path)) {
        return twice(path, "twice in includedPaths");
    }
    let mut excluded = BTreeSet::new();
    if let Some(path) = policy.excluded.iter().find(|path| !excluded.insert(*path)) {
        return twice(path, "twice in excludedPaths");
    }
    match policy.excluded.iter().find(|path| included.contains(path)) {
        Some(path) => twice(path, "in both includedPaths and excludedPaths"),
        None => Ok(()),
    }
}

fn check_no_index(policy: &IndexingPolicy) -> Result<(), Invalid> {
    let has_index = !policy.composite.is_empty()
        || !policy.spatial.is_empty()
        || !policy.vector.is_empty()
        || !policy.full_text.is_empty();
    let problem = if policy.automatic {
        "automatic is true"
    } else if !policy.included.is_empty() {
        "it has includedPaths"
    } else if has_index {
        "it has composite, spatial, vector or full-text indexes"
    } else {
        return Ok(());
    };
    Err(Invalid::new(format!(
        "The indexing policy contradicts itself: indexingMode is none, but {problem}. Set automatic to false and leave \
         out all indexes, or use indexingMode consistent."
    )))
}

/// Adds the paths that every policy has, so that each path of a document is decided.
fn complete(policy: &mut IndexingPolicy) -> Result<(), Invalid> {
    let lists = [&policy.included, &policy.excluded];
    if !lists.iter().any(|list| list.iter().any(IndexPath::is_root)) {
        if !policy.included.is_empty() {
            return Err(Invalid::new(
                "The special mandatory indexing path \"/*\" is in neither includedPaths nor excludedPaths. Add it to \
                 one of them: it decides for all paths that no other entry names.",
            ));
        }
        policy.included.push(IndexPath::root());
    }
    let is_etag = |path: &IndexPath| matches!(path.steps(), [IndexStep::Property(name)] if **name == *ETAG);
    if !policy.included.iter().chain(&policy.excluded).any(is_etag) {
        policy.excluded.push(IndexPath::property(ETAG));
    }
    Ok(())
}
