//! `/_admin/placement`, `/_admin/move`, `/_admin/drain`: where ranges live; moving one, or everything that a place holds.
//!
//! A place is named by its name, or by its number. Bodies: `{"database": "d", "container": "c", "range": "0", "place": "name"}` for a
//! move; `{"place": "name"}` for a drain, with `"stop": true` for the end of one. Ranges of small containers have moved when the answer
//! comes; for others it says that the work is pending, and how far it is. A drain goes on in the background.

use super::admin_ranges::range_id;
use crate::answer::Answer;
use crate::database::{Link, Place, PlaceId, Placement, RangePlacement};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use http::StatusCode;
use serde_json::{Value, json};

/// Where everything is.
pub(super) async fn placement(shared: &GatewayState) -> Result<Answer, ErrorAnswer> {
    let placement = shared.account.maintenance().placement().await?;
    Ok(shown(&placement, |_| true))
}

/// Moves a range; answers with the ranges of its container.
pub(super) async fn move_range(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let name = |member: &str| body.get(member).and_then(Value::as_str);
    let range = body.get("range").and_then(range_id);
    let (Some(database), Some(container), Some(range)) = (name("database"), name("container"), range) else {
        return Err(malformed());
    };
    let place = named_place(shared, &body).await?;
    let catalog = shared.account.catalog();
    let moved = catalog.move_range(Link::Name(database), Link::Name(container), range, place).await?;
    let status = catalog.resharding_status(moved.rid()).await?;
    let placement = shared.account.maintenance().placement().await?;
    let is_own = |range: &RangePlacement| range.database == database && range.container == container;
    let ranges: Vec<Value> = placement
        .ranges
        .iter()
        .filter(|range| is_own(range))
        .map(|range| range_json(&placement, range))
        .collect();
    let percent = (status.progress * 100.0).round();
    let told = json!({"ranges": ranges, "pending": status.is_pending, "progressPercent": percent});
    Ok(Answer::json(StatusCode::OK, told.to_string().into_bytes()))
}

/// Has a place emptied, or ends that; answers with what is there still.
pub(super) async fn drain(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let place = named_place(shared, &body).await?;
    let maintenance = shared.account.maintenance();
    match body.get("stop") {
        None | Some(Value::Bool(false)) => maintenance.drain_place(place).await?,
        Some(Value::Bool(true)) => maintenance.stop_draining(place).await?,
        Some(_) => return Err(malformed()),
    }
    Ok(shown(&maintenance.placement().await?, |range| range.place == place))
}

/// The place that a body names.
async fn named_place(shared: &GatewayState, body: &Value) -> Result<PlaceId, ErrorAnswer> {
    let named = body.get("place").ok_or_else(malformed)?;
    let places = shared.account.maintenance().places().await?;
    let found = places.iter().find(|place| named.as_str() == Some(place.name.as_str()));
    if let Some(place) = found {
        return Ok(place.id);
    }
    match range_id(named) {
        Some(number) => Ok(PlaceId(number)),
        None if named.is_string() => {
            let known: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
            let message = format!("There is no place of this name. The places are: {}.", known.join(", "));
            Err(ErrorAnswer::bad_request(message))
        }
        None => Err(malformed()),
    }
}

fn shown(placement: &Placement, is_shown: impl Fn(&RangePlacement) -> bool) -> Answer {
    let places: Vec<Value> = placement.places.iter().map(place_json).collect();
    let ranges = placement.ranges.iter().filter(|range| is_shown(range));
    let ranges: Vec<Value> = ranges.map(|range| range_json(placement, range)).collect();
    Answer::json(StatusCode::OK, json!({"places": places, "ranges": ranges}).to_string().into_bytes())
}

fn place_json(place: &Place) -> Value {
    json!({
        "id": place.id.0,
        "name": place.name,
        "draining": place.is_draining,
        "shards": place.shard_count,
        "bytes": place.byte_count,
    })
}

fn range_json(placement: &Placement, range: &RangePlacement) -> Value {
    let place = placement.places.iter().find(|place| place.id == range.place);
    let place = place.map_or_else(|| range.place.0.to_string(), |place| place.name.clone());
    let mut json = json!({
        "database": range.database,
        "container": range.container,
        "range": range.range_id.to_string(),
        "place": place,
        "documents": range.usage.documents,
        "bytes": range.usage.bytes,
    });
    if let Some(copied) = range.copied {
        json["copiedPercent"] = (copied * 100.0).round().into();
    }
    json
}

fn malformed() -> ErrorAnswer {
    ErrorAnswer::bad_request(
        "The body must name a \"place\", by its name or number; for a move also \"database\", \"container\" and the id of the \"range\". \
         The end of a drain is asked for with \"stop\": true.",
    )
}
