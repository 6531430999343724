//! The client encryption policy: which top-level properties clients encrypt before they send a document.
//!
//! Clients do all of the encrypting; the server keeps the policy, checks that it is one every client can follow, and
//! shows it. Whether the named keys exist is for the caller to look up.

use crate::definition::client_encryption_key::ENCRYPTION_ALGORITHM;
use crate::definition::members::Members;
use crate::definition::{Invalid, Named, excerpt, id};
use astrarium_partition::PartitionKeyDefinition;
use astrarium_value::PropertyPath;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Which properties are encrypted, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEncryptionPolicy {
    /// The encrypted properties.
    pub included_paths: Vec<EncryptedPath>,
    /// 1, or 2 where the id or the partition key may be encrypted too.
    pub format_version: u8,
}

/// One encrypted property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedPath {
    /// The top-level property.
    pub path: PropertyPath,
    /// The name of the client encryption key.
    pub key_id: String,
    /// Whether equal values look equal when encrypted.
    pub encryption: EncryptionType,
}

/// How values are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptionType {
    /// Equal values give equal texts, so that they can be found.
    Deterministic,
    /// Equal values give different texts.
    Randomized,
}

impl Named for EncryptionType {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Deterministic, "Deterministic"), (Self::Randomized, "Randomized")];
}

/// Reads the `clientEncryptionPolicy` member of a container.
pub(super) fn from_json(
    container: &Members<'_>,
    partition_key: &PartitionKeyDefinition,
) -> Result<Option<ClientEncryptionPolicy>, Invalid> {
    let name = "clientEncryptionPolicy";
    let Some(policy) = container.object(name, name)? else {
        return Ok(None);
    };
    let format_version = match policy.integer("policyFormatVersion")? {
        None | Some(1) => 1,
        Some(2) => 2,
        Some(_) => return Err(policy.wrong("policyFormatVersion", "1 or 2")),
    };
    let paths = policy.list("includedPaths")?.iter().map(encrypted_path).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    for entry in &paths {
        if !seen.insert(&entry.path) {
            let path = excerpt(entry.path.as_str());
            return Err(Invalid::new(format!("Duplicate Path: {path} found in clientEncryptionPolicy.")));
        }
        check_special(entry, format_version, partition_key)?;
    }
    Ok(Some(ClientEncryptionPolicy { included_paths: paths, format_version }))
}

/// The `clientEncryptionPolicy` member as reads show it.
pub(super) fn to_json(policy: &ClientEncryptionPolicy) -> Value {
    let entry = |entry: &EncryptedPath| {
        json!({
            "path": entry.path.as_str(),
            "clientEncryptionKeyId": entry.key_id,
            "encryptionType": entry.encryption.name(),
            "encryptionAlgorithm": ENCRYPTION_ALGORITHM,
        })
    };
    let paths: Vec<Value> = policy.included_paths.iter().map(entry).collect();
    json!({"includedPaths": paths, "policyFormatVersion": policy.format_version})
}

fn encrypted_path(value: &Value) -> Result<EncryptedPath, Invalid> {
    let entry = Members::of(value, "an included path of clientEncryptionPolicy")?;
    let text = entry.required_text("path")?;
    let path = PropertyPath::parse(text).ok().filter(|path| path.segments().len() == 1);
    let path = path.ok_or_else(|| entry.wrong("path", "the path of a top-level property, such as /name"))?;
    let key_id = entry.required_text("clientEncryptionKeyId")?;
    id::check_name(key_id)?;
    let encryption = entry.choice("encryptionType")?;
    let encryption =
        encryption.ok_or_else(|| entry.wrong("encryptionType", "'Deterministic' or 'Randomized'"))?;
    if entry.required_text("encryptionAlgorithm")? != ENCRYPTION_ALGORITHM {
        return Err(entry.wrong("encryptionAlgorithm", &format!("'{ENCRYPTION_ALGORITHM}'")));
    }
    Ok(EncryptedPath { path, key_id: key_id.to_owned(), encryption })
}

/// The id and the partition key address documents, so only a form that can be looked up will do for them.
fn check_special(
    entry: &EncryptedPath,
    format_version: u8,
    partition_key: &PartitionKeyDefinition,
) -> Result<(), Invalid> {
    let name = &entry.path.segments()[0];
    let is_id = &**name == "id";
    let is_key = partition_key.paths.iter().any(|path| path.segments().first() == Some(name));
    if !is_id && !is_key {
        return Ok(());
    }
    let role = if is_key { " which is part of the partition key" } else { "" };
    let path = excerpt(entry.path.as_str());
    if format_version < 2 {
        return Err(Invalid::new(format!(
            "Path: {path}{role} cannot be encrypted with PolicyFormatVersion: 1. Please use PolicyFormatVersion: 2."
        )));
    }
    if entry.encryption != EncryptionType::Deterministic {
        return Err(Invalid::new(format!(
            "Path: {path}{role} has to be encrypted with Deterministic type Encryption."
        )));
    }
    Ok(())
}
