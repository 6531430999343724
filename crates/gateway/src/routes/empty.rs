//! Feeds that a single-region server has but never fills: conflicts, schemas, and the retired attachments.

use super::containers::owner_missing;
use super::query;
use crate::answer::Answer;
use crate::database::{Container, Error, Rid};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::Feed;
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let kind = request.address.kind;
    let container = shared
        .account
        .catalog()
        .current_container(request.link(0), request.link(1))
        .await
        .map_err(owner_missing)?;
    let owner = owner(shared, request, container.rid()).await?;
    let mut answer = match request.operation.action {
        Action::Query if kind == ResourceKind::Conflict => {
            check_scope(request, &container)?;
            query::resources(shared, request, Feed { owner, kind }, Vec::new()).await?
        }
        Action::ReadFeed | Action::Query => {
            let mut answer = Answer::json(StatusCode::OK, render::feed(owner, kind, &[]));
            answer.set_static(headers::ITEM_COUNT, "0");
            answer
        }
        Action::Create | Action::Replace if kind == ResourceKind::Attachment => {
            return Err(ErrorAnswer::bad_request(
                "Attachments are retired. Keep the file elsewhere and its address in the item.",
            ));
        }
        _ => return Err(Error::NotFound.into()),
    };
    answer.set_text(headers::ALT_CONTENT_PATH, container.path());
    answer.set_text(headers::CONTENT_PATH, container.rid().to_string());
    Ok(answer)
}

/// A query of conflicts looks at one partition or says that it may look at all, as one of items.
fn check_scope(request: &Request<'_>, container: &Container) -> Result<(), ErrorAnswer> {
    let range_id = request.range_id()?;
    if range_id.is_some_and(|id| container.ranges.iter().all(|range| range.id != id)) {
        return Err(Error::KeyRangeGone.into());
    }
    let scoped = range_id.is_some() || request.partition_key()?.is_some() || request.slice()?.is_some();
    if scoped || request.flag(headers::QUERY_ENABLE_CROSS_PARTITION) {
        return Ok(());
    }
    Err(Error::cross_partition_disabled().into())
}

/// The owner of the feed: the container, or for attachments the item, which must be there.
async fn owner(shared: &GatewayState, request: &Request<'_>, container: Rid) -> Result<Rid, ErrorAnswer> {
    if request.address.kind != ResourceKind::Attachment {
        return Ok(container);
    }
    let loaded =
        shared.account.catalog().container(request.link(0), request.link(1)).await.map_err(owner_missing)?;
    let key = request.partition_key()?;
    let item =
        shared.account.documents(&loaded).read(request.link(2), key.as_ref()).await.map_err(owner_missing)?;
    Ok(render::document_rid(container, &item.body))
}
