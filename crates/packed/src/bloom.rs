//! Tells which segments surely have no key with a certain prefix, so that a search for one value need not look into each.
//!
//! A filter holds the prefixes of all keys of a segment, cut after [`LENGTHS`] bytes: a family and the start of a value.
//! Where all keys of a range begin alike, a segment whose filter does not know that prefix has none of them.
//! In: sorted keys while a segment is made; the prefix that a range's keys share. Out: "perhaps", or "surely not".
//! Invariants
//! - A prefix that a key has is always known. One that none has is known once in some thirty times.
//! - What lies on disk does not depend on the machine or the process: hashes are our own.
//! - Memory is bounded: a segment with too many prefixes has no filter, and may have anything.

use crate::head::{KeyHead, head_of};
use crate::varint;

/// Where keys are cut: a number or a few letters, a word, a long text. Rising.
const LENGTHS: [usize; 3] = [24, 32, 48];

/// Prefixes that share a line of the filter, on average: eight bits for each.
const LINE_PREFIXES: usize = 64;
/// Bits that are set for a prefix, all in one line.
const BITS: u32 = 4;
const LINE_WORDS: usize = 8;

/// Prefixes of a segment in a filter at most; each is a byte.
const PREFIXES_MAX: usize = 2 << 20;

/// Prefixes of the keys of a segment; without lines, any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BloomFilter {
    lines: Vec<[u64; LINE_WORDS]>,
}

impl BloomFilter {
    /// Whether a key of the segment may begin like this.
    pub(crate) fn may_have(&self, prefix: &[u8]) -> bool {
        let Some(length) = LENGTHS.into_iter().rev().find(|length| *length <= prefix.len()) else {
            return true;
        };
        if self.lines.is_empty() {
            return true;
        }
        let hash = hash(&prefix[..length]);
        let line = &self.lines[self.line_of(hash)];
        bits(hash).all(|(word, mask)| line[word] & mask != 0)
    }

    fn of(hashes: &[u64]) -> BloomFilter {
        let mut filter = BloomFilter { lines: vec![[0; LINE_WORDS]; hashes.len().div_ceil(LINE_PREFIXES)] };
        for hash in hashes {
            let line = filter.line_of(*hash);
            for (word, mask) in bits(*hash) {
                filter.lines[line][word] |= mask;
            }
        }
        filter
    }

    fn line_of(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.lines.len() as u128) >> 64) as usize
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.lines.len() as u64);
        for word in self.lines.as_flattened() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Nothing when the bytes are not what [`BloomFilter::encode`] writes.
    pub(crate) fn decode(bytes: &[u8], at: &mut usize) -> Option<BloomFilter> {
        let count = usize::try_from(varint::get(bytes, at)?).ok()?;
        let length = count.checked_mul(LINE_WORDS * size_of::<u64>())?;
        let words = bytes.get(*at..at.checked_add(length)?)?.as_chunks::<8>().0;
        *at += length;
        let line = |line: &[[u8; 8]; LINE_WORDS]| line.map(u64::from_le_bytes);
        Some(BloomFilter { lines: words.as_chunks().0.iter().map(line).collect() })
    }

    /// Bytes in memory.
    pub(crate) fn byte_count(&self) -> usize {
        size_of_val(&self.lines[..])
    }
}

/// The places of a hash in its line. The lowest bits have no say in the choice of the line.
fn bits(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..BITS).map(move |number| {
        let bit = hash >> (number * 9) & 511;
        ((bit >> 6) as usize, 1 << (bit & 63))
    })
}

/// Of a prefix of one of the [`LENGTHS`].
fn hash(prefix: &[u8]) -> u64 {
    let mut hash = prefix.len() as u64;
    for word in prefix.as_chunks::<8>().0 {
        let product = u128::from(hash ^ u64::from_le_bytes(*word) ^ 0x9E37_79B9_7F4A_7C15)
            * u128::from(0xD6E8_FEB8_6659_FD93_u64);
        hash = product as u64 ^ (product >> 64) as u64;
    }
    hash
}

/// The prefix that all keys of a range have: what both ends share, and one byte more where the end is just that byte
/// higher, as it is for a range of all keys that begin alike.
pub(crate) fn common_prefix<'a>(start: &'a [u8], end: &[u8]) -> &'a [u8] {
    let shared = crate::block::shared_bytes(start, end);
    let is_next = match (start.get(shared), &end[shared..]) {
        (Some(start), [end]) => u16::from(*start) + 1 == u16::from(*end),
        _ => false,
    };
    &start[..shared + usize::from(is_next)]
}

