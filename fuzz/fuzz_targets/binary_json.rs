//! The binary form of JSON: any bytes are refused or become text that is JSON, of bounded length.

use astrarium_value::json::Text;
use astrarium_wire::binary_json::{FIRST_BYTE, OUTPUT_BYTES_MAX, to_text};

pub(crate) fn run(bytes: &[u8]) {
    // The first byte is always the same; guessing it would be a waste.
    let body = [&[FIRST_BYTE], bytes].concat();
    match to_text(&body) {
        Ok(text) => {
            assert!(text.len() <= OUTPUT_BYTES_MAX);
            assert!(Text::parse(&text).is_ok(), "{} is not JSON", String::from_utf8_lossy(&text));
        }
        Err(error) => assert!(error.offset <= body.len()),
    }
}
