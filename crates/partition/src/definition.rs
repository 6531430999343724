//! The partition key definition of a container: which properties make the key and how it is hashed.
//!
//! A plain description with no behaviour of its own; `key` takes values out of documents by it and `effective` hashes
//! them by it. Not here: the rules on how many paths a kind may have (`catalog` validates what clients send).

use astrarium_value::PropertyPath;

/// How a container derives partition keys from its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeyDefinition {
    /// The properties whose values make the key, the outermost level first.
    pub paths: Vec<PropertyPath>,
    /// How the values become an effective partition key.
    pub kind: PartitionKind,
    /// The hash version as the client gave it, kept apart from its meaning so that reads show it unchanged.
    pub version: Option<HashVersion>,
    /// Set on containers migrated from times without partition keys: documents may then lack the key altogether.
    pub system_key: bool,
}

/// The ways to turn key values into an effective partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionKind {
    /// One hash over all values together.
    Hash,
    /// One hash per level, so that a prefix of the levels is a contiguous range (hierarchical keys).
    MultiHash,
    /// No hash: the order of the values themselves (legacy).
    Range,
}

/// The generations of the hash function of `PartitionKind::Hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashVersion {
    /// 32-bit hash over the first 100 characters of strings.
    V1,
    /// 128-bit hash over whole values.
    V2,
}

impl PartitionKeyDefinition {
    /// The hash version in effect: a `Hash` definition that names none means the first one, `MultiHash` came with the
    /// second and knows no other.
    pub fn hash_version(&self) -> HashVersion {
        match self.kind {
            PartitionKind::MultiHash => HashVersion::V2,
            PartitionKind::Hash | PartitionKind::Range => self.version.unwrap_or(HashVersion::V1),
        }
    }
}
