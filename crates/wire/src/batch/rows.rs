//! Batches and their results as binary rows, the form of one client.
//!
//! Columns that only containers with a schema use are refused: ignoring them would do something else than was asked for.

use super::{BatchElement, BatchError, KINDS, OperationResult, Parts, collect};
use crate::hybrid_row::{OperationRow, ResultRow, RowError, read_operations, write_results};

/// The number that stands for documents.
const DOCUMENT: i32 = 2;

pub(super) fn read(body: &[u8]) -> Result<Vec<BatchElement>, BatchError> {
    collect(read_operations(body), operation)
}

fn operation(row: Result<OperationRow<'_>, RowError>) -> Result<BatchElement, String> {
    let row = row.map_err(|error| format!("cannot be read: {error}"))?;
    if row.resource_type.is_some_and(|number| number != DOCUMENT) {
        return Err("is not about a document".to_owned());
    }
    let schema_columns = [
        ("effectivePartitionKey", row.effective_partition_key.is_some()),
        ("binaryId", row.binary_id.is_some()),
        ("timeToLiveInSeconds", row.time_to_live_in_seconds.is_some()),
    ];
    if let Some((name, _)) = schema_columns.iter().find(|(_, is_set)| *is_set) {
        return Err(format!("has a '{name}', which is only for containers with a schema"));
    }
    let number = row.operation_type.ok_or("has no 'operationType'")?;
    let kind = KINDS.iter().find(|(.., known)| *known == number).map(|(kind, ..)| *kind);
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let parts = Parts {
        id: owned(row.id),
        partition_key: owned(row.partition_key),
        body: row.resource_body.map(<[u8]>::to_vec),
        if_match: owned(row.if_match),
        if_none_match: owned(row.if_none_match),
        indexing_directive: owned(row.indexing_directive),
        prefers_minimal: row.minimal_return_preference.unwrap_or_default(),
    };
    parts.operation(kind.ok_or("has an unknown 'operationType'")?)
}

pub(super) fn write(results: &[OperationResult]) -> Vec<u8> {
    let rows: Vec<ResultRow<'_>> = results
        .iter()
        .map(|result| ResultRow {
            status_code: result.status.into(),
            sub_status_code: i32::try_from(result.substatus).unwrap_or_default(),
            etag: result.etag.as_deref(),
            resource_body: result.body.as_deref(),
            retry_after_milliseconds: result.retry_after_milliseconds,
            request_charge: Some(result.charge),
        })
        .collect();
    write_results(&rows)
}
