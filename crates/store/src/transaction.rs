//! One transaction over documents of one range: reads that see its own writes, and the batch that makes them real.
//!
//! In: a range, a view of its shard, the time. Out: a `kv::WriteBatch`. Each document touched is an `StagedDocument` with what the
//! view had and what it is now; the batch is the difference, however often a document was written in between.
//! Invariants
//! - Every entry that changes is expected in the batch as it was read, or as absent if it was not read at all; so is every
//!   entry that was only read, if the transaction is told to stand by its reads.
//! - All documents of a transaction get one LSN; the sequence tells them apart.
//! - While a generation of the index is under construction, the batch changes it as far as it has the documents (`rebuild`).

use crate::bodies::DocumentMemory;
use crate::rebuild::Construction;
use crate::scoped::FeedError;
use crate::{Error, Expiry, Incoming};
use astrarium_catalog::container::{Container, Erasures, Range};
use astrarium_catalog::numbers::NumberSource;
use astrarium_catalog::stamps::StampSource;
use astrarium_env::Env;
use astrarium_index::{Indexes, Stored};
use astrarium_keys::body::{Body, Header, IndexDirective};
use astrarium_keys::history::{ChangeOperation, HistoryEntry};
use astrarium_keys::{Malformed, document, number, trail, unique};
use astrarium_kv::{Expectation, Overlay, ShardId, Space, Stamp, View, WriteBatch};
use astrarium_partition::{EffectiveKey, PartitionKey};
use astrarium_value::{Value, json};
use bytes::Bytes;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which of a shard's running sums counts documents, expired ones included until they are swept.
pub const DOCUMENT_TALLY: usize = 0;
/// Which of a shard's running sums counts the bytes of documents' texts.
pub const BYTE_TALLY: usize = 1;

/// Where a document is or would be.
#[derive(Debug, Clone)]
pub struct Location<'a> {
    /// The range that holds its effective key.
    pub range: &'a Range,
    /// The effective key.
    pub effective: EffectiveKey,
    /// The key of its body.
    pub key: Bytes,
}

impl<'a> Location<'a> {
    /// Finds the place of a document from its partition key and id.
    pub fn of(container: &'a Container, partition: &PartitionKey, id: &str) -> Location<'a> {
        let effective = container.definition.partition_key.effective(partition);
        let range = container.range_of(&effective);
        let key = document::document_key(range.shard.0, &effective, partition, id);
        Location { range, effective, key }
    }

    /// Finds a document of a range by its number; nothing for one of another logical partition than the given.
    pub async fn by_number(
        view: &dyn View,
        container: &Container,
        range: &'a Range,
        number: u64,
        partition: Option<&PartitionKey>,
    ) -> Result<Option<Location<'a>>, astrarium_kv::Error> {
        let shard = range.shard.0;
        let Some(suffix) = view.get(Space::Log, &number::number_key(shard, number)).await? else {
            return Ok(None);
        };
        let location =
            Location { range, effective: range.keys.min.clone(), key: document::from_suffix(shard, &suffix) };
        let definition = &container.definition.partition_key;
        let prefix = partition.map(|key| document::partition_prefix(shard, &definition.effective(key), key));
        Ok(prefix.is_none_or(|prefix| location.key.starts_with(&prefix)).then_some(location))
    }
}

/// Staged changes of one range.
#[derive(Clone)]
pub struct Transaction {
    stamps: StampSource,
    shard: ShardId,
    epoch: u64,
    numbers: NumberSource,
    indexes: Arc<Indexes>,
    construction: Option<Construction>,
    expiry: Expiry,
    erasures: Erasures,
    /// Whether the container keeps a history of changes.
    keeps_history: bool,
    /// The resharding that a trail of changes is left for.
    trail: Option<u64>,
    stored: Arc<dyn View>,
    entries: Vec<StagedDocument>,
    /// Where the entry of a key is.
    places: HashMap<Bytes, usize>,
    /// Entries that had a unique key when they were written last; they may have lost it since.
    holders: HashMap<Bytes, usize>,
    sequence: u32,
    stands_by_reads: bool,
    /// Whether a document got another key, so that its number is at two entries.
    has_renamed: bool,
    /// Entries that the view shows as storage has them, with the stamps of what they hold.
    hidden: Vec<(usize, Option<u64>)>,
    /// What the transaction sees, until the next write.
    view: Option<Arc<dyn View>>,
}

