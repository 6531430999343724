//! Ranges of effective keys: what a physical partition holds, what a feed range names, what a prefix covers.
//!
//! In: effective keys and definitions. Out: ranges that include their lower end and exclude their upper one.
//! Invariants
//! - The slices of a container and the halves of a split tile the space exactly, from the empty key to `FF`: clients
//!   treat a gap or an overlap as a broken container.
//!
//! Not here: names, ancestors and states of physical ranges (`catalog`).

use crate::effective::{v1_hash, v1_place};
use crate::{EffectiveKey, HashVersion, PartitionKeyDefinition, PartitionKind};

/// The largest 128-bit hash; the two top bits are always clear so that `FF` stays above all.
const V2_HASH_MAX: u128 = u128::MAX >> 2;

/// All effective keys from `min` up to but without `max`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectiveRange {
    /// The first key inside.
    pub min: EffectiveKey,
    /// The first key beyond.
    pub max: EffectiveKey,
}

impl EffectiveRange {
    /// The whole space.
    pub fn full() -> Self {
        Self { min: EffectiveKey::MIN, max: EffectiveKey::max() }
    }

    /// All keys that begin with this one: where the documents under a prefix of a hierarchical key are.
    pub fn of_prefix(prefix: EffectiveKey) -> Self {
        let max = prefix.end_of_prefix();
        Self { min: prefix, max }
    }

    /// The range that clients mean by these bounds: one that ends where it begins is the keys that begin so.
    pub fn of_bounds(min: EffectiveKey, max: EffectiveKey) -> Self {
        if min == max { Self::of_prefix(min) } else { Self { min, max } }
    }

    /// The place with which all keys inside begin, where the bounds tell: clients end such a range with `FF` appended to
    /// its beginning, or with the next place of that length. A whole key is such a place, and the only key inside.
    pub fn common_prefix(&self) -> Option<&EffectiveKey> {
        let ends =
            self.max == self.min.end_of_prefix() || Some(&self.max) == self.min.next_of_length().as_ref();
        ends.then_some(&self.min)
    }

    /// Whether no key is inside.
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// Whether the key is inside.
    pub fn contains(&self, key: &EffectiveKey) -> bool {
        self.min <= *key && *key < self.max
    }

    /// Whether some key is inside both; an empty range overlaps nothing.
    pub fn overlaps(&self, other: &EffectiveRange) -> bool {
        Ord::max(&self.min, &other.min) < Ord::min(&self.max, &other.max)
    }

    /// Whether every key inside is inside the other.
    pub fn is_within(&self, other: &EffectiveRange) -> bool {
        other.min <= self.min && self.max <= other.max
    }

    /// The keys inside both.
    #[must_use]
    pub fn intersection(&self, other: &EffectiveRange) -> EffectiveRange {
        let min = Ord::max(&self.min, &other.min).clone();
        EffectiveRange { min, max: Ord::min(&self.max, &other.max).clone() }
    }

    /// The ranges of a new container with `count` physical partitions, equal by hash. A definition without hash
    /// cannot be sliced before its values are known and gets one range, as does a count of zero.
    pub fn equal_slices(count: u32, definition: &PartitionKeyDefinition) -> Vec<EffectiveRange> {
        let count = if definition.kind == PartitionKind::Range { 1 } else { count.max(1) };
        let place = |slice: u32| match (slice, definition.hash_version()) {
            (0, _) => EffectiveKey::MIN,
            (slice, _) if slice == count => EffectiveKey::max(),
            (slice, HashVersion::V1) => v1_key(u32::MAX / count * slice),
            (slice, HashVersion::V2) => v2_key(V2_HASH_MAX / u128::from(count) * u128::from(slice)),
        };
        (0..count).map(|slice| EffectiveRange { min: place(slice), max: place(slice + 1) }).collect()
    }

