//! `…/pkranges`: the key ranges by which clients route, with the incremental protocol that ends in 304.

use super::containers::owner_missing;
use super::query;
use crate::answer::Answer;
use crate::database::partition::EffectiveRange;
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

/// How often the ranges are read again at most because they are split meanwhile.
const READS_MAX: usize = 5;

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    for _ in 1..READS_MAX {
        match serve_once(shared, request).await {
            Err(gone) if gone.status == 410 => {}
            answer => return answer,
        }
    }
    serve_once(shared, request).await
}

async fn serve_once(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let container = shared
        .account
        .catalog()
        .current_container(request.link(0), request.link(1))
        .await
        .map_err(owner_missing)?;
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
            let range = container.ranges.iter().find(|range| {
                range.id.to_string() == id || range_rid(&container, range.id).to_string() == id
            });
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
    let known = known_ids(container, request).filter(|_| incremental);
    let mut items = Vec::with_capacity(container.ranges.len());
    for (id, keys, parents) in known.map(|known| split_since(container, known)).unwrap_or_default() {
        // Clients that know it see it once more, before what came of it.
        items.push(gone_json(container, id, &keys, &parents).to_string().into_bytes());
    }
    for range in container.ranges.iter().filter(|range| known.is_none_or(|known| range.id > known)) {
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

/// The highest id of the ranges that a client has, by the etag it names; nothing for another etag.
fn known_ids(container: &Container, request: &Request<'_>) -> Option<u32> {
    let text = request.header(headers::IF_NONE_MATCH)?;
    let highest = container.ranges.iter().map(|range| range.id).max()?;
    let timestamp = container.rid().number();
    // Ids are given one after another, so what the client has is one of few.
    (0..highest).find(|known| {
        let count = ranges_known_at(container, *known);
        text == etag_text(u64::from(*known) << 32 | count, timestamp)
    })
}

/// How many ranges the container had when this was the highest id.
fn ranges_known_at(container: &Container, highest: u32) -> u64 {
    let mut ids: Vec<u32> = container.ranges.iter().filter_map(|range| leaf_at(range, highest)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len() as u64
}

/// The range that had the keys of this one when `highest` was the highest id.
fn leaf_at(range: &Range, highest: u32) -> Option<u32> {
    range.parents.iter().chain([&range.id]).copied().filter(|id| *id <= highest).max()
}

/// The ranges that are gone since this was the highest id, each with its keys and what it came of.
fn split_since(container: &Container, highest: u32) -> Vec<(u32, EffectiveRange, Vec<u32>)> {
    let mut gone: Vec<(u32, EffectiveRange, Vec<u32>)> = Vec::new();
    for range in container.ranges.iter().filter(|range| range.id > highest) {
        let Some(leaf) = leaf_at(range, highest) else { continue };
        if let Some((_, keys, _)) = gone.iter_mut().find(|(id, ..)| *id == leaf) {
            keys.max = range.keys.max.clone();
        } else {
            let parents = range.parents.iter().copied().filter(|id| *id < leaf).collect();
            gone.push((leaf, range.keys.clone(), parents));
        }
    }
    gone
}

fn range_rid(container: &Container, id: u32) -> Rid {
    Rid::child(container.rid(), ChildType::KeyRange, u64::from(id) + 2)
}

fn gone_json(container: &Container, id: u32, keys: &EffectiveRange, parents: &[u32]) -> Value {
    range_members(container, id, keys, parents, "splitting")
}

async fn range_json(documents: DocumentsHandle<'_>, range: &Range) -> Result<Value, ErrorAnswer> {
    let container = documents.container();
    let mut json = range_members(container, range.id, &range.keys, &range.parents, "online");
    json["lsn"] = documents.range_lsn(range).await?.into();
    Ok(json)
}

fn range_members(
    container: &Container,
    id: u32,
    keys: &EffectiveRange,
    parents: &[u32],
    status: &str,
) -> Value {
    let rid = range_rid(container, id);
    let record = &container.resource.record;
    let owner = render::self_link(container.resource.kind, container.rid());
    let parents: Vec<String> = parents.iter().map(u32::to_string).collect();
    json!({
        "_rid": rid.to_string(),
        "id": id.to_string(),
        "_etag": etag_text(u64::from(id) + 1, record.timestamp),
        "minInclusive": keys.min.to_string(),
        "maxExclusive": keys.max.to_string(),
        "ridPrefix": id,
        "_self": format!("{owner}pkranges/{rid}/"),
        "throughputFraction": 1.0 / container.ranges.len() as f64,
        "status": status,
        "parents": parents,
        "ownedArchivalPKRangeIds": [],
        "_ts": record.timestamp,
    })
}