/// How many index terms come and go with each document of a transaction, unique keys included: what writes are priced by.
#[derive(Debug, Clone, Default)]
pub struct TermCounts(Vec<(Bytes, u64)>);

impl TermCounts {
    fn add(&mut self, entry: Option<&StagedDocument>, count: u64) {
        if let Some(entry) = entry.filter(|_| count > 0) {
            self.0.push((entry.key.clone(), count));
        }
    }

    /// Those of the document at a key.
    pub fn of(&self, key: &Bytes) -> u64 {
        self.0.iter().filter(|(own, _)| own == key).map(|(_, count)| count).sum()
    }

    /// Those of all documents.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

/// The version that uncommitted documents seem to have.
const UNCOMMITTED: u64 = u64::MAX;

/// A document that the transaction has read or written.
#[derive(Clone)]
struct StagedDocument {
    key: Bytes,
    /// What storage has, expired documents included; `None` also if it was not read.
    stored: Option<Body>,
    /// What this transaction sees: never expired.
    current: Option<Body>,
    changed: bool,
    /// What the last write found, so that it can be taken back.
    before: Option<Box<(Option<Body>, bool)>>,
}

impl StagedDocument {
    /// The key without the shard.
    fn suffix(&self) -> &[u8] {
        &self.key[document::SHARD_PREFIX_LENGTH..]
    }
}

impl StagedDocument {
    /// What no other version of the document has.
    fn stamp(&self) -> Option<u64> {
        self.current.as_ref().map(|body| body.header.etag)
    }
}

impl Transaction {
    /// Starts on a view of the range's shard. `range` and `indexes` are the container's; nothing is read unless a generation of the index
    /// is under construction. Refused where the range takes no more writes.
    pub async fn begin(
        env: &Env,
        stamps: &StampSource,
        container: &Container,
        range: &Range,
        indexes: Arc<Indexes>,
        stored: Arc<dyn View>,
    ) -> Result<Transaction, Error> {
        if range.copied.is_some_and(|copied| copied.is_closed) {
            return Err(Error::RangeClosed);
        }
        let construction = match container.generations.building {
            Some(building) => Some(Construction::read(&*stored, range.shard.0, building.construction).await?),
            None => None,
        };
        let expiry = Expiry { default_ttl: container.definition.default_ttl, now: env.now_seconds() };
        Ok(Transaction {
            stamps: stamps.clone(),
            shard: range.shard,
            epoch: range.epoch,
            numbers: range.numbers.clone(),
            indexes,
            construction,
            expiry,
            erasures: range.erasures.clone(),
            keeps_history: container.history_minutes.is_some(),
            trail: range.copied.map(|copied| copied.number),
            stored,
            entries: Vec::new(),
            places: HashMap::default(),
            holders: HashMap::default(),
            sequence: 0,
            stands_by_reads: false,
            has_renamed: false,
            hidden: Vec::new(),
            view: None,
        })
    }

    /// From here on the commit fails if anything that was read has changed, and not only if what is written has. For
    /// transactions whose writes depend on other documents.
    pub fn stand_by_reads(&mut self) {
        self.stands_by_reads = true;
    }

    /// Keeps a change of one or more documents out of the view, until one of them is written again: queries find what
    /// storage has. Reading the documents by their keys gives the change.
    pub fn hide<'k>(&mut self, keys: impl IntoIterator<Item = &'k Bytes>) {
        self.view = None;
        let places = keys.into_iter().filter_map(|key| self.places.get(key).copied());
        self.hidden = places.map(|index| (index, self.entries[index].stamp())).collect();
    }

    /// What the transaction sees: its view of storage with its own writes, but for the change that is hidden.
    pub fn view(&mut self) -> Arc<dyn View> {
        if let Some(view) = &self.view {
            return Arc::clone(view);
        }
        let mut shown = self.clone();
        if self.hidden.iter().all(|(index, stamp)| self.entries[*index].stamp() == *stamp) {
            self.hidden.iter().for_each(|(index, _)| shown.entries[*index].changed = false);
        }
        let view: Arc<dyn View> = match shown.into_batch() {
            Some(batch) => Arc::new(Overlay::new(Arc::clone(&self.stored), &batch, UNCOMMITTED)),
            None => Arc::clone(&self.stored),
        };
        Arc::clone(self.view.insert(view))
    }

