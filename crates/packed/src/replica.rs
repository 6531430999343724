//! A set that another process merges, as this one reads it: the manifest and the newest blocks come from shared storage.
//!
//! In: a manifest's bytes, and the blocks of the groups after those that it has in runs, both as of one moment. Out: a view, and
//! what is needed to go on from it.
//! A replica never changes; the next one shares its segments. It replaces no manifest and removes no blob.
//! Invariants
//! - Its view shows exactly the changes of groups up to [`Replica::group`].
//! - Blocks follow on each other without a gap, as they say themselves; otherwise the replica is refused as damaged.

use crate::cache::BlockCache;
use crate::group_block::GroupBlock;
use crate::manifest::Manifest;
use crate::policy::{self, MergeWork, Scope};
use crate::rewrite::merge_in_memory;
use crate::run::SortedRun;
use crate::segment::Segment;
use crate::stored::{Backing, SegmentBlob, SegmentRecord};
use crate::view::SetView;
use crate::{Blobs, Error, OwnerId, SetOptions, damaged};
use bytes::Bytes;
use std::sync::Arc;

/// Blocks that somebody else keeps in a cache of his own are kept here too, but few.
const CACHE_BYTES: u64 = 64 << 10;

/// A set as of a moment.
#[derive(Clone)]
pub struct Replica {
    backing: Arc<Backing>,
    owner: OwnerId,
    view: Arc<SetView>,
    group: u64,
}

impl Replica {
    /// Of a set to which nothing was added yet.
    pub fn empty(blobs: Arc<dyn Blobs>, owner: OwnerId) -> Replica {
        let backing = Arc::new(Backing { blobs, cache: BlockCache::new(CACHE_BYTES) });
        Replica { backing, owner, view: Arc::default(), group: 0 }
    }

    /// What readers see.
    pub fn view(&self) -> Arc<SetView> {
        Arc::clone(&self.view)
    }

    /// The last group whose changes it shows.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// Bytes that it holds in memory, about: blocks of groups, and what is known of runs.
    pub fn byte_count(&self) -> u64 {
        let known =
            |segment: &Arc<Segment>| (segment.index.byte_count() + segment.filter.byte_count()) as u64;
        let runs = self.view.runs.iter().flat_map(|run| &run.segments).map(known);
        self.view.memory_bytes() + runs.sum::<u64>()
    }

    /// How many segments in memory a reader looks at, and their bytes: what a merge would write.
    pub fn unmerged(&self) -> (usize, u64) {
        (self.view.memory.len(), self.view.memory_bytes())
    }

    /// How many numbers of groups lie between the first change that is in no run and the last: as many blocks as another process would
    /// have to read, or fewer.
    pub fn unmerged_span(&self) -> u64 {
        let first = self.view.memory.last().and_then(|oldest| oldest.groups()).map(|(first, _)| first);
        first.map_or(0, |first| self.group - first + 1)
    }

    /// After which group blocks are needed to go on to another manifest of the same set.
    pub fn needs_after(&self, manifest: Option<&[u8]>) -> Result<u64, Error> {
        let merged = read_manifest(manifest, self.owner)?.merged;
        Ok(if self.keeps_memory(merged) { self.group.max(merged) } else { merged })
    }

    /// Whether every segment in memory is wholly in runs by then, or not at all.
    fn keeps_memory(&self, merged: u64) -> bool {
        let straddles = |(first, last): (u64, u64)| first <= merged && merged < last;
        !self.view.memory.iter().filter_map(|segment| segment.groups()).any(straddles)
    }

    /// The set as of a manifest and the blocks of groups after [`Replica::needs_after`], the oldest first.
    pub fn advanced(
        &self,
        manifest: Option<&[u8]>,
        blocks: &[(u64, Bytes)],
        options: &SetOptions,
    ) -> Result<Replica, Error> {
        let manifest = read_manifest(manifest, self.owner)?;
        let merged = manifest.merged;
        let mut memory: Vec<Arc<Segment>> = if self.keeps_memory(merged) {
            let is_left = |segment: &&Arc<Segment>| segment.groups().is_some_and(|(first, _)| first > merged);
            self.view.memory.iter().filter(is_left).cloned().collect()
        } else {
            Vec::new()
        };
        let mut last = memory.first().and_then(|newest| newest.groups()).map_or(merged, |(_, last)| last);
        let mut is_first = memory.is_empty();
        for (group, value) in blocks {
            let (segment, before) = GroupBlock::read(self.owner, *group, value)?;
            let follows = |before: u64| if is_first { before <= merged } else { before == last };
            if *group <= last || !before.is_none_or(follows) {
                return Err(damaged("index entries of some commit groups are missing"));
            }
            (last, is_first) = (*group, false);
            memory.insert(0, Arc::new(segment));
        }
        let runs = manifest.runs.iter().map(|records| self.open_run(records)).collect::<Result<_, _>>()?;
        let view = SetView {
            lost: manifest.lost.clone().into(),
            needs_count: manifest.needs_count,
            sums: Arc::new(manifest.sums.clone()),
            memory,
            runs,
        };
        Replica { view: Arc::new(view), group: last, ..self.clone() }.merged_in_memory(options)
    }

    /// With the block of one more group, which follows on the last one; nothing if it follows on another.
    pub fn with(&self, block: &Bytes, group: u64, options: &SetOptions) -> Result<Option<Replica>, Error> {
        let (segment, before) = GroupBlock::read(self.owner, group, block)?;
        if before != Some(self.group) {
            return Ok(None);
        }
        let view = Arc::new(self.view.with(Arc::new(segment)));
        Replica { view, group, ..self.clone() }.merged_in_memory(options).map(Some)
    }

    /// With few segments in memory, as a merger would have them.
    fn merged_in_memory(mut self, options: &SetOptions) -> Result<Replica, Error> {
        let options = SetOptions { memory_bytes: u64::MAX, ..*options };
        let scope = Scope::OnlyMemoryBefore { written: 0 };
        while let Some(MergeWork::MergeMemory(range)) = policy::choose(&self.view, &options, scope) {
            let mut view = SetView::clone(&self.view);
            let old = view.memory[range].to_vec();
            let segment = Arc::new(merge_in_memory(&old, options.block_bytes)?);
            SetView::replace(&mut view.memory, &old, Some(segment));
            self.view = Arc::new(view);
        }
        Ok(self)
    }

    /// A run of a manifest; its segments as they are here already, where they are.
    fn open_run(&self, records: &[SegmentRecord]) -> Result<Arc<SortedRun>, Error> {
        let known = self.view.runs.iter().flat_map(|run| &run.segments);
        let open = |record: &SegmentRecord| {
            let is_same = |segment: &&Arc<Segment>| {
                segment.blob().is_some_and(|blob| {
                    let known = blob.record();
                    known.number == record.number && known.checksum == record.checksum
                })
            };
            match known.clone().find(is_same) {
                Some(segment) if segment.from() == record.from => Ok(Arc::clone(segment)),
                Some(segment) => Ok(Arc::new(segment.trimmed(&record.from))),
                None => SegmentBlob::open(&self.backing, record.clone()).map(Arc::new),
            }
        };
        let segments = records.iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Arc::new(SortedRun::of(segments)))
    }
}

fn read_manifest(manifest: Option<&[u8]>, owner: OwnerId) -> Result<Manifest, Error> {
    let Some(bytes) = manifest else { return Ok(Manifest::empty(Some(owner))) };
    let manifest = Manifest::decode(bytes)?;
    if manifest.owner.is_some_and(|other| other != owner) {
        return Err(damaged("RUNS, the list of index runs, belongs to another set"));
    }
    Ok(manifest)
}
