//! Damage of the journal: what was never acknowledged is dropped without a word, everything else is reported.

use crate::fixture::{count, journal, open, set_mark, write};
use astrarium_kv::Engine;
use astrarium_kv_fjall::{FjallEngine, OpenError, Options};
use proptest::prelude::*;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

const GROUPS: u64 = 20;
const END_MAGIC: &[u8] = b"FJL\x03";

/// A folder with [`GROUPS`] groups of one batch each, ended without closing, and what its journal holds.
struct Victim {
    folder: TempDir,
    bytes: Vec<u8>,
    /// Where each batch ends, the beginning of the file first.
    ends: Vec<usize>,
}

impl Victim {
    fn new() -> Victim {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        for number in 1..=GROUPS {
            write(&engine, number, 1000).unwrap();
        }
        drop(engine);
        // Far more than was written; behind it are the zeros of a new journal.
        let mut bytes = Vec::new();
        File::open(journal(folder.path())).unwrap().take(100_000).read_to_end(&mut bytes).unwrap();
        let is_end = |place: &usize| bytes[..*place].ends_with(END_MAGIC);
        let ends: Vec<_> = [0].into_iter().chain((1..bytes.len()).filter(is_end)).collect();
        assert_eq!(ends.len() as u64, GROUPS + 1);
        bytes.truncate(ends[GROUPS as usize]);
        Victim { folder, bytes, ends }
    }

    /// Gives the folder this journal and mark, and opens it.
    fn open(&self, journal_bytes: &[u8], mark: u64) -> Result<FjallEngine, OpenError> {
        std::fs::write(journal(self.folder.path()), journal_bytes).unwrap();
        set_mark(self.folder.path(), mark);
        FjallEngine::open(self.folder.path(), Options::default())
    }

    /// A place inside the batch, counted from its beginning.
    fn inside(&self, group: u64, offset: usize) -> usize {
        self.ends[group as usize - 1] + offset
    }
}

/// Offsets in a batch: a start of 13 bytes, then the item of the body with 21 bytes before its key of 8.
const ITEM_COUNT: usize = 1;
const KEY_LENGTH: usize = 13 + 11;
const VALUE_LENGTH: usize = 13 + 13;
const VALUE: usize = 13 + 21 + 8;

#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Opens with this many groups.
    Opens(u64),
    /// Refuses: acknowledged up to the first, found up to the second.
    Lost(u64, u64),
}

fn check(what: &str, mark: u64, harm: impl Fn(&Victim, &mut Vec<u8>), expected: Expected) {
    let victim = Victim::new();
    let mut bytes = victim.bytes.clone();
    harm(&victim, &mut bytes);
    match (victim.open(&bytes, mark), expected) {
        (Ok(engine), Expected::Opens(groups)) => {
            assert_eq!(count(&engine), groups, "{what}");
            write(&engine, groups + 1, 100).unwrap();
            drop(engine);
            assert_eq!(count(&open(victim.folder.path())), groups + 1, "{what}, after another commit");
        }
        (Err(OpenError::LostWrites { acknowledged, found, .. }), Expected::Lost(expected, there)) => {
            assert_eq!((acknowledged, found), (expected, there), "{what}");
            let left = std::fs::read(journal(victim.folder.path())).unwrap();
            assert_eq!(left, bytes, "{what}: a refusal changes nothing");
            accept(victim.folder.path(), expected, there);
        }
        (outcome, _) => panic!("{what}: {:?}, expected {expected:?}", outcome.err()),
    }
}

fn accept(folder: &Path, acknowledged: u64, found: u64) {
    let loss = FjallEngine::accept_loss(folder).unwrap();
    assert_eq!((loss.acknowledged, loss.found), (acknowledged, found));
    for round in 0..2 {
        let engine = open(folder);
        assert_eq!(count(&engine), found + round, "what was left is all there");
        write(&engine, found + round + 1, 100).unwrap();
    }
}

fn zero(bytes: &mut [u8], from: usize, length: usize) {
    let end = bytes.len().min(from + length);
    bytes[from..end].fill(0);
}

#[test]
fn harmless_ends_open() {
    check("nothing is wrong", 20, |_, _| {}, Expected::Opens(20));
    check("zeros follow", 20, |_, bytes| bytes.resize(1 << 20, 0), Expected::Opens(20));
    check("a torn last batch", 19, |_, bytes| bytes.truncate(bytes.len() - 300), Expected::Opens(19));
    check("a torn end mark", 19, |_, bytes| bytes.truncate(bytes.len() - 1), Expected::Opens(19));
    let start_only = |victim: &Victim, bytes: &mut Vec<u8>| bytes.truncate(victim.inside(20, 5));
    check("a torn start", 19, start_only, Expected::Opens(19));
    let hole = |victim: &Victim, bytes: &mut Vec<u8>| zero(bytes, victim.inside(20, VALUE), 512);
    check("zeros inside a value of the last batch", 19, hole, Expected::Opens(19));
    let lost_page = |victim: &Victim, bytes: &mut Vec<u8>| zero(bytes, victim.inside(20, 0), 512);
    check("zeros for the beginning of the last batch", 19, lost_page, Expected::Opens(19));
    check("garbage follows", 20, |_, bytes| bytes.extend([0xA5; 700]), Expected::Opens(20));
    let like_a_batch =
        |_: &Victim, bytes: &mut Vec<u8>| bytes.extend([END_MAGIC, &[1], &[0xFF; 40]].concat().repeat(50));
    check("garbage that looks like batches follows", 20, like_a_batch, Expected::Opens(20));
    for (what, offset) in
        [("item count", ITEM_COUNT), ("key length", KEY_LENGTH), ("value length", VALUE_LENGTH)]
    {
        let flip = move |victim: &Victim, bytes: &mut Vec<u8>| bytes[victim.inside(20, offset)] ^= 4;
        check(&format!("a flipped bit in the last {what}"), 19, flip, Expected::Opens(19));
    }
}

