//! A consistent view of the whole store, of which readers get one shard (`view`).
//!
//! In: reads of the contract. Out: answers at once, the bytes shared with our caches and fjall's memtables.
//! The committer opens one view after each group, and all readers until the next group share it: opening one in fjall
//! costs a lock and a map entry, cloning an `Arc` a few nanoseconds.
//! Invariant: the view ends fjall's wish to keep old versions when the last reader drops it.

use crate::drops::Listed;
use crate::error::reading;
use crate::health;
use crate::set;
use crate::store::{RESERVED_KEY, Store};
use astrarium_kv::contract::{KEY_BYTES_MAX, ScanCollector, try_collect_values};
use astrarium_kv::{
    Direction, EntryBatch, Error, FAMILY_BYTES, Intersection, IntersectionLimit, KeyBatch, KeyRange, Reply,
    ScanBatch, ScanLimit, ShardId, ShardState, Space,
};
use astrarium_packed::SetView;
use bytes::Bytes;
use fjall::{Guard, Readable};
use std::borrow::Cow;
use std::sync::Arc;

pub(crate) struct FjallSnapshot {
    /// Nothing once the engine is closed.
    view: Option<SnapshotView>,
}

#[derive(Clone)]
struct SnapshotView {
    snapshot: Arc<fjall::Snapshot>,
    /// The last group that it shows.
    group: u64,
    store: Arc<Store>,
    set: Arc<SetView>,
    /// What it does not show, whatever is left of it.
    drops: Arc<Listed>,
}

impl FjallSnapshot {
    /// The store as it is now, after a group, with the set that belongs to it.
    pub(crate) fn open(store: Arc<Store>, group: u64, set: Arc<SetView>) -> FjallSnapshot {
        let snapshot = Arc::new(store.database.snapshot());
        let drops = store.drops.load();
        FjallSnapshot { view: Some(SnapshotView { snapshot, group, store, set, drops }) }
    }

    /// The same view with the same keys of the set in other segments.
    pub(crate) fn with_set(&self, set: SetView) -> FjallSnapshot {
        let view = |view: &SnapshotView| SnapshotView {
            snapshot: Arc::clone(&view.snapshot),
            group: view.group,
            store: Arc::clone(&view.store),
            set: Arc::new(set),
            drops: Arc::clone(&view.drops),
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

    fn view(&self) -> Result<&SnapshotView, Error> {
        self.view.as_ref().ok_or_else(health::closed)
    }

    /// See [`SnapshotView::read`].
    fn read<T: Send + 'static>(
        &self,
        value_count: usize,
        here: impl FnOnce(&SnapshotView) -> Result<T, Error>,
        apart: impl FnOnce() -> Box<dyn FnOnce(&SnapshotView) -> Result<T, Error> + Send>,
    ) -> Reply<Result<T, Error>> {
        match self.view() {
            Ok(view) => view.read(value_count, here, apart),
            Err(error) => Reply::ready(Err(error)),
        }
    }
}

impl SnapshotView {
    /// An answer of the set; damage is told to the merger, which takes the damaged block out of the way.
    fn of_set<T>(&self, answer: Result<T, astrarium_packed::Error>) -> Result<T, Error> {
        answer.map_err(|error| {
            self.store.set_damage.raise(&error);
            match set::told(error) {
                Error::Corruption { what } => Error::SetLost { what },
                other => other,
            }
        })
    }

    /// A read that may go to the disk: on this thread, or on one of the engine's if that may take long.
    fn read<T: Send + 'static>(
        &self,
        value_count: usize,
        here: impl FnOnce(&SnapshotView) -> Result<T, Error>,
        apart: impl FnOnce() -> Box<dyn FnOnce(&SnapshotView) -> Result<T, Error> + Send>,
    ) -> Reply<Result<T, Error>> {
        let readers = &self.store.readers;
        if !readers.are_apart() {
            return Reply::ready(readers.read(value_count, || here(self)));
        }
        let (view, read) = (self.clone(), apart());
        readers.read_apart(move || view.store.readers.read(value_count, || read(&view)))
    }

    /// Whether nothing can be at a key, or nothing that this view shows.
    fn is_void(&self, space: Space, key: &[u8]) -> bool {
        // No such key can have been written, and fjall does not take an empty or a very long one well.
        let is_refused = key.is_empty() || key.len() > KEY_BYTES_MAX || key.starts_with(&RESERVED_KEY);
        is_refused || self.drops.covered.covers(Some(space), key)
    }

    /// The value of a key that was read lately.
    fn known(&self, space: Space, key: &[u8]) -> Option<Bytes> {
        if self.is_void(space, key) { None } else { self.store.values.get(space, key, self.group) }
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        match self.known(space, key) {
            Some(value) => Ok(Some(value)),
            None => self.fetch(space, key),
        }
    }

