//! Compressed texts of binary JSON: characters of few bits each, as the .NET SDK writes hexadecimal numbers, dates and longer
//! ASCII texts.
//!
//! In: a marker from 78 to 7F and the bytes after it. Out: the text, and how many of the bytes it took. The number of
//! characters comes first, in one byte (two after 7F), then for 7B to 7D the character that 0 stands for, then the
//! characters, the first in the lowest bits. Bits after the last character mean nothing: the .NET SDK leaves some set there.
//! Invariant: a text is ASCII, and at most twice as long as the bytes that it takes.

/// What a packed number stands for.
enum Alphabet {
    /// The character at this place.
    Listed(&'static [u8; 16]),
    /// A character that follows the text's first one by so many.
    Above,
    /// The character of this code.
    Ascii,
}

/// The text after a marker, and the bytes that it takes.
pub(super) fn read(marker: u8, bytes: &[u8]) -> Option<(String, usize)> {
    let (bits, alphabet) = form(marker)?;
    let (length, mut taken) = match (marker, bytes) {
        (0x7F, [low, high, ..]) => (usize::from(u16::from_le_bytes([*low, *high])), 2),
        (0x7F, _) => return None,
        _ => (usize::from(*bytes.first()?), 1),
    };
    let base = match alphabet {
        Alphabet::Above => {
            taken += 1;
            *bytes.get(taken - 1)?
        }
        Alphabet::Listed(_) | Alphabet::Ascii => 0,
    };
    let packed = bytes.get(taken..)?.get(..(length * bits).div_ceil(8))?;
    let mut text = String::with_capacity(length);
    for index in 0..length {
        let number = number_at(packed, index * bits, bits)?;
        let character = match alphabet {
            Alphabet::Listed(list) => *list.get(usize::from(number))?,
            Alphabet::Above | Alphabet::Ascii => base.checked_add(number)?,
        };
        character.is_ascii().then(|| text.push(char::from(character)))?;
    }
    Some((text, taken + packed.len()))
}

/// How many bits a character has, and what they stand for.
fn form(marker: u8) -> Option<(usize, Alphabet)> {
    Some(match marker {
        0x78 => (4, Alphabet::Listed(b"0123456789abcdef")),
        0x79 => (4, Alphabet::Listed(b"0123456789ABCDEF")),
        0x7A => (4, Alphabet::Listed(b" 0123456789:-.TZ")),
        0x7B => (4, Alphabet::Above),
        0x7C => (5, Alphabet::Above),
        0x7D => (6, Alphabet::Above),
        0x7E | 0x7F => (7, Alphabet::Ascii),
        _ => return None,
    })
}

/// The number of so many bits from a bit on, 7 at most: it lies in two bytes.
fn number_at(packed: &[u8], bit: usize, bits: usize) -> Option<u8> {
    let low = u16::from(*packed.get(bit / 8)?);
    let high = u16::from(packed.get(bit / 8 + 1).copied().unwrap_or(0));
    let number = (high << 8 | low) >> (bit % 8) & ((1 << bits) - 1);
    u8::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::read;
    use proptest::prelude::*;

    /// A text as the .NET SDK packs it.
    fn packed(marker: u8, text: &str) -> Vec<u8> {
        let first = text.bytes().min().unwrap_or(0);
        let (bits, base, list) = match marker {
            0x78 => (4, None, Some("0123456789abcdef")),
            0x79 => (4, None, Some("0123456789ABCDEF")),
            0x7A => (4, None, Some(" 0123456789:-.TZ")),
            0x7B => (4, Some(first), None),
            0x7C => (5, Some(first), None),
            0x7D => (6, Some(first), None),
            _ => (7, None, None),
        };
        let length = u16::try_from(text.len()).expect("a short text").to_le_bytes();
        let mut bytes = length[..if marker == 0x7F { 2 } else { 1 }].to_vec();
        bytes.extend(base);
        let (mut waiting, mut count) = (0_u32, 0);
        for character in text.chars() {
            let number = match list {
                Some(list) => {
                    u32::try_from(list.find(character).expect("a listed character")).expect("small")
                }
                None => u32::from(character) - u32::from(base.unwrap_or(0)),
            };
            waiting |= number << count;
            count += bits;
            while count >= 8 {
                bytes.push(waiting.to_le_bytes()[0]);
                waiting >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            bytes.push(waiting.to_le_bytes()[0]);
        }
        bytes
    }

    fn alphabets() -> impl Strategy<Value = (u8, String)> {
        prop_oneof![
            "[0-9a-f]{0,255}".prop_map(|text| (0x78, text)),
            "[0-9A-F]{0,255}".prop_map(|text| (0x79, text)),
            "[ 0-9:.TZ-]{0,255}".prop_map(|text| (0x7A, text)),
            "[a-p]{0,255}".prop_map(|text| (0x7B, text)),
            "[@-_]{0,255}".prop_map(|text| (0x7C, text)),
            "[@-~]{0,255}".prop_map(|text| (0x7D, text)),
            "[\u{0}-~]{0,255}".prop_map(|text| (0x7E, text)),
            "[\u{0}-~]{0,700}".prop_map(|text| (0x7F, text)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read((marker, text) in alphabets(), after in prop::collection::vec(any::<u8>(), 0..4)) {
            let bytes = packed(marker, &text);
            let all = [&bytes[..], &after].concat();
            prop_assert_eq!(read(marker, &all), Some((text, bytes.len())));
            if let Some(last) = bytes.len().checked_sub(1) {
                prop_assert_eq!(read(marker, &bytes[..last]), None);
            }
        }

        #[test]
        fn any_bytes_give_a_short_text_or_none(marker in 0x78..=0x7F_u8, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some((text, taken)) = read(marker, &bytes) {
                prop_assert!(text.is_ascii() && taken <= bytes.len() && text.len() <= 2 * taken);
            }
        }
    }
}
