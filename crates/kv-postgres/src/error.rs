//! What PostgreSQL answers instead of a result, in the words of the contract.
//!
//! In: errors of the client library. Out: whether to try again, and what callers are told.

use astrarium_kv as kv;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why a transaction did not come to its end.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The store refused it for the moment, and nothing of it happened: the same may succeed now.
    Again(String),
    /// The connection is gone, or the store is stopping: whether a commit happened is unknown.
    Lost(String),
    /// The store has no room for it, and nothing of it happened.
    Full(String),
    /// A key is there that must not be: nothing of it happened.
    Refused(String),
    /// A key has more bytes than an index entry of the store: nothing of it happened.
    TooLong(String),
    /// The store does not understand us, or holds what we cannot have written: nothing of it happened.
    Wrong(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        let words = in_words(&error);
        let Some(state) = error.code() else { return Trouble::Lost(words) };
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::QUERY_CANCELED => Trouble::Again(words),
            SqlState::PROGRAM_LIMIT_EXCEEDED => Trouble::TooLong(words),
            // Not the primary any more, though it was when the connection was made.
            SqlState::READ_ONLY_SQL_TRANSACTION => Trouble::Lost(words),
            SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY | SqlState::TOO_MANY_CONNECTIONS => {
                Trouble::Full(words)
            }
            SqlState::UNIQUE_VIOLATION => Trouble::Refused(words),
            SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::INVALID_SCHEMA_NAME => {
                Trouble::Wrong(format!("{words} (was `astrarium store init` run on it?)"))
            }
            SqlState::SYNTAX_ERROR | SqlState::UNDEFINED_FUNCTION | SqlState::INSUFFICIENT_PRIVILEGE => {
                Trouble::Wrong(words)
            }
            // An error ends a transaction; what is worse than one may have ended the connection in the middle of a commit.
            _ if error.as_db_error().and_then(DbError::parsed_severity) == Some(Severity::Error) => {
                Trouble::Wrong(words)
            }
            _ => Trouble::Lost(words),
        }
    }
}

impl Trouble {
    /// What happened.
    pub(crate) fn words(&self) -> &str {
        match self {
            Trouble::Again(words)
            | Trouble::Lost(words)
            | Trouble::Full(words)
            | Trouble::Refused(words)
            | Trouble::TooLong(words)
            | Trouble::Wrong(words) => words,
        }
    }
}

impl From<Trouble> for kv::Error {
    fn from(trouble: Trouble) -> kv::Error {
        if let Trouble::TooLong(what) = trouble {
            return kv::Error::KeyTooLong { what };
        }
        let what = match &trouble {
            Trouble::Full(_) => "the store has no room",
            _ => NO_ANSWER,
        };
        kv::Error::Unavailable { reason: format!("{what}: {}", trouble.words()) }
    }
}

impl From<Trouble> for astrarium_packed::Error {
    fn from(trouble: Trouble) -> astrarium_packed::Error {
        astrarium_packed::Error::Unavailable { reason: trouble.words().to_owned() }
    }
}

/// An error of the client with what the server said.
fn in_words(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{} ({})", told.message(), told.code().code());
    }
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// What callers are told first while a store cannot be reached, and nothing of what they asked for has happened.
pub(crate) const NO_ANSWER: &str = "the store does not answer";

/// Whether something did not happen because the store could not be reached from here, though others may reach it.
pub(crate) fn is_out_of_reach(error: &kv::Error) -> bool {
    matches!(error, kv::Error::Unavailable { reason } if reason.starts_with(NO_ANSWER))
}

/// The engine was closed.
pub(crate) fn closed() -> kv::Error {
    kv::Error::Unavailable { reason: "the storage is closed".to_owned() }
}
