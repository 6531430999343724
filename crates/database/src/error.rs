//! What an operation can answer instead of a result: one variant for each thing a caller can act on.

use crate::scripts::ScriptFault;
use astrarium_catalog as catalog;
use astrarium_catalog::definition::Invalid;
use astrarium_env::Stopped;
use astrarium_kv as kv;
use astrarium_script as script;
use astrarium_store as store;
use astrarium_value::patch::PatchError;

/// Why an operation did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The request breaks a rule. The client's to correct.
    #[error("{0}")]
    Invalid(String),
    /// The query breaks a rule of the language. The client's to correct.
    #[error("{}", .0.first().map_or("The query is invalid.", |fault| &fault.message))]
    Query(Vec<QueryFault>),
    /// The query needs rows of several ranges to be merged, which is the client's part: it asks for the plan and does so.
    #[error(
        "The provided cross partition query can not be directly served by the gateway. This is a first chance \
         (internal) exception that all newer clients will know how to handle gracefully. This exception is traced, but \
         unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely \
         ignore this message."
    )]
    NeedsClientPlan(String),
    /// The query needs more time than there is. The client's to narrow.
    #[error("{0}")]
    Timeout(String),
    /// A script failed, and nothing of it has happened. Who has to act its own error says.
    #[error(transparent)]
    Script(Box<ScriptFault>),
    /// The partition key given is not the one of the container's definition or of the document.
    #[error(
        "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition \
         key field values specified in the document."
    )]
    PartitionKeyMismatch,
    /// The partition key given has as many values as the document's, and others.
    #[error(
        "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: \
         https://aka.ms/CosmosDB/sql/errors/wrong-pk-value. Document: {link}"
    )]
    PartitionKeyDiffers {
        /// The document that the body is, by its names.
        link: String,
    },
    /// The client meant another container of the same name: it has to reload its definition.
    #[error("The container was recreated: its resource id is not the one the request was meant for.")]
    ContainerRecreated,
    /// The resource is not there.
    #[error("Entity with the specified id does not exist in the system.")]
    NotFound,
    /// The client has seen more than the server has: its session belongs to other data. The client's to give up.
    #[error("The read session is not available for the input session token.")]
    SessionNotAvailable,
    /// The database, container or user that the resource would be in is not there.
    #[error("Resource Not Found. The owner resource of this request does not exist.")]
    OwnerNotFound,
    /// A resource of this name is there already.
    #[error("Entity with the specified id already exists in the system.")]
    Exists,
    /// A document of the same logical partition has the same values at the paths of a unique key.
    #[error("Unique index constraint violation.")]
    UniqueKey,
    /// The resource is not in the state the request was made for.
    #[error("Operation cannot be performed because one of the specified precondition is not met.")]
    PreconditionFailed,
    /// The document or request is larger than allowed.
    #[error("Request size is too large")]
    TooLarge,
    /// The documents that a batch would answer with are larger together than a response may be. The client's to split.
    #[error("The response is larger than a response may be.")]
    ResponseTooLarge,
    /// The key range named is not, or no longer, one of the container's.
    #[error("The requested partition key range is gone; read the container's partition key ranges again.")]
    KeyRangeGone,
    /// The key range takes no writes, because others are about to take its place. The client may repeat it as it is.
    #[error("The partition key range is being split; retry the request.")]
    KeyRangeMoving,
    /// The container's ranges are being changed already.
    #[error("The container's partitions are being split or merged at the moment; retry when that is done.")]
    Resharding,
    /// The operation kept losing against concurrent changes. The client may repeat it as it is.
    #[error("Conflicting concurrent changes; retry the request.")]
    RetryWith,
    /// Too much waits to be written at the moment. Retry after a moment.
    #[error("Request rate is large. More requests are waiting to be written than the server takes at once.")]
    Busy,
    /// The provisioned throughput is used up. Retry when that is over, or provision more.
    #[error(
        "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request \
         later. Learn more: http://aka.ms/cosmosdb-error-429"
    )]
    Throttled {
        /// Milliseconds until there are request units again.
        retry_after_ms: u64,
        /// The key range that has none, if it is one.
        range_id: Option<u32>,
    },
    /// More is asked for than the server does or holds at once. Retry after a moment.
    #[error("{0}")]
    Overloaded(String),
    /// A query has to end before it is done; never told to a client as it is.
    #[error("The query was stopped: {0}.")]
    Stopped(Stopped),
    /// Storage takes no writes. The operator's to mend.
    #[error("The service is currently unable to write: {0}")]
    Unavailable(String),
    /// Stored data is damaged. The operator's to restore.
    #[error("Stored data is damaged: {0}")]
    Damaged(String),
    /// The index is damaged; queries are answered without it, other uses wait until it is built anew. The client's to repeat.
    #[error("The index is damaged and being built anew: {0}")]
    IndexLost(String),
    /// The index names documents that are not there; queries are answered without it.
    #[error("The index is wrong and will be built anew: {0}")]
    IndexWrong(String),
    /// A broken invariant of ours.
    #[error("Internal error: {0}")]
    Bug(String),
}