    /// The time of the transaction, in seconds.
    pub fn now(&self) -> u64 {
        self.expiry.now
    }

    /// What storage has, without the transaction's own writes.
    pub fn stored(&self) -> &dyn View {
        &*self.stored
    }

    /// The visible document at a key, this transaction's own writes included.
    pub async fn read(&mut self, key: &Bytes) -> Result<Option<&Body>, Error> {
        let index = self.entry(key).await?;
        Ok(self.entries[index].current.as_ref())
    }

    /// Whether all documents at some keys were read or written.
    pub fn knows(&self, keys: &[Bytes]) -> bool {
        keys.iter().all(|key| self.places.contains_key(key))
    }

    /// Reads documents together that will be read or written one after another, since storage may be on another machine: those at the
    /// first of some keys, until they hold so many bytes.
    pub async fn read_ahead<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k Bytes>,
        bytes_max: usize,
        memory: &mut DocumentMemory,
    ) -> Result<(), FeedError> {
        let mut seen = BTreeSet::new();
        let unknown = keys.filter(|key| !self.places.contains_key(*key));
        let keys: Vec<Bytes> = unknown.filter(|key| seen.insert(Bytes::clone(key))).cloned().collect();
        let bodies = self.stored_bodies(&keys, bytes_max, memory).await?;
        for (key, body) in keys.into_iter().zip(bodies) {
            self.push_stored(key, body);
        }
        Ok(())
    }

    /// What storage has at the first of some keys, until it holds so many bytes, for transactions that are clones of this one.
    pub async fn stored_bodies(
        &self,
        keys: &[Bytes],
        bytes_max: usize,
        memory: &mut DocumentMemory,
    ) -> Result<Vec<Option<Body>>, FeedError> {
        let (before, mut found) = (memory.bytes(), Vec::with_capacity(keys.len()));
        while found.len() < keys.len() && memory.bytes() - before < bytes_max {
            let bytes_left = bytes_max - (memory.bytes() - before);
            for body in memory.get_many(&*self.stored, &keys[found.len()..], bytes_left).await? {
                found.push(body.map(Body::decode).transpose().map_err(Error::from)?);
            }
        }
        Ok(found)
    }

    /// Takes in what storage has at a key that was not read yet.
    pub fn note_stored(&mut self, key: Bytes, body: Option<Body>) {
        self.push_stored(key, body);
    }

    /// Writes a document at a key that was read before; a new one gets a number, an existing one keeps its own.
    pub async fn write(
        &mut self,
        key: &Bytes,
        incoming: Incoming,
        directive: IndexDirective,
    ) -> Result<&Body, Error> {
        let index = self.entry(key).await?;
        let number = self.entries[index].current.as_ref().map(|body| body.header.number);
        let body = self.new_body(number, incoming, directive).await?;
        self.view = None;
        let entry = &mut self.entries[index];
        entry.before = Some(Box::new((entry.current.take(), entry.changed)));
        entry.changed = true;
        Ok(entry.current.insert(body))
    }

    /// Gives the document at a key that was read before another key and new content; it keeps its number. Whatever was
    /// at the new key gives way. Undone by [`Transaction::undo_write`] of both keys.
    pub async fn rename(
        &mut self,
        old: &Bytes,
        new: &Bytes,
        incoming: Incoming,
        directive: IndexDirective,
    ) -> Result<&Body, Error> {
        let (from, to) = (self.entry(old).await?, self.entry(new).await?);
        let number = self.entries[from].current.as_ref().map(|body| body.header.number);
        let body = self.new_body(number, incoming, directive).await?;
        self.view = None;
        self.has_renamed = true;
        for (index, body) in [(from, None), (to, Some(body))] {
            let entry = &mut self.entries[index];
            let before = std::mem::replace(&mut entry.current, body);
            entry.before = Some(Box::new((before, entry.changed)));
            entry.changed = true;
        }
        Ok(self.entries[to].current.as_ref().expect("just written"))
    }

    /// Takes back the last write at a key.
    pub fn undo_write(&mut self, key: &Bytes) {
        self.view = None;
        let entry = self.places.get(key).map(|&index| &mut self.entries[index]);
        if let Some(entry) = entry
            && let Some(before) = entry.before.take()
        {
            (entry.current, entry.changed) = *before;
        }
    }

    /// Writes a new document without reading: the commit fails if there is one already, expired or not.
    pub async fn write_unseen(
        &mut self,
        key: Bytes,
        incoming: Incoming,
        directive: IndexDirective,
    ) -> Result<&Body, Error> {
        debug_assert!(self.entries.iter().all(|entry| entry.key != key), "an unseen document was seen");
        let body = self.new_body(None, incoming, directive).await?;
        let entry = StagedDocument { key, stored: None, current: Some(body), changed: true, before: None };
        let index = self.push(entry);
        Ok(self.entries[index].current.as_ref().expect("just written"))
    }

    /// Removes the document at a key; gives what was visible. An expired one is removed too.
    pub async fn remove(&mut self, key: &Bytes) -> Result<Option<Body>, Error> {
        let index = self.entry(key).await?;
        self.view = None;
        let entry = &mut self.entries[index];
        entry.changed |= entry.stored.is_some() || entry.current.is_some();
        Ok(entry.current.take())
    }

    /// Removes the document at a key if it has expired, and gives the length of its text.
    pub(crate) async fn erase_expired(&mut self, key: &Bytes) -> Result<Option<usize>, Error> {
        let index = self.entry(key).await?;
        self.view = None;
        let entry = &mut self.entries[index];
        let stored = entry.stored.as_ref().filter(|_| entry.current.is_none());
        entry.changed |= stored.is_some();
        Ok(stored.map(|body| body.text().len()))
    }

    /// The documents that it changes, each as everybody sees it and as it shall be.
    pub fn changed(&self) -> impl Iterator<Item = (Option<&Body>, Option<&Body>)> {
        let is_seen =
            |entry: &StagedDocument, body: &Body| self.expiry.shows(&self.erasures, &entry.key, &body.header);
        let changed = self.entries.iter().filter(|entry| entry.changed);
        changed.map(move |entry| {
            (entry.stored.as_ref().filter(|body| is_seen(entry, body)), entry.current.as_ref())
        })
    }

    /// The whole transaction as one batch, or nothing if it changed nothing.
    pub fn into_batch(self) -> Option<WriteBatch> {
        self.into_counted_batch().0
    }

    /// The same, and the index terms that come and go with each document.
    pub fn into_counted_batch(self) -> (Option<WriteBatch>, TermCounts) {
        let mut batch = WriteBatch::new(self.shard, self.epoch);
        let changed = || self.entries.iter().filter(|entry| entry.changed);
        let construction = self.construction.as_ref();
        let (pairs, kept) = if self.has_renamed {
            pairs_by_number(changed())
        } else {
            (changed().map(|entry| (Some(entry), Some(entry))).collect(), BTreeSet::new())
        };
        let mut terms = TermCounts::default();
        for (old, new) in pairs {
            let count = stage_index(&mut batch, &self.indexes, construction, (old, new), self.expiry);
            terms.add(new.or(old), count);
        }
        if let Some(construction) = construction {
            let replaced = changed().filter_map(|entry| entry.stored.as_ref());
            construction.expect(&mut batch, replaced.map(|body| &body.header));
        }
        stage_unique(&mut batch, &self.indexes, changed(), self.expiry, &mut terms);
        let moved: BTreeSet<u64> = if self.has_renamed {
            changed().filter_map(|entry| Some(entry.stored.as_ref()?.header.number)).collect()
        } else {
            BTreeSet::new()
        };
        if self.keeps_history {
            stage_history(&mut batch, changed(), (self.expiry, &self.erasures));
        }
        if let Some(resharding) = self.trail {
            for (place, entry) in (0..).zip(changed()) {
                let key = trail::trail_key(batch.shard.0, resharding, 0, place);
                let suffix = Bytes::copy_from_slice(entry.suffix());
                batch.put(Space::Log, key, suffix, Stamp::key_at(trail::LSN_OFFSET));
            }
        }
        for entry in self.entries {
            if entry.changed {
                stage(&mut batch, entry, &kept, &moved);
            } else if self.stands_by_reads {
                batch.expect(Space::Body, entry.key.clone(), as_it_was(&entry));
            }
        }
        ((!batch.mutations.is_empty()).then_some(batch), terms)
    }

    /// Whether the document that was just written at a key has a unique key that another document has. One that has
    /// expired gives way.
    pub async fn breaks_unique_key(&mut self, key: &Bytes) -> Result<bool, Error> {
        if self.indexes.unique_key_count() == 0 {
            return Ok(false);
        }
        let shard = self.shard.0;
        let index = self.entry(key).await?;
        for unique_key in current_unique_keys(shard, &self.indexes, &self.entries[index]) {
            if let Some(&other) = self.holders.get(&unique_key)
                && other != index
                && self.holds(other, &unique_key)
            {
                return Ok(true);
            }
            if let Some(holder) = self.stored.get(Space::Log, &unique_key).await? {
                let number = number::number_key(shard, unique::read_unique_value(&holder)?);
                let suffix = self.stored.get(Space::Log, &number).await?;
                let suffix = suffix.ok_or(Malformed::new("unique key without a document"))?;
                let holder_key = document::from_suffix(shard, &suffix);
                let holder = self.entry(&holder_key).await?;
                if holder != index && self.holds(holder, &unique_key) {
                    return Ok(true);
                }
                if self.entries[holder].current.is_none() {
                    self.remove(&holder_key).await?;
                }
            }
            self.holders.insert(unique_key, index);
        }
        Ok(false)
    }

    /// Whether a document as the transaction sees it has a unique key.
    fn holds(&self, index: usize, key: &Bytes) -> bool {
        current_unique_keys(self.shard.0, &self.indexes, &self.entries[index]).contains(key)
    }

    async fn entry(&mut self, key: &Bytes) -> Result<usize, Error> {
        if let Some(&index) = self.places.get(key) {
            return Ok(index);
        }
        let stored = self.stored.get(Space::Body, key).await?.map(Body::decode).transpose()?;
        Ok(self.push_stored(key.clone(), stored))
    }

    fn push_stored(&mut self, key: Bytes, stored: Option<Body>) -> usize {
        let current = stored.clone().filter(|body| self.expiry.shows(&self.erasures, &key, &body.header));
        self.push(StagedDocument { key, stored, current, changed: false, before: None })
    }

    fn push(&mut self, entry: StagedDocument) -> usize {
        let index = self.entries.len();
        self.places.insert(entry.key.clone(), index);
        self.entries.push(entry);
        index
    }

    async fn new_body(
        &mut self,
        number: Option<u64>,
        incoming: Incoming,
        directive: IndexDirective,
    ) -> Result<Body, Error> {
        let number = match number {
            Some(number) => number,
            None => self.numbers.next_above(self.stored.state().high_water).await?,
        };
        let header = Header {
            lsn: 0,
            sequence: self.sequence,
            number,
            etag: self.stamps.next().await?,
            timestamp: self.expiry.now,
            ttl: incoming.ttl,
            index_directive: directive,
        };
        self.sequence += 1;
        Ok(Body::in_place(header, incoming.bytes))
    }
}

