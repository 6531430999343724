//! Sessions: a client that has seen more than the server has is told so, instead of being given older data.
//!
//! In: the session token of a request about items and where the request looks. Out: 404/1002 if a range there is behind.
//! Only reads look at tokens, and only under session consistency. Ranges that the container does not have say nothing.
//! Not here: tokens that are no tokens (`service`), the tokens of answers (`place`).

use crate::database::{Container, FeedScope, KeptUse};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::consistency::ConsistencyLevel;
use crate::wire::headers;
use crate::wire::session::SessionToken;
use std::sync::Arc;

/// Checks a read of a part of a container.
pub(crate) async fn check(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    scope: &FeedScope,
) -> Result<(), ErrorAnswer> {
    let Some(text) = request.header(headers::SESSION_TOKEN) else { return Ok(()) };
    let asked =
        request.header(headers::CONSISTENCY_LEVEL).and_then(|text| ConsistencyLevel::parse(text).ok());
    if asked.unwrap_or(shared.settings.consistency) != ConsistencyLevel::Session {
        return Ok(());
    }
    let token = SessionToken::parse(text).map_err(|error| ErrorAnswer::bad_request(error.to_string()))?;
    let seen = |id: u32| token.lsn(itoa::Buffer::new().format(id)).and_then(|lsn| u64::try_from(lsn).ok());
    Ok(shared.account.documents(container).check_session(scope, seen).await?)
}

/// Which results that were kept for the next page may be given to a request: those that show what the client has seen, and
/// under the stronger levels those since which nothing was written.
pub(crate) fn kept_use(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Container,
    scope: &FeedScope,
) -> KeptUse {
    let asked =
        request.header(headers::CONSISTENCY_LEVEL).and_then(|text| ConsistencyLevel::parse(text).ok());
    match asked.unwrap_or(shared.settings.consistency) {
        ConsistencyLevel::Strong | ConsistencyLevel::BoundedStaleness => return KeptUse::Unchanged,
        ConsistencyLevel::ConsistentPrefix | ConsistencyLevel::Eventual => return KeptUse::Always,
        ConsistencyLevel::Session => {}
    }
    let token = request.header(headers::SESSION_TOKEN).and_then(|text| SessionToken::parse(text).ok());
    let Some(token) = token else { return KeptUse::Always };
    let id = match (&container.ranges[..], scope) {
        ([range], _) => range.id,
        (_, FeedScope::Range(id)) => *id,
        (_, FeedScope::Partition(key)) => {
            container.range_of(&container.definition.partition_key.effective(key)).id
        }
        _ => return KeptUse::Unchanged,
    };
    let seen = token.lsn(itoa::Buffer::new().format(id)).and_then(|lsn| u64::try_from(lsn).ok());
    seen.map_or(KeptUse::Always, KeptUse::Since)
}
