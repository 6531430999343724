//! From entries to numbers of documents, in their order.
//!
//! In: a snapshot, a shard, entries that serve conditions. Out: [`Candidates`], which give numbers from any number on, so
//! a page of a query goes on where the last ended without reading what came before.
//! How: the documents of one term are in the order of their numbers in the set already. Several terms are merged, several
//! postings are intersected by galloping: each is asked for its first number not below the other's. A range of many terms is
//! read whole and sorted.
//! Not here: which postings are read, and whether any are (`sql-plan::physical`).

use crate::kinds::{Served, TermRange};
use astrarium_env::Stopped;
use astrarium_keys::Malformed;
use astrarium_keys::index_entry::{Family, read_entry};
use astrarium_kv::{self as kv, Direction, IntersectionLimit, KeyRange, ScanLimit, View, just_after};
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

/// Entries read first, and at most, in one step along a term.
const STEP: (usize, usize) = (32, 4_096);
/// Postings that the engine looks at in one call at most, when it intersects lists: less than a millisecond.
const SEEKS_MAX: u64 = 8_192;
/// Entries read after a leap.
const LEAP_STEP: usize = 2;

/// Looks into the indexes of one shard.
#[derive(Clone)]
pub struct Finder {
    /// The view of the data.
    pub snapshot: Arc<dyn View>,
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

    /// The keys whose terms begin with given ones.
    pub fn keys_with_terms(&self, family: Family, terms: &[u8]) -> KeyRange {
        KeyRange::prefix(&[&family.prefix(self.shard)[..], terms].concat())
    }

    /// The documents of single terms. The first of each term are read at once: mostly that is all of them, and then nothing
    /// has to be estimated.
    pub async fn seek(&self, served: &Served) -> Result<Candidates, Error> {
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

    /// The documents of ranges of terms: read whole and put in order.
    pub async fn range(&self, served: &Served) -> Result<Candidates, Error> {
        let (numbers, entries) = self.sorted(served.family, &served.ranges).await?;
        Ok(Candidates::listed(numbers, served.exact, entries))
    }

    /// The documents of a family that has one term.
    pub fn whole_family(&self, family: Family) -> Candidates {
        let stream = Stream::Term(TermCursor::new(family.prefix(self.shard).to_vec()));
        Candidates { stream, estimate: 0, exact: true, entries: 0 }
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
}

impl Candidates {
    /// No documents.
    pub fn none() -> Candidates {
        Candidates::listed(Vec::new(), true, 0)
    }

    fn listed(numbers: Vec<u64>, exact: bool, entries: u64) -> Candidates {
        let estimate = numbers.len() as u64;
        Candidates { stream: Stream::Listed { numbers, at: 0 }, estimate, exact, entries }
    }

    /// The documents that are in all of these, the smallest first.
    pub fn intersection(parts: Vec<Candidates>) -> Candidates {
        let least = |parts: &[Candidates]| parts.iter().map(|part| part.estimate).min().unwrap_or_default();
        Candidates::combined(parts, least, Stream::Joined)
    }

    /// The documents that are in at least one of these.
    pub fn union(parts: Vec<Candidates>) -> Candidates {
        let sum = |parts: &[Candidates]| parts.iter().map(|part| part.estimate).fold(0, u64::saturating_add);
        Candidates::combined(parts, sum, Stream::Merged)
    }

    fn combined(
        parts: Vec<Candidates>,
        estimate: impl FnOnce(&[Candidates]) -> u64,
        combine: impl FnOnce(Vec<Stream>) -> Stream,
    ) -> Candidates {
        Candidates {
            estimate: estimate(&parts),
            exact: parts.iter().all(|part| part.exact),
            entries: parts.iter().map(|part| part.entries).sum(),
            stream: combine(parts.into_iter().map(|part| part.stream).collect()),
        }
    }

    /// Up to so many numbers from `first` on; fewer only at the end.
    pub async fn numbers(
        &mut self,
        finder: &Finder,
        first: u64,
        count_max: usize,
    ) -> Result<Vec<u64>, Error> {
        if let Stream::Joined(streams) = &self.stream
            && let Some(prefixes) = long_terms(streams)
            && let Some(numbers) = intersect(finder, &prefixes, (first, count_max), &mut self.entries).await?
        {
            return Ok(numbers);
        }
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

/// The prefixes of several terms, unless all of their documents have been read, or some are no single terms.
fn long_terms(streams: &[Stream]) -> Option<Vec<Bytes>> {
    let mut is_read = true;
    let prefix = |stream: &Stream| {
        let Stream::Term(cursor) = stream else { return None };
        is_read &= cursor.is_whole;
        Some(Bytes::copy_from_slice(&cursor.prefix))
    };
    let prefixes = streams.iter().map(prefix).collect::<Option<Vec<Bytes>>>()?;
    (!is_read).then_some(prefixes)
}

/// Up to so many documents that have all of several terms, from one on, found by the engine; nothing if it has no way.
async fn intersect(
    finder: &Finder,
    prefixes: &[Bytes],
    (first, count_max): (u64, usize),
    entries: &mut u64,
) -> Result<Option<Vec<u64>>, Error> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut from = first;
    loop {
        let limit =
            IntersectionLimit { count_max: (count_max - numbers.len()).min(STEP.1), seeks_max: SEEKS_MAX };
        let Some(found) = finder.snapshot.intersect_keys(prefixes, from, limit) else { return Ok(None) };
        let found = found.await?;
        charge_entries(found.seeks as usize)?;
        *entries += found.seeks;
        numbers.extend(found.numbers);
        match found.next {
            Some(next) if numbers.len() < count_max => from = next,
            _ => return Ok(Some(numbers)),
        }
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
    /// Whether the first read gave all documents.
    is_whole: bool,
}

impl TermCursor {
    fn new(prefix: Vec<u8>) -> TermCursor {
        TermCursor { prefix, numbers: Vec::new(), at: 0, step: STEP.0, at_end: false, is_whole: false }
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
        self.is_whole |= from == 0 && !batch.more;
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
