//! `…/docs` and `…/docs/{id}`: items and their read feed; `…/operations/partitionkeydelete`.

use super::containers::owner_missing;
use super::query_body::QueryBody;
use super::{batch, change_feed, explain, patch, query, scripts, throttle};
use crate::answer::{Answer, fixed_header, fixed_name};
use crate::database::partition::PartitionKey;
use crate::database::{
    Body, Container, Error, FeedScope, IndexDirective, Outcome, TriggeredOutcome, WriteMode, WriteOptions,
    push_document, push_document_without_links, read_factor,
};
use crate::error::{ErrorAnswer, Form};
use crate::operation::Action;
use crate::paging::{self, Feed};
use crate::place::ServedBy;
use crate::render;
use crate::request::Request;
use crate::request_log;
use crate::service::GatewayState;
use crate::session;
use crate::wire::address::ResourceKind;
use crate::wire::consistency::ConsistencyLevel;
use crate::wire::status::substatus;
use crate::wire::{binary_json, header_values, headers};
use http::{HeaderValue, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let container = container(shared, request).await.map_err(|failure| of_action(request, failure))?;
    let partition_key = partition_key(request, &container)?;
    let key = partition_key.as_ref();
    let admitted = throttle::admit(shared, request, &container, key).await?;
    let result = match request.operation.action {
        Action::Read => read(shared, request, &container, key).await,
        Action::ReadFeed => read_feed(shared, request, &container, key).await,
        Action::Query => query::documents(shared, request, &container, key).await,
        Action::PlanQuery => plan_query(shared, request, &container),
        Action::Create => write(shared, request, &container, key, WriteMode::Create).await,
        Action::Upsert => write(shared, request, &container, key, WriteMode::Upsert).await,
        Action::Replace => {
            let mode = WriteMode::Replace(request.link(2));
            write(shared, request, &container, key, mode).await
        }
        Action::Patch => patch::serve(shared, request, &container, key).await,
        Action::Delete => delete(shared, request, &container, key).await,
        Action::Transaction | Action::Bulk => batch::serve(shared, request, &container, key).await,
        Action::Execute | Action::DeletePartition | Action::Administer => Err(super::unserved()),
    };
    let result = result.map(|mut answer| {
        if is_strict_read(shared, request) {
            answer.set_charge(request_log::charge(&answer) * read_factor(true));
        }
        answer
    });
    throttle::pay(admitted, &result);
    match result {
        Err(failure) if matches!(failure.status, 404 | 409 | 412) => {
            let failure = of_action(request, failure);
            Err(with_place(shared, &container, key, failure).await)
        }
        other => other,
    }
}

/// Whether a request reads at a level for which the service asks two replicas. A request may ask for less than the account's
/// level, never for more.
fn is_strict_read(shared: &GatewayState, request: &Request<'_>) -> bool {
    let account = shared.settings.consistency;
    if account < ConsistencyLevel::BoundedStaleness {
        return false;
    }
    let asked =
        request.header(headers::CONSISTENCY_LEVEL).and_then(|text| ConsistencyLevel::parse(text).ok());
    asked.unwrap_or(account) >= ConsistencyLevel::BoundedStaleness
        && matches!(request.operation.action, Action::Read | Action::ReadFeed | Action::Query)
}

/// What the service says of a missing item, a failed condition or a missing container, which depends on what was asked
/// for. Tests of SDKs look for it.
fn of_action(request: &Request<'_>, failure: ErrorAnswer) -> ErrorAnswer {
    let action = request.operation.action;
    match (action, failure.status, failure.substatus) {
        (Action::Patch, 404, 0) => {
            ErrorAnswer { message: format!("Resource Not Found. {}", failure.message), ..failure }
        }
        (Action::Patch, 412, _) => {
            ErrorAnswer { message: "One of the specified pre-condition is not met".to_owned(), ..failure }
        }
        (Action::Read | Action::Replace | Action::Delete, 404, 0) if failure.script_log.is_none() => {
            let message = format!("{} More info: https://aka.ms/cosmosdb-tsg-not-found,", failure.message);
            let hides_owner = action == Action::Read;
            ErrorAnswer { message, form: Form::Opening, hides_owner, ..failure }
        }
        (Action::Bulk, 404, substatus::OWNER_NOT_FOUND) => ErrorAnswer { substatus: 0, ..failure },
        _ => failure,
    }
}

