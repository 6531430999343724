//! What an engine can answer instead of a result.

use crate::ShardId;

/// Why a read or commit failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Somebody else changed what the batch relied on. The caller's to retry from a new view.
    #[error("expectation {expectation} of the batch does not hold")]
    Conflict {
        /// Index into [`crate::WriteBatch::expectations`].
        expectation: usize,
    },
    /// The shard's epoch has moved: the batch was prepared, or the view asked for, from an old catalog. Reload it and retry.
    #[error("shard {} is at epoch {current}, not at the one that was named", shard.0)]
    Fenced {
        /// The shard of the batch or view.
        shard: ShardId,
        /// Its present epoch.
        current: u64,
    },
    /// The shard was dropped: the batch was prepared from an old catalog. Reload it; what the batch was for is gone.
    #[error("shard {} was dropped", shard.0)]
    Dropped {
        /// The shard.
        shard: ShardId,
    },
    /// A batch founds a shard that exists. The caller's to look whether somebody else has done what it wanted.
    #[error("shard {} exists already", shard.0)]
    ShardExists {
        /// The shard.
        shard: ShardId,
    },
    /// Too many batches wait already. Retry a little later.
    #[error("the commit queue is full")]
    Busy,
    /// The engine takes no writes (disk full, I/O error, closing); reads go on. The operator's to mend.
    #[error("storage takes no writes: {reason}")]
    Unavailable {
        /// What happened, for the operator.
        reason: String,
    },
    /// Stored bytes are not what was written. The operator's to restore.
    #[error("storage is damaged: {what}")]
    Corruption {
        /// What was found.
        what: String,
    },
    /// Keys of the range that was asked for are missing or damaged; other ranges, spaces and writes are not touched by it. Whoever asked does without the set, or
    /// waits until it has been made anew; see [`crate::Engine::set_losses`].
    #[error("the index is damaged: {what}")]
    SetLost {
        /// What was found.
        what: String,
    },
    /// The engine cannot keep so long a key, though the contract allows it: the index of a remote store has its own bound. The client's to
    /// choose a shorter one.
    #[error("a key is too long for the store: {what}")]
    KeyTooLong {
        /// The store's own words.
        what: String,
    },
    /// A batch or a read breaks a rule of the contract (key too long, stamp out of bounds, key of another shard). A bug of the
    /// caller.
    #[error("the storage contract is broken: {what}")]
    Contract {
        /// Which rule.
        what: String,
    },
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The client.
    Request,
    /// Retry from a new view.
    Conflict,
    /// Retry later.
    Throttled,
    /// The operator.
    Unavailable,
    /// The operator, with a backup.
    Corruption,
    /// Us.
    Bug,
}

impl Error {
    /// Who has to act.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Conflict { .. }
            | Error::Fenced { .. }
            | Error::Dropped { .. }
            | Error::ShardExists { .. } => Kind::Conflict,
            Error::KeyTooLong { .. } => Kind::Request,
            Error::Busy => Kind::Throttled,
            Error::Unavailable { .. } => Kind::Unavailable,
            Error::Corruption { .. } | Error::SetLost { .. } => Kind::Corruption,
            Error::Contract { .. } => Kind::Bug,
        }
    }
}
