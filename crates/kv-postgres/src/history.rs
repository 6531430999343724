//! Whether stores go on from where they were: what is remembered of them is worth nothing once one of them does not.
//!
//! In: what new connections tell of their PostgreSQL (system and timeline), and changes of addresses. Out: a number that changes when a
//! store may have gone back: a standby was promoted that may not have had everything, or a backup restored. Whatever is
//! remembered by counters, which may repeat then with other content, carries the number that it was read under.

use crate::url::StoreUrl;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The histories of all stores together.
#[derive(Debug, Default)]
pub(crate) struct StoreHistories {
    changes: AtomicU64,
}

/// The history of one store, as its connections tell it.
#[derive(Debug, Default)]
pub(crate) struct StoreHistory {
    told: Mutex<String>,
}

impl StoreHistories {
    /// The number that what is read from now on is remembered under.
    pub(crate) fn now(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has everything forgotten.
    pub(crate) fn change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl StoreHistory {
    /// Takes what a new connection tells, before anything is asked of it.
    pub(crate) fn note(&self, told: &str, all: &StoreHistories, url: &StoreUrl) {
        let mut known = self.told.lock();
        if told.is_empty() || *known == told {
            return;
        }
        if !known.is_empty() {
            tracing::warn!(store = ?url, "the store continues another history than before: nothing that was remembered of it is relied on");
            all.change();
        }
        told.clone_into(&mut known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_history_changes_the_number() {
        let (all, store) = (StoreHistories::default(), StoreHistory::default());
        let url = StoreUrl::parse("postgres://ada@localhost/db").unwrap();
        for (told, expected) in [("a1", 0), ("a1", 0), ("", 0), ("a2", 1), ("a2", 1), ("b2", 2)] {
            store.note(told, &all, &url);
            assert_eq!(all.now(), expected, "{told}");
        }
    }
}
