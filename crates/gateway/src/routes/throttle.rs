//! What a request says about its turn where throughput is limited, and what it pays; the budgets are `database`'s.

use crate::answer::Answer;
use crate::database::partition::PartitionKey;
use crate::database::{Admitted, Container, Error, FAILURE_CHARGE, ThroughputDemand};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::request_log;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use std::sync::Arc;

/// Charge of an operation on definitions.
pub(crate) const METADATA_CHARGE: f64 = 1.0;

/// Lets a request about items in, or refuses it with 429.
pub(super) async fn admit(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Option<Admitted>, ErrorAnswer> {
    if !shared.account.is_throttling() {
        return Ok(None);
    }
    let has_low_priority =
        request.header(headers::PRIORITY_LEVEL).is_some_and(|level| level.eq_ignore_ascii_case("low"));
    admit_demand(
        shared,
        container,
        ThroughputDemand { partition_key, range_id: request.range_id()?, has_low_priority },
    )
    .await
}

/// The same for whatever asks. Nothing where throughput is not limited, which is the usual case and costs one look at a flag.
pub(crate) async fn admit_demand(
    shared: &GatewayState,
    container: &Arc<Container>,
    demand: ThroughputDemand<'_>,
) -> Result<Option<Admitted>, ErrorAnswer> {
    if !shared.account.is_throttling() {
        return Ok(None);
    }
    // Most requests do without it, and shall not carry its future.
    Box::pin(shared.account.documents(container).admit(demand)).await.map_err(|error| {
        let first = container.ranges.first().map_or(0, |range| range.id);
        let range_id = if let Error::Throttled { range_id, .. } = &error { *range_id } else { None };
        let throttled_at = Some(Box::new((container.rid(), range_id.unwrap_or(first))));
        ErrorAnswer { throttled_at, ..ErrorAnswer::from(error) }
    })
}

/// Has a request that was let in pay what it cost.
pub(super) fn pay(admitted: Option<Admitted>, result: &Result<Answer, ErrorAnswer>) {
    pay_charge(admitted, result.as_ref().ok().map(request_log::charge));
}

/// The same by the charge, which a failure has none of.
pub(crate) fn pay_charge(admitted: Option<Admitted>, charge: Option<f64>) {
    if let Some(admitted) = admitted {
        admitted.pay(charge.unwrap_or(FAILURE_CHARGE));
    }
}

/// Lets an operation on definitions in, or refuses it with 429.
pub(super) fn admit_metadata(shared: &GatewayState, kind: ResourceKind) -> Result<(), ErrorAnswer> {
    let is_metadata =
        !matches!(kind, ResourceKind::Document | ResourceKind::PartitionKeyDelete | ResourceKind::Admin);
    if is_metadata && shared.account.is_throttling() {
        shared.account.admit_metadata(METADATA_CHARGE)?;
    }
    Ok(())
}
