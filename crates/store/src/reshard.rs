//! Copying the documents of a range into a shard that takes its place or a part of it, while they are read and written.
//!
//! Three passes over the source for each such shard: documents in the order of their numbers, as they are when it is their turn; then whatever the trail of the source's
//! writers names, until little is left; then, when the source takes no more writes, the rest of it. History goes along in
//! the order of its commits. Documents keep their LSNs, so that positions of feeds and sessions stay right.
//! Invariants
//! - A step is one commit of one target. It leaves the target with documents that agree with what belongs to them, one document for each
//!   number and each unique key, and with a record of how far the copy is ([`CopyRecord`]), so whoever comes next goes on from there.
//! - A step expects the record as it left it. Whoever takes up a copy writes the record first ([`TargetCopy::take_up`]); from then on
//!   nobody else's steps succeed, however late they come.
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
use astrarium_keys::resharding::{CopyProgress, CopyRecord, copy_key};
use astrarium_keys::{Malformed, document, feed, number, trail, unique};
use astrarium_kv::{
    Direction, Engine, Expectation, KeyRange, ScanLimit, ShardId, Space, Stamp, View, WriteBatch, just_after,
};
use astrarium_partition::EffectiveKey;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Documents of one step at most, and bytes of them after which a step takes no more.
const DOCUMENTS_MAX: usize = 200;
const BYTES_MAX: usize = 2 << 20;
/// Entries of the history copied at once.
const HISTORY_STEP: ScanLimit = ScanLimit { entry_count_max: 200, byte_count_max: 2 << 20 };

/// A shard that is to have the documents of others, or some of them. Nobody has founded it yet.
#[derive(Debug, Clone)]
pub struct CopyTarget {
    shard: ShardId,
    /// The keys of its documents after their shard: from one on, up to another one. Without a bound all belong there.
    from: Option<Bytes>,
    to: Option<Bytes>,
}

impl CopyTarget {
    /// A shard for the documents from one effective key on up to another one, where there are others beside it.
    pub fn new(shard: ShardId, from: Option<&EffectiveKey>, to: Option<&EffectiveKey>) -> CopyTarget {
        let bound =
            |key: &EffectiveKey| document::effective_bound(0, key).slice(document::SHARD_PREFIX_LENGTH..);
        CopyTarget { shard, from: from.map(bound), to: to.map(bound) }
    }

    /// Whether a document of the sources belongs there, by its key.
    fn has(&self, suffix: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| from[..] <= *suffix)
            && self.to.as_ref().is_none_or(|to| *suffix < to[..])
    }
}

/// The copy into one target, as far as it is.
#[derive(Debug)]
pub struct TargetCopy {
    target: CopyTarget,
    record: CopyRecord,
}

/// What a copy goes by, which it cannot survive: the number of the resharding, the versions of the container's definition and of the
/// generations of its index, the count of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyBasis {
    /// The number of the resharding.
    pub resharding: u64,
    /// The versions of the definition and of the generations.
    pub versions: (u64, u64),
    /// The count of sources.
    pub source_count: usize,
}

impl CopyBasis {
    fn is_of(self, record: &CopyRecord) -> bool {
        let known = (record.resharding, record.versions, record.progress.len());
        known == (self.resharding, self.versions, self.source_count)
    }
}

impl TargetCopy {
    /// Goes on with the copy into a target, whoever began it, or begins it; nothing if what is there cannot be gone on with.
    pub async fn take_up(
        engine: &dyn Engine,
        target: CopyTarget,
        basis: CopyBasis,
    ) -> Result<Option<TargetCopy>, Error> {
        let view = engine.view(target.shard, 0).await?;
        let record = match read_record(&*view, target.shard).await? {
            Some(record) if basis.is_of(&record) => record,
            // Of before something changed, or from a program that did not write down how far it was.
            Some(_) => return Ok(None),
            None if view.state().version > 0 => return Ok(None),
            None => CopyRecord {
                version: 0,
                resharding: basis.resharding,
                versions: basis.versions,
                progress: vec![CopyProgress::default(); basis.source_count],
            },
        };
        drop(view);
        let mut copy = TargetCopy { target, record };
        let record = copy.record.clone();
        copy.commit(engine, copy.batch(), record).await?;
        Ok(Some(copy))
    }

