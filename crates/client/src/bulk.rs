//! Many writes in one request, each on its own: what SDKs call bulk.
//!
//! In: up to [`BulkOperation::COUNT_MAX`] operations on documents of one key range. Out: an outcome for each, in order.
//! Operations that the server asks to send again later (429, 449) are sent again, those alone, until patience ends. Those that may have been
//! done (408, 500, 503) are not: the caller decides.

use crate::container_client::{ContainerClient, RangeOfKeys};
use crate::cosmos_client::WireRequest;
use crate::error::{ClientError, ServerRefusal, is_ambiguous_status};
use crate::raw_json;
use astrarium_env::Instant;
use astrarium_value::json::write_string;
use astrarium_wire::{batch, headers};
use bytes::Bytes;
use std::time::Duration;

/// First wait where the server names none.
const WAIT_FIRST: Duration = Duration::from_millis(20);

/// What one operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkVerb {
    /// Writes a new document; 409 if there is one.
    Create,
    /// Writes a document, new or not.
    Upsert,
    /// Removes a document.
    Delete,
}

/// One write of many.
#[derive(Debug, Clone)]
pub struct BulkOperation {
    /// What it does.
    pub verb: BulkVerb,
    /// Its partition key as a JSON array.
    pub partition_key: String,
    /// The document; of a delete its id.
    pub body: Bytes,
}

impl BulkOperation {
    /// Most operations of one request.
    pub const COUNT_MAX: usize = batch::OPERATIONS_MAX;
    /// Most bytes of one request's documents together, as the SDKs keep to; one document alone may be longer.
    pub const BYTES_MAX: usize = 200_000;

    fn write(&self, out: &mut Vec<u8>) {
        let verb = match self.verb {
            BulkVerb::Create => "Create",
            BulkVerb::Upsert => "Upsert",
            BulkVerb::Delete => "Delete",
        };
        out.extend_from_slice(b"{\"operationType\":\"");
        out.extend_from_slice(verb.as_bytes());
        out.extend_from_slice(b"\",\"partitionKey\":");
        write_string(&self.partition_key, out);
        if self.verb == BulkVerb::Delete {
            out.extend_from_slice(b",\"id\":");
            write_string(&String::from_utf8_lossy(&self.body), out);
        } else {
            out.extend_from_slice(b",\"minimalReturnPreference\":true,\"resourceBody\":");
            out.extend_from_slice(&self.body);
        }
        out.push(b'}');
    }
}

/// How one operation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkResult {
    /// Status as of a single operation.
    pub status: u16,
    /// What refines it; zero for nothing.
    pub substatus: u32,
    /// Request units.
    pub charge: f64,
    /// What the server says about a failure.
    pub reason: String,
    retry_after: Option<Duration>,
}

impl BulkResult {
    /// Whether it was done.
    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it failed and may have been done all the same.
    pub fn is_ambiguous(&self) -> bool {
        is_ambiguous_status(self.status)
    }

    /// The same as the refusal of a single operation.
    pub fn into_error(self) -> ClientError {
        ClientError::Refused(Box::new(ServerRefusal {
            status: self.status,
            substatus: self.substatus,
            code: String::new(),
            raw_message: self.reason.clone(),
            message: self.reason,
            location: None,
            additional_info: None,
            activity_id: String::new(),
            charge: self.charge,
            retry_after: self.retry_after,
        }))
    }

    fn is_for_later(&self) -> bool {
        matches!(self.status, 429 | 449)
    }
}

