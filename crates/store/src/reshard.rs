//! Copying the documents of a range into the ranges that take its place, while they are read and written.
//!
//! Three passes: documents in the order of their numbers, as they are when it is their turn; then whatever the trail of the source's
//! writers names, until little is left; then, when the source takes no more writes, the rest of it. History goes along in
//! the order of its commits. Documents keep their LSNs, so that positions of feeds and sessions stay right.
//! Invariants
//! - A step leaves each target with documents that agree with what belongs to them: one document for each number and each unique key.
//! - A document that was changed after the first pass came by is in the trail, because its writer left it there; so when the trail of a
//!   closed source is at its end, the targets have exactly its documents.
//!
//! Not here: when it begins, who does it, and the commit that swaps the ranges (`database::resharding`).

use crate::Error;
use crate::rebuild::last_number;
use crate::transaction::{BYTE_TALLY, DOCUMENT_TALLY, as_indexed, etag};
use astrarium_catalog::container::Range;
use astrarium_env::yield_if_due;
use astrarium_index::Indexes;
use astrarium_keys::body::Body;
use astrarium_keys::history::{self, HistoryEntry};
use astrarium_keys::{Malformed, document, feed, number, trail, unique};
use astrarium_kv::{
    Direction, Engine, KeyRange, ScanLimit, ShardId, Space, Stamp, View, WriteBatch, just_after,
};
use astrarium_partition::{EffectiveKey, EffectiveRange};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Documents of one step at most, and bytes of them after which a step takes no more.
const DOCUMENTS_MAX: usize = 200;
const BYTES_MAX: usize = 2 << 20;
/// Documents read at once; each can have megabytes.
const DOCUMENTS_AT_ONCE: usize = 16;
/// Entries of the history copied at once.
const HISTORY_STEP: ScanLimit = ScanLimit { entry_count_max: 200, byte_count_max: 2 << 20 };

/// A range that is to take the place of another.
#[derive(Debug, Clone)]
pub struct CopyTarget {
    /// Where its documents will be. Nobody has founded the shard yet.
    pub shard: ShardId,
    /// The effective keys that it will hold.
    pub keys: EffectiveRange,
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Documents up to this number are copied.
    pub number: u64,
    /// The highest number that a document had when the copy began; `None` until somebody looked.
    pub last_number: Option<u64>,
    /// Changes of documents up to this LSN are copied.
    pub lsn: u64,
    /// History up to this entry is copied.
    pub history: (u64, u32),
    /// Documents copied so far.
    pub documents: u64,
}

/// One copy.
pub struct RangeCopier<'a> {
    /// Where it all is.
    pub engine: &'a dyn Engine,
    /// The container's.
    pub indexes: &'a Indexes,
    /// What is copied.
    pub source: &'a Range,
    /// Where to, in order of their keys, which are those of the source.
    pub targets: &'a [CopyTarget],
    /// The number of the resharding.
    pub resharding: u64,
    /// Whether the targets have documents of another source already, whose commits have the same LSNs.
    pub is_second: bool,
}

/// What a step found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// Something; there is more.
    Moved,
    /// Something; there was not much more when it began.
    NearEnd,
    /// Nothing.
    Complete,
}

/// Set in the places in commits that documents of a second source get.
const SECOND: u32 = 1 << 31;

