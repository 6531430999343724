//! Every file and folder of a data folder, one at a time: missing, empty, cut, altered, or of another folder. Whatever it is,
//! opening is refused by name, or everything acknowledged is there.

use crate::fixture::{SHARD, copy_folder, count, open, small_set, view, write};
use astrarium_kv::Engine;
use astrarium_kv::contract::shard_key;
use astrarium_kv_fjall::{FjallEngine, OpenError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How many batches the folders hold.
const GROUPS: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Missing,
    Empty,
    Half,
    Altered { part: usize },
    Foreign,
}

const HARMS: [Harm; 7] = [
    Harm::Missing,
    Harm::Empty,
    Harm::Half,
    Harm::Altered { part: 0 },
    Harm::Altered { part: 1 },
    Harm::Altered { part: 2 },
    Harm::Foreign,
];

/// How the engine of a folder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

/// A folder with several tables, runs, and, after a kill, a journal with groups that are in no table.
fn victim(end: End) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    for round in 0..4 {
        let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
        for _ in 0..GROUPS / 4 {
            number += 1;
            write(&engine, number, 200).unwrap();
        }
        if round == 3 && end == End::Killed {
            drop(engine);
        } else {
            engine.close().unwrap();
        }
    }
    folder
}

/// Everything in a folder, as paths below it.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().to_path_buf());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Harms one file; false where that changes nothing.
fn apply(harm: Harm, folder: &Path, name: &Path, other: &Path) -> bool {
    let (path, foreign) = (folder.join(name), other.join(name));
    if path.is_dir() {
        match harm {
            Harm::Missing => std::fs::remove_dir_all(&path).unwrap(),
            Harm::Foreign if foreign.is_dir() => {
                std::fs::remove_dir_all(&path).unwrap();
                copy_folder(&foreign, &path);
            }
            _ => return false,
        }
        return true;
    }
    let before = std::fs::read(&path).unwrap();
    let after = match harm {
        Harm::Missing => {
            std::fs::remove_file(&path).unwrap();
            return true;
        }
        Harm::Empty => Vec::new(),
        Harm::Half => before[..before.len() / 2].to_vec(),
        Harm::Altered { .. } if before.is_empty() => return false,
        Harm::Altered { part } => {
            let mut after = before.clone();
            after[(before.len() - 1) * part / 2] ^= 0x21;
            after
        }
        Harm::Foreign => match std::fs::read(&foreign) {
            Ok(foreign) => foreign,
            Err(_) => return false,
        },
    };
    std::fs::write(&path, &after).unwrap();
    after != before
}

/// Opens a harmed folder and tells what came of it.
fn outcome(folder: &Path) -> Result<FjallEngine, OpenError> {
    FjallEngine::open(folder, small_set())
}

fn check(end: End, harm: Harm, victim: &Path, name: &Path, other: &Path) {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(victim, copy.path());
    if !apply(harm, copy.path(), name, other) {
        return;
    }
    let what = format!("{end:?}, {}, {harm:?}", name.display());
    let engine = match outcome(copy.path()) {
        Ok(engine) => engine,
        Err(error) => {
            let text = error.to_string();
            let named = name.iter().next().unwrap().to_string_lossy();
            assert!(text.contains(&*named), "{what}: the message names the place: {text}");
            assert!(!text.contains("Error") && !text.contains("Poisoned"), "{what}: {text}");
            return;
        }
    };
    // A damaged block of a table is met when it is read, as an error and never as less.
    let Ok(found) = catch_unwind(AssertUnwindSafe(|| count(&engine))) else {
        // The index may have been set aside already, because of the read.
        let is_found = engine.check_files().is_err() || name.starts_with("set");
        assert!(is_found, "{what}: a check finds it too");
        return;
    };
    assert_eq!(found, GROUPS, "{what}: less is served without a word");
    write(&engine, GROUPS + 1, 100).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(engine);
    let again = outcome(copy.path()).unwrap_or_else(|error| panic!("{what}, opened again: {error}"));
    assert_eq!(count(&again), GROUPS + 1, "{what}, opened again");
}

