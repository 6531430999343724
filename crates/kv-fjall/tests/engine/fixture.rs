//! What the tests share: groups with a number in them, and folders to do harm to.

use astrarium_kv::contract::{self, block_on, shard_key};
use astrarium_kv::{
    Direction, Engine, Error, Expectation, FAMILY_BYTES, KeyRange, ScanLimit, ShardId, Space, Stamp, View,
    WriteBatch,
};
use astrarium_kv_fjall::{FjallEngine, OpenError, Options, SetOptions};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SHARD: ShardId = ShardId(3);
pub(crate) const NO_LIMIT: ScanLimit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };

/// Opens a folder that nobody else has open. Tests beside this one start processes, and such a process has the lock of a folder that
/// was closed meanwhile until it runs its own program: so a lock is waited for.
pub(crate) fn open(folder: &Path) -> FjallEngine {
    for _ in 0..15_000 {
        match FjallEngine::open(folder, Options::default()) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the folder stays locked");
}

/// Options with which a few groups make a run, and a few runs are merged.
pub(crate) fn small_set() -> Options {
    let set =
        SetOptions { memory_bytes: 2000, memory_fan: 3, run_fan: 3, block_bytes: 300, segment_bytes: 900 };
    Options { set, ..Options::default() }
}

/// A view of a shard at its present epoch.
pub(crate) fn view(engine: &dyn Engine, shard: ShardId) -> Arc<dyn View> {
    let epoch = block_on(engine.shard(shard)).unwrap().epoch;
    block_on(engine.view(shard, epoch)).unwrap()
}

/// How many of the last numbers are in the family of keys that are removed again.
const PASSING: u64 = 10;

/// The family of a shard that a letter names.
pub(crate) fn family(letter: u8) -> [u8; FAMILY_BYTES] {
    contract::set_key(SHARD, &[letter; 8]).try_into().unwrap()
}

/// A key of the set that tells the number: one of many equal values, one of a value of its own, one that passes.
fn set_key(letter: u8, number: u64) -> Vec<u8> {
    let mut key = family(letter).to_vec();
    if letter == b'b' {
        key.extend(number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    }
    key.extend(number.to_be_bytes());
    key
}

/// Commits a batch of its own group: a body, a counter that is replaced, a log entry, keys of the set. All tell the
/// number.
pub(crate) fn write(engine: &FjallEngine, number: u64, body_bytes: usize) -> Result<(), Error> {
    let mut batch = WriteBatch::new(SHARD, 0);
    let key = shard_key(SHARD, &number.to_be_bytes());
    batch.expect(Space::Body, key.clone(), Expectation::Absent);
    batch.put(Space::Body, key.clone(), body(number, body_bytes), Stamp::NONE);
    let last = Bytes::copy_from_slice(&number.to_be_bytes());
    batch.put(Space::Meta, shard_key(SHARD, b"last"), last, Stamp::NONE);
    batch.put(Space::Log, shard_key(SHARD, &[0; 8]), Bytes::new(), Stamp::key_at(9));
    for family in [b'a', b'b', b'c'] {
        batch.set.added.push(&set_key(family, number));
    }
    if number > PASSING {
        batch.set.removed.push(&set_key(b'c', number - PASSING));
    }
    let version = block_on(engine.commit(batch))?;
    assert_eq!(version.0, number);
    Ok(())
}

/// Bytes without zeros, so that a hole is always seen.
fn body(number: u64, body_bytes: usize) -> Bytes {
    (0..body_bytes).map(|index| ((number as usize * 31 + index) % 251) as u8 + 1).collect()
}

/// How many of the numbered batches are there. Panics unless they are a prefix, in all spaces alike.
pub(crate) fn count(engine: &FjallEngine) -> u64 {
    let view = view(engine, SHARD);
    let bodies = scan_all(&*view, Space::Body);
    let count = bodies.len() as u64;
    for (number, (key, value)) in (1..).zip(&bodies) {
        assert_eq!(key[9..], u64::to_be_bytes(number));
        assert_eq!(*value, body(number, value.len()), "the value of {number}");
    }
    let last = block_on(view.get(Space::Meta, &shard_key(SHARD, b"last"))).unwrap();
    assert_eq!(last.map_or(0, |last| u64::from_be_bytes(last[..].try_into().unwrap())), count);
    assert_eq!(scan_all(&*view, Space::Log).len() as u64, count);
    assert_eq!(view.state().version, count);
    if engine.set_losses().is_empty() {
        check_set(&*view, count);
    }
    count
}

fn check_set(view: &dyn View, count: u64) {
    for (letter, first) in [(b'a', 1), (b'b', 1), (b'c', count.saturating_sub(PASSING) + 1)] {
        let mut expected: Vec<_> = (first..=count).map(|number| set_key(letter, number)).collect();
        expected.sort_unstable();
        let range = KeyRange::prefix(&family(letter));
        let found = block_on(view.scan_keys(&range, Direction::Forward, NO_LIMIT)).unwrap().keys;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "the keys of {count} batches");
        let counted = block_on(view.count_keys(&family(letter))).unwrap();
        assert_eq!(counted, expected.len() as u64);
    }
}

pub(crate) fn scan_all(view: &dyn View, space: Space) -> Vec<(Bytes, Bytes)> {
    let range = KeyRange::prefix(&shard_key(view.shard(), &[]));
    block_on(view.scan(space, &range, Direction::Forward, NO_LIMIT)).unwrap().entries
}

/// The journal of an engine that has only one.
pub(crate) fn journal(folder: &Path) -> PathBuf {
    folder.join("engine/0.jnl")
}

/// Sets the acknowledged mark, as a power cut can leave it: up to a second behind, without the note of the last group.
pub(crate) fn set_mark(folder: &Path, group: u64) {
    let _ = std::fs::remove_file(folder.join("LAST"));
    let checksum = crc32fast::hash(&group.to_be_bytes());
    std::fs::write(folder.join("ACKNOWLEDGED"), format!("acknowledged {group} {checksum:08x}\n")).unwrap();
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
