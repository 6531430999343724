//! Feeds that a single-region server has but never fills: conflicts, schemas, and the retired attachments.

use super::containers::owner_missing;
use crate::answer::Answer;
use crate::database::{Error, Rid};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let kind = request.address.kind;
    let container =
        shared.account.catalog().container(request.link(0), request.link(1)).await.map_err(owner_missing)?;
    let owner = owner(shared, request, container.rid()).await?;
    match request.operation.action {
        Action::ReadFeed | Action::Query => {}
        Action::Create | Action::Replace if kind == ResourceKind::Attachment => {
            return Err(ErrorAnswer::bad_request(
                "Attachments are retired. Keep the file elsewhere and its address in the item.",
            ));
        }
        _ => return Err(Error::NotFound.into()),
    }
    let mut answer = Answer::json(StatusCode::OK, render::feed(owner, kind, &[]));
    answer.set_static(headers::ITEM_COUNT, "0");
    answer.set_text(headers::ALT_CONTENT_PATH, container.path());
    answer.set_text(headers::CONTENT_PATH, container.rid().to_string());
    Ok(answer)
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
