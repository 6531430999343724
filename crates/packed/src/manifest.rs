//! The manifest: which blobs are the set, and up to which commit group they hold its changes.
//!
//! ```text
//! astrarium set 1
//! folder 0123456789abcdef0123456789abcdef     whose runs these are; not in lists of format 1 of the folder
//! lost                                        only if keys from before `merged` are gone and nobody has accepted it yet
//! merged 1234
//! next 17
//! run 16 1048576 89abcdef        number, bytes, checksum; the newest first
//! checksum 01234567              CRC-32 of the lines above
//! ```
//! In and out: the small blob `RUNS`, text, replaced whole.
//! Invariants
//! - What it names is on stable storage before it is; what it names no more is removed only afterwards.
//! - Changes of groups up to `merged` are in the runs, and count no more where they are still found elsewhere; changes
//!   of later groups are not in the runs. So whenever a crash comes, nothing is missing and nothing is there twice.
//! - The number of a run that was named is never used again.

use crate::Error;
use crate::stored::SegmentRecord;
use crate::{Blobs, OwnerId, ReplaceError, damaged};
use std::fmt::Write as _;

pub(crate) const NAME: &str = "RUNS";
const HEADER: &str = "astrarium set 1";
const LOST: &str = "lost";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) owner: Option<OwnerId>,
    /// Whether keys are missing, and somebody may still rely on them.
    pub(crate) is_lost: bool,
    /// The last group whose changes are in the runs.
    pub(crate) merged: u64,
    /// The number of the next run.
    pub(crate) next: u64,
    /// The newest first.
    pub(crate) runs: Vec<SegmentRecord>,
}

impl Manifest {
    /// Of an empty set.
    pub(crate) fn empty(owner: Option<OwnerId>) -> Manifest {
        Manifest { owner, is_lost: false, merged: 0, next: 1, runs: Vec::new() }
    }

    /// The manifest of a set, if it has one.
    pub(crate) fn read(blobs: &dyn Blobs) -> Result<Option<Manifest>, Error> {
        let Some(bytes) = blobs.read(NAME)? else { return Ok(None) };
        let manifest = std::str::from_utf8(&bytes).ok().and_then(Manifest::parse);
        manifest.map(Some).ok_or_else(|| damaged("RUNS, the list of index runs, is not whole"))
    }

    fn parse(text: &str) -> Option<Manifest> {
        let (content, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let checksum = u32::from_str_radix(checksum.strip_prefix("checksum ")?, 16).ok()?;
        let mut lines = content.lines();
        if checksum != checksum_of(content) || lines.next()? != HEADER {
            return None;
        }
        let mut manifest = Manifest::empty(None);
        let mut line = lines.next()?;
        if let Some(owner) = line.strip_prefix("folder ") {
            manifest.owner = Some(parse_owner(owner)?);
            line = lines.next()?;
        }
        if line == LOST {
            manifest.is_lost = true;
            line = lines.next()?;
        }
        manifest.merged = line.strip_prefix("merged ")?.parse().ok()?;
        manifest.next = lines.next()?.strip_prefix("next ")?.parse().ok()?;
        for line in lines {
            let mut words = line.strip_prefix("run ")?.split(' ');
            let (number, byte_count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let checksum = u32::from_str_radix(words.next()?, 16).ok()?;
            manifest.runs.push(SegmentRecord { number, byte_count, checksum });
        }
        Some(manifest)
    }

    fn print(&self) -> String {
        let mut text = HEADER.to_owned();
        if let Some(owner) = self.owner {
            let _ = write!(text, "\nfolder {:032x}", u128::from_be_bytes(owner));
        }
        if self.is_lost {
            let _ = write!(text, "\n{LOST}");
        }
        let _ = write!(text, "\nmerged {}\nnext {}", self.merged, self.next);
        for SegmentRecord { number, byte_count, checksum } in &self.runs {
            let _ = write!(text, "\nrun {number} {byte_count} {checksum:08x}");
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
    fn only_whole_lists_count() {
        let blobs = MemoryBlobs::default();
        assert_eq!(Manifest::read(&blobs).unwrap(), None);
        let record = |number| SegmentRecord { number, byte_count: 1 << 40, checksum: 0xAB };
        for runs in [vec![], vec![record(9)], vec![record(12), record(3)]] {
            for (owner, is_lost) in [(None, false), (Some([7; 16]), true)] {
                let manifest = Manifest { owner, is_lost, merged: 77, next: 13, runs: runs.clone() };
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
