//! `…/sprocs/{id}` executed, and what writes with triggers need: names of triggers, logs.

use super::documents::{container, partition_key, with_place};
use super::throttle;
use crate::answer::Answer;
use crate::database::partition::PartitionKey;
use crate::database::{ChildKind, Container, Error, Link, ScriptRequest, Triggers};
use crate::error::ErrorAnswer;
use crate::place::ServedBy;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::{headers, percent};
use http::StatusCode;
use std::borrow::Cow;
use std::sync::Arc;

/// Most bytes of a procedure's parameters.
const PARAMETER_BYTES_MAX: usize = 2 << 20;

/// Runs a stored procedure: the body holds its parameters.
pub(super) async fn execute(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    if request.body.len() > PARAMETER_BYTES_MAX {
        return Err(Error::TooLarge.into());
    }
    let container = container(shared, request).await?;
    let key = partition_key(request, &container)?;
    let admitted = throttle::admit(shared, request, &container, key.as_ref()).await?;
    let result = run(shared, request, &container, key.as_ref()).await;
    throttle::pay(admitted, &result);
    result
}

async fn run(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    let script = script_request(request);
    let link = request.link(2);
    let result = shared.account.scripts(container).execute_procedure(link, key, &request.body, &script).await;
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => return Err(with_place(shared, container, key, error.into()).await),
    };
    // Where a procedure answered nothing there is an empty text: the Java SDK cannot read an answer without a body.
    let body = outcome.body.unwrap_or_else(|| "\"\"".to_owned());
    let mut answer = Answer::json(StatusCode::OK, body.into_bytes());
    answer.set_charge(outcome.charge);
    answer.set_script_log(&outcome.log);
    let (range_id, lsn) = (outcome.range_id, outcome.lsn);
    ServedBy { container: outcome.container, range_id, lsn }.set_headers(&mut answer);
    Ok(answer)
}

/// The triggers that a write names, if it names any. There may be one of each kind, as on the service.
pub(super) async fn triggers(
    shared: &GatewayState,
    request: &Request<'_>,
) -> Result<Option<Triggers>, ErrorAnswer> {
    if !names_triggers(request) {
        return Ok(None);
    }
    let pre = existing_name(shared, request, trigger_name(request, headers::PRE_TRIGGER_INCLUDE)?).await?;
    let post = existing_name(shared, request, trigger_name(request, headers::POST_TRIGGER_INCLUDE)?).await?;
    Ok((pre.is_some() || post.is_some()).then(|| Triggers { pre, post, request: script_request(request) }))
}

/// Whether a request names triggers.
pub(super) fn names_triggers(request: &Request<'_>) -> bool {
    [headers::PRE_TRIGGER_INCLUDE, headers::POST_TRIGGER_INCLUDE]
        .into_iter()
        .any(|header| request.header(header).is_some_and(|text| text.contains(|letter| letter != ',')))
}

/// The name as sent, or what it is an escape of: names with line breaks, which some clients escape, cannot stand in a
/// header otherwise.
async fn existing_name(
    shared: &GatewayState,
    request: &Request<'_>,
    name: Option<String>,
) -> Result<Option<String>, ErrorAnswer> {
    let Some(sent) = name else { return Ok(None) };
    let Some(Cow::Owned(decoded)) = percent::decode_once(&sent) else { return Ok(Some(sent)) };
    let kind = ChildKind::Trigger(request.link(0), request.link(1));
    match shared.account.catalog().child(kind, Link::Name(&sent)).await {
        Err(Error::NotFound) => Ok(Some(decoded)),
        Ok(_) => Ok(Some(sent)),
        Err(error) => Err(error.into()),
    }
}

fn trigger_name(request: &Request<'_>, header: &str) -> Result<Option<String>, ErrorAnswer> {
    let Some(text) = request.header(header) else { return Ok(None) };
    let mut names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let first = names.next().map(str::to_owned);
    if names.next().is_some() {
        return Err(ErrorAnswer::bad_request(format!("The header {header} may name one trigger only.")));
    }
    Ok(first)
}

/// What scripts may see of a request: the headers of the protocol and of the content. Others are for the server alone: scripts are
/// written by whoever may write them, and what proves who sent a request has many names (cookies, proxies' own headers).
fn script_request(request: &Request<'_>) -> ScriptRequest {
    let named = request.headers.map.iter().filter(|(name, _)| is_for_scripts(name.as_str()));
    let values = named.filter_map(|(name, value)| {
        let value = std::str::from_utf8(value.as_bytes()).ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    ScriptRequest { values: values.collect(), log: request.flag(headers::SCRIPT_ENABLE_LOGGING) }
}

fn is_for_scripts(name: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["x-ms-", "content-", "if-", "accept"];
    const NAMES: [&str; 5] = ["cache-control", "date", "host", "prefer", "user-agent"];
    // Proxies of Azure put who is signed in to them there.
    const PROOFS: [&str; 2] = ["x-ms-token-", "x-ms-client-principal"];
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    (begins(&BEGINNINGS) && !begins(&PROOFS)) || NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::is_for_scripts;

    #[test]
    fn scripts_see_nothing_that_proves_who_asks() {
        for name in [
            "x-ms-version",
            "x-ms-documentdb-partitionkey",
            "content-type",
            "if-match",
            "prefer",
            "user-agent",
        ] {
            assert!(is_for_scripts(name), "{name}");
        }
        for name in [
            "authorization",
            "cookie",
            "proxy-authorization",
            "x-astrarium-explorer",
            "x-forwarded-for",
            "x-api-key",
            "x-amzn-oidc-data",
            "cf-access-jwt-assertion",
            "x-ms-token-aad-access-token",
            "x-ms-client-principal-id",
        ] {
            assert!(!is_for_scripts(name), "{name}");
        }
    }
}
