//! How a query runs, as a row that every SDK can carry: `{"plan": "..."}` instead of the query's own rows.
//!
//! In: a query request with the header `x-astrarium-explain`, which clients add to all requests of a query. Out: one row for
//! each key range that the client asks, or a single one where it asks for everything at once. The plan that SDKs ask for
//! before they merge says that there is nothing to merge (`documents::plan_query`), so they pass the rows on as they are.

use crate::answer::{Answer, fixed_name};
use crate::database::{Container, Limits, Query, QueryScope};
use crate::error::ErrorAnswer;
use crate::place::ServedBy;
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::{HeaderValue, StatusCode};
use std::sync::Arc;

/// Asks for the plan instead of rows; our own header.
const EXPLAIN_HEADER: &str = "x-astrarium-explain";

/// Whether the client wants to know how its query runs; any value but a false one says so.
pub(super) fn is_asked(request: &Request<'_>) -> bool {
    request
        .header(EXPLAIN_HEADER)
        .is_some_and(|value| !["0", "no", "false"].iter().any(|no| value.eq_ignore_ascii_case(no)))
}

/// The row that says how the query runs where the request looks.
pub(super) async fn answer(
    shared: &GatewayState,
    container: &Arc<Container>,
    query: &Query,
    scope: QueryScope,
    limits: Limits,
) -> Result<Answer, ErrorAnswer> {
    // Nobody merges rows of EXPLAIN, so a query over several ranges is told as the server would run it whole.
    let scope = match scope {
        QueryScope::Open { .. } => QueryScope::Open { cross_partition: true, whole: true },
        given @ QueryScope::Given(_) => given,
    };
    let (plan, page) = shared.account.documents(container).explain(query, &scope, limits).await?;
    let row = match scope {
        QueryScope::Open { .. } => serde_json::json!({"plan": plan}),
        QueryScope::Given(_) => serde_json::json!({"range": page.range_id.to_string(), "plan": plan}),
    };
    let body = render::feed(container.rid(), ResourceKind::Document, &[row.to_string().into_bytes()]);
    let mut answer = Answer::json(StatusCode::OK, body);
    answer.headers.insert(fixed_name!(headers::ITEM_COUNT), HeaderValue::from(1));
    answer.set_charge(page.charge);
    let place = ServedBy { container: container.clone(), range_id: page.range_id, lsn: page.lsn };
    place.set_headers(&mut answer);
    Ok(answer)
}
