//! Which shard a key belongs to, told by its bytes alone, so that engines can keep shards in different places.
//!
//! | where | a key | its shard |
//! |---|---|---|
//! | `Body`, `Log` | first byte, shard (8, big-endian), rest | the one it names |
//! | `Meta`, first byte [`META_OF_SHARD`] | the same | the one it names |
//! | `Meta`, any other first byte | anything | [`META_SHARD`] |
//! | the set | shard (8), rest | the one it names |
//!
//! Invariants
//! - A batch writes and expects keys of its own shard only, and a view answers for keys of its shard only; everything else is
//!   refused with [`Error::Contract`]. It is the caller's bug: what clients send never chooses these bytes.
//! - A prefix that is dropped lies within one shard.

use super::{RESERVED_PREFIX, broken};
use crate::{Error, KeyRange, ShardId, Space};
use bytes::Bytes;

/// Bytes that name a shard in a key.
pub const SHARD_BYTES: usize = size_of::<u64>();

/// The first byte of those keys in `Meta` that name their shard, as keys of other spaces do.
pub const META_OF_SHARD: u8 = 0x06;

/// The shard of all other keys in `Meta`.
pub const META_SHARD: ShardId = ShardId(0);

/// The bytes of a space's key before which no version is stamped: they tell the shard.
pub(super) const PLACE_BYTES: usize = 1 + SHARD_BYTES;

/// The shard of a key in a space, or (`None`) in the set; nothing if it is too short to tell.
#[inline]
pub fn shard_of(space: Option<Space>, key: &[u8]) -> Option<ShardId> {
    let named = match space {
        None => key.first_chunk(),
        Some(Space::Meta) if *key.first()? != META_OF_SHARD => return Some(META_SHARD),
        Some(_) => key.get(1..)?.first_chunk(),
    };
    named.map(|shard: &[u8; SHARD_BYTES]| ShardId(u64::from_be_bytes(*shard)))
}

/// Refuses a key of another shard.
#[inline]
pub fn check_key(shard: ShardId, space: Option<Space>, key: &[u8]) -> Result<(), Error> {
    if shard_of(space, key) == Some(shard) { Ok(()) } else { Err(elsewhere()) }
}

/// Refuses keys if one is of another shard.
pub fn check_keys(shard: ShardId, space: Option<Space>, keys: &[Bytes]) -> Result<(), Error> {
    keys.iter().try_for_each(|key| check_key(shard, space, key))
}

/// Refuses a range that reaches beyond a shard's keys with the same first byte; one without room for a key is anybody's.
pub fn check_range(shard: ShardId, space: Option<Space>, range: &KeyRange) -> Result<(), Error> {
    let KeyRange { start, end } = range;
    let is_within = match space {
        Some(Space::Meta) if start.first() != Some(&META_OF_SHARD) => {
            let is_beside = end[..] <= [META_OF_SHARD][..] || start[..] > [META_OF_SHARD][..];
            shard == META_SHARD && is_beside
        }
        Some(_) => shard_of(space, start) == Some(shard) && ends_within(end, &start[..PLACE_BYTES]),
        None => shard_of(None, start) == Some(shard) && ends_within(end, &start[..SHARD_BYTES]),
    };
    if is_within || start >= end { Ok(()) } else { Err(elsewhere()) }
}

/// The highest shard that keys of a space belong to, given a way to find the last key before some bytes.
pub fn highest_shard(
    space: Space,
    mut last_before: impl FnMut(&[u8]) -> Result<Option<Bytes>, Error>,
) -> Result<ShardId, Error> {
    let mut highest = META_SHARD;
    let mut end = Bytes::from_static(&RESERVED_PREFIX);
    // Keys with the same first byte are in the order of their shards.
    while let Some(last) = last_before(&end)? {
        highest = shard_of(Some(space), &last).map_or(highest, |shard| highest.max(shard));
        end = last.slice(..1);
    }
    Ok(highest)
}

/// Whether a range that begins with a prefix and ends before `end` has only keys with that prefix.
fn ends_within(end: &[u8], prefix: &[u8]) -> bool {
    if end.starts_with(prefix) {
        return true;
    }
    // The end may be the first key beyond, which may have fewer bytes: those behind count as 00.
    let number = |bytes: &[u8]| {
        let padded = bytes.iter().copied().chain(std::iter::repeat(0)).take(prefix.len());
        padded.fold(0u128, |number, byte| number << 8 | u128::from(byte))
    };
    let beyond = number(prefix) + 1;
    number(end) < beyond || number(end) == beyond && end.len() <= prefix.len()
}

