//! The small values of headers: no text panics, and what is read is within its bounds.

use astrarium_catalog::definition::throughput::Throughput;
use astrarium_wire::consistency::ConsistencyLevel;
use astrarium_wire::header_values::{MaxItemCount, parse_boolean, parse_max_item_count, prefers_minimal};
use astrarium_wire::status::error_body;

pub(crate) fn run(text: &str) {
    let _ = (parse_boolean(text), prefers_minimal(text));
    if let Ok(MaxItemCount::AtMost(count)) = parse_max_item_count(text) {
        assert!(count.get() > 0);
    }
    if let Ok(level) = ConsistencyLevel::parse(text) {
        assert_eq!(ConsistencyLevel::parse(level.name()), Ok(level));
    }
    let _ = Throughput::from_headers(Some(text), None);
    let _ = Throughput::from_headers(None, Some(text));
    let _ = Throughput::from_headers(Some(text), Some(text));
    let body = error_body("BadRequest", text, text);
    assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok(), "an error body is JSON");
}
