//! `POST …/docs` with many operations: transactional batches and bulk requests.
//!
//! In: a body as JSON or as binary rows. Out: a result for each operation, in the same form.
//! Invariant: a response has as many results as the request has operations; what concerns the request as a whole is
//! refused as any other request is.
//! Not here: the two forms (`wire`), the transaction (`database`).

use super::documents::{document_text, index_directive, refuse_triggers, returns_minimal, shown};
use super::patch;
use crate::answer::Answer;
use crate::database::partition::PartitionKey;
use crate::database::{
    BatchAction, BatchOperation, Conditions, Container, Done, Effect, Error, FAILURE_CHARGE, FeedScope, Link,
    WriteMode, etag_text,
};
use crate::error::ErrorAnswer;
use crate::operation::Action as Asked;
use crate::place::ServedBy;
use crate::request::{Request, etag_condition};
use crate::service::GatewayState;
use crate::session;
use crate::wire::batch::{
    self, BatchElement, BatchVerb, Encoding, FAILED_DEPENDENCY, OperationResult, RESPONSE_BYTES_MAX,
};
use crate::wire::headers;
use http::StatusCode;
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn serve(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    refuse_triggers(request)?;
    let parsed =
        batch::parse(&request.body).map_err(|error| ErrorAnswer::new(error.status(), error.to_string()))?;
    let minimal = returns_minimal(request);
    let texts: Vec<Result<Cow<'_, [u8]>, Error>> = parsed.operations.iter().map(text).collect();
    let operations: Vec<BatchOperation<'_>> = parsed
        .operations
        .iter()
        .zip(&texts)
        .map(|(sent, text)| operation(sent, text, !(minimal || sent.prefers_minimal)))
        .collect();
    if operations.iter().any(|operation| matches!(operation.action, Ok(BatchAction::Read(_)))) {
        let scope = match (partition_key, request.range_id()?) {
            (Some(key), _) => shared.account.documents(container).partition_scope(key)?,
            (None, Some(id)) => FeedScope::Range(id),
            (None, None) => FeedScope::All,
        };
        session::check(shared, request, container, &scope).await?;
    }
    let (place, results) = if request.operation.action == Asked::Transaction {
        transaction(shared, request, container, partition_key, &operations, parsed.encoding).await?
    } else {
        bulk(shared, request, container, partition_key, &operations, parsed.encoding).await?
    };
    Ok(answer(parsed.encoding, &place, &results))
}

async fn transaction(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
    operations: &[BatchOperation<'_>],
    encoding: Encoding,
) -> Result<(ServedBy, Vec<OperationResult>), ErrorAnswer> {
    let outcome =
        shared.account.documents(container).run_batch(partition_key, operations, RESPONSE_BYTES_MAX).await?;
    let place = ServedBy { container: outcome.container, range_id: outcome.range_id, lsn: outcome.lsn };
    let results = match outcome.result {
        Ok(all) => all.iter().map(|done| success(request, &place.container, done)).collect(),
        Err((index, error)) => batch::failed_transaction(operations.len(), index, &failure(error, encoding)),
    };
    Ok((place, results))
}

async fn bulk(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    partition_key: Option<&PartitionKey>,
    operations: &[BatchOperation<'_>],
    encoding: Encoding,
) -> Result<(ServedBy, Vec<OperationResult>), ErrorAnswer> {
    let range_id = request.range_id()?;
    if range_id.is_none() && partition_key.is_none() {
        return Err(ErrorAnswer::bad_request(
            "A batch that is no transaction needs the header x-ms-documentdb-partitionkeyrangeid or \
             x-ms-documentdb-partitionkey.",
        ));
    }
    let continues = request.flag(headers::BATCH_CONTINUE_ON_ERROR);
    let scope = (partition_key, range_id);
    let outcome = shared
        .account
        .documents(container)
        .run_bulk(scope, operations, continues, RESPONSE_BYTES_MAX)
        .await?;
    let place = ServedBy { container: outcome.container, range_id: outcome.range_id, lsn: outcome.lsn };
    let mut results: Vec<OperationResult> = outcome
        .results
        .into_iter()
        .map(|result| match result {
            Ok(done) => success(request, &place.container, &done),
            Err(error) => failure(error, encoding),
        })
        .collect();
    results.resize(operations.len(), OperationResult::new(FAILED_DEPENDENCY, 0, 0.0));
    Ok((place, results))
}

/// The body of an operation as text; empty where it has none.
fn text(operation: &BatchElement) -> Result<Cow<'_, [u8]>, Error> {
    match &operation.action {
        BatchVerb::Create { body }
        | BatchVerb::Upsert { body }
        | BatchVerb::Replace { body, .. }
        | BatchVerb::Patch { body, .. } => {
            document_text(body).map_err(|failure| Error::Invalid(failure.message))
        }
        BatchVerb::Read { .. } | BatchVerb::Delete { .. } => Ok(Cow::Borrowed(&[])),
    }
}

fn operation<'a>(
    sent: &'a BatchElement,
    text: &'a Result<Cow<'_, [u8]>, Error>,
    is_shown: bool,
) -> BatchOperation<'a> {
    let action = text.as_ref().map_err(Error::clone).and_then(|text| {
        Ok(match &sent.action {
            BatchVerb::Create { .. } => BatchAction::Write(WriteMode::Create, text),
            BatchVerb::Upsert { .. } => BatchAction::Write(WriteMode::Upsert, text),
            BatchVerb::Replace { id, .. } => BatchAction::Write(WriteMode::Replace(Link::Name(id)), text),
            BatchVerb::Read { id } => BatchAction::Read(id),
            BatchVerb::Delete { id } => BatchAction::Delete(id),
            BatchVerb::Patch { id, .. } => BatchAction::Patch(id, Box::new(patch::parse(text)?)),
        })
    });
    let own_key = sent.partition_key.as_deref().map(PartitionKey::parse_header).transpose();
    let (action, partition_key) = match own_key {
        Ok(key) => (action, key),
        Err(error) => (Err(Error::Invalid(format!("The partition key is invalid: {error}."))), None),
    };
    BatchOperation {
        action,
        partition_key,
        conditions: Conditions {
            if_match: sent.if_match.as_deref().and_then(etag_condition),
            if_none_match: sent.if_none_match.as_deref().and_then(etag_condition),
        },
        index_directive: index_directive(sent.indexing_directive.as_deref()),
        is_shown,
    }
}

