//! A block: some kilobytes of sorted keys, each saying only how it differs from the one before.
//!
//! ```text
//! block     entry*, restart{count}, count u16 (its top bit set if entries have values)
//! entry     number(shared << 2 | removed << 1), number(suffix bytes << 1 | from the base), suffix, value
//!         | number(step << 2 | removed << 1 | 1), value
//! value     nothing, or in a block with values: number(bytes), bytes
//! restart   place of an entry u16, how many entries come before it u16
//! ```
//! (little-endian; `number` as in `varint`.) A key shares its first bytes with the key before it or, at a restart, with
//! the block's first key, the base. A step is a key of the same length that differs in its last eight bytes only, which
//! are higher by that much as one big-endian number: what documents with the same value look like.
//! A key that is removed hides the same key in older blocks. Entries may carry a short value; a block without any spends no
//! byte on them, which is most blocks.
//! In: sorted keys ([`BlockBuilder`]), or a block's bytes ([`BlockCursor`]). Out: the other.
//! Invariants
//! - Keys rise strictly. The first entry is a restart, and restarts are near enough that looking from one to the next is
//!   a matter of a tenth of a microsecond.
//! - Reading foreign bytes gives an error or wrong keys, never a panic; checksums stand elsewhere (`run_file`).
//!
//! Not here: which keys go into which block (`builder`), many blocks (`cursor`).

use crate::Error;
use crate::head::head_of;
use crate::{damaged, varint};
use bytes::Bytes;
use std::cmp::Ordering;
use std::ops::Range;

/// A block that has this many bytes of entries takes no more. With a key of 32 KiB on top, places still fit 16 bits.
pub(crate) const BLOCK_BYTES_MAX: usize = 24 << 10;

/// What may lie between two restarts: keys cost more to pass over than steps do.
const RESTART_WEIGHT: usize = 64;
const KEY_WEIGHT: usize = 4;
/// So many bytes of a value cost as much to pass over as a step.
const VALUE_WEIGHT_BYTES: usize = 32;

const REMOVED: u64 = 2;
const STEP: u64 = 1;
const STEP_MAX: u64 = u64::MAX >> 2;
/// Bytes at the end of a key that a step changes.
const TAIL_BYTES: usize = 8;
const RESTART_BYTES: usize = 4;
const COUNT_BYTES: usize = 2;
/// In the count of restarts: every entry is followed by a value, perhaps an empty one.
const WITH_VALUES: u16 = 1 << 15;

/// Puts a block together.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<(u16, u16)>,
    weight: usize,
    entry_count: usize,
    base: Vec<u8>,
    last: Vec<u8>,
    /// Whether entries have values; the first one decides.
    has_values: bool,
}

impl BlockBuilder {
    /// Whether an entry with this value can go into the block.
    #[inline]
    pub(crate) fn takes(&self, value: &[u8]) -> bool {
        value.is_empty() || self.has_values || self.entry_count == 0
    }

    /// Appends an entry, whose key must be above the last one, and whose value the block takes.
    pub(crate) fn push(&mut self, key: &[u8], is_removed: bool, value: &[u8]) {
        debug_assert!(self.takes(value), "the first entry decides whether there are values");
        let removed = if is_removed { REMOVED } else { 0 };
        if self.entry_count == 0 {
            self.has_values = !value.is_empty();
        }
        if self.weight >= RESTART_WEIGHT || self.entry_count == 0 {
            self.push_restart(key, removed);
        } else {
            let shared = shared_bytes(&self.last, key);
            match step(&self.last, key, shared) {
                Some(step) => {
                    varint::put(&mut self.bytes, step << 2 | removed | STEP);
                    self.weight += 1;
                }
                None => self.push_key(key, shared, removed, 0),
            }
        }
        if self.has_values {
            varint::put_bytes(&mut self.bytes, value);
            self.weight += value.len() / VALUE_WEIGHT_BYTES;
        }
        self.entry_count += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    fn push_restart(&mut self, key: &[u8], removed: u64) {
        self.restarts.push((self.bytes.len() as u16, self.entry_count as u16));
        self.weight = 0;
        if self.entry_count == 0 {
            self.base.clear();
            self.base.extend_from_slice(key);
            self.push_key(key, 0, removed, 1);
        } else {
            self.push_key(key, shared_bytes(&self.base, key), removed, 1);
        }
    }

    fn push_key(&mut self, key: &[u8], shared: usize, removed: u64, from_base: u64) {
        let suffix = &key[shared..];
        varint::put(&mut self.bytes, (shared as u64) << 2 | removed);
        varint::put(&mut self.bytes, (suffix.len() as u64) << 1 | from_base);
        self.bytes.extend_from_slice(suffix);
        self.weight += KEY_WEIGHT;
    }

    /// Bytes of entries so far.
    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The last key, empty before the first.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// The block's bytes, valid until [`BlockBuilder::clear`].
    pub(crate) fn finish(&mut self) -> &[u8] {
        for (place, ordinal) in &self.restarts {
            self.bytes.extend_from_slice(&place.to_le_bytes());
            self.bytes.extend_from_slice(&ordinal.to_le_bytes());
        }
        let values = if self.has_values { WITH_VALUES } else { 0 };
        self.bytes.extend_from_slice(&(self.restarts.len() as u16 | values).to_le_bytes());
        &self.bytes
    }

    /// Begins another block; the last key stays known.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.weight = 0;
        self.entry_count = 0;
    }
}

