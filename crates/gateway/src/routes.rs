//! From an operation to the file that serves it.

mod admin;
mod admin_places;
mod admin_ranges;
mod batch;
mod change_feed;
mod children;
mod containers;
mod databases;
mod documents;
mod empty;
mod explain;
mod offers;
mod patch;
mod query;
mod query_body;
mod query_metrics;
mod ranges;
mod scripts;
pub(crate) mod throttle;

use crate::answer::Answer;
use crate::error::ErrorAnswer;
use crate::operation::{Action, Operation};
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::status::substatus;

pub(crate) async fn dispatch(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    throttle::admit_metadata(shared, request.operation.kind)?;
    serve(shared, request).await.map_err(|failure| of_kind(request, failure))
}

/// What the service says of a failure beside its reason: what kind of resource is missing, by which clients tell a missing item from a
/// missing container, and that it is a database whose name is taken.
fn of_kind(request: &Request<'_>, failure: ErrorAnswer) -> ErrorAnswer {
    let Operation { kind, action, .. } = request.operation;
    match (failure.status, failure.substatus) {
        (404, _) if failure.remark.is_none() => {
            let is_owner = failure.substatus == substatus::OWNER_NOT_FOUND;
            let missing = if is_owner { kind.owner_type() } else { kind.resource_type() };
            let remark = format!("ResourceType: {missing}, OperationType: {}", action.operation_type());
            ErrorAnswer { remark: (!missing.is_empty()).then(|| remark.into()), ..failure }
        }
        (409, 0) if kind == ResourceKind::Database && action == Action::Create => {
            failure.with_substatus(substatus::DATABASE_NAME_EXISTS)
        }
        _ => failure,
    }
}

async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    match request.operation.kind {
        ResourceKind::Document => documents::serve(shared, request).await,
        ResourceKind::PartitionKeyDelete => documents::delete_partition(shared, request).await,
        ResourceKind::Database => databases::serve(shared, request).await,
        ResourceKind::Container => containers::serve(shared, request).await,
        ResourceKind::PartitionKeyRange => ranges::serve(shared, request).await,
        ResourceKind::Offer => offers::serve(shared, request).await,
        ResourceKind::User
        | ResourceKind::Permission
        | ResourceKind::ClientEncryptionKey
        | ResourceKind::StoredProcedure
        | ResourceKind::Trigger
        | ResourceKind::UserDefinedFunction => children::serve(shared, request).await,
        ResourceKind::Conflict | ResourceKind::Schema | ResourceKind::Attachment => {
            empty::serve(shared, request).await
        }
        ResourceKind::Admin => admin::serve(shared, request).await,
        ResourceKind::Account => Err(ErrorAnswer::new(404, "There is nothing at this path.")),
    }
}

/// For operations that a kind of resource does not have; none is ever made for it.
fn unserved() -> ErrorAnswer {
    ErrorAnswer::new(405, "The resource does not have this operation.")
}
