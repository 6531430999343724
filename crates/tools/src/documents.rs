//! Documents as text: which properties belong to the system, and how they are left out.

use astrarium_client::raw_json;

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

/// Adds a member to an object that is being written.
pub(crate) fn push_member(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(name);
    out.push(b':');
    out.extend_from_slice(value);
}

/// The id of a document, if it is a string.
pub(crate) fn id_of(document: &[u8]) -> Option<String> {
    let raw = raw_json::member(document, "id")?;
    serde_json::from_slice(raw).ok()
}

/// Whether two documents say the same: the system's properties do not count, nor does the order of members.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let value = |document: &[u8]| {
        let stripped = without_system_properties(document);
        astrarium_value::json::Text::parse(&stripped).ok().map(|text| text.root().to_value())
    };
    match (value(one), value(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
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
        assert!(!is_same(b"{\"a\":1}", b"{\"a\":"));
        assert_eq!(id_of(b"{\"id\":\"a\\u00e9\"}").as_deref(), Some("aé"));
        assert_eq!(id_of(b"{\"id\":7}"), None);
    }
}
