//! Where the time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970.
    fn now_micros(&self) -> u64;

    /// Moves the clock forwards by so many seconds; false if it cannot be moved, or not so far.
    fn advance(&self, _seconds: u64) -> bool {
        false
    }

    /// By how many seconds it was moved from what the machine says: who compares with other machines' clocks takes them off.
    fn advanced_seconds(&self) -> u64 {
        0
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine for the time")]
    fn now_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as u64)
    }
}

/// The machine's clock, which can be moved forwards: for tests of programs, which cannot wait for what expires.
#[derive(Debug, Default)]
pub struct AdvancedClock {
    seconds: AtomicU64,
}

/// The farthest that a clock is moved: a hundred years.
const ADVANCED_SECONDS_MAX: u64 = 100 * 366 * 86_400;

impl Clock for AdvancedClock {
    fn now_micros(&self) -> u64 {
        SystemClock.now_micros() + self.advanced_seconds() * 1_000_000
    }

    fn advance(&self, seconds: u64) -> bool {
        let add = |before: u64| before.checked_add(seconds).filter(|after| *after <= ADVANCED_SECONDS_MAX);
        self.seconds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn advanced_seconds(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed)
    }
}

/// A clock that a test sets by hand; clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    micros: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at a time.
    pub fn at_seconds(seconds: u64) -> ManualClock {
        ManualClock { micros: Arc::new(AtomicU64::new(seconds * 1_000_000)) }
    }

    /// Moves the clock, forwards or back.
    pub fn set_seconds(&self, seconds: u64) {
        self.micros.store(seconds * 1_000_000, Ordering::Relaxed);
    }

    /// Moves the clock forwards.
    pub fn advance_seconds(&self, seconds: u64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }

    fn advance(&self, seconds: u64) -> bool {
        let is_near = seconds <= ADVANCED_SECONDS_MAX;
        if is_near {
            self.advance_seconds(seconds);
        }
        is_near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_moves_forwards_and_not_without_end() {
        let clock = AdvancedClock::default();
        let before = SystemClock.now_micros();
        assert!(clock.advance(3_600) && clock.advance(60));
        assert!(clock.now_micros() >= before + 3_660_000_000);
        assert!(!clock.advance(u64::MAX) && !clock.advance(ADVANCED_SECONDS_MAX));
        assert_eq!(clock.advanced_seconds(), 3_660);
        assert!(!SystemClock.advance(1));
    }
}
