//! Why a folder cannot be opened, and how failures of fjall are told in the words of the contract.
//!
//! In: what was found in a folder, or an error of fjall. Out: an [`OpenError`] whose text an operator can act on, or an
//! [`Error`] of the contract.
//!
//! Not here: refusals while running (`health`), damage of the journal (`recovery`).

use crate::health;
use crate::tree_files::BadFile;
use astrarium_kv::{Error, Kind};
use std::io;
use std::path::{Path, PathBuf};

/// Files that a message names.
const NAMED_MAX: usize = 5;

/// Why [`crate::FjallEngine::open`] did not open the folder.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder holds something else. The operator's to name another.
    #[error("{} is not empty and holds no FORMAT file: it is not a storage folder; give an empty or a new one", folder.display())]
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },
    /// A newer release wrote the folder. The operator's to run that release.
    #[error(
        "{} has storage format {found}, this program knows up to {known}: run the release that wrote it, or a later one",
        folder.display()
    )]
    NewerFormat {
        /// The folder.
        folder: PathBuf,
        /// What its FORMAT file says.
        found: u32,
        /// The newest format of this program.
        known: u32,
    },
    /// Somebody else has the folder open. The operator's to stop them.
    #[error(
        "{} is in use by {}: stop that first, or give another folder",
        folder.display(), holder_text(*.holder)
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// Process that holds it, if it is known.
        holder: Option<u32>,
    },
    /// Commits that were acknowledged are not there. The operator's to restore a backup, or to accept the loss.
    #[error(
        "{} lacks writes that were acknowledged: {} is missing, too short or damaged. Restore a backup, or go on without \
         those writes with `astrarium repair --data {} --accept-loss`",
        folder.display(), file.display(), folder.display()
    )]
    LostWrites {
        /// The folder.
        folder: PathBuf,
        /// The journal that should hold them.
        file: PathBuf,
        /// Highest group known to have been acknowledged.
        acknowledged: u64,
        /// Last group that is there.
        found: u64,
    },
    /// Files are not what was written. The operator's to restore a backup.
    #[error(
        "{} is damaged: {what}. Put the files back from a backup, or see what can be saved with \
         `astrarium repair --data {} --accept-loss`",
        folder.display(), folder.display()
    )]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What was found.
        what: String,
    },
    /// The system refused. The operator's to mend (rights, space, hardware).
    #[error("could not {doing} {}{}: {source}", path.display(), what_to_do(source))]
    Io {
        /// A verb phrase.
        doing: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// What an operator can do about a refusal of the system, where that is plain.
fn what_to_do(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            " (there is a file where a folder must be; give the path of a folder, or a new one)"
        }
        io::ErrorKind::PermissionDenied => {
            " (the user that runs this has no right to; give that user the folder, or give another folder)"
        }
        io::ErrorKind::ReadOnlyFilesystem => " (the disk is mounted for reading only; give another folder)",
        _ => "",
    }
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}

impl OpenError {
    /// Who has to act.
    pub fn kind(&self) -> Kind {
        match self {
            OpenError::LostWrites { .. } | OpenError::Damaged { .. } => Kind::Corruption,
            OpenError::NotOurs { .. }
            | OpenError::NewerFormat { .. }
            | OpenError::Locked { .. }
            | OpenError::Io { .. } => Kind::Unavailable,
        }
    }
}

/// Adds to an I/O error what was being done, and to what.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, OpenError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, OpenError> {
        self.map_err(|source| OpenError::Io { doing, path: path.to_path_buf(), source })
    }
}

/// An error of fjall while opening.
pub(crate) fn opening(folder: &Path, error: fjall::Error) -> OpenError {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            OpenError::Io { doing: "open the engine's files in", path: folder.to_path_buf(), source }
        }
        fjall::Error::Locked => OpenError::Locked { folder: folder.to_path_buf(), holder: None },
        other => OpenError::Damaged { folder: folder.to_path_buf(), what: in_words(&other) },
    }
}

/// An error of fjall while reading.
pub(crate) fn reading(error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source))
            if !matches!(source.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
        {
            Error::Unavailable { reason: format!("a read failed: {source}") }
        }
        other => Error::Corruption { what: in_words(other) },
    }
}

/// Whether a failed write may succeed when the folder is opened again: the system lacked something, or fjall's background work
/// failed, which leaves everything in the journal.
pub(crate) fn may_pass(error: &fjall::Error) -> bool {
    match error {
        fjall::Error::Poisoned => true,
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            health::is_passing(source)
        }
        _ => false,
    }
}

/// An error of fjall without the names it has there.
pub(crate) fn in_words(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Poisoned => "an earlier write or background work failed".to_owned(),
        fjall::Error::Storage(fjall::LsmError::ChecksumMismatch { .. }) => {
            "a stored block has a wrong checksum".to_owned()
        }
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => source.to_string(),
        _ => "a stored file is not what was written".to_owned(),
    }
}

/// Files that are not what was written, and what can be done.
pub(crate) fn bad_files(folder: &Path, bad: &[BadFile]) -> OpenError {
    let named: Vec<_> = bad
        .iter()
        .take(NAMED_MAX)
        .map(|bad| {
            let path = bad.path.strip_prefix(folder).unwrap_or(&bad.path);
            format!("{} {}", path.display(), bad.what)
        })
        .collect();
    let more = bad.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    OpenError::Damaged { folder: folder.to_path_buf(), what: format!("{}{more}", named.join(", ")) }
}
