//! `/_admin/ranges`, `/_admin/split`, `/_admin/merge`: the key ranges of a container, with what they hold; splitting and merging them.
//!
//! Bodies name the container: `{"database": "d", "container": "c"}`, with `"range": "0"` for a split and `"ranges": ["1", "2"]` for a
//! merge. Small containers are done when the answer comes; for others it says that the work is pending, and how far it is.

use crate::answer::Answer;
use crate::database::{Container, Error, Link};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// What is asked of a container's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangesRequest {
    Show,
    Split,
    Merge,
}

pub(super) async fn serve(
    shared: &GatewayState,
    request: &Request<'_>,
    asked: RangesRequest,
) -> Result<Answer, ErrorAnswer> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let name = |member: &str| body.get(member).and_then(Value::as_str);
    let (Some(database), Some(container)) = (name("database"), name("container")) else {
        return Err(malformed());
    };
    let (database, container) = (Link::Name(database), Link::Name(container));
    let catalog = shared.account.catalog();
    let container = match asked {
        RangesRequest::Show => catalog.current_container(database, container).await?,
        RangesRequest::Split => {
            let id = body.get("range").and_then(range_id).ok_or_else(malformed)?;
            catalog.split_range(database, container, id).await?
        }
        RangesRequest::Merge => {
            let ids = body.get("ranges").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let ids: Option<Vec<u32>> = ids.iter().map(range_id).collect();
            let Some([low, high]) = ids.as_deref() else { return Err(malformed()) };
            catalog.merge_ranges(database, container, (*low, *high)).await?
        }
    };
    let shown = shown(shared, &container).await?;
    Ok(Answer::json(StatusCode::OK, shown.to_string().into_bytes()))
}

async fn shown(shared: &GatewayState, container: &Arc<Container>) -> Result<Value, ErrorAnswer> {
    let documents = shared.account.documents(container);
    let mut ranges = Vec::with_capacity(container.ranges.len());
    for range in &container.ranges {
        let usage = match documents.range_usage(range).await {
            // Replaced a moment ago.
            Err(Error::KeyRangeGone) => continue,
            usage => usage?,
        };
        let parents: Vec<String> = range.parents.iter().map(u32::to_string).collect();
        ranges.push(json!({
            "id": range.id.to_string(),
            "minInclusive": range.keys.min.to_string(),
            "maxExclusive": range.keys.max.to_string(),
            "parents": parents,
            "documents": usage.documents,
            "bytes": usage.bytes,
        }));
    }
    let status = shared.account.catalog().resharding_status(container.rid()).await?;
    let percent = (status.progress * 100.0).round();
    Ok(json!({"ranges": ranges, "pending": status.is_pending, "progressPercent": percent}))
}

/// The id of a range, as text like everywhere else on the wire, or as a number.
pub(super) fn range_id(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64().and_then(|id| u32::try_from(id).ok()),
    }
}

fn malformed() -> ErrorAnswer {
    ErrorAnswer::bad_request(
        "The body must name a container, {\"database\": \"d\", \"container\": \"c\"}, with the id of a \"range\" to split or of two \
         neighbouring \"ranges\" to merge.",
    )
}