#[cold]
fn elsewhere() -> Error {
    broken("a key or range belongs to another shard")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8, shard: u64, rest: &str) -> Bytes {
        [&[first], &shard.to_be_bytes()[..], rest.as_bytes()].concat().into()
    }

    #[test]
    fn keys_tell_their_shard() {
        for space in [Some(Space::Body), Some(Space::Log)] {
            assert_eq!(shard_of(space, &key(1, 7, "")), Some(ShardId(7)));
            assert_eq!(shard_of(space, &key(0xFF, u64::MAX, "rest")), Some(ShardId(u64::MAX)));
            assert_eq!(shard_of(space, &key(1, 7, "")[..8]), None);
            assert_eq!(shard_of(space, &[]), None);
        }
        assert_eq!(shard_of(Some(Space::Meta), &key(META_OF_SHARD, 7, "rest")), Some(ShardId(7)));
        assert_eq!(shard_of(Some(Space::Meta), &[META_OF_SHARD, 0]), None);
        assert_eq!(shard_of(Some(Space::Meta), &[1]), Some(META_SHARD));
        assert_eq!(shard_of(Some(Space::Meta), &[]), None);
        assert_eq!(shard_of(None, &key(1, 7, "")[1..]), Some(ShardId(7)));
        assert_eq!(shard_of(None, &[0; 7]), None);
    }

    /// A range is refused exactly if some key of another shard lies within.
    #[test]
    fn ranges_stay_within_their_shard() {
        for shard in [0, 1, 0xFF, 0x1_FFFF, u64::MAX] {
            let prefix = |first| KeyRange::prefix(&key(first, shard, ""));
            let end = shard.checked_add(1).map_or(Bytes::from_static(&[7]), |next| key(6, next, ""));
            let next = KeyRange { start: key(6, shard, ""), end };
            let padded = KeyRange { start: key(5, shard, "x"), end: key(5, shard, "xyz") };
            for range in [prefix(1), prefix(6), prefix(0xFE), next, padded] {
                for space in [Some(Space::Body), Some(Space::Log)] {
                    let name = format!("{shard} {range:?}");
                    check_range(ShardId(shard), space, &range).expect(&name);
                    check_range(ShardId(shard ^ 2), space, &range).expect_err(&name);
                    let mut longer = range.clone();
                    longer.end = [&KeyRange::prefix(&range.start[..9]).end[..], &[0; 9]].concat().into();
                    check_range(ShardId(shard), space, &longer).expect_err(&name);
                    let mut earlier = range.clone();
                    earlier.start = range.start.slice(..8);
                    check_range(ShardId(shard), space, &earlier).expect_err(&name);
                }
            }
            if shard != u64::MAX {
                let set = KeyRange::prefix(&shard.to_be_bytes()[..]);
                check_range(ShardId(shard), None, &set).expect("all keys of a shard");
                check_range(ShardId(shard + 1), None, &set).expect_err("not this one's");
            }
            let empty = KeyRange { start: key(1, shard ^ 1, ""), end: key(1, shard ^ 1, "") };
            check_range(ShardId(shard), Some(Space::Body), &empty).expect("nothing is in it");
        }
    }

    #[test]
    fn meta_is_the_catalogs_but_for_one_first_byte() {
        let range = |start: &[u8], end: &[u8]| KeyRange {
            start: Bytes::copy_from_slice(start),
            end: Bytes::copy_from_slice(end),
        };
        let check = |shard, range: &KeyRange| check_range(ShardId(shard), Some(Space::Meta), range).is_ok();
        for (start, end) in [(&[][..], &[6][..]), (&[1], &[2]), (&[7], &[0xFF]), (&[5, 9], &[6])] {
            assert!(check(0, &range(start, end)), "{start:?}");
            assert!(!check(1, &range(start, end)), "{start:?}");
        }
        for (start, end) in [(&[][..], &[6, 0][..]), (&[5], &[7]), (&[6], &[7])] {
            assert!(!check(0, &range(start, end)) && !check(1, &range(start, end)), "{start:?}");
        }
        assert!(check(3, &KeyRange::prefix(&key(6, 3, ""))) && !check(0, &KeyRange::prefix(&key(6, 3, ""))));
    }
}
