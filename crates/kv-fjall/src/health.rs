//! Whether the engine takes writes.
//!
//! In: the first failure of a commit, or the end of the engine. Out: the reason to refuse, for every later commit.
//! Invariant: a failed write or sync is final until the folder is opened again. What the disk holds is unknown then,
//! and trying once more could answer "done" for bytes the system has already thrown away.

use astrarium_kv::Error;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Health {
    failure: OnceLock<String>,
}

impl Health {
    /// Refuses writes from now on; the first reason stays.
    pub(crate) fn fail(&self, reason: String) {
        if self.failure.set(reason).is_ok() {
            tracing::error!(reason = self.failure(), "storage takes no more writes");
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
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
