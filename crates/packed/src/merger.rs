//! The one thread that merges the segments of the set, while the committer adds new ones and readers read.
//!
//! In: the segments as they are. Out: fewer of them, with the same keys.
//! Long work is done bit by bit, and more urgent work in between (`policy::Scope`): segments in memory are merged while a
//! run is written, and runs are written while runs are merged. So one thread is enough, merging never takes more than
//! one core, and no two merges meet.
//! Invariants
//! - The order of a change: the new blob is synced, the manifest replaced and synced, the readers' view changed, what
//!   the journal holds of the groups dropped. A crash between any two leaves everything there once.
//! - Memory is bounded by a block for each segment merged, and the index of what is written.
//! - A failed write is tried again from its beginning, in a new blob. Only a manifest whose state is unknown stops the
//!   engine from writing.
//! - Damage stops nothing: all blobs are set aside, and what is asked of the set is refused until the layer above has told
//!   that it relies on none of the lost keys any more.

use crate::builder::SegmentBuilder;
use crate::control::Control;
use crate::control::{Request, Wake};
use crate::dropped::DroppedPrefixes;
use crate::manifest::Manifest;
use crate::merge::SegmentMerge;
use crate::policy::{self, Scope, Work};
use crate::recovery::{Journal, reason};
use crate::segment::Segment;
use crate::stored::{Backing, FIRST_BLOCK, SegmentBlob, SegmentWriter, blob_name};
use crate::view::SetView;
use crate::{Error, ReplaceError};
use bytes::Bytes;
use std::sync::Arc;

/// Keys merged between two looks for more urgent work: about half a millisecond.
const KEYS_AT_ONCE: usize = 8192;

/// What the merger needs of its engine: the one place where readers get their view.
pub trait Publisher: Send + Sync {
    /// The set as readers get it now.
    fn view(&self) -> Arc<SetView>;

    /// Changes the view, while no group is published after the one that is told.
    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView));

    /// Where the newest blocks are.
    fn journal(&self) -> Result<Arc<dyn Journal>, Error>;

    /// What the merger and the committer share.
    fn control(&self) -> &Control;

    /// Prefixes of dropped keys, in order, none within another. Nobody adds such keys again before no segment has one.
    fn dropped(&self) -> Vec<Bytes>;

    /// Damage that a reader met, once.
    fn take_damage(&self) -> Option<String>;

    /// Whether there is room for a run of so many bytes.
    fn has_room(&self, byte_count: u64) -> bool;

    /// Merging cannot go on: nothing may be written any more.
    fn fail(&self, reason: String);
}

/// Merges the segments of a set, on a thread of its own.
pub struct Merger {
    engine: Arc<dyn Publisher>,
    manifest: Manifest,
    backing: Arc<Backing>,
    /// What groups had added when segments in memory were last merged for want of other work.
    idle_bytes: u64,
    /// Bytes of runs that may be merged for want of other work.
    run_credit: u64,
    /// Nothing else happens any more: what is in memory is written, whatever its size.
    is_closing: bool,
}

/// Bytes of runs that may be merged for want of other work after opening: small runs are left of closing.
const RUN_CREDIT: u64 = 64 << 20;

/// A run of no more bytes is written anew for any dropped key in it.
const SMALL_RUN_BYTES: u64 = 16 << 20;

/// One in so many entries must be dropped before a larger one is.
const USELESS_SHARE: u64 = 5;

/// So many times what has come may be merged for want of other work.
const IDLE_TIMES: u64 = 4;

/// Why work ended early.
enum Halt {
    Stopped,
    /// May be tried again.
    Failed(Error),
    /// Must not be.
    Fatal(Error),
    /// A blob is not what was written.
    Damaged(String),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        match error {
            Error::Damaged { what } | Error::Lost { what } => Halt::Damaged(what),
            error @ Error::Unavailable { .. } => Halt::Failed(error),
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
struct PanicGuard(Arc<dyn Publisher>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "merging the index stopped because of an error of the program";
            self.0.fail(reason.to_owned());
            self.0.control().stop();
        }
    }
}

