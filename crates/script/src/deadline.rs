//! Until when an execution may run, and the flag that ends it sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells a sandbox, from any thread, to stop what it is doing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes it back: nobody who could have set it is left.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The times of one execution.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    /// When it is ended.
    pub(crate) end: Instant,
    /// Until when its calls are accepted.
    pub(crate) accept_end: Instant,
}

impl Deadline {
    /// From now on; calls are accepted during the same part of a shortened time as of the whole limit.
    pub(crate) fn starting_now(time: Duration, accepted_part: f64) -> Deadline {
        let now = Instant::now();
        Deadline { end: now + time, accept_end: now + time.mul_f64(accepted_part.clamp(0.0, 1.0)) }
    }

    pub(crate) fn has_passed(&self) -> bool {
        Instant::now() >= self.end
    }

    pub(crate) fn accepts(&self) -> bool {
        Instant::now() < self.accept_end
    }
}
