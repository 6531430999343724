//! Why a page could not be made.

use astrarium_env::Stopped;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_store::FeedError;

/// Why a page could not be made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecuteError {
    /// The query is at fault, or needs too much.
    #[error(transparent)]
    Evaluate(EvaluateError),
    /// Documents cannot be read.
    #[error(transparent)]
    Feed(FeedError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(astrarium_index::finder::Error),
    /// The query has to end.
    #[error("the query was stopped")]
    Stopped(#[from] Stopped),
    /// The position is not one of this query.
    #[error("Invalid Continuation Token")]
    ForeignPosition,
    /// The client says where rows begin in an order that the query does not have.
    #[error("A resumeFilter needs a query with ORDER BY, and one value for each of its items.")]
    ForeignStart,
}

impl From<FeedError> for ExecuteError {
    fn from(error: FeedError) -> ExecuteError {
        match error {
            FeedError::NoMemory => ExecuteError::Stopped(Stopped::NoMemory),
            error => ExecuteError::Feed(error),
        }
    }
}

impl From<EvaluateError> for ExecuteError {
    fn from(error: EvaluateError) -> ExecuteError {
        match error {
            EvaluateError::Stopped(stopped) => ExecuteError::Stopped(stopped),
            error => ExecuteError::Evaluate(error),
        }
    }
}

impl From<astrarium_index::finder::Error> for ExecuteError {
    fn from(error: astrarium_index::finder::Error) -> ExecuteError {
        match error {
            astrarium_index::finder::Error::Stopped(stopped) => ExecuteError::Stopped(stopped),
            error => ExecuteError::Index(error),
        }
    }
}
