//! What was dropped and may still take space: the list, and the filter that keeps compactions from writing it anew.
//!
//! In: prefixes that groups drop (`committer`), and that are given back (`reclaim`). Out: what views must not show, and a verdict
//! for each item that a compaction meets.
//! Invariants
//! - A prefix is in the list before the view of the group that dropped it is published, so that no view shows what is going.
//! - It is in storage before it is in the list: nothing goes that a crash could bring back into sight.
//! - fjall's own compactions never fail because of us; only one that the reclaimer has begun may be given up.

use astrarium_kv::{KeyPrefix, PrefixSet, Space};
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Items between two looks whether a compaction is to be given up.
const ITEMS_AT_ONCE: u32 = 1024;

/// All prefixes that were dropped and are not given back.
#[derive(Default)]
pub(crate) struct DropList {
    /// Replaced as a whole; a lock of the standard library, because a filter's factory has to outlive panics.
    listed: RwLock<Arc<Listed>>,
}

/// The list as it was at some time.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) prefixes: Vec<KeyPrefix>,
    pub(crate) covered: PrefixSet,
}

impl DropList {
    pub(crate) fn load(&self) -> Arc<Listed> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, prefixes: impl IntoIterator<Item = KeyPrefix>) {
        self.replace(|list| list.extend(prefixes));
    }

    pub(crate) fn remove(&self, prefixes: &[KeyPrefix]) {
        let removed: BTreeSet<_> = prefixes.iter().collect();
        self.replace(|list| list.retain(|prefix| !removed.contains(prefix)));
    }

    fn replace(&self, change: impl FnOnce(&mut Vec<KeyPrefix>)) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let mut prefixes = listed.prefixes.clone();
        change(&mut prefixes);
        prefixes.sort_unstable();
        prefixes.dedup();
        let covered = prefixes.iter().cloned().collect();
        *listed = Arc::new(Listed { prefixes, covered });
    }
}

/// Whether the compaction that runs on a thread is to be given up.
pub(crate) type GiveUp = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    static GIVE_UP: RefCell<Option<GiveUp>> = const { RefCell::new(None) };
}

/// Runs a compaction on this thread that ends with an error as soon as it is to be given up.
pub(crate) fn compact_unless<T>(give_up: GiveUp, compact: impl FnOnce() -> T) -> T {
    GIVE_UP.set(Some(give_up));
    let outcome = compact();
    GIVE_UP.set(None);
    outcome
}

/// Makes filters for the compactions of one space.
pub(crate) struct FilterFactory {
    pub(crate) space: Space,
    pub(crate) drops: Arc<DropList>,
}

struct DropFilter {
    space: Space,
    listed: Arc<Listed>,
    give_up: Option<GiveUp>,
    item_count: u32,
}

impl Factory for FilterFactory {
    fn name(&self) -> &'static str {
        "dropped prefixes"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let give_up = GIVE_UP.with_borrow(Clone::clone);
        Box::new(DropFilter { space: self.space, listed: self.drops.load(), give_up, item_count: 0 })
    }
}

impl CompactionFilter for DropFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if let Some(give_up) = &self.give_up {
            self.item_count += 1;
            if self.item_count.is_multiple_of(ITEMS_AT_ONCE) && give_up() {
                return Err(std::io::Error::other("given up for what is more urgent").into());
            }
        }
        // Nobody writes under the prefix again, so there is nothing that a tombstone would have to hide.
        Ok(if self.listed.covered.covers(Some(self.space), item.key()) {
            Verdict::Destroy
        } else {
            Verdict::Keep
        })
    }
}
