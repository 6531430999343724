//! The one thread that merges the parts of the set, while the committer adds new ones and readers read.
//!
//! In: the parts as they are. Out: fewer of them, with the same keys.
//! Long work is done bit by bit, and more urgent work in between (`policy::Scope`): parts in memory are merged while a
//! run is written, and runs are written while runs are merged. So one thread is enough, merging never takes more than
//! one core, and no two merges meet.
//! Invariants
//! - The order of a change: the new file is synced, the list of runs replaced and synced, the readers' view changed, what
//!   fjall holds of the groups dropped. A crash between any two leaves everything there once.
//! - Memory is bounded by a block for each part merged, and the index of what is written.
//! - A failed write is tried again from the beginning, in a new file. Only a list of runs whose state is unknown stops the
//!   engine from writing.
//! - Damage stops nothing: all files are set aside, and what is asked of the set is refused until the layer above has told
//!   that it relies on none of the lost keys any more (`aside`).

use super::aside;
use super::builder::PartBuilder;
use super::cache::BlockCache;
use super::control::{Request, Wake};
use super::manifest::{Manifest, ReplaceError};
use super::merge::PartMerge;
use super::part::Part;
use super::parts::Parts;
use super::policy::{self, Scope, Work};
use super::run_file::{FIRST_BLOCK, RunFile, RunWriter};
use crate::Core;
use astrarium_kv::Error;
use std::path::PathBuf;
use std::sync::Arc;

/// Keys merged between two looks for more urgent work: about half a millisecond.
const KEYS_AT_ONCE: usize = 8192;

pub(crate) struct Merger {
    core: Arc<Core>,
    folder: PathBuf,
    manifest: Manifest,
    cache: Arc<BlockCache>,
    /// What groups had added when parts in memory were last merged for want of other work.
    idle_bytes: u64,
    /// Bytes of runs that may be merged for want of other work.
    run_credit: u64,
    /// Nothing else happens any more: what is in memory is written, whatever its size.
    is_closing: bool,
}

/// Bytes of runs that may be merged for want of other work after opening: small runs are left of closing.
const RUN_CREDIT: u64 = 64 << 20;

/// So many times what has come may be merged for want of other work.
const IDLE_TIMES: u64 = 4;

/// Why work ended early.
enum Halt {
    Stopped,
    /// May be tried again.
    Failed(Error),
    /// Must not be.
    Fatal(Error),
    /// A file is not what was written.
    Damaged(String),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        match error {
            Error::Corruption { what } | Error::SetLost { what } => Halt::Damaged(what),
            other => Halt::Failed(other),
        }
    }
}

impl From<ReplaceError> for Halt {
    fn from(error: ReplaceError) -> Halt {
        match error {
            ReplaceError::Unchanged(error) => Halt::Failed(error),
            ReplaceError::Unknown(error) => Halt::Fatal(error),
        }
    }
}

/// Tells the others when the thread ends in a panic.
struct Watch(Arc<Core>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "merging the index stopped because of an error of the program";
            self.0.health.fail(reason.to_owned(), true);
            self.0.set.stop();
        }
    }
}

impl Merger {
    pub(super) fn new(
        core: Arc<Core>,
        folder: PathBuf,
        manifest: Manifest,
        cache: Arc<BlockCache>,
    ) -> Merger {
        Merger { core, folder, manifest, cache, idle_bytes: 0, run_credit: RUN_CREDIT, is_closing: false }
    }

    /// Works until it is stopped; gives itself back for [`Merger::close`].
    pub(crate) fn run(mut self) -> Merger {
        let _watch = Watch(Arc::clone(&self.core));
        let core = Arc::clone(&self.core);
        loop {
            let is_due = || self.next_work(Scope::All).is_some();
            let next = match core.set.sleep(is_due, |grown| self.next_idle_work(grown).is_some()) {
                Wake::Stop => break,
                Wake::Work => Ok(self.next_work(Scope::All)),
                Wake::Idle { grown_bytes } => Ok(self.spend_credit(grown_bytes)),
                Wake::Request(request) => self.answer(request).map(|()| None),
            };
            let done = next.and_then(|next| match next {
                Some((parts, work)) => self.perform(&parts, work),
                None => Ok(()),
            });
            let done = match done {
                Err(Halt::Damaged(what)) => self.set_aside(&what),
                done => done,
            };
            match done {
                Ok(()) => {}
                Err(Halt::Stopped) => break,
                Err(Halt::Damaged(what)) => {
                    // Setting aside reads nothing, so this does not come.
                    core.health.fail(format!("the index cannot be set aside: {what}"), true);
                    core.set.stop();
                    break;
                }
                Err(Halt::Failed(error)) => {
                    let trouble = format!("the index cannot be merged: {error}");
                    tracing::warn!(%error, "merging the index failed and will be tried again");
                    if core.set.sleep_in_trouble(trouble) == Wake::Stop {
                        break;
                    }
                }
                Err(Halt::Fatal(error)) => {
                    core.health.fail(format!("merging the index failed: {error}"), true);
                    core.set.stop();
                    break;
                }
            }
        }
        self
    }