fn success(request: &Request<'_>, container: &Container, done: &Done) -> OperationResult {
    let status = match done.effect {
        Effect::Created => 201,
        Effect::Changed | Effect::Read => 200,
        Effect::Deleted => 204,
        Effect::NotModified => 304,
    };
    let header = &done.body.header;
    let etag = (done.effect != Effect::Deleted).then(|| etag_text(header.etag, header.timestamp));
    let body = done.is_shown.then(|| shown(request, container, &done.body));
    OperationResult { etag, body, ..OperationResult::new(status, 0, done.charge) }
}

/// The result of an operation that failed. Only the binary form has room for the reason: clients of the other one would
/// take it for the item.
fn failure(error: Error, encoding: Encoding) -> OperationResult {
    let failure = ErrorAnswer::from(error);
    let body = match encoding {
        Encoding::Json => None,
        Encoding::HybridRow => Some(failure.answer("").body.to_vec()),
    };
    OperationResult {
        body,
        retry_after_milliseconds: failure.retry_after_ms,
        ..OperationResult::new(failure.status, failure.substatus, FAILURE_CHARGE)
    }
}

fn answer(encoding: Encoding, place: &ServedBy, results: &[OperationResult]) -> Answer {
    let mut answer = Answer::content(encoding.content_type(), encoding.write(results));
    let status = StatusCode::from_u16(batch::response_status(results));
    answer.status = status.unwrap_or(StatusCode::MULTI_STATUS);
    answer.set_charge(batch::total_charge(results));
    place.set_headers(&mut answer);
    if results.iter().any(OperationResult::is_failure) {
        // One client tells by these whether all went well.
        answer.headers.remove(headers::CONTENT_PATH);
        answer.headers.remove(headers::ALT_CONTENT_PATH);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::hybrid_row::read_results;

    #[track_caller]
    fn check(error: Error, status: i32, substatus: i32, fragment: &str) {
        assert_eq!(failure(error.clone(), Encoding::Json).body, None, "an item's place");
        let bytes = Encoding::HybridRow.write(&[failure(error, Encoding::HybridRow)]);
        let rows: Vec<_> = read_results(&bytes).collect::<Result<_, _>>().expect("rows of our own");
        let [row] = rows.as_slice() else { panic!("{} rows", rows.len()) };
        assert_eq!((row.status_code, row.sub_status_code), (status, substatus));
        let body = String::from_utf8_lossy(row.resource_body.unwrap_or_default());
        assert!(body.contains(fragment), "{fragment} in {body}");
    }

    #[test]
    fn failures_tell_the_reason_in_rows_only() {
        check(Error::Exists, 409, 0, "already exists");
        check(Error::PartitionKeyMismatch, 400, 1001, "Partition key provided");
        check(Error::ResponseTooLarge, 413, 3402, "RequestEntityTooLarge");
        check(Error::Busy, 429, 3200, "TooManyRequests");
    }
}