    /// The value of a key that is not known.
    fn fetch(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if self.is_void(space, key) {
            return Ok(None);
        }
        let values = &self.store.values;
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
        if !self.drops.covered.is_empty() {
            return self.scan_pieces(space, range, direction, limit);
        }
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

    /// The same around what was dropped.
    fn scan_pieces(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<ScanBatch, Error> {
        let end = range.end.clone().min(Bytes::from_static(&RESERVED_KEY));
        let range = KeyRange { start: range.start.clone(), end };
        let pieces = self.drops.covered.cut_out(Some(space), &range, direction);
        let keyspace = self.store.keyspace(space);
        let entries =
            pieces.iter().map(|piece| self.snapshot.range(keyspace, &piece.start[..]..&piece.end[..]));
        let found = match direction {
            Direction::Forward => gather(entries.flatten(), limit),
            Direction::Backward => gather(entries.flat_map(Iterator::rev), limit),
        };
        found.map_err(|error| self.told(error, space, &range.start))
    }

    /// A range of the set without what was dropped, in pieces.
    fn set_pieces<'r>(&self, range: &'r KeyRange, direction: Direction) -> Cow<'r, [KeyRange]> {
        if self.drops.covered.is_empty() {
            return Cow::Borrowed(std::slice::from_ref(range));
        }
        Cow::Owned(self.drops.covered.cut_out(None, range, direction))
    }

    fn scan_keys(&self, range: &KeyRange, direction: Direction, limit: ScanLimit) -> Result<KeyBatch, Error> {
        let pieces = self.set_pieces(range, direction);
        self.of_set(set::scan(&self.set, &pieces, direction, limit))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<EntryBatch, Error> {
        let pieces = self.set_pieces(range, direction);
        self.of_set(set::scan_entries(&self.set, &pieces, direction, limit))
    }

    fn intersect_keys(
        &self,
        prefixes: &[Bytes],
        from: u64,
        limit: IntersectionLimit,
    ) -> Result<Intersection, Error> {
        // What is dropped is a shard or more of it than one list.
        if prefixes.iter().any(|prefix| self.drops.covered.covers(None, prefix)) {
            return Ok(Intersection::default());
        }
        self.of_set(set::intersect(&self.set, prefixes, from, limit))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Result<u64, astrarium_packed::Error> {
        let pieces = self.set_pieces(range, Direction::Forward);
        pieces.iter().map(|piece| self.set.estimate(&piece.start, &piece.end)).sum()
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Result<u64, astrarium_packed::Error> {
        let count = self.set.count(family)?;
        Ok(if self.drops.covered.covers(None, family) { 0 } else { count })
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
        if let Some(known) = self.view.as_ref().and_then(|view| view.known(space, key)) {
            return Reply::ready(Ok(Some(known)));
        }
        self.read(
            1,
            |view| view.fetch(space, key),
            || {
                let key = Bytes::copy_from_slice(key);
                Box::new(move |view| view.fetch(space, &key))
            },
        )
    }

    pub(crate) fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        let get_all = move |view: &SnapshotView, keys: &[Bytes]| {
            try_collect_values(keys.iter().map(|key| view.get(space, key)), byte_count_max)
        };
        self.read(
            keys.len(),
            |view| get_all(view, keys),
            || {
                let keys = keys.to_vec();
                Box::new(move |view| get_all(view, &keys))
            },
        )
    }

    pub(crate) fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        self.read(
            0,
            |view| view.scan(space, range, direction, limit),
            || {
                let range = range.clone();
                Box::new(move |view| view.scan(space, &range, direction, limit))
            },
        )
    }

    pub(crate) fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        self.read(
            0,
            |view| view.scan_keys(range, direction, limit),
            || {
                let range = range.clone();
                Box::new(move |view| view.scan_keys(&range, direction, limit))
            },
        )
    }

    pub(crate) fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        self.read(
            0,
            |view| view.scan_entries(range, direction, limit),
            || {
                let range = range.clone();
                Box::new(move |view| view.scan_entries(&range, direction, limit))
            },
        )
    }

    pub(crate) fn intersect_keys(
        &self,
        prefixes: &[Bytes],
        from: u64,
        limit: IntersectionLimit,
    ) -> Reply<Result<Intersection, Error>> {
        self.read(
            0,
            |view| view.intersect_keys(prefixes, from, limit),
            || {
                let prefixes = prefixes.to_vec();
                Box::new(move |view| view.intersect_keys(&prefixes, from, limit))
            },
        )
    }

    pub(crate) fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        let family = *family;
        let count = move |view: &SnapshotView| view.of_set(view.count_keys(&family));
        match self.view() {
            // After damage keys are read to be counted.
            Ok(view) if !view.set.is_counted() => view.read(0, count, move || Box::new(count)),
            view => Reply::ready(view.and_then(count)),
        }
    }

    pub(crate) fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        self.read(
            0,
            |view| view.of_set(view.estimate_keys(range)),
            || {
                let range = range.clone();
                Box::new(move |view| view.of_set(view.estimate_keys(&range)))
            },
        )
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
