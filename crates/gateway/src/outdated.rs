//! Requests that were refused because of what a container was, not of what it is.
//!
//! In: the container that a request went by, without asking storage, and its failure. Out: whether the failure may be of the past, since
//! another server has changed the container, made it again under its name, or split its ranges. The request is answered once more then,
//! from its authorization on: a failed request has done nothing.
//! Invariants
//! - Where no other server can have the storage open, nothing is asked.
//! - Whoever succeeds was not outdated: storage refuses views and commits of those who are.

use crate::database::Container;
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::status::substatus;
use std::sync::Arc;

/// The container that a request will go by; nothing if storage will be asked for it.
pub(crate) fn assumed_container(shared: &GatewayState, request: &Request<'_>) -> Option<Arc<Container>> {
    if request.address.ids.len() < 2 {
        return None;
    }
    shared.account.catalog().assumed_container(request.link(0), request.link(1))
}

/// Whether a request failed and the container that it went by is not what it was.
pub(crate) async fn explains(
    shared: &GatewayState,
    request: &Request<'_>,
    assumed: Option<Arc<Container>>,
    failure: &ErrorAnswer,
) -> bool {
    let Some(container) = assumed.filter(|_| goes_by_container(request, failure)) else { return false };
    // Storage that does not answer is no reason to ask it once more.
    Box::pin(shared.account.catalog().is_outdated(&container)).await.unwrap_or(false)
}

/// Whether a failure may come of a container's name, definition or ranges. That a document is not there, or is there already, or is
/// another one, only storage can have told.
fn goes_by_container(request: &Request<'_>, failure: &ErrorAnswer) -> bool {
    match failure.status {
        400 | 403 | 410 => true,
        404 => {
            failure.substatus == substatus::OWNER_NOT_FOUND
                || matches!(request.operation.action, Action::Execute | Action::Bulk)
        }
        _ => false,
    }
}
