//! What was typed before: a file of the person's own, one statement a line, newest last.
//!
//! Invariants
//! - Only its owner may read the file; one that others may read is taken from them.
//! - Lines that hold the key, and lines that begin with a space, are not written.
//! - Several shells may add to it at once: each entry is one write at the end.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

/// Entries that are kept.
pub(crate) const ENTRIES_MAX: usize = 2_000;
/// Longest entry that is kept.
const ENTRY_BYTES_MAX: usize = 64 << 10;
/// Longest file that is read; a longer one is begun anew.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The file, if there is to be one.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    path: Option<PathBuf>,
}

impl HistoryFile {
    /// The file that is named (an empty name for none), or `astrarium/shell-history` in the folder for state.
    pub(crate) fn named(given: Option<&OsStr>) -> HistoryFile {
        if let Some(path) = given {
            return HistoryFile { path: (!path.is_empty()).then(|| path.into()) };
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = set("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
        let folder = folder.or_else(|| Some(set("HOME")?.join(".local").join("state")));
        HistoryFile { path: folder.map(|folder| folder.join("astrarium").join("shell-history")) }
    }

    /// The entries, oldest first. What cannot be read counts as empty.
    pub(crate) fn load(&self) -> Vec<String> {
        let Some(path) = &self.path else { return Vec::new() };
        let Ok(found) = fs::metadata(path) else { return Vec::new() };
        if found.permissions().mode() & 0o077 != 0 {
            let _ = fs::set_permissions(path, Permissions::from_mode(0o600));
        }
        // Opening a pipe or a device could wait for ever.
        let is_read = found.is_file() && found.len() <= FILE_BYTES_MAX;
        let bytes = if is_read { fs::read(path).unwrap_or_default() } else { Vec::new() };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let kept = &lines[lines.len().saturating_sub(ENTRIES_MAX)..];
        if lines.len() > ENTRIES_MAX * 2 || found.len() > FILE_BYTES_MAX {
            self.rewrite(&kept.join("\n"));
        }
        kept.iter().map(|line| decoded(line)).collect()
    }

    /// Adds an entry. Failing to is no reason to stop.
    pub(crate) fn add(&self, entry: &str) {
        let Some(path) = &self.path else { return };
        if entry.len() > ENTRY_BYTES_MAX {
            return;
        }
        if let Some(folder) = path.parent() {
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        if let Ok(mut file) = opened {
            let _ = file.write_all(format!("{}\n", encoded(entry)).as_bytes());
        }
    }

    fn rewrite(&self, text: &str) {
        let Some(path) = &self.path else { return };
        let beside = path.with_extension("new");
        let _ = fs::remove_file(&beside);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")));
        if written.is_ok() {
            let _ = fs::rename(&beside, path);
        }
    }
}

/// A statement on one line.
fn encoded(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "")
}

fn decoded(line: &str) -> String {
    let mut entry = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => entry.push('\n'),
                Some(other) => entry.push(other),
                None => {}
            },
            _ => entry.push(character),
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_are_private() {
        for entry in ["SELECT *\nFROM c", "a\\nb", "plain", "\\", "x\\"] {
            assert_eq!(decoded(&encoded(entry)), entry);
            assert!(!encoded(entry).contains('\n'));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("history");
        let history = HistoryFile { path: Some(path.clone()) };
        assert!(history.load().is_empty());
        history.add("SELECT *\nFROM c");
        history.add("ls");
        assert_eq!(history.load(), ["SELECT *\nFROM c", "ls"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        for number in 0..=ENTRIES_MAX * 2 {
            history.add(&number.to_string());
        }
        assert_eq!(history.load().len(), ENTRIES_MAX);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), ENTRIES_MAX);
        HistoryFile { path: None }.add("nowhere");
    }
}
