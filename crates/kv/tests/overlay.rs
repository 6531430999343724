//! The law of the overlay: over the snapshot before a commit it answers what the snapshot after the commit answers.
//!
//! Contents, batch, ranges and limits are random and drawn from few keys, so that they meet. Every question is put to an
//! overlay whose base answers at once and to one whose base answers later.

#![allow(clippy::unwrap_used)]

use astrarium_kv::contract::{self, block_on, shard_key};
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{
    Direction, Engine, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyRange, Overlay, Reply, ScanBatch,
    ScanLimit, ShardId, ShardState, Space, Stamp, View, WriteBatch,
};
use bytes::Bytes;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

const SHARD: ShardId = ShardId(1);
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// A base whose answers all come later, and that counts the scans.
struct Remote {
    base: Arc<dyn View>,
    scans: AtomicUsize,
}

impl Remote {
    fn new(base: Arc<dyn View>) -> Arc<Remote> {
        Arc::new(Remote { base, scans: AtomicUsize::new(0) })
    }

    fn count_scan(&self) {
        self.scans.fetch_add(1, Ordering::Relaxed);
    }
}

fn view(engine: &MemoryEngine) -> Arc<dyn View> {
    block_on(engine.view(SHARD, 0)).unwrap()
}

/// The same answer, after the first poll found nothing.
fn later<T: Send + Unpin + 'static>(reply: Reply<T>) -> Reply<T> {
    Reply::later(async move {
        let mut is_asked = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut is_asked, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        reply.await
    })
}

impl View for Remote {
    fn shard(&self) -> ShardId {
        self.base.shard()
    }

    fn state(&self) -> ShardState {
        self.base.state()
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        later(self.base.get(space, key))
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        later(self.base.get_many(space, keys, byte_count_max))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        self.count_scan();
        later(self.base.scan(space, range, direction, limit))
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        self.count_scan();
        later(self.base.scan_keys(range, direction, limit))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        self.count_scan();
        later(self.base.scan_entries(range, direction, limit))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        later(self.base.count_keys(family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        later(self.base.estimate_keys(range))
    }
}

#[derive(Debug, Clone)]
struct Write {
    space: Space,
    key: Bytes,
    /// Nothing to remove the key.
    value: Option<Bytes>,
    stamp_key: bool,
    stamp_value: bool,
}

/// Short keys, and keys with a version in them, which stamped writes of other versions make too.
fn key() -> impl Strategy<Value = Bytes> {
    let letters = || vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0), Just(0xFE)], 1..4);
    prop_oneof![
        2 => letters(),
        1 => (0..4u64, letters()).prop_map(|(version, tail)| [b"v", &version.to_be_bytes()[..], &tail].concat()),
    ]
    .prop_map(|rest| shard_key(SHARD, &rest))
}

fn space() -> impl Strategy<Value = Space> {
    // Mostly one, so that keys meet.
    prop_oneof![4 => Just(Space::Body), 1 => Just(Space::Meta), 1 => Just(Space::Log)]
}

fn write() -> impl Strategy<Value = Write> {
    let value = proptest::option::weighted(0.6, vec(any::<u8>(), 0..16).prop_map(Bytes::from));
    (space(), key(), value, any::<bool>(), any::<bool>()).prop_map(
        |(space, key, value, stamp_key, stamp_value)| Write { space, key, value, stamp_key, stamp_value },
    )
}

/// A key of the set, of one of three families.
fn set_key() -> impl Strategy<Value = Vec<u8>> {
    let family_letter = prop_oneof![Just(b'f'), Just(b'g'), Just(0xFE)];
    (family_letter, vec(0..3u8, 0..3)).prop_map(|(letter, rest)| [&family(letter)[..], &rest].concat())
}

/// The family of the shard that a letter names.
fn family(letter: u8) -> [u8; FAMILY_BYTES] {
    contract::set_key(SHARD, &[letter; 8]).try_into().unwrap()
}

