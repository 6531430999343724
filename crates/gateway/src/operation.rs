//! What a request asks for: verb, address and headers turned into one value, and what that value needs.
//!
//! In: method, address, headers. Out: [`Operation`], or the refusal of a request that means nothing or two things.
//! Invariants
//! - Nothing else of the gateway reads the verb, or the headers that choose between operations. Who may do it
//!   (`authorize`) and what is done (`routes`) both follow from the operation, so they cannot disagree.
//! - A header counts only where it makes sense: a procedure is executed and a database is created whatever headers say
//!   about queries; what contradicts itself is refused.
//! - Whatever [`Operation::needs`] does not name as open to tokens is for account keys, and what is not a read is a write.
//!
//! Not here: how a resource is found (`request`), who sent the request (`authenticate`).

use crate::error::ErrorAnswer;
use crate::request::Headers;
use crate::wire::address::{Address, ResourceKind};
use crate::wire::headers;
use http::Method;

/// What is done, to which kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The kind of resource, or of the feed's resources.
    pub(crate) kind: ResourceKind,
    /// What is done.
    pub(crate) action: Action,
    /// Whether a write of a document names triggers to run with it.
    pub(crate) with_triggers: bool,
}

/// What is done to a resource or a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// One resource.
    Read,
    /// The feed, page by page.
    ReadFeed,
    /// The feed, by a query.
    Query,
    /// How a client should run a query over documents.
    PlanQuery,
    Create,
    /// Create, or replace what is there.
    Upsert,
    Replace,
    /// Parts of a document.
    Patch,
    Delete,
    /// A stored procedure.
    Execute,
    /// Many operations on documents of one partition, all or none.
    Transaction,
    /// Many operations on documents, each alone.
    Bulk,
    /// All documents of a partition.
    DeletePartition,
    /// What only operators do.
    Administer,
}

impl Action {
    /// What error messages of the service call it.
    pub(crate) const fn operation_type(self) -> &'static str {
        match self {
            Action::Read | Action::Administer => "Read",
            Action::ReadFeed => "ReadFeed",
            Action::Query => "Query",
            Action::PlanQuery => "QueryPlan",
            Action::Create => "Create",
            Action::Upsert => "Upsert",
            Action::Replace => "Replace",
            Action::Patch => "Patch",
            Action::Delete | Action::DeletePartition => "Delete",
            Action::Execute => "ExecuteJavaScript",
            Action::Transaction | Action::Bulk => "Batch",
        }
    }

    /// All of them.
    pub(crate) const ALL: [Action; 14] = [
        Action::Read,
        Action::ReadFeed,
        Action::Query,
        Action::PlanQuery,
        Action::Create,
        Action::Upsert,
        Action::Replace,
        Action::Patch,
        Action::Delete,
        Action::Execute,
        Action::Transaction,
        Action::Bulk,
        Action::DeletePartition,
        Action::Administer,
    ];

    /// What it is called in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::ReadFeed => "read_feed",
            Action::Query => "query",
            Action::PlanQuery => "plan_query",
            Action::Create => "create",
            Action::Upsert => "upsert",
            Action::Replace => "replace",
            Action::Patch => "patch",
            Action::Delete => "delete",
            Action::Execute => "execute",
            Action::Transaction => "transaction",
            Action::Bulk => "bulk",
            Action::DeletePartition => "delete_partition",
            Action::Administer => "administer",
        }
    }
}

/// What must be allowed for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) effect: OperationEffect,
    pub(crate) reach: Reach,
    pub(crate) partition: Partition,
}

/// Whether an operation changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationEffect {
    Read,
    Write,
}

/// What a token must be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anything: every client has to read the account.
    Anything,
    /// No token reaches so far; an account key does.
    AccountKey,
    /// The database.
    Database,
    /// The container, or its database.
    Container,
    /// The container or anything below it: clients find their way by it.
    Routing,
    /// This one resource, or its container, or its database.
    Resource,
}

/// What a token for one partition key may do of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partition {
    /// It belongs to no partition and tells nothing of any.
    Neutral,
    /// Everything that it touches lies in the partitions that the request names.
    Within,
    /// Nothing: it concerns all partitions.
    Beyond,
}

