//! Opening the set: what the list of runs names, and what fjall still holds of later groups.
//!
//! In: the set's folder, and the values of groups that fjall has. Out: the parts, and a merger to go on with.
//! Invariants
//! - Every run that the list names is there and is the file that was written, or opening fails.
//! - Files of runs that the list does not name are left of an unfinished merge, and are removed.
//! - A folder without a list is a new one only while nothing was ever committed.

use super::cache::BlockCache;
use super::group_block::GroupBlock;
use super::manifest::Manifest;
use super::merger::{Merger, merge_in_memory};
use super::part::Part;
use super::parts::Parts;
use super::run_file::{RunFile, file_name};
use super::{SetOptions, damaged, failed};
use crate::Core;
use astrarium_kv::Error;
use bytes::Bytes;
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

/// Opens the set in a folder. `last_group` is the last that was committed; `values` gives those of later groups than one,
/// the oldest first.
pub(crate) fn recover(
    folder: PathBuf,
    options: &SetOptions,
    cache_bytes: u64,
    last_group: u64,
    values: impl FnOnce(u64) -> Result<Vec<(u64, Bytes)>, Error>,
) -> Result<Recovered, Error> {
    let manifest = match Manifest::read(&folder)? {
        Some(manifest) => manifest,
        None if last_group == 0 => create(&folder)?,
        None => return Err(damaged("the list of the set's runs is missing")),
    };
    remove_unnamed(&folder, &manifest)?;
    let cache = Arc::new(BlockCache::new(cache_bytes));
    let runs: Result<Vec<_>, _> =
        manifest.runs.iter().map(|run| RunFile::open(&folder, *run, &cache).map(Arc::new)).collect();
    let mut memory = Vec::new();
    for (group, value) in values(manifest.merged)?.into_iter().rev() {
        memory.push(Arc::new(GroupBlock::read(group, &value)?));
    }
    let memory = merge_down(memory, options)?;
    let parts = Arc::new(Parts { memory, runs: runs? });
    Ok(Recovered { folder, manifest, cache, parts })
}

fn create(folder: &Path) -> Result<Manifest, Error> {
    std::fs::create_dir_all(folder).map_err(|error| failed("creating the set's folder", &error))?;
    let manifest = Manifest::empty();
    manifest.replace(folder)?;
    if let Some(parent) = folder.parent() {
        crate::folder::sync_folder(parent).map_err(|error| failed("creating the set's folder", &error))?;
    }
    Ok(manifest)
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
