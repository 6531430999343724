//! Memory that clients can size has an owner: a budget of bytes, taken before they are used and given back by dropping.
//!
//! In: who needs how many bytes. Out: a [`Reservation`], or nothing when too much is taken already; then the caller waits
//! or refuses, and says so.
//! Invariant: what is reserved never exceeds the budget, and every reservation is given back once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A budget of bytes, shared by all who draw on it.
#[derive(Debug, Clone)]
pub struct Memory {
    shared: Arc<MemoryPool>,
}

#[derive(Debug)]
struct MemoryPool {
    bytes_max: usize,
    taken: AtomicUsize,
    refused: AtomicUsize,
}

impl Memory {
    /// A budget of so many bytes.
    pub fn new(bytes_max: usize) -> Memory {
        let shared = MemoryPool { bytes_max, taken: AtomicUsize::new(0), refused: AtomicUsize::new(0) };
        Memory { shared: Arc::new(shared) }
    }

    /// A budget without a bound.
    pub fn unlimited() -> Memory {
        Memory::new(usize::MAX)
    }

    /// How many bytes it has altogether.
    pub fn bytes_max(&self) -> usize {
        self.shared.bytes_max
    }

    /// How many of them are taken.
    pub fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// How often somebody was refused.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// A reservation of nothing yet.
    pub fn empty(&self) -> Reservation {
        Reservation { memory: self.clone(), bytes: 0 }
    }

    /// Takes bytes, if there are so many left.
    pub fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.empty();
        reservation.resize(bytes).then_some(reservation)
    }

    fn take(&self, bytes: usize) -> bool {
        let shared = &*self.shared;
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= shared.bytes_max);
        let taken = shared.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !taken {
            shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: Memory,
    bytes: usize,
}

impl Reservation {
    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds another number of bytes; `false`, and no change, if there are not so many left.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            if !self.memory.take(bytes - self.bytes) {
                return false;
            }
        } else {
            self.memory.shared.taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.shared.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let memory = Memory::new(100);
        let first = memory.reserve(60).expect("there is room");
        assert!(memory.reserve(41).is_none());
        let mut second = memory.reserve(40).expect("there is room");
        assert_eq!((memory.taken(), memory.refused()), (100, 1));
        assert!(!second.resize(41));
        assert!(second.resize(10));
        drop(first);
        assert!(second.resize(100));
        drop(second);
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn sums_beyond_all_numbers_are_refused() {
        let memory = Memory::unlimited();
        let held = memory.reserve(10).expect("there is room");
        assert!(memory.reserve(usize::MAX).is_none());
        assert_eq!(held.bytes(), 10);
    }
}
