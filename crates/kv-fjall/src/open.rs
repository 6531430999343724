//! Opening a folder: everything that has to be true before the first read.
//!
//! In: a path. Out: a running [`FjallEngine`], or an [`OpenError`] an operator can act on.
//! The order: take the folder, read the mark, judge the journals, cut a torn end, open fjall, compare what it recovered
//! with the mark and the journals, start the threads. Nothing is changed before a loss is reported, except that a torn
//! end is cut (and kept beside).
//!
//! Not here: how each step is done (`folder`, `mark`, `recovery`, `store`).

use crate::committer::{Committer, TimeCounters};
use crate::error::{Doing, OpenError, opening};
use crate::folder::{Folder, sync_folder};
use crate::free_space::FreeSpace;
use crate::health::Health;
use crate::mark::{self, Mark};
use crate::queue::Queue;
use crate::recovery::{self, Verdict};
use crate::set::{self, Recovered};
use crate::snapshot::FjallSnapshot;
use crate::store::Store;
use crate::{Core, FjallEngine, Life, Options};
use arc_swap::ArcSwap;
use astrarium_kv::Error;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// fjall's file that is there, and not empty, once its folder is complete.
const ENGINE_VERSION_FILE: &str = "version";

/// What [`FjallEngine::accept_loss`] gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// Highest commit group known to have been acknowledged before.
    pub acknowledged: u64,
    /// The last group that is there. Where it is not lower, nothing was missing.
    pub found: u64,
}

impl FjallEngine {
    /// Opens a folder for this process alone; makes it if it is not there.
    pub fn open(folder: &Path, options: Options) -> Result<FjallEngine, OpenError> {
        let (folder, is_new) = Folder::take(folder)?;
        if is_new {
            create(&folder)?;
        }
        let acknowledged = mark::read(&folder.mark())?.ok_or_else(|| unreadable_mark(&folder))?;
        let journaled = repair_torn_end(&folder, acknowledged)?;
        let (store, recovered) = open_store(&folder, &options)?;
        let lost = |acknowledged, found| {
            Err(OpenError::LostWrites { folder: folder.path().to_path_buf(), acknowledged, found })
        };
        if acknowledged > recovered {
            return lost(acknowledged, recovered);
        }
        // A table can only hold what the journal held before. If it knows of later groups, the journal lost them, and
        // with them what other keyspaces had not yet in tables. The other way round, fjall did not take a whole batch.
        if let Some(journaled) = journaled.filter(|journaled| *journaled != recovered) {
            return lost(journaled.max(recovered), journaled.min(recovered));
        }
        let cache_bytes = set_cache_bytes(&options);
        let blocks = |merged| store.set_blocks(merged);
        let set = set::recover(folder.set(), &options.set, cache_bytes, recovered, blocks)
            .map_err(|error| damaged_set(&folder, error))?;
        // A run can only hold what the journal held before.
        if set.merged_group() > recovered {
            return lost(set.merged_group(), recovered);
        }
        start(folder, options, store, acknowledged, recovered, set)
    }

    /// Makes a folder usable that [`FjallEngine::open`] refuses with [`OpenError::LostWrites`]: cuts the journal where
    /// its wholeness ends, keeps the cut bytes in `*.damaged` files beside it, and sets the mark to what is there.
    ///
    /// Tables may hold some writes that are later than the last whole group, so documents, indexes and feeds should be
    /// verified afterwards.
    pub fn accept_loss(folder: &Path) -> Result<AcceptedLoss, OpenError> {
        let (folder, is_new) = Folder::take(folder)?;
        if is_new {
            create(&folder)?;
        }
        let marked = mark::read(&folder.mark())?.unwrap_or(0);
        let engine = folder.engine();
        let mut loss = AcceptedLoss { acknowledged: marked, found: u64::MAX };
        if engine.try_exists().doing("look for", &engine)? {
            if let Verdict::Lost { acknowledged, found } =
                recovery::judge(&engine, marked).doing("scan", &engine)?
            {
                loss = AcceptedLoss { acknowledged, found };
            }
            recovery::cut(&engine).doing("cut the journals in", &engine)?;
        }
        let (store, recovered) = open_store(&folder, &Options::default())?;
        loss.found = loss.found.min(recovered);
        // A list of runs that cannot be read is for the next opening to report.
        let merged = set::merged_group(&folder.set()).unwrap_or(0);
        loss.acknowledged = loss.acknowledged.max(merged);
        // From here on, numbers go on behind the highest one ever seen, in an empty journal.
        let next = recovered.max(loss.acknowledged) + 1;
        store.begin(0).commit(next).map_err(|error| opening(folder.path(), error))?;
        store.flush().map_err(|error| opening(folder.path(), error))?;
        store.close().doing("empty the journals in", &engine)?;
        mark::write(&folder.mark(), next).doing("write the mark in", folder.path())?;
        sync_folder(folder.path()).doing("sync", folder.path())?;
        Ok(loss)
    }
}

