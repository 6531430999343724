//! The data folder: whose it is, which format it has, and who has it open.
//!
//! ```text
//! FORMAT         one line of text with the format's number; there from the first moment the folder holds data
//! LOCK           locked by the process that has the folder open, whose number it holds
//! ACKNOWLEDGED   the highest acknowledged commit group (see `mark`)
//! LAST           the same, noted with every group (see `last`)
//! FILES          what belongs to the folder (see `files`)
//! engine/        fjall's own files
//! set/           the runs of the set
//! ```
//! In: a path. Out: a [`Folder`] that is ours, of a known format, and locked until it is dropped.
//! Invariants
//! - Nothing is written into a folder that is not ours.
//! - Small files are replaced by rename, so that a crash leaves the old or the new content.
//!
//! Not here: what `engine/` holds (`store`, `journal`), what `set/` holds (`set`).

use crate::error::{Doing, OpenError};
use crate::shadow;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The format this program writes, and the newest it reads.
pub(crate) const FORMAT_VERSION: u32 = 3;

const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "LOCK";
const MARK_FILE: &str = "ACKNOWLEDGED";
const LAST_FILE: &str = "LAST";
const FILES_FILE: &str = "FILES";
const ENGINE_FOLDER: &str = "engine";
const SET_FOLDER: &str = "set";
const FORMAT_WORDS: &str = "astrarium storage format ";

/// Names that may be there before FORMAT is, because creating the folder was cut short, or the file system put it there.
const EARLY_NAMES: [&str; 7] =
    [LOCK_FILE, MARK_FILE, FILES_FILE, "FORMAT.new", "ACKNOWLEDGED.new", "FILES.new", "lost+found"];

/// A locked data folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Unlocked by closing it.
    lock: File,
}

/// Tells whether a folder is still the one that was taken.
#[derive(Debug, Clone)]
pub(crate) struct Presence {
    path: PathBuf,
    /// What the system knows the lock by.
    file: Option<FileId>,
}

/// Device and number of a file.
type FileId = (u64, u64);

