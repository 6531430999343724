//! Items in memory within a bound of bytes: the part that all caches of the engine have in common.
//!
//! In: items, each with a hash and a weight. Out: an item by hash and comparison, if it is still here.
//! When there is no room, a hand goes around: what was used since it last came by stays, the first that was not goes. What
//! came last takes its place and is looked at next, so items that are read once push out each other rather than the rest.
//! Invariant: the weights of all items together stay within the bound given with each insertion.
//!
//! Not here: locks, and what items are.

use hashbrown::HashTable;

/// A cache of one thread.
pub struct ClockCache<T> {
    /// Places in `slots`, by hash.
    places: HashTable<u32>,
    slots: Vec<Slot<T>>,
    hand: usize,
    byte_count: usize,
}

struct Slot<T> {
    item: T,
    hash: u64,
    byte_count: usize,
    is_used: bool,
}

impl<T> Default for ClockCache<T> {
    fn default() -> ClockCache<T> {
        ClockCache { places: HashTable::new(), slots: Vec::new(), hand: 0, byte_count: 0 }
    }
}

impl<T> ClockCache<T> {
    /// The item with this hash that is the one looked for.
    pub fn get(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let place = self.place(hash, is_it)?;
        let slot = &mut self.slots[place];
        slot.is_used = true;
        Some(&slot.item)
    }

    /// Keeps an item that is not here yet, if it is not too large for the bound.
    pub fn insert(&mut self, hash: u64, item: T, byte_count: usize, byte_count_max: usize) {
        if byte_count > byte_count_max {
            return;
        }
        self.make_room(byte_count_max - byte_count);
        let Ok(place) = u32::try_from(self.slots.len()) else { return };
        self.byte_count += byte_count;
        self.slots.push(Slot { item, hash, byte_count, is_used: false });
        let slots = &self.slots;
        self.places.insert_unique(hash, place, |place| slots[*place as usize].hash);
    }

    /// Forgets an item.
    pub fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) {
        if let Some(place) = self.place(hash, is_it) {
            self.remove_at(place);
        }
    }

    /// Forgets all items but some.
    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        let mut place = 0;
        while place < self.slots.len() {
            if is_kept(&self.slots[place].item) {
                place += 1;
            } else {
                self.remove_at(place);
            }
        }
    }

    /// Whether nothing is here.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The weights of all items together.
    #[cfg(test)]
    pub fn byte_count(&self) -> usize {
        self.byte_count
    }

    fn place(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        let found = self.places.find(hash, |place| is_it(&self.slots[*place as usize].item))?;
        Some(*found as usize)
    }

    fn make_room(&mut self, byte_count_max: usize) {
        while self.byte_count > byte_count_max {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            if std::mem::take(&mut self.slots[self.hand].is_used) {
                self.hand += 1;
            } else {
                self.remove_at(self.hand);
            }
        }
    }

    /// Removes a slot; the last one takes its place.
    fn remove_at(&mut self, place: usize) {
        let slot = self.slots.swap_remove(place);
        self.byte_count -= slot.byte_count;
        if let Ok(entry) = self.places.find_entry(slot.hash, |other| *other as usize == place) {
            entry.remove();
        }
        let moved_from = self.slots.len();
        if let Some(moved) = self.slots.get(place)
            && let Some(known) = self.places.find_mut(moved.hash, |other| *other as usize == moved_from)
        {
            *known = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const BYTES_MAX: usize = 50;

    proptest! {
        /// What is found is what was put there last, and what was just put there is found.
        #[test]
        fn agrees_with_a_map(steps in vec((0..3u8, 0..20u64, 0..60usize), 0..200), collide in any::<bool>()) {
            let hash_of = |key: u64| if collide { 7 } else { key };
            let mut clock = ClockCache::default();
            let mut known: HashMap<u64, usize> = HashMap::new();
            for (step, key, weight) in steps {
                let hash = hash_of(key);
                let is_it = |item: &(u64, usize)| item.0 == key;
                match step {
                    0 => {
                        if let Some(item) = clock.get(hash, is_it) {
                            prop_assert_eq!(Some(&item.1), known.get(&key));
                        }
                    }
                    1 => {
                        clock.remove(hash, is_it);
                        known.remove(&key);
                        prop_assert!(clock.get(hash, is_it).is_none());
                    }
                    _ => {
                        clock.remove(hash, is_it);
                        known.remove(&key);
                        clock.insert(hash, (key, weight), weight, BYTES_MAX);
                        prop_assert_eq!(clock.get(hash, is_it).is_some(), weight <= BYTES_MAX);
                        if weight <= BYTES_MAX {
                            known.insert(key, weight);
                        }
                    }
                }
                prop_assert!(clock.byte_count() <= BYTES_MAX);
            }
        }
    }
}
