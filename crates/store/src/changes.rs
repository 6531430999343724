//! The change feed: every living document once, at the place of its last change; or, from containers that keep a history, every
//! change of every document.
//!
//! In: a range, a scope, the last entry seen, a page limit. Out: a [`ChangePage`] in commit order, and the last entry seen now.
//! Invariants
//! - A document that is changed while somebody reads moves ahead, never behind him: whoever reads to the end has seen the last
//!   version of every document that was there then.
//! - Documents of one commit come in one page, unless they alone are larger than a page may be.
//! - A finished page stands at the LSN of its view, so that entries outside the scope are not looked at again.
//! - The work of one page is bounded: it may be empty and not the last ([`ChangePage::more`]). It gives way to other tasks
//!   between its steps (`env::yield_if_due`).
//! - No more bodies are read than the page can take, and none without memory for it (`bodies`): a page ends early where there is
//!   no memory for more.
//!
//! Not here: where a reader starts in several ranges (`database::change_feed`), the layout of entries (`keys::feed`).

use crate::Error;
use crate::bodies::DocumentMemory;
use crate::feed::PageLimit;
use crate::scoped::{FeedError, FeedReader, FeedScope};
use astrarium_catalog::container::Range;
use astrarium_env::yield_if_due;
use astrarium_keys::body::Body;
use astrarium_keys::history::{self, HistoryEntry};
use astrarium_keys::{Malformed, document, feed};
use astrarium_kv::{Direction, Engine, Expectation, KeyRange, ScanLimit, Space, Stamp, View, WriteBatch};
use bytes::Bytes;

/// Entries looked at in one page at most.
const EXAMINED_MAX: usize = 2_000;
/// Bytes of history that are read to be removed in one commit.
const TRIMMED_BYTES: usize = 4 << 20;
/// Entries read from the engine at once.
const STEP: usize = 256;

/// The last entry of a range's feed that a reader has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ChangePosition {
    /// The commit.
    pub lsn: u64,
    /// The place in the commit; [`ChangePosition::WHOLE`] if all of it was seen.
    pub sequence: u32,
}

impl ChangePosition {
    /// The sequence of a commit that was seen whole.
    pub const WHOLE: u32 = u32::MAX;

    /// After a whole commit; after 0 is the beginning.
    pub fn after(lsn: u64) -> ChangePosition {
        ChangePosition { lsn, sequence: ChangePosition::WHOLE }
    }

    /// The first place that was not seen.
    fn next(self) -> ChangePosition {
        match self.sequence.checked_add(1) {
            Some(sequence) => ChangePosition { sequence, ..self },
            None => ChangePosition { lsn: self.lsn.saturating_add(1), sequence: 0 },
        }
    }

    fn next_key(self, shard: u64) -> Bytes {
        let next = self.next();
        feed::feed_key(shard, next.lsn, next.sequence)
    }
}

/// Changes in order: documents as they are now, or entries of the history.
#[derive(Debug)]
pub struct ChangePage<T> {
    /// The changes.
    pub changes: Vec<T>,
    /// The last entry seen.
    pub position: ChangePosition,
    /// Whether there may be more behind it.
    pub more: bool,
}

