//! Dropping much at once: shards, and all keys with a prefix.
//!
//! A drop is one small commit, whatever it drops. From that commit on views show none of the keys, and the engine gives their
//! space back later, in steps, beside everything else.
//! Invariants
//! - Until the space is given back ([`crate::Engine::unreclaimed`]) no key with the prefix may be written; the engine refuses it.
//! - Views from before the drop go on showing what they showed.
//! - A dropped shard never comes back: numbers of shards are not given twice.

use crate::{Direction, Error, KeyRange, Mutation, ShardId, Space, WriteBatch};
use bytes::Bytes;

/// What a batch drops.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drops {
    /// Shards that end.
    pub shards: Vec<ShardId>,
    /// Keys that go.
    pub prefixes: Vec<KeyPrefix>,
}

/// All keys that begin with some bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPrefix {
    /// The space; nothing for the set.
    pub space: Option<Space>,
    /// What the keys begin with.
    pub bytes: Bytes,
}

impl Drops {
    /// Whether nothing is dropped.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.prefixes.is_empty()
    }
}

impl KeyPrefix {
    /// Whether a key is one of them.
    pub fn covers(&self, space: Option<Space>, key: &[u8]) -> bool {
        self.space == space && key.starts_with(&self.bytes)
    }
}

/// Prefixes, ready to be asked about keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefixSet {
    /// In order, none within another.
    prefixes: Vec<KeyPrefix>,
}

impl FromIterator<KeyPrefix> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = KeyPrefix>>(prefixes: I) -> PrefixSet {
        let mut prefixes: Vec<_> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|later, earlier| earlier.covers(later.space, &later.bytes));
        PrefixSet { prefixes }
    }
}

impl PrefixSet {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Whether a key begins with one of them.
    #[inline]
    pub fn covers(&self, space: Option<Space>, key: &[u8]) -> bool {
        if self.prefixes.is_empty() {
            return false;
        }
        let is_before = |prefix: &KeyPrefix| (prefix.space, &prefix.bytes[..]) <= (space, key);
        let before = self.prefixes.partition_point(is_before);
        before.checked_sub(1).is_some_and(|last| self.prefixes[last].covers(space, key))
    }

    /// Those of one space, or (`None`) of the set, in order.
    pub fn in_space(&self, space: Option<Space>) -> impl Iterator<Item = &Bytes> {
        self.prefixes.iter().filter(move |prefix| prefix.space == space).map(|prefix| &prefix.bytes)
    }

    /// The pieces that are left of a range without them, in the order of a scan.
    pub fn cut_out(&self, space: Option<Space>, range: &KeyRange, direction: Direction) -> Vec<KeyRange> {
        let mut pieces = Vec::new();
        let mut start = range.start.clone();
        // Of those that begin before the range only the last can reach into it: none is within another.
        let is_before = |prefix: &KeyPrefix| (prefix.space, &prefix.bytes) < (space, &range.start);
        let first = self.prefixes.partition_point(is_before).saturating_sub(1);
        let from_there = self.prefixes[first..].iter().skip_while(|prefix| prefix.space != space);
        for prefix in from_there.take_while(|prefix| prefix.space == space) {
            let gap = KeyRange::prefix(&prefix.bytes);
            if gap.start >= range.end {
                break;
            }
            if start < gap.start {
                pieces.push(KeyRange { start: start.clone(), end: gap.start });
            }
            start = start.max(gap.end);
        }
        if start < range.end {
            pieces.push(KeyRange { start, end: range.end.clone() });
        }
        if direction == Direction::Backward {
            pieces.reverse();
        }
        pieces
    }

    /// Refuses a batch that writes keys which begin with one of them.
    pub fn check(&self, batch: &WriteBatch) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let is_covered = |mutation: &Mutation| match mutation {
            Mutation::Put { space, key, .. } => self.covers(Some(*space), key),
            Mutation::Delete { .. } => false,
        };
        let mut added = batch.set.added.iter().chain(batch.set.valued_entries().map(|(key, _)| key));
        if batch.mutations.iter().any(is_covered) || added.any(|key| self.covers(None, key)) {
            return Err(Error::Contract { what: "a key begins with a prefix that was dropped".to_owned() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(prefixes: &[&str]) -> PrefixSet {
        let prefix = |bytes: &&str| KeyPrefix { space: None, bytes: Bytes::from(bytes.to_string()) };
        prefixes.iter().map(prefix).collect()
    }

    #[test]
    fn prefixes_cover_keys() {
        let set = set(&["c", "ck", "aa"]);
        for key in ["c", "ck", "ckz", "cz", "aab"] {
            assert!(set.covers(None, key.as_bytes()), "{key}");
            assert!(!set.covers(Some(Space::Body), key.as_bytes()), "{key}");
        }
        for key in ["", "a", "ab", "b", "d"] {
            assert!(!set.covers(None, key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn prefixes_are_cut_out_of_a_range() {
        let check = |range: (&str, &str), prefixes: &[&str], expected: &[(&str, &str)]| {
            let piece = |(start, end): &(&str, &str)| KeyRange {
                start: Bytes::from(start.to_string()),
                end: Bytes::from(end.to_string()),
            };
            let mut expected: Vec<_> = expected.iter().map(piece).collect();
            let pieces = |direction| set(prefixes).cut_out(None, &piece(&range), direction);
            assert_eq!(pieces(Direction::Forward), expected);
            expected.reverse();
            assert_eq!(pieces(Direction::Backward), expected);
        };
        check(("a", "z"), &[], &[("a", "z")]);
        check(("a", "z"), &["k", "c"], &[("a", "c"), ("d", "k"), ("l", "z")]);
        check(("a", "z"), &["c", "ck", "d"], &[("a", "c"), ("e", "z")]);
        check(("ca", "cz"), &["c"], &[]);
        check(("ca", "d"), &["c", "x"], &[]);
        check(("b", "ck"), &["c"], &[("b", "c")]);
        check(("ck", "e"), &["c"], &[("d", "e")]);
        check(("e", "f"), &["c", "x"], &[("e", "f")]);
        check(("d", "f"), &["a", "b", "c", "e", "g"], &[("d", "e")]);
    }

    #[test]
    fn prefixes_of_other_spaces_cut_nothing_out() {
        let prefix = |space, bytes: &str| KeyPrefix { space, bytes: Bytes::from(bytes.to_string()) };
        let set: PrefixSet = [
            prefix(None, "b"),
            prefix(Some(Space::Meta), "c"),
            prefix(Some(Space::Body), "d"),
            prefix(Some(Space::Log), "e"),
        ]
        .into_iter()
        .collect();
        let range = KeyRange { start: Bytes::from_static(b"a"), end: Bytes::from_static(b"z") };
        let starts = |space| {
            let pieces = set.cut_out(space, &range, Direction::Forward);
            pieces.iter().map(|piece| piece.start.clone()).collect::<Vec<_>>()
        };
        assert_eq!(starts(None), ["a", "c"]);
        assert_eq!(starts(Some(Space::Meta)), ["a", "d"]);
        assert_eq!(starts(Some(Space::Body)), ["a", "e"]);
        assert_eq!(starts(Some(Space::Log)), ["a", "f"]);
    }
}