impl RangeCopier<'_> {
    /// Does a bounded part.
    pub async fn step(&self, progress: &mut CopyProgress) -> Result<CopyStep, Error> {
        let view = self.engine.view(self.source.shard, self.source.epoch).await?;
        let last = match progress.last_number {
            Some(last) => last,
            None => *progress.last_number.insert(last_number(&*view, self.source.shard.0).await?),
        };
        if progress.number < last {
            self.copy_documents(&*view, progress, last).await?;
            return Ok(CopyStep::Moved);
        }
        if self.copy_history(&*view, progress).await? {
            return Ok(CopyStep::Moved);
        }
        self.follow(&*view, progress).await
    }

    /// Copies the next documents in order of their numbers. Their places in the targets are free: no number comes twice.
    async fn copy_documents(
        &self,
        view: &dyn View,
        progress: &mut CopyProgress,
        last: u64,
    ) -> Result<(), Error> {
        let shard = self.source.shard.0;
        let range = KeyRange {
            start: number::number_key(shard, progress.number + 1),
            end: just_after(&number::number_key(shard, last)),
        };
        let limit = ScanLimit { entry_count_max: DOCUMENTS_MAX, byte_count_max: usize::MAX };
        let found = view.scan(Space::Log, &range, Direction::Forward, limit).await?;
        let mut position = if found.more { progress.number } else { last };
        let mut batches = self.batches();
        let mut places = self.places().await?;
        let mut bytes = 0;
        'documents: for group in found.entries.chunks(DOCUMENTS_AT_ONCE) {
            let keys: Vec<Bytes> =
                group.iter().map(|(_, suffix)| document::from_suffix(shard, suffix)).collect();
            let bodies = view.get_many(Space::Body, &keys).await?;
            yield_if_due().await;
            for ((directory_key, suffix), body) in group.iter().zip(bodies) {
                let body = body.ok_or(Malformed::new("directory entry without a document"))?;
                let target = self.target_of(suffix);
                let body = places[target].place(suffix, Body::decode(body)?).await?;
                let batch = &mut batches[target];
                self.put(batch, suffix, &body);
                batch.set.extend(&self.entry_changes(batch.shard, None, Some((suffix, &body))));
                tally(batch, &body, 1);
                position = position.max(number::read_number(directory_key)?);
                progress.documents += 1;
                bytes += body.text().len();
                if bytes >= BYTES_MAX {
                    position = number::read_number(directory_key)?;
                    break 'documents;
                }
            }
        }
        self.commit(batches).await?;
        progress.number = position;
        Ok(())
    }

    /// Copies what is next of the history; false at its end.
    async fn copy_history(&self, view: &dyn View, progress: &mut CopyProgress) -> Result<bool, Error> {
        let shard = self.source.shard.0;
        let mut keys = KeyRange::prefix(&history::history_prefix(shard));
        let (lsn, sequence) = progress.history;
        keys.start = match progress.history {
            (0, 0) => history::history_key(shard, 1, 0),
            _ => just_after(&history::history_key(shard, lsn, sequence)),
        };
        let found = view.scan(Space::Log, &keys, Direction::Forward, HISTORY_STEP).await?;
        if found.entries.is_empty() {
            return Ok(false);
        }
        let mut batches = self.batches();
        let mut places = self.places().await?;
        for (key, value) in found.entries {
            let (lsn, sequence) = feed::read_position(&key)?;
            let entry = HistoryEntry::decode(value.clone(), lsn)?;
            let target = self.target_of(&entry.suffix);
            let key = places[target].history_key(lsn, sequence).await?;
            batches[target].put(Space::Log, key, value, Stamp::NONE);
            progress.history = (lsn, sequence);
            yield_if_due().await;
        }
        self.commit(batches).await?;
        Ok(true)
    }

    /// Tells the targets how far history was removed from the source, after which it takes no more writes.
    pub async fn copy_horizon(&self) -> Result<(), Error> {
        let view = self.engine.view(self.source.shard, self.source.epoch).await?;
        let Some(horizon) = view.get(Space::Log, &history::horizon_key(self.source.shard.0)).await? else {
            return Ok(());
        };
        let mut batches = self.batches();
        for batch in &mut batches {
            batch.put(Space::Log, history::horizon_key(batch.shard.0), horizon.clone(), Stamp::NONE);
        }
        self.commit(batches).await
    }

    /// Copies documents that were changed meanwhile, as they are now.
    async fn follow(&self, view: &dyn View, progress: &mut CopyProgress) -> Result<CopyStep, Error> {
        let shard = self.source.shard.0;
        let key_after = |lsn: u64| trail::trail_key(shard, self.resharding, lsn.saturating_add(1), 0);
        let mut keys = KeyRange::prefix(&trail::trail_prefix(shard, self.resharding));
        keys.start = key_after(progress.lsn);
        let limit = ScanLimit { entry_count_max: DOCUMENTS_MAX, byte_count_max: usize::MAX };
        let mut found = view.scan(Space::Log, &keys, Direction::Forward, limit).await?;
        let Some((last, _)) = found.entries.last() else { return Ok(CopyStep::Complete) };
        let mut lsn = trail::read_lsn(last)?;
        let is_near_end = !found.more;
        if found.more {
            // The last commit may be cut: it is left for the next step, unless it is the only one, and then taken whole.
            let first = trail::read_lsn(&found.entries[0].0)?;
            if first == lsn {
                keys.end = key_after(lsn);
                let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
                found = view.scan(Space::Log, &keys, Direction::Forward, limit).await?;
            } else {
                lsn -= 1;
                let end = key_after(lsn);
                found.entries.retain(|(key, _)| *key < end);
            }
        }
        let mut changed = vec![BTreeSet::new(); self.targets.len()];
        for (_, suffix) in &found.entries {
            changed[self.target_of(suffix)].insert(suffix.clone());
        }
        for (target, changed) in self.targets.iter().zip(changed) {
            if !changed.is_empty() {
                progress.documents += changed.len() as u64;
                self.renew(view, target, changed).await?;
            }
        }
        progress.lsn = lsn;
        Ok(if is_near_end { CopyStep::NearEnd } else { CopyStep::Moved })
    }

    /// Makes documents of a target what they are in the source.
    async fn renew(
        &self,
        source: &dyn View,
        target: &CopyTarget,
        mut changed: BTreeSet<Bytes>,
    ) -> Result<(), Error> {
        let view = self.engine.view(target.shard, 0).await?;
        let mut documents: BTreeMap<Bytes, CopiedDocument> = BTreeMap::new();
        let mut places = CopyPlaces::new(target.shard.0, self.is_second.then(|| Arc::clone(&view)));
        // A number or a unique key that a document has now may be at another one in the target, which is of before then.
        while let Some(suffix) = changed.pop_first() {
            yield_if_due().await;
            let key = document::from_suffix(target.shard.0, &suffix);
            let old = view.get(Space::Body, &key).await?.map(Body::decode).transpose()?;
            let key = document::from_suffix(self.source.shard.0, &suffix);
            let mut new = source.get(Space::Body, &key).await?.map(Body::decode).transpose()?;
            if let Some(body) = new {
                new = Some(places.place(&suffix, body).await?);
            }
            if let Some(body) = &new {
                for other in self.holders(&*view, target, &suffix, body).await? {
                    if other != suffix && !documents.contains_key(&other) {
                        changed.insert(other);
                    }
                }
            }
            documents.insert(suffix, CopiedDocument { old, new });
        }
        let mut batch = WriteBatch::new(target.shard, 0);
        self.stage(&mut batch, &documents);
        self.commit(vec![batch]).await
    }

    /// The documents of a target that have the number or a unique key of another one.
    async fn holders(
        &self,
        view: &dyn View,
        target: &CopyTarget,
        suffix: &[u8],
        body: &Body,
    ) -> Result<Vec<Bytes>, Error> {
        let shard = target.shard.0;
        let mut numbers = vec![number::number_key(shard, body.header.number)];
        let unique_keys = self.indexes.unique_keys(shard, as_indexed(body, suffix, None));
        if !unique_keys.is_empty() {
            for holder in view.get_many(Space::Log, &unique_keys).await?.into_iter().flatten() {
                numbers.push(number::number_key(shard, unique::read_unique_value(&holder)?));
            }
        }
        Ok(view.get_many(Space::Log, &numbers).await?.into_iter().flatten().collect())
    }

    /// Stages that documents are no more what they were but what they are.
    fn stage(&self, batch: &mut WriteBatch, documents: &BTreeMap<Bytes, CopiedDocument>) {
        let shard = batch.shard.0;
        let unique_keys =
            |suffix: &Bytes, body: &Body| self.indexes.unique_keys(shard, as_indexed(body, suffix, None));
        let mut pairs: BTreeMap<u64, Pair<'_>> = BTreeMap::new();
        for (suffix, CopiedDocument { old, .. }) in documents {
            let Some(old) = old else { continue };
            pairs.entry(old.header.number).or_default().0 = Some((suffix, old));
            batch.delete(Space::Body, document::from_suffix(shard, suffix));
            batch.delete(Space::Log, number::number_key(shard, old.header.number));
            batch.delete(Space::Log, feed::feed_key(shard, old.header.lsn, old.header.sequence));
            for key in unique_keys(suffix, old) {
                batch.delete(Space::Log, key);
            }
            tally(batch, old, -1);
        }
        // Whatever comes after stays.
        for (suffix, CopiedDocument { new, .. }) in documents {
            let Some(new) = new else { continue };
            pairs.entry(new.header.number).or_default().1 = Some((suffix, new));
            self.put(batch, suffix, new);
            tally(batch, new, 1);
        }
        for (old, new) in pairs.into_values() {
            batch.set.extend(&self.entry_changes(batch.shard, old, new));
        }
    }

    /// Stages a document with its place in the directory and the feed, and its unique keys.
    fn put(&self, batch: &mut WriteBatch, suffix: &Bytes, body: &Body) {
        let (shard, header) = (batch.shard.0, body.header);
        batch.put(Space::Body, document::from_suffix(shard, suffix), body.as_bytes().clone(), Stamp::NONE);
        batch.put(Space::Log, number::number_key(shard, header.number), suffix.clone(), Stamp::NONE);
        let feed_key = feed::feed_key(shard, header.lsn, header.sequence);
        batch.put(Space::Log, feed_key, suffix.clone(), Stamp::NONE);
        for key in self.indexes.unique_keys(shard, as_indexed(body, suffix, None)) {
            batch.put(Space::Log, key, unique::unique_value(header.number), Stamp::NONE);
        }
        batch.high_water = batch.high_water.max(header.number);
    }

    fn entry_changes(
        &self,
        shard: ShardId,
        old: Option<(&Bytes, &Body)>,
        new: Option<(&Bytes, &Body)>,
    ) -> astrarium_kv::SetChanges {
        let (old_etag, new_etag) = (old.map(|(_, body)| etag(body)), new.map(|(_, body)| etag(body)));
        let old = old.map(|(suffix, body)| as_indexed(body, suffix, old_etag.as_deref()));
        let new = new.map(|(suffix, body)| as_indexed(body, suffix, new_etag.as_deref()));
        self.indexes.changes(shard.0, old, new).changes
    }

    /// Which target a document belongs to, by its key.
    fn target_of(&self, suffix: &[u8]) -> usize {
        let begins_after = |target: &CopyTarget| {
            let bound = document::effective_bound(0, &target.keys.min);
            bound[document::SHARD_PREFIX_LENGTH..] <= *suffix
        };
        self.targets.partition_point(begins_after).saturating_sub(1)
    }

    async fn places(&self) -> Result<Vec<CopyPlaces>, Error> {
        let mut places = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            let view = if self.is_second { Some(self.engine.view(target.shard, 0).await?) } else { None };
            places.push(CopyPlaces::new(target.shard.0, view));
        }
        Ok(places)
    }

    fn batches(&self) -> Vec<WriteBatch> {
        self.targets.iter().map(|target| WriteBatch::new(target.shard, 0)).collect()
    }

    async fn commit(&self, batches: Vec<WriteBatch>) -> Result<(), Error> {
        let filled = batches.into_iter().filter(|batch| !batch.mutations.is_empty());
        let replies: Vec<_> = filled.map(|batch| self.engine.commit(batch)).collect();
        for reply in replies {
            reply.await?;
        }
        Ok(())
    }
}

