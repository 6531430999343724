//! What operators do over HTTP: `/_admin/{name}`, signed with an account key like any request. Not part of the service's protocol.
//!
//! A name is an arm of [`serve`]; what may be asked of it, and by whom, is `operation`'s business.

use super::admin_places;
use super::admin_ranges::{self, RangesRequest};
use super::unserved;
use crate::answer::Answer;
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::request::Request;
use crate::service::GatewayState;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let is_read = request.operation.action != Action::Administer;
    match request.address.ids.first().map(AsRef::as_ref) {
        Some("clock") => clock(shared, request),
        Some("placement") if is_read => admin_places::placement(shared).await,
        Some("placement") => Err(unserved()),
        Some("ranges" | "split" | "merge" | "move" | "drain") if is_read => Err(unserved()),
        Some("ranges") => admin_ranges::serve(shared, request, RangesRequest::Show).await,
        Some("split") => admin_ranges::serve(shared, request, RangesRequest::Split).await,
        Some("merge") => admin_ranges::serve(shared, request, RangesRequest::Merge).await,
        Some("move") => admin_places::move_range(shared, request).await,
        Some("drain") => admin_places::drain(shared, request).await,
        Some(_) => Err(ErrorAnswer::new(404, "There is no such name below /_admin.")),
        None => Err(unserved()),
    }
}

/// Tells the time of the database; moves it forwards by the `advanceSeconds` of a body.
fn clock(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    if !shared.settings.test_clock {
        return Err(ErrorAnswer::new(
            404,
            "The clock cannot be moved. Start the server with --test-clock for that.",
        ));
    }
    let env = shared.account.env();
    if request.operation.action == Action::Administer {
        let body: Option<Value> = serde_json::from_slice(&request.body).ok();
        let seconds = body.as_ref().and_then(|body| body.get("advanceSeconds")?.as_u64());
        if !seconds.is_some_and(|seconds| env.advance_clock(seconds)) {
            return Err(ErrorAnswer::bad_request(
                "The body must be {\"advanceSeconds\": n} with a whole number of seconds, 0 or more. The clock moves \
                 forwards only, by a hundred years at most.",
            ));
        }
    }
    let told = json!({"nowSeconds": env.now_seconds(), "advancedSeconds": env.advanced_seconds()});
    Ok(Answer::json(StatusCode::OK, told.to_string().into_bytes()))
}
