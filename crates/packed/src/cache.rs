//! Blocks of runs that were read lately, within a bound of memory.
//!
//! In: a run's number and a block's place in it. Out: its bytes, if they are still here.
//! The cache is cut into shares by hash, so that readers rarely wait for each other.
//! Invariant: the bytes of all blocks here stay below the bound given at the prefix.

use crate::clock::ClockCache;
use bytes::Bytes;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::hash::BuildHasher;

/// Shares; a power of two.
const SHARE_COUNT: usize = 16;

/// What a block costs besides its bytes: its place, its slot, its allocation.
const BLOCK_OVERHEAD: usize = 96;

type Key = (u64, u32);

pub(crate) struct BlockCache {
    shares: [Mutex<ClockCache<(Key, Bytes)>>; SHARE_COUNT],
    share_bytes_max: usize,
    hasher: RandomState,
}

impl BlockCache {
    pub(crate) fn new(bytes_max: u64) -> BlockCache {
        BlockCache {
            shares: Default::default(),
            share_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX) / SHARE_COUNT,
            hasher: RandomState::default(),
        }
    }

    pub(crate) fn get(&self, run: u64, block: usize) -> Option<Bytes> {
        let key = (run, block as u32);
        let (share, hash) = self.share(key);
        share.lock().get(hash, |(other, _)| *other == key).map(|(_, bytes)| bytes.clone())
    }

    pub(crate) fn insert(&self, run: u64, block: usize, bytes: Bytes) {
        let key = (run, block as u32);
        let (share, hash) = self.share(key);
        let mut share = share.lock();
        if share.get(hash, |(other, _)| *other == key).is_none() {
            let byte_count = bytes.len() + BLOCK_OVERHEAD;
            share.insert(hash, (key, bytes), byte_count, self.share_bytes_max);
        }
    }

    fn share(&self, key: Key) -> (&Mutex<ClockCache<(Key, Bytes)>>, u64) {
        let hash = self.hasher.hash_one(key);
        // The table of a share looks at the lowest and the highest bits.
        (&self.shares[(hash >> 32) as usize % SHARE_COUNT], hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_used_within_the_bound() {
        let cache = BlockCache::new(1 << 20);
        for block in 0..10_000 {
            cache.insert(1, block, Bytes::from(vec![block as u8; 1000]));
            assert!(cache.get(1, 0).is_some(), "a block in use stays, at {block}");
            cache.insert(1, 0, Bytes::new());
        }
        let held: usize = cache.shares.iter().map(|share| share.lock().byte_count()).sum();
        assert!((1 << 19..=1 << 20).contains(&held), "{held}");
        let mut found = 0;
        for block in 0..10_000 {
            if let Some(bytes) = cache.get(1, block) {
                assert_eq!(bytes[0], block as u8);
                found += 1;
            }
        }
        assert!((400..1_000).contains(&found), "{found}");
        assert!(cache.get(2, 9_999).is_none(), "another run");
        cache.insert(3, 0, Bytes::from(vec![0; 1 << 20]));
        assert!(cache.get(3, 0).is_none(), "too large to be kept");
    }
}
