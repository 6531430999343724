//! Unique keys: combinations of properties whose values may occur once within a logical partition.

use crate::definition::members::{self, Members};
use crate::definition::{Invalid, excerpt};
use astrarium_value::PropertyPath;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Most unique keys of a container.
const KEYS_MAX: usize = 10;
/// Most paths of one unique key.
const PATHS_MAX: usize = 16;

/// One combination of properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// The properties; their values together are unique.
    pub paths: Vec<PropertyPath>,
}

/// Reads the `uniqueKeyPolicy` member of a container.
pub(super) fn from_json(container: &Members<'_>) -> Result<Vec<UniqueKey>, Invalid> {
    let Some(policy) = container.object("uniqueKeyPolicy", "uniqueKeyPolicy")? else {
        return Ok(Vec::new());
    };
    let list = policy.list("uniqueKeys")?;
    if list.len() > KEYS_MAX {
        return Err(Invalid::new(format!(
            "Too many unique keys: {}. A container has at most {KEYS_MAX}.",
            list.len()
        )));
    }
    let keys = list.iter().map(unique_key).collect::<Result<Vec<_>, _>>()?;
    let distinct: BTreeSet<Vec<&PropertyPath>> = keys.iter().map(|key| sorted(&key.paths)).collect();
    if distinct.len() < keys.len() {
        return Err(Invalid::new("Two unique keys have the same paths. Remove one of them."));
    }
    Ok(keys)
}

/// The `uniqueKeyPolicy` member as reads show it.
pub(super) fn to_json(keys: &[UniqueKey]) -> Value {
    let paths = |key: &UniqueKey| key.paths.iter().map(PropertyPath::as_str).collect::<Value>();
    let keys: Vec<Value> = keys.iter().map(|key| json!({"paths": paths(key)})).collect();
    json!({ "uniqueKeys": keys })
}

fn unique_key(value: &Value) -> Result<UniqueKey, Invalid> {
    let key = Members::of(value, "a unique key")?;
    let texts = members::texts(key.list("paths")?, "the paths of a unique key")?;
    if texts.is_empty() {
        return Err(key.wrong("paths", "an array with at least one path"));
    }
    if texts.len() > PATHS_MAX {
        let count = texts.len();
        return Err(Invalid::new(format!(
            "Too many paths in a unique key: {count}. One key has at most {PATHS_MAX}."
        )));
    }
    let paths = texts.iter().map(|text| path(text)).collect::<Result<Vec<_>, _>>()?;
    if sorted(&paths).windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Invalid::new("A unique key has the same path twice. Remove one of them."));
    }
    Ok(UniqueKey { paths })
}

fn path(text: &str) -> Result<PropertyPath, Invalid> {
    PropertyPath::parse(text).map_err(|error| {
        Invalid::new(format!(
            "The unique key path '{}' could not be accepted: {error}. A path names one property, such as /name or \
             /address/zip.",
            excerpt(text)
        ))
    })
}

fn sorted(paths: &[PropertyPath]) -> Vec<&PropertyPath> {
    let mut paths: Vec<&PropertyPath> = paths.iter().collect();
    paths.sort();
    paths
}
