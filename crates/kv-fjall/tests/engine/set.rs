//! The set, packed as small as it can be, so that a few keys make many blocks, parts and runs: the same keys, counts and
//! pages as in memory, through merges, kills and reopening, and for every snapshot held meanwhile.

use crate::fixture::{NO_LIMIT, SHARD, copy_folder, count, family, open, small_set, view, write};
use astrarium_kv::contract::{self, block_on};
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{Direction, Engine, Error, KeyList, KeyRange, ScanLimit, View, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, Options, SetOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: u16 = 400;

/// One of [`KEYS`] keys: of three families, with values of several lengths and numbers near and far.
fn key(index: u16) -> Vec<u8> {
    let mut key = family(b'a' + (index % 3) as u8).to_vec();
    match index % 4 {
        0 if index.is_multiple_of(8) => {
            key.extend(format!("a rather long text, of which {} more are alike", index % 16).bytes());
        }
        0 => key.extend(format!("value{}", index % 8).bytes()),
        1 => key.extend((u64::from(index) << 40).to_be_bytes()),
        2 => key.extend([index as u8 % 16; 3]),
        _ => {}
    }
    key.extend((u64::from(index) * u64::from(index)).to_be_bytes());
    key.extend(vec![0xFF; usize::from(index % 5 / 4)]);
    key
}

#[derive(Debug, Clone)]
enum Step {
    /// Keys of batches that are handed over together: those that are there go, the others come.
    Toggle(Vec<Vec<u16>>),
    /// Those of these keys that are there and have values get others.
    Replace(Vec<u16>, u8),
    View,
    Forget(prop::sample::Index),
    Settle,
    Reopen {
        close: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => vec(vec(0..KEYS, 0..60), 1..5).prop_map(Step::Toggle),
        2 => (vec(0..KEYS, 0..60), any::<u8>()).prop_map(|(keys, value)| Step::Replace(keys, value)),
        2 => Just(Step::View),
        1 => any::<prop::sample::Index>().prop_map(Step::Forget),
        2 => Just(Step::Settle),
        2 => any::<bool>().prop_map(|close| Step::Reopen { close }),
    ]
}

/// Bytes of the cache, and how the set is packed.
fn packing() -> impl Strategy<Value = (u64, SetOptions)> {
    let cache_bytes = prop_oneof![Just(0), Just(3000), Just(1 << 20)];
    (cache_bytes, 1..3000u64, 2..5usize, 2..4usize, 1..400usize, 200..6000u64).prop_map(
        |(cache_bytes, memory_bytes, memory_fan, run_fan, block_bytes, segment_bytes)| {
            (cache_bytes, SetOptions { memory_bytes, memory_fan, run_fan, block_bytes, segment_bytes })
        },
    )
}

fn open_packed((cache_bytes, set): (u64, SetOptions), folder: &Path) -> FjallEngine {
    FjallEngine::open(folder, Options { cache_bytes, set, ..Options::default() }).unwrap()
}

/// The first value of a key; two thirds of the keys have none.
fn value(index: u16) -> Vec<u8> {
    if index.is_multiple_of(3) { vec![index as u8; usize::from(1 + index % 50)] } else { Vec::new() }
}

fn replacements(keys: &[u16], value: u8, there: &BTreeSet<u16>) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    for index in keys.iter().copied().collect::<BTreeSet<_>>() {
        if there.contains(&index) && index.is_multiple_of(3) {
            batch.set.replace_entry(&key(index), &vec![value; usize::from(value % 60)]);
        }
    }
    batch
}

fn toggles(batches: &[Vec<u16>], there: &mut BTreeSet<u16>) -> Vec<WriteBatch> {
    let toggle = |keys: &Vec<u16>| {
        let mut batch = WriteBatch::new(SHARD, 0);
        for index in keys.iter().copied().collect::<BTreeSet<_>>() {
            if there.remove(&index) {
                batch.set.removed.push(&key(index));
            } else {
                there.insert(index);
                match &value(index)[..] {
                    [] => batch.set.added.push(&key(index)),
                    value => batch.set.add_entry(&key(index), value),
                }
            }
        }
        batch
    };
    batches.iter().map(toggle).collect()
}

fn commit_all(engine: &dyn Engine, batches: &[WriteBatch]) {
    let replies: Vec<_> = batches.iter().map(|batch| engine.commit(batch.clone())).collect();
    for reply in replies {
        block_on(reply).unwrap();
    }
}

