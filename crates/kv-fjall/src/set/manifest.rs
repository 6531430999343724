//! The list of runs: which files are the set, and up to which commit group they hold its changes.
//!
//! ```text
//! astrarium set 1
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
use super::{damaged, failed};
use crate::folder::sync_folder;
use astrarium_kv::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

const FILE: &str = "RUNS";
const NEW_FILE: &str = "RUNS.new";
const HEADER: &str = "astrarium set 1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The last group whose changes are in the runs.
    pub(super) merged: u64,
    /// The number of the next run.
    pub(super) next: u64,
    /// The newest first.
    pub(super) runs: Vec<RunRecord>,
}

impl Manifest {
    /// Of an empty set.
    pub(super) fn empty() -> Manifest {
        Manifest { merged: 0, next: 1, runs: Vec::new() }
    }

    /// The list of a folder, if it has one.
    pub(super) fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
        let bytes = match std::fs::read(folder.join(FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("reading the list of runs", &error)),
        };
        let manifest = std::str::from_utf8(&bytes).ok().and_then(Manifest::parse);
        manifest.map(Some).ok_or_else(|| damaged("the list of the set's runs is not whole"))
    }

    fn parse(text: &str) -> Option<Manifest> {
        let (content, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let checksum = u32::from_str_radix(checksum.strip_prefix("checksum ")?, 16).ok()?;
        let mut lines = content.lines();
        if checksum != checksum_of(content) || lines.next()? != HEADER {
            return None;
        }
        let mut manifest = Manifest::empty();
        manifest.merged = lines.next()?.strip_prefix("merged ")?.parse().ok()?;
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
        let mut text = format!("{HEADER}\nmerged {}\nnext {}", self.merged, self.next);
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
            let manifest = Manifest { merged: 77, next: 13, runs };
            assert!(manifest.replace(path).is_ok());
            assert_eq!(Manifest::read(path).unwrap().as_ref(), Some(&manifest));
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
