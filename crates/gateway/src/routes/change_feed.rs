//! `GET …/docs` with `A-IM`: the change feed, in both of its modes.
//!
//! Documents as they are now come bare, or, to clients that name the version of the shape (Java's processor, Rust), with their
//! metadata beside them as all versions do.
//! Where to go on is the answer's `etag`, which comes back in `If-None-Match`; nothing new is 304 with the etag, without a body.

use super::documents::{feed_scope, shown};
use crate::answer::Answer;
use crate::database::partition::PartitionKey;
use crate::database::{
    Body, ChangeFeedMode, ChangeFeedPage, ChangeFeedPosition, ChangeFeedStart, ChangeOperation,
    ChangePosition, Container, FeedChange, ReadChanges,
};
use crate::error::ErrorAnswer;
use crate::place::ServedBy;
use crate::render;
use crate::request::{Request, excerpt};
use crate::service::GatewayState;
use crate::session;
use crate::wire::address::ResourceKind;
use crate::wire::change_feed::{FeedEtag, FeedKind, RangeProgress};
use crate::wire::{date, headers};
use http::StatusCode;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// The version of the shape that has metadata beside documents.
const SEPARATE_METADATA: &str = "2021-09-15";

pub(super) async fn serve(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
    asked: &str,
) -> Result<Answer, ErrorAnswer> {
    let mode = mode(container, asked)?;
    let scope = feed_scope(shared, request, container, partition_key)?;
    session::check(shared, request, container, &scope).await?;
    let start = start(request, mode)?;
    let (limit, wait) = (request.page_limit()?, wait(request)?);
    // Go sends a key to every range that it reads: each answers for itself.
    let range_id = request.range_id()?;
    let read = ReadChanges { scope, range_id, mode, start, limit, wait };
    let page = shared.account.documents(container).read_changes(&read).await?;
    Ok(answer(request, (mode, shared.settings.previous_images), page))
}

fn mode(container: &Container, asked: &str) -> Result<ChangeFeedMode, ErrorAnswer> {
    match FeedKind::parse(asked) {
        Some(FeedKind::Incremental) => Ok(ChangeFeedMode::LatestVersion),
        Some(FeedKind::FullFidelity) if container.history_minutes.is_some() => {
            Ok(ChangeFeedMode::AllVersionsAndDeletes)
        }
        Some(FeedKind::FullFidelity) => Err(ErrorAnswer::bad_request(
            "The feature 'All Versions and Deletes' must be enabled to read the change feed in full fidelity. Give the \
             container a changeFeedPolicy with a retentionDuration in minutes, or start the server with --continuous-backup.",
        )),
        None => Err(ErrorAnswer::bad_request(format!(
            "A-IM is '{}'; it may be 'Incremental feed' or 'Full-Fidelity Feed'.",
            excerpt(asked)
        ))),
    }
}

/// Where the client wants to start: a position counts before a time, and without both it is the beginning.
fn start(request: &Request<'_>, mode: ChangeFeedMode) -> Result<ChangeFeedStart, ErrorAnswer> {
    let start = match (request.header(headers::IF_NONE_MATCH), request.header(headers::IF_MODIFIED_SINCE)) {
        (Some("*"), _) => ChangeFeedStart::Now,
        (Some(text), _) => ChangeFeedStart::Position(position(text)?),
        (None, Some(text)) => {
            let time = date::parse(text).map_err(|_| {
                ErrorAnswer::bad_request(format!(
                    "If-Modified-Since is '{}'; it must be a date such as 'Thu, 27 Apr 2017 00:51:12 GMT'.",
                    excerpt(text)
                ))
            })?;
            ChangeFeedStart::Time(u64::try_from(time).unwrap_or(0))
        }
        (None, None) => ChangeFeedStart::Beginning,
    };
    let is_past = matches!(start, ChangeFeedStart::Beginning | ChangeFeedStart::Time(_));
    if is_past && mode == ChangeFeedMode::AllVersionsAndDeletes {
        return Err(ErrorAnswer::bad_request(
            "You must read the change feed from within the retention period. All versions and deletes can be read from now \
             or from a continuation, not from the beginning or from a time.",
        ));
    }
    Ok(start)
}

fn position(text: &str) -> Result<ChangeFeedPosition, ErrorAnswer> {
    let etag = FeedEtag::parse(text).ok_or_else(|| {
        ErrorAnswer::bad_request(format!(
            "Invalid continuation: If-None-Match is '{}'. Send back the etag of the previous page unchanged, '*' for changes \
             from now on, or none.",
            excerpt(text)
        ))
    })?;
    let ranges = etag.ranges.into_iter().map(|range| {
        let sequence = range.sequence.unwrap_or(ChangePosition::WHOLE);
        (range.range_id, ChangePosition { lsn: range.lsn, sequence })
    });
    Ok(ChangeFeedPosition { ranges: ranges.collect(), since: etag.since })
}

/// The etag of a position. The place in a single range is good for all that may come of it.
fn etag(position: &ChangeFeedPosition) -> FeedEtag {
    let is_single = position.ranges.len() == 1;
    let ranges = position.ranges.iter().map(|(id, place)| RangeProgress {
        range_id: id.filter(|_| !is_single),
        lsn: place.lsn,
        sequence: (place.sequence != ChangePosition::WHOLE).then_some(place.sequence),
    });
    FeedEtag { ranges: ranges.collect(), since: position.since }
}