/// The last version of the protocol that knew containers without a partition key.
const UNPARTITIONED_VERSION: &str = "2018-09-17";

/// The partition key that a request names. Older clients name none where a container has none.
pub(super) fn partition_key(
    request: &Request<'_>,
    container: &Container,
) -> Result<Option<PartitionKey>, ErrorAnswer> {
    let named = request.partition_key()?;
    let is_of_items = !matches!(request.operation.action, Action::ReadFeed | Action::Query);
    let is_older =
        || request.header(headers::VERSION).is_some_and(|version| version <= UNPARTITIONED_VERSION);
    let has_none = is_of_items && container.definition.partition_key.system_key && is_older();
    Ok(named.or_else(|| has_none.then(|| PartitionKey::new(Vec::new()))))
}

/// The container of a request about items; one of another rid than the client means is refused.
pub(super) async fn container(
    shared: &GatewayState,
    request: &Request<'_>,
) -> Result<Arc<Container>, ErrorAnswer> {
    let found =
        shared.account.catalog().container(request.link(0), request.link(1)).await.map_err(owner_missing)?;
    match request.header(headers::INTENDED_COLLECTION_RID) {
        Some(rid) if rid != found.rid().to_string() => Err(Error::ContainerRecreated.into()),
        _ => Ok(found),
    }
}

fn plan_query(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
) -> Result<Answer, ErrorAnswer> {
    let features = request.header(headers::SUPPORTED_QUERY_FEATURES);
    let body = QueryBody::read(shared, request).map_err(ErrorAnswer::of_plan)?;
    let query = body.of_documents(container.rid()).map_err(ErrorAnswer::of_plan)?;
    let plan = if explain::is_asked(request) {
        shared.account.documents(container).client_plan_to_explain(&query, features)
    } else {
        shared.account.documents(container).client_plan(&query, features)
    };
    let plan = plan.map_err(|error| ErrorAnswer::from(error).of_plan())?;
    Ok(Answer::json(StatusCode::OK, plan.to_string().into_bytes()))
}

/// What a client says about indexing an item, in words or in the numbers that the Python SDK has for them. It changes no
/// answer, so whatever else it may be leaves the matter to the policy.
pub(super) fn index_directive(header: Option<&str>) -> IndexDirective {
    let all = [
        ("Include", IndexDirective::Include),
        ("2", IndexDirective::Include),
        ("Exclude", IndexDirective::Exclude),
        ("1", IndexDirective::Exclude),
    ];
    let is_said = |(name, _): &(&str, IndexDirective)| {
        header.is_some_and(|header| header.trim().eq_ignore_ascii_case(name))
    };
    all.into_iter().find(is_said).map_or(IndexDirective::Default, |(_, directive)| directive)
}

/// Patches and batches run no triggers on the service either. Triggers are named by the client, so leaving them out
/// would be something else than was asked for.
pub(super) fn refuse_triggers(request: &Request<'_>) -> Result<(), ErrorAnswer> {
    if scripts::names_triggers(request) {
        return Err(ErrorAnswer::bad_request("Triggers run with create, replace, upsert and delete only."));
    }
    Ok(())
}

/// Whether the client wants no document in the answer to a write.
pub(super) fn returns_minimal(request: &Request<'_>) -> bool {
    request.header(headers::PREFER).is_some_and(header_values::prefers_minimal)
}

/// A body as JSON text, also if it was sent as binary JSON.
pub(super) fn document_text(body: &[u8]) -> Result<Cow<'_, [u8]>, ErrorAnswer> {
    match body.first() {
        Some(&binary_json::FIRST_BYTE) => {
            let text =
                binary_json::to_text(body).map_err(|error| ErrorAnswer::bad_request(error.to_string()))?;
            Ok(Cow::Owned(text))
        }
        _ => Ok(Cow::Borrowed(body)),
    }
}

