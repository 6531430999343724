//! The acknowledged mark: a file beside fjall's that tells how far commits were acknowledged.
//!
//! fjall drops the rest of a journal without a word when it meets a hole in it. The mark is the second witness: when
//! the recovered group number is lower, opening is refused.
//! In: [`Mark::acknowledge`] for each group that is on stable storage. Out: the file, replaced by a thread of its own
//! as soon as the number changes, but at most once a second, and when the engine closes.
//! Invariants
//! - The file never names a group that is not on stable storage.
//! - Nothing is written, and no thread wakes, while no commits happen.
//! - After a crash the file is at most about a second behind. Loss among those last groups is noticed by other means
//!   (`recovery`: a whole batch behind damage, a table newer than the journal), or, when the very end of the journal
//!   rots in that second, not at all.

use crate::error::{Doing, OpenError};
use crate::files::FilesKeeper;
use crate::folder;
use crate::identity::FolderIdentity;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two writes of the file at least.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

const WORD: &str = "acknowledged";

pub(crate) struct Mark {
    path: PathBuf,
    /// Kept up to date with the mark.
    files: Mutex<FilesKeeper>,
    identity: FolderIdentity,
    state: Mutex<MarkState>,
    changed: Condvar,
}

struct MarkState {
    acknowledged: u64,
    stopped: bool,
    /// Whether the thread waits for a change, and not for the next time it may write.
    idle: bool,
}

impl Mark {
    /// A mark whose file already says `acknowledged`.
    pub(crate) fn new(path: PathBuf, files: FilesKeeper, acknowledged: u64) -> Mark {
        Mark {
            path,
            identity: files.identity(),
            files: Mutex::new(files),
            state: Mutex::new(MarkState { acknowledged, stopped: false, idle: false }),
            changed: Condvar::new(),
        }
    }

    /// Tells that a group and all before it are on stable storage.
    pub(crate) fn acknowledge(&self, group: u64) {
        let mut state = self.state.lock();
        state.acknowledged = group;
        if state.idle {
            self.changed.notify_one();
        }
    }

    /// The last group that is on stable storage.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.state.lock().acknowledged
    }

    /// Ends [`Mark::run`].
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_one();
    }

    /// Writes the present number, for good. Only after [`Mark::run`] has ended.
    pub(crate) fn write_last(&self) -> io::Result<()> {
        let acknowledged = self.state.lock().acknowledged;
        write(&self.path, acknowledged, self.identity)
    }

    /// Brings the list of files up to date.
    pub(crate) fn update_files(&self) -> io::Result<()> {
        self.files.lock().update()
    }

    /// The thread's work: follows the number until it is stopped.
    pub(crate) fn run(&self, mut written: u64) {
        let mut state = self.state.lock();
        loop {
            state.idle = true;
            while state.acknowledged == written && !state.stopped {
                self.changed.wait(&mut state);
            }
            state.idle = false;
            if state.stopped {
                return;
            }
            let acknowledged = state.acknowledged;
            parking_lot::MutexGuard::unlocked(&mut state, || {
                // A mark that stays behind is weaker, not wrong: the next round tries again.
                if let Err(error) = write(&self.path, acknowledged, self.identity) {
                    tracing::warn!(%error, path = %self.path.display(), "could not write the acknowledged mark");
                }
                if let Err(error) = self.update_files() {
                    tracing::warn!(%error, "could not write the list of files");
                }
            });
            written = acknowledged;
            let next = Instant::now() + WRITE_INTERVAL;
            while !state.stopped && !self.changed.wait_until(&mut state, next).timed_out() {}
        }
    }
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) acknowledged: u64,
    /// Whose mark it is; nothing in those of format 1.
    pub(crate) identity: Option<FolderIdentity>,
}

/// What the file says, or nothing where it is missing or not whole.
pub(crate) fn read(path: &Path) -> Result<Option<Marked>, OpenError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing("read", path),
    };
    Ok(std::str::from_utf8(&bytes).ok().and_then(parse))
}

fn parse(text: &str) -> Option<Marked> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let (acknowledged, checksum, identity) = match words[..] {
        [WORD, number, checksum] => (number.parse().ok()?, checksum, None),
        [WORD, number, checksum, identity] => {
            (number.parse().ok()?, checksum, Some(FolderIdentity::parse(identity)?))
        }
        _ => return None,
    };
    (checksum == checksum_of(acknowledged, identity)).then_some(Marked { acknowledged, identity })
}

pub(crate) fn write(path: &Path, acknowledged: u64, identity: FolderIdentity) -> io::Result<()> {
    let checksum = checksum_of(acknowledged, Some(identity));
    let text = format!("{WORD} {acknowledged} {checksum} {identity}\n");
    folder::replace_file(path, text.as_bytes())
}

fn checksum_of(acknowledged: u64, identity: Option<FolderIdentity>) -> String {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&acknowledged.to_be_bytes());
    checksum.update(identity.as_ref().map_or(&[], |identity| &identity.0));
    format!("{:08x}", checksum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &Path) -> Option<u64> {
        read(path).unwrap().map(|marked| marked.acknowledged)
    }

    fn check(content: &str, expected: Option<u64>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        std::fs::write(&path, content).unwrap();
        assert_eq!(number(&path), expected, "{content:?}");
    }

    #[test]
    fn only_whole_marks_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        assert_eq!(number(&path), None);
        let identity = FolderIdentity::new();
        write(&path, 1234, identity).unwrap();
        assert_eq!(read(&path).unwrap(), Some(Marked { acknowledged: 1234, identity: Some(identity) }));
        let text = std::fs::read_to_string(&path).unwrap();
        check(&text, Some(1234));
        check(&text.replace("1234", "1235"), None);
        check(&text[..text.len() - 3], None);
        check("", None);
        check("acknowledged", None);
        check("acknowledged 0 6522df69\n", Some(0));
    }
}
