//! Why a script did not do its work: one variant for each thing a caller can act on.

use crate::HostError;
use std::sync::Arc;

/// Why a script failed. In every case nothing it did may be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The source is not JavaScript, or holds no function. Its author's to correct.
    #[error(
        "Encountered exception while compiling Javascript. Exception = {message}\r\nIn the script '{name}'."
    )]
    Compile {
        /// The script.
        name: Arc<str>,
        /// What is wrong, and where as far as it is known.
        message: String,
    },
    /// The script threw, or left a rejected promise behind. Its author's to correct.
    #[error("{}", .0.text)]
    Exception(Exception),
    /// The script did not end in time. Its author's to make it do less.
    #[error("The script '{name}' did not complete within its time limit; nothing it did was kept.")]
    Timeout {
        /// The script.
        name: Arc<str>,
    },
    /// What the script answered is larger than an answer may be. Its author's to answer in parts.
    #[error("The response of the script '{name}' is too large: {bytes} bytes of at most {bytes_max}.")]
    TooLarge {
        /// The script.
        name: Arc<str>,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        bytes_max: usize,
    },
    /// The host said that the transaction cannot succeed. For the caller to judge by the number.
    #[error(transparent)]
    Host(HostError),
    /// A write was refused that the script took for done ([`crate::Call::ahead`]). Nobody's fault: the caller runs it again
    /// on a new host, without writes ahead.
    #[error("The script '{name}' went on before a write was done that was refused; it has to run again.")]
    Void {
        /// The script.
        name: Arc<str>,
    },
    /// All threads for scripts are taken. The client may repeat the request later.
    #[error("Too many scripts are running or waiting; retry after a moment.")]
    Busy,
    /// There is nothing to run the script with. The operator's to look after; the client may repeat the request later.
    #[error("The script '{name}' cannot run: {what}. Nothing of it has happened; retry after a moment.")]
    Unavailable {
        /// The script.
        name: Arc<str>,
        /// What is missing.
        what: String,
    },
    /// A broken invariant of ours.
    #[error("Internal error while running the script '{name}': {what}")]
    Bug {
        /// The script.
        name: Arc<str>,
        /// What happened.
        what: String,
    },
}

/// What a script threw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The whole message, in the shape the service gives it: exception and stack.
    pub text: String,
    /// What was thrown, as text.
    pub thrown: String,
    /// The `number` of the error thrown, if it has one: clients see it as substatus.
    pub number: Option<u32>,
    /// The line of the script that threw, counted from one, if the stack shows it.
    pub line: Option<u32>,
}

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The client, with another script or another request.
    Request,
    /// The client, later.
    Throttled,
    /// Whoever the number says.
    Host,
    /// The operator.
    Unavailable,
    /// Us.
    Bug,
}

impl Error {
    /// Who has to act.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Compile { .. } | Error::Exception(_) | Error::Timeout { .. } | Error::TooLarge { .. } => {
                Kind::Request
            }
            Error::Host(_) => Kind::Host,
            Error::Busy | Error::Void { .. } => Kind::Throttled,
            Error::Unavailable { .. } => Kind::Unavailable,
            Error::Bug { .. } => Kind::Bug,
        }
    }
}
