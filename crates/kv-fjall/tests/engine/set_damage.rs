//! Damage of the set's files: noticed when opening, or when the damaged block is read; never a wrong answer, and never a reason to
//! refuse the start, a read of anything else, or a write.

use crate::fixture::{SHARD, copy_folder, count, family, open, small_set, view, write};
use astrarium_kv::contract::block_on;
use astrarium_kv::{Direction, Engine, Error, KeyRange, ScanLimit};
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

const FAMILIES: [u8; 3] = [b'a', b'b', b'c'];

/// Opens a folder whose set is lost as a whole: everything else is there, the set says that it is lost, and goes on when that is
/// accepted.
fn all_lost(folder: &Path, what: &str) {
    let engine = FjallEngine::open(folder, small_set()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(engine.set_losses().len(), 1, "{what}");
    assert_eq!(count(&engine), GROUPS, "{what}");
    assert!(matches!(scan(&engine, b'a'), Err(Error::SetLost { .. })), "{what}");
    write(&engine, GROUPS + 1, 10).unwrap();
    assert!(matches!(scan(&engine, b'a'), Err(Error::SetLost { .. })), "{what}: still not accepted");
    drop(engine);
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert_eq!(engine.set_losses().len(), 1, "{what}: it is not forgotten by a restart");
    engine.accept_set_losses(&engine.set_losses()).unwrap();
    assert_eq!(engine.set_losses(), [], "{what}");
    // What was added after the loss is there, twice because of the two directions; what was before is not.
    assert_eq!(scan(&engine, b'a').unwrap().len(), 2, "{what}");
    for number in GROUPS + 2..GROUPS + 100 {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert_eq!((engine.set_losses().len(), scan(&engine, b'a').unwrap().len()), (0, 2 * 99), "{what}");
    engine.check_files().unwrap();
}

/// Opens a folder with a damaged run: its keys are lost and no others, until that is accepted. Tells which families answer.
fn some_lost(folder: &Path, right: &[Vec<Vec<u8>>], what: &str) -> [bool; 3] {
    let engine = FjallEngine::open(folder, small_set()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let losses = engine.set_losses();
    assert!(!losses.is_empty(), "{what}");
    assert_eq!(count(&engine), GROUPS, "{what}");
    let answering = families_answering(&engine, right);
    for (letter, is_answering) in FAMILIES.into_iter().zip(answering) {
        let is_concerned = losses.iter().any(|loss| loss.concerns(&family(letter)));
        assert_eq!(is_answering, !is_concerned, "{what}: {losses:?}");
    }
    assert!(answering.contains(&false), "{what}");
    write(&engine, GROUPS + 1, 10).unwrap();
    drop(engine);
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert_eq!(engine.set_losses(), losses, "{what}: it is not forgotten by a restart");
    engine.accept_set_losses(&losses).unwrap();
    assert_eq!(engine.set_losses(), [], "{what}");
    for family in FAMILIES {
        assert!(scan(&engine, family).unwrap().len() >= 2, "{what}: the new one is there");
    }
    engine.check_files().unwrap();
    for number in GROUPS + 2..GROUPS + 100 {
        write(&engine, number, 10).unwrap();
    }
    engine.close().unwrap();
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    assert_eq!(engine.set_losses(), [], "{what}");
    engine.check_files().unwrap();
    answering
}

/// Which families answer; what they answer is right.
fn families_answering(engine: &FjallEngine, right: &[Vec<Vec<u8>>]) -> [bool; 3] {
    let mut answering = [false; 3];
    for ((family, right), answers) in FAMILIES.into_iter().zip(right).zip(&mut answering) {
        match scan(engine, family) {
            Ok(found) => {
                assert_eq!(found, *right);
                let counted = block_on(view(engine, SHARD).count_keys(&self::family(family))).unwrap();
                assert_eq!(counted * 2, found.len() as u64, "what answers is counted, too");
                *answers = true;
            }
            Err(error) => assert!(matches!(error, Error::SetLost { .. }), "{error}"),
        }
    }
    answering
}

fn right_answers(folder: &Path) -> Vec<Vec<Vec<u8>>> {
    let engine = FjallEngine::open(folder, small_set()).unwrap();
    FAMILIES.map(|family| scan(&engine, family).unwrap()).to_vec()
}

/// Harms a copy of a folder.
fn harmed(victim: &Path, harm: impl FnOnce(&Path)) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(victim, copy.path());
    harm(copy.path());
    copy
}

#[test]
fn another_file_than_was_written_costs_its_keys() {
    let folder = victim();
    let path = folder.path();
    let right = right_answers(path);
    let name = largest(path).strip_prefix(path).unwrap().to_path_buf();
    let whole = std::fs::read(path.join(&name)).unwrap();
    let check = |what: &str, content: Option<&[u8]>| {
        let copy = harmed(path, |copy| match content {
            Some(content) => std::fs::write(copy.join(&name), content).unwrap(),
            None => std::fs::remove_file(copy.join(&name)).unwrap(),
        });
        some_lost(copy.path(), &right, what);
    };
    check("a missing run", None);
    check("a shorter run", Some(&whole[..whole.len() - 1]));
    check("a longer run", Some(&[&whole[..], &[0]].concat()));
    for place in [0, whole.len() - 1, whole.len() - 21, whole.len() - 60] {
        let mut harmed = whole.clone();
        harmed[place] ^= 1;
        check("a harmed beginning, trailer or footer", Some(&harmed));
    }
    // A whole run of another folder under the same name.
    let other = victim_of(GROUPS - 1);
    check("a foreign run", Some(&std::fs::read(runs(other.path()).first().unwrap()).unwrap()));
    assert_eq!(count(&open(path)), GROUPS, "the folder itself was not touched");
}

/// Each file of the set in turn: the families that it does not concern answer throughout.
#[test]
fn what_is_not_damaged_keeps_answering() {
    let folder = victim();
    let path = folder.path();
    let right = right_answers(path);
    let mut answered = 0;
    for run in runs(path) {
        let name = run.strip_prefix(path).unwrap();
        let copy = harmed(path, |copy| std::fs::remove_file(copy.join(name)).unwrap());
        let answering = some_lost(copy.path(), &right, &name.display().to_string());
        answered += answering.into_iter().filter(|answers| *answers).count();
    }
    assert!(answered > 0, "runs are cut, so that none of them has everything");
}

#[test]
fn without_a_list_of_runs_everything_is_lost() {
    let folder = victim();
    let path = folder.path();
    let other = victim_of(GROUPS - 1);
    let check = |what: &str, harm: &dyn Fn(&Path)| all_lost(harmed(path, harm).path(), what);
    check("a foreign set", &|copy| {
        std::fs::remove_dir_all(copy.join("set")).unwrap();
        copy_folder(&other.path().join("set"), &copy.join("set"));
    });
    let text = std::fs::read(path.join("set/RUNS")).unwrap();
    check("a torn list", &|copy| std::fs::write(copy.join("set/RUNS"), &text[..text.len() - 2]).unwrap());
    check("a missing list", &|copy| std::fs::remove_file(copy.join("set/RUNS")).unwrap());
    check("a missing folder", &|copy| std::fs::remove_dir_all(copy.join("set")).unwrap());
}

/// Bits of the blocks of a run, one at a time: whatever is answered is right, a check finds the damage, and once its loss is
/// accepted there is none.
#[test]
fn a_damaged_block_is_never_a_wrong_answer() {
    let folder = victim();
    let run = largest(folder.path());
    let whole = std::fs::read(&run).unwrap();
    let right = right_answers(folder.path());
    for place in (8..whole.len()).step_by(whole.len() / 40) {
        let mut altered = whole.clone();
        altered[place] ^= 1 << (place % 8);
        let name = run.strip_prefix(folder.path()).unwrap();
        let copy = harmed(folder.path(), |copy| std::fs::write(copy.join(name), &altered).unwrap());
        // With these options nothing is left to merge, so that the run stays what it is.
        let engine = FjallEngine::open(copy.path(), small_set()).unwrap();
        if engine.set_losses().is_empty() {
            let checked = engine.check_files();
            assert!(matches!(checked, Err(Error::Corruption { .. })), "{place}: {checked:?}");
        }
        let answering = families_answering(&engine, &right);
        let losses = engine.set_losses();
        assert_eq!(losses.is_empty(), answering == [true; 3], "{place}");
        for (letter, is_answering) in FAMILIES.into_iter().zip(answering) {
            let is_concerned = losses.iter().any(|loss| loss.concerns(&family(letter)));
            assert!(is_concerned || is_answering, "{place}: {losses:?}");
        }
        while !engine.set_losses().is_empty() {
            engine.accept_set_losses(&engine.set_losses()).unwrap();
            for family in FAMILIES {
                let _ = scan(&engine, family);
            }
        }
        if answering != [true; 3] {
            engine.check_files().unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}

fn scan(engine: &FjallEngine, letter: u8) -> Result<Vec<Vec<u8>>, Error> {
    let range = KeyRange::prefix(&family(letter));
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
        assert_eq!(engine.set_losses(), [], "nobody has met the damage yet");
        if is_met_by_reader {
            let met = FAMILIES.into_iter().any(|family| scan(&engine, family).is_err());
            assert!(met, "one of the families is in the damaged block");
        }
        let mut number = GROUPS + 1;
        // The loss is known at once; the merger sets the file aside when it comes to it.
        let kept = folder.path().join("set.damaged");
        while engine.set_losses().is_empty() || !kept.is_dir() {
            write(&engine, number, 10).unwrap();
            number += 1;
            assert!(number < 100 * GROUPS, "runs are merged, and damaged ones kept, sooner or later");
        }
        assert_eq!(engine.write_refusal(), None);
        engine.accept_set_losses(&engine.set_losses()).unwrap();
        assert_eq!(engine.set_losses(), []);
        let left = FAMILIES.map(|family| scan(&engine, family).unwrap().len());
        assert!(left.iter().sum::<usize>() > 2 * GROUPS as usize, "one block is lost, and not the rest");
        write(&engine, number, 10).unwrap();
        assert_eq!(scan(&engine, b'a').unwrap().len(), left[0] + 2);
        engine.close().unwrap();
        let engine = open(folder.path());
        assert_eq!(scan(&engine, b'a').unwrap().len(), left[0] + 2);
        engine.check_files().unwrap();
        assert_eq!(engine.set_losses(), []);
    }
}

#[test]
fn every_damaged_file_is_kept() {
    let folder = victim();
    let mut harmed = Vec::new();
    for run in runs(folder.path()).into_iter().rev().take(3) {
        let mut bytes = std::fs::read(&run).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&run, &bytes).unwrap();
        harmed.push((run.file_name().unwrap().to_owned(), bytes));
    }
    let engine = FjallEngine::open(folder.path(), small_set()).unwrap();
    let kept = |name: &std::ffi::OsStr| {
        let mut times = std::fs::read_dir(folder.path().join("set.damaged")).into_iter().flatten();
        times.find_map(|time| std::fs::read(time.unwrap().path().join(name)).ok())
    };
    for _ in 0..100 {
        // Each is met when nothing before it is lost.
        for family in FAMILIES {
            let _ = scan(&engine, family);
        }
        engine.accept_set_losses(&engine.set_losses()).unwrap();
    }
    for (name, bytes) in harmed {
        assert!(kept(&name) == Some(bytes), "{}", name.display());
    }
    engine.check_files().unwrap();
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
