//! The partition key of a container as clients write it, checked, and back.

use crate::definition::members::{self, Members};
use crate::definition::{Invalid, Named, excerpt};
use astrarium_partition::{HashVersion, PartitionKeyDefinition, PartitionKind};
use astrarium_value::{PathError, PropertyPath};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The path of containers that were made without a partition key.
const LEGACY_PATH: &str = "/_partitionKey";
/// Most levels of a hierarchical key.
const LEVELS_MAX: usize = 3;

impl Named for PartitionKind {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Hash, "Hash"), (Self::MultiHash, "MultiHash"), (Self::Range, "Range")];
}

/// Reads the `partitionKey` member of a container; none at all is the key of older times.
pub(super) fn from_json(container: &Members<'_>) -> Result<PartitionKeyDefinition, Invalid> {
    let Some(body) = container.object("partitionKey", "partitionKey")? else {
        return Ok(legacy());
    };
    let texts = members::texts(body.list("paths")?, "the partition key paths")?;
    let kind = body.choice("kind")?.unwrap_or(PartitionKind::Hash);
    check_count(texts.len(), kind)?;
    let paths = texts.iter().map(|text| path(text)).collect::<Result<Vec<_>, _>>()?;
    if paths.iter().collect::<BTreeSet<_>>().len() < paths.len() {
        return Err(Invalid::new(
            "The same partition key path is given twice. Each level of the key needs its own property.",
        ));
    }
    let system_key = body.flag("systemKey")?.unwrap_or(false);
    if system_key && paths != legacy().paths {
        return Err(Invalid::input(format!(
            "'systemKey' belongs to the partition key path {LEGACY_PATH} only"
        )));
    }
    Ok(PartitionKeyDefinition { version: version(&body, kind)?, paths, kind, system_key })
}

/// The `partitionKey` member as reads show it.
pub(super) fn to_json(key: &PartitionKeyDefinition) -> Value {
    let paths: Vec<&str> = key.paths.iter().map(PropertyPath::as_str).collect();
    let mut body = Map::new();
    body.insert("paths".to_owned(), paths.into());
    body.insert("kind".to_owned(), key.kind.name().into());
    if let Some(version) = key.version {
        let number = match version {
            HashVersion::V1 => 1,
            HashVersion::V2 => 2,
        };
        body.insert("version".to_owned(), json!(number));
    }
    if key.system_key {
        body.insert("systemKey".to_owned(), true.into());
    }
    Value::Object(body)
}

/// Whether a replace that brings `new` leaves the key as it is. Clients may leave the version out, and those that know
/// nothing of a key leave out all of it.
pub(super) fn is_unchanged(old: &PartitionKeyDefinition, new: &PartitionKeyDefinition) -> bool {
    let same_version = new.version.is_none() || new.hash_version() == old.hash_version();
    old.paths == new.paths && old.kind == new.kind && same_version
}

fn legacy() -> PartitionKeyDefinition {
    let path = PropertyPath::parse(LEGACY_PATH).expect("the path is a constant");
    PartitionKeyDefinition { paths: vec![path], kind: PartitionKind::Hash, version: None, system_key: true }
}

fn check_count(count: usize, kind: PartitionKind) -> Result<(), Invalid> {
    let max = if kind == PartitionKind::MultiHash { LEVELS_MAX } else { 1 };
    if count == 0 {
        return Err(Invalid::input("'paths' of partitionKey must be an array with at least one path"));
    }
    if count > max {
        let kind = kind.name();
        return Err(Invalid::new(format!(
            "Too many partition key paths: {count}. A key of kind {kind} has at most {max}; hierarchical keys (kind \
             MultiHash, version 2) have up to {LEVELS_MAX}."
        )));
    }
    Ok(())
}

fn path(text: &str) -> Result<PropertyPath, Invalid> {
    let shown = excerpt(text);
    PropertyPath::parse(text).map_err(|error| match error {
        PathError::NoLeadingSlash => Invalid::new(format!(
            "The partition key component definition path '{shown}' could not be accepted, failed near position '0': \
             {error}."
        )),
        _ => Invalid::new(format!(
            "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard \
             character: '{shown}' ({error})."
        )),
    })
}

fn version(body: &Members<'_>, kind: PartitionKind) -> Result<Option<HashVersion>, Invalid> {
    // The Java SDK writes the version as the name of its constant.
    let named = match body.get("version").and_then(Value::as_str).map(str::to_ascii_lowercase).as_deref() {
        Some("v1" | "1") => Some(HashVersion::V1),
        Some("v2" | "2") => Some(HashVersion::V2),
        _ => None,
    };
    let version = match named {
        Some(version) => Some(version),
        None => match body.integer("version")? {
            None => None,
            Some(1) => Some(HashVersion::V1),
            Some(2) => Some(HashVersion::V2),
            Some(_) => return Err(body.wrong("version", "1 or 2")),
        },
    };
    match (kind, version) {
        (PartitionKind::MultiHash, Some(HashVersion::V1)) => {
            Err(Invalid::new("A partition key of kind MultiHash needs version 2."))
        }
        // Shown with its version, so that clients hash as we do.
        (PartitionKind::MultiHash, _) => Ok(Some(HashVersion::V2)),
        (_, version) => Ok(version),
    }
}
