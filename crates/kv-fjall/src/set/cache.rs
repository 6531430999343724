//! Blocks of run files that were read lately, within a bound of memory.
//!
//! In: a file's number and a block's place in it. Out: its bytes, if they are still here.
//! When a share is full, a hand goes around: what was used since it last came by stays, the first that was not goes.
//! The cache is cut into shares by hash, so that readers rarely wait for each other.
//! Invariant: the bytes of all blocks here stay below the bound given at the beginning.

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::BuildHasher;

/// Shares; a power of two.
const SHARE_COUNT: usize = 16;

/// What a block costs besides its bytes: its entry in the map, its slot, its allocation.
const BLOCK_OVERHEAD: usize = 96;

type Key = (u64, u32);

pub(super) struct BlockCache {
    shares: [Mutex<Share>; SHARE_COUNT],
    share_bytes_max: usize,
    hasher: RandomState,
}

#[derive(Default)]
struct Share {
    places: HashMap<Key, usize, RandomState>,
    slots: Vec<Slot>,
    hand: usize,
    byte_count: usize,
}

struct Slot {
    key: Key,
    bytes: Bytes,
    is_used: bool,
}

impl BlockCache {
    pub(super) fn new(bytes_max: u64) -> BlockCache {
        BlockCache {
            shares: Default::default(),
            share_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX) / SHARE_COUNT,
            hasher: RandomState::default(),
        }
    }

    pub(super) fn get(&self, run: u64, block: usize) -> Option<Bytes> {
        let key = (run, block as u32);
        let mut share = self.share(key).lock();
        let place = *share.places.get(&key)?;
        let slot = &mut share.slots[place];
        slot.is_used = true;
        Some(slot.bytes.clone())
    }

    pub(super) fn insert(&self, run: u64, block: usize, bytes: Bytes) {
        let key = (run, block as u32);
        let mut share = self.share(key).lock();
        if bytes.len() + BLOCK_OVERHEAD > self.share_bytes_max || share.places.contains_key(&key) {
            return;
        }
        share.make_room(self.share_bytes_max - bytes.len() - BLOCK_OVERHEAD);
        share.byte_count += bytes.len() + BLOCK_OVERHEAD;
        let place = share.slots.len();
        share.places.insert(key, place);
        share.slots.push(Slot { key, bytes, is_used: false });
    }

    fn share(&self, key: Key) -> &Mutex<Share> {
        &self.shares[self.hasher.hash_one(key) as usize % SHARE_COUNT]
    }
}

impl Share {
    fn make_room(&mut self, byte_count_max: usize) {
        while self.byte_count > byte_count_max {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = &mut self.slots[self.hand];
            if std::mem::take(&mut slot.is_used) {
                self.hand += 1;
                continue;
            }
            // The last slot takes the place, and its turn comes next.
            let slot = self.slots.swap_remove(self.hand);
            self.places.remove(&slot.key);
            self.byte_count -= slot.bytes.len() + BLOCK_OVERHEAD;
            if let Some(moved) = self.slots.get(self.hand) {
                self.places.insert(moved.key, self.hand);
            }
        }
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
        let held: usize = cache.shares.iter().map(|share| share.lock().byte_count).sum();
        assert!((1 << 19..=1 << 20).contains(&held), "{held}");
        let mut found = 0;
        for block in 0..10_000 {
            if let Some(bytes) = cache.get(1, block) {
                assert_eq!(bytes[0], block as u8);
                found += 1;
            }
        }
        assert_eq!(found, cache.shares.iter().map(|share| share.lock().slots.len()).sum::<usize>());
        assert!(cache.get(2, 9_999).is_none(), "another file");
        cache.insert(3, 0, Bytes::from(vec![0; 1 << 20]));
        assert!(cache.get(3, 0).is_none(), "too large to be kept");
    }
}