fn range(all: &[u8], bound: impl Strategy<Value = Bytes> + Clone) -> impl Strategy<Value = KeyRange> {
    let all = KeyRange::prefix(all);
    let part = (bound.clone(), bound).prop_map(|(start, end)| KeyRange { start, end });
    prop_oneof![1 => Just(all), 3 => part]
}

fn limit() -> impl Strategy<Value = ScanLimit> {
    let count = prop_oneof![3 => 0..6usize, 1 => Just(usize::MAX)];
    let bytes = prop_oneof![1 => 0..80usize, 2 => Just(usize::MAX)];
    (count, bytes).prop_map(|(entry_count_max, byte_count_max)| ScanLimit { entry_count_max, byte_count_max })
}

fn batch(writes: &[Write], set_before: &BTreeSet<Vec<u8>>, toggled: &BTreeSet<Vec<u8>>) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    for Write { space, key, value, stamp_key, stamp_value } in writes {
        let Some(value) = value else {
            batch.delete(*space, key.clone());
            continue;
        };
        let key_offset = (*stamp_key && key.len() > 18).then_some(10);
        let stamp = Stamp { key_offset, value: *stamp_value && value.len() >= 8 };
        batch.put(*space, key.clone(), value.clone(), stamp);
    }
    for key in toggled {
        let list = if set_before.contains(key) { &mut batch.set.removed } else { &mut batch.set.added };
        list.push(key);
    }
    batch
}

/// Walks a range to its end: what `ask` gives must be the same, piece for piece, from both snapshots.
fn check_walk<T: PartialEq + std::fmt::Debug>(
    views: [&dyn View; 2],
    range: &KeyRange,
    direction: Direction,
    ask: impl Fn(&dyn View, &KeyRange) -> (T, Option<Bytes>, bool),
) {
    let mut rest = range.clone();
    loop {
        let [(found, last, more), (expected, _, expected_more)] = views.map(|view| ask(view, &rest));
        assert_eq!(found, expected, "{direction:?} {rest:?}");
        assert_eq!(more, expected_more, "more of {direction:?} {rest:?}");
        if !more {
            return;
        }
        let last = last.expect("a piece that has more has an entry");
        match direction {
            Direction::Forward => rest.start = [&last[..], &[0]].concat().into(),
            Direction::Backward => rest.end = last,
        }
    }
}

/// Panics unless both give the same pieces of a range of a space.
fn check_scan(views: [&dyn View; 2], space: Space, range: &KeyRange, direction: Direction, limit: ScanLimit) {
    check_walk(views, range, direction, |view, rest| {
        let piece = block_on(view.scan(space, rest, direction, limit)).unwrap();
        assert!(piece.entries.len() <= limit.entry_count_max.max(1));
        (piece.entries.clone(), piece.entries.last().map(|(key, _)| key.clone()), piece.more)
    });
}

/// Panics unless both give the same pieces of a range of the set.
fn check_scan_keys(views: [&dyn View; 2], range: &KeyRange, direction: Direction, limit: ScanLimit) {
    check_walk(views, range, direction, |view, rest| {
        let piece = block_on(view.scan_keys(rest, direction, limit)).unwrap();
        assert!(piece.keys.len() <= limit.entry_count_max.max(1));
        (piece.keys.clone(), piece.keys.last().map(Bytes::copy_from_slice), piece.more)
    });
    let [estimate, expected] = views.map(|view| block_on(view.estimate_keys(range)).unwrap());
    assert!(estimate > 0 || expected == 0, "an estimate of nothing is sure");
}

