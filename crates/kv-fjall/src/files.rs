//! The list of the folder's files: what belongs to it.
//!
//! ```text
//! astrarium files 1
//! folder 0123456789abcdef0123456789abcdef
//! journal 3                                  each journal of the engine
//! keyspace 2 body                            each keyspace, by its folder
//! table 2 17 1048576 89abcdef                keyspace, number, bytes, CRC-32 of the last 4 KiB
//! checksum 01234567                          CRC-32 of the lines above
//! ```
//! In: the engine's folder, looked at while the engine runs. Out: the text file `FILES`, replaced by rename at most once a second
//! when something has changed, and when the engine closes.
//! Invariants
//! - The folder and the keyspaces are in the list before anything is acknowledged.
//! - Tables and journals come and go with fjall's work, so the list may be a second behind. A table that it does not know is
//!   read whole and compared with fjall's own checksum; a journal that is gone is judged by what the others and the tables
//!   tell (`recovery`). The list makes the first cheap, and gives the second a name.
//! - Without the list nothing is lost: everything is read whole, once.

use crate::folder::replace_file;
use crate::identity::FolderIdentity;
use crate::journal;
use crate::tree_files::{TableMark, TreeFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

const HEADER: &str = "astrarium files 1";

/// Keyspaces of fjall's folder by number.
pub(crate) const KEYSPACES_FOLDER: &str = "keyspaces";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) identity: FolderIdentity,
    pub(crate) journals: BTreeSet<u64>,
    /// Names of keyspaces by their numbers.
    pub(crate) keyspaces: BTreeMap<u64, String>,
    /// By keyspace and number.
    pub(crate) tables: BTreeMap<(u64, u64), TableMark>,
}

impl Files {
    /// Of a folder that holds nothing yet.
    pub(crate) fn of(identity: FolderIdentity) -> Files {
        Files { identity, journals: BTreeSet::new(), keyspaces: BTreeMap::new(), tables: BTreeMap::new() }
    }

    /// The list in a file, or nothing where it is missing or not whole.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Files>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(std::str::from_utf8(&bytes).ok().and_then(Files::parse)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        replace_file(path, self.print().as_bytes())
    }

    fn parse(text: &str) -> Option<Files> {
        let (content, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let checksum = u32::from_str_radix(checksum.strip_prefix("checksum ")?, 16).ok()?;
        let mut lines = content.lines();
        if checksum != crc32fast::hash(content.as_bytes()) || lines.next()? != HEADER {
            return None;
        }
        let mut files = Files::of(FolderIdentity::parse(lines.next()?.strip_prefix("folder ")?)?);
        for line in lines {
            let mut words = line.split(' ');
            match words.next()? {
                "journal" => {
                    files.journals.insert(words.next()?.parse().ok()?);
                }
                "keyspace" => {
                    files.keyspaces.insert(words.next()?.parse().ok()?, words.next()?.to_owned());
                }
                "table" => {
                    let place = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                    let byte_count = words.next()?.parse().ok()?;
                    let tail_checksum = u32::from_str_radix(words.next()?, 16).ok()?;
                    files.tables.insert(place, TableMark { byte_count, tail_checksum });
                }
                _ => return None,
            }
        }
        Some(files)
    }

    fn print(&self) -> String {
        let mut text = format!("{HEADER}\nfolder {}", self.identity);
        for number in &self.journals {
            let _ = write!(text, "\njournal {number}");
        }
        for (number, name) in &self.keyspaces {
            let _ = write!(text, "\nkeyspace {number} {name}");
        }
        for ((keyspace, number), TableMark { byte_count, tail_checksum }) in &self.tables {
            let _ = write!(text, "\ntable {keyspace} {number} {byte_count} {tail_checksum:08x}");
        }
        let checksum = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "\nchecksum {checksum:08x}");
        text
    }
}

/// Keeps the list of a running engine up to date.
pub(crate) struct FilesKeeper {
    path: PathBuf,
    engine: PathBuf,
    files: Files,
    /// The version of each keyspace whose tables are in the list.
    versions: BTreeMap<u64, Vec<u8>>,
}

impl FilesKeeper {
    pub(crate) fn new(path: PathBuf, engine: PathBuf, files: Files) -> FilesKeeper {
        FilesKeeper { path, engine, files, versions: BTreeMap::new() }
    }

    pub(crate) fn identity(&self) -> FolderIdentity {
        self.files.identity
    }

    /// Looks at the engine's folder, and writes the list if it has changed.
    pub(crate) fn update(&mut self) -> io::Result<()> {
        let before = self.files.clone();
        self.files.journals = journal::numbers(&self.engine)?;
        let keyspaces: Vec<_> = self.files.keyspaces.keys().copied().collect();
        for keyspace in [0].into_iter().chain(keyspaces) {
            self.look_at(keyspace);
        }
        if self.files == before {
            return Ok(());
        }
        self.files.write(&self.path)
    }

    fn look_at(&mut self, keyspace: u64) {
        let folder = self.engine.join(KEYSPACES_FOLDER).join(keyspace.to_string());
        // Between two of fjall's steps files may be gone that were named a moment ago; the next look finds them in order.
        let Ok(tree) = TreeFiles::read(&folder) else { return };
        if self.versions.get(&keyspace).is_some_and(|seen| *seen == tree.version) {
            return;
        }
        let is_of = |place: &(u64, u64)| place.0 == keyspace;
        let numbers: BTreeSet<u64> = tree.tables.iter().map(|table| table.number).collect();
        self.files.tables.retain(|place, _| !is_of(place) || numbers.contains(&place.1));
        for table in &tree.tables {
            let place = (keyspace, table.number);
            if self.files.tables.contains_key(&place) {
                continue;
            }
            let Ok(mark) = tree.mark_of(*table) else { return };
            self.files.tables.insert(place, mark);
        }
        self.versions.insert(keyspace, tree.version.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lists_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("FILES");
        assert_eq!(Files::read(&path).unwrap(), None);
        let mut files = Files::of(FolderIdentity::new());
        files.journals.insert(3);
        files.keyspaces.insert(2, "body".to_owned());
        files.tables.insert((2, 17), TableMark { byte_count: 1 << 40, tail_checksum: 0xAB });
        files.write(&path).unwrap();
        assert_eq!(Files::read(&path).unwrap(), Some(files));
        let text = std::fs::read(&path).unwrap();
        for place in 0..text.len() {
            let mut harmed = text.clone();
            harmed[place] ^= 1;
            std::fs::write(&path, &harmed).unwrap();
            assert_eq!(Files::read(&path).unwrap(), None, "{place}");
            std::fs::write(&path, &text[..place]).unwrap();
            assert_eq!(Files::read(&path).unwrap(), None, "cut at {place}");
        }
    }
}
