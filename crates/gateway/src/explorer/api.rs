//! What the explorer asks besides the protocol: one file for each question.
//!
//! Everything is a method of a `database` handle, put into JSON here. What could change data needs a session that may write.

mod explain;
mod language;
mod look;
mod read_rows;
mod run_script;

use super::refusal::ApiRefusal;
use super::sessions::Session;
use super::{BODY_BYTES_MAX, ExplorerCall};
use crate::answer::Answer;
use crate::database::{Container, Link};
use crate::wire::percent;
use http::{Method, StatusCode};
use std::sync::Arc;

/// Longest body of a question.
pub(super) fn body_bytes_max(path: &str) -> usize {
    if path == "read-rows" { read_rows::BODY_BYTES_MAX } else { BODY_BYTES_MAX }
}

/// Answers a question of somebody who is signed in.
pub(super) async fn answer(
    call: &ExplorerCall<'_>,
    session: Session,
    path: &str,
    body: &[u8],
) -> Result<Answer, ApiRefusal> {
    let expected = match path {
        "overview" | "schema" | "words" | "ranges" | "partition-keys" | "requests" | "index-costs" => {
            Method::GET
        }
        "check" | "explain" | "read-rows" | "run-script" => Method::POST,
        _ => return Err(ApiRefusal::not_found()),
    };
    if call.parts.method != expected {
        return Err(ApiRefusal::method(expected.as_str()));
    }
    let text = match path {
        "overview" => look::overview(call).await?,
        "schema" => look::schema(call).await?,
        "ranges" => look::ranges(call).await?,
        "partition-keys" => look::partition_keys(call).await?,
        "requests" => look::requests(call)?,
        "index-costs" => look::index_costs(call).await?,
        "words" => language::words(),
        "check" => language::check(call, body).await?,
        "explain" => explain::explain(call, body).await?,
        "read-rows" => read_rows::read(call, body).await?,
        _ => run_script::run(call, session, body).await?,
    };
    Ok(Answer::json(StatusCode::OK, text.into_bytes()))
}

/// A parameter of the address, decoded.
fn parameter(call: &ExplorerCall<'_>, name: &str) -> Option<String> {
    let query = call.parts.uri.query().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(own, _)| *own == name)?.1.replace('+', " ");
    Some(percent::decode_once(&value)?.into_owned())
}

/// The container that the address names.
async fn named_container(call: &ExplorerCall<'_>) -> Result<Arc<Container>, ApiRefusal> {
    let needed = || ApiRefusal::bad_request("The address names a container: ?database=..&container=..");
    let database = parameter(call, "database").ok_or_else(needed)?;
    let container = parameter(call, "container").ok_or_else(needed)?;
    find_container(call, &database, &container).await
}

async fn find_container(
    call: &ExplorerCall<'_>,
    database: &str,
    container: &str,
) -> Result<Arc<Container>, ApiRefusal> {
    let catalog = call.gateway.shared.account.catalog();
    Ok(catalog.current_container(Link::Name(database), Link::Name(container)).await?)
}
