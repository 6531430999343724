//! The binary row format in which one client sends batches and expects their results.
//!
//! A stream is a segment row, then for each record a header with length and checksum, and the record's own row. All
//! integers are little-endian; a length is written seven bits to a byte, low bits first, the high bit meaning "more".
//! In: the body of a request. Out: [`OperationRow`]s that borrow from it; and [`ResultRow`]s to the body of a response.
//! The other two directions exist for tests, which are clients.
//! Invariants
//! - Reading is total and allocates nothing of a size that the bytes only claim.
//! - A row that was written reads back as it was.
//!
//! Not here: how many operations a batch may have and what they mean (`batch`), types that no column here has.

mod cursor;
pub mod record_io;
mod row;

use cursor::ByteCursor;
use row::{Cell, Column, ColumnType, Schema, Storage};

/// The first byte of every row, hence of every body in this format.
pub const FIRST_BYTE: u8 = 0x81;

/// The bytes are not rows of the expected kind. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the binary row of the request is invalid at byte {offset}: {what}")]
pub struct RowError {
    /// What does not fit.
    pub what: &'static str,
    /// Where, counted from the start of the row or header that does not fit.
    pub offset: usize,
}

/// One operation of a batch. Columns that are not set are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationRow<'a> {
    /// The number of the operation: 0 create, 1 patch, 2 read, 4 delete, 5 replace, 20 upsert.
    pub operation_type: Option<i32>,
    /// The number of the resource's kind: 2 for documents.
    pub resource_type: Option<i32>,
    /// The partition key as JSON array.
    pub partition_key: Option<&'a str>,
    /// The effective partition key; only containers with a schema use it.
    pub effective_partition_key: Option<&'a [u8]>,
    /// The document's id.
    pub id: Option<&'a str>,
    /// The document's id where it is not text; only containers with a schema use it.
    pub binary_id: Option<&'a [u8]>,
    /// The document, or the body of a patch.
    pub resource_body: Option<&'a [u8]>,
    /// `Default`, `Include` or `Exclude`.
    pub indexing_directive: Option<&'a str>,
    /// As the header of that name.
    pub if_match: Option<&'a str>,
    /// As the header of that name.
    pub if_none_match: Option<&'a str>,
    /// The time to live where the document cannot say it; only containers with a schema use it.
    pub time_to_live_in_seconds: Option<i32>,
    /// Whether the result shall do without the document.
    pub minimal_return_preference: Option<bool>,
}

/// The result of one operation of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResultRow<'a> {
    /// Status as of a single operation; clients refuse zero.
    pub status_code: i32,
    /// What refines the status.
    pub sub_status_code: i32,
    /// The document's etag, quotes included.
    pub etag: Option<&'a str>,
    /// The document, or the body of an error.
    pub resource_body: Option<&'a [u8]>,
    /// How long to wait before the next try.
    pub retry_after_milliseconds: Option<u32>,
    /// Request units.
    pub request_charge: Option<f64>,
}

const fn column(name: &'static str, kind: ColumnType, storage: Storage) -> Column {
    Column { name, kind, storage }
}

const OPERATION: Schema<12> = Schema {
    id: 2_145_473_648,
    columns: [
        column("operationType", ColumnType::Int32, Storage::Fixed),
        column("resourceType", ColumnType::Int32, Storage::Fixed),
        column("partitionKey", ColumnType::Utf8, Storage::Variable),
        column("effectivePartitionKey", ColumnType::Binary, Storage::Variable),
        column("id", ColumnType::Utf8, Storage::Variable),
        column("binaryId", ColumnType::Binary, Storage::Variable),
        column("resourceBody", ColumnType::Binary, Storage::Variable),
        column("indexingDirective", ColumnType::Utf8, Storage::Sparse),
        column("ifMatch", ColumnType::Utf8, Storage::Sparse),
        column("ifNoneMatch", ColumnType::Utf8, Storage::Sparse),
        column("timeToLiveInSeconds", ColumnType::Int32, Storage::Sparse),
        column("minimalReturnPreference", ColumnType::Bool, Storage::Sparse),
    ],
};

