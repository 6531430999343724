//! Reading many documents: by insertion order, or by key within a logical partition or a slice of the key space.
//!
//! In: a snapshot, a range, a position, a page limit. Out: a [`KeyedPage`] with visible documents and where to go on.
//! Invariants
//! - A page stops at its limits; a document that alone is larger still comes, so a reader always moves on.
//! - A position is valid after any change of the data and after a restart: it is a place, not a count.
//! - The work of one page is bounded, expired documents included: a page may be empty and still have a position. It gives way
//!   to other tasks between its steps (`env::yield_if_due`).

use crate::bodies::DocumentMemory;
use crate::scoped::FeedError;
use crate::{Error, VisibleDocuments};
use astrarium_catalog::container::{Erasures, Range};
use astrarium_env::yield_if_due;
use astrarium_keys::body::Body;
use astrarium_keys::{document, number};
use astrarium_kv::{Direction, KeyRange, ScanLimit, Space, View, just_after};
use astrarium_partition::{EffectiveRange, PartitionKey};
use bytes::Bytes;

/// Documents looked at in one page at most, visible or not.
const EXAMINED_MAX: usize = 20_000;
/// Directory entries or bodies read from the engine at once.
const STEP: usize = 256;

/// When a page ends.
#[derive(Debug, Clone, Copy)]
pub struct PageLimit {
    /// Documents at most.
    pub count_max: usize,
    /// No further document once the texts hold this many bytes.
    pub bytes_max: usize,
}

/// Documents in order, and the position to go on from if there may be more.
#[derive(Debug, Default)]
pub(crate) struct KeyedPage<P> {
    /// The documents, each with the position right after it.
    pub(crate) documents: Vec<(P, Body)>,
    /// Where the next page starts.
    pub(crate) resume: Option<P>,
}

/// Which documents of a range a keyed read covers.
#[derive(Debug, Clone)]
pub(crate) enum RangeScope<'a> {
    /// One logical partition.
    Partition(&'a PartitionKey, astrarium_partition::EffectiveKey),
    /// A slice of the key space.
    Slice(EffectiveRange),
}

impl RangeScope<'_> {
    pub(crate) fn key_range(&self, range: &Range) -> KeyRange {
        let shard = range.shard.0;
        match self {
            RangeScope::Partition(partition, effective) => {
                KeyRange::prefix(&document::partition_prefix(shard, effective, partition))
            }
            RangeScope::Slice(slice) => {
                let all = KeyRange::prefix(&document::shard_prefix(shard));
                let start = document::effective_bound(shard, &slice.min).max(all.start);
                let end = document::effective_bound(shard, &slice.max).min(all.end);
                KeyRange { start, end }
            }
        }
    }
}

/// A page in insertion order; positions are document numbers.
pub(crate) async fn by_insertion(
    view: &dyn View,
    range: &Range,
    after: u64,
    limit: PageLimit,
    shown: VisibleDocuments,
    memory: &mut DocumentMemory,
) -> Result<KeyedPage<u64>, FeedError> {
    let shard = range.shard.0;
    let mut keys = KeyRange::prefix(&number::number_prefix(shard));
    let mut page = PageBuilder::new(limit, shown, &range.erasures, memory);
    let mut position = after;
    loop {
        keys.start = number::number_key(shard, position.saturating_add(1));
        let step = ScanLimit { entry_count_max: page.step(), byte_count_max: usize::MAX };
        let batch = view.scan(Space::Log, &keys, Direction::Forward, step).await.map_err(Error::from)?;
        let body_keys: Vec<Bytes> =
            batch.entries.iter().map(|(_, suffix)| document::from_suffix(shard, suffix)).collect();
        let mut read_count = 0;
        while read_count < body_keys.len() {
            let bytes_left = page.bytes_left();
            let bodies = page.memory.get_many(view, &body_keys[read_count..], bytes_left).await;
            let Some(bodies) = page.or_end(bodies)? else { return Ok(page.stopped_at(position)) };
            for body in bodies {
                let here = number::read_number(&batch.entries[read_count].0).map_err(Error::from)?;
                if !page.offer(here, &body_keys[read_count], body)? {
                    return Ok(page.stopped_at(position));
                }
                position = here;
                read_count += 1;
            }
            page.drop_unshown();
            yield_if_due().await;
        }
        if !batch.more {
            return Ok(page.finished());
        }
        if page.is_spent() {
            return Ok(page.stopped_at(position));
        }
    }
}

