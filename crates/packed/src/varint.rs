//! Numbers in as few bytes as they need: seven bits a byte, the lowest first, the top bit set on all but the last.
//!
//! In and out: bytes. A number that does not end, or does not fit 64 bits, is no number: reading never panics.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads the number at `at` and moves `at` behind it.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 { Some(u64::from(first)) } else { get_rest(bytes, at, u64::from(first & 0x7F)) }
}

fn get_rest(bytes: &[u8], at: &mut usize, mut number: u64) -> Option<u64> {
    for shift in (7..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends a number that may be below zero; those near zero are the shortest.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Reads what [`put_signed`] wrote.
pub(crate) fn get_signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let folded = get(bytes, at)?;
    Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what [`put_bytes`] wrote.
pub(crate) fn get_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::try_from(get(bytes, at)?).ok()?;
    let found = bytes.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_edges_come_back() {
        for number in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_signed(&mut bytes, number.cast_signed());
            let mut at = 0;
            assert_eq!(get(&bytes, &mut at), Some(number));
            assert_eq!(get_signed(&bytes, &mut at), Some(number.cast_signed()));
            assert_eq!((at, get(&bytes, &mut at)), (bytes.len(), None));
        }
        assert_eq!(get(&[0x80; 12], &mut 0), None, "a number that does not end");
        assert_eq!(get(&[[0xFF; 9].as_slice(), &[2]].concat(), &mut 0), None, "more than 64 bits");
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = get(&bytes, &mut 0);
            let _ = get_signed(&bytes, &mut 0);
            let _ = get_bytes(&bytes, &mut 0);
        }
    }
}