/// One mistake in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFault {
    /// The service's code, such as `SC2001`; may be empty.
    pub code: &'static str,
    /// Where it begins, in UTF-16 units of the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What is wrong, in the service's sentence and nothing else: tests of clients compare it.
    pub message: String,
    /// Line and column for people, and what was met and expected there where that is known.
    pub detail: String,
}

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The client, with another request.
    Request,
    /// The client, with the same request, after looking at the new state.
    Conflict,
    /// The client, later.
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
            Error::Invalid(_)
            | Error::Query(_)
            | Error::Timeout(_)
            | Error::NeedsClientPlan(_)
            | Error::PartitionKeyMismatch
            | Error::PartitionKeyDiffers { .. }
            | Error::ContainerRecreated
            | Error::NotFound
            | Error::SessionNotAvailable
            | Error::OwnerNotFound
            | Error::TooLarge
            | Error::ResponseTooLarge
            | Error::KeyRangeGone
            | Error::KeyRangeMoving
            | Error::Resharding => Kind::Request,
            Error::Exists | Error::UniqueKey | Error::PreconditionFailed | Error::RetryWith => Kind::Conflict,
            Error::Script(fault) => match fault.error.kind() {
                script::Kind::Request | script::Kind::Host => Kind::Request,
                script::Kind::Throttled => Kind::Throttled,
                script::Kind::Unavailable => Kind::Unavailable,
                script::Kind::Bug => Kind::Bug,
            },
            Error::Busy | Error::Throttled { .. } | Error::Overloaded(_) => Kind::Throttled,
            Error::Unavailable(_) | Error::IndexLost(_) | Error::IndexWrong(_) => Kind::Unavailable,
            Error::Damaged(_) => Kind::Corruption,
            Error::Bug(_) | Error::Stopped(_) => Kind::Bug,
        }
    }

    /// A query looks at all partitions and did not say that it may.
    pub fn cross_partition_disabled() -> Error {
        Error::invalid(
            "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to \
             true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.",
        )
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid(message.into())
    }
}

impl From<kv::Error> for Error {
    fn from(error: kv::Error) -> Error {
        match error {
            kv::Error::Conflict { .. } | kv::Error::Fenced { .. } | kv::Error::ShardExists { .. } => {
                Error::RetryWith
            }
            kv::Error::Dropped { .. } => Error::OwnerNotFound,
            kv::Error::Busy => Error::Busy,
            kv::Error::Unavailable { reason } => Error::Unavailable(reason),
            kv::Error::Corruption { what } => Error::Damaged(what),
            kv::Error::SetLost { what } => Error::IndexLost(what),
            kv::Error::KeyTooLong { what } => Error::Invalid(format!(
                "The partition key and the id are too long together for the store that keeps the document ({what}). Choose shorter ones."
            )),
            kv::Error::Contract { what } => Error::Bug(what),
        }
    }
}

impl From<catalog::Error> for Error {
    fn from(error: catalog::Error) -> Error {
        match error {
            catalog::Error::Storage(error) => error.into(),
            catalog::Error::Malformed(error) => Error::Damaged(error.to_string()),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        match error {
            store::Error::Storage(error) => error.into(),
            store::Error::Malformed(error) => Error::Damaged(error.to_string()),
            store::Error::RangeClosed => Error::KeyRangeMoving,
            dangling @ store::Error::DanglingEntry { .. } => Error::IndexWrong(dangling.to_string()),
        }
    }
}

impl From<store::Refusal> for Error {
    fn from(refusal: store::Refusal) -> Error {
        match refusal {
            store::Refusal::Invalid(message) => Error::Invalid(message),
            store::Refusal::TooLarge => Error::TooLarge,
        }
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Error {
        match error {
            PatchError::Document => Error::Damaged(error.to_string()),
            other => Error::Invalid(other.to_string()),
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Error {
        match invalid {
            Invalid::Request { message } => Error::Invalid(message),
            Invalid::TooLarge { .. } => Error::TooLarge,
        }
    }
}
