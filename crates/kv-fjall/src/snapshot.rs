//! A consistent view of the whole store, of which readers get one shard (`view`).
//!
//! In: reads of the contract. Out: answers at once, the bytes shared with our caches and fjall's memtables.
//! The committer opens one view after each group, and all readers until the next group share it: opening one in fjall
//! costs a lock and a map entry, cloning an `Arc` a few nanoseconds.
//! Invariant: the view ends fjall's wish to keep old versions when the last reader drops it.

use crate::error::reading;
use crate::health;
use crate::set;
use crate::store::{RESERVED_KEY, Store};
use astrarium_kv::contract::{KEY_BYTES_MAX, ScanCollector};
use astrarium_kv::{
    Direction, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyRange, Reply, ScanBatch, ScanLimit, ShardId,
    ShardState, Space,
};
use astrarium_packed::SetView;
use bytes::Bytes;
use fjall::{Guard, Readable};
use std::sync::Arc;

pub(crate) struct FjallSnapshot {
    /// Nothing once the engine is closed.
    view: Option<View>,
}

struct View {
    snapshot: Arc<fjall::Snapshot>,
    /// The last group that it shows.
    group: u64,
    store: Arc<Store>,
    set: Arc<SetView>,
}

impl FjallSnapshot {
    /// The store as it is now, after a group, with the set that belongs to it.
    pub(crate) fn open(store: Arc<Store>, group: u64, set: Arc<SetView>) -> FjallSnapshot {
        let snapshot = Arc::new(store.database.snapshot());
        FjallSnapshot { view: Some(View { snapshot, group, store, set }) }
    }

    /// The same view with the same keys of the set in other segments.
    pub(crate) fn with_set(&self, set: SetView) -> FjallSnapshot {
        let view = |view: &View| View {
            snapshot: Arc::clone(&view.snapshot),
            group: view.group,
            store: Arc::clone(&view.store),
            set: Arc::new(set),
        };
        FjallSnapshot { view: self.view.as_ref().map(view) }
    }

    /// What is given out after closing.
    pub(crate) fn closed() -> FjallSnapshot {
        FjallSnapshot { view: None }
    }

    pub(crate) fn shard(&self, shard: ShardId) -> Result<ShardState, Error> {
        let view = self.view()?;
        view.store.shard(&view.snapshot, shard)
    }

    pub(crate) fn store(&self) -> Result<&Arc<Store>, Error> {
        Ok(&self.view()?.store)
    }

    /// The set; an empty one once the engine is closed.
    pub(crate) fn set(&self) -> Arc<SetView> {
        self.view.as_ref().map(|view| Arc::clone(&view.set)).unwrap_or_default()
    }

    /// The last group that it shows; 0 once the engine is closed.
    pub(crate) fn group(&self) -> u64 {
        self.open_group().unwrap_or(0)
    }

    /// The last group that it shows; refused once the engine is closed.
    pub(crate) fn open_group(&self) -> Result<u64, Error> {
        Ok(self.view()?.group)
    }

    fn view(&self) -> Result<&View, Error> {
        self.view.as_ref().ok_or_else(health::closed)
    }
}

impl View {
    /// An answer of the set; damage is told to the merger, which sets the damaged files aside.
    fn of_set<T>(&self, answer: Result<T, astrarium_packed::Error>) -> Result<T, Error> {
        answer.map_err(|error| match set::told(error) {
            Error::Corruption { what } => {
                self.store.set_damage.raise(&what);
                Error::SetLost { what }
            }
            other => other,
        })
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        // No such key can have been written, and fjall does not take an empty or a very long one well.
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.starts_with(&RESERVED_KEY) {
            return Ok(None);
        }
        let values = &self.store.values;
        if let Some(value) = values.get(space, key, self.group) {
            return Ok(Some(value));
        }
        let value = self.snapshot.get(self.store.keyspace(space), key);
        let value = value.map_err(|error| self.told(reading(&error), space, key))?;
        Ok(value.map(|value| values.keep(space, key, Bytes::from(value), self.group)))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<ScanBatch, Error> {
        let end = (&range.end[..]).min(&RESERVED_KEY[..]);
        if &range.start[..] >= end {
            return Ok(ScanBatch::default());
        }
        let entries = self.snapshot.range(self.store.keyspace(space), &range.start[..]..end);
        let found = match direction {
            Direction::Forward => gather(entries, limit),
            Direction::Backward => gather(entries.rev(), limit),
        };
        found.map_err(|error| self.told(error, space, &range.start))
    }

    /// Remembers where a reader met damage.
    fn told(&self, error: Error, space: Space, key: &[u8]) -> Error {
        if matches!(error, Error::Corruption { .. }) {
            self.store.scrub.note_read(space, key);
        }
        error
    }
}

impl FjallSnapshot {
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        Reply::ready(self.view().and_then(|view| view.get(space, key)))
    }

    pub(crate) fn get_many(&self, space: Space, keys: &[Bytes]) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        Reply::ready(self.view().and_then(|view| keys.iter().map(|key| view.get(space, key)).collect()))
    }

    pub(crate) fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        Reply::ready(self.view().and_then(|view| view.scan(space, range, direction, limit)))
    }

    pub(crate) fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        Reply::ready(self.view().and_then(|view| view.of_set(set::scan(&view.set, range, direction, limit))))
    }

    pub(crate) fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        Reply::ready(
            self.view().and_then(|view| view.of_set(set::scan_entries(&view.set, range, direction, limit))),
        )
    }

    pub(crate) fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        Reply::ready(self.view().and_then(|view| view.of_set(view.set.count(family))))
    }

    pub(crate) fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        Reply::ready(self.view().and_then(|view| view.of_set(view.set.estimate(&range.start, &range.end))))
    }
}

fn gather(entries: impl Iterator<Item = Guard>, limit: ScanLimit) -> Result<ScanBatch, Error> {
    let mut collector = ScanCollector::new(limit);
    for entry in entries {
        if collector.is_full() {
            // The key tells that there is one more, and that it can be read, without loading its value.
            return entry.key().map(|_| collector.finish(true)).map_err(|error| reading(&error));
        }
        let (key, value) = entry.into_inner().map_err(|error| reading(&error))?;
        collector.push(Bytes::from(key), Bytes::from(value));
    }
    Ok(collector.finish(false))
}
