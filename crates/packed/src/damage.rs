//! Where whoever meets damage of the set's blobs tells it.
//!
//! In: what was found, from any reader. Out: the first of it, for the merger, which sets the blobs aside.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first damage that somebody met, until it is taken.
#[derive(Default)]
pub struct DamageSignal {
    found: Mutex<Option<String>>,
    /// Whether something was found: asked by every query.
    is_raised: AtomicBool,
}

impl DamageSignal {
    /// Tells of damage; the first word stays until it is taken.
    pub fn raise(&self, what: &str) {
        self.found.lock().get_or_insert_with(|| what.to_owned());
        self.is_raised.store(true, Ordering::Release);
    }

    /// Whether there is some.
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }

    /// What was found, once.
    pub fn take(&self) -> Option<String> {
        let found = self.found.lock().take();
        self.is_raised.store(false, Ordering::Release);
        found
    }
}