/// A page in key order; positions are the suffixes of document keys.
pub(crate) async fn by_key(
    view: &dyn View,
    range: &Range,
    scope: &RangeScope<'_>,
    after: Option<&[u8]>,
    (limit, shown): (PageLimit, VisibleDocuments),
    memory: &mut DocumentMemory,
) -> Result<KeyedPage<Bytes>, FeedError> {
    let mut keys = scope.key_range(range);
    let mut page = PageBuilder::new(limit, shown, &range.erasures, memory);
    let mut position = Bytes::copy_from_slice(after.unwrap_or_default());
    if after.is_some() {
        keys.start = keys.start.max(just_after(&document::from_suffix(range.shard.0, &position)));
    }
    while keys.start < keys.end {
        let step = ScanLimit { entry_count_max: page.step(), byte_count_max: page.bytes_left() };
        let batch = page.memory.scan(view, Space::Body, &keys, step).await;
        let Some(batch) = page.or_end(batch)? else { return Ok(page.stopped_at(position)) };
        for (key, body) in batch.entries {
            let here = key.slice(document::SHARD_PREFIX_LENGTH..);
            if !page.offer(here.clone(), &key, Some(body))? {
                return Ok(page.stopped_at(position));
            }
            keys.start = just_after(&key);
            position = here;
        }
        if !batch.more {
            break;
        }
        if page.is_spent() {
            return Ok(page.stopped_at(position));
        }
        page.drop_unshown();
        yield_if_due().await;
    }
    Ok(page.finished())
}

struct PageBuilder<'r, P> {
    memory: &'r mut DocumentMemory,
    /// What the reader holds with the page.
    held: usize,
    limit: PageLimit,
    shown: VisibleDocuments,
    erasures: &'r Erasures,
    documents: Vec<(P, Body)>,
    bytes: usize,
    examined: usize,
}

impl<'r, P> PageBuilder<'r, P> {
    fn new(
        limit: PageLimit,
        shown: VisibleDocuments,
        erasures: &'r Erasures,
        memory: &'r mut DocumentMemory,
    ) -> PageBuilder<'r, P> {
        let held = memory.bytes();
        PageBuilder { memory, held, limit, shown, erasures, documents: Vec::new(), bytes: 0, examined: 0 }
    }

    /// How many entries to ask for next: one more than fits tells whether there is a further page.
    fn step(&self) -> usize {
        (self.limit.count_max - self.documents.len()).saturating_add(1).min(STEP)
    }

    /// How many bytes to read next at most: a document that is larger ends the page.
    fn bytes_left(&self) -> usize {
        self.limit.bytes_max.saturating_sub(self.bytes).max(1)
    }

    /// What was read; nothing if the page ends because there is no memory for more.
    fn or_end<T>(&self, read: Result<T, FeedError>) -> Result<Option<T>, FeedError> {
        match read {
            Err(FeedError::NoMemory) if !self.documents.is_empty() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Gives back the memory of what was read and is not in the page.
    fn drop_unshown(&mut self) {
        self.memory.keep(self.held);
    }

    fn is_spent(&self) -> bool {
        self.examined >= EXAMINED_MAX
    }

    /// Takes a document into the page; false if the page is full and the document belongs to the next one.
    fn offer(&mut self, position: P, key: &[u8], bytes: Option<Bytes>) -> Result<bool, FeedError> {
        self.examined += 1;
        let Some(body) = bytes.map(Body::decode).transpose().map_err(Error::from)? else {
            return Ok(true);
        };
        if !self.shown.has(self.erasures, key, &body.header) {
            return Ok(true);
        }
        let full = self.documents.len() >= self.limit.count_max
            || (!self.documents.is_empty() && self.bytes + body.text().len() > self.limit.bytes_max);
        if full {
            return Ok(false);
        }
        self.bytes += body.text().len();
        self.held += body.as_bytes().len();
        self.documents.push((position, body));
        Ok(true)
    }

    fn stopped_at(mut self, position: P) -> KeyedPage<P> {
        self.drop_unshown();
        KeyedPage { documents: self.documents, resume: Some(position) }
    }

    fn finished(mut self) -> KeyedPage<P> {
        self.drop_unshown();
        KeyedPage { documents: self.documents, resume: None }
    }
}
