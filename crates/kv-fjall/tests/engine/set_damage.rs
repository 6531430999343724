//! Damage of the set's files: noticed when opening, or when the damaged block is read; never a wrong answer.

use crate::fixture::{copy_folder, count, open, small_set, write};
use astrarium_kv::contract::block_on;
use astrarium_kv::{Direction, Engine, Error, FAMILY_BYTES, KeyRange, ScanLimit};
use astrarium_kv_fjall::{FjallEngine, OpenError, Options};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const GROUPS: u64 = 200;

/// A closed folder with some runs, and nothing left to merge.
fn victim() -> TempDir {
    victim_of(GROUPS)
}

fn victim_of(groups: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for number in 1..=groups {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    // Closing has written a last run, which may be one too many.
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    engine.wait_until_merged().unwrap();
    engine.close().unwrap();
    folder
}

fn runs(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("set")).unwrap().map(|file| file.unwrap().path());
    let mut runs: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "run")).collect();
    runs.sort_by_key(|path| std::fs::metadata(path).unwrap().len());
    runs
}

fn largest(folder: &Path) -> PathBuf {
    runs(folder).pop().unwrap()
}

fn refused(folder: &Path, what: &str) {
    let error = FjallEngine::open(folder, Options::default()).err().expect(what);
    assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error}");
}

#[test]
fn another_file_than_was_written_is_noticed() {
    let folder = victim();
    let path = folder.path();
    let run = largest(path);
    let whole = std::fs::read(&run).unwrap();
    std::fs::remove_file(&run).unwrap();
    refused(path, "a missing run");
    std::fs::write(&run, &whole[..whole.len() - 1]).unwrap();
    refused(path, "a shorter run");
    std::fs::write(&run, [&whole[..], &[0]].concat()).unwrap();
    refused(path, "a longer run");
    for from_end in [1, 9, 13, 21, 29, 60] {
        let mut harmed = whole.clone();
        let place = harmed.len() - from_end;
        harmed[place] ^= 1;
        std::fs::write(&run, &harmed).unwrap();
        refused(path, "a harmed trailer or footer");
    }
    // A whole run of another folder under the same name.
    let other = victim_of(GROUPS - 1);
    let foreign = std::fs::read(runs(other.path()).first().unwrap()).unwrap();
    std::fs::write(&run, foreign).unwrap();
    refused(path, "a foreign run");
    std::fs::write(&run, &whole).unwrap();
    let list = path.join("set/RUNS");
    let text = std::fs::read(&list).unwrap();
    std::fs::write(&list, &text[..text.len() - 2]).unwrap();
    refused(path, "a torn list");
    std::fs::remove_file(&list).unwrap();
    refused(path, "a missing list");
    std::fs::write(&list, &text).unwrap();
    assert_eq!(count(&open(path)), GROUPS, "with everything back in place nothing is missing");
}

/// Each bit of the blocks of a run, one at a time: whatever is answered is right, and a check finds the damage.
#[test]
fn a_damaged_block_is_never_a_wrong_answer() {
    let folder = victim();
    let run = largest(folder.path());
    let whole = std::fs::read(&run).unwrap();
    // With these options nothing is left to merge, so that the run stays what it is.
    let open = || FjallEngine::open(folder.path(), small_set());
    let right = [b'a', b'b', b'c'].map(|family| scan(&open().unwrap(), family).unwrap());
    for place in (8..whole.len()).step_by(whole.len() / 40) {
        let mut harmed = whole.clone();
        harmed[place] ^= 1 << (place % 8);
        std::fs::write(&run, &harmed).unwrap();
        let engine = match open() {
            Ok(engine) => engine,
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                continue;
            }
        };
        let checked = engine.check_files();
        assert!(matches!(checked, Err(Error::Corruption { .. })), "{place}: {checked:?}");
        for (family, right) in [b'a', b'b', b'c'].into_iter().zip(&right) {
            match scan(&engine, family) {
                Ok(found) => assert_eq!(found, *right),
                Err(error) => assert!(matches!(error, Error::Corruption { .. }), "{error}"),
            }
        }
    }
}

fn scan(engine: &FjallEngine, family: u8) -> Result<Vec<Vec<u8>>, Error> {
    let range = KeyRange::prefix(&[family; FAMILY_BYTES]);
    let mut found = Vec::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
        let keys = block_on(engine.snapshot().scan_keys(&range, direction, limit))?.keys;
        found.extend(keys.iter().map(<[u8]>::to_vec));
    }
    Ok(found)
}

#[test]
fn damage_met_by_a_merge_stops_writes_and_keeps_the_rest_readable() {
    let folder = victim();
    let run = largest(folder.path());
    let mut harmed = std::fs::read(&run).unwrap();
    harmed[20] ^= 1;
    std::fs::write(&run, &harmed).unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    let mut number = GROUPS + 1;
    while write(&engine, number, 10).is_ok() {
        number += 1;
        assert!(number < 100 * GROUPS, "runs are merged sooner or later");
    }
    assert!(engine.write_refusal().unwrap().contains("checksum"));
    let body = engine.snapshot().get(astrarium_kv::Space::Body, &GROUPS.to_be_bytes());
    assert!(block_on(body).unwrap().is_some(), "reads go on");
    engine.close().unwrap();
    // The damage is found again, by whoever meets it.
    assert!(open(folder.path()).check_files().is_err());
}

#[test]
fn leftovers_of_a_merge_are_removed() {
    let folder = victim();
    let leftover = folder.path().join("set/999999.run");
    std::fs::write(&leftover, "half a ru").unwrap();
    std::fs::write(folder.path().join("set/RUNS.new"), "astrarium se").unwrap();
    let engine = open(folder.path());
    assert!(!leftover.exists());
    assert_eq!(count(&engine), GROUPS);
}

#[test]
fn runs_that_know_more_than_the_journal_are_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for number in 1..=5 {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    copy_folder(folder.path(), copy.path());
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    for number in 6..=GROUPS {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    // The engine's files of an earlier time, with the set of a later one.
    std::fs::remove_dir_all(copy.path().join("set")).unwrap();
    copy_folder(&folder.path().join("set"), &copy.path().join("set"));
    let error = FjallEngine::open(copy.path(), Options::default()).err().unwrap();
    assert!(
        matches!(error, OpenError::LostWrites { acknowledged, found, .. } if acknowledged > found),
        "{error}"
    );
    let loss = FjallEngine::accept_loss(copy.path()).unwrap();
    assert!(loss.acknowledged > loss.found);
    open(copy.path()).close().unwrap();
}
