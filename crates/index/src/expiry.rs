//! Which documents have expired, and which expires next: read from the entries by which they do.
//!
//! In: a [`Finder`], the family ([`IndexSet::expiry`](crate::IndexSet::expiry)), the container's default lifetime, the time. Out: numbers of
//! documents in the order in which they expired, or a time.
//! Invariant: a document is found exactly if `_ts` and its lifetime are at or before the time, whoever looks at the document says the same.

use crate::finder::{Error, Finder, charge_entries};
use crate::kinds::TermRange;
use astrarium_catalog::definition::container::DefaultTtl;
use astrarium_keys::Malformed;
use astrarium_keys::index_entry::{Family, read_entry};
use astrarium_keys::index_expiry::ExpiryTerm;
use astrarium_kv::{Direction, KeyRange, ScanLimit, just_after};

/// The entry of a document that has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueEntry {
    term: ExpiryTerm,
    /// The document.
    pub number: u64,
}

/// The entries of one shard by which its documents expire.
#[derive(Clone, Copy)]
pub struct ExpiryIndex<'a> {
    /// What looks into the indexes of the shard.
    pub finder: &'a Finder,
    /// The family.
    pub family: Family,
    /// How long documents live that name no lifetime.
    pub default_ttl: DefaultTtl,
}

impl ExpiryIndex<'_> {
    /// Documents that have expired at a second, the first or those after an entry; fewer than so many only at the end.
    pub async fn due(
        &self,
        now: u64,
        after: Option<DueEntry>,
        count_max: usize,
    ) -> Result<Vec<DueEntry>, Error> {
        let mut found: Vec<DueEntry> = Vec::new();
        let lasts =
            [Some(ExpiryTerm::At(now)), self.default_seconds().and_then(|default| latest(now, default))];
        for last in lasts.into_iter().flatten() {
            let mut keys = self.keys(last);
            if let Some(after) = after {
                let prefix = self.family.prefix(self.finder.shard);
                let key = [&prefix[..], &after.term.encode(), &after.number.to_be_bytes()].concat();
                keys.start = keys.start.max(just_after(&key));
            }
            let count_left = count_max - found.len();
            if keys.start >= keys.end || count_left == 0 {
                continue;
            }
            let limit = ScanLimit { entry_count_max: count_left, byte_count_max: usize::MAX };
            let batch = self.finder.snapshot.scan_keys(&keys, Direction::Forward, limit).await?;
            charge_entries(batch.keys.len())?;
            for key in batch.keys.iter() {
                let (term, number) = read_entry(key)?;
                found.push(DueEntry { term: read_term(term)?, number });
            }
        }
        Ok(found)
    }

    /// The second at which the next document expires, or did; none if none will.
    pub async fn next(&self) -> Result<Option<u64>, Error> {
        let own = self.first(ExpiryTerm::At(u64::MAX)).await?;
        let default = match self.default_seconds() {
            Some(default) => {
                let first = self.first(ExpiryTerm::After(u64::MAX)).await?;
                first.map(|timestamp| timestamp.saturating_add(default))
            }
            None => None,
        };
        Ok(own.into_iter().chain(default).min())
    }

    fn default_seconds(&self) -> Option<u64> {
        match self.default_ttl {
            DefaultTtl::NoDefault => None,
            DefaultTtl::Seconds(seconds) => Some(u64::from(seconds)),
        }
    }

    /// The second in the first entry of a kind.
    async fn first(&self, kind: ExpiryTerm) -> Result<Option<u64>, Error> {
        let limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
        let batch = self.finder.snapshot.scan_keys(&self.keys(kind), Direction::Forward, limit).await?;
        let Some(key) = batch.keys.last() else { return Ok(None) };
        let (ExpiryTerm::At(second) | ExpiryTerm::After(second)) = read_term(read_entry(key)?.0)?;
        Ok(Some(second))
    }

    /// All entries of a kind up to one term, that included.
    fn keys(&self, last: ExpiryTerm) -> KeyRange {
        let start = match last {
            ExpiryTerm::At(_) => ExpiryTerm::At(0),
            ExpiryTerm::After(_) => ExpiryTerm::After(0),
        };
        let terms = TermRange {
            start: start.encode().to_vec(),
            end: crate::kinds::after(&last.encode()),
            is_point: false,
        };
        self.finder.keys(self.family, &terms)
    }
}

fn read_term(bytes: &[u8]) -> Result<ExpiryTerm, Malformed> {
    ExpiryTerm::decode(bytes).ok_or(Malformed::new("entry of the expiry index"))
}

/// The latest write whose document has expired under a default.
fn latest(now: u64, default: u64) -> Option<ExpiryTerm> {
    now.checked_sub(default).map(ExpiryTerm::After)
}
