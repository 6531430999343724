//! Where whoever meets damage of the set's files tells it.
//!
//! In: what was found, from any reader. Out: the first of it, for the merger, which sets the files aside.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub(crate) struct Alarm {
    found: Mutex<Option<String>>,
    /// Whether something was found: asked by every query.
    is_raised: AtomicBool,
}

impl Alarm {
    /// Tells of damage; the first word stays until it is taken.
    pub(crate) fn raise(&self, what: &str) {
        self.found.lock().get_or_insert_with(|| what.to_owned());
        self.is_raised.store(true, Ordering::Release);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }

    /// What was found, once.
    pub(super) fn take(&self) -> Option<String> {
        let found = self.found.lock().take();
        self.is_raised.store(false, Ordering::Release);
        found
    }
}
