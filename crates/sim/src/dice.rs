//! Chance from a seed.

use astrarium_env::Random;

/// A stream of choices that can be repeated.
pub(crate) struct Dice {
    random: Random,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice { random: Random::from_seed(seed) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.random.next_u64()
    }

    /// A number from 0, below the limit, which is not 0.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// True in so many cases of a thousand.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }
}