/// The files of a new folder, FORMAT last: until it is there, the folder counts as new.
fn create(folder: &Folder) -> Result<(), OpenError> {
    mark::write(&folder.mark(), 0).doing("write the mark in", folder.path())?;
    folder.write_format()?;
    // A path of one name has an empty parent: the present folder.
    let parent =
        folder.path().parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(parent).doing("sync", parent)
}

/// Cuts a torn end and gives the last group that is in a journal, if one is.
fn repair_torn_end(folder: &Folder, acknowledged: u64) -> Result<Option<u64>, OpenError> {
    let engine = folder.engine();
    if !engine.try_exists().doing("look for", &engine)? {
        return Ok(None);
    }
    if acknowledged == 0 {
        remove_unfinished(&engine)?;
        if !engine.try_exists().doing("look for", &engine)? {
            return Ok(None);
        }
    }
    match recovery::judge(&engine, acknowledged).doing("scan the journals in", &engine)? {
        Verdict::Clean { last_group } => Ok(last_group),
        Verdict::TornEnd { last_group } => {
            recovery::cut(&engine).doing("cut the journals in", &engine)?;
            Ok(last_group)
        }
        Verdict::Lost { acknowledged, found } => {
            Err(OpenError::LostWrites { folder: folder.path().to_path_buf(), acknowledged, found })
        }
    }
}

/// fjall cannot go on with a folder whose making was cut short. Before its version file is complete nothing can have
/// been committed, so it is made anew.
fn remove_unfinished(engine: &Path) -> Result<(), OpenError> {
    let is_complete = std::fs::metadata(engine.join(ENGINE_VERSION_FILE)).is_ok_and(|file| file.len() > 0);
    if is_complete { Ok(()) } else { std::fs::remove_dir_all(engine).doing("remove the unfinished", engine) }
}

fn open_store(folder: &Folder, options: &Options) -> Result<(Store, u64), OpenError> {
    let store = Store::open(&folder.engine(), options).map_err(|error| opening(folder.path(), error))?;
    let recovered = store.last_group().map_err(|error| OpenError::Damaged {
        folder: folder.path().to_path_buf(),
        what: error.to_string(),
    })?;
    Ok((store, recovered))
}

/// The share of the cache that blocks of the set get.
pub(crate) fn set_cache_bytes(options: &Options) -> u64 {
    options.cache_bytes / 8 * 3
}

/// The share of the cache that single values get; what is left is for fjall's blocks.
pub(crate) fn value_cache_bytes(options: &Options) -> u64 {
    options.cache_bytes / 4
}

fn damaged_set(folder: &Folder, error: Error) -> OpenError {
    let folder = folder.path().to_path_buf();
    match error {
        Error::Corruption { what } => OpenError::Damaged { folder, what },
        other => OpenError::Io { doing: "open the set in", path: folder, source: io::Error::other(other) },
    }
}

fn unreadable_mark(folder: &Folder) -> OpenError {
    let what = "the ACKNOWLEDGED file is missing or not whole, so it is not known whether commits are missing; \
                restore it from a backup, or accept a possible loss with `astrarium repair --data DIR --accept-loss`";
    OpenError::Damaged { folder: folder.path().to_path_buf(), what: what.to_owned() }
}

fn start(
    folder: Folder,
    options: Options,
    store: Store,
    acknowledged: u64,
    last_group: u64,
    set: Recovered,
) -> Result<FjallEngine, OpenError> {
    let store = Arc::new(store);
    let mark = Arc::new(Mark::new(folder.mark(), last_group));
    let core = Arc::new(Core {
        queue: Queue::default(),
        health: Health::default(),
        current: ArcSwap::from_pointee(FjallSnapshot::open(Arc::clone(&store), last_group, set.parts())),
        publishing: Mutex::default(),
        set: set::Control::new(options.set, &set.parts(), set.merged_group()),
        shards: RwLock::default(),
        mark: Arc::clone(&mark),
        times: TimeCounters::default(),
        commits: 0.into(),
        conflicts: 0.into(),
        groups: 0.into(),
        free_space: FreeSpace::new(folder.path().to_path_buf(), options),
        is_closed: false.into(),
    });
    let committer = Committer::new(Arc::clone(&core), store, last_group);
    let merger = set.into_merger(Arc::clone(&core));
    let path = folder.path().to_path_buf();
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).doing("start a thread for", &path)
    };
    let committer = spawn("astrarium-commit", Box::new(move || committer.run()))?;
    let marker = spawn("astrarium-mark", Box::new(move || mark.run(acknowledged)))?;
    let merger = std::thread::Builder::new()
        .name("astrarium-merge".to_owned())
        .spawn(move || merger.run())
        .doing("start a thread for", &path)?;
    Ok(FjallEngine { core, life: Mutex::new(Some(Life { committer, marker, merger, _folder: folder })) })
}
