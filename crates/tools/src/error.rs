//! Why a command stops.

use astrarium_client::ClientError;
use astrarium_rows::RowsError;
use std::path::Path;

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// What was given is wrong: a file, a flag, a folder. The message says where, and what to do.
    #[error("{0}")]
    Input(String),
    /// The account refused, or cannot be reached.
    #[error("{what}: {source}")]
    Account {
        /// What was being done.
        what: String,
        /// Why not.
        source: ClientError,
    },
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    Files {
        /// What was being done.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl From<RowsError> for ToolError {
    fn from(error: RowsError) -> ToolError {
        match error {
            RowsError::Input(message) => ToolError::Input(message),
            RowsError::Files { what, source } => ToolError::Files { what, source },
        }
    }
}

impl ToolError {
    /// Wrong input.
    pub(crate) fn input(message: impl Into<String>) -> ToolError {
        ToolError::Input(message.into())
    }

    /// A failure of the account while something was done.
    pub(crate) fn account(what: impl Into<String>) -> impl FnOnce(ClientError) -> ToolError {
        let what = what.into();
        move |source| ToolError::Account { what, source }
    }

    /// A failure of a file while something was done.
    pub(crate) fn file(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> ToolError {
        // Only then: some callers read byte by byte.
        move |source| ToolError::Files { what: format!("{what} {}", path.display()), source }
    }
}
