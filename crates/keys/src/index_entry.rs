//! Keys of the engine's set: entries of the automatic index.
//!
//! `shard (8) | generation (1) | family (7) | terms | document number (8)`
//! A family is one index of a container: all values at one place, or one composite index. It is the beginning of a hash
//! of what the index is about, so that no directory of places has to be kept; 56 bits tell apart more places than a
//! container can have. The generation changes when the policy does, so an index can be built beside the one in use.
//! A term is a value in its order (`ordered`), shortened: text is cut after [`TEXT_BYTES_MAX`] bytes, arrays and objects
//! are their type only. Within a composite entry a descending term has all its bits inverted.
//! Invariants
//! - Terms compare like their values, or equal where they are shortened ([`is_shortened`]); no term begins another one.
//! - Entries of one term are in the order of document numbers.

use crate::{Malformed, ordered};
use astrarium_value::Value;

/// Bytes of a family, generation included.
pub const FAMILY_BYTES: usize = 8;
/// Bytes before the terms.
pub const PREFIX_BYTES: usize = 8 + FAMILY_BYTES;
/// Bytes of the number at the end.
pub const NUMBER_BYTES: usize = 8;
/// Bytes of encoded text in a term at most.
pub const TEXT_BYTES_MAX: usize = 96;

/// Follows text that was cut; the end of whole text is 00.
const CUT: u8 = 0x01;

/// The first bytes of the terms of each type.
pub mod tag {
    /// What is not there, in composite entries.
    pub const UNDEFINED: u8 = 0x10;
    /// `null`.
    pub const NULL: u8 = 0x20;
    /// `false`.
    pub const FALSE: u8 = 0x30;
    /// `true`.
    pub const TRUE: u8 = 0x31;
    /// Numbers.
    pub const NUMBER: u8 = 0x40;
    /// Text.
    pub const STRING: u8 = 0x50;
    /// Arrays.
    pub const ARRAY: u8 = 0x60;
    /// Objects.
    pub const OBJECT: u8 = 0x70;
    /// Beyond every term.
    pub const END: u8 = 0x80;
}

/// One index of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family([u8; FAMILY_BYTES]);

impl Family {
    /// The family of what a description says, in a generation.
    pub fn of(generation: u8, description: &[u8]) -> Family {
        let mut bytes = hash(description).to_be_bytes();
        bytes[0] = generation;
        Family(bytes)
    }

    /// What all its entries in a shard begin with.
    pub fn prefix(self, shard: u64) -> [u8; PREFIX_BYTES] {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..8].copy_from_slice(&shard.to_be_bytes());
        prefix[8..].copy_from_slice(&self.0);
        prefix
    }

    /// The family that an entry belongs to.
    pub fn of_entry(entry: &[u8]) -> Option<Family> {
        entry.get(8..PREFIX_BYTES)?.try_into().ok().map(Family)
    }

    /// Whether an entry belongs to it.
    pub fn has(self, entry: &[u8]) -> bool {
        entry.get(8..PREFIX_BYTES) == Some(&self.0[..])
    }
}

/// What all entries of a generation in a shard begin with.
pub fn generation_prefix(shard: u64, generation: u8) -> [u8; 9] {
    let mut prefix = [0; 9];
    prefix[..8].copy_from_slice(&shard.to_be_bytes());
    prefix[8] = generation;
    prefix
}

/// Appends the term of a value.
pub fn push_term(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => push_text_term(out, text),
        Value::Array(_) => out.push(tag::ARRAY),
        Value::Object(_) => out.push(tag::OBJECT),
        scalar => ordered::push_value(out, scalar),
    }
}

/// Appends the term of a text.
pub fn push_text_term(out: &mut Vec<u8>, text: &str) {
    out.push(tag::STRING);
    if push_text_start(out, text) {
        out.push(CUT);
    } else {
        out.push(0);
    }
}

/// Appends the beginning of the terms of all texts that begin with this one; tells whether it was cut.
pub fn push_text_start(out: &mut Vec<u8>, text: &str) -> bool {
    let start = out.len();
    // A character is never encoded to fewer bytes than it has, so no more of the text can count.
    let mut end = text.len().min(TEXT_BYTES_MAX + 1);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    ordered::push_text_prefix(out, &text[..end]);
    let is_cut = out.len() - start > TEXT_BYTES_MAX;
    out.truncate(start + TEXT_BYTES_MAX);
    is_cut
}

/// Whether terms of this value stand for other values as well.
pub fn is_shortened(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let mut scratch = Vec::new();
            text.len() > TEXT_BYTES_MAX / 2 && push_text_start(&mut scratch, text)
        }
        Value::Array(_) | Value::Object(_) => true,
        _ => false,
    }
}

/// Whether a term of a single-valued entry stands for several values.
pub fn is_shortened_term(term: &[u8]) -> bool {
    match term.first() {
        Some(&tag::STRING) => term.len() == 1 + TEXT_BYTES_MAX + 1 && term.last() == Some(&CUT),
        Some(&(tag::ARRAY | tag::OBJECT)) => true,
        _ => false,
    }
}