/// How many bytes two keys have in common at their prefix.
pub(crate) fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    let (left_words, left_rest) = left.as_chunks::<8>();
    let (right_words, right_rest) = right.as_chunks::<8>();
    for (index, (left, right)) in left_words.iter().zip(right_words).enumerate() {
        let different = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if different != 0 {
            return index * 8 + (different.trailing_zeros() / 8) as usize;
        }
    }
    let words = left_words.len().min(right_words.len());
    let rest = if left_words.len() == right_words.len() {
        left_rest.iter().zip(right_rest).take_while(|(left, right)| left == right).count()
    } else {
        let (left, right) = (&left[words * 8..], &right[words * 8..]);
        left.iter().zip(right).take_while(|(left, right)| left == right).count()
    };
    words * 8 + rest
}

fn step(last: &[u8], key: &[u8], shared: usize) -> Option<u64> {
    if last.len() != key.len() || shared + TAIL_BYTES < key.len() {
        return None;
    }
    let from = u64::from_be_bytes(*last.last_chunk::<TAIL_BYTES>()?);
    let to = u64::from_be_bytes(*key.last_chunk::<TAIL_BYTES>()?);
    Some(to.wrapping_sub(from)).filter(|step| *step <= STEP_MAX)
}

/// Room for a key that is seldom too small.
const KEY_CAPACITY: usize = 96;

/// Reads a block, from any restart on.
pub(crate) struct BlockCursor {
    bytes: Bytes,
    /// Of the entries in `bytes`.
    entries: Range<usize>,
    /// Of the base key in `bytes`.
    base: Range<usize>,
    restart_count: usize,
    /// The next entry, in `bytes`.
    at: usize,
    key: Vec<u8>,
    is_removed: bool,
    has_values: bool,
    /// The entry's value, in `bytes`.
    value: Range<usize>,
}

impl BlockCursor {
    /// Of no block yet.
    pub(crate) fn new() -> BlockCursor {
        BlockCursor {
            bytes: Bytes::new(),
            entries: 0..0,
            base: 0..0,
            restart_count: 0,
            at: 0,
            key: Vec::with_capacity(KEY_CAPACITY),
            is_removed: false,
            has_values: false,
            value: 0..0,
        }
    }

    /// Turns to the block that is this segment of the bytes, before its first entry.
    pub(crate) fn load(&mut self, bytes: Bytes, block: Range<usize>) -> Result<(), Error> {
        let malformed = || damaged("a block of the set ends early");
        let whole = bytes.get(block.clone()).ok_or_else(malformed)?;
        let count = whole.last_chunk::<COUNT_BYTES>().ok_or_else(malformed)?;
        let count = u16::from_le_bytes(*count);
        let restart_count = usize::from(count & !WITH_VALUES);
        let entries_bytes = whole.len() - COUNT_BYTES;
        let entries_bytes = entries_bytes.checked_sub(restart_count * RESTART_BYTES).ok_or_else(malformed)?;
        // The base stands in the first entry: nothing shared, then its length.
        let mut at = 1;
        let length = varint::get(&whole[..entries_bytes], &mut at).ok_or_else(malformed)? >> 1;
        let length = usize::try_from(length).ok().filter(|length| *length <= entries_bytes - at);
        let base_start = block.start + at;
        self.base = base_start..base_start + length.ok_or_else(malformed)?;
        self.entries = block.start..block.start + entries_bytes;
        self.bytes = bytes;
        self.restart_count = restart_count;
        self.has_values = count & WITH_VALUES != 0;
        self.value = 0..0;
        self.at = self.entries.start;
        Ok(())
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed
    }

