//! Percent-encoding: decoding of path segments, header values and tokens, and encoding of header values.
//!
//! Invariants
//! - Decoding happens exactly once and `+` is never a space, so that a document id with a literal `%20` or `+` survives.
//! - A `%` that two hexadecimal digits do not follow stands for itself: hand-written clients send ids such as `100%`.
//! - Decoded text is never longer than its source.
//!
//! Not here: splitting of paths (`address`).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but letters, digits and the four marks that never need escaping.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Control characters and the escape sign itself; bytes that are not ASCII are always escaped.
const HEADER_TEXT: &AsciiSet = &CONTROLS.add(b'%');

/// Decodes once; `None` when the result is not UTF-8. Borrows when there is nothing to decode.
pub fn decode_once(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut pieces = text.as_bytes().split(|byte| *byte == b'%');
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        if let [high, low, tail @ ..] = piece
            && let (Some(high), Some(low)) = (hexadecimal(*high), hexadecimal(*low))
        {
            decoded.push(high << 4 | low);
            decoded.extend_from_slice(tail);
        } else {
            decoded.push(b'%');
            decoded.extend_from_slice(piece);
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Encodes all but unreserved characters, as for a path segment or a collected script log.
pub fn encode_component(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, COMPONENT).into()
}

/// Encodes only what a header value cannot carry (and `%`), so that an ASCII path stays readable.
pub fn encode_header_text(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, HEADER_TEXT).into()
}

fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(decode_once(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn decoding() {
        check("", Some(""));
        check("plain", Some("plain"));
        check("a%20b+c", Some("a b+c"));
        check("a%2520", Some("a%20"));
        check("%e6%97%A5", Some("日"));
        check("100%", Some("100%"));
        check("%2", Some("%2"));
        check("%zz%", Some("%zz%"));
        check("%%41", Some("%A"));
        check("%FF", None);
        check("%C3", None);
    }

    #[test]
    fn header_text_stays_readable() {
        assert_eq!(encode_header_text("dbs/a b/colls/é%"), "dbs/a b/colls/%C3%A9%25");
        assert!(matches!(encode_header_text("dbs/a"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn decode_is_total_and_never_grows(text in ".*") {
            if let Some(decoded) = decode_once(&text) {
                prop_assert!(decoded.len() <= text.len());
            }
        }

        #[test]
        fn encodings_round_trip(text in ".*") {
            let (component, header) = (encode_component(&text), encode_header_text(&text));
            prop_assert!(component.is_ascii() && header.is_ascii());
            prop_assert_eq!(decode_once(&component), Some(Cow::Borrowed(text.as_str())));
            prop_assert_eq!(decode_once(&header), Some(Cow::Borrowed(text.as_str())));
        }
    }
}
