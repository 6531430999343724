//! Blocks of runs that were read lately, within a bound of memory.
//!
//! In: a run's number and a block's place in it. Out: its bytes, if they are still here.
//! Which of them stay is quick_cache's affair (decision 0023): what is asked for often stays, also while much is read once, and
//! goes when others are asked for instead.
//! Invariant: the bytes of all blocks here stay below the bound given at the beginning.

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

/// What a block costs besides its bytes: its place, its slot, its allocation.
const BLOCK_OVERHEAD: usize = 96;

/// About what a block has; only how much room is made at the beginning depends on it.
const BLOCK_BYTES: u64 = 4 << 10;

type Key = (u64, u32);

pub(crate) struct BlockCache {
    blocks: Cache<Key, Bytes, BlockWeighter, RandomState>,
}

#[derive(Clone)]
struct BlockWeighter;

impl Weighter<Key, Bytes> for BlockWeighter {
    fn weight(&self, _: &Key, bytes: &Bytes) -> u64 {
        (bytes.len() + BLOCK_OVERHEAD) as u64
    }
}

impl BlockCache {
    pub(crate) fn new(bytes_max: u64) -> BlockCache {
        let block_count = usize::try_from(bytes_max / BLOCK_BYTES).unwrap_or(usize::MAX);
        let hasher = RandomState::default();
        let blocks = Cache::with(block_count, bytes_max, BlockWeighter, hasher, DefaultLifecycle::default());
        BlockCache { blocks }
    }

    pub(crate) fn get(&self, run: u64, block: usize) -> Option<Bytes> {
        self.blocks.get(&(run, block as u32))
    }

    pub(crate) fn insert(&self, run: u64, block: usize, bytes: Bytes) {
        self.blocks.insert((run, block as u32), bytes);
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
        }
        let held = cache.blocks.weight();
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

    /// Room for half of what some questions read; then others are asked.
    #[test]
    fn goes_over_to_what_is_asked_for_now() {
        let cache = BlockCache::new(4096 * (100 + BLOCK_OVERHEAD as u64));
        let mut random = 7_u64;
        let mut hits = |run: u64| {
            let asked = 40_000;
            let found = (0..asked).filter(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // The lower, the more often.
                let share = (random >> 32) as f64 / f64::from(u32::MAX);
                let block = (share * share * share * 8192.0) as usize;
                let found = cache.get(run, block);
                if found.is_none() {
                    cache.insert(run, block, Bytes::from(vec![1; 100]));
                }
                found.is_some()
            });
            found.count() * 100 / asked
        };
        hits(1);
        let settled = hits(1);
        assert!(settled >= 65, "{settled} of 100");
        hits(2);
        let renewed = hits(2);
        assert!(renewed >= 45, "{renewed} of 100 of another run; before, {settled}");
    }
}
