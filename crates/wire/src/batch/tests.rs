//! Bodies as clients send them, what is refused, and the shapes of responses.

use super::*;
use crate::hybrid_row::{OperationRow, read_results, write_operations};
use proptest::prelude::*;

fn plain(action: BatchVerb) -> BatchElement {
    BatchElement {
        action,
        partition_key: None,
        if_match: None,
        if_none_match: None,
        indexing_directive: None,
        prefers_minimal: false,
    }
}

#[track_caller]
fn check(body: &str, expected: &[BatchElement]) {
    let batch = parse(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(batch.encoding, Encoding::Json, "{body}");
    assert_eq!(batch.operations, expected, "{body}");
}

#[track_caller]
fn refused(body: &[u8], status: u16, message: &str) {
    let error = parse(body).expect_err("a refusal");
    assert_eq!((error.status(), error.to_string().as_str()), (status, message));
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn what_the_python_client_sends() {
    check(
        r#"[{"operationType":"Create","resourceBody":{"id":"1","company":"x"}},{"operationType":"Read","id":"2"},{"operationType":"Replace","id":"3","resourceBody":{"id":"3"},"ifMatch":"\"e\""},{"operationType":"Patch","id":"4","resourceBody":{"operations":[],"condition":"from c"}}]"#,
        &[
            plain(BatchVerb::Create { body: br#"{"id":"1","company":"x"}"#.to_vec() }),
            plain(BatchVerb::Read { id: text("2") }),
            BatchElement {
                if_match: Some(text("\"e\"")),
                ..plain(BatchVerb::Replace { id: text("3"), body: br#"{"id":"3"}"#.to_vec() })
            },
            plain(BatchVerb::Patch {
                id: text("4"),
                body: br#"{"operations":[],"condition":"from c"}"#.to_vec(),
            }),
        ],
    );
}

#[test]
fn what_other_clients_send() {
    check(
        r#" [{"operationType":"Upsert","partitionKey":"[\"a\"]","resourceBody":{"id":"é"},"minimalReturnPreference":true,"ifNoneMatch":"*","indexingDirective":"Exclude"}]"#,
        &[BatchElement {
            partition_key: Some(text(r#"["a"]"#)),
            if_none_match: Some(text("*")),
            indexing_directive: Some(text("Exclude")),
            prefers_minimal: true,
            ..plain(BatchVerb::Upsert { body: r#"{"id":"é"}"#.as_bytes().to_vec() })
        }],
    );
    check(
        r#"[{"operationType":"delete","id":"1","partitionKey":["a",{}],"ifMatch":null,"resourceBody":null}]"#,
        &[BatchElement {
            partition_key: Some(text(r#"["a",{}]"#)),
            ..plain(BatchVerb::Delete { id: text("1") })
        }],
    );
    check(
        r#"[{"operationType":"Patch","id":"1","resourceBody":[{"op":"remove","path":"/a"}]}]"#,
        &[plain(BatchVerb::Patch { id: text("1"), body: br#"[{"op":"remove","path":"/a"}]"#.to_vec() })],
    );
}

#[test]
fn what_the_dotnet_client_sends() {
    let rows = [
        OperationRow {
            operation_type: Some(20),
            resource_type: Some(2),
            partition_key: Some(r#"["a"]"#),
            resource_body: Some(b"{}"),
            indexing_directive: Some("Exclude"),
            minimal_return_preference: Some(true),
            ..OperationRow::default()
        },
        OperationRow {
            operation_type: Some(4),
            resource_type: Some(2),
            id: Some("1"),
            if_match: Some("\"e\""),
            ..OperationRow::default()
        },
        OperationRow { operation_type: Some(2), id: Some("1"), ..OperationRow::default() },
    ];
    let batch = parse(&write_operations(&rows)).unwrap();
    assert_eq!(batch.encoding, Encoding::HybridRow);
    assert_eq!(
        batch.operations,
        [
            BatchElement {
                partition_key: Some(text(r#"["a"]"#)),
                indexing_directive: Some(text("Exclude")),
                prefers_minimal: true,
                ..plain(BatchVerb::Upsert { body: b"{}".to_vec() })
            },
            BatchElement { if_match: Some(text("\"e\"")), ..plain(BatchVerb::Delete { id: text("1") }) },
            plain(BatchVerb::Read { id: text("1") }),
        ]
    );
}

#[test]
fn refusals() {
    let invalid = |body: &str, detail: &str| {
        refused(body.as_bytes(), 400, &format!("Batch request is invalid: {detail}."));
    };
    refused(b"[]", 400, "Batch request has no operations.");
    let many = |count: usize| format!("[{}]", vec![r#"{"operationType":"Read","id":"1"}"#; count].join(","));
    assert_eq!(parse(many(100).as_bytes()).unwrap().operations.len(), 100);
    refused(many(101).as_bytes(), 400, "Batch request has more operations than what is supported.");
    refused(&vec![b' '; BODY_BYTES_MAX + 1], 413, "Request size is too large");
    invalid("", "the body is not JSON: unexpected end of text at byte 0");
    invalid("{}", "the body must be an array of operations");
    invalid("[1]", "Operation(1) is not an object");
    invalid("[{}]", "Operation(1) has no 'operationType'");
    invalid(r#"[{"operationType":1}]"#, "Operation(1) has a 'operationType' that is not a string");
    invalid(r#"[{"operationType":"Query"}]"#, "Operation(1) has an unknown 'operationType'");
    invalid(r#"[{"operationType":"Read","id":"1"},{"operationType":"Read"}]"#, "Operation(2) has no 'id'");
    invalid(r#"[{"operationType":"Read","id":1}]"#, "Operation(1) has a 'id' that is not a string");
    for kind in ["Create", "Upsert", "Replace", "Patch"] {
        let body = format!(r#"[{{"operationType":"{kind}","id":"1"}}]"#);
        invalid(&body, "Operation(1) has no 'resourceBody'");
    }
}

#[test]
fn refusals_of_rows() {
    let read = OperationRow { operation_type: Some(2), id: Some("1"), ..OperationRow::default() };
    let check = |rows: &[OperationRow<'_>], message: &str| refused(&write_operations(rows), 400, message);
    check(&[], "Batch request has no operations.");
    check(&[read; 101], "Batch request has more operations than what is supported.");
    let invalid = |row: OperationRow<'_>, detail: &str| {
        check(&[read, row], &format!("Batch request is invalid: Operation(2) {detail}."));
    };
    invalid(OperationRow { operation_type: None, ..read }, "has no 'operationType'");
    invalid(OperationRow { operation_type: Some(3), ..read }, "has an unknown 'operationType'");
    invalid(OperationRow { resource_type: Some(3), ..read }, "is not about a document");
    invalid(OperationRow { id: None, ..read }, "has no 'id'");
    invalid(
        OperationRow { binary_id: Some(b"1"), ..read },
        "has a 'binaryId', which is only for containers with a schema",
    );
    let mut damaged = write_operations(&[read]);
    damaged.truncate(damaged.len() - 1);
    let message = "Batch request is invalid: Operation(1) cannot be read: the binary row of the request is invalid at \
                   byte 23: the bytes end too early.";
    refused(&damaged, 400, message);
}

fn results() -> [OperationResult; 3] {
    [
        OperationResult {
            status: 201,
            charge: 6.29,
            etag: Some(text("\"e1\"")),
            body: Some(br#"{"id":"1"}"#.to_vec()),
            ..OperationResult::default()
        },
        OperationResult { retry_after_milliseconds: Some(12), ..OperationResult::new(429, 3200, 0.0) },
        OperationResult::new(424, 0, 0.0),
    ]
}

#[test]
fn responses() {
    let body = Encoding::Json.write(&results());
    let expected = r#"[{"statusCode":201,"requestCharge":6.29,"eTag":"\"e1\"","resourceBody":{"id":"1"}},{"statusCode":429,"subStatusCode":3200,"requestCharge":0,"retryAfterMilliseconds":12},{"statusCode":424,"requestCharge":0}]"#;
    assert_eq!(String::from_utf8(body).unwrap(), expected);
    assert_eq!(Encoding::Json.write(&[]), b"[]");

    let body = Encoding::HybridRow.write(&results());
    let rows: Vec<_> = read_results(&body).map(Result::unwrap).collect();
    assert_eq!((rows[0].status_code, rows[0].etag), (201, Some("\"e1\"")));
    assert_eq!((rows[0].resource_body, rows[0].request_charge), (Some(&br#"{"id":"1"}"#[..]), Some(6.29)));
    assert_eq!((rows[1].sub_status_code, rows[1].retry_after_milliseconds), (3200, Some(12)));
    assert_eq!((rows[2].status_code, rows[2].resource_body, rows.len()), (424, None, 3));
}

#[test]
fn statuses() {
    let check = |statuses: &[u16], expected: u16| {
        let results: Vec<_> = statuses.iter().map(|status| OperationResult::new(*status, 0, 1.005)).collect();
        assert_eq!(response_status(&results), expected, "{statuses:?}");
    };
    check(&[200, 201, 204], 200);
    check(&[200, 304], 207);
    check(&[424, 404], 207);
    assert!(
        !OperationResult::new(304, 0, 0.0).is_failure() && OperationResult::new(400, 0, 0.0).is_failure()
    );
    let charge = total_charge(&[OperationResult::new(200, 0, 0.1), OperationResult::new(200, 0, 0.2)]);
    assert_eq!(charge.to_string(), "0.3");

    let failure = OperationResult::new(409, 0, 4.95);
    let statuses = |results: &[OperationResult]| results.iter().map(|one| one.status).collect::<Vec<_>>();
    assert_eq!(statuses(&failed_transaction(3, 1, &failure)), [424, 409, 424]);
    assert_eq!(statuses(&response_too_large(3, 1.0)), [424, 424, 413]);
}

proptest! {
    #[test]
    fn reading_is_total(body in prop::collection::vec(any::<u8>(), 0..80), near in "\\[[{}:,\"a-zA-Z1]{0,60}\\]") {
        let _ = (parse(&body), parse(near.as_bytes()));
        let mut rows = body;
        rows.insert(0, hybrid_row::FIRST_BYTE);
        let _ = parse(&rows);
    }

    #[test]
    fn responses_are_json(
        status in 200..600_u16, substatus in any::<u32>(), charge in 0.0..1e6, etag in prop::option::of(".*"),
        retry_after_milliseconds in prop::option::of(any::<u32>()),
    ) {
        let body = Some(br#"{"a":[1]}"#.to_vec());
        let result = OperationResult {
            etag: etag.clone(), retry_after_milliseconds, body, ..OperationResult::new(status, substatus, charge)
        };
        let text = Encoding::Json.write(&[result.clone(), result]);
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(value.as_array().map(Vec::len), Some(2));
        prop_assert_eq!(value[1]["statusCode"].as_u64(), Some(u64::from(status)));
        prop_assert_eq!(value[1]["subStatusCode"].as_u64().unwrap_or(0), u64::from(substatus));
        prop_assert_eq!(value[1]["eTag"].as_str(), etag.as_deref());
        prop_assert_eq!(&value[1]["resourceBody"]["a"][0], 1);
    }
}
