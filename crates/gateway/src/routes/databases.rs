//! `/dbs` and `/dbs/{id}`.

use super::containers::throughput;
use super::documents::returns_minimal;
use super::query;
use crate::answer::Answer;
use crate::database::definition::database::DatabaseDefinition;
use crate::database::{Resource, Rid};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::{self, Feed};
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::Value;

const FEED: Feed = Feed { owner: Rid::ROOT, kind: ResourceKind::Database };

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let catalog = shared.account.catalog();
    match request.operation.action {
        Action::Query => {
            let all = catalog.list_databases(0, usize::MAX).await?;
            query::resources(shared, request, FEED, shown(&all.resources)).await
        }
        Action::Create => {
            let definition = DatabaseDefinition::from_json(&request.json()?)?;
            let database = catalog.create_database(&definition, throughput(request)?).await?;
            let mut answer = resource_answer(StatusCode::CREATED, &database);
            answer.set_text(headers::SESSION_TOKEN, format!("0:-1#{}", database.record.version));
            if returns_minimal(request) {
                answer.body = Bytes::new();
                answer.headers.remove(CONTENT_TYPE);
            }
            Ok(answer)
        }
        Action::ReadFeed => list(shared, request).await,
        Action::Delete => {
            catalog.delete_database(request.link(0), &request.conditions()).await?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        Action::Read => {
            let database = catalog.database(request.link(0)).await?;
            Ok(unless_not_modified(request, &database, resource_answer(StatusCode::OK, &database)))
        }
        _ => Err(super::unserved()),
    }
}

async fn list(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let after = paging::after(shared, request, FEED)?;
    let listing = shared.account.catalog().list_databases(after, request.page_limit()?.count_max).await?;
    Ok(listed(shared, FEED, &listing.resources, listing.more, |_, _| {}))
}

/// A single catalog resource.
pub(super) fn resource_answer(status: StatusCode, resource: &Resource) -> Answer {
    let json = Value::Object(render::resource(resource)).to_string();
    let mut answer = Answer::json(status, json.into_bytes());
    answer.set_etag(resource.record.etag, resource.record.timestamp);
    answer.set_static(headers::SCHEMA_VERSION, "1.19");
    answer
}

/// A reader that has the present version gets no body.
pub(super) fn unless_not_modified(request: &Request<'_>, resource: &Resource, answer: Answer) -> Answer {
    if !request.conditions().is_not_modified(resource.record.etag, resource.record.timestamp) {
        return answer;
    }
    let mut unchanged = Answer::empty(StatusCode::NOT_MODIFIED);
    unchanged.set_etag(resource.record.etag, resource.record.timestamp);
    unchanged
}

/// Resources as the wire shows them.
pub(super) fn shown(resources: &[Resource]) -> Vec<Value> {
    resources.iter().map(|resource| Value::Object(render::resource(resource))).collect()
}

/// A page of a catalog feed.
pub(super) fn listed(
    shared: &GatewayState,
    feed: Feed,
    resources: &[Resource],
    more: bool,
    mut complete: impl FnMut(&Resource, &mut serde_json::Map<String, Value>),
) -> Answer {
    let mut items = Vec::with_capacity(resources.len());
    for resource in resources {
        let mut json = render::resource(resource);
        complete(resource, &mut json);
        items.push(Value::Object(json).to_string().into_bytes());
    }
    let mut answer = Answer::json(StatusCode::OK, render::feed(feed.owner, feed.kind, &items));
    answer.set_number(headers::ITEM_COUNT, items.len() as u64);
    if let Some(last) = resources.last().filter(|_| more) {
        let floors = crate::database::Floors::default();
        let position =
            crate::database::FeedPosition::Number { range_id: 0, number: last.rid.number(), floors };
        answer.set_text(headers::CONTINUATION, paging::token(shared, feed, &position));
    }
    answer
}