impl FeedReader {
    /// Reads the changes of a range that come after a position, of documents of a scope that were written after a time, if one is
    /// given.
    pub async fn changes(
        &self,
        range: &Range,
        scope: &FeedScope,
        after: ChangePosition,
        since: Option<u64>,
        limit: PageLimit,
        memory: &mut DocumentMemory,
    ) -> Result<ChangePage<Body>, FeedError> {
        let (view, shard) = (&**self.view(range.shard)?, range.shard.0);
        let bounds = self.key_bounds(range, scope);
        let mut keys = KeyRange::prefix(&feed::feed_prefix(shard));
        let mut page = ChangePageBuilder::new(limit, after, memory);
        let mut examined = 0;
        loop {
            keys.start = page.position.next_key(shard);
            let step = ScanLimit { entry_count_max: page.step(), byte_count_max: usize::MAX };
            let batch = view.scan(Space::Log, &keys, Direction::Forward, step).await.map_err(Error::from)?;
            examined += batch.entries.len();
            let mut entries = Vec::with_capacity(batch.entries.len());
            for (key, suffix) in &batch.entries {
                let (lsn, sequence) = feed::read_position(key).map_err(Error::from)?;
                let key = document::from_suffix(shard, suffix);
                let wanted = bounds.as_ref().is_none_or(|bounds| bounds.start <= key && key < bounds.end);
                entries.push((ChangePosition { lsn, sequence }, wanted.then_some(key)));
            }
            let mut rest = &entries[..];
            while let Some((first, _)) = rest.first() {
                let readable = &rest[..page.readable_count(rest)];
                if readable.is_empty() {
                    return Ok(page.stopped_before(*first));
                }
                let wanted: Vec<Bytes> = readable.iter().filter_map(|(_, key)| key.clone()).collect();
                let bytes_left = page.bytes_left();
                let bodies = page.memory.get_many(view, &wanted, bytes_left).await;
                let Some(bodies) = page.or_end(bodies)? else { return Ok(page.stopped()) };
                let mut bodies = bodies.into_iter();
                for (position, key) in readable {
                    let Some(key) = key else {
                        page.pass(*position);
                        rest = &rest[1..];
                        continue;
                    };
                    // The rest has not been read.
                    let Some(body) = bodies.next() else { break };
                    let body = decode(body)?;
                    let is_shown = self.expiry.shows(&range.erasures, key, &body.header)
                        && since.is_none_or(|since| body.header.timestamp > since);
                    let sizes = (body.text().len(), body.as_bytes().len());
                    if !page.offer(*position, is_shown.then_some((sizes, body))) {
                        return Ok(page.stopped());
                    }
                    rest = &rest[1..];
                }
                page.drop_unshown();
                yield_if_due().await;
            }
            if !batch.more {
                return Ok(page.finished(view.state().version));
            }
            if examined >= EXAMINED_MAX {
                return Ok(page.stopped());
            }
        }
    }

    /// Reads all changes of a range that come after a position and are younger than a time, of documents of a scope. `None` if some
    /// of them are not kept any more.
    pub async fn versions(
        &self,
        range: &Range,
        scope: &FeedScope,
        after: ChangePosition,
        kept_since: u64,
        limit: PageLimit,
        memory: &mut DocumentMemory,
    ) -> Result<Option<ChangePage<(u64, HistoryEntry)>>, FeedError> {
        let (view, shard) = (&**self.view(range.shard)?, range.shard.0);
        let horizon = view.get(Space::Log, &history::horizon_key(shard)).await.map_err(Error::from)?;
        if let Some(horizon) = horizon
            && after < ChangePosition::after(history::read_horizon(&horizon).map_err(Error::from)?)
        {
            return Ok(None);
        }
        let bounds = self.key_bounds(range, scope);
        let mut keys = KeyRange::prefix(&history::history_prefix(shard));
        let mut page = ChangePageBuilder::new(limit, after, memory);
        let mut examined = 0;
        loop {
            let from = page.position.next();
            keys.start = history::history_key(shard, from.lsn, from.sequence);
            let step = ScanLimit { entry_count_max: page.step(), byte_count_max: page.bytes_left() };
            let batch = page.memory.scan(view, Space::Log, &keys, step).await;
            let Some(batch) = page.or_end(batch)? else { return Ok(Some(page.stopped())) };
            examined += batch.entries.len();
            for (key, value) in batch.entries {
                let (lsn, sequence) = feed::read_position(&key).map_err(Error::from)?;
                let size = value.len();
                let entry = HistoryEntry::decode(value, lsn).map_err(Error::from)?;
                if entry.timestamp < kept_since {
                    return Ok(None);
                }
                let key = document::from_suffix(shard, &entry.suffix);
                let wanted = bounds.as_ref().is_none_or(|bounds| bounds.start <= key && key < bounds.end);
                let change = wanted.then_some(((size, size), (lsn, entry)));
                if !page.offer(ChangePosition { lsn, sequence }, change) {
                    return Ok(Some(page.stopped()));
                }
            }
            if !batch.more {
                return Ok(Some(page.finished(view.state().version)));
            }
            if examined >= EXAMINED_MAX {
                return Ok(Some(page.stopped()));
            }
            page.drop_unshown();
            yield_if_due().await;
        }
    }

