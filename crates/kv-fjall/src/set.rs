//! The set: keys without values, packed.
//!
//! One key of fjall for each key of the set would cost more than everything else a commit does, so keys are packed:
//! - a commit group writes all its changes as one sorted, prefix-compressed value with its batch (`group_block`);
//! - that value, as it stands, becomes a part in memory, and parts in memory are merged as they grow many (`policy`);
//! - when they hold enough, they are written into a run, a file of blocks with an index (`run_file`), and the groups'
//!   values are not needed any more; runs are merged as they grow many.
//!
//! A reader sees a list of parts, the newest first (`parts`), and merges them as it goes (`cursor`, `merge`).
//! In: the changes of groups, in order. Out: keys in order, counts, estimates.
//! Invariants
//! - What was acknowledged is in a run that the list of runs names (`manifest`), or in fjall; never only in memory.
//! - Readers and the committer never wait for a merge, except that the committer waits while memory is full.
//! - A list, once given out, stays valid: parts do not change, and files go when nobody holds them any more.
//!
//! Not here: when groups are written (`committer`), what keys mean.

mod alarm;
mod aside;
mod block;
mod builder;
mod cache;
mod control;
mod cursor;
mod families;
mod filter;
mod group_block;
mod index;
mod manifest;
mod merge;
mod merger;
mod named;
mod part;
mod parts;
mod policy;
mod recovery;
mod run_file;
mod start;
mod varint;

pub(crate) use alarm::Alarm;
pub(crate) use aside::move_folder as move_aside;
pub(crate) use control::Control;
pub(crate) use group_block::{GroupBlock, Origin};
pub(crate) use merger::Merger;
pub(crate) use parts::Parts;
pub use parts::SetStats;
pub(crate) use recovery::{Recovered, Source, merged_group, recover};

use crate::health;
use astrarium_kv::Error;
use std::io;

/// How the set is packed. The defaults are for everyone; tests take small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetOptions {
    /// Changes kept in memory, in bytes as packed, before they are written into a run. While a run is being written, up
    /// to three times as much may gather before commits wait.
    pub memory_bytes: u64,
    /// How many parts in memory of about one size are merged into one.
    pub memory_fan: usize,
    /// How many runs of about one size are merged into one.
    pub run_fan: usize,
    /// Bytes of a block: what is read from a file at once. At most 24 KiB.
    pub block_bytes: usize,
}

impl Default for SetOptions {
    fn default() -> SetOptions {
        SetOptions { memory_bytes: 8 << 20, memory_fan: 8, run_fan: 4, block_bytes: 8 << 10 }
    }
}

fn damaged(what: &str) -> Error {
    Error::Corruption { what: what.to_owned() }
}

/// A file that cannot be read: damage, unless the system may well give it later.
fn unreadable(doing: &str, error: &io::Error) -> Error {
    let is_passing = error.kind() == io::ErrorKind::PermissionDenied || health::is_passing(error);
    if is_passing { failed(doing, error) } else { damaged(&format!("{doing} failed: {error}")) }
}

fn failed(doing: &str, error: &io::Error) -> Error {
    Error::Unavailable { reason: format!("{doing} failed: {error}") }
}