/// The entry that has what a document was, and the one that has what it is to be.
type Pair<'e> = (Option<&'e StagedDocument>, Option<&'e StagedDocument>);

/// Pairs what documents were with what they are to be by their numbers, since a renamed one is at another key; also
/// gives the numbers in use afterwards. Every entry is in one pair as what was, and in one as what is to be.
fn pairs_by_number<'e>(
    entries: impl Iterator<Item = &'e StagedDocument> + Clone,
) -> (Vec<Pair<'e>>, BTreeSet<u64>) {
    let number = |body: Option<&Body>| body.map(|body| body.header.number);
    let mut new: BTreeMap<u64, &StagedDocument> =
        entries.clone().filter_map(|entry| Some((number(entry.current.as_ref())?, entry))).collect();
    let kept = new.keys().copied().collect();
    let mut pairs = Vec::new();
    for entry in entries {
        if let Some(old) = number(entry.stored.as_ref()) {
            pairs.push((Some(entry), new.remove(&old)));
        }
    }
    pairs.extend(new.into_values().map(|entry| (None, Some(entry))));
    (pairs, kept)
}

/// Appends the difference between the index entries of what storage has and of what it shall have; gives the terms in it.
fn stage_index(
    batch: &mut WriteBatch,
    indexes: &Indexes,
    construction: Option<&Construction>,
    (old, new): Pair<'_>,
    expiry: Expiry,
) -> u64 {
    let old = old.and_then(|entry| Some((entry.suffix(), entry.stored.as_ref()?)));
    let new = new.and_then(|entry| Some((entry.suffix(), entry.current.as_ref()?)));
    let (old_etag, new_etag) = (old.map(|(_, body)| etag(body)), new.map(|(_, body)| etag(body)));
    let old = old.map(|(suffix, body)| Stored {
        is_built: construction.is_some_and(|construction| construction.has(&body.header)),
        is_gone: !expiry.is_alive(&body.header),
        ..as_indexed(body, suffix, old_etag.as_deref())
    });
    let new = new.map(|(suffix, body)| Stored {
        is_built: construction.is_some_and(Construction::is_begun),
        ..as_indexed(body, suffix, new_etag.as_deref())
    });
    let staged = indexes.changes(batch.shard.0, old, new);
    batch.set.extend(&staged.changes);
    staged.terms
}

