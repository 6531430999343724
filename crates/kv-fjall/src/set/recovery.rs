//! Opening the set: what the list of runs names, and what fjall still holds of later groups.
//!
//! In: the set's folder, and the values of groups that fjall has. Out: the parts, and a merger to go on with.
//! Invariants
//! - Every run that the list names is there and is the file that was written, and so is every group's value; or the set counts
//!   as lost, is set aside and begun anew.
//! - Files of runs that the list does not name are left of an unfinished merge, and are removed.
//! - A folder without a list is a new one only while nothing was ever committed.

use super::cache::BlockCache;
use super::group_block::GroupBlock;
use super::manifest::Manifest;
use super::merger::{Merger, merge_in_memory};
use super::part::Part;
use super::parts::Parts;
use super::run_file::{RunFile, file_name};
use super::{SetOptions, aside, damaged, failed};
use crate::Core;
use crate::identity::Identity;
use crate::store::Store;
use astrarium_kv::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Parts in memory that are left to the merger; a kill can leave thousands of groups, and readers would suffer.
const PARTS_MAX: usize = 256;

const RUN_SUFFIX: &str = ".run";

/// An opened set, not yet running.
pub(crate) struct Recovered {
    folder: PathBuf,
    manifest: Manifest,
    cache: Arc<BlockCache>,
    parts: Arc<Parts>,
}

impl Recovered {
    /// The last group whose changes are in runs.
    pub(crate) fn merged_group(&self) -> u64 {
        self.manifest.merged
    }

    pub(crate) fn parts(&self) -> Arc<Parts> {
        Arc::clone(&self.parts)
    }

    /// The thread's work, for an engine that shows these parts.
    pub(crate) fn into_merger(self, core: Arc<Core>) -> Merger {
        Merger::new(core, self.folder, self.manifest, self.cache)
    }
}

/// The last group whose changes are in runs, as the list of a folder says.
pub(crate) fn merged_group(folder: &Path) -> Result<u64, Error> {
    Ok(Manifest::read(folder)?.map_or(0, |manifest| manifest.merged))
}

/// What the engine knows of the set besides its files.
pub(crate) struct Source<'a> {
    pub(crate) identity: Identity,
    /// The last group that was committed.
    pub(crate) last_group: u64,
    /// The last group that changed the set; nothing if that is not known.
    pub(crate) last_change: Option<u64>,
    pub(crate) store: &'a Store,
}

/// Opens the set in a folder.
pub(crate) fn recover(
    folder: PathBuf,
    options: &SetOptions,
    cache_bytes: u64,
    source: &Source<'_>,
) -> Result<Recovered, Error> {
    let cache = Arc::new(BlockCache::new(cache_bytes));
    match open(&folder, options, &cache, source) {
        Ok((manifest, parts)) => Ok(Recovered { folder, manifest, cache, parts: Arc::new(parts) }),
        Err(Error::Corruption { what }) => begin_anew(folder, cache, source, &what),
        Err(error) => Err(error),
    }
}

fn open(
    folder: &Path,
    options: &SetOptions,
    cache: &Arc<BlockCache>,
    source: &Source<'_>,
) -> Result<(Manifest, Parts), Error> {
    let mut manifest = match Manifest::read(folder)? {
        Some(manifest) => manifest,
        None if source.last_group == 0 => create(folder, source.identity)?,
        None => return Err(damaged("set/RUNS, the list of index runs, is missing")),
    };
    if manifest.identity.is_some_and(|identity| identity != source.identity) {
        return Err(damaged("set/RUNS, the list of index runs, belongs to another data folder"));
    }
    manifest.identity = Some(source.identity);
    remove_unnamed(folder, &manifest)?;
    let runs: Result<Vec<_>, _> =
        manifest.runs.iter().map(|run| RunFile::open(folder, *run, cache).map(Arc::new)).collect();
    let memory = merge_down(read_groups(source, manifest.merged)?, options)?;
    let loss = manifest.is_lost.then(|| aside::reason("index files were damaged").into());
    Ok((manifest, Parts { loss, memory, runs: runs? }))
}

/// The changes of groups after this one, the newest first.
fn read_groups(source: &Source<'_>, merged: u64) -> Result<Vec<Arc<Part>>, Error> {
    let mut parts = Vec::new();
    let mut last = merged;
    for (group, value) in source.store.set_blocks(merged)? {
        let (part, before) = GroupBlock::read(source.identity, group, &value)?;
        // The first one follows on some group that is in a run, the others on each other.
        let follows = |before: u64| if parts.is_empty() { before <= merged } else { before == last };
        if !before.is_none_or(follows) {
            return Err(missing_groups());
        }
        last = group;
        parts.push(Arc::new(part));
    }
    if source.last_change.is_some_and(|change| change > last) {
        return Err(missing_groups());
    }
    parts.reverse();
    Ok(parts)
}

fn missing_groups() -> Error {
    damaged("index entries of some commit groups are missing")
}

/// Sets the damaged folder aside and begins an empty one, whose list tells of the loss.
fn begin_anew(
    folder: PathBuf,
    cache: Arc<BlockCache>,
    source: &Source<'_>,
    what: &str,
) -> Result<Recovered, Error> {
    let kept = match std::fs::metadata(&folder) {
        Ok(_) => {
            Some(aside::move_folder(&folder).map_err(|error| failed("setting the index aside", &error))?)
        }
        Err(_) => None,
    };
    tracing::error!(
        damage = what,
        kept = kept.map(|path| path.display().to_string()),
        "the index is damaged: it is set aside and built anew; queries read all documents meanwhile"
    );
    std::fs::create_dir_all(&folder).map_err(|error| failed("creating the index's folder", &error))?;
    let manifest =
        Manifest { is_lost: true, merged: source.last_group, ..Manifest::empty(Some(source.identity)) };
    manifest.replace(&folder)?;
    sync_parent(&folder)?;
    // What fjall has of earlier groups may be what is damaged.
    source.store.drop_set_blocks(source.last_group).map_err(|error| crate::error::reading(&error))?;
    let parts = Parts { loss: Some(aside::reason(what).into()), ..Parts::default() };
    Ok(Recovered { folder, manifest, cache, parts: Arc::new(parts) })
}

fn create(folder: &Path, identity: Identity) -> Result<Manifest, Error> {
    std::fs::create_dir_all(folder).map_err(|error| failed("creating the index's folder", &error))?;
    let manifest = Manifest::empty(Some(identity));
    manifest.replace(folder)?;
    sync_parent(folder)?;
    Ok(manifest)
}

fn sync_parent(folder: &Path) -> Result<(), Error> {
    let parent = folder.parent().unwrap_or(folder);
    crate::folder::sync_folder(parent).map_err(|error| failed("creating the index's folder", &error))
}

fn remove_unnamed(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let failed = |error: std::io::Error| failed("looking for unfinished runs", &error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_named = |name: &str| manifest.runs.iter().any(|run| file_name(run.number) == name);
        if name.to_str().is_some_and(|name| name.ends_with(RUN_SUFFIX) && !is_named(name)) {
            std::fs::remove_file(folder.join(&name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Merges neighbours until there are few parts.
fn merge_down(mut memory: Vec<Arc<Part>>, options: &SetOptions) -> Result<Vec<Arc<Part>>, Error> {
    while memory.len() > PARTS_MAX {
        let merged =
            memory.chunks(PARTS_MAX).map(|parts| merge_in_memory(parts, options.block_bytes).map(Arc::new));
        memory = merged.collect::<Result<_, _>>()?;
    }
    Ok(memory)
}
