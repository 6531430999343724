//! Which documents of a range have expired, told by the index alone.
//!
//! In: the container's default lifetime and the time of the request. Out: numbers of documents, in order, so that answers from
//! the index leave them out; or nothing where the index cannot tell.
//! How: a document expires so long after its `_ts`, which every index has. Its own lifetime is its `ttl`, which most have. Only
//! entries of documents that are older than the shortest lifetime are read.
//! Invariant: the answer is the one that `store::Expiry` gives for each document.

use crate::error::ExecuteError;
use astrarium_catalog::definition::container::DefaultTtl;
use astrarium_index::entry::{read_entry, read_term};
use astrarium_index::finder::{Error as IndexError, charge_entries};
use astrarium_index::{Access, Condition, Finder, Need, Path, PathStep, Predicate, Served, Type};
use astrarium_kv::{Direction, ScanLimit, just_after};
use astrarium_store::{Expiry, FeedReader};
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// Entries read at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 8_192, byte_count_max: usize::MAX };
/// Documents with a lifetime of their own, and expired ones, that are listed at most.
const LISTED_MAX: usize = 1_000_000;

/// Numbers of the documents of a range that have expired.
#[derive(Clone)]
pub(crate) struct Expired {
    /// In order.
    numbers: Arc<[u64]>,
    /// Entries read to find them.
    pub(crate) entries: u64,
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
        set: &astrarium_index::IndexSet,
        finder: &Finder,
    ) -> Result<Option<Expired>, ExecuteError> {
        let Expiry { default_ttl, now } = reader.expiry;
        let mut search = ExpirySearch { finder, found: Expired { numbers: Arc::from([]), entries: 0 } };
        let default = match default_ttl {
            None => return Ok(Some(search.found)),
            Some(DefaultTtl::NoDefault) => None,
            Some(DefaultTtl::Seconds(seconds)) => Some(u64::from(seconds)),
        };
        let is_computed = |name: &str| {
            reader.container.definition.computed_properties.iter().any(|property| property.name == name)
        };
        let Some(own) =
            served(set, "ttl", Predicate::Types(vec![Type::Number])).filter(|_| !is_computed("ttl"))
        else {
            return Ok(None);
        };
        let Some(lifetimes) = search.lifetimes(&own).await? else { return Ok(None) };
        let own = lifetimes.values().copied().flatten();
        let Some(shortest) = own.chain(default).min() else { return Ok(Some(search.found)) };
        let oldest = Value::Number(now.saturating_sub(shortest) as f64);
        let old = Predicate::Between(Bound::Unbounded, Bound::Included(oldest));
        let Some(old) = served(set, "_ts", old) else { return Ok(None) };
        let mut numbers = Vec::new();
        let is_listed = search
            .each(&old, |timestamp, number| {
                let lifetime = lifetimes.get(&number).copied().unwrap_or(default);
                if lifetime.is_some_and(|lifetime| timestamp as u64 + lifetime <= now) {
                    numbers.push(number);
                }
                numbers.len() <= LISTED_MAX
            })
            .await?;
        numbers.sort_unstable();
        Ok(is_listed.then_some(Expired { numbers: numbers.into(), ..search.found }))
    }
}

/// The entries that have numbers at a path of documents.
fn served(set: &astrarium_index::IndexSet, name: &str, predicate: Predicate) -> Option<Served> {
    let path = Path(vec![PathStep::Name(name.into())]);
    match set.access(&Need::One { condition: Condition { path, predicate }, exact: true }) {
        Access::Entries(served) if served.exact => Some(served),
        _ => None,
    }
}

struct ExpirySearch<'a> {
    finder: &'a Finder,
    found: Expired,
}

impl ExpirySearch<'_> {
    /// The lifetimes of documents that have one of their own; `None` for those that never expire.
    async fn lifetimes(
        &mut self,
        own: &Served,
    ) -> Result<Option<HashMap<u64, Option<u64>, RandomState>>, ExecuteError> {
        let mut lifetimes = HashMap::default();
        let is_listed = self
            .each(own, |seconds, number| {
                lifetimes.insert(number, (seconds >= 0.0).then_some(seconds as u64));
                lifetimes.len() <= LISTED_MAX
            })
            .await?;
        Ok(is_listed.then_some(lifetimes))
    }

    /// Calls `take` with the value and the document of each entry, until it has enough; whether it had not.
    async fn each(
        &mut self,
        served: &Served,
        mut take: impl FnMut(f64, u64) -> bool,
    ) -> Result<bool, ExecuteError> {
        for terms in &served.ranges {
            let mut rest = self.finder.keys(served.family, terms);
            loop {
                let scan = self.finder.snapshot.scan_keys(&rest, Direction::Forward, STEP);
                let batch = scan.await.map_err(IndexError::from)?;
                charge_entries(batch.keys.len())?;
                self.found.entries += batch.keys.len() as u64;
                for key in batch.keys.iter() {
                    let (term, number) = read_entry(key).map_err(IndexError::from)?;
                    let Value::Number(value) = read_term(term).map_err(IndexError::from)? else { continue };
                    if !take(value, number) {
                        return Ok(false);
                    }
                }
                match batch.keys.last() {
                    Some(last) if batch.more => rest.start = just_after(last),
                    _ => break,
                }
            }
        }
        Ok(true)
    }
}
