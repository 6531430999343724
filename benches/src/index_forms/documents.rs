//! The documents that are written: a body of 1 KB and 25 index terms of 33 bytes each, all from the number.

/// Terms of a document.
pub(super) const TERM_COUNT: u64 = 25;
/// What a term begins with before the document's number: container and path (16), kind and value (9).
pub(super) const PREFIX_BYTES: usize = 25;
const BODY_BYTES: usize = 1_000;

/// An index term.
pub(super) type Term = [u8; PREFIX_BYTES + 8];

pub(super) struct Document {
    /// Where its body is: by the hash of its partition key, so in no order.
    pub(super) key: [u8; 16],
    pub(super) body: Vec<u8>,
    pub(super) terms: Vec<Term>,
}

impl Document {
    pub(super) fn new(number: u64) -> Document {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&mixed(number).to_be_bytes());
        key[8..].copy_from_slice(&number.to_be_bytes());
        // Bodies are compressed before they are stored, so nobody can compress them again.
        let words = (0..).flat_map(|word| mixed(number << 8 | word).to_le_bytes());
        let terms = (0..TERM_COUNT).map(|path| {
            let mut term = [0; PREFIX_BYTES + 8];
            term[..PREFIX_BYTES].copy_from_slice(&prefix(path, value(path, number)));
            term[PREFIX_BYTES..].copy_from_slice(&number.to_be_bytes());
            term
        });
        Document { key, body: words.take(BODY_BYTES).collect(), terms: terms.collect() }
    }

    /// The same as JSON, of about the same length.
    pub(super) fn json(number: u64) -> String {
        let values = (0..TERM_COUNT).map(|path| format!("\"property{path}\":{}", value(path, number)));
        let values: Vec<_> = values.collect();
        let words = (0..32).map(|word| format!("{:016x}", mixed(number << 8 | word)));
        let words: Vec<_> = words.collect();
        format!("{{\"id\":\"{number}\",{},\"text\":\"{}\"}}", values.join(","), words.concat())
    }
}

/// What a document has at a path: the first five are its own, the next ten have a thousand values, the others twenty.
pub(super) fn value(path: u64, number: u64) -> u64 {
    let random = mixed(number ^ path << 56);
    match path {
        0..5 => random,
        5..15 => random % 1_000,
        _ => random % 20,
    }
}

/// What all terms of a value begin with.
pub(super) fn prefix(path: u64, value: u64) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&7_u64.to_be_bytes());
    prefix[8..16].copy_from_slice(&mixed(path).to_be_bytes());
    prefix[16] = 3;
    prefix[17..].copy_from_slice(&value.to_be_bytes());
    prefix
}

/// A number that looks like any other (the finalizer of `splitmix64`).
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
