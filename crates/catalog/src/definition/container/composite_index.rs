//! Composite indexes: several properties in one order, for queries that sort or filter by all of them.

use crate::definition::members::Members;
use crate::definition::{Invalid, Named, excerpt};
use astrarium_value::PropertyPath;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// How many properties one composite index may have.
const PROPERTIES: RangeInclusive<usize> = 2..=8;
/// Most paths of all composite indexes of a container together.
const PATHS_MAX: usize = 100;

/// Properties in the order they are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeIndex {
    /// The properties, the most significant first.
    pub paths: Vec<CompositePath>,
}

/// One property of a composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositePath {
    /// The property.
    pub path: PropertyPath,
    /// Its direction.
    pub order: SortOrder,
}

/// Directions of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortOrder {
    /// Small values first.
    #[default]
    Ascending,
    /// Large values first.
    Descending,
}

impl Named for SortOrder {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Ascending, "ascending"), (Self::Descending, "descending")];
}

/// Reads the `compositeIndexes` member of an indexing policy.
pub(super) fn from_json(policy: &Members<'_>) -> Result<Vec<CompositeIndex>, Invalid> {
    let lists = policy.list("compositeIndexes")?.iter().map(|list| match list {
        Value::Array(list) => Ok(list.as_slice()),
        _ => Err(Invalid::input("'compositeIndexes' must be an array of arrays of paths")),
    });
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    let count: usize = lists.iter().map(|list| list.len()).sum();
    if count > PATHS_MAX {
        return Err(Invalid::new(format!(
            "Too many paths in composite indexes: {count}. All of a container's have at most {PATHS_MAX} together."
        )));
    }
    lists.into_iter().map(index).collect()
}

/// The `compositeIndexes` member as reads show it.
pub(super) fn to_json(indexes: &[CompositeIndex]) -> Value {
    let path = |path: &CompositePath| json!({"path": path.path.as_str(), "order": path.order.name()});
    indexes.iter().map(|index| index.paths.iter().map(path).collect::<Value>()).collect()
}

fn index(list: &[Value]) -> Result<CompositeIndex, Invalid> {
    if !PROPERTIES.contains(&list.len()) {
        let (count, min, max) = (list.len(), PROPERTIES.start(), PROPERTIES.end());
        return Err(Invalid::new(format!(
            "A composite index has {min} to {max} paths, but one of them has {count}."
        )));
    }
    let paths = list.iter().map(composite_path).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    match paths.iter().find(|path| !seen.insert(&path.path)) {
        None => Ok(CompositeIndex { paths }),
        Some(path) => {
            let path = excerpt(path.path.as_str());
            Err(Invalid::new(format!("A composite index has the path '{path}' twice. Remove one of them.")))
        }
    }
}

fn composite_path(value: &Value) -> Result<CompositePath, Invalid> {
    let body = Members::of(value, "a path of a composite index")?;
    let text = body.required_text("path")?;
    let path = PropertyPath::parse(text).map_err(|error| {
        Invalid::new(format!(
            "The composite index path '{}' could not be accepted: {error}. It names one property, such as /name, \
             without '/?' or '/*' at the end.",
            excerpt(text)
        ))
    })?;
    Ok(CompositePath { path, order: body.choice("order")?.unwrap_or_default() })
}
