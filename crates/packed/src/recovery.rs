//! Opening the set: what the manifest names, and what the journal still holds of later groups.
//!
//! In: the blobs, and the groups' blocks that the journal has. Out: the segments, and a merger to go on with.
//! Invariants
//! - Every run that the manifest names is there and is the blob that was written, or its keys are lost. Every group's value is whole; or
//!   the set counts as lost, is set aside and begun anew.
//! - Blobs of runs that the manifest does not name are left of an unfinished merge, and are removed.
//! - A set without a manifest is a new one only while nothing was ever committed.

use crate::cache::BlockCache;
use crate::group_block::GroupBlock;
use crate::lost::{LostRange, joined};
use crate::manifest::Manifest;
use crate::merger::{Merger, Publisher};
use crate::rewrite::merge_in_memory;
use crate::run::SortedRun;
use crate::segment::Segment;
use crate::stored::{Backing, SegmentBlob, blob_name};
use crate::view::SetView;
use crate::{Blobs, Error, OwnerId, SetOptions, damaged};
use bytes::Bytes;
use std::sync::Arc;

/// Segments in memory that are left to the merger; a kill can leave thousands of groups, and readers would suffer.
const SEGMENTS_MAX: usize = 256;

const RUN_SUFFIX: &str = ".run";

/// Where the newest blocks come from: what keeps the block of every group until its changes are in a run.
pub trait Journal: Send + Sync {
    /// The blocks of groups after this one, the oldest first.
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error>;

    /// Blocks of groups up to this one are not needed any more. What is kept all the same is passed over.
    fn release(&self, up_to: u64) -> Result<(), Error>;
}

/// An opened set, not yet running.
pub struct Recovered {
    manifest: Manifest,
    backing: Arc<Backing>,
    view: Arc<SetView>,
}

impl Recovered {
    /// The last group whose changes are in runs.
    pub fn merged_group(&self) -> u64 {
        self.manifest.merged
    }

    /// The set as it was found.
    pub fn view(&self) -> Arc<SetView> {
        Arc::clone(&self.view)
    }

    /// The thread's work, for an engine that shows this view.
    pub fn into_merger(self, engine: Arc<dyn Publisher>) -> Merger {
        Merger::new(engine, self.manifest, self.backing)
    }
}

/// The last group whose changes are in runs, as the manifest says.
pub fn merged_group(blobs: &dyn Blobs) -> Result<u64, Error> {
    Ok(Manifest::read(blobs)?.map_or(0, |manifest| manifest.merged))
}

/// What the engine knows of the set besides its blobs.
pub struct Source<'a> {
    /// Whose set it is.
    pub owner: OwnerId,
    /// The last group that was committed.
    pub last_group: u64,
    /// The last group that changed the set; nothing if that is not known.
    pub last_change: Option<u64>,
    /// Where the newest blocks are.
    pub journal: &'a dyn Journal,
    /// Runs that are written from here on have this number at least: above all that ever were, where somebody may have kept them.
    pub first_run: u64,
}

/// Opens a set.
pub fn recover(
    blobs: Arc<dyn Blobs>,
    options: &SetOptions,
    cache_bytes: u64,
    source: &Source<'_>,
) -> Result<Recovered, Error> {
    let backing = Arc::new(Backing { blobs, cache: BlockCache::new(cache_bytes) });
    match open(&backing, options, source) {
        Ok((manifest, view)) => Ok(Recovered { manifest, backing, view: Arc::new(view) }),
        Err(Error::Damaged { what }) => begin_anew(backing, source, &what),
        Err(error) => Err(error),
    }
}

fn open(
    backing: &Arc<Backing>,
    options: &SetOptions,
    source: &Source<'_>,
) -> Result<(Manifest, SetView), Error> {
    let blobs = &*backing.blobs;
    let mut manifest = match Manifest::read(blobs)? {
        Some(manifest) => manifest,
        None if source.last_group == 0 => {
            let manifest = Manifest::empty(Some(source.owner));
            manifest.replace(blobs)?;
            manifest
        }
        None => return Err(damaged("RUNS, the list of index runs, is missing")),
    };
    manifest.next = manifest.next.max(source.first_run);
    if manifest.owner.is_some_and(|owner| owner != source.owner) {
        return Err(damaged("RUNS, the list of index runs, belongs to another data folder"));
    }
    manifest.owner = Some(source.owner);
    remove_unnamed(blobs, &manifest)?;
    let (runs, bad) = open_runs(backing, &manifest)?;
    let memory = merge_down(read_groups(source, manifest.merged)?, options)?;
    if !bad.is_empty() {
        manifest.runs = runs.iter().map(SortedRun::records).collect();
        give_up(blobs, &mut manifest, bad)?;
    }
    let (lost, sums) = (manifest.lost.clone().into(), Arc::new(manifest.sums.clone()));
    let needs_count = manifest.needs_count;
    Ok((
        manifest,
        SetView { lost, needs_count, sums, memory, runs: runs.into_iter().map(Arc::new).collect() },
    ))
}

