//! The last acknowledged group, noted with every group, beside the mark that is written for good once a second.
//!
//! A kill leaves what was written to the system, synced or not; so after a kill the note is exact, and the loss of even the
//! last group is noticed. After a power cut it may be old, and the mark counts.
//! In: each group on stable storage. Out: two places of a small file, written in turn, so that one is always whole.
//! Invariant: a place never names a group that is not on stable storage.

use crate::identity::FolderIdentity;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

const PLACE_BYTES: usize = 8 + FolderIdentity::BYTES + 4;

/// The open file.
pub(crate) struct Last {
    /// Nothing where it cannot be written; the mark remains.
    file: Option<File>,
    identity: FolderIdentity,
}

impl Last {
    pub(crate) fn open(path: &Path, identity: FolderIdentity) -> Last {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file
            .inspect_err(|error| {
                tracing::warn!(%error, path = %path.display(), "could not open the note of the last group");
            })
            .ok();
        Last { file, identity }
    }

    /// Notes a group that is on stable storage.
    pub(crate) fn note(&mut self, group: u64) {
        let Some(file) = &self.file else { return };
        let offset = (group % 2) * PLACE_BYTES as u64;
        if let Err(error) = write_at(file, &encode(group, self.identity), offset) {
            tracing::warn!(%error, "could not note the last group");
            self.file = None;
        }
    }
}

/// The highest group that a file of this folder names; 0 if there is none.
pub(crate) fn read(path: &Path, identity: FolderIdentity) -> u64 {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(2 * PLACE_BYTES as u64).read_to_end(&mut bytes));
    if read.is_err() {
        return 0;
    }
    let group_of = |place: &[u8]| {
        let group = place.first_chunk::<8>().map(|group| u64::from_be_bytes(*group))?;
        (place == encode(group, identity)).then_some(group)
    };
    bytes.chunks(PLACE_BYTES).filter_map(group_of).max().unwrap_or(0)
}

fn encode(group: u64, identity: FolderIdentity) -> [u8; PLACE_BYTES] {
    let mut place = [0; PLACE_BYTES];
    place[..8].copy_from_slice(&group.to_be_bytes());
    place[8..8 + FolderIdentity::BYTES].copy_from_slice(&identity.0);
    let checksum = crc32fast::hash(&place[..8 + FolderIdentity::BYTES]);
    place[8 + FolderIdentity::BYTES..].copy_from_slice(&checksum.to_be_bytes());
    place
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_whole_place_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LAST");
        let identity = FolderIdentity::new();
        assert_eq!(read(&path, identity), 0);
        let mut last = Last::open(&path, identity);
        for group in 1..=9 {
            last.note(group);
            assert_eq!(read(&path, identity), group);
        }
        assert_eq!(read(&path, FolderIdentity::new()), 0, "of another folder");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[PLACE_BYTES + 7] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path, identity), 8, "the last one was torn");
    }
}