    /// How much of the space it holds, as far as the outermost hashes tell: for comparing ranges of one container.
    pub fn width(&self) -> f64 {
        let place = |key: &EffectiveKey, default: u128| match (v1_number(key), key.as_bytes().first()) {
            (_, None) => 0,
            (_, Some(0xFF)) => default,
            (Some(hash), Some(0x05)) => u128::from(hash) << 94,
            _ => v2_number(key),
        };
        (place(&self.max, V2_HASH_MAX).saturating_sub(place(&self.min, 0))) as f64
    }

    /// The place that halves the hashes inside; `None` when the range is too narrow, or not hashed.
    pub fn split_midpoint(&self, definition: &PartitionKeyDefinition) -> Option<EffectiveKey> {
        let midpoint = match (definition.kind, definition.hash_version()) {
            (PartitionKind::Range, _) => return None,
            (_, HashVersion::V2) => {
                let (min, max) = (v2_number(&self.min), v2_number(&self.max));
                v2_key(min + max.checked_sub(min)? / 2)
            }
            (_, HashVersion::V1) => {
                let (min, max) = (v1_number(&self.min)?, v1_number(&self.max)?);
                v1_key(min + max.checked_sub(min)? / 2)
            }
        };
        (self.min < midpoint && midpoint < self.max).then_some(midpoint)
    }
}

fn v1_key(hash: u32) -> EffectiveKey {
    EffectiveKey::from_bytes(v1_place(hash))
}

fn v1_number(place: &EffectiveKey) -> Option<u32> {
    match place.as_bytes() {
        [] => Some(0),
        [0xFF, ..] => Some(u32::MAX),
        bytes => v1_hash(bytes),
    }
}

fn v2_key(hash: u128) -> EffectiveKey {
    EffectiveKey::from_bytes(hash.to_be_bytes().to_vec())
}

