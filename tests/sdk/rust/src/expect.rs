//! Expectations, and the documents they are about.

use azure_data_cosmos::models::{ItemResponse, ResourceResponse, ResponseHeaders};
use azure_data_cosmos::options::{
    ContentResponseOnWrite, ItemReadOptions, ItemWriteOptions, OperationOptions, Precondition,
};
use azure_data_cosmos::{CosmosError, CosmosStatus};
use serde_json::{Value, json};
use std::fmt::Debug;

/// An etag that no resource has.
pub const STALE: &str = "\"00000000-0000-0000-0000-000000000000\"";

const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// A document in the partition `somewhere`.
pub fn document(id: &str, value: impl Into<Value>) -> Value {
    json!({ "id": id, "pk": "somewhere", "value": value.into() })
}

/// The call must be refused with this status.
#[track_caller]
pub fn refused<T>(status: u16, result: Result<T, CosmosError>) -> CosmosError {
    match result {
        Ok(_) => panic!("expected a refusal with {status}, but it was done"),
        Err(error) => {
            assert_eq!(number(error.status()), status, "{error}");
            error
        }
    }
}

/// The substatus of a refusal, 0 if it has none.
pub fn substatus(error: &CosmosError) -> u16 {
    error.status().sub_status().map_or(0, |code| code.value())
}

/// A status as a number.
pub fn number(status: CosmosStatus) -> u16 {
    u16::from(status.status_code())
}

/// The call must succeed with this status, and with what the service sends with every answer.
#[track_caller]
pub fn answered<T>(status: u16, result: Result<ResourceResponse<T>, CosmosError>) -> ResourceResponse<T> {
    let response = done(result);
    assert_eq!(number(response.status()), status);
    check_headers(response.headers());
    response
}

/// The same for an item, whose answers also carry a session token.
#[track_caller]
pub fn item_answered(status: u16, result: Result<ItemResponse, CosmosError>) -> ItemResponse {
    let response = done(result);
    assert_eq!(number(response.status()), status);
    check_headers(response.headers());
    assert!(response.headers().session_token().is_some(), "session token");
    assert!(response.headers().partition_key_range_id().is_some(), "partition key range id");
    response
}

/// The value of a call that must succeed.
#[track_caller]
pub fn done<T, E: Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error:?}"))
}

#[track_caller]
fn check_headers(headers: &ResponseHeaders) {
    assert!(headers.request_charge().is_some_and(|charge| charge.value() > 0.0), "request charge");
    assert!(headers.activity_id().is_some(), "activity id");
}

/// The document that was sent, with the system's own properties and nothing else.
#[track_caller]
pub fn same(sent: &Value, response: ItemResponse) {
    let mut received: Value = done(response.into_model());
    let members = received.as_object_mut().expect("an object");
    for name in SYSTEM_PROPERTIES {
        assert!(members.remove(name).is_some(), "no {name}");
    }
    assert_eq!(received, *sent);
}

/// The etag of an answer.
#[track_caller]
pub fn etag(response: &ItemResponse) -> String {
    response.headers().etag().expect("an etag").to_string()
}

/// Asks for the written item in the answer; the SDK's default is not to.
pub fn with_content() -> Option<ItemWriteOptions> {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    Some(ItemWriteOptions::default().with_operation_options(operation))
}

/// A write that needs this etag.
pub fn if_match(etag: &str) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag.to_owned().into())))
}

/// A read that wants only a change.
pub fn if_none_match(etag: &str) -> Option<ItemReadOptions> {
    Some(ItemReadOptions::default().with_precondition(Precondition::IfNoneMatch(etag.to_owned().into())))
}
