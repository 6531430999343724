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
mod ranges;
mod scripts;
pub(crate) mod throttle;

use crate::answer::Answer;
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;

pub(crate) async fn dispatch(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    throttle::admit_metadata(shared, request.operation.kind)?;
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
