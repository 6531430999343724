//! Partition keys: their definition, their values, the effective keys they hash to, and ranges of those.
//!
//! - `definition`: which properties of a document make the key, and how it is hashed;
//! - `key`: the values, from a header or from a document;
//! - `effective`: the effective partition key, by which documents are placed; `murmur` has its hash functions;
//! - `range`: ranges of effective keys, slices of a container and where to split them.
//!
//! Clients compute the same effective keys to route requests, so every byte here is part of the protocol.
//! Not here: which range lives where (`database`), the bytes under which documents are stored (`keys`).

mod definition;
mod effective;
mod key;
mod murmur;
mod range;

pub use definition::{HashVersion, PartitionKeyDefinition, PartitionKind};
pub use effective::{EffectiveKey, EffectiveKeyError};
pub use key::{Component, PARTITION_KEY_BYTES_MAX, PartitionKey, PartitionKeyError};
pub use murmur::hash_128;
pub use range::EffectiveRange;