fn ranges() -> Vec<KeyRange> {
    let mut ranges = vec![KeyRange::prefix(&contract::set_key(SHARD, &[]))];
    ranges.extend([b'a', b'b', b'c', b'd'].map(|letter| KeyRange::prefix(&family(letter))));
    for index in [0, 1, 2, 3, 40, 41, 57, 104, 201, 250, 333, 399] {
        let key = key(index);
        ranges.push(KeyRange::prefix(&key[..key.len() - 8]));
        ranges.push(KeyRange { start: key.clone().into(), end: [&key[..], &[0]].concat().into() });
        ranges.push(KeyRange { start: key.clone().into(), end: KeyRange::prefix(&key[..20]).end });
    }
    for (start, end) in [(0, 4), (8, 16), (5, 200), (130, 131), (44, 398), (3, 399)] {
        let (start, end) = (key(start).min(key(end)), key(start).max(key(end)));
        let mut beyond = end.clone();
        beyond.pop();
        ranges.push(KeyRange { start: start.clone().into(), end: end.into() });
        ranges.push(KeyRange { start: start.into(), end: beyond.into() });
    }
    ranges
}

fn compare(ours: &dyn View, theirs: &dyn View) {
    for range in ranges() {
        for direction in [Direction::Forward, Direction::Backward] {
            let limits = [
                NO_LIMIT,
                ScanLimit { entry_count_max: 3, ..NO_LIMIT },
                ScanLimit { byte_count_max: 100, ..NO_LIMIT },
            ];
            for limit in limits {
                let scan = |view: &dyn View| block_on(view.scan_keys(&range, direction, limit)).unwrap();
                assert_eq!(scan(ours), scan(theirs), "{range:?} {direction:?} {limit:?}");
                let entries =
                    |view: &dyn View| block_on(view.scan_entries(&range, direction, limit)).unwrap();
                assert_eq!(entries(ours), entries(theirs), "{range:?} {direction:?} {limit:?}");
            }
        }
        let estimate = |view: &dyn View| block_on(view.estimate_keys(&range)).unwrap();
        let (guess, number) = (estimate(ours), estimate(theirs));
        assert!(number == 0 || guess > 0, "{guess} for {number} in {range:?}");
    }
}

fn compare_counts(ours: &dyn View, theirs: &dyn View) {
    for letter in [b'a', b'b', b'c', b'd'] {
        let count = |view: &dyn View| block_on(view.count_keys(&family(letter))).unwrap();
        assert_eq!(count(ours), count(theirs), "family {letter}");
    }
}

type Pair = (Arc<dyn View>, Arc<dyn View>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_packed_set_is_the_set(steps in vec(step(), 1..40), packing in packing()) {
        let folder = tempfile::tempdir().unwrap();
        let open = || open_packed(packing, folder.path());
        let model = MemoryEngine::new();
        let mut there = BTreeSet::new();
        let mut engine = open();
        let mut views: Vec<Pair> = Vec::new();
        for step in steps {
            match step {
                Step::Toggle(batches) => {
                    let batches = toggles(&batches, &mut there);
                    commit_all(&engine, &batches);
                    commit_all(&model, &batches);
                }
                Step::Replace(keys, value) => {
                    let batch = replacements(&keys, value, &there);
                    commit_all(&engine, std::slice::from_ref(&batch));
                    commit_all(&model, &[batch]);
                }
                Step::View => views.push((view(&engine, SHARD), view(&model, SHARD))),
                Step::Forget(_) if views.is_empty() => {}
                Step::Forget(which) => drop(views.swap_remove(which.index(views.len()))),
                Step::Settle => engine.wait_until_merged().unwrap(),
                Step::Reopen { close } => {
                    views.clear();
                    if close {
                        engine.close().unwrap();
                    }
                    drop(engine);
                    engine = open();
                }
            }
            compare_counts(&*view(&engine, SHARD), &*view(&model, SHARD));
        }
        views.push((view(&engine, SHARD), view(&model, SHARD)));
        for (ours, theirs) in &views {
            compare(&**ours, &**theirs);
            compare_counts(&**ours, &**theirs);
        }
        views.clear();
        engine.check_files().unwrap();
        engine.close().unwrap();
        check_folder(folder.path());
    }

    /// Callers who add what is there and remove what is not spoil counts, and nothing else.
    #[test]
    fn careless_changes_are_harmless(
        rounds in vec((vec(0..KEYS, 0..50), vec(0..KEYS, 0..50)), 1..20),
        packing in packing(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let engine = open_packed(packing, folder.path());
        let model = MemoryEngine::new();
        for (added, removed) in rounds {
            let mut batch = WriteBatch::new(SHARD, 0);
            let (added, removed): (BTreeSet<_>, BTreeSet<_>) = (added.into_iter().collect(), removed.into_iter().collect());
            for index in &added {
                batch.set.added.push(&key(*index));
            }
            for index in removed.difference(&added) {
                batch.set.removed.push(&key(*index));
            }
            commit_all(&engine, &[batch.clone()]);
            commit_all(&model, &[batch]);
        }
        for _ in 0..2 {
            compare(&*view(&engine, SHARD), &*view(&model, SHARD));
            engine.wait_until_merged().unwrap();
        }
    }
}

/// Nothing but the list and the runs that it names is left after closing.
fn check_folder(folder: &Path) {
    let text = std::fs::read_to_string(folder.join("set/RUNS")).unwrap();
    let mut named: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("run ").or(line.strip_prefix("and ")))
        .map(|run| format!("{}.run", run.split(' ').next().unwrap()))
        .chain(["RUNS".to_owned()])
        .collect();
    named.sort();
    assert_eq!(files(folder), named);
}

