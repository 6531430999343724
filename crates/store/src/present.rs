//! How a stored document is shown: its text with the system properties that the database keeps beside it.

use astrarium_index::Stored;
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_keys::rid::ChildType;
use astrarium_value::{Value, system_properties};

/// Appends a document: its text with the system properties before the last brace. No parsing, no printing.
pub fn push_document(container: Rid, body: &Body, out: &mut Vec<u8>) {
    push(container, body, true, out);
}

/// Appends a document without the system properties that are links.
pub fn push_document_without_links(container: Rid, body: &Body, out: &mut Vec<u8>) {
    push(container, body, false, out);
}

fn push(container: Rid, body: &Body, with_links: bool, out: &mut Vec<u8>) {
    let text = body.text();
    out.reserve(text.len() + 320);
    out.extend_from_slice(&text[..text.len() - 1]);
    out.extend_from_slice(b",\"_rid\":\"");
    document_rid(container, body.header.number).push_text(out);
    if with_links {
        out.extend_from_slice(b"\",\"_self\":\"");
        push_self_link(container, body.header.number, out);
    }
    out.extend_from_slice(b"\",\"_etag\":\"\\");
    push_etag(body.header.etag, body.header.timestamp, out);
    // The closing quote of the etag is escaped as the opening one is.
    out.insert(out.len() - 1, b'\\');
    if with_links {
        out.extend_from_slice(b"\",\"_attachments\":\"attachments/");
    }
    out.extend_from_slice(b"\",\"_ts\":");
    out.extend_from_slice(body.header.timestamp.to_string().as_bytes());
    out.push(b'}');
}

/// The value of a system property of a document, if the name is one.
pub fn system_property(container: Rid, body: &Body, name: &str) -> Option<Value> {
    let header = &body.header;
    let etag = || etag_text(header.etag, header.timestamp);
    system_value(container, header.number, header.timestamp, etag, name)
}

/// The same for a document as indexes see it.
pub fn indexed_system_property(container: Rid, document: &Stored<'_>, name: &str) -> Option<Value> {
    let etag = || document.etag.to_owned();
    system_value(container, document.number, document.timestamp, etag, name)
}

fn system_value(
    container: Rid,
    number: u64,
    timestamp: u64,
    etag: impl FnOnce() -> String,
    name: &str,
) -> Option<Value> {
    let text = |bytes: Vec<u8>| Value::String(String::from_utf8_lossy(&bytes).into());
    Some(match name {
        system_properties::RID => Value::String(document_rid(container, number).to_string().into()),
        system_properties::SELF_LINK => {
            let mut link = Vec::new();
            push_self_link(container, number, &mut link);
            text(link)
        }
        system_properties::ETAG => Value::String(etag().into()),
        system_properties::ATTACHMENTS => Value::String("attachments/".into()),
        system_properties::TIMESTAMP => Value::Number(timestamp as f64),
        _ => return None,
    })
}

fn document_rid(container: Rid, number: u64) -> Rid {
    Rid::child(container, ChildType::Document, number)
}

fn push_self_link(container: Rid, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"dbs/");
    if let Some(database) = container.database_part() {
        database.push_text(out);
    }
    out.extend_from_slice(b"/colls/");
    container.push_text(out);
    out.extend_from_slice(b"/docs/");
    document_rid(container, number).push_text(out);
    out.push(b'/');
}

/// Appends the etag of a version, quotes included.
pub fn push_etag(stamp: u64, timestamp: u64, out: &mut Vec<u8>) {
    out.push(b'"');
    push_hex(stamp >> 32, 8, out);
    out.push(b'-');
    push_hex(stamp >> 16, 4, out);
    out.extend_from_slice(b"-0700-");
    push_hex(stamp, 4, out);
    out.push(b'-');
    push_hex(timestamp, 8, out);
    out.extend_from_slice(b"0000\"");
}

/// The etag of a version, quotes included.
pub fn etag_text(stamp: u64, timestamp: u64) -> String {
    let mut out = Vec::with_capacity(38);
    push_etag(stamp, timestamp, &mut out);
    String::from_utf8(out).expect("hexadecimal digits")
}

fn push_hex(value: u64, digits: u32, out: &mut Vec<u8>) {
    for digit in (0..digits).rev() {
        let nibble = (value >> (digit * 4) & 0xF) as u8;
        out.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_have_the_service_s_form_and_grow_with_the_stamp() {
        assert_eq!(etag_text(0x0000_d826_0102_0304, 0x651d_3b4e), "\"0000d826-0102-0700-0304-651d3b4e0000\"");
        assert!(etag_text(5 << 32, 9) < etag_text(6 << 32, 1));
    }
}