    /// A position that nothing written after a time comes before: found by halving, since later commits have later times. Where
    /// the clock went back the time is looked at again by [`FeedReader::changes`].
    pub async fn position_at(&self, range: &Range, since: u64) -> Result<ChangePosition, FeedError> {
        let (view, shard) = (&**self.view(range.shard)?, range.shard.0);
        let (mut seen, mut end) = (0, view.state().version);
        while seen < end {
            let middle = seen + (end - seen) / 2;
            match first_after(view, shard, middle).await? {
                Some((lsn, timestamp)) if timestamp <= since => seen = lsn.max(middle + 1),
                _ => end = middle,
            }
        }
        Ok(ChangePosition::after(seen))
    }
}

/// A batch that removes some of a range's history that is older than a time; nothing if there is none. Of two at once the later one
/// is refused, whose horizon may be older.
pub async fn trim_history(
    engine: &dyn Engine,
    range: &Range,
    kept_since: u64,
) -> Result<Option<WriteBatch>, Error> {
    let (view, shard) = (engine.view(range.shard, range.epoch).await?, range.shard.0);
    let mut keys = KeyRange::prefix(&history::history_prefix(shard));
    keys.start = history::history_key(shard, 1, 0);
    let step = ScanLimit { entry_count_max: STEP, byte_count_max: TRIMMED_BYTES };
    let found = view.scan(Space::Log, &keys, Direction::Forward, step).await?;
    let mut batch = WriteBatch::new(range.shard, range.epoch);
    let mut horizon = 0;
    for (key, value) in found.entries {
        let (lsn, _) = feed::read_position(&key)?;
        if HistoryEntry::decode(value, lsn)?.timestamp >= kept_since {
            break;
        }
        if horizon == 0 {
            batch.expect(Space::Log, key.clone(), Expectation::Present);
        }
        batch.delete(Space::Log, key);
        horizon = lsn;
    }
    if horizon == 0 {
        return Ok(None);
    }
    batch.put(Space::Log, history::horizon_key(shard), history::horizon_value(horizon), Stamp::NONE);
    Ok(Some(batch))
}

/// LSN and time of the first entry after a commit.
async fn first_after(view: &dyn View, shard: u64, lsn: u64) -> Result<Option<(u64, u64)>, FeedError> {
    let mut keys = KeyRange::prefix(&feed::feed_prefix(shard));
    keys.start = ChangePosition::after(lsn).next_key(shard);
    let one = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
    let batch = view.scan(Space::Log, &keys, Direction::Forward, one).await.map_err(Error::from)?;
    let Some((key, suffix)) = batch.entries.first() else { return Ok(None) };
    let (lsn, _) = feed::read_position(key).map_err(Error::from)?;
    // One body at a time, of which nothing is kept.
    let body = view.get(Space::Body, &document::from_suffix(shard, suffix)).await.map_err(Error::from)?;
    Ok(Some((lsn, decode(body)?.header.timestamp)))
}

/// The document of an entry. Feed and documents are of one view, so each has one.
fn decode(body: Option<Bytes>) -> Result<Body, FeedError> {
    let bytes = body.ok_or(Malformed::new("change feed entry without a document"));
    Ok(bytes.and_then(Body::decode).map_err(Error::from)?)
}

