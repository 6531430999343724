//! Whether the engine takes writes.
//!
//! In: the first failure of a commit, or the end of the engine. Out: the reason to refuse, for every later commit.
//! Invariant: a failed write or sync is final until the folder is opened again. What the disk holds is unknown then,
//! and trying once more could answer "done" for bytes the system has already thrown away. Where the failure was only the want of
//! something, the engine opens its folder again by itself (`healing`).

use astrarium_kv::Error;
use std::io;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct EngineHealth {
    failure: OnceLock<StorageFailure>,
}

struct StorageFailure {
    reason: String,
    /// Whether opening the folder again may mend it.
    is_passing: bool,
}

impl EngineHealth {
    /// Refuses writes from now on; the first reason stays.
    pub(crate) fn fail(&self, reason: String, is_passing: bool) {
        if self.failure.set(StorageFailure { reason, is_passing }).is_ok() {
            tracing::error!(reason = self.failure(), is_passing, "storage takes no more writes");
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(|failure| failure.reason.as_str())
    }

    /// Whether writes are refused for a reason that may pass.
    pub(crate) fn may_heal(&self) -> bool {
        self.failure.get().is_some_and(|failure| failure.is_passing)
    }

    /// The answer to a commit, when writes are refused.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.failure() {
            Some(reason) => Err(Error::Unavailable { reason: reason.to_owned() }),
            None => Ok(()),
        }
    }
}

pub(crate) const CLOSED: &str = "the storage is closed";

/// The answer after the end.
pub(crate) fn closed() -> Error {
    Error::Unavailable { reason: CLOSED.to_owned() }
}

/// Whether an error is only the want of something that the system may have later: descriptors, memory, room on the disk.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    let is_full = matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory
    );
    is_full || (cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE)))
}
