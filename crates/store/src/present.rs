//! How a stored document is shown: its text with the system properties that the database keeps beside it.

use astrarium_index::Stored;
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_keys::rid::ChildType;
use astrarium_value::{Value, system_properties};

/// More than the system properties of a document take.
const SYSTEM_PROPERTIES_LENGTH_MAX: usize = 320;

/// Appends a document: its text with the system properties before the last brace. No parsing, no printing.
pub fn push_document(container: Rid, body: &Body, out: &mut Vec<u8>) {
    push(container, body, true, out);
}

/// Appends a document without the system properties that are links.
pub fn push_document_without_links(container: Rid, body: &Body, out: &mut Vec<u8>) {
    push(container, body, false, out);
}

fn push(container: Rid, body: &Body, with_links: bool, out: &mut Vec<u8>) {
    let (text, header) = (body.text(), &body.header);
    out.reserve(text.len() + SYSTEM_PROPERTIES_LENGTH_MAX);
    out.extend_from_slice(&text[..text.len() - 1]);
    out.extend_from_slice(b",\"_rid\":\"");
    document_rid(container, header.number).push_text(out);
    if with_links {
        out.extend_from_slice(b"\",\"_self\":\"");
        push_self_link(container, header.number, out);
    }
    // Its quotes are escaped.
    out.extend_from_slice(b"\",\"_etag\":\"\\\"");
    out.extend_from_slice(&etag_digits(header.etag, header.timestamp));
    out.extend_from_slice(b"\\\"");
    if with_links {
        out.extend_from_slice(b"\",\"_attachments\":\"attachments/");
    }
    out.extend_from_slice(b"\",\"_ts\":");
    push_decimal(header.timestamp, out);
    out.push(b'}');
}

fn push_decimal(number: u64, out: &mut Vec<u8>) {
    let (mut digits, mut rest, mut first) = ([b'0'; 20], number, 20);
    loop {
        first -= 1;
        digits[first] += (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
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
    out.extend_from_slice(&etag_digits(stamp, timestamp));
    out.push(b'"');
}

/// The etag of a version, quotes included.
pub fn etag_text(stamp: u64, timestamp: u64) -> String {
    let mut out = Vec::with_capacity(38);
    push_etag(stamp, timestamp, &mut out);
    String::from_utf8(out).expect("hexadecimal digits")
}

/// An etag without its quotes: 64 bits of the stamp and 32 of the time in groups of digits.
fn etag_digits(stamp: u64, timestamp: u64) -> [u8; 36] {
    let mut text = *b"00000000-0000-0700-0000-000000000000";
    let mut put = |from: usize, digits: &[u8]| text[from..from + digits.len()].copy_from_slice(digits);
    let (stamp, time) = (hexadecimal(stamp), hexadecimal(timestamp));
    put(0, &stamp[..8]);
    put(9, &stamp[8..12]);
    put(19, &stamp[12..]);
    put(24, &time[8..]);
    text
}

fn hexadecimal(value: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 16];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(value.to_be_bytes()) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xF)]];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_have_the_service_s_form_and_grow_with_the_stamp() {
        assert_eq!(etag_text(0x0000_d826_0102_0304, 0x651d_3b4e), "\"0000d826-0102-0700-0304-651d3b4e0000\"");
        assert!(etag_text(5 << 32, 9) < etag_text(6 << 32, 1));
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 1_790_000_000, u64::MAX] {
            let mut text = Vec::new();
            push_decimal(number, &mut text);
            assert_eq!(text, number.to_string().into_bytes());
        }
    }
}
