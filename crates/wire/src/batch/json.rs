//! Batches and their results as JSON arrays, the form of all clients but one.
//!
//! Members that are null count as absent, and unknown ones are ignored. A result has only the members that say something.

use super::{BatchElement, BatchError, KINDS, OperationResult, Parts, collect};
use astrarium_value::json::{Kind, Node, Text, write_number, write_string};

pub(super) fn read(body: &[u8]) -> Result<Vec<BatchElement>, BatchError> {
    let text =
        Text::parse(body).map_err(|error| BatchError::Invalid(format!("the body is not JSON: {error}")))?;
    if text.root().kind() != Kind::Array {
        return Err(BatchError::Invalid("the body must be an array of operations".to_owned()));
    }
    collect(text.root().elements(), operation)
}

fn operation(node: Node<'_>) -> Result<BatchElement, String> {
    if node.kind() != Kind::Object {
        return Err("is not an object".to_owned());
    }
    let name = text(node, "operationType")?.ok_or("has no 'operationType'")?;
    let kind = KINDS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(&name)).map(|(kind, ..)| *kind);
    let parts = Parts {
        id: text(node, "id")?,
        partition_key: partition_key(node)?,
        body: member(node, "resourceBody").map(|body| body.raw().as_bytes().to_vec()),
        if_match: text(node, "ifMatch")?,
        if_none_match: text(node, "ifNoneMatch")?,
        indexing_directive: text(node, "indexingDirective")?,
        prefers_minimal: member(node, "minimalReturnPreference").and_then(Node::as_bool).unwrap_or_default(),
    };
    parts.operation(kind.ok_or("has an unknown 'operationType'")?)
}

fn member<'a>(operation: Node<'a>, name: &str) -> Option<Node<'a>> {
    operation.get(name).filter(|node| node.kind() != Kind::Null)
}

fn text(operation: Node<'_>, name: &str) -> Result<Option<String>, String> {
    let Some(node) = member(operation, name) else {
        return Ok(None);
    };
    let text = node.as_str().ok_or_else(|| format!("has a '{name}' that is not a string"))?;
    Ok(Some(text.into_owned()))
}

/// The key is a text that holds an array; the array itself says the same.
fn partition_key(operation: Node<'_>) -> Result<Option<String>, String> {
    match member(operation, "partitionKey") {
        Some(node) if node.kind() == Kind::Array => Ok(Some(node.raw().to_owned())),
        _ => text(operation, "partitionKey"),
    }
}

pub(super) fn write(results: &[OperationResult]) -> Vec<u8> {
    let length: usize = results.iter().map(|result| result.body.as_ref().map_or(0, Vec::len) + 150).sum();
    let mut out = Vec::with_capacity(length);
    out.push(b'[');
    for (index, result) in results.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_result(result, &mut out);
    }
    out.push(b']');
    out
}

fn write_result(result: &OperationResult, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"statusCode\":");
    write_number(result.status.into(), out);
    if result.substatus != 0 {
        out.extend_from_slice(b",\"subStatusCode\":");
        write_number(result.substatus.into(), out);
    }
    out.extend_from_slice(b",\"requestCharge\":");
    write_number(result.charge, out);
    if let Some(milliseconds) = result.retry_after_milliseconds {
        out.extend_from_slice(b",\"retryAfterMilliseconds\":");
        write_number(milliseconds.into(), out);
    }
    if let Some(etag) = &result.etag {
        out.extend_from_slice(b",\"eTag\":");
        write_string(etag, out);
    }
    if let Some(body) = &result.body {
        out.extend_from_slice(b",\"resourceBody\":");
        out.extend_from_slice(body);
    }
    out.push(b'}');
}
