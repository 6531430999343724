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
//!
//! Not here: where a reader starts in several ranges (`database::change_feed`), the layout of entries (`keys::feed`).

use crate::Error;
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
/// Of them, bodies: these can be large.
const BODIES: usize = 32;

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
    ) -> Result<ChangePage<Body>, FeedError> {
        let (view, shard) = (&**self.view(range.shard)?, range.shard.0);
        let bounds = self.key_bounds(range, scope);
        let mut keys = KeyRange::prefix(&feed::feed_prefix(shard));
        let mut page = ChangePageBuilder::new(limit, after);
        let mut examined = 0;
        loop {
            keys.start = page.position.next_key(shard);
            let step = ScanLimit { entry_count_max: STEP, byte_count_max: usize::MAX };
            let batch = view.scan(Space::Log, &keys, Direction::Forward, step).await.map_err(Error::from)?;
            let mut entries = Vec::with_capacity(batch.entries.len());
            for (key, suffix) in &batch.entries {
                let (lsn, sequence) = feed::read_position(key).map_err(Error::from)?;
                let key = document::from_suffix(shard, suffix);
                let wanted = bounds.as_ref().is_none_or(|bounds| bounds.start <= key && key < bounds.end);
                entries.push((ChangePosition { lsn, sequence }, wanted.then_some(key)));
            }
            let bodies = bodies(view, &entries).await?;
            examined += entries.len();
            let mut bodies = bodies.into_iter();
            for (position, key) in entries {
                let body = if key.is_some() { bodies.next() } else { None };
                let key = key.unwrap_or_default();
                let body = body.filter(|body| {
                    self.expiry.shows(&range.erasures, &key, &body.header)
                        && since.is_none_or(|since| body.header.timestamp > since)
                });
                if !page.offer(position, body.map(|body| (body.text().len(), body))) {
                    return Ok(page.stopped());
                }
            }
            if !batch.more {
                return Ok(page.finished(view.state().version));
            }
            if examined >= EXAMINED_MAX {
                return Ok(page.stopped());
            }
            yield_if_due().await;
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
        let mut page = ChangePageBuilder::new(limit, after);
        let mut examined = 0;
        loop {
            let from = page.position.next();
            keys.start = history::history_key(shard, from.lsn, from.sequence);
            let step = ScanLimit { entry_count_max: STEP, byte_count_max: limit.bytes_max };
            let batch = view.scan(Space::Log, &keys, Direction::Forward, step).await.map_err(Error::from)?;
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
                if !page.offer(ChangePosition { lsn, sequence }, wanted.then_some((size, (lsn, entry)))) {
                    return Ok(Some(page.stopped()));
                }
            }
            if !batch.more {
                return Ok(Some(page.finished(view.state().version)));
            }
            if examined >= EXAMINED_MAX {
                return Ok(Some(page.stopped()));
            }
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
    let (lsn, sequence) = feed::read_position(key).map_err(Error::from)?;
    let entry = (ChangePosition { lsn, sequence }, Some(document::from_suffix(shard, suffix)));
    let bodies = bodies(view, &[entry]).await?;
    Ok(bodies.first().map(|body| (lsn, body.header.timestamp)))
}

/// The documents of those entries that have a key. Feed and documents are of one view, so each has one.
async fn bodies(
    view: &dyn View,
    entries: &[(ChangePosition, Option<Bytes>)],
) -> Result<Vec<Body>, FeedError> {
    let keys: Vec<Bytes> = entries.iter().filter_map(|(_, key)| key.clone()).collect();
    let mut bodies = Vec::with_capacity(keys.len());
    for group in keys.chunks(BODIES) {
        for bytes in view.get_many(Space::Body, group, usize::MAX).await.map_err(Error::from)? {
            let bytes = bytes.ok_or(Malformed::new("change feed entry without a document"));
            bodies.push(bytes.and_then(Body::decode).map_err(Error::from)?);
        }
        if group.len() == BODIES {
            yield_if_due().await;
        }
    }
    Ok(bodies)
}

struct ChangePageBuilder<T> {
    limit: PageLimit,
    changes: Vec<T>,
    bytes: usize,
    position: ChangePosition,
}

impl<T> ChangePageBuilder<T> {
    fn new(limit: PageLimit, position: ChangePosition) -> ChangePageBuilder<T> {
        ChangePageBuilder { limit, changes: Vec::new(), bytes: 0, position }
    }

    /// Takes an entry into the page, with its size and what is to be shown of it if anything; false if it belongs to the next page.
    fn offer(&mut self, position: ChangePosition, change: Option<(usize, T)>) -> bool {
        let begins_commit = position.lsn != self.position.lsn;
        let is_full = begins_commit && self.changes.len() >= self.limit.count_max;
        let is_too_large =
            change.as_ref().is_some_and(|(bytes, _)| self.bytes + bytes > self.limit.bytes_max);
        if is_full || (is_too_large && !self.changes.is_empty()) {
            if begins_commit {
                self.position.sequence = ChangePosition::WHOLE;
            }
            return false;
        }
        if let Some((bytes, change)) = change {
            self.bytes += bytes;
            self.changes.push(change);
        }
        self.position = position;
        true
    }

    fn stopped(self) -> ChangePage<T> {
        ChangePage { changes: self.changes, position: self.position, more: true }
    }

    fn finished(self, lsn: u64) -> ChangePage<T> {
        ChangePage { changes: self.changes, position: ChangePosition::after(lsn), more: false }
    }
}