async fn write(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
    mode: WriteMode<'_>,
) -> Result<Answer, ErrorAnswer> {
    let index_directive = index_directive(request.header(headers::INDEXING_DIRECTIVE));
    let conditions = request.conditions();
    let options = WriteOptions { partition_key, conditions: &conditions, index_directive };
    let text = document_text(&request.body)?;
    let status = |created| if created { StatusCode::CREATED } else { StatusCode::OK };
    if let Some(triggers) = scripts::triggers(shared, request).await? {
        let done =
            shared.account.scripts(container).write_with_triggers(mode, &text, options, &triggers).await?;
        return Ok(triggered(request, status(done.outcome.created), done));
    }
    let outcome = shared.account.documents(container).write(mode, &text, options).await?;
    Ok(item(request, status(outcome.created), outcome, !returns_minimal(request)))
}

/// The answer to a write with triggers: its document, or what a trigger made of it.
fn triggered(request: &Request<'_>, status: StatusCode, done: TriggeredOutcome) -> Answer {
    let with_body = status != StatusCode::NO_CONTENT && !returns_minimal(request);
    let mut answer = item(request, status, done.outcome, with_body);
    if let Some(shown) = done.shown.filter(|_| with_body) {
        answer.body = shown.into_bytes().into();
    }
    answer.set_script_log(&done.log);
    answer
}

async fn read(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    // A key that is none is for the read to refuse.
    let scope = partition_key.and_then(|key| shared.account.documents(container).partition_scope(key).ok());
    session::check(shared, request, container, &scope.unwrap_or(FeedScope::All)).await?;
    let outcome = shared.account.documents(container).read(request.link(2), partition_key).await?;
    let header = &outcome.body.header;
    let conditions = request.conditions();
    if conditions.is_not_modified(header.etag, header.timestamp) {
        return Ok(item(request, StatusCode::NOT_MODIFIED, outcome, false));
    }
    if conditions.if_match.is_some_and(|condition| !condition.matches(header.etag, header.timestamp)) {
        return Err(Error::PreconditionFailed.into());
    }
    Ok(item(request, StatusCode::OK, outcome, true))
}

async fn delete(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    let (link, conditions) = (request.link(2), request.conditions());
    let mut answer = if let Some(triggers) = scripts::triggers(shared, request).await? {
        let account = &shared.account;
        let done = account
            .scripts(container)
            .delete_with_triggers(link, partition_key, &conditions, &triggers)
            .await?;
        triggered(request, StatusCode::NO_CONTENT, done)
    } else {
        let outcome = shared.account.documents(container).delete(link, partition_key, &conditions).await?;
        item(request, StatusCode::NO_CONTENT, outcome, false)
    };
    answer.headers.remove(headers::ETAG);
    Ok(answer)
}

/// The answer about one item, with or without its content.
pub(super) fn item(request: &Request<'_>, status: StatusCode, outcome: Outcome, with_body: bool) -> Answer {
    let Outcome { container, range_id, lsn, body, charge, .. } = outcome;
    let mut answer = if with_body {
        Answer::json(status, shown(request, &container, &body))
    } else {
        Answer::empty(status)
    };
    answer.set_etag(body.header.etag, body.header.timestamp);
    answer.set_charge(charge);
    let item_lsn = HeaderValue::from(body.header.lsn);
    answer.headers.insert(fixed_name!(headers::ITEM_LSN), item_lsn.clone());
    answer.headers.insert(fixed_name!(headers::ITEM_LOCAL_LSN), item_lsn);
    fixed_header!(answer, headers::RESOURCE_QUOTA, ITEM_QUOTA);
    ServedBy { container, range_id, lsn }.set_headers(&mut answer);
    answer
}

/// The JSON of an item, with as many system properties as the client wants.
pub(super) fn shown(request: &Request<'_>, container: &Container, body: &Body) -> Vec<u8> {
    let mut json = Vec::new();
    if request.flag(headers::EXCLUDE_SYSTEM_PROPERTIES) {
        push_document_without_links(container.rid(), body, &mut json);
    } else {
        push_document(container.rid(), body, &mut json);
    }
    json
}

/// Kilobytes: an item of 2 MiB; the container without a limit of its own.
const ITEM_QUOTA: &str = "documentSize=2048;documentsSize=-1;documentsCount=-1;collectionSize=-1;";

