//! How an etag is written: a GUID-like text with its quotes, made of the stamp of the write and its time.

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