impl Merger {
    pub(crate) fn new(engine: Arc<dyn Publisher>, manifest: Manifest, backing: Arc<Backing>) -> Merger {
        Merger { engine, manifest, backing, idle_bytes: 0, run_credit: RUN_CREDIT, is_closing: false }
    }

    /// Works until it is stopped; gives itself back for [`Merger::close`].
    #[must_use]
    pub fn run(mut self) -> Merger {
        let _guard = PanicGuard(Arc::clone(&self.engine));
        let engine = Arc::clone(&self.engine);
        loop {
            let is_due = || self.next_work(Scope::All).is_some();
            let next = match engine.control().sleep(is_due, |grown| self.next_idle_work(grown).is_some()) {
                Wake::Stop => break,
                Wake::Work => Ok(self.next_work(Scope::All)),
                Wake::Idle { grown_bytes } => Ok(self.spend_credit(grown_bytes)),
                Wake::Request(request) => self.answer(request).map(|()| None),
            };
            let done = next.and_then(|next| match next {
                Some((segments, work)) => self.perform(&segments, work),
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
                    engine.fail(format!("the index cannot be set aside: {what}"));
                    engine.control().stop();
                    break;
                }
                Err(Halt::Failed(error)) => {
                    let trouble = format!("the index cannot be merged: {error}");
                    tracing::warn!(%error, "merging the index failed and will be tried again");
                    if engine.control().sleep_in_trouble(trouble) == Wake::Stop {
                        break;
                    }
                }
                Err(Halt::Fatal(error)) => {
                    engine.fail(format!("merging the index failed: {error}"));
                    engine.control().stop();
                    break;
                }
            }
        }
        self
    }

    fn answer(&mut self, request: Request) -> Result<(), Halt> {
        match (request, self.engine.take_damage()) {
            (_, Some(what)) => self.set_aside(&what)?,
            (Request::SetAside, None) => {}
            (Request::AcceptLoss, None) => self.accept_loss()?,
            (Request::Reclaim, None) => self.reclaim()?,
        }
        self.engine.control().answered();
        Ok(())
    }

    /// Goes on with an empty set; tells that keys are missing until that is accepted.
    fn set_aside(&mut self, what: &str) -> Result<(), Halt> {
        let engine = Arc::clone(&self.engine);
        let mut replaced = Ok(());
        let mut manifest = Manifest { is_lost: true, runs: Vec::new(), ..self.manifest.clone() };
        engine.update(&mut |group, view| {
            manifest.merged = group;
            replaced = manifest.replace(&*self.backing.blobs);
            if replaced.is_ok() {
                *view = SetView { loss: Some(reason(what).into()), ..SetView::default() };
            }
        });
        replaced?;
        let names: Vec<_> = self.manifest.runs.iter().map(|run| blob_name(run.number)).collect();
        let kept = self.backing.blobs.set_aside(&names);
        tracing::error!(
            damage = what,
            kept = kept.ok(),
            "the index is damaged: it is set aside and built anew; queries read all documents meanwhile"
        );
        self.manifest = manifest;
        engine.control().merged(self.manifest.merged);
        self.drop_blocks();
        Ok(())
    }

    fn accept_loss(&mut self) -> Result<(), Halt> {
        let manifest = Manifest { is_lost: false, ..self.manifest.clone() };
        manifest.replace(&*self.backing.blobs)?;
        self.manifest = manifest;
        self.engine.update(&mut |_, view| view.loss = None);
        Ok(())
    }

