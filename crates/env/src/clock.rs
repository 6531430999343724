//! Where the time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970.
    fn now_micros(&self) -> u64;
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
}
