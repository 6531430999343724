//! Sessions: a client that has seen more than the server has is told so, instead of being given older data.
//!
//! In: the session token of a request about items and where the request looks. Out: 404/1002 if a range there is behind.
//! Only reads look at tokens, and only under session consistency. What a client saw of a range that was split or merged
//! since counts for the ranges that came of it; other ranges that the container does not have say nothing.
//! Not here: tokens that are no tokens (`service`), the tokens of answers (`place`).

use crate::database::{Container, FeedScope, KeptUse};
use crate::error::ErrorAnswer;
use crate::request::{Headers, Request};
use crate::service::GatewayState;
use crate::wire::consistency::{self, ConsistencyLevel};
use crate::wire::headers;
use crate::wire::session::SessionToken;
use std::sync::Arc;

/// The level a request is served under: what its strategy comes to, or the level it asks for, or the account's.
pub(crate) fn level(
    account: ConsistencyLevel,
    headers: Headers<'_>,
) -> Result<ConsistencyLevel, ErrorAnswer> {
    let strategy = headers.get(headers::READ_CONSISTENCY_STRATEGY).map(consistency::parse_read_strategy);
    if let Some(level) = strategy.transpose().map_err(refusal)?.flatten() {
        // One strategy needs an account of its own: all others are every account's.
        if level == ConsistencyLevel::Strong && account != ConsistencyLevel::Strong {
            return Err(ErrorAnswer::bad_request(format!(
                "The read consistency strategy GlobalStrong needs an account whose consistency level is Strong; this one's is {}.",
                account.name()
            )));
        }
        return Ok(level);
    }
    let asked = headers.get(headers::CONSISTENCY_LEVEL).map(ConsistencyLevel::parse);
    let level = asked.transpose().map_err(refusal)?.unwrap_or(account);
    if !level.is_served_by(account) {
        return Err(ErrorAnswer::bad_request(format!(
            "Consistency level {} is stronger than the account's {}. Ask for the same or a weaker one.",
            level.name(),
            account.name()
        )));
    }
    Ok(level)
}

/// Checks a read of a part of a container.
pub(crate) async fn check(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    scope: &FeedScope,
) -> Result<(), ErrorAnswer> {
    let Some(text) = request.header(headers::SESSION_TOKEN) else { return Ok(()) };
    if level(shared.settings.consistency, request.headers)? != ConsistencyLevel::Session {
        return Ok(());
    }
    let token = SessionToken::parse(text).map_err(refusal)?;
    Ok(shared.account.documents(container).check_session(scope, |id| position(&token, id)).await?)
}

/// Which results that were kept for the next page may be given to a request: those that show what the client has seen, and
/// under the stronger levels those since which nothing was written.
pub(crate) fn kept_use(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Container,
    scope: &FeedScope,
) -> Result<KeptUse, ErrorAnswer> {
    match level(shared.settings.consistency, request.headers)? {
        ConsistencyLevel::Strong | ConsistencyLevel::BoundedStaleness => return Ok(KeptUse::Unchanged),
        ConsistencyLevel::ConsistentPrefix | ConsistencyLevel::Eventual => return Ok(KeptUse::Always),
        ConsistencyLevel::Session => {}
    }
    let Some(text) = request.header(headers::SESSION_TOKEN) else { return Ok(KeptUse::Always) };
    let token = SessionToken::parse(text).map_err(refusal)?;
    let range = match (&container.ranges[..], scope) {
        ([range], _) => Some(range),
        (ranges, FeedScope::Range(id)) => ranges.iter().find(|range| range.id == *id),
        (_, FeedScope::Partition(key)) => {
            Some(container.range_of(&container.definition.partition_key.effective(key)))
        }
        _ => None,
    };
    let Some(range) = range else { return Ok(KeptUse::Unchanged) };
    Ok(range.seen_by(|id| position(&token, id)).map_or(KeptUse::Always, KeptUse::Since))
}

fn position(token: &SessionToken<'_>, range_id: u32) -> Option<u64> {
    token.lsn(itoa::Buffer::new().format(range_id)).and_then(|lsn| u64::try_from(lsn).ok())
}

fn refusal(error: impl std::error::Error) -> ErrorAnswer {
    ErrorAnswer::bad_request(error.to_string())
}