#[test]
fn loss_of_acknowledged_groups_is_refused() {
    let hole = |victim: &Victim, bytes: &mut Vec<u8>| zero(bytes, victim.inside(10, VALUE), 4096);
    check("a hole in the middle", 1, hole, Expected::Lost(20, 9));
    let hole = |victim: &Victim, bytes: &mut Vec<u8>| zero(bytes, victim.inside(10, 0), 4096);
    check("a hole where a batch begins", 1, hole, Expected::Lost(20, 9));
    for (what, offset) in [
        ("item count", ITEM_COUNT),
        ("key length", KEY_LENGTH),
        ("value length", VALUE_LENGTH),
        ("value", VALUE),
    ] {
        let flip = move |victim: &Victim, bytes: &mut Vec<u8>| bytes[victim.inside(15, offset)] ^= 4;
        check(&format!("a flipped bit in a {what}"), 1, flip, Expected::Lost(20, 14));
    }
    let cut_out = |victim: &Victim, bytes: &mut Vec<u8>| drop(bytes.drain(victim.ends[5]..victim.ends[7]));
    check("two batches cut out", 1, cut_out, Expected::Lost(20, 5));
    let last = |victim: &Victim, bytes: &mut Vec<u8>| zero(bytes, victim.inside(20, VALUE), 512);
    check("the last batch, acknowledged by the mark", 20, last, Expected::Lost(20, 19));
    check("a shorter file", 20, |victim, bytes| bytes.truncate(victim.ends[12]), Expected::Lost(20, 12));
    check("an empty file", 20, |_, bytes| bytes.clear(), Expected::Lost(20, 0));
}

#[test]
fn the_cut_bytes_are_kept() {
    let victim = Victim::new();
    // Inside the body, which has no zeros: those at the end are not kept.
    let torn = victim.inside(20, VALUE + 500);
    victim.open(&victim.bytes[..torn], 19).unwrap();
    let kept = std::fs::read(victim.folder.path().join("engine/0.jnl.damaged")).unwrap();
    assert_eq!(kept, victim.bytes[victim.ends[19]..torn]);
}

#[test]
fn tables_that_know_more_than_the_journal_are_a_loss() {
    let victim = Victim::new();
    // Closing moves everything into tables; then the journal of an earlier time comes back.
    let engine = victim.open(&victim.bytes, 20).unwrap();
    engine.close().unwrap();
    assert_eq!(
        std::fs::metadata(journal(victim.folder.path())).unwrap().len(),
        0,
        "nothing is left to replay"
    );
    let outcome = victim.open(&victim.bytes[..victim.ends[15]], 15);
    assert!(matches!(outcome.err(), Some(OpenError::LostWrites { acknowledged: 20, found: 15, .. })));
}

#[test]
fn a_mark_that_cannot_be_read_is_reported() {
    let victim = Victim::new();
    let mark = victim.folder.path().join("ACKNOWLEDGED");
    for harm in [Some("acknowledged 5 00000000\n"), None] {
        match harm {
            Some(text) => std::fs::write(&mark, text).unwrap(),
            None => std::fs::remove_file(&mark).unwrap(),
        }
        let error = FjallEngine::open(victim.folder.path(), Options::default()).err().unwrap();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
    let loss = FjallEngine::accept_loss(victim.folder.path()).unwrap();
    assert_eq!(loss.found, GROUPS);
    assert_eq!(count(&open(victim.folder.path())), GROUPS);
}

#[derive(Debug, Clone)]
enum Harm {
    Cut,
    Zero(usize),
    Flip(u8),
    Garbage(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Cut),
        (1..6000usize).prop_map(Harm::Zero),
        (0..8u8).prop_map(Harm::Flip),
        proptest::collection::vec(any::<u8>(), 1..2000).prop_map(Harm::Garbage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever happens to the journal: an engine that opens has everything the mark names, and a prefix of what was
    /// written; damage with a whole batch behind it never opens.
    #[test]
    fn an_opened_engine_lacks_nothing_acknowledged(harm in harm(), place in 0.0..1.0f64, mark in 1..=GROUPS) {
        let victim = Victim::new();
        let mut bytes = victim.bytes.clone();
        let at = (place * bytes.len() as f64) as usize;
        match harm {
            Harm::Cut => bytes.truncate(at),
            Harm::Zero(length) => zero(&mut bytes, at, length),
            Harm::Flip(bit) => bytes[at] ^= 1 << bit,
            Harm::Garbage(garbage) => bytes.splice(at.., garbage).for_each(drop),
        }
        let is_behind = bytes.len() == victim.bytes.len()
            && (1..=GROUPS as usize).rev().any(|group| {
                let batch = victim.ends[group - 1]..victim.ends[group];
                batch.start > at && bytes[batch.clone()] == victim.bytes[batch]
            });
        match victim.open(&bytes, mark) {
            Ok(engine) => {
                let found = count(&engine);
                prop_assert!(found >= mark, "{found} of {mark}");
                prop_assert!(!is_behind || found == GROUPS);
            }
            Err(OpenError::LostWrites { acknowledged, found, .. }) => prop_assert!(acknowledged > found),
            // fjall's own checksum of a batch, or a number that nothing of ours covers.
            Err(OpenError::Damaged { .. }) => prop_assert!(bytes.len() == victim.bytes.len()),
            Err(error) => panic!("{error}"),
        }
    }
}
