//! From an access to numbers of documents, in their order.
//!
//! In: a snapshot, a shard, an [`Access`]. Out: [`Candidates`], which give numbers from any number on, so a page of a
//! query goes on where the last ended without reading what came before.
//! How: the documents of one term are in the order of their numbers in the set already. Several terms are merged, several
//! accesses are joined by leaping: each is asked for its first number not below the other's. A range of many terms is
//! read whole and sorted, if it is not too large.
//! Invariant: candidates are never fewer than the access says. A part of a conjunction that would cost more than it saves
//! is left out, and the answer is then not exact.

use crate::choice::Wanted;
use crate::index_set::{Access, IndexSet};
use crate::kinds::{Served, TermRange};
use astrarium_env::Stopped;
use astrarium_keys::Malformed;
use astrarium_keys::index_entry::{Family, read_entry};
use astrarium_kv::{self as kv, Direction, KeyRange, ScanLimit, Snapshot, just_after};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;

/// Why an index cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine failed.
    #[error(transparent)]
    Storage(#[from] kv::Error),
    /// Stored bytes are damaged.
    #[error("stored data is damaged: {0}")]
    Malformed(#[from] Malformed),
    /// The work that the entries are read for has to end.
    #[error("the search was stopped")]
    Stopped(#[from] Stopped),
}

/// Steps to begin a scan of entries, and to take one in.
const SCAN_STEPS: u64 = 100;
const ENTRY_STEPS: u64 = 4;

/// Charges for entries that were read in one scan; an error when the work has to end.
pub fn charge_entries(count: usize) -> Result<(), Stopped> {
    astrarium_env::charge(SCAN_STEPS + count as u64 * ENTRY_STEPS)
}

/// Entries of a range that are read and sorted at most.
const SORTED_MAX: u64 = 4_000_000;
/// A term is joined if it has at most so many times the documents of the smallest part: a leap costs about half of what
/// looking at a document costs, so it pays unless nearly every document has the term.
const TERM_JOIN_FACTOR: u64 = 1_000;
/// A range is joined if it has at most so many times the documents of the smallest part.
const RANGE_JOIN_FACTOR: u64 = 4;
/// Entries read first, and at most, in one step along a term.
const STEP: (usize, usize) = (32, 4_096);
/// Entries read after a leap.
const LEAP_STEP: usize = 2;

/// Looks into the indexes of one shard.
#[derive(Clone)]
pub struct Finder {
    /// The view of the data.
    pub snapshot: Arc<dyn Snapshot>,
    /// The shard.
    pub shard: u64,
}

/// Documents that may meet a need, in the order of their numbers.
pub struct Candidates {
    stream: Stream,
    /// About how many there are.
    pub estimate: u64,
    /// Whether they are exactly the documents that meet the need.
    pub exact: bool,
    /// Entries read so far.
    pub entries: u64,
}

impl Finder {
    /// About how many entries a served condition has.
    pub async fn estimate(&self, served: &Served) -> Result<u64, Error> {
        let mut sum = 0;
        for range in &served.ranges {
            astrarium_env::charge(SCAN_STEPS)?;
            sum += self.estimate_range(served.family, range).await?;
        }
        Ok(sum)
    }

    /// About how many entries a range of terms has.
    pub async fn estimate_range(&self, family: Family, range: &TermRange) -> Result<u64, Error> {
        Ok(self.snapshot.estimate_keys(&self.keys(family, range)).await?)
    }

    /// How many entries a family has.
    pub async fn count(&self, family: Family) -> Result<u64, Error> {
        Ok(self.snapshot.count_keys(&family.prefix(self.shard)).await?)
    }

    /// The numbers of all documents that have an entry in a family, in order, and how many entries were read.
    pub async fn numbers(&self, family: Family) -> Result<(Vec<u64>, u64), Error> {
        self.sorted(family, &[TermRange::everything()]).await
    }

    /// The keys of a range of terms.
    pub fn keys(&self, family: Family, range: &TermRange) -> KeyRange {
        let prefix = family.prefix(self.shard);
        let bound = |terms: &[u8]| Bytes::from([&prefix[..], terms].concat());
        KeyRange { start: bound(&range.start), end: bound(&range.end) }
    }

    /// The documents of an access, those left out of the index included; `None` for all documents. With `whole` every
    /// part of it counts, whatever it costs.
    pub async fn candidates(
        &self,
        set: &IndexSet,
        access: &Access,
        whole: bool,
    ) -> Result<Option<Candidates>, Error> {
        let Some(mut found) = self.prepare(access, whole).await? else { return Ok(None) };
        if self.count(set.excluded()).await? > 0 {
            let left_out = Stream::Term(TermCursor::new(set.excluded().prefix(self.shard).to_vec()));
            found.stream = Stream::Merged(vec![found.stream, left_out]);
            found.exact = false;
        }
        Ok(Some(found))
    }

    fn prepare<'a>(
        &'a self,
        access: &'a Access,
        whole: bool,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Candidates>, Error>> + Send + 'a>> {
        Box::pin(async move {
            let listed = |numbers: Vec<u64>, exact: bool, entries: u64| {
                let estimate = numbers.len() as u64;
                Some(Candidates { stream: Stream::Listed { numbers, at: 0 }, estimate, exact, entries })
            };
            match access {
                Access::Everything => Ok(None),
                Access::Nothing => Ok(listed(Vec::new(), true, 0)),
                Access::Entries(served) if served.is_terms() => Ok(Some(self.terms(served).await?)),
                Access::Entries(served) => {
                    if !whole && self.estimate(served).await? > SORTED_MAX {
                        return Ok(None);
                    }
                    let (numbers, entries) = self.sorted(served.family, &served.ranges).await?;
                    Ok(listed(numbers, served.exact, entries))
                }
                Access::Any(parts) => {
                    let mut streams = Vec::new();
                    let (mut estimate, mut exact, mut entries) = (0_u64, true, 0);
                    for part in parts {
                        let Some(found) = self.prepare(part, whole).await? else { return Ok(None) };
                        estimate = estimate.saturating_add(found.estimate);
                        exact &= found.exact;
                        entries += found.entries;
                        streams.push(found.stream);
                    }
                    Ok(Some(Candidates { stream: Stream::Merged(streams), estimate, exact, entries }))
                }
                Access::All(parts) => self.joined(parts, whole).await,
                Access::Combined { .. } => {
                    let chosen = self.chosen(access, Wanted::default()).await?;
                    self.prepare(&chosen, whole).await
                }
            }
        })
    }

    /// The documents of all terms of a served condition. The first of each term are read at once: mostly that is all of
    /// them, and then nothing has to be estimated.
    async fn terms(&self, served: &Served) -> Result<Candidates, Error> {
        let prefix = served.family.prefix(self.shard);
        let mut streams = Vec::with_capacity(served.ranges.len());
        let (mut estimate, mut entries) = (0_u64, 0);
        for range in &served.ranges {
            let mut cursor = TermCursor::new([&prefix[..], &range.start].concat());
            cursor.read(self, 0, &mut entries).await?;
            let more = !cursor.at_end;
            let read = cursor.numbers.len() as u64;
            estimate = estimate.saturating_add(if more {
                self.snapshot.estimate_keys(&self.keys(served.family, range)).await?.max(read + 1)
            } else {
                read
            });
            streams.push(Stream::Term(cursor));
        }
        let stream = if streams.len() == 1 { streams.remove(0) } else { Stream::Merged(streams) };
        Ok(Candidates { stream, estimate, exact: served.exact, entries })
    }

    /// All numbers of ranges of terms, each once.
    async fn sorted(&self, family: Family, ranges: &[TermRange]) -> Result<(Vec<u64>, u64), Error> {
        let mut numbers = Vec::new();
        for range in ranges {
            let mut keys = self.keys(family, range);
            loop {
                let limit = ScanLimit { entry_count_max: STEP.1, byte_count_max: usize::MAX };
                let batch = self.snapshot.scan_keys(&keys, Direction::Forward, limit).await?;
                charge_entries(batch.keys.len())?;
                for key in batch.keys.iter() {
                    numbers.push(read_entry(key)?.1);
                }
                match batch.keys.last() {
                    Some(last) if batch.more => keys.start = just_after(last),
                    _ => break,
                }
            }
        }
        let entries = numbers.len() as u64;
        numbers.sort_unstable();
        numbers.dedup();
        Ok((numbers, entries))
    }

    /// What is in all parts: the smallest, joined with those that are worth it.
    async fn joined(&self, parts: &[Access], whole: bool) -> Result<Option<Candidates>, Error> {
        let mut sized = Vec::new();
        for part in parts {
            // What is read for an estimate of terms is read once; other parts are read if they are worth it.
            let (estimate, terms) = match part {
                Access::Entries(served) if served.is_terms() => {
                    let terms = self.terms(served).await?;
                    (terms.estimate, Some(terms))
                }
                _ => (self.rough_estimate(part).await?, None),
            };
            sized.push((estimate, terms, part));
        }
        sized.sort_by_key(|(estimate, ..)| *estimate);
        let smallest = sized.first().map_or(0, |(estimate, ..)| *estimate).max(16);
        let mut joined: Option<Candidates> = None;
        let mut streams = Vec::new();
        for (estimate, terms, part) in sized {
            let factor = if terms.is_some() { TERM_JOIN_FACTOR } else { RANGE_JOIN_FACTOR };
            let worth_it = streams.is_empty() || estimate <= smallest.saturating_mul(factor);
            let found = match terms {
                _ if !worth_it && !whole => None,
                Some(terms) => Some(terms),
                None => self.prepare(part, whole).await?,
            };
            let Some(found) = found else {
                if let Some(joined) = &mut joined {
                    joined.exact = false;
                }
                continue;
            };
            let own = joined.get_or_insert(Candidates {
                stream: Stream::Joined(Vec::new()),
                estimate: found.estimate,
                exact: true,
                entries: 0,
            });
            own.estimate = own.estimate.min(found.estimate);
            own.exact &= found.exact;
            own.entries += found.entries;
            streams.push(found.stream);
        }
        let Some(mut joined) = joined else { return Ok(None) };
        joined.exact &= streams.len() == parts.len();
        joined.stream = if streams.len() == 1 { streams.remove(0) } else { Stream::Joined(streams) };
        Ok(Some(joined))
    }

    /// About how many documents an access has; more than there are for all of them.
    pub fn rough_estimate<'a>(
        &'a self,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'a>> {
        Box::pin(async move {
            Ok(match access {
                Access::Everything => u64::MAX,
                Access::Nothing => 0,
                Access::Entries(served) => self.estimate(served).await?,
                Access::Any(parts) => {
                    let mut sum = 0_u64;
                    for part in parts {
                        sum = sum.saturating_add(self.rough_estimate(part).await?);
                    }
                    sum
                }
                Access::All(parts) => {
                    let mut least = u64::MAX;
                    for part in parts {
                        least = least.min(self.rough_estimate(part).await?);
                    }
                    least
                }
                Access::Combined { apart, together } => {
                    let mut least = u64::MAX;
                    for part in apart {
                        least = least.min(self.rough_estimate(part).await?);
                    }
                    for part in together {
                        least = least.min(self.estimate(&part.served).await?);
                    }
                    least
                }
            })
        })
    }
}

impl Candidates {
    /// Up to so many numbers from `first` on; fewer only at the end.
    pub async fn numbers(
        &mut self,
        finder: &Finder,
        first: u64,
        count_max: usize,
    ) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        let mut from = first;
        while numbers.len() < count_max {
            // The common case without a future of its own for each number.
            let sought = match &mut self.stream {
                Stream::Term(cursor) => cursor.seek(finder, from, &mut self.entries).await?,
                stream => stream.seek(finder, from, &mut self.entries).await?,
            };
            let Some(number) = sought else { break };
            astrarium_env::charge(1)?;
            numbers.push(number);
            let Some(next) = number.checked_add(1) else { break };
            from = next;
        }
        Ok(numbers)
    }
}

