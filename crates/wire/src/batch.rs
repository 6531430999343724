//! Batches: many operations on documents in one request, as one transaction or one by one.
//!
//! In: the body of the request, JSON or binary rows, told apart by its first byte. Out: [`BatchElement`]s; and from their
//! [`OperationResult`]s the body of the response in the same form, and its status.
//! Invariants
//! - A body that is read has 1 to [`OPERATIONS_MAX`] operations, each with the id and the body that it needs.
//! - A response has as many results as the request has operations, in the same order: clients count them.
//!
//! Not here: doing the operations (`database`), which headers ask for a transaction (`gateway`), the documents inside
//! (`store`), the body of a patch (`patch`).

mod json;
mod rows;

use crate::hybrid_row;
use crate::status::substatus;

/// Most operations of one batch.
pub const OPERATIONS_MAX: usize = 100;
/// Longest body of one batch.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// Most bytes that the documents in one response may have together.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// The status of an operation that was not done, or was undone, because of another one.
pub const FAILED_DEPENDENCY: u16 = 424;

/// The form of a request's body, and of its response's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A JSON array.
    Json,
    /// Binary rows.
    HybridRow,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The form to answer in.
    pub encoding: Encoding,
    /// What to do, in this order.
    pub operations: Vec<BatchElement>,
}

/// One operation of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchElement {
    /// What to do.
    pub action: BatchVerb,
    /// The operation's own partition key as JSON array, where the request has none for all.
    pub partition_key: Option<String>,
    /// As the header of that name.
    pub if_match: Option<String>,
    /// As the header of that name.
    pub if_none_match: Option<String>,
    /// As the value of the header about indexing.
    pub indexing_directive: Option<String>,
    /// Whether the result shall do without the document.
    pub prefers_minimal: bool,
}

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchVerb {
    /// Writes a new document.
    Create {
        /// The document as it was sent.
        body: Vec<u8>,
    },
    /// Writes a document, new or not.
    Upsert {
        /// The document as it was sent.
        body: Vec<u8>,
    },
    /// Writes a document over an existing one.
    Replace {
        /// Its id.
        id: String,
        /// The document as it was sent.
        body: Vec<u8>,
    },
    /// Reads a document.
    Read {
        /// Its id.
        id: String,
    },
    /// Removes a document.
    Delete {
        /// Its id.
        id: String,
    },
    /// Changes parts of a document.
    Patch {
        /// Its id.
        id: String,
        /// What [`crate::patch::parse`] reads.
        body: Vec<u8>,
    },
}

/// Why a whole batch is refused. The client's fault, always.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Nothing to do: 400.
    #[error("Batch request has no operations.")]
    Empty,
    /// More than [`OPERATIONS_MAX`] operations: 400.
    #[error("Batch request has more operations than what is supported.")]
    TooMany,
    /// More than [`BODY_BYTES_MAX`] bytes: 413.
    #[error("Request size is too large")]
    TooLarge,
    /// Not of the form that it should have: 400.
    #[error("Batch request is invalid: {0}.")]
    Invalid(String),
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationResult {
    /// Status as of a single operation.
    pub status: u16,
    /// What refines the status; zero for nothing.
    pub substatus: u32,
    /// Request units.
    pub charge: f64,
    /// The document's etag, quotes included.
    pub etag: Option<String>,
    /// The document as JSON text.
    pub body: Option<Vec<u8>>,
    /// How long to wait before the next try.
    pub retry_after_milliseconds: Option<u32>,
}

/// Reads the body of a batch.
pub fn parse(body: &[u8]) -> Result<Batch, BatchError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(BatchError::TooLarge);
    }
    let (encoding, operations) = match body.first() {
        Some(&hybrid_row::FIRST_BYTE) => (Encoding::HybridRow, rows::read(body)?),
        _ => (Encoding::Json, json::read(body)?),
    };
    if operations.is_empty() {
        return Err(BatchError::Empty);
    }
    Ok(Batch { encoding, operations })
}

impl Encoding {
    /// The media type of a response in this form.
    pub const fn content_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::HybridRow => "application/octet-stream",
        }
    }

    /// The body of the response.
    pub fn write(self, results: &[OperationResult]) -> Vec<u8> {
        match self {
            Encoding::Json => json::write(results),
            Encoding::HybridRow => rows::write(results),
        }
    }
}

impl BatchVerb {
    /// The id that the operation names, where it is not the document that does.
    pub fn id(&self) -> Option<&str> {
        match self {
            BatchVerb::Create { .. } | BatchVerb::Upsert { .. } => None,
            BatchVerb::Replace { id, .. }
            | BatchVerb::Read { id }
            | BatchVerb::Delete { id }
            | BatchVerb::Patch { id, .. } => Some(id),
        }
    }

