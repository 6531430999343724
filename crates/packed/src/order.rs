//! The keys that the batches of a group name, in order.
//!
//! The committer does this for every group, so it is worth doing well: the batches name keys of the same few families, so
//! keys are first dealt out to their families, and only those of one family are sorted, by the bytes after it.
//! In: what batches change of the set, each list in order or nearly so. Out: every key as often as it is named, in order,
//! and where batches name the same key, in the order of the batches.
//! Time is that of sorting whatever the keys are.

use crate::FAMILY_BYTES;
use crate::families::FamilyKey;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::cmp::Ordering;

/// What a batch does to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAction {
    /// It comes.
    Add,
    /// It is there and gets another value: its family has as many keys as before.
    Replace,
    /// It goes.
    Remove,
}

/// What a batch does to a key, in few bytes: the committer sorts these.
#[derive(Debug, Clone, Copy)]
pub struct KeyChange<'a> {
    /// The key, then the value.
    entry: &'a [u8],
    /// The place of the batch in its group.
    batch: u32,
    value_bytes: u16,
    action: KeyAction,
}

impl<'a> KeyChange<'a> {
    /// A key that comes without a value, or goes. It is at least as long as a family.
    pub fn of_key(batch: u32, key: &'a [u8], action: KeyAction) -> KeyChange<'a> {
        KeyChange { entry: key, batch, value_bytes: 0, action }
    }

    /// A key and its value, one behind the other; the value has at most [`crate::VALUE_BYTES_MAX`].
    pub fn of_entry(batch: u32, entry: &'a [u8], value_bytes: usize, action: KeyAction) -> KeyChange<'a> {
        KeyChange { entry, batch, value_bytes: value_bytes as u16, action }
    }

    pub(crate) fn key(&self) -> &'a [u8] {
        &self.entry[..self.entry.len() - usize::from(self.value_bytes)]
    }

    pub(crate) fn value(&self) -> &'a [u8] {
        &self.entry[self.entry.len() - usize::from(self.value_bytes)..]
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.action == KeyAction::Remove
    }

    /// By how much the family grows.
    pub(crate) fn growth(&self) -> i64 {
        match self.action {
            KeyAction::Add => 1,
            KeyAction::Replace => 0,
            KeyAction::Remove => -1,
        }
    }
}

/// A change and where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct Ranked<'a> {
    /// Bytes after the family, as many as that has, padded with zeros: most keys are told apart by them.
    next: u128,
    pub(crate) change: KeyChange<'a>,
}

impl<'a> Ranked<'a> {
    const NONE: Ranked<'static> = Ranked {
        next: 0,
        change: KeyChange { entry: &[], batch: 0, value_bytes: 0, action: KeyAction::Add },
    };

    fn new(change: KeyChange<'a>) -> Ranked<'a> {
        let next = change.key().get(FAMILY_BYTES..).unwrap_or_default();
        let next = next.first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; FAMILY_BYTES];
            padded[..next.len()].copy_from_slice(next);
            padded
        });
        Ranked { next: u128::from_be_bytes(next), change }
    }

    /// Among keys of one family.
    fn order(left: &Ranked<'_>, right: &Ranked<'_>) -> Ordering {
        let rest = || {
            let (left, right) = (left.change, right.change);
            left.key().cmp(right.key()).then(left.batch.cmp(&right.batch))
        };
        left.next.cmp(&right.next).then_with(rest)
    }
}

/// All these changes in the order of their keys.
pub(crate) fn in_order<'a>(changes: impl Iterator<Item = KeyChange<'a>> + Clone) -> Vec<Ranked<'a>> {
    let mut piles = Piles::default();
    let mut pile_of_each = Vec::with_capacity(changes.size_hint().0);
    for change in changes.clone() {
        pile_of_each.push(piles.find(change.key()));
    }
    let mut places = piles.places();
    let mut dealt = vec![Ranked::NONE; pile_of_each.len()];
    for (change, pile) in changes.zip(pile_of_each) {
        let place = &mut places[pile];
        dealt[*place] = Ranked::new(change);
        *place += 1;
    }
    for pile in
        dealt.chunk_by_mut(|left, right| family_of(left.change.key()) == family_of(right.change.key()))
    {
        pile.sort_unstable_by(Ranked::order);
    }
    dealt
}

fn family_of(key: &[u8]) -> FamilyKey {
    key.first_chunk().copied().unwrap_or_default()
}

/// The families that were met, and how many keys of each.
#[derive(Default)]
struct Piles {
    counts: Vec<(FamilyKey, usize)>,
    by_family: HashMap<FamilyKey, usize, RandomState>,
    last: usize,
}

impl Piles {
    /// The pile that a key belongs to; counts it.
    fn find(&mut self, key: &[u8]) -> usize {
        let family = family_of(key);
        // Sorted lists stay with a family or go on to the one that the batch before went on to.
        let is_here = |pile: &usize| self.counts.get(*pile).is_some_and(|(here, _)| *here == family);
        let pile = [self.last, self.last + 1, 0].into_iter().find(is_here);
        let pile = pile.unwrap_or_else(|| {
            let counts = &mut self.counts;
            *self.by_family.entry(family).or_insert_with(|| {
                counts.push((family, 0));
                counts.len() - 1
            })
        });
        self.counts[pile].1 += 1;
        self.last = pile;
        pile
    }

    /// Where each pile begins when they lie in the order of their families.
    fn places(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.counts.len()).collect();
        order.sort_unstable_by_key(|pile| self.counts[*pile].0);
        let mut places = vec![0; self.counts.len()];
        let mut place = 0;
        for pile in order {
            places[pile] = place;
            place += self.counts[pile].1;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_is_in_its_place(batches in vec(vec((key(), any::<bool>()), 0..40), 0..6)) {
            let changes = (0..).zip(&batches).flat_map(|(batch, changes)| {
                changes.iter().map(move |(key, is_removed)| {
                    let action = if *is_removed { KeyAction::Remove } else { KeyAction::Add };
                    KeyChange::of_key(batch, key, action)
                })
            });
            let mut expected: Vec<_> = changes.clone().map(|change| (change.key(), change.batch)).collect();
            expected.sort_unstable();
            let found = in_order(changes);
            let found: Vec<_> = found.iter().map(|ranked| (ranked.change.key(), ranked.change.batch)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        (0..4u8, vec(0..2u8, 0..20))
            .prop_map(|(family, rest)| [&[family; FAMILY_BYTES][..], &rest[..]].concat())
    }
}