    /// Writes anew, each by itself, what holds dropped keys: segments in memory, and the runs for which it pays.
    fn reclaim(&mut self) -> Result<(), Halt> {
        let dropped = self.engine.dropped();
        let count = |segment: &Segment| -> Result<u64, Error> {
            dropped.iter().map(|prefix| segment.stored_entries(prefix)).sum()
        };
        let view = self.engine.view();
        let in_memory: u64 = view.memory.iter().map(|segment| count(segment)).sum::<Result<_, _>>()?;
        if in_memory > 0 {
            self.perform(&view, Work::WriteRun)?;
        }
        let mut runs = self.engine.view().runs.clone();
        while let Some(run) = runs.pop() {
            let useless = count(&run)?;
            let is_worth_it = run.byte_count() <= SMALL_RUN_BYTES
                || useless.saturating_mul(USELESS_SHARE) >= run.index.entry_count();
            if useless > 0 && is_worth_it && self.engine.has_room(run.byte_count()) {
                let is_bottom = self.engine.view().runs.last().is_some_and(|last| Arc::ptr_eq(last, &run));
                self.replace_by_run(&[run], is_bottom, Scope::NotRuns)?;
            }
        }
        Ok(())
    }

    /// Writes what is in memory into a run, so that the next opening finds nothing to do.
    pub fn close(mut self) -> Result<(), Error> {
        self.is_closing = true;
        let segments = self.engine.view();
        if segments.memory.is_empty() {
            return Ok(());
        }
        self.perform(&segments, Work::WriteRun).map_err(|halt| match halt {
            Halt::Stopped => crate::closed(),
            Halt::Failed(error) | Halt::Fatal(error) => error,
            Halt::Damaged(what) => crate::damaged(&what),
        })
    }

    /// The next thing to do, and with what, unless the disk has no room for it.
    fn next_work(&self, scope: Scope) -> Option<(Arc<SetView>, Work)> {
        let segments = self.engine.view();
        let work = policy::choose(&segments, &self.engine.control().options, scope)?;
        self.has_room(&segments, &work).then_some((segments, work))
    }

    /// What to do when nobody commits.
    fn next_idle_work(&self, grown_bytes: u64) -> Option<(Arc<SetView>, Work)> {
        let segments = self.engine.view();
        let memory_credit = (grown_bytes - self.idle_bytes) * IDLE_TIMES;
        let work = policy::choose_idle(&segments, memory_credit, self.run_credit)?;
        self.has_room(&segments, &work).then_some((segments, work))
    }

    fn spend_credit(&mut self, grown_bytes: u64) -> Option<(Arc<SetView>, Work)> {
        let (segments, work) = self.next_idle_work(grown_bytes)?;
        match &work {
            Work::MergeMemory(_) => self.idle_bytes = grown_bytes,
            Work::WriteRun | Work::MergeRuns(_) => self.run_credit = 0,
        }
        Some((segments, work))
    }

    /// Whether the disk has room for what the work writes. What is in memory has to be written in any case.
    fn has_room(&self, segments: &SetView, work: &Work) -> bool {
        let Work::MergeRuns(range) = work else { return true };
        let needed = segments.runs[range.clone()].iter().map(|segment| segment.byte_count()).sum();
        self.engine.has_room(needed)
    }

    /// Does what is more urgent than the work at hand.
    fn attend(&mut self, scope: Scope) -> Result<(), Halt> {
        if self.is_closing {
            return Ok(());
        }
        if self.engine.control().is_stopped() {
            return Err(Halt::Stopped);
        }
        while let Some((segments, work)) = self.next_work(scope) {
            self.perform(&segments, work)?;
        }
        Ok(())
    }

    fn perform(&mut self, segments: &SetView, work: Work) -> Result<(), Halt> {
        match work {
            Work::MergeMemory(range) => self.merge_memory(&segments.memory[range]),
            Work::WriteRun => {
                let scope = Scope::OnlyMemoryBefore { written: segments.memory.len() };
                self.replace_by_run(&segments.memory, segments.runs.is_empty(), scope)
            }
            Work::MergeRuns(range) => {
                let is_bottom = range.end == segments.runs.len();
                self.replace_by_run(&segments.runs[range], is_bottom, Scope::NotRuns)
            }
        }
    }

    fn merge_memory(&mut self, old: &[Arc<Segment>]) -> Result<(), Halt> {
        let segment = merge_in_memory(old, self.engine.control().options.block_bytes)?;
        let segment = Arc::new(segment);
        self.engine
            .update(&mut |_, view| SetView::replace(&mut view.memory, old, Some(Arc::clone(&segment))));
        self.engine.control().merged(self.manifest.merged);
        Ok(())
    }