    /// Whether the operation only reads.
    pub fn is_read(&self) -> bool {
        matches!(self, BatchVerb::Read { .. })
    }
}

impl BatchError {
    /// The status of the answer to the whole request.
    pub const fn status(&self) -> u16 {
        match self {
            BatchError::TooLarge => 413,
            BatchError::Empty | BatchError::TooMany | BatchError::Invalid(_) => 400,
        }
    }
}

impl OperationResult {
    /// A result that says nothing but how the operation ended.
    pub fn new(status: u16, substatus: u32, charge: f64) -> Self {
        Self { status, substatus, charge, ..Self::default() }
    }

    /// Whether the operation failed, so that a transaction is undone. A document that was not modified since it was
    /// read (304) is no failure, though the status of the response tells of it.
    pub fn is_failure(&self) -> bool {
        self.status >= 400
    }
}

/// The status of the response: 200 if every operation has one below 300, else 207.
pub fn response_status(results: &[OperationResult]) -> u16 {
    if results.iter().all(|result| result.status < 300) { 200 } else { 207 }
}

/// The charge of the response, to the hundredth.
pub fn total_charge(results: &[OperationResult]) -> f64 {
    let sum: f64 = results.iter().map(|result| result.charge).sum();
    (sum * 100.0).round() / 100.0
}

/// The results of a transaction of so many operations that one of them made fail: that one's own, and for all others
/// that they depend on it.
pub fn failed_transaction(count: usize, failed: usize, failure: &OperationResult) -> Vec<OperationResult> {
    let other = OperationResult::new(FAILED_DEPENDENCY, 0, 0.0);
    (0..count).map(|index| if index == failed { failure.clone() } else { other.clone() }).collect()
}

/// The results of a transaction whose documents are more than [`RESPONSE_BYTES_MAX`]: the last operation takes the blame.
pub fn response_too_large(count: usize, charge: f64) -> Vec<OperationResult> {
    let failure = OperationResult::new(413, substatus::RESPONSE_SIZE_EXCEEDED, charge);
    failed_transaction(count, count.saturating_sub(1), &failure)
}

/// What an operation was sent with, in either form, before it is known to be complete.
#[derive(Default)]
struct Parts {
    id: Option<String>,
    partition_key: Option<String>,
    body: Option<Vec<u8>>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    indexing_directive: Option<String>,
    prefers_minimal: bool,
}

/// The six kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Patch,
    Read,
    Delete,
    Replace,
    Upsert,
}

/// The name and the number of each kind.
const KINDS: [(Kind, &str, i32); 6] = [
    (Kind::Create, "Create", 0),
    (Kind::Patch, "Patch", 1),
    (Kind::Read, "Read", 2),
    (Kind::Delete, "Delete", 4),
    (Kind::Replace, "Replace", 5),
    (Kind::Upsert, "Upsert", 20),
];

impl Parts {
    /// The operation, if it has what its kind needs; else what is missing.
    fn operation(self, kind: Kind) -> Result<BatchElement, String> {
        let id = self.id.ok_or("has no 'id'");
        let body = self.body.ok_or("has no 'resourceBody'");
        let action = match kind {
            Kind::Create => BatchVerb::Create { body: body? },
            Kind::Upsert => BatchVerb::Upsert { body: body? },
            Kind::Replace => BatchVerb::Replace { id: id?, body: body? },
            Kind::Read => BatchVerb::Read { id: id? },
            Kind::Delete => BatchVerb::Delete { id: id? },
            Kind::Patch => BatchVerb::Patch { id: id?, body: body? },
        };
        Ok(BatchElement {
            action,
            partition_key: self.partition_key,
            if_match: self.if_match,
            if_none_match: self.if_none_match,
            indexing_directive: self.indexing_directive,
            prefers_minimal: self.prefers_minimal,
        })
    }
}

/// Collects operations up to the limit; `read` says what is wrong with one.
fn collect<T>(
    items: impl Iterator<Item = T>,
    read: impl Fn(T) -> Result<BatchElement, String>,
) -> Result<Vec<BatchElement>, BatchError> {
    let mut operations = Vec::new();
    for item in items {
        if operations.len() == OPERATIONS_MAX {
            return Err(BatchError::TooMany);
        }
        let index = operations.len() + 1;
        let operation =
            read(item).map_err(|fault| BatchError::Invalid(format!("Operation({index}) {fault}")))?;
        operations.push(operation);
    }
    Ok(operations)
}

#[cfg(test)]
mod tests;
