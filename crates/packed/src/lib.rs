//! The packed set: sorted keys, many and small, in prefix-compressed blocks.
//!
//! A log-structured merge tree for keys (index entries): an entry of a general store for each key would cost more than everything
//! else a commit does.
//! - A commit group gives all its changes as one sorted block (`group_block`), which its engine journals ([`Journal`]) and which,
//!   as it stands, is a segment in memory; segments in memory are merged as they grow many (`policy`).
//! - When they hold enough, they are written into a run, a blob ([`Blobs`]) of blocks with an index and a Bloom filter
//!   (`stored`), and the journal may forget the groups; runs are merged as they grow many (`merger`).
//!
//! A reader has a [`SetView`], segments the newest first, over which cursors (`cursor`) are merged (`merge`).
//! In: the changes of groups, in order. Out: keys in order, counts, estimates.
//! Invariants
//! - What was acknowledged is in a run that the manifest names (`manifest`), or in the journal; never only in memory.
//! - Readers and the committer never wait for a merge, except that the committer waits while memory is full.
//! - A view, once given out, stays valid: segments do not change, and blobs go when nobody holds them any more.
//!
//! Not here: when groups are written, where bytes live, what keys mean.

mod blobs;
mod block;
mod bloom;
mod builder;
mod cache;
mod control;
mod cursor;
mod dropped;
mod families;
mod group_block;
mod head;
mod index;
mod intersect;
mod lost;
mod manifest;
mod merge;
mod merger;
mod order;
mod policy;
mod quarantine;
mod recovery;
mod replica;
mod rewrite;
mod run;
mod segment;
mod stored;
mod varint;
mod view;

pub use blobs::{Blob, BlobWriter, Blobs, MemoryBlobs, ReplaceError};
pub use control::Control;
pub use group_block::{GroupBlock, KeyAction, KeyChange, Origin, PackedChanges};
pub use lost::{BadBlock, DamageSignal, LostRange};
pub use manifest::{NAME as MANIFEST_NAME, empty_manifest, lost_manifest, tells_of_loss, without_losses};
pub use merger::{Merger, Publisher};
pub use recovery::{Journal, Recovered, Source, merged_group, recover};
pub use replica::Replica;
pub use view::{SetStats, SetView, Visit};

/// Bytes that keys are counted by: all keys that begin with the same so many bytes are one family.
pub const FAMILY_BYTES: usize = 16;

/// Bytes of an entry's value at most.
pub const VALUE_BYTES_MAX: usize = 1024;

/// Whose set it is. It stands in the manifest and in the checksum of every group's block, so that foreign ones are noticed.
pub type OwnerId = [u8; 16];

/// Why the set does not answer, or does not go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Stored bytes are not what was written.
    #[error("{what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// A block is not what was written; the keys that it held are told.
    #[error("{}", .0.range.what)]
    BadBlock(Box<BadBlock>),
    /// Keys of the range are lost, and somebody may still rely on them.
    #[error("{what}")]
    Lost {
        /// What was found.
        what: String,
    },
    /// The system refuses, or the set is closed; it may be tried again.
    #[error("{reason}")]
    Unavailable {
        /// What happened.
        reason: String,
    },
}

/// How the set is packed. The defaults are for everyone; tests take small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetOptions {
    /// Changes kept in memory, in bytes as packed, before they are written into a run. While a run is being written, up
    /// to three times as much may gather before commits wait.
    pub memory_bytes: u64,
    /// How many segments in memory of about one size are merged into one.
    pub memory_fan: usize,
    /// How many runs of about one size are merged into one.
    pub run_fan: usize,
    /// Bytes of a block: what is read at once. At most 24 KiB.
    pub block_bytes: usize,
    /// Bytes of a segment, about: larger runs are cut, and merged a few segments at a time.
    pub segment_bytes: u64,
}

impl Default for SetOptions {
    fn default() -> SetOptions {
        SetOptions {
            memory_bytes: 8 << 20,
            memory_fan: 8,
            run_fan: 4,
            block_bytes: 8 << 10,
            segment_bytes: 64 << 20,
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::Damaged { what: what.to_owned() }
}

fn closed() -> Error {
    Error::Unavailable { reason: "the storage is closed".to_owned() }
}