/// Whether a range holds documents on both sides of an effective key.
pub async fn has_both_halves(view: &dyn View, range: &Range, middle: &EffectiveKey) -> Result<bool, Error> {
    let shard = range.shard.0;
    let all = KeyRange::prefix(&document::shard_prefix(shard));
    let middle = document::effective_bound(shard, middle);
    let one = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
    for (start, end) in [(all.start, middle.clone()), (middle, all.end)] {
        let half = KeyRange { start, end };
        if view.scan(Space::Body, &half, Direction::Forward, one).await?.entries.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Finds places in the feed of a target. Commits of two sources can have the same LSN: what comes second makes room.
struct CopyPlaces {
    shard: u64,
    /// What the target has, if anything of another source.
    view: Option<Arc<dyn View>>,
    /// Places that were found.
    taken: BTreeSet<Bytes>,
}

impl CopyPlaces {
    fn new(shard: u64, view: Option<Arc<dyn View>>) -> CopyPlaces {
        CopyPlaces { shard, view, taken: BTreeSet::new() }
    }

    /// The document, where it will have its place.
    async fn place(&mut self, suffix: &Bytes, body: Body) -> Result<Body, Error> {
        if self.view.is_none() {
            return Ok(body);
        }
        let (shard, lsn) = (self.shard, body.header.lsn);
        let sequence = self
            .free(body.header.sequence, |sequence| feed::feed_key(shard, lsn, sequence), Some(suffix))
            .await?;
        Ok(body.at_sequence(sequence))
    }

    /// Where an entry of the history will be.
    async fn history_key(&mut self, lsn: u64, sequence: u32) -> Result<Bytes, Error> {
        let shard = self.shard;
        let key = |sequence| history::history_key(shard, lsn, sequence);
        Ok(key(if self.view.is_none() { sequence } else { self.free(sequence, key, None).await? }))
    }

    /// The first place from one on that nothing has, or this document.
    async fn free(
        &mut self,
        sequence: u32,
        key_of: impl Fn(u32) -> Bytes,
        own: Option<&Bytes>,
    ) -> Result<u32, Error> {
        let mut sequence = sequence | SECOND;
        loop {
            let key = key_of(sequence);
            let present = match &self.view {
                Some(view) => view.get(Space::Log, &key).await?,
                None => None,
            };
            if present.is_none_or(|suffix| Some(&suffix) == own) && self.taken.insert(key) {
                return Ok(sequence);
            }
            sequence = sequence.checked_add(1).ok_or(Malformed::new("place in a commit"))?;
        }
    }
}

/// A document as a target has it, and as it shall be.
struct CopiedDocument {
    old: Option<Body>,
    new: Option<Body>,
}

/// What the document of a number was and is, each with its key.
type Pair<'d> = (Option<(&'d Bytes, &'d Body)>, Option<(&'d Bytes, &'d Body)>);

/// Counts a document that comes or goes.
fn tally(batch: &mut WriteBatch, body: &Body, sign: i64) {
    batch.tallies[DOCUMENT_TALLY] += sign;
    batch.tallies[BYTE_TALLY] += sign * (body.text().len() as u64).cast_signed();
}
