//! Every key and value layout we ever write: the on-disk format lives here and nowhere else.
//!
//! In: numbers, effective keys, ids. Out: bytes whose order is the order the readers need. Pure; no I/O.
//! Each kind of key has a file of its own; `docs/on-disk-format.md` describes the same bytes for people.
//! Invariants
//! - A key decodes to what made it, and no decoder panics on foreign bytes.
//! - Layouts are never changed, only added to: values carry a format byte, key kinds a tag.

pub mod account_state;
pub mod body;
pub mod document;
pub mod erasure;
pub mod feed;
pub mod history;
pub mod index_entry;
pub mod index_expiry;
pub mod index_state;
pub mod lease;
mod members;
pub mod number;
pub mod ordered;
pub mod record;
pub mod removed_database;
pub mod resharding;
pub mod rid;
pub mod tags;
pub mod trail;
pub mod unique;

pub use rid::Rid;

/// Stored bytes that no version of this program wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be decoded")]
pub struct Malformed {
    /// The kind of key or value.
    pub what: &'static str,
}

impl Malformed {
    /// A failure to decode `what`.
    pub const fn new(what: &'static str) -> Malformed {
        Malformed { what }
    }
}
