//! The change feed as writers see it: where a document stands in its shard's order of changes, and the history of those
//! containers that keep one.
//!
//! An entry is written with every commit from the first on, so that a reader can start at the beginning of a container. Each living
//! document has exactly one entry, at its last change. History has an entry for every change.
//! Not here: what a feed's reader sees (`store::changes`), the layout of keys (`keys::feed`, `keys::history`).

use astrarium_keys::feed;
use astrarium_keys::history::{self, HistoryEntry};
use astrarium_kv::{Space, Stamp, WriteBatch};
use bytes::Bytes;

/// Adds the entry of a written document; the engine fills in the LSN.
pub fn append(batch: &mut WriteBatch, sequence: u32, document_suffix: Bytes) {
    let key = feed::feed_key(batch.shard.0, 0, sequence);
    batch.put(Space::Log, key, document_suffix, Stamp::key_at(feed::LSN_OFFSET));
}

/// Removes the entry of a version that is no longer current.
pub fn remove(batch: &mut WriteBatch, lsn: u64, sequence: u32) {
    batch.delete(Space::Log, feed::feed_key(batch.shard.0, lsn, sequence));
}

/// Adds a change to the history; the engine fills in the LSN.
pub fn record(batch: &mut WriteBatch, sequence: u32, entry: &HistoryEntry) {
    let key = history::history_key(batch.shard.0, 0, sequence);
    batch.put(Space::Log, key, entry.encode(), Stamp::key_at(history::LSN_OFFSET));
}
