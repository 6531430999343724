//! Stored values and keys, as a damaged disk may show them: refused or read, never a panic, and what is read is written
//! back as the same bytes.

use astrarium_keys::body::{Body, HEADER_LENGTH};
use astrarium_keys::record::{KeyRangeRow, Record, read_name_value, read_record_number, read_sweep_key};
use astrarium_keys::{document, feed, number};
use bytes::Bytes;

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(body) = Body::decode(Bytes::copy_from_slice(bytes)) {
        let mut stored = vec![0; HEADER_LENGTH];
        stored.extend_from_slice(body.text());
        let again = Body::in_place(body.header, stored);
        assert_eq!(Body::decode(again.clone().into_bytes()).expect("our own bytes"), again);
        assert_eq!((again.header, again.text()), (body.header, body.text()));
    }
    if let Ok(record) = Record::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
    if let Ok(rows) = KeyRangeRow::decode_all(bytes) {
        assert_eq!(KeyRangeRow::encode_all(&rows), bytes);
    }
    let _ = (read_record_number(bytes), read_name_value(bytes), read_sweep_key(bytes));
    let _ = (number::read_number(bytes), feed::read_position(bytes));
    if let Ok(suffix) = document::suffix(bytes) {
        assert!(document::from_suffix(7, suffix).ends_with(suffix));
    }
}
