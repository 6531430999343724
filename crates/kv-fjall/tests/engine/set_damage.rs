//! Damage of the set's files: noticed when opening, or when the damaged block is read; never a wrong answer, and never a reason to
//! refuse the start, a read of anything else, or a write.

use crate::fixture::{SHARD, copy_folder, count, open, small_set, view, write};
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

/// Opens a damaged folder: everything but the set is there, the set says that it is lost, and goes on when that is accepted.
fn lost(folder: &Path, what: &str) {
    let engine = FjallEngine::open(folder, small_set()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(engine.set_loss().is_some(), "{what}");
    assert_eq!(count(&engine), GROUPS, "{what}");
    assert!(matches!(scan(&engine, b'a'), Err(Error::SetLost { .. })), "{what}");
    write(&engine, GROUPS + 1, 10).unwrap();
    assert!(matches!(scan(&engine, b'a'), Err(Error::SetLost { .. })), "{what}: still not accepted");
    drop(engine);
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert!(engine.set_loss().is_some(), "{what}: it is not forgotten by a restart");
    engine.accept_set_loss().unwrap();
    assert_eq!(engine.set_loss(), None, "{what}");
    // What was added after the loss is there, twice because of the two directions; what was before is not.
    assert_eq!(scan(&engine, b'a').unwrap().len(), 2, "{what}");
    for number in GROUPS + 2..GROUPS + 100 {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert_eq!((engine.set_loss(), scan(&engine, b'a').unwrap().len()), (None, 2 * 99), "{what}");
    engine.check_files().unwrap();
}

/// Harms a copy of a folder.
fn harm(victim: &Path, what: &str, harm: impl FnOnce(&Path)) {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(victim, copy.path());
    harm(copy.path());
    lost(copy.path(), what);
}

#[test]
fn another_file_than_was_written_is_noticed() {
    let folder = victim();
    let path = folder.path();
    let name = largest(path).strip_prefix(path).unwrap().to_path_buf();
    let whole = std::fs::read(path.join(&name)).unwrap();
    let put = |content: Vec<u8>| {
        let name = &name;
        move |copy: &Path| std::fs::write(copy.join(name), content).unwrap()
    };
    harm(path, "a missing run", |copy| std::fs::remove_file(copy.join(&name)).unwrap());
    harm(path, "a shorter run", put(whole[..whole.len() - 1].to_vec()));
    harm(path, "a longer run", put([&whole[..], &[0]].concat()));
    for from_end in [1, 21, 60] {
        let mut harmed = whole.clone();
        let place = harmed.len() - from_end;
        harmed[place] ^= 1;
        harm(path, "a harmed trailer or footer", put(harmed));
    }
    // A whole run of another folder under the same name.
    let other = victim_of(GROUPS - 1);
    harm(path, "a foreign run", put(std::fs::read(runs(other.path()).first().unwrap()).unwrap()));
    harm(path, "a foreign set", |copy| {
        std::fs::remove_dir_all(copy.join("set")).unwrap();
        copy_folder(&other.path().join("set"), &copy.join("set"));
    });
    let text = std::fs::read(path.join("set/RUNS")).unwrap();
    harm(path, "a torn list", |copy| std::fs::write(copy.join("set/RUNS"), &text[..text.len() - 2]).unwrap());
    harm(path, "a missing list", |copy| std::fs::remove_file(copy.join("set/RUNS")).unwrap());
    harm(path, "a missing folder", |copy| std::fs::remove_dir_all(copy.join("set")).unwrap());
    assert_eq!(count(&open(path)), GROUPS, "the folder itself was not touched");
}

/// Each bit of the blocks of a run, one at a time: whatever is answered is right, and a check finds the damage.
#[test]
fn a_damaged_block_is_never_a_wrong_answer() {
    let folder = victim();
    let run = largest(folder.path());
    let whole = std::fs::read(&run).unwrap();
    let open = || FjallEngine::open(folder.path(), small_set());
    let right = [b'a', b'b', b'c'].map(|family| scan(&open().unwrap(), family).unwrap());
    for place in (8..whole.len()).step_by(whole.len() / 40) {
        let mut harmed = whole.clone();
        harmed[place] ^= 1 << (place % 8);
        let copy = tempfile::tempdir().unwrap();
        copy_folder(folder.path(), copy.path());
        std::fs::write(copy.path().join(run.strip_prefix(folder.path()).unwrap()), &harmed).unwrap();
        // With these options nothing is left to merge, so that the run stays what it is.
        let engine = FjallEngine::open(copy.path(), small_set()).unwrap();
        if engine.set_loss().is_some() {
            continue;
        }
        let checked = engine.check_files();
        assert!(matches!(checked, Err(Error::Corruption { .. })), "{place}: {checked:?}");
        for (family, right) in [b'a', b'b', b'c'].into_iter().zip(&right) {
            match scan(&engine, family) {
                Ok(found) => assert_eq!(found, *right),
                Err(error) => assert!(matches!(error, Error::SetLost { .. }), "{error}"),
            }
        }
    }
}

fn scan(engine: &FjallEngine, family: u8) -> Result<Vec<Vec<u8>>, Error> {
    let range = KeyRange::prefix(&[family; FAMILY_BYTES]);
    let mut found = Vec::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
        let keys = block_on(view(engine, SHARD).scan_keys(&range, direction, limit))?.keys;
        found.extend(keys.iter().map(<[u8]>::to_vec));
    }
    Ok(found)
}

#[test]
fn damage_met_by_a_merge_or_a_reader_stops_nothing() {
    for is_met_by_reader in [false, true] {
        let folder = victim();
        let run = largest(folder.path());
        let mut harmed = std::fs::read(&run).unwrap();
        harmed[20] ^= 1;
        std::fs::write(&run, &harmed).unwrap();
        let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
        assert_eq!(engine.set_loss(), None, "nobody has met the damage yet");
        if is_met_by_reader {
            let met = [b'a', b'b', b'c'].into_iter().any(|family| scan(&engine, family).is_err());
            assert!(met, "one of the families is in the damaged block");
        }
        let mut number = GROUPS + 1;
        // The loss is known at once; the merger sets the files aside when it comes to it.
        let kept = folder.path().join("set.damaged");
        while engine.set_loss().is_none() || !kept.is_dir() {
            write(&engine, number, 10).unwrap();
            number += 1;
            assert!(number < 100 * GROUPS, "runs are merged, and damaged ones kept, sooner or later");
        }
        assert_eq!(engine.write_refusal(), None);
        engine.accept_set_loss().unwrap();
        let lost_count = scan(&engine, b'a').unwrap().len();
        write(&engine, number, 10).unwrap();
        assert_eq!(scan(&engine, b'a').unwrap().len(), lost_count + 2);
        engine.close().unwrap();
        let engine = open(folder.path());
        assert_eq!(scan(&engine, b'a').unwrap().len(), lost_count + 2);
        engine.check_files().unwrap();
        assert!(engine.set_loss().is_none());
    }
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