fn files(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("set")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn add_numbers(engine: &dyn Engine, numbers: std::ops::Range<u64>) {
    let mut batch = WriteBatch::new(SHARD, 0);
    for number in numbers {
        let value = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        batch.set.added.push(&[&family(b'n')[..], &value.to_be_bytes()].concat());
    }
    commit_all(engine, &[batch]);
}

fn remove_all(engine: &dyn Engine) {
    let mut batch = WriteBatch::new(SHARD, 0);
    batch.set.removed = everything(&*view(engine, SHARD));
    commit_all(engine, &[batch]);
}

fn everything(view: &dyn View) -> KeyList {
    let range = KeyRange::prefix(&contract::set_key(SHARD, &[]));
    block_on(view.scan_keys(&range, Direction::Forward, NO_LIMIT)).unwrap().keys
}

#[test]
fn replaced_runs_go_when_nobody_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    add_numbers(&engine, 0..500);
    engine.wait_until_merged().unwrap();
    let held = view(&engine, SHARD);
    let held_files = files(folder.path());
    assert!(held_files.len() > 1, "a run was written: {held_files:?}");
    for round in 1..20 {
        add_numbers(&engine, round * 500..round * 500 + 500);
    }
    engine.wait_until_merged().unwrap();
    let is_there = |name: &String| files(folder.path()).contains(name);
    assert!(held_files.iter().all(is_there), "a snapshot keeps the files it reads");
    assert_eq!(everything(&*held).len(), 500);
    drop(held);
    assert!(!held_files.iter().all(is_there), "and lets them go");
    assert_eq!(everything(&*view(&engine, SHARD)).len(), 10_000);
    engine.close().unwrap();
    check_folder(folder.path());
}

#[test]
fn nothing_is_left_of_a_set_that_was_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for round in 0..10 {
        add_numbers(&engine, round * 500..round * 500 + 500);
    }
    engine.wait_until_merged().unwrap();
    let full = engine.stats().disk_bytes;
    remove_all(&engine);
    engine.wait_until_merged().unwrap();
    assert_eq!(everything(&*view(&engine, SHARD)).len(), 0);
    engine.close().unwrap();
    assert_eq!(files(folder.path()), ["RUNS"], "{full} bytes before");
}

/// As a crash leaves it right after the list of runs was replaced: the groups' blocks are still in fjall, and in runs.
#[test]
fn nothing_is_there_twice_after_a_crash_in_a_merge() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    for number in 1..=150 {
        write(&engine, number, 100).unwrap();
    }
    drop(engine);
    let merged = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), merged.path());
    let engine = FjallEngine::open(merged.path(), small_set()).unwrap();
    engine.wait_until_merged().unwrap();
    drop(engine);
    assert!(files(merged.path()).len() > 1, "something was merged");
    std::fs::remove_dir_all(folder.path().join("set")).unwrap();
    copy_folder(&merged.path().join("set"), &folder.path().join("set"));
    for _ in 0..2 {
        let engine = open(folder.path());
        assert_eq!(count(&engine), 150);
        engine.close().unwrap();
    }
}

/// A run cannot be written for a while: commits go on until memory is full, then are refused, then go on.
#[test]
fn a_merge_that_fails_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    // A folder where the next runs' files would be.
    let obstacles: Vec<_> = (1..=8).map(|number| folder.path().join(format!("set/{number}.run"))).collect();
    for obstacle in &obstacles {
        std::fs::create_dir(obstacle).unwrap();
    }
    let mut number = 1;
    let error = loop {
        match write(&engine, number, 10) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, Error::Unavailable { reason } if reason.contains("cannot be merged")),
        "{error}"
    );
    assert!(number > 20, "memory takes a few groups: {number}");
    assert_eq!(count(&engine), number - 1, "what was refused is not there");
    for obstacle in &obstacles {
        std::fs::remove_dir(obstacle).unwrap();
    }
    let deadline = Instant::now() + Duration::from_mins(5);
    while write(&engine, number, 10).is_err() {
        assert!(Instant::now() < deadline, "it goes on by itself");
        std::thread::yield_now();
    }
    assert_eq!(engine.write_refusal(), None);
    assert_eq!(count(&engine), number);
    engine.close().unwrap();
    assert_eq!(count(&open(folder.path())), number);
}

#[test]
fn opening_goes_on_where_a_kill_left_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    for round in 0..6u64 {
        let options = if round % 2 == 0 { Options::default() } else { small_set() };
        let engine = FjallEngine::open(folder.path(), options).unwrap();
        assert_eq!(count(&engine), number);
        // More groups than are kept apart when opening.
        for _ in 0..300 {
            number += 1;
            write(&engine, number, 10).unwrap();
        }
        if round == 4 {
            engine.close().unwrap();
        }
    }
    assert_eq!(count(&open(folder.path())), number);
}
