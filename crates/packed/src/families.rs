//! How many keys each family gained: what lets a family be counted without walking it.
//!
//! In: sorted keys as they come and go. Out: for each family the additions less the removals.
//! Invariant: the sums of several segments of the set add up, whatever was merged in between, because merging adds them and
//! does not count again; only where a merge reaches the bottom of the set, what is left is counted (`merge`).

use crate::dropped::DroppedPrefixes;
use crate::{Error, FAMILY_BYTES, damaged, varint};

pub(crate) type FamilyKey = [u8; FAMILY_BYTES];

/// Sums by family, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Families {
    sums: Vec<(FamilyKey, i64)>,
}

/// The family of a key.
pub(crate) fn family_of(key: &[u8]) -> Result<&FamilyKey, Error> {
    key.first_chunk().ok_or_else(|| damaged("a key of the set is shorter than its family"))
}

impl Families {
    /// Adds to the sum of a family, which must not be below the last one.
    #[inline]
    pub(crate) fn add(&mut self, family: &FamilyKey, change: i64) {
        match self.sums.last_mut() {
            Some((last, sum)) if last == family => *sum += change,
            _ => self.sums.push((*family, change)),
        }
    }

    pub(crate) fn get(&self, family: &FamilyKey) -> i64 {
        self.sums.binary_search_by(|(key, _)| key.cmp(family)).map_or(0, |index| self.sums[index].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FamilyKey, i64)> {
        self.sums.iter().map(|(family, sum)| (family, *sum))
    }

    /// All sums together.
    pub(crate) fn sum(&self) -> i64 {
        self.sums.iter().map(|(_, sum)| sum).sum()
    }

    /// The sums of several, added; families that come to nothing are left out.
    pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Families>) -> Families {
        let mut sums: Vec<_> = all.flat_map(|families| families.sums.iter().copied()).collect();
        sums.sort_unstable_by_key(|(family, _)| *family);
        let mut total = Families::default();
        for (family, sum) in &sums {
            total.add(family, *sum);
        }
        total.sums.retain(|(_, sum)| *sum != 0);
        total
    }

    /// Leaves out the families whose keys are dropped.
    pub(crate) fn leave_out(&mut self, mut dropped: DroppedPrefixes) {
        self.sums.retain(|(family, _)| !dropped.covers(family));
    }

    /// Takes the share of a segment out of the sums of several that are being written, in the order of their keys: all of the
    /// families before the next segment's first one, and of that one what the segment has itself.
    pub(crate) fn take_share(&mut self, counted: &Families, next: Option<&FamilyKey>) -> Families {
        let is_before = |(family, _): &(FamilyKey, i64)| next.is_none_or(|next| family < next);
        let whole = self.sums.iter().take_while(|sum| is_before(sum)).count();
        let mut share = Families { sums: self.sums.drain(..whole).collect() };
        if let Some(next) = next
            && let own = counted.get(next)
            && own != 0
        {
            share.sums.push((*next, own));
            match self.sums.first_mut() {
                Some((family, sum)) if family == next => *sum -= own,
                _ => self.sums.insert(0, (*next, -own)),
            }
        }
        share
    }

    /// What has to be added to `counted` to come to this; usually nothing.
    pub(crate) fn less(&self, counted: &Families) -> Families {
        let negated = Families { sums: counted.sums.iter().map(|(family, sum)| (*family, -sum)).collect() };
        Families::total([self, &negated].into_iter())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.sums.len() as u64);
        for (family, sum) in &self.sums {
            out.extend_from_slice(family);
            varint::put_signed(out, *sum);
        }
    }

    /// Nothing when the bytes are not what [`Families::encode`] writes.
    pub(crate) fn decode(bytes: &[u8], at: &mut usize) -> Option<Families> {
        let count = varint::get(bytes, at)?;
        let mut families = Families::default();
        for _ in 0..count {
            let family = *bytes.get(*at..)?.first_chunk::<FAMILY_BYTES>()?;
            *at += FAMILY_BYTES;
            families.sums.push((family, varint::get_signed(bytes, at)?));
        }
        families.sums.is_sorted_by_key(|(family, _)| *family).then_some(families)
    }

    /// Bytes in memory.
    pub(crate) fn byte_count(&self) -> usize {
        self.sums.len() * size_of::<(FamilyKey, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(sums: &[(u8, i64)]) -> Families {
        Families { sums: sums.iter().map(|(byte, sum)| ([*byte; FAMILY_BYTES], *sum)).collect() }
    }

    #[test]
    fn sums_add_up() {
        let mut counted = Families::default();
        for (byte, change) in [(1, 1), (1, 1), (1, -1), (3, -1), (9, 1)] {
            counted.add(&[byte; FAMILY_BYTES], change);
        }
        assert_eq!(counted, families(&[(1, 1), (3, -1), (9, 1)]));
        let total = Families::total([&counted, &families(&[(2, 5), (3, 1), (9, 4)])].into_iter());
        assert_eq!(total, families(&[(1, 1), (2, 5), (9, 5)]));
        assert_eq!(total.less(&counted), families(&[(2, 5), (3, 1), (9, 4)]));
        assert_eq!(total.less(&total), Families::default());
        assert_eq!([0, 1, 2, 9].map(|byte| total.get(&[byte; FAMILY_BYTES])), [0, 1, 5, 5]);
        let mut rest = families(&[(1, 5), (2, 7), (4, 2)]);
        let shares = [
            rest.take_share(&families(&[(1, 9), (2, 3)]), Some(&[2; FAMILY_BYTES])),
            rest.take_share(&families(&[(2, 6), (3, 1)]), Some(&[3; FAMILY_BYTES])),
            rest.take_share(&families(&[(3, -1), (4, 1)]), None),
        ];
        assert_eq!(shares[0], families(&[(1, 5), (2, 3)]));
        assert_eq!(shares[1], families(&[(2, 4), (3, 1)]));
        assert_eq!(shares[2], families(&[(3, -1), (4, 2)]));
        let mut bytes = Vec::new();
        total.encode(&mut bytes);
        assert_eq!(Families::decode(&bytes, &mut 0), Some(total));
        assert_eq!(Families::decode(&bytes[..bytes.len() - 1], &mut 0), None);
    }
}
