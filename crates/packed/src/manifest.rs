//! The manifest: which blobs are the set, and up to which commit group they hold its changes.
//!
//! ```text
//! astrarium set 2
//! folder 0123456789abcdef0123456789abcdef     whose runs these are; not in lists of format 1 of the folder
//! lost 6162 6163 what was found             keys from the first up to the second, in hexadecimal, are lost, and nobody has accepted it yet
//! uncounted                                   families have to be counted: what told of their growth is lost
//! sum 0123456789abcdef0123456789abcdef 3      what no segment says of the growth of a family; seldom
//! merged 1234
//! next 17
//! run 16 1048576 89abcdef 6162 6a6b           a run, the newest first: number, bytes, checksum, first key, beyond the last key
//! and 15 4096 01234567 6a6c 6a6d              the next segment of the same run
//! and 14 4096 01234567 6a6e 6a70 6a6f         the same of a segment whose keys below the last one given have been merged already
//! checksum 01234567              CRC-32 of the lines above
//! ```
//! In and out: the small blob `RUNS`, text, replaced whole.
//! Invariants
//! - What it names is on stable storage before it is; what it names no more is removed only afterwards.
//! - Changes of groups up to `merged` are in the runs, and count no more where they are still found elsewhere; changes
//!   of later groups are not in the runs. So whenever a crash comes, nothing is missing and nothing is there twice.
//! - The number of a run that was named is never used again.

use crate::Error;
use crate::families::Families;
use crate::lost::LostRange;
use crate::stored::SegmentRecord;
use crate::{Blobs, OwnerId, ReplaceError, damaged};
use std::fmt::Write as _;

/// The name of the small blob.
pub const NAME: &str = "RUNS";
const HEADER: &str = "astrarium set 2";
/// Runs of one segment each, whose keys it does not tell; all keys are lost or none.
const OLD_HEADER: &str = "astrarium set 1";
const LOST: &str = "lost";
const UNCOUNTED: &str = "uncounted";

/// The manifest of a set to which nothing was added, and whose first run has this number.
pub fn empty_manifest(owner: OwnerId, first_run: u64) -> Vec<u8> {
    Manifest { next: first_run, ..Manifest::empty(Some(owner)) }.print().into_bytes()
}

/// The manifest of a set that is begun anew because all its keys up to a group are lost.
pub fn lost_manifest(owner: OwnerId, merged: u64, first_run: u64, what: &str) -> Vec<u8> {
    let lost = vec![LostRange::whole(what)];
    Manifest { lost, merged, next: first_run, ..Manifest::empty(Some(owner)) }.print().into_bytes()
}

/// Whether a manifest tells of keys that are lost, and on which somebody may still rely.
pub fn tells_of_loss(manifest: &[u8]) -> bool {
    Manifest::decode(manifest).is_ok_and(|manifest| !manifest.lost.is_empty())
}

/// A manifest after its losses were accepted.
pub fn without_losses(manifest: &[u8]) -> Result<Vec<u8>, Error> {
    let manifest = Manifest::decode(manifest)?;
    Ok(Manifest { lost: Vec::new(), ..manifest }.print().into_bytes())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) owner: Option<OwnerId>,
    /// Keys that are missing, on which somebody may still rely.
    pub(crate) lost: Vec<LostRange>,
    /// Whether families have to be counted, because what told of their growth is lost.
    pub(crate) needs_count: bool,
    /// What no segment says of the growth of families.
    pub(crate) sums: Families,
    /// The last group whose changes are in the runs.
    pub(crate) merged: u64,
    /// The number of the next run.
    pub(crate) next: u64,
    /// The newest first.
    pub(crate) runs: Vec<Vec<SegmentRecord>>,
}

impl Manifest {
    /// Of an empty set.
    pub(crate) fn empty(owner: Option<OwnerId>) -> Manifest {
        Manifest {
            owner,
            lost: Vec::new(),
            needs_count: false,
            sums: Families::default(),
            merged: 0,
            next: 1,
            runs: Vec::new(),
        }
    }

    /// The manifest of a set, if it has one.
    pub(crate) fn read(blobs: &dyn Blobs) -> Result<Option<Manifest>, Error> {
        blobs.read(NAME)?.map(|bytes| Manifest::decode(&bytes)).transpose()
    }

