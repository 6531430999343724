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
        body.insert("version".to_owned(), json!(number(version)));
    }
    if key.system_key {
        body.insert("systemKey".to_owned(), true.into());
    }
    Value::Object(body)
}

/// Checks that a replace that brings `new` leaves the key as it is. Clients may leave the version out, and those that
/// know nothing of a key leave out all of it.
pub(super) fn check_unchanged(
    old: &PartitionKeyDefinition,
    new: &PartitionKeyDefinition,
) -> Result<(), Invalid> {
    let advice = if old.paths != new.paths || old.kind != new.kind {
        "Send it as it is, or make a new container.".to_owned()
    } else if new.version.is_some() && new.hash_version() != old.hash_version() {
        let (old, new) = (number(old.hash_version()), number(new.hash_version()));
        format!(
            "Its version is {old} (which is also that of a key made without a version), the request has version {new}: \
             send version {old} or none, or make a new container."
        )
    } else {
        return Ok(());
    };
    Err(Invalid::new(format!("Document collection partition key cannot be changed. {advice}")))
}

fn number(version: HashVersion) -> u8 {
    match version {
        HashVersion::V1 => 1,
        HashVersion::V2 => 2,
    }
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
        let advice = if kind == PartitionKind::MultiHash {
            String::new()
        } else {
            format!(" A hierarchical key (kind MultiHash, version 2) has up to {LEVELS_MAX}.")
        };
        return Err(Invalid::new(format!(
            "Too many partition key paths ({count}) specified. A maximum of {max} is allowed.{advice}"
        )));
    }
    Ok(())
}

fn path(text: &str) -> Result<PropertyPath, Invalid> {
    PropertyPath::parse(text).map_err(|error| {
        let position = match error {
            PathError::NoLeadingSlash => 0,
            PathError::TrailingSlash => text.len().saturating_sub(1),
            PathError::EmptyName { offset }
            | PathError::UnclosedQuote { offset }
            | PathError::TextAfterQuote { offset }
            | PathError::Wildcard { offset }
            | PathError::ArrayIndex { offset } => offset,
        };
        refused_path(text, position, &error.to_string())
    })
}

/// Checks that the paths of a new key have no characters that need quotes.
pub(super) fn check_new(key: &PartitionKeyDefinition) -> Result<(), Invalid> {
    for path in &key.paths {
        if let Some(position) = unquoted_fault(path) {
            let advice = "names need quotes, as in /\"first name\", unless they are of letters, digits, '_', '-' and '$'";
            return Err(refused_path(path.as_str(), position, advice));
        }
    }
    Ok(())
}

/// Where a name without quotes has a character that needs them. The service's documents allow letters, digits and `_`; its
/// clients know paths with `-` and `$`, and of others some are known to be refused (spaces, `.`, `+`).
fn unquoted_fault(path: &PropertyPath) -> Option<usize> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    let mut at = 0;
    for name in path.segments() {
        at += 1;
        if path.as_str()[at..].starts_with(['"', '\'']) {
            at += name.len() + 2;
            continue;
        }
        if let Some(offset) = name.find(|letter| !is_plain(letter)) {
            return Some(at + offset);
        }
        at += name.len();
    }
    None
}

fn refused_path(text: &str, position: usize, detail: &str) -> Invalid {
    Invalid::new(format!(
        "The partition key component definition path '{}' could not be accepted, failed near position '{position}'. \
         Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character. \
         ({detail})",
        excerpt(text)
    ))
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