impl Presence {
    /// What has become of the folder, if it is not there any more.
    pub(crate) fn absence(&self) -> Option<String> {
        let folder = self.path.parent().unwrap_or(&self.path).display();
        match std::fs::metadata(&self.path) {
            Ok(found) if self.file.is_none_or(|file| file == file_id(&found)) => None,
            Ok(_) => {
                Some(format!("the data folder {folder} was replaced by another one while the server ran"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(format!("the data folder {folder} was removed while the server ran"))
            }
            // Out of descriptors, most likely; that is for others to tell.
            Err(_) => None,
        }
    }
}

/// Time between two looks for the folder at least.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(1);

/// Looks for the folder at most once a second, on the thread of whoever asks.
pub(crate) struct PresenceCheck {
    presence: Presence,
    looked: Mutex<Option<Instant>>,
}

impl PresenceCheck {
    pub(crate) fn new(presence: Presence) -> PresenceCheck {
        PresenceCheck { presence, looked: Mutex::new(None) }
    }

    /// What has become of the folder, if it was just found to be gone.
    pub(crate) fn absence(&self) -> Option<String> {
        let mut looked = self.looked.try_lock()?;
        let now = Instant::now();
        if looked.is_some_and(|looked| now.duration_since(looked) < PRESENCE_INTERVAL) {
            return None;
        }
        *looked = Some(now);
        self.presence.absence()
    }
}

#[cfg(unix)]
fn file_id(file: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn file_id(_: &std::fs::Metadata) -> FileId {
    (0, 0)
}

impl Folder {
    /// Takes the folder for this process, making it if it is not there. The second part tells whether it is new.
    pub(crate) fn take(path: &Path) -> Result<(Folder, bool), OpenError> {
        std::fs::create_dir_all(path).doing("create", path)?;
        if !path.join(FORMAT_FILE).try_exists().doing("look into", path)? {
            refuse_foreign(path)?;
        }
        let folder = Folder { path: path.to_path_buf(), lock: lock(path)? };
        shadow::finish_repair(path)?;
        let is_new = !folder.path.join(FORMAT_FILE).try_exists().doing("look into", path)?;
        if !is_new {
            folder.check_format()?;
        }
        Ok((folder, is_new))
    }

    /// Declares the folder to be of the present format; the last step of making a new one.
    pub(crate) fn write_format(&self) -> Result<(), OpenError> {
        let text = format!("{FORMAT_WORDS}{FORMAT_VERSION}\n");
        replace_file(&self.path.join(FORMAT_FILE), text.as_bytes()).doing("write FORMAT in", &self.path)?;
        sync_folder(&self.path).doing("sync", &self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE_FOLDER)
    }

    pub(crate) fn set(&self) -> PathBuf {
        self.path.join(SET_FOLDER)
    }

    pub(crate) fn mark(&self) -> PathBuf {
        self.path.join(MARK_FILE)
    }

    pub(crate) fn last(&self) -> PathBuf {
        self.path.join(LAST_FILE)
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.path.join(FILES_FILE)
    }

    pub(crate) fn presence(&self) -> Presence {
        let file = self.lock.metadata().ok().map(|file| file_id(&file));
        Presence { path: self.path.join(LOCK_FILE), file }
    }

    /// Whether an older program wrote the folder.
    pub(crate) fn is_of_older_format(&self) -> bool {
        self.check_format().is_ok_and(|format| format < FORMAT_VERSION)
    }

    fn check_format(&self) -> Result<u32, OpenError> {
        let path = self.path.join(FORMAT_FILE);
        let mut text = String::new();
        // A line is all there should be; the bound keeps a foreign file from filling memory.
        let read = File::open(&path).and_then(|file| file.take(256).read_to_string(&mut text));
        let number = match read {
            Ok(_) => text.strip_prefix(FORMAT_WORDS).and_then(|number| number.trim_end().parse::<u32>().ok()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error).doing("read", &path),
        };
        let folder = self.path.clone();
        match number {
            Some(format @ 1..=FORMAT_VERSION) => Ok(format),
            Some(found) if found > FORMAT_VERSION => {
                Err(OpenError::NewerFormat { folder, found, known: FORMAT_VERSION })
            }
            _ => Err(OpenError::Damaged {
                folder,
                what: format!(
                    "FORMAT is not the file that was written; write the line `{FORMAT_WORDS}{FORMAT_VERSION}` into it"
                ),
            }),
        }
    }
}

/// Why a folder without FORMAT is not opened: it is somebody else's, or the file is gone.
pub(crate) fn without_format(path: &Path) -> OpenError {
    let folder = path.to_path_buf();
    if path.join(FILES_FILE).is_file() && path.join(ENGINE_FOLDER).is_dir() {
        let what = format!("FORMAT is missing; write the line `{FORMAT_WORDS}{FORMAT_VERSION}` into it");
        return OpenError::Damaged { folder, what };
    }
    OpenError::NotOurs { folder }
}

fn refuse_foreign(path: &Path) -> Result<(), OpenError> {
    for entry in std::fs::read_dir(path).doing("list", path)? {
        let name = entry.doing("list", path)?.file_name();
        if !EARLY_NAMES.iter().any(|early| name == *early) {
            return Err(without_format(path));
        }
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .doing("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let holder =
                file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim_end().parse().ok());
            return Err(OpenError::Locked { folder: folder.to_path_buf(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(error).doing("lock", &path),
    }
    // For people who wonder who holds the folder; the lock itself is what counts.
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).doing("write", &path)?;
    Ok(file)
}

/// Gives a small file a new content that is either wholly there after a crash, or not at all.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(content)?;
    file.sync_data()?;
    drop(file);
    std::fs::rename(&new, path)
}

/// Makes renames and new files in a folder lasting.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