enum Stream {
    /// The documents of one term.
    Term(TermCursor),
    /// Numbers at hand, in order.
    Listed { numbers: Vec<u64>, at: usize },
    /// What is in any of these.
    Merged(Vec<Stream>),
    /// What is in all of these.
    Joined(Vec<Stream>),
}

type Sought<'a> = Pin<Box<dyn Future<Output = Result<Option<u64>, Error>> + Send + 'a>>;

impl Stream {
    /// The first number not below `from`; asked with numbers that never fall.
    fn seek<'a>(&'a mut self, finder: &'a Finder, from: u64, entries: &'a mut u64) -> Sought<'a> {
        Box::pin(async move {
            match self {
                Stream::Term(cursor) => cursor.seek(finder, from, entries).await,
                Stream::Listed { numbers, at } => {
                    let rest = numbers.get(*at..).unwrap_or_default();
                    *at += gallop(rest, from);
                    Ok(numbers.get(*at).copied())
                }
                Stream::Merged(streams) => {
                    let mut least: Option<u64> = None;
                    for stream in streams {
                        let found = stream.seek(finder, from, entries).await?;
                        least = match (least, found) {
                            (Some(least), Some(found)) => Some(least.min(found)),
                            (least, found) => least.or(found),
                        };
                    }
                    Ok(least)
                }
                Stream::Joined(streams) => {
                    let (mut target, mut agreeing, mut index) = (from, 0, 0);
                    while agreeing < streams.len() {
                        let Some(found) = streams[index].seek(finder, target, entries).await? else {
                            return Ok(None);
                        };
                        astrarium_env::charge(4)?;
                        agreeing = if found == target { agreeing + 1 } else { 1 };
                        target = found;
                        index = (index + 1) % streams.len();
                    }
                    Ok(Some(target))
                }
            }
        })
    }
}

