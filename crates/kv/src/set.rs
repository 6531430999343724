//! The engine's set: keys, many and small, beside the spaces; an entry may carry a short value.
//!
//! Batches add keys to the set and remove keys from it; views scan it in key order, both ways. Lists of keys are
//! one buffer, because a document has tens of keys and an allocation for each would cost more than the rest.
//! Most keys have no value and cost nothing for it; postings of texts and edges of graphs have one ([`SetChanges::add_entry`]).
//! Invariants
//! - Within a batch no key is both added and removed, and no key is named twice.
//! - Adding a key that is there, or removing one that is not, changes nothing, but makes [`View::count_keys`] wrong.
//!
//! [`View::count_keys`]: crate::View::count_keys

use bytes::Bytes;

/// Bytes that keys are counted by: all keys that begin with the same so many bytes are one family.
pub const FAMILY_BYTES: usize = 16;

/// Keys in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyList {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<u32>,
}

/// Bytes of an entry's value at most.
pub const SHORT_VALUE_BYTES_MAX: usize = 1024;

/// Entries of the set, keys with their values, in one buffer. An entry without a value has an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryList {
    bytes: Vec<u8>,
    /// Where each key ends, and where its value does.
    ends: Vec<(u32, u32)>,
}

/// Entries of a range, in scan order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryBatch {
    /// The entries.
    pub entries: EntryList,
    /// Whether the limit ended the scan and the range may have more. Go on after the last key.
    pub more: bool,
}

/// What a batch does to entries with values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValuedChanges {
    /// Entries that come.
    pub added: EntryList,
    /// Entries that are there and get another value.
    pub replaced: EntryList,
}

impl EntryList {
    /// Appends an entry.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.end();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.end()));
    }

    fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("a list of entries is smaller than 4 GiB")
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all keys and values together.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Key and value at a position, which must be one of the list's.
    pub fn get(&self, position: usize) -> (&[u8], &[u8]) {
        let (entry, value_bytes) = self.get_joined(position);
        entry.split_at(entry.len() - value_bytes)
    }

    /// Key and value at a position as one slice, and how many of its bytes are the value's.
    pub fn get_joined(&self, position: usize) -> (&[u8], usize) {
        let start = if position == 0 { 0 } else { self.ends[position - 1].1 };
        let (key_end, value_end) = self.ends[position];
        (&self.bytes[start as usize..value_end as usize], (value_end - key_end) as usize)
    }

    /// All keys with their values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator + Clone {
        (0..self.len()).map(|position| self.get(position))
    }
}

/// What a batch does to the set. No key is named twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetChanges {
    /// Keys that come, in order.
    pub added: KeyList,
    /// Keys that go, in order.
    pub removed: KeyList,
    /// Entries with values, if there are any.
    pub valued: Option<Box<ValuedChanges>>,
}

/// Keys of a range, in scan order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyBatch {
    /// The keys.
    pub keys: KeyList,
    /// Whether the limit ended the scan and the range may have more. Go on after the last key.
    pub more: bool,
}

impl KeyList {
    /// An empty list.
    pub fn new() -> KeyList {
        KeyList::default()
    }

    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.end_key();
    }

    /// Appends a key in pieces: whatever `write` appends to the buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.end_key();
    }

    fn end_key(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).expect("a list of keys is smaller than 4 GiB"));
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all keys together.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// The key at a position, which must be one of the list's.
    pub fn get(&self, position: usize) -> &[u8] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] as usize };
        &self.bytes[start..self.ends[position] as usize]
    }

    /// The last key.
    pub fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// All keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator + Clone {
        (0..self.len()).map(|position| self.get(position))
    }

    /// Each key by itself, all in one piece of memory.
    pub(crate) fn to_shared(&self) -> Vec<Bytes> {
        let all = Bytes::copy_from_slice(&self.bytes);
        let mut start = 0;
        let key = |end: &u32| {
            let end = *end as usize;
            all.slice(std::mem::replace(&mut start, end)..end)
        };
        self.ends.iter().map(key).collect()
    }

    /// The same keys in order, each once.
    #[must_use]
    pub fn sorted(&self) -> KeyList {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(|left, right| self.get(*left).cmp(self.get(*right)));
        order.dedup_by(|left, right| self.get(*left) == self.get(*right));
        let mut sorted =
            KeyList { bytes: Vec::with_capacity(self.bytes.len()), ends: Vec::with_capacity(order.len()) };
        for position in order {
            sorted.push(self.get(position));
        }
        sorted
    }
}

impl SetChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.valued.is_none()
    }

    /// Adds an entry with a value of at most [`SHORT_VALUE_BYTES_MAX`].
    pub fn add_entry(&mut self, key: &[u8], value: &[u8]) {
        self.valued.get_or_insert_default().added.push(key, value);
    }

    /// Gives an entry that is there another value.
    pub fn replace_entry(&mut self, key: &[u8], value: &[u8]) {
        self.valued.get_or_insert_default().replaced.push(key, value);
    }

    /// Entries with values that come, and those that get another value.
    pub fn valued_entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.valued.iter().flat_map(|valued| valued.added.iter().chain(valued.replaced.iter()))
    }

    /// Bytes of all keys and values.
    pub fn byte_count(&self) -> usize {
        let valued = self.valued.as_ref();
        let valued = valued.map_or(0, |valued| valued.added.byte_count() + valued.replaced.byte_count());
        self.added.byte_count() + self.removed.byte_count() + valued
    }

    /// From the keys that were to those that are, both sorted: only the difference.
    pub fn between(old: &KeyList, new: &KeyList) -> SetChanges {
        let mut changes = SetChanges::default();
        let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
        loop {
            match (old.peek(), new.peek()) {
                (Some(gone), Some(come)) if gone == come => {
                    old.next();
                    new.next();
                }
                (Some(gone), Some(come)) if gone < come => {
                    changes.removed.push(gone);
                    old.next();
                }
                (Some(gone), None) => {
                    changes.removed.push(gone);
                    old.next();
                }
                (_, Some(come)) => {
                    changes.added.push(come);
                    new.next();
                }
                (None, None) => return changes,
            }
        }
    }

    /// Takes in the changes of another document; the keys of two documents are never the same.
    pub fn extend(&mut self, other: &SetChanges) {
        other.added.iter().for_each(|key| self.added.push(key));
        other.removed.iter().for_each(|key| self.removed.push(key));
        if let Some(valued) = &other.valued {
            valued.added.iter().for_each(|(key, value)| self.add_entry(key, value));
            valued.replaced.iter().for_each(|(key, value)| self.replace_entry(key, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keys: &[&str]) -> KeyList {
        let mut list = KeyList::new();
        for key in keys {
            list.push(key.as_bytes());
        }
        list
    }

    #[test]
    fn the_difference_of_two_lists() {
        let check = |old: &[&str], new: &[&str], removed: &[&str], added: &[&str]| {
            let expected = SetChanges { added: list(added), removed: list(removed), valued: None };
            assert_eq!(SetChanges::between(&list(old).sorted(), &list(new).sorted()), expected);
        };
        check(&[], &[], &[], &[]);
        check(&["b", "a"], &["a", "b"], &[], &[]);
        check(&["a", "c"], &["b", "c", "d", "d"], &["a"], &["b", "d"]);
        check(&["x"], &[], &["x"], &[]);
        check(&[], &["x", "", "y"], &[], &["", "x", "y"]);
    }
}