    /// The manifest that these bytes are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest, Error> {
        let manifest = std::str::from_utf8(bytes).ok().and_then(Manifest::parse);
        manifest.ok_or_else(|| damaged("RUNS, the list of index runs, is not whole"))
    }

    fn parse(text: &str) -> Option<Manifest> {
        let (content, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let checksum = u32::from_str_radix(checksum.strip_prefix("checksum ")?, 16).ok()?;
        let mut lines = content.lines();
        if checksum != checksum_of(content) || ![HEADER, OLD_HEADER].contains(&lines.next()?) {
            return None;
        }
        let mut manifest = Manifest::empty(None);
        let mut line = lines.next()?;
        if let Some(owner) = line.strip_prefix("folder ") {
            manifest.owner = Some(parse_owner(owner)?);
            line = lines.next()?;
        }
        while let Some(lost) = line.strip_prefix(LOST) {
            manifest.lost.push(parse_lost(lost)?);
            line = lines.next()?;
        }
        if line == UNCOUNTED {
            manifest.needs_count = true;
            line = lines.next()?;
        }
        while let Some(sum) = line.strip_prefix("sum ") {
            let (family, sum) = sum.split_once(' ')?;
            manifest.sums.add(unhex(family)?[..].try_into().ok()?, sum.parse().ok()?);
            line = lines.next()?;
        }
        manifest.merged = line.strip_prefix("merged ")?.parse().ok()?;
        manifest.next = lines.next()?.strip_prefix("next ")?.parse().ok()?;
        for line in lines {
            match line.strip_prefix("run ") {
                Some(record) => manifest.runs.push(vec![parse_record(record)?]),
                None => manifest.runs.last_mut()?.push(parse_record(line.strip_prefix("and ")?)?),
            }
        }
        Some(manifest)
    }

    fn print(&self) -> String {
        let mut text = HEADER.to_owned();
        if let Some(owner) = self.owner {
            let _ = write!(text, "\nfolder {:032x}", u128::from_be_bytes(owner));
        }
        for LostRange { start, end, what } in &self.lost {
            let what = what.replace('\n', " ");
            let _ = write!(text, "\n{LOST} {} {} {what}", hex(start), hex(end));
        }
        if self.needs_count {
            let _ = write!(text, "\n{UNCOUNTED}");
        }
        for (family, sum) in self.sums.iter() {
            let _ = write!(text, "\nsum {} {sum}", hex(family));
        }
        let _ = write!(text, "\nmerged {}\nnext {}", self.merged, self.next);
        for run in &self.runs {
            for (position, SegmentRecord { number, byte_count, checksum, keys, from }) in
                run.iter().enumerate()
            {
                let word = if position == 0 { "run" } else { "and" };
                let _ = write!(text, "\n{word} {number} {byte_count} {checksum:08x}");
                if let Some((start, end)) = keys {
                    let _ = write!(text, " {} {}", hex(start), hex(end));
                }
                if !from.is_empty() {
                    let _ = write!(text, " {}", hex(from));
                }
            }
        }
        let checksum = checksum_of(&text);
        let _ = writeln!(text, "\nchecksum {checksum:08x}");
        text
    }

    /// Makes this the manifest, and everything written before lasting.
    pub(crate) fn replace(&self, blobs: &dyn Blobs) -> Result<(), ReplaceError> {
        blobs.replace(NAME, self.print().as_bytes())
    }
}

/// What follows the word; nothing follows it in the old format.
fn parse_lost(text: &str) -> Option<LostRange> {
    if text.is_empty() {
        return Some(LostRange::whole("index files were damaged"));
    }
    let mut words = text.strip_prefix(' ')?.splitn(3, ' ');
    let (start, end) = (unhex(words.next()?)?, unhex(words.next()?)?);
    Some(LostRange { start: start.into(), end: end.into(), what: words.next()?.to_owned() })
}

fn parse_record(text: &str) -> Option<SegmentRecord> {
    let mut words = text.split(' ');
    let (number, byte_count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let checksum = u32::from_str_radix(words.next()?, 16).ok()?;
    let keys = match words.next() {
        Some(start) => Some((unhex(start)?, unhex(words.next()?)?)),
        None => None,
    };
    let from = words.next().map_or(Some(Vec::new()), unhex)?;
    Some(SegmentRecord { number, byte_count, checksum, keys, from })
}

/// Two digits for each byte; a dash for none, so that words stay words.
fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text == "-" {
        return Some(Vec::new());
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Of 32 hexadecimal digits.
fn parse_owner(text: &str) -> Option<OwnerId> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

fn checksum_of(content: &str) -> u32 {
    crc32fast::hash(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBlobs;

    #[test]
    fn the_format_before_is_read() {
        let content = "astrarium set 1\nlost\nmerged 5\nnext 4\nrun 3 100 000000ab\nrun 1 200 000000cd";
        let text = format!("{content}\nchecksum {:08x}\n", checksum_of(content));
        let record = |number, byte_count, checksum| SegmentRecord {
            number,
            byte_count,
            checksum,
            keys: None,
            from: vec![],
        };
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.runs, [[record(3, 100, 0xAB)], [record(1, 200, 0xCD)]]);
        assert!(manifest.lost[0].overlaps(&[0], &[1]) && manifest.lost[0].overlaps(&[0xFE; 20], &[0xFF]));
    }

    #[test]
    fn only_whole_lists_count() {
        let blobs = MemoryBlobs::default();
        assert_eq!(Manifest::read(&blobs).unwrap(), None);
        let record = |number| {
            let keys = (number != 9).then(|| (vec![number as u8, 0xAB], vec![]));
            let from = if number == 3 { vec![4] } else { vec![] };
            SegmentRecord { number, byte_count: 1 << 40, checksum: 0xAB, keys, from }
        };
        let lost =
            LostRange { start: vec![1].into(), end: vec![0xFE, 0].into(), what: "a block of it".to_owned() };
        for runs in [vec![], vec![vec![record(9)]], vec![vec![record(12), record(3)], vec![record(7)]]] {
            for (owner, lost) in
                [(None, vec![]), (Some([7; 16]), vec![lost.clone(), LostRange::whole("all")])]
            {
                let mut sums = Families::default();
                if owner.is_some() {
                    sums.add(&[3; 16], -4);
                }
                let manifest = Manifest {
                    owner,
                    needs_count: !lost.is_empty(),
                    lost,
                    sums,
                    merged: 77,
                    next: 13,
                    runs: runs.clone(),
                };
                manifest.replace(&blobs).unwrap();
                assert_eq!(Manifest::read(&blobs).unwrap().as_ref(), Some(&manifest));
            }
        }
        let text = blobs.read(NAME).unwrap().unwrap();
        for place in 0..text.len() {
            let mut harmed = text.clone();
            harmed[place] ^= 1;
            blobs.replace(NAME, &harmed).unwrap();
            assert!(Manifest::read(&blobs).is_err(), "{place}");
            blobs.replace(NAME, &text[..place]).unwrap();
            assert!(Manifest::read(&blobs).is_err(), "cut at {place}");
        }
    }
}