/// The part of a container that a feed is of, by its key, its effective keys or its range.
pub(super) fn feed_scope(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<FeedScope, ErrorAnswer> {
    Ok(given_scope(shared, request, container, partition_key)?.unwrap_or(FeedScope::All))
}

/// The same; nothing if the request does not say. Of a range that is named, no more than the effective keys that are given.
pub(super) fn given_scope(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Option<FeedScope>, ErrorAnswer> {
    let range = match request.range_id()? {
        Some(id) => {
            let range = container.ranges.iter().find(|range| range.id == id);
            Some(range.ok_or(Error::KeyRangeGone)?)
        }
        None => None,
    };
    Ok(match (partition_key, request.slice()?, range) {
        (Some(key), ..) => Some(shared.account.documents(container).partition_scope(key)?),
        (None, Some(slice), Some(range)) if range.keys.is_within(&slice) => Some(FeedScope::Range(range.id)),
        (None, Some(slice), Some(range)) if range.keys.overlaps(&slice) => {
            Some(FeedScope::Slice(range.keys.intersection(&slice)))
        }
        (None, Some(slice), _) => Some(FeedScope::Slice(slice)),
        (None, None, Some(range)) => Some(FeedScope::Range(range.id)),
        (None, None, None) => None,
    })
}

async fn read_feed(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    if let Some(asked) = request.header(headers::A_IM) {
        return change_feed::serve(shared, request, container, partition_key, asked).await;
    }
    let scope = match feed_scope(shared, request, container, partition_key)? {
        // Whoever names effective keys asks for a part of the key space, though it be all of a range: in the order of keys, which is the
        // order of storage. In the order of insertion each document of a large range would be looked for by itself.
        FeedScope::Range(id) if request.slice()?.is_some() => {
            let range = container.ranges.iter().find(|range| range.id == id).ok_or(Error::KeyRangeGone)?;
            FeedScope::Slice(range.keys.clone())
        }
        scope => scope,
    };
    session::check(shared, request, container, &scope).await?;
    let feed = Feed { owner: container.rid(), kind: ResourceKind::Document };
    let position = paging::position(shared, request, feed)?;
    let page = shared.account.documents(container).read_feed(&scope, position, request.page_limit()?).await?;
    let items: Vec<Vec<u8>> = page.documents.iter().map(|body| shown(request, container, body)).collect();
    let mut answer =
        Answer::json(StatusCode::OK, render::feed(container.rid(), ResourceKind::Document, &items));
    answer.set_number(headers::ITEM_COUNT, items.len() as u64);
    answer.set_charge(page.charge);
    if let Some(position) = &page.resume {
        answer.set_text(headers::CONTINUATION, paging::token(shared, feed, position));
    }
    ServedBy { container: container.clone(), range_id: page.range_id, lsn: page.lsn }
        .set_headers(&mut answer);
    Ok(answer)
}

pub(super) async fn delete_partition(
    shared: &GatewayState,
    request: &Request<'_>,
) -> Result<Answer, ErrorAnswer> {
    let container = container(shared, request).await?;
    let key = request
        .partition_key()?
        .ok_or_else(|| ErrorAnswer::bad_request("PartitionKey value must be supplied for this operation."))?;
    let admitted = throttle::admit(shared, request, &container, Some(&key)).await?;
    let deleted = shared.account.documents(&container).delete_partition(&key).await;
    let result = deleted.map_err(ErrorAnswer::from).map(|(range_id, lsn, charge)| {
        let mut answer = Answer::empty(StatusCode::OK);
        answer.set_charge(charge.max(1.0));
        ServedBy { container: Arc::clone(&container), range_id, lsn }.set_headers(&mut answer);
        answer
    });
    throttle::pay(admitted, &result);
    result
}

/// Adds where a failed operation was looked for, so that the session goes on from there.
pub(super) async fn with_place(
    shared: &GatewayState,
    container: &Arc<Container>,
    key: Option<&PartitionKey>,
    failure: ErrorAnswer,
) -> ErrorAnswer {
    match shared.account.documents(container).position(key).await {
        Ok((range_id, lsn)) => {
            ErrorAnswer { place: Some(ServedBy { container: container.clone(), range_id, lsn }), ..failure }
        }
        Err(_) => failure,
    }
}