    fn answer(&mut self, request: Request) -> Result<(), Halt> {
        let store = self.core.current.load().store().map(Arc::clone)?;
        match (request, store.set_alarm.take()) {
            (_, Some(what)) => self.set_aside(&what)?,
            (Request::SetAside, None) => {}
            (Request::AcceptLoss, None) => self.accept_loss()?,
        }
        self.core.set.answered();
        Ok(())
    }

    /// Goes on with an empty set; tells that keys are missing until that is accepted.
    fn set_aside(&mut self, what: &str) -> Result<(), Halt> {
        let core = Arc::clone(&self.core);
        let mut replaced = Ok(());
        let mut manifest = Manifest { is_lost: true, runs: Vec::new(), ..self.manifest.clone() };
        core.replace_view(|group, parts| {
            manifest.merged = group;
            replaced = manifest.replace(&self.folder);
            if replaced.is_ok() {
                *parts = Parts { loss: Some(aside::reason(what).into()), ..Parts::default() };
            }
        });
        replaced?;
        let kept = aside::move_runs(&self.folder, &self.manifest);
        tracing::error!(
            damage = what,
            kept = kept.ok().as_deref().map(|path| path.display().to_string()),
            "the index is damaged: it is set aside and built anew; queries read all documents meanwhile"
        );
        self.manifest = manifest;
        core.set.merged(self.manifest.merged);
        self.drop_blocks();
        Ok(())
    }

    fn accept_loss(&mut self) -> Result<(), Halt> {
        let manifest = Manifest { is_lost: false, ..self.manifest.clone() };
        manifest.replace(&self.folder)?;
        self.manifest = manifest;
        self.core.replace_parts(|parts| parts.loss = None);
        Ok(())
    }

