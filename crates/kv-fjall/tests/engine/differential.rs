//! The same random batches on fjall and on the specification give the same answers and leave the same data.

use crate::fixture::{NO_LIMIT, open, scan_all, view};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{
    Direction, Engine, Error, Expectation, KeyRange, ScanLimit, ShardId, Space, Stamp, View, WriteBatch,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// What follows the shard in a key.
fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few keys of several lengths, so that batches meet, and prefixes of each other are among them.
    (0..4u8, 0..3usize).prop_map(|(letter, length)| [vec![b'a'; length], vec![b'a' + letter; 9]].concat())
}

fn space() -> impl Strategy<Value = Space> {
    proptest::sample::select(&Space::ALL[..])
}

fn expectation() -> impl Strategy<Value = Expectation> {
    prop_oneof![
        3 => Just(Expectation::Absent),
        3 => Just(Expectation::Present),
        2 => (0..6u64).prop_map(Expectation::Version),
    ]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    let key_offset = prop_oneof![4 => Just(None), 1 => (8..13u32).prop_map(Some)];
    (key_offset, any::<bool>()).prop_map(|(key_offset, value)| Stamp { key_offset, value })
}

fn batch() -> impl Strategy<Value = WriteBatch> {
    let value = prop_oneof![Just(Bytes::new()), vec(any::<u8>(), 7..20).prop_map(Bytes::from)];
    let mutation = prop_oneof![
        3 => (space(), key(), value, stamp()).prop_map(|(space, key, value, stamp)| (space, key, Some((value, stamp)))),
        1 => (space(), key()).prop_map(|(space, key)| (space, key, None)),
    ];
    let expectations = vec((space(), key(), expectation()), 0..2);
    let head = (0..3u64, prop_oneof![6 => Just(0), 1 => Just(1u64)], any::<u16>());
    let fences = prop_oneof![8 => Just(None), 1 => (0..3u64).prop_map(Some)];
    (head, fences, expectations, vec(mutation, 0..5)).prop_map(|(head, fence, expectations, mutations)| {
        let shard = ShardId(head.0);
        let mut batch = WriteBatch::new(shard, head.1);
        batch.high_water = u64::from(head.2);
        batch.fences.extend(fence.map(ShardId));
        for (space, key, expectation) in expectations {
            batch.expect(space, shard_key(shard, &key), expectation);
        }
        for (space, key, put) in mutations {
            match put {
                Some((value, stamp)) => batch.put(space, shard_key(shard, &key), value, stamp),
                None => batch.delete(space, shard_key(shard, &key)),
            }
        }
        batch
    })
}

#[derive(Debug, Clone)]
enum Step {
    /// Handed over together, then awaited: fjall may group them.
    Commit(Vec<WriteBatch>),
    View,
    Reopen {
        close: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec(batch(), 1..6).prop_map(Step::Commit),
        2 => Just(Step::View),
        1 => any::<bool>().prop_map(|close| Step::Reopen { close }),
    ]
}

fn answers(engine: &dyn Engine, batches: &[WriteBatch]) -> Vec<String> {
    let replies: Vec<_> = batches.iter().map(|batch| engine.commit(batch.clone())).collect();
    let tell = |answer: Result<_, Error>| format!("{answer:?}");
    replies.into_iter().map(|reply| tell(block_on(reply))).collect()
}

pub(crate) fn compare(ours: &dyn View, theirs: &dyn View) {
    for space in Space::ALL {
        let entries = scan_all(ours, space);
        assert_eq!(entries, scan_all(theirs, space), "{space:?}");
        let keys: Vec<_> =
            entries.iter().rev().map(|(key, _)| key.clone()).chain([shard_key(ours.shard(), b"x")]).collect();
        for byte_count_max in [0, 30, usize::MAX] {
            let values = |view: &dyn View| block_on(view.get_many(space, &keys, byte_count_max)).unwrap();
            assert_eq!(values(ours), values(theirs), "{byte_count_max}");
        }
        let range = KeyRange { start: shard_key(ours.shard(), b"aaa"), end: shard_key(ours.shard(), b"c") };
        for limit in
            [ScanLimit { entry_count_max: 2, ..NO_LIMIT }, ScanLimit { byte_count_max: 30, ..NO_LIMIT }]
        {
            for direction in [Direction::Forward, Direction::Backward] {
                let scan = |view: &dyn View| block_on(view.scan(space, &range, direction, limit)).unwrap();
                assert_eq!(scan(ours), scan(theirs));
            }
        }
    }
}

/// Views of all shards.
fn views_of(ours: &dyn Engine, theirs: &dyn Engine) -> impl Iterator<Item = (Arc<dyn View>, Arc<dyn View>)> {
    (0..3).map(ShardId).map(move |shard| (view(ours, shard), view(theirs, shard)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn fjall_answers_like_memory(steps in vec(step(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let model = MemoryEngine::new();
        let mut engine = open(folder.path());
        let mut views: Vec<(Arc<dyn View>, Arc<dyn View>)> = Vec::new();
        for step in steps {
            match step {
                Step::Commit(batches) => prop_assert_eq!(answers(&engine, &batches), answers(&model, &batches)),
                Step::View => views.extend(views_of(&engine, &model)),
                Step::Reopen { close } => {
                    views.clear();
                    if close {
                        engine.close().unwrap();
                    }
                    drop(engine);
                    engine = open(folder.path());
                }
            }
            for shard in (0..4).map(ShardId) {
                prop_assert_eq!(block_on(engine.shard(shard)).unwrap(), block_on(model.shard(shard)).unwrap());
            }
        }
        views.extend(views_of(&engine, &model));
        for (ours, theirs) in &views {
            compare(&**ours, &**theirs);
        }
    }
}
