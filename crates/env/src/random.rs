//! Cheap random numbers for identifiers: SplitMix64 over a shared counter, one atomic addition a draw.
//!
//! Not for keys or secrets: whoever sees an output can compute the next.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The odd constant of SplitMix64: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of numbers, shared by all threads.
#[derive(Debug)]
pub struct Random {
    state: AtomicU64,
}

impl Random {
    /// A stream that can be repeated.
    pub fn from_seed(seed: u64) -> Random {
        Random { state: AtomicU64::new(seed) }
    }

    /// A stream from the operating system's randomness (by way of the standard library's hash seed).
    pub fn from_system() -> Random {
        Random::from_seed(RandomState::new().hash_one(0_u64))
    }

    /// The next sixty-four bits.
    pub fn next_u64(&self) -> u64 {
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
