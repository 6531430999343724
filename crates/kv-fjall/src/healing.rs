//! Opening the folder again, in place, when writes were refused only because the system lacked something: descriptors, memory,
//! room on the disk.
//!
//! A failed write or sync is never tried again on the same file. Instead everything is ended as in a kill, what was not
//! acknowledged is cut off the journal, since nobody knows whether the disk has it, and the folder is opened as after a kill,
//! with all its checks. Callers of the engine notice only that reads fail for a moment.
//! In: calls of [`astrarium_kv::Engine::heal`] from background work. Out: an engine that takes writes, or one that is as before.
//! Invariants
//! - Nothing is ended before a trial shows that files can be made, written and opened.
//! - Views that readers hold stay valid; fjall is opened again only when the last one is gone.
//! - A second attempt waits for longer than the first, up to a minute.

use crate::folder::Folder;
use crate::open::open_taken;
use crate::snapshot::FjallSnapshot;
use crate::{Core, DROP_TIME_MAX, FjallEngine, Life, Options, recovery, unavailable};
use astrarium_kv::Error;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Files that must be free to be opened before an attempt: those of a start with some tables.
const FREE_FILES: usize = 48;
/// Bytes that must be free to be written.
const FREE_BYTES: usize = 1 << 20;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// An engine that went well for so long begins with short pauses again.
const CALM: Duration = Duration::from_mins(5);
/// How long readers are waited for before that is worth a word.
const READERS_TIME_MAX: Duration = Duration::from_secs(30);

/// What is needed to open the folder again.
pub(crate) struct Healing {
    path: PathBuf,
    options: Options,
    pace: Mutex<HealingPace>,
}

struct HealingPace {
    last: Option<Instant>,
    pause: Duration,
}

impl Healing {
    pub(crate) fn new(path: PathBuf, options: Options) -> Healing {
        Healing { path, options, pace: Mutex::new(HealingPace { last: None, pause: PAUSE_MIN }) }
    }

    /// Whether it is time for an attempt.
    fn is_due(&self) -> bool {
        let mut pace = self.pace.lock();
        let passed = pace.last.map(|last| last.elapsed());
        if passed.is_some_and(|passed| passed < pace.pause) {
            return false;
        }
        let is_calm = passed.is_none_or(|passed| passed > CALM);
        pace.pause = if is_calm { PAUSE_MIN } else { (pace.pause * 2).min(PAUSE_MAX) };
        pace.last = Some(Instant::now());
        true
    }
}

impl FjallEngine {
    /// See [`astrarium_kv::Engine::heal`].
    pub(crate) fn reopen_if_it_may_help(&self) -> Result<bool, Error> {
        let core = self.core.load_full();
        if !core.health.may_heal() || core.is_closed.load(Ordering::Relaxed) || !self.healing.is_due() {
            return Ok(false);
        }
        let refusal = core.free_space.refusal();
        if let Some(error) =
            refusal.or_else(|| try_out(&self.healing.path).err().map(|error| error.to_string()))
        {
            tracing::warn!(error, "storage still lacks what made a write fail");
            return Ok(false);
        }
        let mut life = self.life.lock();
        let folder = match life.take() {
            Some(running) => match end(&core, running)? {
                Ok(folder) => folder,
                Err(running) => {
                    *life = Some(running);
                    return Ok(false);
                }
            },
            // An attempt before this one ended the engine and could not open it again.
            None => take(&self.healing.path)?,
        };
        let engine = folder.engine();
        recovery::cut_after(&engine, core.mark.acknowledged())
            .map_err(|error| unavailable(&format!("cutting the journal failed: {error}")))?;
        let opened = open_taken(folder, self.healing.options.clone());
        let (renewed, running) = opened.map_err(|error| unavailable(&error.to_string()))?;
        for (new, old) in [
            (&renewed.commits, &core.commits),
            (&renewed.conflicts, &core.conflicts),
            (&renewed.groups, &core.groups),
        ] {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        *life = Some(running);
        self.core.store(renewed);
        tracing::warn!("storage was opened again and takes writes");
        Ok(true)
    }
}

/// Ends an engine as a kill would, but waits until nobody reads. Gives the folder, or the engine back if somebody reads for
/// too long.
fn end(core: &Arc<Core>, life: Life) -> Result<Result<Folder, Life>, Error> {
    let view = core.current.swap(Arc::new(FjallSnapshot::closed()));
    core.watchers.wake_all();
    let mut store = Arc::clone(view.store()?);
    core.queue.abandon();
    core.set.stop();
    core.reclaim.stop();
    core.mark.stop();
    let deadline = Instant::now() + DROP_TIME_MAX;
    let is_finished = || {
        let are_writers = life.committer.is_finished() && life.marker.is_finished();
        are_writers && life.merger.is_finished() && life.reclaimer.is_finished()
    };
    while !is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !is_finished() {
        core.current.store(view);
        return Ok(Err(life));
    }
    let Life { committer, marker, merger, reclaimer, folder } = life;
    // What they hold goes with them.
    drop((committer.join(), marker.join(), merger.join(), reclaimer.join()));
    drop(view);
    let mut warning = Some(Instant::now() + READERS_TIME_MAX);
    loop {
        store = match Arc::try_unwrap(store) {
            // Everything acknowledged is in the journal or in tables.
            Ok(_) => return Ok(Ok(folder)),
            Err(store) => store,
        };
        if warning.is_some_and(|due| Instant::now() >= due) {
            tracing::warn!("a long read keeps storage from being opened again");
            warning = None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn take(path: &Path) -> Result<Folder, Error> {
    let (folder, is_new) = Folder::take(path).map_err(|error| unavailable(&error.to_string()))?;
    // A folder that was emptied meanwhile must not become a new, empty account.
    if is_new { Err(unavailable("the data folder is empty")) } else { Ok(folder) }
}

/// Makes, writes and opens files as a start would.
fn try_out(folder: &Path) -> io::Result<()> {
    let path = folder.join("TRIAL.new");
    let trial = File::create(&path).and_then(|mut file| {
        file.write_all(&vec![1; FREE_BYTES])?;
        file.sync_all()
    });
    let opened =
        trial.and_then(|()| (0..FREE_FILES).map(|_| File::open(&path)).collect::<io::Result<Vec<_>>>());
    let removed = std::fs::remove_file(&path);
    opened.map(drop).and(removed)
}
