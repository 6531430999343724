//! Rows byte for byte as the reference gives them, and the laws: what was written reads back, any bytes are read or
//! refused.

use super::*;
use proptest::prelude::*;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const SEGMENT: &str = "81 f0d8ff7f 01 0a000000";

/// One record after a segment, its checksum computed.
fn stream(row: &str) -> Vec<u8> {
    let mut stream = bytes(SEGMENT);
    record_io::write_record(&bytes(row), &mut stream);
    stream
}

#[test]
fn the_result_of_the_reference() {
    let expected = bytes(
        "81f0d8ff7f010a000000 81f1d8ff7f 28000000 5d69ed11 817154e17f 0f c9000000 00000000 04 22653122 \
         0a 7b226964223a2231227d 10 06 295c8fc2f5281940",
    );
    let row = ResultRow {
        status_code: 201,
        etag: Some("\"e1\""),
        resource_body: Some(br#"{"id":"1"}"#),
        request_charge: Some(6.29),
        ..ResultRow::default()
    };
    assert_eq!(write_results(&[row]), expected);
    assert_eq!(read_results(&expected).collect::<Vec<_>>(), [Ok(row)]);
}

#[test]
fn the_request_of_the_reference() {
    let expected = bytes(
        "81f0d8ff7f010a000000 81f1d8ff7f 28000000 f80cece0 817054e17f 47 00000000 02000000 05 5b2261225d \
         13 7b226964223a2231222c22706b223a2261227d",
    );
    let row = OperationRow {
        operation_type: Some(0),
        resource_type: Some(2),
        partition_key: Some(r#"["a"]"#),
        resource_body: Some(br#"{"id":"1","pk":"a"}"#),
        ..OperationRow::default()
    };
    assert_eq!(read_operations(&expected).collect::<Vec<_>>(), [Ok(row)]);
    assert_eq!(write_operations(&[row]), expected);
}

#[test]
fn sparse_fields() {
    let check = |sparse: &str, expected: OperationRow<'_>| {
        let stream = stream(&format!("817054e17f 13 02000000 02000000 01 78 {sparse}"));
        let row = OperationRow { operation_type: Some(2), resource_type: Some(2), id: Some("x"), ..expected };
        assert_eq!(read_operations(&stream).collect::<Vec<_>>(), [Ok(row)], "{sparse}");
    };
    let none = OperationRow::default();
    check("", none);
    check("14 08 07 4578636c756465", OperationRow { indexing_directive: Some("Exclude"), ..none });
    check("14 09 01 61 14 0a 01 62", OperationRow { if_match: Some("a"), if_none_match: Some("b"), ..none });
    check(
        "03 0c 07 0b ffffffff",
        OperationRow { minimal_return_preference: Some(true), time_to_live_in_seconds: Some(-1), ..none },
    );
    check("02 0c", OperationRow { minimal_return_preference: Some(false), ..none });
    check("01 0c", none);
    // The name spelled out: 13 + 7 bytes.
    check("14 14 69664d61746368 01 61", OperationRow { if_match: Some("a"), ..none });
    // Names that nobody knows, with a value of every type that can be skipped.
    let zeros = |count: usize| "00".repeat(count);
    for (code, length) in [
        (1, 0),
        (2, 0),
        (3, 0),
        (5, 1),
        (6, 2),
        (7, 4),
        (8, 8),
        (9, 1),
        (10, 2),
        (11, 4),
        (12, 8),
        (13, 1),
        (14, 1),
        (15, 4),
        (16, 8),
        (17, 16),
        (18, 8),
        (19, 16),
        (20, 1),
        (21, 1),
        (22, 16),
        (23, 8),
        (24, 12),
    ] {
        check(
            &format!("{code:02x} 0e 7a {} 03 0c", zeros(length)),
            OperationRow { minimal_return_preference: Some(true), ..none },
        );
    }
}

#[test]
fn absent_columns() {
    // Fixed columns take their bytes even when they are not set.
    let stream = stream("817054e17f 00 00000000 00000000");
    assert_eq!(read_operations(&stream).collect::<Vec<_>>(), [Ok(OperationRow::default())]);
    let rows = [OperationRow::default(), OperationRow { resource_type: Some(2), ..OperationRow::default() }];
    let written = write_operations(&rows);
    assert_eq!(read_operations(&written).collect::<Result<Vec<_>, _>>().as_deref(), Ok(&rows[..]));
}

#[test]
fn segments() {
    assert_eq!(read_operations(&bytes(SEGMENT)).count(), 0);
    // A longer one, and one between records.
    let mut long = bytes("81 f0d8ff7f 01 0d000000 010203");
    let row = OperationRow { operation_type: Some(2), ..OperationRow::default() };
    long.extend_from_slice(&write_operations(&[row, row]));
    assert_eq!(read_operations(&long).collect::<Vec<_>>(), [Ok(row), Ok(row)]);
}

#[test]
fn damaged_streams() {
    let good = write_operations(&[OperationRow { id: Some("x"), ..OperationRow::default() }]);
    let check = |stream: &[u8], what: &str| {
        let rows: Vec<_> = read_operations(stream).collect();
        assert_eq!(rows.last().map(|row| row.map_err(|error| error.what)), Some(Err(what)), "{stream:02x?}");
    };
    check(&[], "the bytes end too early");
    check(b"[]", "not a row of version 1");
    check(&bytes("81 f1d8ff7f 00000000 00000000"), "neither segment nor record");
    check(&bytes("81 f0d8ff7f 00 0a000000"), "a segment without its length");
    check(&bytes("81 f0d8ff7f 01 09000000"), "a segment without its length");
    check(&bytes("81 f0d8ff7f 01 ffffffff"), "a segment without its length");
    check(&bytes("81 f0d8ff7f 01 0b000000"), "the bytes end too early");
    for length in 11..good.len() {
        check(&good[..length], "the bytes end too early");
    }
    let mut wrong = good.clone();
    wrong[20] ^= 1;
    check(&wrong, "a record with a wrong checksum");
    check(&[&good[..], &[0]].concat(), "not a row of version 1");
    check(&stream("817154e17f 00 00000000 00000000"), "a row of another schema");
    let row = |rest: &str| stream(&format!("817054e17f {rest}"));
    check(&row("10 00000000 00000000 02 c3 28"), "text that is not UTF-8");
    check(&row("40 00000000 00000000 ffffffff0f 00"), "the bytes end too early");
    check(&row("40 00000000 00000000 ffffffffffffffffff01 00"), "the bytes end too early");
    check(&row("40 00000000 00000000 8080808080808080808080 00"), "a number has too many bytes");
    check(&row("00 00000000 00000000 07 09 00000000"), "a field of another type");
    check(&row("00 00000000 00000000 14 05 01 61"), "a field of another type");
    check(&row("00 00000000 00000000 1e 09"), "a field of an unknown type");
    check(&row("00 00000000 00000000 14"), "the bytes end too early");
    check(&row("00 00000000 00000000 14 ffffffffffffffffff01"), "the bytes end too early");
}

#[derive(Debug, Clone)]
struct Owned {
    texts: [Option<String>; 5],
    bytes: [Option<Vec<u8>>; 3],
    numbers: [Option<i32>; 3],
    flag: Option<bool>,
}

fn any_owned() -> impl Strategy<Value = Owned> {
    let text = || prop::option::of(".{0,200}");
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..300));
    let number = || prop::option::of(any::<i32>());
    (
        [text(), text(), text(), text(), text()],
        [bytes(), bytes(), bytes()],
        [number(), number(), number()],
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(texts, bytes, numbers, flag)| Owned { texts, bytes, numbers, flag })
}