    /// How far the copy of each source is.
    pub fn progress(&self) -> &[CopyProgress] {
        &self.record.progress
    }

    fn batch(&self) -> WriteBatch {
        WriteBatch::new(self.target.shard, 0)
    }

    /// Commits a step that brings the copy so far; refused if anybody else has taken it up.
    async fn commit(
        &mut self,
        engine: &dyn Engine,
        mut batch: WriteBatch,
        record: CopyRecord,
    ) -> Result<(), Error> {
        let key = copy_key(self.target.shard.0);
        let expectation = match self.record.version {
            0 => Expectation::Absent,
            version => Expectation::Version(version),
        };
        batch.expect(Space::Meta, key.clone(), expectation);
        batch.put(Space::Meta, key, record.encode(), Stamp::VALUE);
        let version = engine.commit(batch).await?.0;
        self.record = CopyRecord { version, ..record };
        Ok(())
    }

    /// The record with other progress of one source.
    fn with(&self, place: usize, progress: CopyProgress) -> CopyRecord {
        let mut record = self.record.clone();
        record.progress[place] = progress;
        record
    }
}

/// How far the copy into a shard is, as whoever makes it has last written; nothing if there is none.
pub async fn copy_record(engine: &dyn Engine, shard: ShardId) -> Result<Option<CopyRecord>, Error> {
    read_record(&*engine.view(shard, 0).await?, shard).await
}

async fn read_record(view: &dyn View, shard: ShardId) -> Result<Option<CopyRecord>, Error> {
    let value = view.get(Space::Meta, &copy_key(shard.0)).await?;
    Ok(value.map(|value| CopyRecord::decode(&value)).transpose()?)
}

/// One source of a copy into one target.
pub struct RangeCopier<'a> {
    /// Where it all is.
    pub engine: &'a dyn Engine,
    /// The container's.
    pub indexes: &'a Indexes,
    /// What is copied.
    pub source: &'a Range,
    /// Which of the sources it is. If it is not the first, the target has documents of another source already, whose commits have the
    /// same LSNs.
    pub place: usize,
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

/// What a step does to its target, before it is committed.
struct StagedStep {
    batch: WriteBatch,
    progress: CopyProgress,
    step: CopyStep,
}