/// The unique keys of a document that may be there at an entry's key.
fn unique_keys(shard: u64, indexes: &Indexes, entry: &StagedDocument, body: Option<&Body>) -> Vec<Bytes> {
    let keys = body.map(|body| indexes.unique_keys(shard, as_indexed(body, entry.suffix(), None)));
    keys.unwrap_or_default()
}

fn current_unique_keys(shard: u64, indexes: &Indexes, entry: &StagedDocument) -> Vec<Bytes> {
    unique_keys(shard, indexes, entry, entry.current.as_ref())
}

/// Appends the unique keys that go and come. One that goes with one document and comes with another stays, and needs no
/// expectation, because the document that had it is expected as it was.
fn stage_unique<'e>(
    batch: &mut WriteBatch,
    indexes: &Indexes,
    entries: impl Iterator<Item = &'e StagedDocument>,
    expiry: Expiry,
    terms: &mut TermCounts,
) {
    if indexes.unique_key_count() == 0 {
        return;
    }
    let shard = batch.shard.0;
    let (mut gone, mut come) = (BTreeSet::new(), Vec::new());
    for entry in entries {
        let old = unique_keys(shard, indexes, entry, entry.stored.as_ref());
        let number = entry.current.as_ref().map_or(0, |body| body.header.number);
        let new = current_unique_keys(shard, indexes, entry);
        // What has expired is gone for the client, who pays nothing for it.
        let is_there = entry.stored.as_ref().is_some_and(|body| expiry.is_alive(&body.header));
        let seen = if is_there { &old[..] } else { &[] };
        let kept = new.iter().filter(|key| seen.contains(key)).count();
        terms.add(Some(entry), (seen.len() + new.len() - 2 * kept) as u64);
        gone.extend(old);
        come.extend(new.into_iter().map(|key| (key, number)));
    }
    for key in &gone {
        batch.delete(Space::Log, key.clone());
    }
    for (key, number) in come {
        if !gone.contains(&key) {
            batch.expect(Space::Log, key.clone(), Expectation::Absent);
        }
        batch.put(Space::Log, key, unique::unique_value(number), Stamp::NONE);
    }
}

