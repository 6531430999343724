//! What an operation is given from outside: the time, random numbers, waiting, and how much it may take.
//!
//! Everything below the server takes both from an [`Env`], so that a test can set the clock and repeat a run from a
//! seed. Clones of an `Env` share their state.
//! Not here: threads and tasks, which belong to the server and to engines.

mod blocking;
mod clock;
mod files;
mod memory;
mod random;
mod time;
mod work;
mod yields;

pub use blocking::{allow_blocking, may_block};
pub use clock::{AdvancedClock, Clock, ClockShift, ManualClock, ShiftedClock, SystemClock};
pub use files::read_file;
pub use memory::{Memory, Reservation};
pub use random::Random;
pub use time::{Instant, Timeline, sleep, timeout, with_timeline};
pub use work::{Meter, Metered, Stopped, Turn, Work, charge, check, refuse, within};
pub use yields::yield_if_due;

use std::sync::Arc;

/// Clock and randomness, shared by everything that runs in one database.
#[derive(Clone)]
pub struct Env {
    shared: Arc<EnvParts>,
}

struct EnvParts {
    clock: Box<dyn Clock>,
    random: Random,
}

impl Env {
    /// The machine's clock and a seed from the operating system.
    pub fn system() -> Env {
        Env::new(Box::new(SystemClock), Random::from_system())
    }

    /// The same with a clock that can be moved forwards.
    pub fn with_advanced_clock() -> Env {
        Env::new(Box::new(AdvancedClock::default()), Random::from_system())
    }

    /// The machine's clock, which can be shifted while it runs to agree with the clock of a store.
    pub fn with_shifted_clock() -> (Env, ClockShift) {
        Env::with_clock_shifted_over(Box::new(SystemClock))
    }

    /// The same over another clock: one that can be moved forwards, say.
    pub fn with_clock_shifted_over(clock: Box<dyn Clock>) -> (Env, ClockShift) {
        let (clock, shift) = ShiftedClock::over(clock);
        (Env::new(Box::new(clock), Random::from_system()), shift)
    }

    /// A given clock and a given seed.
    pub fn new(clock: Box<dyn Clock>, random: Random) -> Env {
        Env { shared: Arc::new(EnvParts { clock, random }) }
    }

    /// Microseconds since 1970.
    pub fn now_micros(&self) -> u64 {
        self.shared.clock.now_micros()
    }

    /// Seconds since 1970, rounded down: the unit of `_ts`, TTL and token expiry.
    pub fn now_seconds(&self) -> u64 {
        self.now_micros() / 1_000_000
    }

    /// Moves the clock forwards by so many seconds; false if it cannot be moved, or not so far.
    pub fn advance_clock(&self, seconds: u64) -> bool {
        self.shared.clock.advance(seconds)
    }

    /// By how many seconds the clock was moved from what the machine says.
    pub fn advanced_seconds(&self) -> u64 {
        self.shared.clock.advanced_seconds()
    }

    /// Sixty-four random bits; not for secrets.
    pub fn random_u64(&self) -> u64 {
        self.shared.random.next_u64()
    }

    /// A random identifier in UUID version 4 form; not for secrets.
    pub fn random_uuid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&self.random_u64().to_be_bytes());
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let env = Env::new(Box::new(ManualClock::at_seconds(0)), Random::from_seed(seed));
            (env.random_u64(), env.random_uuid())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn uuids_carry_version_and_variant() {
        let bytes = Env::system().random_uuid();
        assert_eq!((bytes[6] >> 4, bytes[8] >> 6), (4, 2));
    }
}