impl Operation {
    /// Reads what a request asks for.
    pub(crate) fn of(
        method: &Method,
        address: &Address<'_>,
        headers: Headers<'_>,
    ) -> Result<Operation, ErrorAnswer> {
        let kind = address.kind;
        if !address.allows(method.as_str()) {
            return Err(method_not_allowed(address));
        }
        let action = match (method, address.is_feed()) {
            (&Method::GET | &Method::HEAD, true) => Action::ReadFeed,
            (&Method::GET | &Method::HEAD, false) => Action::Read,
            (&Method::POST, true) => posted(kind, headers)?,
            (&Method::POST, false) if kind == ResourceKind::StoredProcedure => Action::Execute,
            (&Method::POST, false) if kind == ResourceKind::PartitionKeyDelete => Action::DeletePartition,
            (&Method::POST, false) if kind == ResourceKind::Admin => Action::Administer,
            (&Method::PUT, false) => Action::Replace,
            (&Method::PATCH, false) => Action::Patch,
            (&Method::DELETE, false) => Action::Delete,
            _ => return Err(method_not_allowed(address)),
        };
        let operation = Operation { kind, action, with_triggers: false };
        refuse_repeated(headers)?;
        Ok(Operation { with_triggers: operation.may_run_triggers() && names_triggers(headers), ..operation })
    }

    /// Whether it is mostly about its body: to check and index documents, to read and plan a query. How long queries and
    /// scripts run is another matter, and they have threads of their own for that.
    pub(crate) fn takes_as_long_as_its_body(self) -> bool {
        match self.action {
            Action::Create
            | Action::Upsert
            | Action::Replace
            | Action::Patch
            | Action::Transaction
            | Action::Bulk
            | Action::PlanQuery => true,
            Action::Read
            | Action::ReadFeed
            | Action::Query
            | Action::Delete
            | Action::Execute
            | Action::DeletePartition
            | Action::Administer => false,
        }
    }

    /// The table of what every operation needs.
    pub(crate) fn needs(self) -> Needs {
        let effect = match self.action {
            // What operators are told is for whoever may do everything.
            Action::Read if self.kind == ResourceKind::Admin => OperationEffect::Write,
            Action::Read | Action::ReadFeed | Action::Query | Action::PlanQuery => OperationEffect::Read,
            Action::Create
            | Action::Upsert
            | Action::Replace
            | Action::Patch
            | Action::Delete
            | Action::Execute
            | Action::Transaction
            | Action::Bulk
            | Action::DeletePartition
            | Action::Administer => OperationEffect::Write,
        };
        let (reach, partition) = match self.kind {
            ResourceKind::Account => (Reach::Anything, Partition::Neutral),
            ResourceKind::Offer | ResourceKind::Admin => (Reach::AccountKey, Partition::Beyond),
            ResourceKind::Database if self.action == Action::Read => (Reach::Database, Partition::Beyond),
            ResourceKind::Database => (Reach::AccountKey, Partition::Beyond),
            // Who can make permissions can do everything, so only an account key makes them.
            ResourceKind::User | ResourceKind::Permission if effect == OperationEffect::Write => {
                (Reach::AccountKey, Partition::Beyond)
            }
            ResourceKind::User | ResourceKind::Permission | ResourceKind::ClientEncryptionKey => {
                (Reach::Database, Partition::Beyond)
            }
            ResourceKind::Container => match self.action {
                Action::Read => (Reach::Routing, Partition::Neutral),
                Action::Replace | Action::Delete => (Reach::Container, Partition::Beyond),
                _ => (Reach::Database, Partition::Beyond),
            },
            ResourceKind::PartitionKeyRange => (Reach::Routing, Partition::Neutral),
            ResourceKind::Document => match self.action {
                Action::PlanQuery => (Reach::Container, Partition::Neutral),
                // A trigger may write other documents of the partition.
                Action::Read | Action::Replace | Action::Patch | Action::Delete if !self.with_triggers => {
                    (Reach::Resource, Partition::Within)
                }
                _ => (Reach::Container, Partition::Within),
            },
            ResourceKind::Attachment => (Reach::Resource, Partition::Within),
            ResourceKind::PartitionKeyDelete => (Reach::Container, Partition::Within),
            ResourceKind::StoredProcedure if self.action == Action::Execute => {
                (Reach::Resource, Partition::Within)
            }
            ResourceKind::StoredProcedure
            | ResourceKind::Trigger
            | ResourceKind::UserDefinedFunction
            | ResourceKind::Conflict => match self.action {
                Action::Read | Action::Replace | Action::Delete => (Reach::Resource, Partition::Beyond),
                _ => (Reach::Container, Partition::Beyond),
            },
            ResourceKind::Schema => (Reach::Container, Partition::Beyond),
        };
        Needs { effect, reach, partition }
    }