pub(crate) fn etag(body: &Body) -> String {
    crate::etag_text(body.header.etag, body.header.timestamp)
}

/// A document as indexes see it; whether a generation under construction has it is left open.
pub(crate) fn as_indexed<'b>(body: &'b Body, suffix: &'b [u8], etag: Option<&'b str>) -> Stored<'b> {
    // The id ends the key, and text has it unescaped.
    let id = json::seek::member(body.text(), "id").map(json::seek::value);
    let id_length = if let Some(Value::String(id)) = id { id.len() } else { 0 };
    Stored {
        number: body.header.number,
        text: body.text(),
        timestamp: body.header.timestamp,
        ttl: body.header.ttl,
        etag: etag.unwrap_or_default(),
        partition: &suffix[..suffix.len().saturating_sub(id_length)],
        directive: body.header.index_directive,
        is_built: false,
        is_gone: false,
    }
}

fn as_it_was(entry: &StagedDocument) -> Expectation {
    entry.stored.as_ref().map_or(Expectation::Absent, |body| Expectation::Version(body.header.lsn))
}

/// Appends the difference between what storage has and what it shall have. Numbers in `kept` belong to another entry now, those
/// in `moved` did before.
fn stage(batch: &mut WriteBatch, entry: StagedDocument, kept: &BTreeSet<u64>, moved: &BTreeSet<u64>) {
    let shard = batch.shard.0;
    batch.expect(Space::Body, entry.key.clone(), as_it_was(&entry));
    let suffix = entry.key.slice(document::SHARD_PREFIX_LENGTH..);
    let new_number = entry.current.as_ref().map(|body| body.header.number);
    tally(batch, entry.stored.as_ref(), -1);
    tally(batch, entry.current.as_ref(), 1);
    if let Some(old) = &entry.stored {
        astrarium_changefeed::remove(batch, old.header.lsn, old.header.sequence);
        if new_number != Some(old.header.number) && !kept.contains(&old.header.number) {
            batch.delete(Space::Log, number::number_key(shard, old.header.number));
        }
    }
    match entry.current {
        Some(new) => {
            let header = new.header;
            batch.put(Space::Body, entry.key, new.into_bytes(), Stamp::VALUE);
            if entry.stored.is_none_or(|old| old.header.number != header.number) {
                if !moved.contains(&header.number) {
                    batch.expect(Space::Log, number::number_key(shard, header.number), Expectation::Absent);
                }
                batch.put(Space::Log, number::number_key(shard, header.number), suffix.clone(), Stamp::NONE);
                batch.high_water = batch.high_water.max(header.number);
            }
            astrarium_changefeed::append(batch, header.sequence, suffix);
        }
        None => batch.delete(Space::Body, entry.key),
    }
}