impl Owned {
    fn row(&self) -> OperationRow<'_> {
        let [partition_key, id, indexing_directive, if_match, if_none_match] =
            self.texts.each_ref().map(Option::as_deref);
        let [effective_partition_key, binary_id, resource_body] = self.bytes.each_ref().map(Option::as_deref);
        let [operation_type, resource_type, time_to_live_in_seconds] = self.numbers;
        OperationRow {
            operation_type,
            resource_type,
            partition_key,
            effective_partition_key,
            id,
            binary_id,
            resource_body,
            indexing_directive,
            if_match,
            if_none_match,
            time_to_live_in_seconds,
            minimal_return_preference: self.flag,
        }
    }
}

proptest! {
    #[test]
    fn operations_come_back(rows in prop::collection::vec(any_owned(), 0..5)) {
        let rows: Vec<OperationRow<'_>> = rows.iter().map(Owned::row).collect();
        let stream = write_operations(&rows);
        let read: Result<Vec<_>, _> = read_operations(&stream).collect();
        prop_assert_eq!(read, Ok(rows));
    }

    #[test]
    fn results_come_back(
        status_code in any::<i32>(), sub_status_code in any::<i32>(), etag in prop::option::of(".*"),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        retry_after_milliseconds in prop::option::of(any::<u32>()),
        request_charge in prop::option::of(-1e9..1e9),
    ) {
        let row = ResultRow {
            status_code, sub_status_code, etag: etag.as_deref(), resource_body: body.as_deref(),
            retry_after_milliseconds, request_charge,
        };
        let stream = write_results(&[row, row]);
        prop_assert_eq!(read_results(&stream).collect::<Vec<_>>(), [Ok(row), Ok(row)]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100), row in any_owned(),
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        // As a stream, as a row in a right frame, and as a row with one byte changed.
        let _ = read_operations(&bytes).count();
        let mut damaged = OPERATION.write([None; 12]);
        damaged.extend_from_slice(&bytes);
        let mut changed = row.row().write();
        let at = at.index(changed.len());
        changed[at] = byte;
        for record in [damaged, changed] {
            let mut stream = Vec::new();
            record_io::write_segment(&mut stream);
            record_io::write_record(&record, &mut stream);
            prop_assert_eq!(read_operations(&stream).count(), 1);
            prop_assert_eq!(read_results(&stream).count(), 1);
        }
    }
}