impl RangeCopier<'_> {
    /// Does a bounded part.
    pub async fn step(&self, copy: &mut TargetCopy) -> Result<CopyStep, Error> {
        let StagedStep { batch, progress, step } = self.stage_step(copy).await?;
        // No view is held while it is committed: a remote engine has a bounded number of them.
        self.commit(copy, batch, progress).await?;
        Ok(step)
    }

    async fn stage_step(&self, copy: &TargetCopy) -> Result<StagedStep, Error> {
        let view = self.engine.view(self.source.shard, self.source.epoch).await?;
        let mut progress = copy.record.progress[self.place];
        let last = match progress.last_number {
            Some(last) => last,
            None => *progress.last_number.insert(last_number(&*view, self.source.shard.0).await?),
        };
        if progress.number < last {
            return self.copy_documents(&*view, copy, progress, last).await;
        }
        match self.copy_history(&*view, copy, progress).await? {
            Some(staged) => Ok(staged),
            None => self.follow(&*view, copy, progress).await,
        }
    }

    /// Copies the next documents in order of their numbers. Their places in the target are free: no number comes twice.
    async fn copy_documents(
        &self,
        view: &dyn View,
        copy: &TargetCopy,
        mut progress: CopyProgress,
        last: u64,
    ) -> Result<StagedStep, Error> {
        let shard = self.source.shard.0;
        let range = KeyRange {
            start: number::number_key(shard, progress.number + 1),
            end: just_after(&number::number_key(shard, last)),
        };
        let limit = ScanLimit { entry_count_max: DOCUMENTS_MAX, byte_count_max: usize::MAX };
        let found = view.scan(Space::Log, &range, Direction::Forward, limit).await?;
        let scanned = match found.entries.last() {
            Some((directory_key, _)) if found.more => number::read_number(directory_key)?,
            _ => last,
        };
        let own: Vec<_> = found.entries.iter().filter(|(_, suffix)| copy.target.has(suffix)).collect();
        let mut batch = copy.batch();
        let mut places = self.places(copy).await?;
        let keys: Vec<Bytes> = own.iter().map(|(_, suffix)| document::from_suffix(shard, suffix)).collect();
        let bodies = view.get_many(Space::Body, &keys, BYTES_MAX).await?;
        progress.number = match own.get(bodies.len()..) {
            // The step is full: the next one begins after the last document of this one.
            Some([_, ..]) => number::read_number(&own[bodies.len() - 1].0)?,
            _ => scanned,
        };
        for ((_, suffix), body) in own.iter().zip(bodies) {
            yield_if_due().await;
            let body = body.ok_or(Malformed::new("directory entry without a document"))?;
            let body = places.place(suffix, Body::decode(body)?).await?;
            self.put(&mut batch, suffix, &body);
            batch.set.extend(&self.entry_changes(batch.shard, None, Some((suffix, &body))));
            tally(&mut batch, &body, 1);
            progress.documents += 1;
        }
        Ok(StagedStep { batch, progress, step: CopyStep::Moved })
    }

    /// Copies what is next of the history; nothing at its end.
    async fn copy_history(
        &self,
        view: &dyn View,
        copy: &TargetCopy,
        mut progress: CopyProgress,
    ) -> Result<Option<StagedStep>, Error> {
        let shard = self.source.shard.0;
        let mut keys = KeyRange::prefix(&history::history_prefix(shard));
        let (lsn, sequence) = progress.history;
        keys.start = match progress.history {
            (0, 0) => history::history_key(shard, 1, 0),
            _ => just_after(&history::history_key(shard, lsn, sequence)),
        };
        let found = view.scan(Space::Log, &keys, Direction::Forward, HISTORY_STEP).await?;
        if found.entries.is_empty() {
            return Ok(None);
        }
        let mut batch = copy.batch();
        let mut places = self.places(copy).await?;
        for (key, value) in found.entries {
            let (lsn, sequence) = feed::read_position(&key)?;
            let entry = HistoryEntry::decode(value.clone(), lsn)?;
            progress.history = (lsn, sequence);
            if copy.target.has(&entry.suffix) {
                let key = places.history_key(lsn, sequence).await?;
                batch.put(Space::Log, key, value, Stamp::NONE);
            }
            yield_if_due().await;
        }
        Ok(Some(StagedStep { batch, progress, step: CopyStep::Moved }))
    }

    /// Tells the target how far history was removed from the source, after which it takes no more writes.
    pub async fn copy_horizon(&self, copy: &mut TargetCopy) -> Result<(), Error> {
        let view = self.engine.view(self.source.shard, self.source.epoch).await?;
        let Some(horizon) = view.get(Space::Log, &history::horizon_key(self.source.shard.0)).await? else {
            return Ok(());
        };
        drop(view);
        let mut batch = copy.batch();
        batch.put(Space::Log, history::horizon_key(batch.shard.0), horizon, Stamp::NONE);
        let progress = copy.record.progress[self.place];
        self.commit(copy, batch, progress).await
    }

    /// Copies documents that were changed meanwhile, as they are now.
    async fn follow(
        &self,
        view: &dyn View,
        copy: &TargetCopy,
        mut progress: CopyProgress,
    ) -> Result<StagedStep, Error> {
        let (shard, resharding) = (self.source.shard.0, copy.record.resharding);
        let key_after = |lsn: u64| trail::trail_key(shard, resharding, lsn.saturating_add(1), 0);
        let mut keys = KeyRange::prefix(&trail::trail_prefix(shard, resharding));
        keys.start = key_after(progress.lsn);
        let limit = ScanLimit { entry_count_max: DOCUMENTS_MAX, byte_count_max: usize::MAX };
        let mut found = view.scan(Space::Log, &keys, Direction::Forward, limit).await?;
        let Some((last, _)) = found.entries.last() else {
            return Ok(StagedStep { batch: copy.batch(), progress, step: CopyStep::Complete });
        };
        progress.lsn = trail::read_lsn(last)?;
        let is_near_end = !found.more;
        if found.more {
            // The last commit may be cut: it is left for the next step, unless it is the only one, and then taken whole.
            let first = trail::read_lsn(&found.entries[0].0)?;
            if first == progress.lsn {
                keys.end = key_after(first);
                let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
                found = view.scan(Space::Log, &keys, Direction::Forward, limit).await?;
            } else {
                progress.lsn -= 1;
                let end = key_after(progress.lsn);
                found.entries.retain(|(key, _)| *key < end);
            }
        }
        let mut own: Vec<(u64, Bytes)> = Vec::new();
        for (key, suffix) in found.entries.into_iter().filter(|(_, suffix)| copy.target.has(suffix)) {
            own.push((trail::read_lsn(&key)?, suffix));
        }
        let keys: Vec<Bytes> = own.iter().map(|(_, suffix)| document::from_suffix(shard, suffix)).collect();
        let fitting = view.get_many(Space::Body, &keys, BYTES_MAX).await?.len();
        let is_whole = fitting == own.len();
        if !is_whole {
            // More than a step holds: it ends before the commit that does not fit, but has the first one at least.
            progress.lsn = own[0].0.max(own[fitting].0 - 1);
            own.retain(|(lsn, _)| *lsn <= progress.lsn);
        }
        let changed: BTreeSet<Bytes> = own.into_iter().map(|(_, suffix)| suffix).collect();
        progress.documents += changed.len() as u64;
        let mut batch = copy.batch();
        if !changed.is_empty() {
            self.renew(view, copy, changed, &mut batch).await?;
        }
        let step = if is_near_end && is_whole { CopyStep::NearEnd } else { CopyStep::Moved };
        Ok(StagedStep { batch, progress, step })
    }

    /// Stages that documents of a target are what they are in the source.
    async fn renew(
        &self,
        source: &dyn View,
        copy: &TargetCopy,
        mut changed: BTreeSet<Bytes>,
        batch: &mut WriteBatch,
    ) -> Result<(), Error> {
        let target = &copy.target;
        let view = self.engine.view(target.shard, 0).await?;
        let mut documents: BTreeMap<Bytes, CopiedDocument> = BTreeMap::new();
        let mut places = CopyPlaces::new(target.shard.0, self.is_second().then(|| Arc::clone(&view)));
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
        self.stage(batch, &documents);
        Ok(())
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
            for holder in view.get_many(Space::Log, &unique_keys, usize::MAX).await?.into_iter().flatten() {
                numbers.push(number::number_key(shard, unique::read_unique_value(&holder)?));
            }
        }
        Ok(view.get_many(Space::Log, &numbers, usize::MAX).await?.into_iter().flatten().collect())
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

    fn is_second(&self) -> bool {
        self.place > 0
    }

    async fn places(&self, copy: &TargetCopy) -> Result<CopyPlaces, Error> {
        let shard = copy.target.shard;
        let view = if self.is_second() { Some(self.engine.view(shard, 0).await?) } else { None };
        Ok(CopyPlaces::new(shard.0, view))
    }

    /// Commits a step, if it does anything: otherwise it is enough to remember how far it came.
    async fn commit(
        &self,
        copy: &mut TargetCopy,
        batch: WriteBatch,
        progress: CopyProgress,
    ) -> Result<(), Error> {
        let record = copy.with(self.place, progress);
        if batch.mutations.is_empty() {
            copy.record = record;
            return Ok(());
        }
        copy.commit(self.engine, batch, record).await
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