fn wait(request: &Request<'_>) -> Result<Duration, ErrorAnswer> {
    let Some(text) = request.header(headers::MAX_POLLING_INTERVAL) else { return Ok(Duration::ZERO) };
    // .NET prints a fraction where there is one.
    let milliseconds = text.split('.').next().unwrap_or(text).parse();
    milliseconds.map(Duration::from_millis).map_err(|_| {
        ErrorAnswer::bad_request(format!(
            "{} is '{}'; it must be a number of milliseconds.",
            headers::MAX_POLLING_INTERVAL,
            excerpt(text)
        ))
    })
}

fn answer(
    request: &Request<'_>,
    (mode, previous_images): (ChangeFeedMode, bool),
    page: ChangeFeedPage,
) -> Answer {
    let ChangeFeedPage { container, changes, position, range_id, lsn, charge, .. } = page;
    let mut answer = if changes.is_empty() {
        Answer::empty(StatusCode::NOT_MODIFIED)
    } else {
        let is_separate = request.header(headers::CHANGE_FEED_WIRE_FORMAT_VERSION) == Some(SEPARATE_METADATA);
        let items: Vec<Vec<u8>> = changes
            .iter()
            .filter_map(|change| match mode {
                ChangeFeedMode::LatestVersion => {
                    change.current.as_ref().map(|body| latest(request, &container, body, is_separate))
                }
                ChangeFeedMode::AllVersionsAndDeletes => {
                    Some(version(request, &container, change, previous_images))
                }
            })
            .collect();
        Answer::json(StatusCode::OK, render::feed(container.rid(), ResourceKind::Document, &items))
    };
    answer.set_text(headers::ETAG, etag(&position).to_string());
    answer.set_number(headers::ITEM_COUNT, changes.len() as u64);
    answer.set_charge(charge);
    ServedBy { container, range_id, lsn }.set_headers(&mut answer);
    answer
}

/// A document as it is now, with the commit of its last change in it or beside it.
fn latest(request: &Request<'_>, container: &Container, body: &Body, is_separate: bool) -> Vec<u8> {
    let mut json = shown(request, container, body);
    let header = &body.header;
    if is_separate {
        json.splice(..0, b"{\"current\":".iter().copied());
        let metadata = format!(",\"metadata\":{{\"lsn\":{},\"crts\":{}}}}}", header.lsn, header.timestamp);
        json.extend_from_slice(metadata.as_bytes());
        return json;
    }
    json.pop();
    json.extend_from_slice(b",\"_lsn\":");
    json.extend_from_slice(itoa::Buffer::new().format(header.lsn).as_bytes());
    json.push(b'}');
    json
}

/// A change with what was after it and, for accounts that want it, before it.
fn version(
    request: &Request<'_>,
    container: &Container,
    change: &FeedChange,
    previous_images: bool,
) -> Vec<u8> {
    let mut json = b"{\"current\":".to_vec();
    match &change.current {
        Some(body) => json.extend_from_slice(&shown(request, container, body)),
        None => json.extend_from_slice(b"{}"),
    }
    json.extend_from_slice(b",\"metadata\":");
    json.extend_from_slice(Value::from(metadata(container, change)).to_string().as_bytes());
    if let Some(body) = change.previous.as_ref().filter(|_| previous_images) {
        json.extend_from_slice(b",\"previous\":");
        json.extend_from_slice(&shown(request, container, body));
    }
    json.push(b'}');
    json
}

fn metadata(container: &Container, change: &FeedChange) -> Map<String, Value> {
    let mut metadata = Map::new();
    let mut put = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
    put("lsn", change.lsn.into());
    put("crts", change.timestamp.into());
    let operation = match change.operation {
        ChangeOperation::Create => "create",
        ChangeOperation::Replace => "replace",
        ChangeOperation::Delete | ChangeOperation::Expire => "delete",
    };
    put("operationType", operation.into());
    if change.operation == ChangeOperation::Expire {
        put("timeToLiveExpired", true.into());
    }
    if let Some(previous) = &change.previous {
        put("previousImageLSN", previous.header.lsn.into());
    }
    if let (None, Some(previous)) = (&change.current, &change.previous) {
        // Stored text is JSON.
        let text: Value = serde_json::from_slice(previous.text()).unwrap_or_default();
        put("id", text.get("id").cloned().unwrap_or_default());
        put("partitionKey", partition_key_object(container, &text));
    }
    metadata
}

/// The values of a document at the paths of the partition key, as an object of the same nesting.
fn partition_key_object(container: &Container, document: &Value) -> Value {
    let mut object = Map::new();
    for path in &container.definition.partition_key.paths {
        let names: Vec<&str> = path.segments().iter().map(|name| &**name).collect();
        let value = names.iter().try_fold(document, |value, name| value.get(*name));
        put_at(&mut object, &names, value.cloned().unwrap_or_default());
    }
    object.into()
}

/// Puts a value at a path. Where a shorter path has put a value of its own already that one stays.
fn put_at(object: &mut Map<String, Value>, names: &[&str], value: Value) {
    match names {
        [] => {}
        [name] => {
            object.entry(*name).or_insert(value);
        }
        [name, rest @ ..] => {
            if let Value::Object(inner) = object.entry(*name).or_insert_with(|| Map::new().into()) {
                put_at(inner, rest, value);
            }
        }
    }
}