const RESULT: Schema<6> = Schema {
    id: 2_145_473_649,
    columns: [
        column("statusCode", ColumnType::Int32, Storage::Fixed),
        column("subStatusCode", ColumnType::Int32, Storage::Fixed),
        column("eTag", ColumnType::Utf8, Storage::Variable),
        column("resourceBody", ColumnType::Binary, Storage::Variable),
        column("retryAfterMilliseconds", ColumnType::UInt32, Storage::Sparse),
        column("requestCharge", ColumnType::Float64, Storage::Sparse),
    ],
};

/// Reads the operations of a request one by one; nothing follows an error.
pub fn read_operations(body: &[u8]) -> impl Iterator<Item = Result<OperationRow<'_>, RowError>> {
    record_io::records(body).map(|record| OperationRow::read(record?))
}

/// Writes operations as a client does.
pub fn write_operations(operations: &[OperationRow<'_>]) -> Vec<u8> {
    write_rows(operations.iter().map(OperationRow::write))
}

/// Writes the results of a batch.
pub fn write_results(results: &[ResultRow<'_>]) -> Vec<u8> {
    write_rows(results.iter().map(ResultRow::write))
}

/// Reads results as a client does; nothing follows an error.
pub fn read_results(body: &[u8]) -> impl Iterator<Item = Result<ResultRow<'_>, RowError>> {
    record_io::records(body).map(|record| ResultRow::read(record?))
}

fn write_rows(rows: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut stream = Vec::new();
    record_io::write_segment(&mut stream);
    rows.for_each(|row| record_io::write_record(&row, &mut stream));
    stream
}

impl<'a> OperationRow<'a> {
    fn read(row: &'a [u8]) -> Result<Self, RowError> {
        let [
            operation,
            resource,
            key,
            effective,
            id,
            binary_id,
            body,
            directive,
            matched,
            none,
            ttl,
            minimal,
        ] = OPERATION.read(row)?;
        Ok(Self {
            operation_type: operation.and_then(Cell::int32),
            resource_type: resource.and_then(Cell::int32),
            partition_key: key.and_then(Cell::utf8),
            effective_partition_key: effective.and_then(Cell::binary),
            id: id.and_then(Cell::utf8),
            binary_id: binary_id.and_then(Cell::binary),
            resource_body: body.and_then(Cell::binary),
            indexing_directive: directive.and_then(Cell::utf8),
            if_match: matched.and_then(Cell::utf8),
            if_none_match: none.and_then(Cell::utf8),
            time_to_live_in_seconds: ttl.and_then(Cell::int32),
            minimal_return_preference: minimal.and_then(Cell::bool),
        })
    }

    fn write(&self) -> Vec<u8> {
        OPERATION.write([
            self.operation_type.map(Cell::Int32),
            self.resource_type.map(Cell::Int32),
            self.partition_key.map(Cell::Utf8),
            self.effective_partition_key.map(Cell::Binary),
            self.id.map(Cell::Utf8),
            self.binary_id.map(Cell::Binary),
            self.resource_body.map(Cell::Binary),
            self.indexing_directive.map(Cell::Utf8),
            self.if_match.map(Cell::Utf8),
            self.if_none_match.map(Cell::Utf8),
            self.time_to_live_in_seconds.map(Cell::Int32),
            self.minimal_return_preference.map(Cell::Bool),
        ])
    }
}

impl<'a> ResultRow<'a> {
    fn read(row: &'a [u8]) -> Result<Self, RowError> {
        let [status, substatus, etag, body, retry_after, charge] = RESULT.read(row)?;
        Ok(Self {
            status_code: status.and_then(Cell::int32).unwrap_or_default(),
            sub_status_code: substatus.and_then(Cell::int32).unwrap_or_default(),
            etag: etag.and_then(Cell::utf8),
            resource_body: body.and_then(Cell::binary),
            retry_after_milliseconds: retry_after.and_then(Cell::uint32),
            request_charge: charge.and_then(Cell::float64),
        })
    }

    fn write(&self) -> Vec<u8> {
        RESULT.write([
            Some(Cell::Int32(self.status_code)),
            Some(Cell::Int32(self.sub_status_code)),
            self.etag.map(Cell::Utf8),
            self.resource_body.map(Cell::Binary),
            self.retry_after_milliseconds.map(Cell::UInt32),
            self.request_charge.map(Cell::Float64),
        ])
    }
}

#[cfg(test)]
mod tests;