/// The outermost hash of a place. Deeper levels of a hierarchical key do not take part, so a range inside one
/// outermost value has no midpoint.
fn v2_number(place: &EffectiveKey) -> u128 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(place.as_bytes()) {
        *to = *from;
    }
    u128::from_be_bytes(bytes).min(V2_HASH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn definition(kind: PartitionKind, version: Option<HashVersion>) -> PartitionKeyDefinition {
        PartitionKeyDefinition { paths: vec![], kind, version, system_key: false }
    }

    fn v1() -> PartitionKeyDefinition {
        definition(PartitionKind::Hash, None)
    }

    fn v2() -> PartitionKeyDefinition {
        definition(PartitionKind::Hash, Some(HashVersion::V2))
    }

    fn range(min: &str, max: &str) -> EffectiveRange {
        EffectiveRange { min: EffectiveKey::parse(min).unwrap(), max: EffectiveKey::parse(max).unwrap() }
    }

    fn check_slices(definition: &PartitionKeyDefinition, count: u32, boundaries: &[&str]) {
        let slices = EffectiveRange::equal_slices(count, definition);
        let inner: Vec<String> = slices.iter().skip(1).map(|slice| slice.min.to_string()).collect();
        assert_eq!(inner, boundaries);
        assert!(slices.windows(2).all(|pair| pair[0].max == pair[1].min && !pair[0].is_empty()));
        assert_eq!(
            (&slices[0].min, &slices[slices.len() - 1].max),
            (&EffectiveKey::MIN, &EffectiveKey::max())
        );
    }

    #[test]
    fn slices_are_equal() {
        let half = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
        let quarters = [
            "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE",
            "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD",
        ];
        for definition in [v2(), definition(PartitionKind::MultiHash, None)] {
            check_slices(&definition, 1, &[]);
            check_slices(&definition, 0, &[]);
            check_slices(&definition, 2, &[half]);
            check_slices(&definition, 4, &quarters);
        }
        check_slices(&definition(PartitionKind::Range, None), 4, &[]);
        // 2147483647, 1431655765 and 2863311530 as ordered doubles.
        check_slices(&v1(), 2, &["05C1DFFFFFFFFC"]);
        check_slices(&v1(), 3, &["05C1D5AB55AB54", "05C1E5AB55AB54"]);
    }

    #[test]
    fn splits_in_the_middle() {
        let check = |definition: &PartitionKeyDefinition, min: &str, max: &str, expected: Option<&str>| {
            let midpoint = range(min, max).split_midpoint(definition).map(|key| key.to_string());
            assert_eq!(midpoint.as_deref(), expected, "{min} {max}");
        };
        let (half, quarter) = ("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
        check(&v2(), "", "FF", Some(half));
        check(&v2(), "", half, Some(quarter));
        check(&v2(), half, "FF", Some("2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"));
        check(&v2(), half, half, None);
        check(&v2(), "FF", "", None);
        check(&v2(), quarter, "10000000000000000000000000000000", None);
        check(&v1(), "", "FF", Some("05C1DFFFFFFFFC"));
        check(&v1(), "05C1DFFFFFFFFC", "FF", Some("05C1E7FFFFFFFE"));
        check(&v1(), "05BFF0", "05C000", None);
        check(&v1(), "0801", "FF", None);
        check(&definition(PartitionKind::Range, None), "", "FF", None);
    }

    #[test]
    fn bounds_of_a_single_key() {
        let check = |min: &str, max: &str, expected: bool| {
            let range = range(min, max);
            let range = EffectiveRange::of_bounds(range.min, range.max);
            assert_eq!(range.common_prefix().is_some(), expected, "{min} {max}");
            assert!(range.is_empty() || range.contains(&range.min));
        };
        check("1F2E", "1F2E", true);
        check("1F2E", "1F2EFF", true);
        check("1F2E", "1F2F", true);
        check("1FFF", "2000", true);
        check("", "FF", true);
        check("1F2E", "1F30", false);
        check("1F2E", "FF", false);
        check("FF", "FF", true);
        check("FF", "1F", false);
    }

    #[test]
    fn membership() {
        let full = EffectiveRange::full();
        let low = range("", "1F");
        let high = range("1F", "FF");
        let key = EffectiveKey::parse("1F00").unwrap();
        assert!(
            full.contains(&key) && !low.contains(&key) && high.contains(&key) && high.contains(&high.min)
        );
        assert!(!low.overlaps(&high) && full.overlaps(&high) && high.overlaps(&range("1FFF", "20")));
        assert!(!full.overlaps(&range("1F", "1F")) && range("1F", "1F").is_empty());
        let prefix = EffectiveRange::of_prefix(EffectiveKey::parse("1F").unwrap());
        assert_eq!((&prefix, prefix.contains(&key)), (&range("1F", "1FFF"), true));
        assert_eq!(EffectiveRange::of_prefix(EffectiveKey::MIN), full);
    }

    proptest! {
        #[test]
        fn halves_lie_inside(first in any::<u128>(), second in any::<u128>(), hashes in any::<(u32, u32)>()) {
            let (a, b) = (first & V2_HASH_MAX, second & V2_HASH_MAX);
            let wide = EffectiveRange { min: v2_key(a.min(b)), max: v2_key(a.max(b)) };
            prop_assert_eq!(wide.split_midpoint(&v2()).is_some(), a.abs_diff(b) > 1);
            let narrow = EffectiveRange { min: v1_key(hashes.0.min(hashes.1)), max: v1_key(hashes.0.max(hashes.1)) };
            prop_assert_eq!(narrow.split_midpoint(&v1()).is_some(), hashes.0.abs_diff(hashes.1) > 1);
            prop_assert_eq!(v1_number(&v1_key(hashes.0)), Some(hashes.0));
        }

        #[test]
        fn any_range_is_split_without_panic(min: Vec<u8>, max: Vec<u8>) {
            let range = EffectiveRange { min: EffectiveKey::from_bytes(min), max: EffectiveKey::from_bytes(max) };
            for definition in [v1(), v2()] {
                if let Some(midpoint) = range.split_midpoint(&definition) {
                    prop_assert!(range.contains(&midpoint));
                }
            }
        }
    }
}
