//! Positions in text as the query language counts them: in UTF-16 units, while text is held as UTF-8.
//!
//! Text of ASCII only, which is most text, has the same positions in both and is answered without counting.
//! A cut through a surrogate pair leaves half a character, which UTF-8 cannot hold: the half becomes U+FFFD, one unit
//! long like the half it stands for, so that lengths still add up.

use std::borrow::Cow;

/// How many units the text has.
pub(crate) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The units from `start` up to `end`, both clamped to the text.
pub(crate) fn slice(text: &str, start: usize, end: usize) -> Cow<'_, str> {
    if text.is_ascii() {
        let end = end.min(text.len());
        return Cow::Borrowed(&text[start.min(end)..end]);
    }
    if start >= end {
        return Cow::Borrowed("");
    }
    let (first, first_is_half) = cut(text, start);
    let (last, last_is_half) = cut(text, end);
    if !first_is_half && !last_is_half {
        return Cow::Borrowed(&text[first..last]);
    }
    let units: Vec<u16> = text.encode_utf16().skip(start).take(end - start).collect();
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// The unit at which the byte offset stands; the offset must be a boundary of characters.
pub(crate) fn position(text: &str, byte: usize) -> usize {
    length(&text[..byte])
}

/// The byte offset of the unit, or of the first character boundary after it; the text's end when there are fewer.
pub(crate) fn byte_offset(text: &str, position: usize) -> usize {
    if text.is_ascii() {
        return position.min(text.len());
    }
    let (byte, is_half) = cut(text, position);
    if is_half { byte + 4 } else { byte }
}

/// Where the character that holds the unit begins, and whether the unit is the second half of that character.
fn cut(text: &str, position: usize) -> (usize, bool) {
    let mut units = 0;
    for (byte, character) in text.char_indices() {
        if units >= position {
            return (byte, false);
        }
        units += character.len_utf16();
        if units > position {
            return (byte, true);
        }
    }
    (text.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_utf16(text in "[aé😀\u{ffff}]{0,8}", start in 0usize..20, end in 0usize..20) {
            let units: Vec<u16> = text.encode_utf16().collect();
            prop_assert_eq!(length(&text), units.len());
            let expected = units.get(start.min(units.len())..end.min(units.len())).unwrap_or(&[]);
            prop_assert_eq!(slice(&text, start, end), String::from_utf16_lossy(expected));
            let byte = byte_offset(&text, start);
            prop_assert!(position(&text, byte) >= start.min(units.len()));
            prop_assert!(position(&text, byte) <= (start + 1).min(units.len()).max(start.min(units.len())));
        }
    }
}
