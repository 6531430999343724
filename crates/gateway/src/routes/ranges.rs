//! `…/pkranges`: the key ranges by which clients route, with the incremental protocol that ends in 304.

use super::containers::owner_missing;
use super::query;
use crate::answer::Answer;
use crate::database::{ChildType, Container, DocumentsHandle, Error, Range, Rid, etag_text};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::Feed;
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let container =
        shared.account.catalog().container(request.link(0), request.link(1)).await.map_err(owner_missing)?;
    let documents = shared.account.documents(&container);
    let mut answer = match request.operation.action {
        Action::Query => {
            let mut ranges = Vec::with_capacity(container.ranges.len());
            for range in &container.ranges {
                ranges.push(range_json(documents, range).await?);
            }
            let feed = Feed { owner: container.rid(), kind: ResourceKind::PartitionKeyRange };
            query::resources(shared, request, feed, ranges).await?
        }
        Action::ReadFeed => feed(documents, request).await?,
        Action::Read => {
            let id = request.address.ids.get(2).map_or("", |id| id.as_ref());
            let range = container
                .ranges
                .iter()
                .find(|range| range.id.to_string() == id || range_rid(&container, range).to_string() == id);
            let json = range_json(documents, range.ok_or(Error::NotFound)?).await?;
            Answer::json(StatusCode::OK, json.to_string().into_bytes())
        }
        _ => return Err(super::unserved()),
    };
    answer.set_text(headers::ALT_CONTENT_PATH, container.path());
    answer.set_text(headers::CONTENT_PATH, container.rid().to_string());
    Ok(answer)
}

async fn feed(documents: DocumentsHandle<'_>, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let container = documents.container();
    let (stamp, timestamp) = version(container);
    let incremental = request.header(headers::A_IM).is_some();
    if incremental && request.conditions().is_not_modified(stamp, timestamp) {
        let mut answer = Answer::empty(StatusCode::NOT_MODIFIED);
        answer.set_etag(stamp, timestamp);
        return Ok(answer);
    }
    let mut items = Vec::with_capacity(container.ranges.len());
    for range in &container.ranges {
        items.push(range_json(documents, range).await?.to_string().into_bytes());
    }
    let body = render::feed(container.rid(), ResourceKind::PartitionKeyRange, &items);
    let mut answer = Answer::json(StatusCode::OK, body);
    answer.set_etag(stamp, timestamp);
    answer.set_number(headers::ITEM_COUNT, items.len() as u64);
    Ok(answer)
}

/// What the feed's etag is made of: it changes exactly when the set of ranges does, since ids are never reused.
fn version(container: &Container) -> (u64, u64) {
    let highest = container.ranges.iter().map(|range| range.id).max().unwrap_or(0);
    (u64::from(highest) << 32 | container.ranges.len() as u64, container.rid().number())
}

fn range_rid(container: &Container, range: &Range) -> Rid {
    Rid::child(container.rid(), ChildType::KeyRange, u64::from(range.id) + 2)
}

async fn range_json(documents: DocumentsHandle<'_>, range: &Range) -> Result<Value, ErrorAnswer> {
    let container = documents.container();
    let rid = range_rid(container, range);
    let record = &container.resource.record;
    let lsn = documents.range_lsn(range).await?;
    let owner = render::self_link(container.resource.kind, container.rid());
    let parents: Vec<String> = range.parents.iter().map(u32::to_string).collect();
    Ok(json!({
        "_rid": rid.to_string(),
        "id": range.id.to_string(),
        "_etag": etag_text(u64::from(range.id) + 1, record.timestamp),
        "minInclusive": range.keys.min.to_string(),
        "maxExclusive": range.keys.max.to_string(),
        "ridPrefix": range.id,
        "_self": format!("{owner}pkranges/{rid}/"),
        "throughputFraction": 1.0 / container.ranges.len() as f64,
        "status": "online",
        "parents": parents,
        "ownedArchivalPKRangeIds": [],
        "_ts": record.timestamp,
        "lsn": lsn,
    }))
}