fn check_all(end: End) {
    let (victim, other) = (victim(end), victim(end));
    let names = everything(victim.path());
    assert!(
        names.iter().filter(|name| name.parent().is_some_and(|parent| parent.ends_with("tables"))).count()
            > 5
    );
    for name in &names {
        for harm in HARMS {
            check(end, harm, victim.path(), name, other.path());
        }
    }
    assert_eq!(count(&open(victim.path())), GROUPS, "the victim itself was not touched");
}

#[test]
fn nothing_vanishes_from_a_closed_folder() {
    check_all(End::Closed);
}

#[test]
fn nothing_vanishes_from_a_killed_folder() {
    check_all(End::Killed);
}

/// Replaying a journal over tables makes them look like its own; they have to be judged before. Here no list of files tells them
/// apart, and the foreign tables count further than the journal begins, so that fjall would leave groups out.
#[test]
fn foreign_tables_do_not_become_own_ones_by_a_replay() {
    let folder = victim(End::Killed);
    let other = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(other.path(), small_set()).unwrap();
    for number in 1..GROUPS {
        write(&engine, number, 200).unwrap();
    }
    engine.close().unwrap();
    for name in ["engine/keyspaces", "engine/keyspaces/2", "engine/keyspaces/5"] {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(folder.path(), copy.path());
        std::fs::remove_file(copy.path().join("FILES")).unwrap();
        assert!(apply(Harm::Foreign, copy.path(), Path::new(name), other.path()));
        let error = outcome(copy.path()).err().expect("foreign tables are noticed").to_string();
        assert!(error.contains(name) && error.contains("another data folder"), "{name}: {error}");
    }
}

/// Ends a journal in its middle and begins another one there, as fjall does at 64 MB.
fn split_journal(folder: &Path) {
    let (first, second) = (folder.join("engine/0.jnl"), folder.join("engine/1.jnl"));
    let bytes = std::fs::read(&first).unwrap();
    let ends: Vec<_> = (1..=bytes.len()).filter(|end| bytes[..*end].ends_with(b"FJL\x03")).collect();
    let (before, after) = bytes.split_at(ends[ends.len() / 2]);
    std::fs::write(first, before).unwrap();
    std::fs::write(second, after).unwrap();
}

#[test]
fn a_sealed_journal_is_missed() {
    let folder = victim(End::Killed);
    split_journal(folder.path());
    for journal in ["engine/0.jnl", "engine/1.jnl"] {
        for harm in [Harm::Missing, Harm::Empty, Harm::Half] {
            let copy = tempfile::tempdir().unwrap();
            copy_folder(folder.path(), copy.path());
            assert!(apply(harm, copy.path(), Path::new(journal), folder.path()));
            let error = outcome(copy.path()).err().expect("the journal is missed");
            assert!(matches!(error, OpenError::LostWrites { .. }), "{error}");
            assert!(error.to_string().contains("engine/"), "{error}");
        }
    }
    assert_eq!(count(&open(folder.path())), GROUPS);
}

/// A folder of the first format, which knew neither a list of files nor whose they are. Its keys do not tell their shards, as they
/// have to since, so that they are looked for in fjall itself.
#[test]
fn an_older_folder_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats/v1")), folder.path());
    let engine = open(folder.path());
    assert_eq!(view(&engine, SHARD).state().version, 20);
    write(&engine, 21, 100).unwrap();
    drop(engine);
    let format = std::fs::read_to_string(folder.path().join("FORMAT")).unwrap();
    assert_eq!(format, "astrarium storage format 3\n");
    let engine = open(folder.path());
    assert_eq!(view(&engine, SHARD).state().version, 21);
    engine.check_files().unwrap();
    engine.close().unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), copy.path());
    let database = fjall::Database::builder(copy.path().join("engine")).open().unwrap();
    let bodies = database.keyspace("body", fjall::KeyspaceCreateOptions::default).unwrap();
    let old = (1..=20u64).filter(|number| bodies.contains_key(number.to_be_bytes()).unwrap()).count();
    assert_eq!(old, 20);
    assert!(bodies.contains_key(shard_key(SHARD, &21u64.to_be_bytes())).unwrap());
    std::fs::remove_dir_all(folder.path().join("engine/keyspaces/2")).unwrap();
    let error = outcome(folder.path()).err().expect("documents are missed");
    assert!(error.to_string().contains("engine/keyspaces/2 is missing"), "{error}");
}
