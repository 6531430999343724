//! Prefixes that were dropped and under which the engine in memory may still have keys.
//!
//! In: prefixes in the order of the commits that dropped them. Out: what a view of a sequence number does not see; the next prefix whose keys may go.
//! Every read asks, so the list is put in order once after each change, not for each of them.

use crate::{KeyPrefix, PrefixSet};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::OnceLock;

#[derive(Default)]
pub(super) struct PendingDrops {
    drops: VecDeque<(u64, KeyPrefix)>,
    /// All of them, made when they are first looked at after a change.
    covered: OnceLock<PrefixSet>,
}

impl PendingDrops {
    /// Adds what a commit drops.
    pub(super) fn add(&mut self, sequence: u64, prefixes: &[KeyPrefix]) {
        if !prefixes.is_empty() {
            self.drops.extend(prefixes.iter().map(|prefix| (sequence, prefix.clone())));
            self.covered = OnceLock::new();
        }
    }

    /// What a view of this sequence number does not see any more, whatever is left of it.
    pub(super) fn seen_from(&self, sequence: u64) -> Cow<'_, PrefixSet> {
        if self.drops.back().is_none_or(|(dropped_at, _)| *dropped_at <= sequence) {
            return Cow::Borrowed(self.covered.get_or_init(|| self.all().collect()));
        }
        let seen = self.drops.iter().take_while(|(dropped_at, _)| *dropped_at <= sequence);
        Cow::Owned(seen.map(|(_, prefix)| prefix.clone()).collect())
    }

    /// The oldest, if no view is older than it.
    pub(super) fn next(&self, oldest_view: u64) -> Option<&KeyPrefix> {
        let next = self.drops.front().filter(|(dropped_at, _)| *dropped_at <= oldest_view);
        next.map(|(_, prefix)| prefix)
    }

    /// No key of the oldest is left.
    pub(super) fn reclaimed(&mut self) {
        self.drops.pop_front();
        self.covered = OnceLock::new();
    }

    pub(super) fn all(&self) -> impl Iterator<Item = KeyPrefix> + '_ {
        self.drops.iter().map(|(_, prefix)| prefix.clone())
    }
}