/// Appends what happened to documents, for readers of all versions. A document that had expired, or was deleted with its partition, and is
/// written again went first and came then.
fn stage_history<'e>(
    batch: &mut WriteBatch,
    entries: impl Iterator<Item = &'e StagedDocument>,
    (expiry, erasures): (Expiry, &Erasures),
) {
    let mut sequence = 0;
    let mut record = |operation, entry: &StagedDocument, previous: Option<&Body>, current: Option<&Body>| {
        let suffix = entry.key.slice(document::SHARD_PREFIX_LENGTH..);
        let (previous, current) = (previous.cloned(), current.cloned());
        let change = HistoryEntry { operation, timestamp: expiry.now, suffix, previous, current };
        astrarium_changefeed::record(batch, sequence, &change);
        sequence += 1;
    };
    for entry in entries {
        let (stored, current) = (entry.stored.as_ref(), entry.current.as_ref());
        let alive = stored.filter(|body| expiry.shows(erasures, &entry.key, &body.header));
        if let Some(gone) = stored.filter(|_| alive.is_none()) {
            let is_deleted = expiry.is_alive(&gone.header);
            let operation = if is_deleted { ChangeOperation::Delete } else { ChangeOperation::Expire };
            record(operation, entry, stored, None);
        }
        match (alive, current) {
            (None, Some(_)) => record(ChangeOperation::Create, entry, None, current),
            (Some(_), Some(_)) => record(ChangeOperation::Replace, entry, alive, current),
            (Some(_), None) => record(ChangeOperation::Delete, entry, alive, None),
            (None, None) => {}
        }
    }
}

/// Counts a document that comes or goes.
fn tally(batch: &mut WriteBatch, document: Option<&Body>, sign: i64) {
    if let Some(body) = document {
        batch.tallies[DOCUMENT_TALLY] += sign;
        batch.tallies[BYTE_TALLY] += sign * (body.text().len() as u64).cast_signed();
    }
}