    /// The entry's value; empty for one without.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.bytes.get(self.value.clone()).unwrap_or_default()
    }

    pub(crate) fn restart_count(&self) -> usize {
        self.restart_count
    }

    /// Goes to the next entry, if there is one.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        if self.at >= self.entries.end {
            return Ok(false);
        }
        self.decode().ok_or_else(|| damaged("an entry of the set cannot be read"))?;
        Ok(true)
    }

    #[inline]
    fn decode(&mut self) -> Option<()> {
        let bytes = &self.bytes[..self.entries.end];
        let head = varint::get(bytes, &mut self.at)?;
        self.is_removed = head & REMOVED != 0;
        if head & STEP != 0 {
            let tail = self.key.last_chunk_mut::<TAIL_BYTES>()?;
            *tail = u64::from_be_bytes(*tail).wrapping_add(head >> 2).to_be_bytes();
            return if self.has_values { self.decode_value() } else { Some(()) };
        }
        let shared = usize::try_from(head >> 2).ok()?;
        let length = varint::get(bytes, &mut self.at)?;
        let suffix = bytes.get(self.at..self.at.checked_add(usize::try_from(length >> 1).ok()?)?)?;
        if length & 1 == 0 {
            if shared > self.key.len() {
                return None;
            }
            self.key.truncate(shared);
        } else {
            self.key.clear();
            self.key.extend_from_slice(bytes.get(self.base.clone())?.get(..shared)?);
        }
        self.key.extend_from_slice(suffix);
        self.at += suffix.len();
        if self.has_values { self.decode_value() } else { Some(()) }
    }

    fn decode_value(&mut self) -> Option<()> {
        let value = varint::get_bytes(&self.bytes[..self.entries.end], &mut self.at)?;
        self.value = self.at - value.len()..self.at;
        Some(())
    }

    /// Goes to the first key that is not below the target. False when the block has none.
    pub(crate) fn seek(&mut self, target: &[u8]) -> Result<bool, Error> {
        let restart = self.last_restart(target, Ordering::is_le)?.unwrap_or(0);
        self.go_to_restart(restart)?;
        let target_start = head_of(target);
        while self.advance()? {
            let order = head_of(&self.key).cmp(&target_start);
            if order.then_with(|| self.key[..].cmp(target)).is_ge() {
                return Ok(true);
            }
            self.pass_steps(target);
        }
        Ok(false)
    }

    /// Goes on to the first key that is not below the target, which is above the present one. False when the block has none.
    pub(crate) fn seek_on(&mut self, target: &[u8]) -> Result<bool, Error> {
        self.pass_steps(target);
        let near = self.at;
        if !self.advance()? {
            return Ok(false);
        }
        if self.key[..] >= *target {
            return Ok(true);
        }
        // It is not among the steps that follow: the restarts tell where.
        let restart = self.last_restart(target, Ordering::is_le)?.unwrap_or(0);
        if self.restart(restart).0 > near {
            self.go_to_restart(restart)?;
        } else {
            self.pass_steps(target);
        }
        while self.advance()? {
            if self.key[..] >= *target {
                return Ok(true);
            }
            self.pass_steps(target);
        }
        Ok(false)
    }

    /// Passes over the steps from a key below the target to others below it; gives how many. Documents of one value are
    /// found this way, so keys are put together once, not for each step.
    fn pass_steps(&mut self, target: &[u8]) -> usize {
        let bytes = &self.bytes[..self.entries.end];
        let Some((prefix, goal)) = target.split_last_chunk::<TAIL_BYTES>() else { return 0 };
        let Some((own_prefix, own_tail)) = self.key.split_last_chunk_mut::<TAIL_BYTES>() else { return 0 };
        if own_prefix != prefix {
            return 0;
        }
        let goal = u64::from_be_bytes(*goal);
        let (mut tail, mut passed) = (u64::from_be_bytes(*own_tail), 0);
        let mut next = self.at;
        while let Some(head) = varint::get(bytes, &mut next)
            && head & STEP != 0
            && let Some(higher) = tail.checked_add(head >> 2)
            && higher < goal
        {
            if self.has_values {
                let Some(value) = varint::get_bytes(bytes, &mut next) else { break };
                self.value = next - value.len()..next;
            }
            tail = higher;
            self.is_removed = head & REMOVED != 0;
            self.at = next;
            passed += 1;
        }
        *own_tail = tail.to_be_bytes();
        passed
    }

    /// How many keys of the block are below the target.
    pub(crate) fn rank(&mut self, target: &[u8]) -> Result<usize, Error> {
        let Some(restart) = self.last_restart(target, Ordering::is_lt)? else { return Ok(0) };
        let mut rank = self.go_to_restart(restart)?;
        while self.advance()? && self.key[..] < *target {
            rank += 1 + self.pass_steps(target);
        }
        Ok(rank)
    }

    /// Reads the keys from a restart up to the next one into `interval`, replacing what it held.
    pub(crate) fn read_interval(&mut self, restart: usize, interval: &mut Interval) -> Result<(), Error> {
        interval.clear();
        let end =
            if restart + 1 < self.restart_count { self.restart(restart + 1).0 } else { self.entries.end };
        self.go_to_restart(restart)?;
        while self.at < end && self.advance()? {
            interval.push(&self.key, self.is_removed, self.value());
        }
        Ok(())
    }

    /// The last restart whose key compares to the target as wanted. The wanted ones must come first.
    pub(crate) fn last_restart(
        &self,
        target: &[u8],
        is_wanted: impl Fn(Ordering) -> bool,
    ) -> Result<Option<usize>, Error> {
        // A restart that shares no more with the base than the target does is told by what follows; any other one
        // compares to the target as the base does.
        let base = self.bytes.get(self.base.clone()).unwrap_or_default();
        let equal_bytes = shared_bytes(base, target);
        let base_order = base[equal_bytes..].cmp(&target[equal_bytes..]);
        let (mut low, mut high) = (0, self.restart_count);
        while low < high {
            let middle = usize::midpoint(low, high);
            let order = self.restart_key(middle).map(|(shared, suffix)| {
                if shared > equal_bytes { base_order } else { suffix.cmp(&target[shared..]) }
            });
            if is_wanted(order.ok_or_else(|| damaged("a restart of a block of the set cannot be read"))?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
    }

    /// How many bytes a restart's key shares with the base, and what follows.
    fn restart_key(&self, restart: usize) -> Option<(usize, &[u8])> {
        let bytes = &self.bytes[..self.entries.end];
        let mut at = self.restart(restart).0;
        let shared = usize::try_from(varint::get(bytes, &mut at)? >> 2).ok()?;
        let length = usize::try_from(varint::get(bytes, &mut at)? >> 1).ok()?;
        Some((shared, bytes.get(at..at.checked_add(length)?)?))
    }

    /// Stands before a restart's entry; gives how many entries come before it.
    fn go_to_restart(&mut self, restart: usize) -> Result<usize, Error> {
        if restart >= self.restart_count {
            return Err(damaged("a block of the set has no restart"));
        }
        let (place, ordinal) = self.restart(restart);
        self.at = place;
        Ok(ordinal)
    }

    /// Place and ordinal of a restart that is there.
    fn restart(&self, restart: usize) -> (usize, usize) {
        let at = self.entries.end + restart * RESTART_BYTES;
        let number = |at: usize| usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        (self.entries.start + number(at), number(at + 2))
    }
}

/// The entries of a restart interval, decoded, for going backwards.
#[derive(Default)]
pub(crate) struct Interval {
    /// Keys, each followed by its value.
    bytes: Vec<u8>,
    entries: Vec<Decoded>,
}

struct Decoded {
    key_end: u32,
    value_end: u32,
    is_removed: bool,
}

impl Interval {
    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn push(&mut self, key: &[u8], is_removed: bool, value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.entries.push(Decoded { key_end, value_end: self.bytes.len() as u32, is_removed });
    }

    /// Key and value of the last entry, and whether it is removed.
    pub(crate) fn last(&self) -> Option<(&[u8], &[u8], bool)> {
        let Decoded { key_end, value_end, is_removed } = *self.entries.last()?;
        let start = self.entries.len().checked_sub(2).map_or(0, |before| self.entries[before].value_end);
        let key = &self.bytes[start as usize..key_end as usize];
        Some((key, &self.bytes[key_end as usize..value_end as usize], is_removed))
    }

    pub(crate) fn pop(&mut self) {
        self.entries.pop();
        self.bytes.truncate(self.entries.last().map_or(0, |entry| entry.value_end as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, (bool, Vec<u8>)>;

    /// Entries with values when the first has one.
    fn entries(count: std::ops::Range<usize>) -> impl Strategy<Value = Model> {
        let value = || prop_oneof![Just(vec![]), vec(any::<u8>(), 1..40)];
        (btree_map(key(), (any::<bool>(), value()), count), any::<bool>()).prop_map(
            |(mut entries, has_values)| {
                if let Some((_, value)) = entries.values_mut().next() {
                    value.push(1);
                }
                if !has_values {
                    for (_, value) in entries.values_mut() {
                        value.clear();
                    }
                }
                entries
            },
        )
    }

    fn build(keys: &Model) -> Bytes {
        let mut builder = BlockBuilder::default();
        for (key, (is_removed, value)) in keys {
            assert!(builder.takes(value));
            builder.push(key, *is_removed, value);
        }
        Bytes::copy_from_slice(builder.finish())
    }

    fn open(bytes: &Bytes) -> Result<BlockCursor, Error> {
        let mut cursor = BlockCursor::new();
        cursor.load(bytes.clone(), 0..bytes.len())?;
        Ok(cursor)
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let short = vec(0..3u8, 0..4);
        let tail = prop_oneof![(0..300u64), any::<u64>()];
        prop_oneof![
            (vec(0..3u8, 1..30)),
            (short, tail).prop_map(|(head, tail)| [&[7; 16], &head[..], &tail.to_be_bytes()].concat()),
        ]
    }

    proptest! {
        #[test]
        fn every_entry_comes_back(keys in entries(1..400), targets in vec(key(), 0..20)) {
            let bytes = build(&keys);
            let mut cursor = open(&bytes).unwrap();
            for (key, (is_removed, value)) in &keys {
                prop_assert!(cursor.advance().unwrap());
                let found = (cursor.key(), cursor.is_removed(), cursor.value());
                prop_assert_eq!(found, (&key[..], *is_removed, &value[..]));
            }
            prop_assert!(!cursor.advance().unwrap());
            for target in targets.iter().chain(keys.keys()) {
                let found = cursor.seek(target).unwrap().then(|| (cursor.key().to_vec(), cursor.value().to_vec()));
                let next = keys.range(target.clone()..).next();
                prop_assert_eq!(found, next.map(|(key, (_, value))| (key.clone(), value.clone())));
                prop_assert_eq!(cursor.rank(target).unwrap(), keys.range(..target.clone()).count());
            }
            let (mut interval, mut backwards) = (Interval::default(), Vec::new());
            for restart in (0..cursor.restart_count()).rev() {
                cursor.read_interval(restart, &mut interval).unwrap();
                while let Some((key, value, is_removed)) = interval.last() {
                    backwards.push((key.to_vec(), (is_removed, value.to_vec())));
                    interval.pop();
                }
            }
            let expected: Vec<_> = keys.into_iter().rev().collect();
            prop_assert_eq!(backwards, expected);
        }

        #[test]
        fn foreign_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200), target in key()) {
            let bytes = Bytes::from(bytes);
            let Ok(mut cursor) = open(&bytes) else { return Ok(()) };
            while let Ok(true) = cursor.advance() {}
            let _ = cursor.seek(&target);
            let _ = cursor.rank(&target);
            for restart in 0..cursor.restart_count().min(4) {
                let _ = cursor.read_interval(restart, &mut Interval::default());
            }
        }

        #[test]
        fn a_flipped_bit_does_not_panic(keys in entries(1..100), place: prop::sample::Index, bit in 0..8u8) {
            let mut bytes = build(&keys).to_vec();
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            let Ok(mut cursor) = open(&Bytes::from(bytes)) else { return Ok(()) };
            while let Ok(true) = cursor.advance() {}
            for key in keys.keys() {
                let _ = cursor.seek(key);
                let _ = cursor.rank(key);
            }
        }

        #[test]
        fn shared_bytes_are_counted(left in vec(0..2u8, 0..40), right in vec(0..2u8, 0..40)) {
            let expected = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            prop_assert_eq!(shared_bytes(&left, &right), expected);
            prop_assert_eq!(shared_bytes(&left, &left), left.len());
        }
    }
}