/// How long the first of several terms is; its bits may be inverted. `None` for bytes that are no term.
pub fn term_length(terms: &[u8], inverted: bool) -> Option<usize> {
    let flip = |byte: u8| if inverted { !byte } else { byte };
    let length = match flip(*terms.first()?) {
        tag::NUMBER => 9,
        tag::STRING => {
            let text = terms.get(1..)?;
            let end = text.iter().take(TEXT_BYTES_MAX).position(|byte| flip(*byte) == 0);
            1 + end.unwrap_or(TEXT_BYTES_MAX) + 1
        }
        _ => 1,
    };
    (length <= terms.len()).then_some(length)
}

/// The value of a term of a single-valued entry that is not shortened.
pub fn read_term(term: &[u8]) -> Result<Value, Malformed> {
    match ordered::read_value(term) {
        Some((value, [])) => Ok(value),
        _ => Err(Malformed::new("index entry")),
    }
}

/// The terms and the document's number of an entry.
pub fn read_entry(key: &[u8]) -> Result<(&[u8], u64), Malformed> {
    let malformed = Malformed::new("index entry");
    let rest = key.get(PREFIX_BYTES..).ok_or(malformed.clone())?;
    let (terms, number) = rest.split_last_chunk::<NUMBER_BYTES>().ok_or(malformed)?;
    Ok((terms, u64::from_be_bytes(*number)))
}

/// SipHash-2-4 with fixed keys: stable for ever, and short inputs are its strength.
fn hash(bytes: &[u8]) -> u64 {
    const KEYS: (u64, u64) = (0x6173_7472_6172_6975, 0x6D20_696E_6465_7821);
    let mut state = [
        KEYS.0 ^ 0x736F_6D65_7073_6575,
        KEYS.1 ^ 0x646F_7261_6E64_6F6D,
        KEYS.0 ^ 0x6C79_6765_6E65_7261,
        KEYS.1 ^ 0x7465_6462_7974_6573,
    ];
    let absorb = |word: u64, state: &mut [u64; 4]| {
        state[3] ^= word;
        sip_rounds(state, 2);
        state[0] ^= word;
    };
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        absorb(u64::from_le_bytes(std::array::from_fn(|index| chunk[index])), &mut state);
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    last[7] = bytes.len() as u8;
    absorb(u64::from_le_bytes(last), &mut state);
    state[2] ^= 0xFF;
    sip_rounds(&mut state, 4);
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn sip_rounds(v: &mut [u64; 4], count: usize) {
    for _ in 0..count {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn term(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        push_term(&mut out, value);
        out
    }

    #[test]
    fn entries_come_apart_again() {
        let family = Family::of(3, b"/a");
        assert_eq!(family.prefix(7)[..9], generation_prefix(7, 3));
        let mut key = family.prefix(7).to_vec();
        push_term(&mut key, &Value::from("x"));
        key.extend(9_u64.to_be_bytes());
        let (terms, number) = read_entry(&key).unwrap();
        assert_eq!((read_term(terms).unwrap(), number), (Value::from("x"), 9));
        assert!(read_entry(&key[..20]).is_err());
        assert_ne!(Family::of(1, b"a"), Family::of(2, b"a"));
        assert_ne!(Family::of(1, b"a"), Family::of(1, b"b"));
    }

    #[test]
    fn long_text_is_cut_alike_everywhere() {
        let long = "x".repeat(TEXT_BYTES_MAX);
        for (text, shortened) in [
            (long.clone(), false),
            (format!("{long}y"), true),
            (format!("{long}{}", "z".repeat(1 << 20)), true),
            ("\u{0}".repeat(TEXT_BYTES_MAX / 2), false),
            ("\u{0}".repeat(TEXT_BYTES_MAX / 2 + 1), true),
            ("é".repeat(TEXT_BYTES_MAX / 2 + 1), true),
        ] {
            let value = Value::String(text.into());
            assert_eq!(is_shortened(&value), shortened);
            assert_eq!(is_shortened_term(&term(&value)), shortened);
        }
    }

    fn text() -> impl Strategy<Value = String> {
        ("[ab\u{0}\u{1}\u{E000}\u{10000}]{0,60}", "[ab\u{FFFF}]{0,60}").prop_map(|(start, end)| start + &end)
    }

    proptest! {
        #[test]
        fn terms_order_like_their_values(left in text(), right in text()) {
            let (left, right) = (Value::String(left.into()), Value::String(right.into()));
            let (shorter, longer) = (term(&left), term(&right));
            prop_assert!(shorter == longer || shorter.cmp(&longer) == left.cmp(&right));
            if shorter == longer && left != right {
                prop_assert!(is_shortened(&left) && is_shortened(&right));
            }
        }
    }
}
