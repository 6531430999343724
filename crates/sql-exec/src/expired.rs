//! Which documents of a range have expired and are not erased yet, told by the index alone.
//!
//! In: the container's default lifetime and the time of the request. Out: numbers of documents, in order, so that answers from
//! the index leave them out; or nothing where the index cannot tell: it has no entries by which documents expire, because they are
//! being built, or too much has expired at once. Mostly it is one seek that finds nothing, since what has expired is erased soon.
//! Invariant: the answer is the one that `store::Expiry` gives for each document.

use crate::error::ExecuteError;
use astrarium_index::expiry::ExpiryIndex;
use astrarium_index::{Finder, IndexSet};
use astrarium_store::{Expiry, FeedReader};
use std::sync::Arc;

/// Entries read at once.
const STEP: usize = 8_192;
/// Expired documents that are listed at most; beyond that, documents are read.
const LISTED_MAX: usize = 1_000_000;

/// Numbers of the documents of a range that have expired.
#[derive(Clone)]
pub(crate) struct Expired {
    /// In order.
    numbers: Arc<[u64]>,
}

impl Expired {
    pub(crate) fn count(&self) -> u64 {
        self.numbers.len() as u64
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }

    /// Finds them; none if the index cannot tell.
    pub(crate) async fn find(
        reader: &FeedReader,
        set: &IndexSet,
        finder: &Finder,
    ) -> Result<Option<Expired>, ExecuteError> {
        let Expiry { default_ttl, now } = reader.expiry;
        let mut numbers = Vec::new();
        if let Some(default_ttl) = default_ttl {
            let Some(family) = set.expiry() else { return Ok(None) };
            let index = ExpiryIndex { finder, family, default_ttl };
            let mut after = None;
            loop {
                let due = index.due(now, after, STEP).await?;
                numbers.extend(due.iter().map(|entry| entry.number));
                if numbers.len() > LISTED_MAX {
                    return Ok(None);
                }
                if due.len() < STEP {
                    break;
                }
                after = due.last().copied();
            }
            numbers.sort_unstable();
        }
        Ok(Some(Expired { numbers: numbers.into() }))
    }
}