/// A blob that is not what was written, and the keys it held.
type BadBlob = (String, LostRange);

/// The runs that the manifest names, without the segments whose blobs are not what was written; and those, with what was found. An
/// error if nobody knows which keys such a one had.
fn open_runs(backing: &Arc<Backing>, manifest: &Manifest) -> Result<(Vec<SortedRun>, Vec<BadBlob>), Error> {
    let (mut runs, mut bad) = (Vec::new(), Vec::new());
    for records in &manifest.runs {
        let mut segments = Vec::new();
        for record in records {
            match (SegmentBlob::open(backing, record.clone()), &record.keys) {
                (Ok(segment), _) => segments.push(Arc::new(segment)),
                (Err(Error::Damaged { what }), Some((start, end))) => {
                    let (start, end) = (Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
                    bad.push((blob_name(record.number), LostRange { start, end, what }));
                }
                (Err(error), _) => return Err(error),
            }
        }
        if !segments.is_empty() {
            runs.push(SortedRun::of(segments));
        }
    }
    Ok((runs, bad))
}

/// Goes on without damaged segments: their keys are lost.
fn give_up(blobs: &dyn Blobs, manifest: &mut Manifest, bad: Vec<BadBlob>) -> Result<(), Error> {
    let (names, ranges): (Vec<_>, Vec<_>) = bad.into_iter().unzip();
    let what: Vec<_> = ranges.iter().map(|range| range.what.clone()).collect();
    manifest.lost = joined(manifest.lost.iter().cloned().chain(ranges).collect());
    manifest.needs_count = true;
    manifest.replace(blobs)?;
    // What is not there cannot be kept.
    let there = blobs.list()?;
    let names: Vec<_> = names.into_iter().filter(|name| there.contains(name)).collect();
    let kept = if names.is_empty() { None } else { blobs.set_aside(&names).ok() };
    tracing::error!(
        damage = what.join(", "),
        kept,
        "a part of the index is damaged: it is set aside, and the index of its containers is built anew; queries over them read \
         all documents meanwhile"
    );
    Ok(())
}

/// The changes of groups after this one, the newest first.
fn read_groups(source: &Source<'_>, merged: u64) -> Result<Vec<Arc<Segment>>, Error> {
    let mut segments = Vec::new();
    let mut last = merged;
    for (group, value) in source.journal.blocks_after(merged)? {
        let (segment, before) = GroupBlock::read(source.owner, group, &value)?;
        // The first one follows on some group that is in a run, the others on each other.
        let follows = |before: u64| if segments.is_empty() { before <= merged } else { before == last };
        if !before.is_none_or(follows) {
            return Err(missing_groups());
        }
        last = group;
        segments.push(Arc::new(segment));
    }
    if source.last_change.is_some_and(|change| change > last) {
        return Err(missing_groups());
    }
    segments.reverse();
    Ok(segments)
}

fn missing_groups() -> Error {
    damaged("index entries of some commit groups are missing")
}

/// Sets everything aside and begins an empty set, whose manifest tells of the loss.
fn begin_anew(backing: Arc<Backing>, source: &Source<'_>, what: &str) -> Result<Recovered, Error> {
    let blobs = &*backing.blobs;
    let kept = match &blobs.list()?[..] {
        [] => None,
        names => Some(blobs.set_aside(names)?),
    };
    tracing::error!(
        damage = what,
        kept,
        "the index is damaged: it is set aside and built anew; queries read all documents meanwhile"
    );
    let manifest = Manifest {
        lost: vec![LostRange::whole(what)],
        merged: source.last_group,
        next: source.first_run,
        ..Manifest::empty(Some(source.owner))
    };
    manifest.replace(blobs)?;
    // What the journal has of earlier groups may be what is damaged.
    source.journal.release(source.last_group)?;
    let view = SetView { lost: manifest.lost.clone().into(), ..SetView::default() };
    Ok(Recovered { manifest, backing, view: Arc::new(view) })
}

fn remove_unnamed(blobs: &dyn Blobs, manifest: &Manifest) -> Result<(), Error> {
    let is_named = |name: &str| manifest.runs.iter().flatten().any(|run| blob_name(run.number) == name);
    for name in blobs.list()? {
        if name.ends_with(RUN_SUFFIX) && !is_named(&name) {
            blobs.remove(&name)?;
        }
    }
    Ok(())
}

/// Merges neighbours until there are few segments.
fn merge_down(mut memory: Vec<Arc<Segment>>, options: &SetOptions) -> Result<Vec<Arc<Segment>>, Error> {
    while memory.len() > SEGMENTS_MAX {
        let merged = memory
            .chunks(SEGMENTS_MAX)
            .map(|segments| merge_in_memory(segments, options.block_bytes).map(Arc::new));
        memory = merged.collect::<Result<_, _>>()?;
    }
    Ok(memory)
}