/// Gathers prefixes while a segment is made.
#[derive(Default)]
pub(crate) struct BloomBuilder {
    hashes: Vec<u64>,
    /// Of the last key that was long enough for the second length.
    last: Option<KeyHead>,
    /// What followed in it, up to the third length.
    last_rest: Option<[u8; LENGTHS[2] - LENGTHS[1]]>,
    is_full: bool,
}

impl BloomBuilder {
    /// Takes a key; of keys in order, each prefix once.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) {
        if self.is_full || key.len() < LENGTHS[0] {
            return;
        }
        if key.len() < LENGTHS[1] {
            self.add(&key[..LENGTHS[0]]);
            return;
        }
        let start = head_of(key);
        if self.last != Some(start) {
            let is_same = |last: KeyHead| last[0] == start[0] && last[1] >> 64 == start[1] >> 64;
            if !self.last.is_some_and(is_same) {
                self.add(&key[..LENGTHS[0]]);
            }
            self.add(&key[..LENGTHS[1]]);
            self.last = Some(start);
            self.last_rest = None;
        }
        if let Some(rest) = key[LENGTHS[1]..].first_chunk()
            && self.last_rest != Some(*rest)
        {
            self.add(&key[..LENGTHS[2]]);
            self.last_rest = Some(*rest);
        }
    }

    fn add(&mut self, prefix: &[u8]) {
        // A key has several prefixes: the one that is too many may be any of them.
        if self.is_full {
            return;
        }
        self.hashes.push(hash(prefix));
        if self.hashes.len() > PREFIXES_MAX {
            self.hashes = Vec::new();
            self.is_full = true;
        }
    }

    pub(crate) fn finish(self) -> BloomFilter {
        BloomFilter::of(&self.hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    #[test]
    fn a_part_with_too_many_beginnings_may_have_anything() {
        for room in 0..6 {
            let hashes = vec![0; PREFIXES_MAX - room];
            let mut builder = BloomBuilder { hashes, ..BloomBuilder::default() };
            for number in 0..4_u8 {
                builder.push(&[number; 50]);
            }
            assert_eq!(builder.finish(), BloomFilter::default(), "room for {room}");
        }
    }

    #[test]
    fn ranges_tell_their_beginning() {
        let check = |start: &str, end: &str, expected: &str| {
            assert_eq!(
                common_prefix(start.as_bytes(), end.as_bytes()),
                expected.as_bytes(),
                "{start:?}..{end:?}"
            );
        };
        check("value", "valuf", "value");
        check("value123", "valuf", "value");
        check("value123", "value129", "value12");
        check("value123", "valuex", "value");
        check("value", "value1", "value");
        check("value", "valug", "valu");
        check("", "b", "");
    }

    #[test]
    fn few_others_are_let_through() {
        let key =
            |number: u64| [&[7; 16][..], &number.wrapping_mul(0x9E37_79B9).to_be_bytes(), &[0; 8]].concat();
        let mut builder = BloomBuilder::default();
        (0..10_000).for_each(|number| builder.push(&key(number)));
        let filter = builder.finish();
        assert!((0..10_000).all(|number| filter.may_have(&key(number)[..24])));
        let wrong = (10_000..20_000).filter(|number| filter.may_have(&key(*number)[..24])).count();
        assert!(wrong < 600, "{wrong} of 10,000");
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(BloomFilter::decode(&bytes, &mut 0), Some(filter));
        assert_eq!(BloomFilter::decode(&bytes[..bytes.len() - 1], &mut 0), None);
    }

    #[test]
    fn too_many_beginnings_make_no_filter() {
        let mut builder = BloomBuilder::default();
        for number in 0..=PREFIXES_MAX as u64 {
            builder.push(&[&[7; 16][..], &number.to_be_bytes()].concat());
        }
        let filter = builder.finish();
        assert_eq!((filter.byte_count(), filter.may_have(&[1; 40])), (0, true));
    }

    proptest! {
        #[test]
        fn what_is_there_is_never_denied(keys in btree_set(key(), 1..200)) {
            let mut builder = BloomBuilder::default();
            for key in &keys {
                builder.push(key);
            }
            let filter = builder.finish();
            for key in &keys {
                for length in 0..=key.len() {
                    prop_assert!(filter.may_have(&key[..length]), "{} of {:?}", length, key);
                }
            }
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        (0..2u8, vec(0..2u8, 0..10), 0..30usize)
            .prop_map(|(family, rest, zeros)| [&[family; 16][..], &vec![0; zeros], &rest].concat())
    }
}