impl ContainerClient {
    /// Does operations of one range in one request, and again what the server asks to be sent later. A whole refusal (410/1002: the
    /// range is gone) did nothing; an ambiguous loss may have done some.
    pub async fn bulk(
        &self,
        range: &RangeOfKeys,
        operations: &[BulkOperation],
    ) -> Result<Vec<BulkResult>, ClientError> {
        let began = Instant::now();
        let mut outcomes: Vec<Option<BulkResult>> = vec![None; operations.len()];
        let mut open: Vec<usize> = (0..operations.len()).collect();
        let mut growing = WAIT_FIRST;
        while !open.is_empty() {
            let chosen: Vec<&BulkOperation> =
                open.iter().filter_map(|index| operations.get(*index)).collect();
            let answered = self.bulk_once(range, &chosen).await?;
            let mut wait = Duration::ZERO;
            let mut later = Vec::new();
            for (index, outcome) in open.iter().zip(answered) {
                if outcome.is_for_later() {
                    self.client().count_throttled();
                    wait = wait.max(outcome.retry_after.unwrap_or(growing));
                    later.push(*index);
                }
                if let Some(slot) = outcomes.get_mut(*index) {
                    *slot = Some(outcome);
                }
            }
            if later.is_empty() || began.elapsed() + wait > self.client().patience() {
                break;
            }
            tokio::time::sleep(wait).await;
            growing = (growing * 2).min(Duration::from_secs(2));
            open = later;
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    async fn bulk_once(
        &self,
        range: &RangeOfKeys,
        operations: &[&BulkOperation],
    ) -> Result<Vec<BulkResult>, ClientError> {
        let length: usize = operations.iter().map(|operation| operation.body.len() + 120).sum();
        let mut body = Vec::with_capacity(length);
        for (index, operation) in operations.iter().enumerate() {
            body.push(if index == 0 { b'[' } else { b',' });
            operation.write(&mut body);
        }
        body.push(b']');
        let request = WireRequest::new("POST", self.feed("docs"))
            .header(headers::IS_BATCH_REQUEST, "True")
            .header(headers::BATCH_ATOMIC, "False")
            .header(headers::BATCH_CONTINUE_ON_ERROR, "True")
            .header(headers::PREFER, "return=minimal")
            .header(headers::PARTITION_KEY_RANGE_ID, &range.id)
            .json(body);
        let answer = self.client().send(self.with_session(request)).await?;
        let outcomes: Vec<BulkResult> = raw_json::elements(&answer.body).map(read_outcome).collect();
        if outcomes.len() != operations.len() {
            let (got, sent) = (outcomes.len(), operations.len());
            return Err(ClientError::Protocol(format!("a batch of {sent} operations has {got} results")));
        }
        Ok(outcomes)
    }
}

fn read_outcome(result: &[u8]) -> BulkResult {
    let number = |name: &str| {
        let text = raw_json::member(result, name).and_then(|raw| std::str::from_utf8(raw).ok());
        text.and_then(|text| text.parse::<f64>().ok())
    };
    let status = number("statusCode").unwrap_or(500.0) as u16;
    let reason = match status {
        200..300 => String::new(),
        _ => raw_json::member(result, "resourceBody")
            .or_else(|| raw_json::member(result, "message"))
            .map_or_else(
                || reason_of(status).to_owned(),
                |body| String::from_utf8_lossy(body).chars().take(500).collect(),
            ),
    };
    BulkResult {
        status,
        substatus: number("subStatusCode").unwrap_or_default() as u32,
        charge: number("requestCharge").unwrap_or_default(),
        reason,
        retry_after: number("retryAfterMilliseconds")
            .filter(|wait| *wait >= 1.0)
            .map(|wait| Duration::from_millis(wait.min(600_000.0) as u64)),
    }
}

/// Batches tell no reasons, so these are those that the protocol has for a status.
fn reason_of(status: u16) -> &'static str {
    match status {
        400 => "the document is not valid, or its partition key does not fit",
        403 => "forbidden, or its logical partition is full",
        404 => "there is no such document",
        409 => "a document with this id, or with the same values of a unique key, exists",
        412 => "the document has changed",
        413 => "the document is too large",
        429 => "the throughput is used up",
        449 => "somebody else wrote the document at the same time",
        _ => "no reason is given",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_outcomes() {
        let operation = BulkOperation {
            verb: BulkVerb::Create,
            partition_key: "[\"a\"]".to_owned(),
            body: Bytes::from_static(b"{\"id\":\"1\",\"n\":12345678901234567890}"),
        };
        let mut text = Vec::new();
        operation.write(&mut text);
        let read = batch::parse(&[b"[", &text[..], b"]"].concat()).unwrap();
        assert_eq!(read.operations[0].partition_key.as_deref(), Some("[\"a\"]"));
        assert_eq!(read.operations[0].action, batch::BatchVerb::Create { body: operation.body.to_vec() });
        let outcome = read_outcome(
            b"{\"statusCode\":429,\"subStatusCode\":3200,\"requestCharge\":0.5,\"retryAfterMilliseconds\":7}",
        );
        assert_eq!((outcome.status, outcome.substatus), (429, 3200));
        assert_eq!(outcome.retry_after, Some(Duration::from_millis(7)));
        assert_eq!(read_outcome(b"nonsense").status, 500);
    }
}
