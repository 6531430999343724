//! The keys that the batches of a group name, in order.
//!
//! The committer does this for every group, so it is worth doing well: the batches name keys of the same few families, so
//! keys are first dealt out to their families, and only those of one family are sorted, by the bytes after it.
//! In: what batches change of the set, each list in order or nearly so. Out: every key as often as it is named, in order,
//! and where batches name the same key, in the order of the batches.
//! Time is that of sorting whatever the keys are.

use super::families::FamilyKey;
use astrarium_kv::{FAMILY_BYTES, SetChanges};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::cmp::Ordering;

/// A key that a batch names.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    /// Bytes after the family, as many as that has, padded with zeros: most keys are told apart by them.
    next: u128,
    pub(super) key: &'a [u8],
    batch: u32,
    pub(super) is_removed: bool,
}

impl<'a> Named<'a> {
    const NONE: Named<'static> = Named { next: 0, key: &[], batch: 0, is_removed: false };

    fn new(key: &'a [u8], batch: u32, is_removed: bool) -> Named<'a> {
        let next = key.get(FAMILY_BYTES..).unwrap_or_default();
        let next = next.first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; FAMILY_BYTES];
            padded[..next.len()].copy_from_slice(next);
            padded
        });
        Named { next: u128::from_be_bytes(next), key, batch, is_removed }
    }

    /// Among keys of one family.
    fn order(left: &Named<'_>, right: &Named<'_>) -> Ordering {
        let rest = || left.key.cmp(right.key).then(left.batch.cmp(&right.batch));
        left.next.cmp(&right.next).then_with(rest)
    }
}

/// All keys that these batches name, in order. Keys are at least as long as a family.
pub(super) fn in_order(batches: &[SetChanges]) -> Vec<Named<'_>> {
    let mut piles = Piles::default();
    let mut pile_of_each = Vec::with_capacity(named(batches).size_hint().0);
    for named in named(batches) {
        pile_of_each.push(piles.find(named.key));
    }
    let mut places = piles.places();
    let mut dealt = vec![Named::NONE; pile_of_each.len()];
    for (named, pile) in named(batches).zip(pile_of_each) {
        let place = &mut places[pile];
        dealt[*place] = named;
        *place += 1;
    }
    for pile in dealt.chunk_by_mut(|left, right| family_of(left.key) == family_of(right.key)) {
        pile.sort_unstable_by(Named::order);
    }
    dealt
}

fn named(batches: &[SetChanges]) -> impl Iterator<Item = Named<'_>> {
    (0..).zip(batches).flat_map(|(batch, changes)| {
        let removed = changes.removed.iter().map(move |key| Named::new(key, batch, true));
        removed.chain(changes.added.iter().map(move |key| Named::new(key, batch, false)))
    })
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
        fn every_key_is_in_its_place(batches in vec((vec(key(), 0..20), vec(key(), 0..20)), 0..6)) {
            let changes: Vec<_> = batches.iter().map(|(added, removed)| {
                let mut changes = SetChanges::default();
                for key in added {
                    changes.added.push(key);
                }
                for key in removed {
                    changes.removed.push(key);
                }
                changes
            }).collect();
            let mut expected: Vec<_> = named(&changes).map(|named| (named.key, named.batch)).collect();
            expected.sort_unstable();
            let found: Vec<_> = in_order(&changes).iter().map(|named| (named.key, named.batch)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        (0..4u8, vec(0..2u8, 0..20))
            .prop_map(|(family, rest)| [&[family; FAMILY_BYTES][..], &rest[..]].concat())
    }
}
