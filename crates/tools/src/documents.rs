//! Documents as text: which properties belong to the system, and how they are left out.

use astrarium_client::raw_json;
pub(crate) use astrarium_rows::documents::push_member;

/// What the system adds to documents and a load cannot keep. `_lsn` is added by change feeds.
pub(crate) const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// The document without what the system adds; everything else as it stands.
pub(crate) fn without_system_properties(document: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.len());
    out.push(b'{');
    for (name, value) in raw_json::members(document) {
        let plain = name.get(1..name.len() - 1).unwrap_or_default();
        if SYSTEM_PROPERTIES.iter().any(|property| property.as_bytes() == plain) {
            continue;
        }
        push_member(&mut out, name, value);
    }
    out.push(b'}');
    out
}

/// Whether an object has everything that the system adds, so that it is a document as it was stored.
pub(crate) fn is_whole(object: &[u8]) -> bool {
    ["_rid", "_self", "_etag", "_ts"].iter().all(|name| raw_json::member(object, name).is_some())
}

/// The id of a document, if it is a string.
pub(crate) fn id_of(document: &[u8]) -> Option<String> {
    let raw = raw_json::member(document, "id")?;
    serde_json::from_slice(raw).ok()
}

/// Digits of a number from which on a double may not tell it from its neighbours.
const LONG_DIGITS: usize = 16;

/// Whether two documents say the same: the system's properties do not count, nor does the order of members, nor how numbers are spelled unless they
/// are too long for a double.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let value = |document: &[u8]| {
        let stripped = without_system_properties(document);
        let value = astrarium_value::json::Text::parse(&stripped).ok()?.root().to_value();
        Some((value, long_numbers(&stripped)))
    };
    match (value(one), value(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The long numbers of a JSON text as they are spelled, sorted.
fn long_numbers(text: &[u8]) -> Vec<Vec<u8>> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let mut numbers = Vec::new();
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let rest = text.get(at..).unwrap_or_default();
                let number =
                    rest.get(..rest.iter().take_while(|byte| is_part(byte)).count()).unwrap_or_default();
                if number.iter().filter(|byte| byte.is_ascii_digit()).count() >= LONG_DIGITS {
                    numbers.push(number.to_vec());
                }
                at += number.len().saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_properties_are_left_out() {
        let check = |document: &str, expected: &str| {
            assert_eq!(String::from_utf8(without_system_properties(document.as_bytes())).unwrap(), expected);
        };
        check("{\"id\":\"1\",\"n\":1.10,\"_rid\":\"x\",\"_ts\":7}", "{\"id\":\"1\",\"n\":1.10}");
        check("{\"_rid\":\"x\", \"a\" : {\"_rid\":1}}", "{\"a\":{\"_rid\":1}}");
        check("{\"_ts\":1}", "{}");
        check("{}", "{}");
        assert!(is_same(b"{\"a\":1,\"b\":[2],\"_ts\":1}", b"{\"b\":[2],\"a\":1.0}"));
        assert!(!is_same(b"{\"a\":1}", b"{\"a\":2}"));
        assert!(!is_same(b"{\"a\":12345678901234567890}", b"{\"a\":12345678901234567891}"));
        assert!(is_same(b"{\"a\":12345678901234567890,\"b\":1}", b"{\"b\":1, \"a\":12345678901234567890}"));
        assert!(is_same(b"{\"a\":\"\\\"12345678901234567890\"}", b"{\"a\":\"\\u002212345678901234567890\"}"));
        assert!(!is_same(b"{\"a\":1}", b"{\"a\":"));
        assert_eq!(id_of(b"{\"id\":\"a\\u00e9\"}").as_deref(), Some("aé"));
        assert_eq!(id_of(b"{\"id\":7}"), None);
    }
}