fn check_points(views: [&dyn View; 2], keys: &[Bytes]) {
    for space in Space::ALL {
        let values = |byte_count_max: usize| {
            let [found, expected] =
                views.map(|view| block_on(view.get_many(space, keys, byte_count_max)).unwrap());
            assert_eq!(found, expected, "{space:?} {byte_count_max}");
            found
        };
        for byte_count_max in [0, 3, 20] {
            values(byte_count_max);
        }
        let expected = values(usize::MAX);
        for (key, value) in keys.iter().zip(&expected) {
            assert_eq!(&block_on(views[0].get(space, key)).unwrap(), value, "{space:?} {key:?}");
        }
    }
    for family in [b'f', b'g', b'h', 0xFE].map(family) {
        let [found, expected] = views.map(|view| block_on(view.count_keys(&family)).unwrap());
        assert_eq!(found, expected, "{family:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_overlay_is_the_snapshot_after_the_commit(
        old_writes in vec(write(), 0..40),
        old_set in btree_set(set_key(), 0..25),
        writes in vec(write(), 0..30),
        toggled in btree_set(set_key(), 0..25),
        keys in vec(key(), 0..8),
        space_ranges in vec((range(&shard_key(SHARD, &[]), key().boxed()), limit()), 1..6),
        set_ranges in vec((range(&contract::set_key(SHARD, &[]), set_key().prop_map(Bytes::from).boxed()), limit()), 1..6),
    ) {
        let engine = MemoryEngine::new();
        block_on(engine.commit(batch(&old_writes, &BTreeSet::new(), &old_set))).unwrap();
        let before = view(&engine);
        let staged = batch(&writes, &old_set, &toggled);
        let local = Overlay::new(Arc::clone(&before), &staged, 2);
        let remote = Overlay::new(Remote::new(before), &staged, 2);
        prop_assert_eq!(block_on(engine.commit(staged)).unwrap().0, 2);
        let after = view(&engine);

        let keys: Vec<_> = keys.into_iter().chain(writes.iter().map(|write| write.key.clone())).collect();
        for overlay in [&local, &remote] {
            let views: [&dyn View; 2] = [overlay, &*after];
            check_points(views, &keys);
            for direction in DIRECTIONS {
                for (range, limit) in &space_ranges {
                    for space in Space::ALL {
                        check_scan(views, space, range, direction, *limit);
                    }
                }
                for (range, limit) in &set_ranges {
                    check_scan_keys(views, range, direction, *limit);
                }
            }
        }
    }
}

/// Removals that hide thousands of entries cost a handful of rounds, and a batch that lies elsewhere none.
#[test]
fn rounds_grow() {
    let engine = MemoryEngine::new();
    let key = |number: u32| shard_key(SHARD, &number.to_be_bytes());
    let entry = |number: u32| [&family(b'f')[..], &number.to_be_bytes()].concat();
    let (mut old, mut staged) = (WriteBatch::new(SHARD, 0), WriteBatch::new(SHARD, 0));
    for number in 0..4000 {
        old.put(Space::Body, key(number), Bytes::from_static(b"value"), Stamp::NONE);
        old.set.added.push(&entry(number));
        if (1000..3999).contains(&number) {
            staged.delete(Space::Body, key(number));
            staged.set.removed.push(&entry(number));
        }
    }
    block_on(engine.commit(old)).unwrap();
    let base = Remote::new(view(&engine));
    let overlay = Overlay::new(Arc::clone(&base) as Arc<dyn View>, &staged, 2);
    block_on(engine.commit(staged)).unwrap();
    let after = view(&engine);
    let check = |start: u32, end: u32, limit: (usize, usize), rounds_max: usize| {
        let range = KeyRange { start: key(start), end: key(end) };
        let entries = KeyRange { start: entry(start).into(), end: entry(end).into() };
        let limit = ScanLimit { entry_count_max: limit.0, byte_count_max: limit.1 };
        for direction in DIRECTIONS {
            base.scans.store(0, Ordering::Relaxed);
            check_scan([&overlay, &*after], Space::Body, &range, direction, limit);
            check_scan_keys([&overlay, &*after], &entries, direction, limit);
            let rounds = base.scans.load(Ordering::Relaxed);
            assert!(rounds <= rounds_max * 2, "{start}..{end} {limit:?}: {rounds} scans of the base");
        }
    };
    check(0, 1000, (1000, usize::MAX), 1);
    check(0, 4000, (usize::MAX, usize::MAX), 1);
    check(1000, 4000, (1, usize::MAX), 13);
    check(1000, 3999, (0, 0), 20);
    check(999, 3999, (1, 1), 20);
    check(3000, 4000, (1000, 1), 20);
}
