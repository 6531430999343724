//! Which entries are read for conditions that several indexes serve: each condition by itself, or several at once.
//!
//! In: an access with alternatives, about how much of it will be wanted. Out: an access without them.
//! How: entries that stand for several conditions are never more than those of one of them. Where they are one term they
//! are in order already, and always worth it. Where they are a range they are read whole and sorted first, which pays if
//! that costs less than leaping over the entries of the smallest condition until enough documents are found.
//! Invariant: whatever is chosen, every conjunct that an index has is looked at.

use crate::finder::{Error, Finder};
use crate::index_set::{Access, all_of};
use crate::kinds::{Served, Together};

/// Nanoseconds to read and sort one entry, and to leap to the next document of another term.
const ENTRY_COST: u128 = 40;
const LEAP_COST: u128 = 1_500;
/// Entries that are sorted at most for each document of the scope.
const SCOPE_FACTOR: u64 = 4;

/// How much of an access is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Documents that a page needs.
    pub document_count: u64,
    /// Documents of the scope: what else is known about them.
    pub scope_count: u64,
}

impl Default for Wanted {
    /// Everything.
    fn default() -> Wanted {
        Wanted { document_count: u64::MAX, scope_count: u64::MAX }
    }
}

impl Finder {
    /// The same access with the cheapest of its alternatives.
    pub async fn chosen(&self, access: &Access, wanted: Wanted) -> Result<Access, Error> {
        let Access::Combined { apart, together } = access else { return Ok(access.clone()) };
        let mut sizes = Vec::with_capacity(apart.len());
        for part in apart {
            sizes.push(self.rough_estimate(part).await?);
        }
        let mut sized = Vec::with_capacity(together.len());
        for part in together {
            sized.push((self.estimate(&part.served).await?, part));
        }
        // The fewest entries first; of as many, those that stand for more.
        sized.sort_by_key(|(size, part)| (*size, std::cmp::Reverse(part.conditions.len())));
        let mut open = vec![true; apart.len()];
        let mut taken = Vec::new();
        for (size, part) in sized {
            if wanted.takes((size, part), &sizes, &open) {
                part.conditions.iter().for_each(|place| open[*place] = false);
                taken.push(Access::Entries(part.served.clone()));
            }
        }
        let rest = apart.iter().zip(open).filter(|(_, open)| *open).map(|(part, _)| part.clone());
        Ok(all_of(taken.into_iter().chain(rest).collect()))
    }
}

impl Wanted {
    /// Whether entries that stand for several conditions are better than those of each.
    fn takes(self, (size, part): (u64, &Together), sizes: &[u64], open: &[bool]) -> bool {
        let own = part.conditions.iter().filter(|place| open[**place]);
        if own.clone().count() < 2 {
            return false;
        }
        let smallest = own.map(|place| sizes[*place]).min().unwrap_or(u64::MAX);
        if is_terms(&part.served) {
            return true;
        }
        if size > self.scope_count.saturating_mul(SCOPE_FACTOR) {
            return false;
        }
        let sorting = u128::from(size) * ENTRY_COST;
        let found = u128::from(self.document_count.min(size).max(1));
        let leaping = found * u128::from(smallest) / u128::from(size.max(1)) * LEAP_COST;
        sorting <= leaping
    }
}

fn is_terms(served: &Served) -> bool {
    served.ranges.iter().all(|range| range.is_point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::TermRange;
    use astrarium_keys::index_entry::Family;

    /// Whether entries that stand for the first two conditions are taken, of so many, where pages have so many rows.
    fn check(size: u64, is_point: bool, sizes: &[u64], wanted: (u64, u64), expected: bool) {
        let range = TermRange { start: vec![1], end: vec![2], is_point };
        let served = Served {
            family: Family::of(1, b""),
            ranges: vec![range],
            exact: true,
            repeated: false,
            shown: String::new(),
        };
        let part = Together { served, conditions: vec![0, 1], paths: Vec::new() };
        let wanted = Wanted { document_count: wanted.0, scope_count: wanted.1 };
        let told = (size, is_point, sizes, wanted);
        assert_eq!(wanted.takes((size, &part), sizes, &[true, true]), expected, "{told:?}");
        assert!(!wanted.takes((size, &part), sizes, &[true, false]), "{told:?}");
    }

    #[test]
    fn entries_of_several_conditions_are_taken_where_they_save() {
        const ALL: u64 = u64::MAX;
        // One term is in order already.
        check(1_000_000, true, &[1_000_000, 2_000_000], (100, ALL), true);
        // A range is read whole: for all of it, or where it is much smaller.
        check(150_000, false, &[200_000, 500_000], (ALL, ALL), true);
        check(150_000, false, &[200_000, 500_000], (100, ALL), false);
        check(20_000, false, &[200_000, 500_000], (100, ALL), true);
        check(40, false, &[400, 2_000], (100, ALL), true);
        check(0, false, &[400, 2_000], (100, ALL), true);
        // Where no index has the conditions by themselves.
        check(150_000, false, &[u64::MAX, u64::MAX], (100, ALL), true);
        // A scope that is small already.
        check(20_000, false, &[200_000, 500_000], (100, 64), false);
    }
}