    /// Merges segments into a run that takes their place.
    fn replace_by_run(&mut self, old: &[Arc<Segment>], is_bottom: bool, scope: Scope) -> Result<(), Halt> {
        let run = self.write_run(old, is_bottom, scope)?.map(Arc::new);
        let mut manifest = self.manifest.clone();
        if let Some((_, last)) = old.first().and_then(|newest| newest.groups()) {
            manifest.merged = last;
        }
        let record = run.as_ref().and_then(|run| run.blob()).map(SegmentBlob::record);
        let old_blobs = || old.iter().filter_map(|segment| segment.blob());
        let replaced: Vec<_> = old_blobs().map(|blob| blob.record().number).collect();
        let is_replaced = |number: &u64| replaced.contains(number);
        let place = manifest.runs.iter().position(|run| is_replaced(&run.number)).unwrap_or(0);
        manifest.runs.retain(|run| !is_replaced(&run.number));
        manifest.runs.splice(place..place, record);
        if let Err(error) = manifest.replace(&*self.backing.blobs) {
            if matches!(error, ReplaceError::Unchanged(_)) {
                run.iter().filter_map(|run| run.blob()).for_each(SegmentBlob::replaced);
            }
            return Err(error.into());
        }
        self.manifest = manifest;
        self.engine.update(&mut |_, view| {
            if replaced.is_empty() {
                SetView::replace(&mut view.memory, old, None);
                view.runs.splice(0..0, run.clone());
            } else {
                SetView::replace(&mut view.runs, old, run.clone());
            }
        });
        old_blobs().for_each(SegmentBlob::replaced);
        self.engine.control().merged(self.manifest.merged);
        if replaced.is_empty() {
            self.run_credit += record.map_or(0, |run| run.byte_count) * IDLE_TIMES;
            self.drop_blocks();
        }
        Ok(())
    }

    /// Lets the journal forget the groups that are in runs now.
    fn drop_blocks(&self) {
        let Ok(journal) = self.engine.journal() else { return };
        // What stays takes room and does no harm; the next run frees it.
        if let Err(error) = journal.release(self.manifest.merged) {
            tracing::warn!(%error, "could not drop merged blocks of the set");
        }
    }

    /// Nothing when no key is left.
    fn write_run(
        &mut self,
        old: &[Arc<Segment>],
        is_bottom: bool,
        scope: Scope,
    ) -> Result<Option<Segment>, Halt> {
        let number = self.manifest.next;
        self.manifest.next += 1;
        let writer = SegmentWriter::create(&self.backing, number)?;
        let builder = SegmentBuilder::new(writer, FIRST_BLOCK, self.engine.control().options.block_bytes);
        let dropped = DroppedPrefixes::new(self.engine.dropped());
        let mut merge = SegmentMerge::new(old, builder, is_bottom)?.without(dropped);
        while merge.work(KEYS_AT_ONCE)? {
            self.attend(scope)?;
        }
        let (writer, summary) = merge.finish()?;
        if summary.index.block_count() == 0 {
            return Ok(None);
        }
        Ok(Some(writer.finish(summary)?))
    }
}

/// One segment in memory of several, the newest first.
pub(crate) fn merge_in_memory(old: &[Arc<Segment>], block_bytes: usize) -> Result<Segment, Error> {
    let groups = |segment: &Arc<Segment>| segment.groups().unwrap_or_default();
    let (newest, oldest) = (old.first().map(groups), old.last().map(groups));
    let image = Vec::with_capacity(old.iter().map(|segment| segment.byte_count()).sum::<u64>() as usize);
    let mut merge = SegmentMerge::new(old, SegmentBuilder::new(image, 0, block_bytes), false)?;
    merge.work(usize::MAX)?;
    let (mut image, summary) = merge.finish()?;
    image.shrink_to_fit();
    let groups = (oldest.unwrap_or_default().0, newest.unwrap_or_default().1);
    Ok(Segment::in_memory(image.into(), summary, groups))
}
