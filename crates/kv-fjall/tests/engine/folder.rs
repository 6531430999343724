//! Folders: whose they are, which format they have, who holds them, and how much room is left.

use crate::fixture::{SHARD, count, open, view, write};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Engine, Error, Kind, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, OpenError, Options};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn refusal(folder: &Path) -> OpenError {
    FjallEngine::open(folder, Options::default()).err().unwrap()
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).close().unwrap();
    let format = folder.path().join("FORMAT");
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "astrarium storage format 3\n");
    std::fs::write(&format, "astrarium storage format 7\n").unwrap();
    let error = refusal(folder.path());
    assert!(matches!(error, OpenError::NewerFormat { found: 7, known: 3, .. }), "{error}");
    assert_eq!(error.kind(), Kind::Unavailable);
    let text = error.to_string();
    assert!(
        text.contains("format 7") && text.contains("up to 3") && text.contains("run the release"),
        "{text}"
    );
    for content in ["", "astrarium storage format 0\n", "astrarium storage format x\n", "\u{0}\u{0}"] {
        std::fs::write(&format, content).unwrap();
        assert!(matches!(refusal(folder.path()), OpenError::Damaged { .. }), "{content:?}");
    }
}

#[test]
fn a_foreign_folder_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    assert!(matches!(refusal(folder.path()), OpenError::NotOurs { .. }));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A folder at every stage of being made, as a crash could leave it.
#[test]
fn making_a_folder_can_be_cut_short() {
    let stages: &[&[(&str, &str)]] = &[
        &[],
        &[("LOCK", "")],
        &[("LOCK", "1"), ("ACKNOWLEDGED.new", "ackn")],
        &[("LOCK", "1"), ("ACKNOWLEDGED", "half"), ("FORMAT.new", "")],
        &[FORMAT, MARK],
        &[FORMAT, MARK, ("engine/lock", "")],
        &[FORMAT, MARK, ("engine/lock", ""), ("engine/0.jnl", "")],
        &[FORMAT, MARK, ("engine/lock", ""), ("engine/0.jnl", "\0\0\0"), ("engine/version", "")],
    ];
    for stage in stages {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in *stage {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let engine = open(folder.path());
        write(&engine, 1, 10).unwrap();
        drop(engine);
        assert_eq!(count(&open(folder.path())), 1, "{stage:?}");
    }
}

const FORMAT: (&str, &str) = ("FORMAT", "astrarium storage format 1\n");
const MARK: (&str, &str) = ("ACKNOWLEDGED", "acknowledged 0 6522df69\n");

#[test]
fn a_second_opening_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let error = refusal(folder.path());
    assert!(
        matches!(error, OpenError::Locked { holder: Some(holder), .. } if holder == std::process::id()),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
    engine.close().unwrap();
    // Closed, though not dropped: the folder is free.
    open(folder.path()).close().unwrap();
}

#[test]
fn a_view_outlives_closing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    write(&engine, 1, 10).unwrap();
    let held = view(&engine, SHARD);
    engine.close().unwrap();
    assert!(block_on(held.get(Space::Meta, &shard_key(SHARD, b"last"))).unwrap().is_some());
    let late = block_on(engine.view(SHARD, 0)).map(|view| view.state());
    assert!(matches!(late, Err(Error::Unavailable { .. })), "{late:?}");
    drop(held);
    assert_eq!(count(&open(folder.path())), 1);
}

#[test]
fn everything_can_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    for number in 1..=10 {
        write(&engine, number, 100).unwrap();
    }
    engine.close().unwrap();
    let engine = open(folder.path());
    // Ten bodies, ten log entries, one counter; the state of one shard and the group record; thirty keys of the set.
    assert_eq!(engine.check_files().unwrap().entry_count, 53);
    engine.close().unwrap();
    damage_largest_table(&folder.path().join("engine/keyspaces"));
    let found = FjallEngine::open(folder.path(), Options::default()).map(|engine| engine.check_files());
    assert!(!matches!(found, Ok(Ok(_))), "a damaged table is noticed");
}

fn damage_largest_table(keyspaces: &Path) {
    let tables = std::fs::read_dir(keyspaces).unwrap().flat_map(|keyspace| {
        std::fs::read_dir(keyspace.unwrap().path().join("tables")).unwrap().map(|table| table.unwrap().path())
    });
    let largest = tables.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    bytes[100] ^= 1;
    std::fs::write(largest, bytes).unwrap();
}

#[test]
fn a_nearly_full_disk_refuses_writes_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(1000));
    let measured = Arc::clone(&free);
    let options = Options {
        free_space_reserve_bytes: 400,
        free_space: Some(Arc::new(move |_: &Path| Ok(measured.load(Ordering::Relaxed)))),
        ..Options::default()
    };
    let engine = FjallEngine::open(folder.path(), options).unwrap();
    let key = shard_key(ShardId(1), b"key");
    let put = || {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        batch.put(Space::Body, key.clone(), Bytes::from_static(b"value"), Stamp::NONE);
        block_on(engine.commit(batch)).is_ok()
    };
    let delete = || {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        batch.delete(Space::Body, key.clone());
        batch.put(Space::Log, key.clone(), Bytes::new(), Stamp::NONE);
        block_on(engine.commit(batch)).is_ok()
    };
    for (free_bytes, can_put, can_delete) in
        [(1000, true, true), (399, false, true), (99, false, false), (400, true, true)]
    {
        free.store(free_bytes, Ordering::Relaxed);
        // The probe is asked again after a tenth of a second.
        wait_until(|| engine.write_refusal().is_none() == can_put && delete() == can_delete);
        assert_eq!(put(), can_put, "{free_bytes}");
        assert_eq!(delete(), can_delete, "{free_bytes}");
        assert!(block_on(view(&engine, ShardId(1)).get(Space::Body, &key)).is_ok(), "reads go on");
    }
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.put(Space::Body, key.clone(), Bytes::new(), Stamp::NONE);
    free.store(1, Ordering::Relaxed);
    wait_until(|| engine.write_refusal().is_some());
    let error = block_on(engine.commit(batch)).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable { reason } if reason.contains("1 bytes are free")),
        "{error}"
    );
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(5);
    while !condition() {
        assert!(Instant::now() < deadline, "it does not become so");
        std::thread::yield_now();
    }
}
