//! Dropped shards and prefixes: gone at once, also after a kill, and their space is given back while the engine runs.

use crate::fixture::{NO_LIMIT, open, small_set, view};
use astrarium_kv::contract::block_on;
use astrarium_kv::{
    CommitVersion, Direction, Engine, Error, KeyRange, ShardId, Space, Stamp, View, WriteBatch,
};
use astrarium_kv_fjall::FjallEngine;
use bytes::Bytes;
use std::path::Path;

const CATALOG: ShardId = ShardId(0);
const DOCUMENTS: u64 = 1_500;
const BODY_BYTES: usize = 1_000;

fn key(shard: u64, number: u64) -> Bytes {
    [&[1][..], &shard.to_be_bytes(), &number.to_be_bytes()].concat().into()
}

fn prefix(shard: u64) -> Bytes {
    [&[1][..], &shard.to_be_bytes()].concat().into()
}

/// Bytes that do not compress.
fn noise(seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(2) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..BODY_BYTES).map(next).collect()
}

fn fill(engine: &FjallEngine, shard: u64) {
    let numbers: Vec<u64> = (0..DOCUMENTS).collect();
    for numbers in numbers.chunks(200) {
        let mut batch = WriteBatch::new(ShardId(shard), 0);
        for number in numbers {
            batch.put(Space::Body, key(shard, *number), noise(*number), Stamp::NONE);
            batch.put(Space::Log, key(shard, *number), Bytes::from_static(b"log"), Stamp::NONE);
            let mut entry = shard.to_be_bytes().to_vec();
            entry.extend([9; 8]);
            entry.extend(number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            batch.set.added.push(&entry);
        }
        batch.set.added = batch.set.added.sorted();
        block_on(engine.commit(batch)).unwrap();
    }
}

fn drop_shard(engine: &FjallEngine, shard: u64) -> Result<CommitVersion, Error> {
    let mut batch = WriteBatch::new(CATALOG, 0);
    batch.drop_shard(ShardId(shard));
    batch.drop_prefix(Some(Space::Body), prefix(shard));
    batch.drop_prefix(Some(Space::Log), prefix(shard));
    batch.drop_prefix(None, Bytes::copy_from_slice(&shard.to_be_bytes()));
    block_on(engine.commit(batch))
}

/// Keys of a shard in the body, the log and the set.
fn counts(engine: &FjallEngine, shard: u64) -> [usize; 3] {
    counts_in(&*view(engine, ShardId(shard)))
}

fn counts_in(view: &dyn View) -> [usize; 3] {
    let shard = view.shard().0;
    let range = KeyRange::prefix(&prefix(shard));
    let scan =
        |space| block_on(view.scan(space, &range, Direction::Forward, NO_LIMIT)).unwrap().entries.len();
    let set = KeyRange::prefix(&shard.to_be_bytes());
    let keys = block_on(view.scan_keys(&set, Direction::Forward, NO_LIMIT)).unwrap().keys.len();
    [scan(Space::Body), scan(Space::Log), keys]
}

/// Bytes of all tables and runs; journals have a size of their own.
fn file_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if path.is_dir() {
            bytes += file_bytes(&path);
        } else if path.extension().is_none_or(|extension| extension != "jnl") {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    bytes
}

fn is_gone(engine: &FjallEngine, shard: u64) {
    let answers = [
        block_on(engine.shard(ShardId(shard))).map(drop),
        block_on(engine.view(ShardId(shard), 1)).map(drop),
        block_on(engine.commit(WriteBatch::new(ShardId(shard), 0))).map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
    }
}

fn reclaim(engine: &FjallEngine) {
    engine.wait_until_reclaimed();
    engine.wait_until_merged().unwrap();
    engine.wait_until_reclaimed();
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), []);
}

#[test]
fn the_disk_shrinks_while_the_engine_runs() {
    let folder = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for shard in 1..=3 {
        fill(&engine, shard);
    }
    let commits = engine.stats().commits;
    for shard in [1, 3] {
        drop_shard(&engine, shard).unwrap();
        is_gone(&engine, shard);
    }
    assert_eq!(engine.stats().commits, commits + 2, "a drop is one commit, whatever it drops");
    reclaim(&engine);
    let all = [DOCUMENTS as usize; 3];
    assert_eq!(counts(&engine, 2), all);
    is_gone(&engine, 1);
    let one = DOCUMENTS * BODY_BYTES as u64;
    let bytes = file_bytes(folder.path());
    assert!(bytes < one * 3 / 2, "{bytes} bytes are left of three shards with {one} each");
    drop(engine);
    let engine = open(folder.path());
    assert_eq!(counts(&engine, 2), all);
    is_gone(&engine, 1);
    is_gone(&engine, 3);
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), []);
}

/// However far giving space back is when the engine ends, nothing comes back into sight, and the next engine goes on.
#[test]
fn drops_outlive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for shard in 1..=6 {
        fill(&engine, shard);
        // A view from before keeps files, and so keeps the engine from finishing.
        let before = view(&engine, ShardId(shard));
        drop_shard(&engine, shard).unwrap();
        if shard % 2 == 0 {
            engine.wait_until_reclaimed();
        }
        assert_eq!(counts_in(&*before), [DOCUMENTS as usize; 3]);
        drop(before);
        drop(engine);
        engine = FjallEngine::open(folder.path(), small_set()).unwrap();
        for shard in 1..=shard {
            is_gone(&engine, shard);
        }
    }
    reclaim(&engine);
    drop(engine);
    let engine = open(folder.path());
    for shard in 1..=6 {
        is_gone(&engine, shard);
    }
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), [], "what was given back is not listed again");
    let bytes = file_bytes(folder.path());
    assert!(bytes < DOCUMENTS * BODY_BYTES as u64 / 2, "{bytes}");
}
