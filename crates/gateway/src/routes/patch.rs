//! `PATCH …/docs/{id}`: parts of an item.
//!
//! In: a body of operations, with or without a condition. Out: the item as it is then.
//! Not here: what operations do (`value`), the transaction (`database`).

use super::documents::{document_text, index_directive, item, refuse_triggers, returns_minimal};
use crate::answer::Answer;
use crate::database::partition::PartitionKey;
use crate::database::{Container, Error, Patch, WriteOptions};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::{self, headers};
use http::StatusCode;
use std::sync::Arc;

pub(super) async fn serve(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    refuse_triggers(request)?;
    let patch = parse(&document_text(&request.body)?)?;
    let conditions = request.conditions();
    let index_directive = index_directive(request.header(headers::INDEXING_DIRECTIVE));
    let options = WriteOptions { partition_key, conditions: &conditions, index_directive };
    let outcome = shared.account.documents(container).patch(request.link(2), &patch, options).await?;
    Ok(item(request, StatusCode::OK, outcome, !returns_minimal(request)))
}

/// Reads the body of a patch, alone or in a batch.
pub(super) fn parse(body: &[u8]) -> Result<Patch, Error> {
    let request = wire::patch::parse(body)?;
    Patch::new(request.condition.as_deref(), request.operations)
}