struct ChangePageBuilder<'m, T> {
    limit: PageLimit,
    memory: &'m mut DocumentMemory,
    /// What the reader holds with the page.
    held: usize,
    changes: Vec<T>,
    bytes: usize,
    position: ChangePosition,
    /// Entries to read next.
    step: usize,
}

impl<'m, T> ChangePageBuilder<'m, T> {
    fn new(limit: PageLimit, position: ChangePosition, memory: &'m mut DocumentMemory) -> Self {
        let held = memory.bytes();
        ChangePageBuilder { limit, memory, held, changes: Vec::new(), bytes: 0, position, step: 0 }
    }

    /// How many entries to read next: first one more than fits, which tells whether there is a further page; then more and more,
    /// because most may be of other scopes.
    fn step(&mut self) -> usize {
        let missing = self.limit.count_max.saturating_sub(self.changes.len()).saturating_add(1);
        self.step = missing.max(self.step * 2).min(STEP);
        self.step
    }

    /// How many bytes to read next at most: a document that is larger ends the page.
    fn bytes_left(&self) -> usize {
        self.limit.bytes_max.saturating_sub(self.bytes).max(1)
    }

    /// How many of the next entries the page has room for, if all of them are shown: no more than its count, and the rest of a commit.
    fn readable_count(&self, entries: &[(ChangePosition, Option<Bytes>)]) -> usize {
        let (mut count, mut lsn) = (self.changes.len(), self.position.lsn);
        let is_beyond = |(position, key): &(ChangePosition, Option<Bytes>)| {
            if position.lsn != lsn && count >= self.limit.count_max {
                return true;
            }
            lsn = position.lsn;
            count += usize::from(key.is_some());
            false
        };
        entries.iter().position(is_beyond).unwrap_or(entries.len())
    }

    /// What was read; nothing if the page ends because there is no memory for more.
    fn or_end<R>(&self, read: Result<R, FeedError>) -> Result<Option<R>, FeedError> {
        match read {
            Err(FeedError::NoMemory) if !self.changes.is_empty() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Gives back the memory of what was read and is not in the page.
    fn drop_unshown(&mut self) {
        self.memory.keep(self.held);
    }

    /// Takes an entry into the page, with the sizes of its texts and of what it holds, if there is something to be shown of it; false if
    /// it belongs to the next page.
    fn offer(&mut self, position: ChangePosition, change: Option<((usize, usize), T)>) -> bool {
        let begins_commit = position.lsn != self.position.lsn;
        let is_full = begins_commit && self.changes.len() >= self.limit.count_max;
        let is_too_large =
            change.as_ref().is_some_and(|((bytes, _), _)| self.bytes + bytes > self.limit.bytes_max);
        if is_full || (is_too_large && !self.changes.is_empty()) {
            if begins_commit {
                self.position.sequence = ChangePosition::WHOLE;
            }
            return false;
        }
        if let Some(((bytes, held), change)) = change {
            self.bytes += bytes;
            self.held += held;
            self.changes.push(change);
        }
        self.position = position;
        true
    }

    /// Goes past an entry of another scope.
    fn pass(&mut self, position: ChangePosition) {
        self.position = position;
    }

    /// The page, which is full before an entry that begins a commit.
    fn stopped_before(mut self, position: ChangePosition) -> ChangePage<T> {
        if position.lsn != self.position.lsn {
            self.position.sequence = ChangePosition::WHOLE;
        }
        self.stopped()
    }

    fn stopped(mut self) -> ChangePage<T> {
        self.drop_unshown();
        ChangePage { changes: self.changes, position: self.position, more: true }
    }

    fn finished(mut self, lsn: u64) -> ChangePage<T> {
        self.drop_unshown();
        ChangePage { changes: self.changes, position: ChangePosition::after(lsn), more: false }
    }
}