    /// Writes what is in memory into a run, so that the next opening finds nothing to do.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.is_closing = true;
        let parts = self.core.parts();
        if parts.memory.is_empty() {
            return Ok(());
        }
        self.perform(&parts, Work::WriteRun).map_err(|halt| match halt {
            Halt::Stopped => crate::health::closed(),
            Halt::Failed(error) | Halt::Fatal(error) => error,
            Halt::Damaged(what) => super::damaged(&what),
        })
    }

    /// The next thing to do, and with what, unless the disk has no room for it.
    fn next_work(&self, scope: Scope) -> Option<(Arc<Parts>, Work)> {
        let parts = self.core.parts();
        let work = policy::choose(&parts, &self.core.set.options, scope)?;
        self.has_room(&parts, &work).then_some((parts, work))
    }

    /// What to do when nobody commits.
    fn next_idle_work(&self, grown_bytes: u64) -> Option<(Arc<Parts>, Work)> {
        let parts = self.core.parts();
        let memory_credit = (grown_bytes - self.idle_bytes) * IDLE_TIMES;
        let work = policy::choose_idle(&parts, memory_credit, self.run_credit)?;
        self.has_room(&parts, &work).then_some((parts, work))
    }

    fn spend_credit(&mut self, grown_bytes: u64) -> Option<(Arc<Parts>, Work)> {
        let (parts, work) = self.next_idle_work(grown_bytes)?;
        match &work {
            Work::MergeMemory(_) => self.idle_bytes = grown_bytes,
            Work::WriteRun | Work::MergeRuns(_) => self.run_credit = 0,
        }
        Some((parts, work))
    }

    /// Whether the disk has room for what the work writes. What is in memory has to be written in any case.
    fn has_room(&self, parts: &Parts, work: &Work) -> bool {
        let Work::MergeRuns(range) = work else { return true };
        let needed = parts.runs[range.clone()].iter().map(|part| part.byte_count()).sum();
        self.core.free_space.has_room(needed)
    }

    /// Does what is more urgent than the work at hand.
    fn attend(&mut self, scope: Scope) -> Result<(), Halt> {
        if self.is_closing {
            return Ok(());
        }
        if self.core.set.is_stopped() {
            return Err(Halt::Stopped);
        }
        while let Some((parts, work)) = self.next_work(scope) {
            self.perform(&parts, work)?;
        }
        Ok(())
    }

    fn perform(&mut self, parts: &Parts, work: Work) -> Result<(), Halt> {
        match work {
            Work::MergeMemory(range) => self.merge_memory(&parts.memory[range]),
            Work::WriteRun => {
                let scope = Scope::OnlyMemoryBefore { written: parts.memory.len() };
                self.replace_by_run(&parts.memory, parts.runs.is_empty(), scope)
            }
            Work::MergeRuns(range) => {
                let is_bottom = range.end == parts.runs.len();
                self.replace_by_run(&parts.runs[range], is_bottom, Scope::NotRuns)
            }
        }
    }

    fn merge_memory(&mut self, old: &[Arc<Part>]) -> Result<(), Halt> {
        let part = merge_in_memory(old, self.core.set.options.block_bytes)?;
        self.core.replace_parts(|parts| Parts::replace(&mut parts.memory, old, Some(Arc::new(part))));
        self.core.set.merged(self.manifest.merged);
        Ok(())
    }

    /// Merges parts into a run that takes their place.
    fn replace_by_run(&mut self, old: &[Arc<Part>], is_bottom: bool, scope: Scope) -> Result<(), Halt> {
        let run = self.write_run(old, is_bottom, scope)?.map(Arc::new);
        let mut manifest = self.manifest.clone();
        if let Some((_, last)) = old.first().and_then(|newest| newest.groups()) {
            manifest.merged = last;
        }
        let record = run.as_ref().and_then(|run| run.file()).map(RunFile::record);
        let old_files = || old.iter().filter_map(|part| part.file());
        let replaced: Vec<_> = old_files().map(|file| file.record().number).collect();
        let is_replaced = |number: &u64| replaced.contains(number);
        let place = manifest.runs.iter().position(|run| is_replaced(&run.number)).unwrap_or(0);
        manifest.runs.retain(|run| !is_replaced(&run.number));
        manifest.runs.splice(place..place, record);
        if let Err(error) = manifest.replace(&self.folder) {
            if matches!(error, ReplaceError::Unchanged(_)) {
                run.iter().filter_map(|run| run.file()).for_each(RunFile::replaced);
            }
            return Err(error.into());
        }
        self.manifest = manifest;
        self.core.replace_parts(|parts| {
            if replaced.is_empty() {
                Parts::replace(&mut parts.memory, old, None);
                parts.runs.splice(0..0, run);
            } else {
                Parts::replace(&mut parts.runs, old, run);
            }
        });
        old_files().for_each(RunFile::replaced);
        self.core.set.merged(self.manifest.merged);
        if replaced.is_empty() {
            self.run_credit += record.map_or(0, |run| run.byte_count) * IDLE_TIMES;
            self.drop_blocks();
        }
        Ok(())
    }

    /// Frees what fjall holds of the groups that are in runs now.
    fn drop_blocks(&self) {
        let view = self.core.current.load();
        let Ok(store) = view.store() else { return };
        // What stays takes room and does no harm; the next run frees it.
        if let Err(error) = store.drop_set_blocks(self.manifest.merged) {
            tracing::warn!(%error, "could not drop merged blocks of the set");
        }
    }

    /// Nothing when no key is left.
    fn write_run(&mut self, old: &[Arc<Part>], is_bottom: bool, scope: Scope) -> Result<Option<Part>, Halt> {
        let number = self.manifest.next;
        self.manifest.next += 1;
        let writer = RunWriter::create(&self.folder, number)?;
        let builder = PartBuilder::new(writer, FIRST_BLOCK, self.core.set.options.block_bytes);
        let mut merge = PartMerge::new(old, builder, is_bottom)?;
        while merge.work(KEYS_AT_ONCE)? {
            self.attend(scope)?;
        }
        let (writer, summary) = merge.finish()?;
        if summary.index.block_count() == 0 {
            return Ok(None);
        }
        Ok(Some(writer.finish(summary, &self.cache)?))
    }
}

/// One part in memory of several, the newest first.
pub(super) fn merge_in_memory(old: &[Arc<Part>], block_bytes: usize) -> Result<Part, Error> {
    let groups = |part: &Arc<Part>| part.groups().unwrap_or_default();
    let (newest, oldest) = (old.first().map(groups), old.last().map(groups));
    let image = Vec::with_capacity(old.iter().map(|part| part.byte_count()).sum::<u64>() as usize);
    let mut merge = PartMerge::new(old, PartBuilder::new(image, 0, block_bytes), false)?;
    merge.work(usize::MAX)?;
    let (mut image, summary) = merge.finish()?;
    image.shrink_to_fit();
    let groups = (oldest.unwrap_or_default().0, newest.unwrap_or_default().1);
    Ok(Part::in_memory(image.into(), summary, groups))
}