/// How many of the numbers are below a bound; looks near the front first.
fn gallop(numbers: &[u64], bound: u64) -> usize {
    let mut end = 1;
    while end < numbers.len() && numbers[end - 1] < bound {
        end *= 2;
    }
    let start = end / 2;
    let end = end.min(numbers.len());
    let start = start.min(end);
    start + numbers[start..end].partition_point(|number| *number < bound)
}

/// Reads the documents of one term.
struct TermCursor {
    /// Family and term.
    prefix: Vec<u8>,
    numbers: Vec<u64>,
    at: usize,
    step: usize,
    at_end: bool,
}

impl TermCursor {
    fn new(prefix: Vec<u8>) -> TermCursor {
        TermCursor { prefix, numbers: Vec::new(), at: 0, step: STEP.0, at_end: false }
    }

    async fn seek(&mut self, finder: &Finder, from: u64, entries: &mut u64) -> Result<Option<u64>, Error> {
        loop {
            let rest = self.numbers.get(self.at..).unwrap_or_default();
            self.at += gallop(rest, from);
            if let Some(number) = self.numbers.get(self.at) {
                return Ok(Some(*number));
            }
            if self.at_end {
                return Ok(None);
            }
            self.read(finder, from, entries).await?;
        }
    }

    async fn read(&mut self, finder: &Finder, from: u64, entries: &mut u64) -> Result<(), Error> {
        // Whoever leaps will leap again; whoever walks on will walk far.
        match self.numbers.last() {
            Some(last) if from > last.saturating_add(1) => self.step = LEAP_STEP,
            Some(_) => self.step = (self.step * 4).min(STEP.1),
            None => {}
        }
        let mut keys = KeyRange::prefix(&self.prefix);
        keys.start = [&self.prefix[..], &from.to_be_bytes()].concat().into();
        let limit = ScanLimit { entry_count_max: self.step, byte_count_max: usize::MAX };
        let batch = finder.snapshot.scan_keys(&keys, Direction::Forward, limit).await?;
        charge_entries(batch.keys.len())?;
        self.numbers.clear();
        self.at = 0;
        for key in batch.keys.iter() {
            self.numbers.push(read_entry(key)?.1);
        }
        *entries += batch.keys.len() as u64;
        self.at_end = !batch.more;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_finds_the_place() {
        let numbers: Vec<u64> = (0..100).map(|number| number * 3).collect();
        for length in [0, 1, 2, 3, 7, 100] {
            let numbers = &numbers[..length];
            for bound in 0..310 {
                assert_eq!(gallop(numbers, bound), numbers.partition_point(|number| *number < bound));
            }
        }
    }
}
