//! The list of runs: which files are the set, and up to which commit group they hold its changes.
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
//! In and out: the text file `RUNS` in the set's folder, replaced by rename.
//! Invariants
//! - What it names is on stable storage before it is; what it names no more is removed only afterwards.
//! - Changes of groups up to `merged` are in the runs, and count no more where they are still found elsewhere; changes
//!   of later groups are not in the runs. So whenever a crash comes, nothing is missing and nothing is there twice.
//! - The number of a run that was named is never used again.

use super::run_file::RunRecord;
use super::{damaged, failed, unreadable};
use crate::folder::sync_folder;
use crate::identity::Identity;
use astrarium_kv::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

const FILE: &str = "RUNS";
const NEW_FILE: &str = "RUNS.new";
const HEADER: &str = "astrarium set 1";
const LOST: &str = "lost";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) identity: Option<Identity>,
    /// Whether keys are missing, and somebody may still rely on them.
    pub(super) is_lost: bool,
    /// The last group whose changes are in the runs.
    pub(super) merged: u64,
    /// The number of the next run.
    pub(super) next: u64,
    /// The newest first.
    pub(super) runs: Vec<RunRecord>,
}

impl Manifest {
    /// Of an empty set.
    pub(super) fn empty(identity: Option<Identity>) -> Manifest {
        Manifest { identity, is_lost: false, merged: 0, next: 1, runs: Vec::new() }
    }

    /// The list of a folder, if it has one.
    pub(super) fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
        let bytes = match std::fs::read(folder.join(FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable("reading the list of index runs", &error)),
        };
        let manifest = std::str::from_utf8(&bytes).ok().and_then(Manifest::parse);
        manifest.map(Some).ok_or_else(|| damaged("set/RUNS, the list of index runs, is not whole"))
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
        if let Some(identity) = line.strip_prefix("folder ") {
            manifest.identity = Some(Identity::parse(identity)?);
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
            manifest.runs.push(RunRecord { number, byte_count, checksum });
        }
        Some(manifest)
    }

    fn print(&self) -> String {
        let mut text = HEADER.to_owned();
        if let Some(identity) = self.identity {
            let _ = write!(text, "\nfolder {identity}");
        }
        if self.is_lost {
            let _ = write!(text, "\n{LOST}");
        }
        let _ = write!(text, "\nmerged {}\nnext {}", self.merged, self.next);
        for RunRecord { number, byte_count, checksum } in &self.runs {
            let _ = write!(text, "\nrun {number} {byte_count} {checksum:08x}");
        }
        let checksum = checksum_of(&text);
        let _ = writeln!(text, "\nchecksum {checksum:08x}");
        text
    }

    /// Makes this the folder's list, and everything written in the folder before lasting.
    pub(super) fn replace(&self, folder: &Path) -> Result<(), ReplaceError> {
        let write_new = || {
            sync_folder(folder)?;
            let mut file = File::create(folder.join(NEW_FILE))?;
            file.write_all(self.print().as_bytes())?;
            file.sync_all()
        };
        write_new().map_err(|error| ReplaceError::Unchanged(failed("writing the list of runs", &error)))?;
        let rename = || {
            std::fs::rename(folder.join(NEW_FILE), folder.join(FILE))?;
            sync_folder(folder)
        };
        rename().map_err(|error| ReplaceError::Unknown(failed("replacing the list of runs", &error)))
    }
}

/// Why a list was not replaced.
pub(super) enum ReplaceError {
    /// The old one is there for sure; it may be tried again.
    Unchanged(Error),
    /// Nobody knows which one is there after a crash.
    Unknown(Error),
}

impl From<ReplaceError> for Error {
    fn from(error: ReplaceError) -> Error {
        match error {
            ReplaceError::Unchanged(error) | ReplaceError::Unknown(error) => error,
        }
    }
}

fn checksum_of(content: &str) -> u32 {
    crc32fast::hash(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lists_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(Manifest::read(path).unwrap(), None);
        let record = |number| RunRecord { number, byte_count: 1 << 40, checksum: 0xAB };
        for runs in [vec![], vec![record(9)], vec![record(12), record(3)]] {
            for (identity, is_lost) in [(None, false), (Some(Identity([7; 16])), true)] {
                let manifest = Manifest { identity, is_lost, merged: 77, next: 13, runs: runs.clone() };
                assert!(manifest.replace(path).is_ok());
                assert_eq!(Manifest::read(path).unwrap().as_ref(), Some(&manifest));
            }
        }
        let text = std::fs::read(path.join(FILE)).unwrap();
        for place in 0..text.len() {
            let mut harmed = text.clone();
            harmed[place] ^= 1;
            std::fs::write(path.join(FILE), &harmed).unwrap();
            assert!(Manifest::read(path).is_err(), "{place}");
            std::fs::write(path.join(FILE), &text[..place]).unwrap();
            assert!(Manifest::read(path).is_err(), "cut at {place}");
        }
    }
}