    /// Whether the body is a query.
    pub(crate) fn is_query(self) -> bool {
        matches!(self.action, Action::Query | Action::PlanQuery)
    }

    /// Whether triggers may be named; with other operations on documents, naming them is refused by the route.
    fn may_run_triggers(self) -> bool {
        self.kind == ResourceKind::Document && self.needs().effect == OperationEffect::Write
    }
}

/// What a `POST` to a feed means.
fn posted(kind: ResourceKind, headers: Headers<'_>) -> Result<Action, ErrorAnswer> {
    let of_documents = kind == ResourceKind::Document;
    let plans = of_documents && headers.flag(headers::IS_QUERY_PLAN_REQUEST);
    let queries = plans || is_query(headers);
    let batches = of_documents && headers.flag(headers::IS_BATCH_REQUEST);
    let upserts = has_upsert(kind) && headers.flag(headers::IS_UPSERT);
    match (queries, batches, upserts) {
        (true, false, false) if plans => Ok(Action::PlanQuery),
        (true, false, false) => Ok(Action::Query),
        (false, true, false) if headers.flag(headers::BATCH_ATOMIC) => Ok(Action::Transaction),
        (false, true, false) => Ok(Action::Bulk),
        (false, false, true) => Ok(Action::Upsert),
        (false, false, false) => match kind {
            ResourceKind::Offer => {
                Err(ErrorAnswer::new(405, "Offers come and go with their databases and containers."))
            }
            ResourceKind::PartitionKeyRange => {
                Err(ErrorAnswer::new(405, "Key ranges are made by the server. POST is for queries here."))
            }
            _ => Ok(Action::Create),
        },
        _ => Err(ErrorAnswer::bad_request(
            "The headers of the request contradict each other: it can be a query, a batch or an upsert, and only one of \
             them.",
        )),
    }
}

/// Whether a POST to a feed is a query: SDKs say so in three ways.
fn is_query(headers: Headers<'_>) -> bool {
    let content_type = headers.get(headers::CONTENT_TYPE).unwrap_or_default();
    let is =
        |name: &str| content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    headers.flag(headers::IS_QUERY)
        || headers.flag(headers::QUERY)
        || is("application/query+json")
        || is("application/sql")
}

fn has_upsert(kind: ResourceKind) -> bool {
    matches!(
        kind,
        ResourceKind::Document
            | ResourceKind::User
            | ResourceKind::Permission
            | ResourceKind::StoredProcedure
            | ResourceKind::Trigger
            | ResourceKind::UserDefinedFunction
    )
}

fn names_triggers(headers: Headers<'_>) -> bool {
    headers.get(headers::PRE_TRIGGER_INCLUDE).is_some()
        || headers.get(headers::POST_TRIGGER_INCLUDE).is_some()
}

/// Headers that say what is meant or where. A second one could be read differently by somebody on the way.
const SINGLE: [&str; 14] = [
    headers::CONTENT_TYPE,
    headers::IS_QUERY,
    headers::QUERY,
    headers::IS_QUERY_PLAN_REQUEST,
    headers::IS_BATCH_REQUEST,
    headers::BATCH_ATOMIC,
    headers::IS_UPSERT,
    headers::PARTITION_KEY,
    headers::PARTITION_KEY_RANGE_ID,
    headers::START_EPK,
    headers::END_EPK,
    headers::READ_KEY_TYPE,
    headers::PRE_TRIGGER_INCLUDE,
    headers::POST_TRIGGER_INCLUDE,
];

fn refuse_repeated(headers: Headers<'_>) -> Result<(), ErrorAnswer> {
    match headers.repeated(&SINGLE) {
        None => Ok(()),
        Some(name) => Err(ErrorAnswer::bad_request(format!(
            "The header {name} was sent more than once. Send one of them."
        ))),
    }
}

fn method_not_allowed(address: &Address<'_>) -> ErrorAnswer {
    ErrorAnswer::new(
        405,
        format!("The verb is not supported on this path; it takes {}.", address.allowed_methods().join(", ")),
    )
}

#[cfg(test)]
mod tests;
