//! The one thread that merges the segments of the set, while the committer adds new ones and readers read.
//!
//! In: the segments as they are. Out: fewer of them, with the same keys.
//! Long work is done bit by bit, and more urgent work in between (`policy::Scope`): segments in memory are merged while a
//! run is written, and runs are written while runs are merged. So one thread is enough, merging never takes more than
//! one core, and no two merges meet.
//! Invariants
//! - The order of a change: the new blob is synced, the manifest replaced and synced, the readers' view changed, what
//!   the journal holds of the groups dropped. A crash between any two leaves everything there once.
//! - Memory is bounded by a block for each run merged, and index and filter of the segment that is written (`SetOptions::segment_bytes`).
//! - A failed write is tried again from its beginning, in a new blob. Only a manifest whose state is unknown stops the
//!   engine from writing.
//! - Damage stops nothing (`quarantine`).

use crate::control::{Control, MergerRequest, Wake};
use crate::dropped::DroppedPrefixes;
use crate::families::Families;
use crate::lost::{BadBlock, DamageSignal};
use crate::manifest::Manifest;
use crate::policy::{self, MergeStep, MergeWork, Scope};
use crate::recovery::Journal;
use crate::rewrite::{Inputs, WrittenSegments, merge_in_memory};
use crate::run::SortedRun;
use crate::segment::Segment;
use crate::stored::{Backing, SegmentBlob};
use crate::view::SetView;
use crate::{Error, ReplaceError, SetOptions};
use bytes::Bytes;
use std::sync::Arc;

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

    /// Where readers tell of damage; nothing once the engine is closed.
    fn damage(&self) -> Option<Arc<DamageSignal>>;

    /// Whether there is room for a run of so many bytes.
    fn has_room(&self, byte_count: u64) -> bool;

    /// Merging cannot go on: nothing may be written any more.
    fn fail(&self, reason: String);
}

/// Merges the segments of a set, on a thread of its own.
pub struct Merger {
    pub(crate) engine: Arc<dyn Publisher>,
    pub(crate) manifest: Manifest,
    pub(crate) backing: Arc<Backing>,
    /// What groups had added when segments in memory were last merged for want of other work.
    idle_bytes: u64,
    /// Bytes of runs that may be merged for want of other work.
    run_credit: u64,
    /// Nothing else happens any more: what is in memory is written, whatever its size.
    is_closing: bool,
}

/// Bytes of runs that may be merged for want of other work after opening: small runs are left of closing.
const RUN_CREDIT: u64 = 64 << 20;

/// A segment of no more bytes is written anew for any dropped key in it.
const SMALL_SEGMENT_BYTES: u64 = 16 << 20;

/// One in so many entries must be dropped before a larger one is.
const USELESS_SHARE: u64 = 5;

/// So many times what has come may be merged for want of other work.
const IDLE_TIMES: u64 = 4;

/// Why work ended early.
pub(crate) enum Halt {
    Stopped,
    /// May be tried again.
    Failed(Error),
    /// Must not be.
    Fatal(Error),
    /// A block is not what was written.
    BadBlock(Box<BadBlock>),
    /// Nobody knows which keys are missing.
    Damaged(String),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        match error {
            Error::BadBlock(bad) => Halt::BadBlock(bad),
            Error::Damaged { what } | Error::Lost { what } => Halt::Damaged(what),
            error @ Error::Unavailable { .. } => Halt::Failed(error),
        }
    }
}

impl From<Halt> for Error {
    fn from(halt: Halt) -> Error {
        match halt {
            Halt::Stopped => crate::closed(),
            Halt::Failed(error) | Halt::Fatal(error) => error,
            Halt::BadBlock(bad) => crate::damaged(&bad.range.what),
            Halt::Damaged(what) => crate::damaged(&what),
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
            let is_due = || self.is_count_due() || self.next_work(Scope::All).is_some();
            let next = match engine.control().sleep(is_due, |grown| self.next_idle_work(grown).is_some()) {
                Wake::Stop => break,
                Wake::Work if self.is_count_due() => self.count_families().map(|()| None),
                Wake::Work => Ok(self.next_work(Scope::All)),
                Wake::Idle { grown_bytes } => Ok(self.spend_credit(grown_bytes)),
                Wake::Request(request) => self.answer(request).map(|()| None),
            };
            let done = next.and_then(|next| match next {
                Some((segments, work)) => self.perform(segments, work),
                None => Ok(()),
            });
            let done = self.or_without_damage(done);
            match done {
                Ok(()) => {}
                Err(Halt::Stopped) => break,
                Err(Halt::BadBlock(_) | Halt::Damaged(_)) => {
                    // Setting aside reads nothing, so this does not come.
                    engine.fail("the damaged index cannot be set aside".to_owned());
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

    /// What damage ended is done for now once the damage is out of the way.
    fn or_without_damage(&mut self, done: Result<(), Halt>) -> Result<(), Halt> {
        let done = match done {
            Err(Halt::BadBlock(bad)) => self.quarantine(&bad),
            done => done,
        };
        match done {
            Err(Halt::Damaged(what)) => self.set_aside(&what),
            done => done,
        }
    }

    /// Does on this thread what is due, and gives the merger up: for an engine without a thread for each of its sets. What is in
    /// memory is written if it is much, or in any case; runs with dropped keys are written anew if there are dropped prefixes.
    pub fn settle(mut self, writes_all: bool) -> Result<(), Error> {
        loop {
            let done = self.settle_once(writes_all);
            let is_done = done.is_ok();
            match self.or_without_damage(done) {
                Ok(()) if is_done => return Ok(()),
                Ok(()) => {}
                Err(halt) => return Err(halt.into()),
            }
        }
    }

    fn settle_once(&mut self, writes_all: bool) -> Result<(), Halt> {
        if self.is_count_due() {
            self.count_families()?;
        }
        let segments = self.engine.view();
        if writes_all && !segments.memory.is_empty() {
            self.perform(segments, MergeWork::WriteRun)?;
        }
        while let Some((segments, work)) = self.next_work(Scope::All) {
            self.perform(segments, work)?;
        }
        if self.engine.dropped().is_empty() { Ok(()) } else { self.reclaim() }
    }

    fn answer(&mut self, request: MergerRequest) -> Result<(), Halt> {
        let signal = self.engine.damage();
        match signal.as_ref().and_then(|signal| signal.found()) {
            Some(Error::BadBlock(bad)) => self.quarantine(&bad)?,
            Some(error) => self.set_aside(&error.to_string())?,
            None => {}
        }
        if let Some(signal) = signal {
            signal.clear();
        }
        match request {
            MergerRequest::Quarantine => {}
            MergerRequest::AcceptLoss => self.accept_loss()?,
            MergerRequest::Reclaim => self.reclaim()?,
        }
        self.engine.control().answered();
        Ok(())
    }

    /// Writes anew, each by itself, what holds dropped keys: segments in memory, and the stored ones for which it pays.
    fn reclaim(&mut self) -> Result<(), Halt> {
        let dropped = self.engine.dropped();
        let count = |segment: &Segment| -> Result<u64, Error> {
            dropped.iter().map(|prefix| segment.stored_entries(prefix)).sum()
        };
        let view = self.engine.view();
        let in_memory: u64 = view.memory.iter().map(|segment| count(segment)).sum::<Result<_, _>>()?;
        if in_memory > 0 {
            self.perform(view, MergeWork::WriteRun)?;
        }
        let runs = self.engine.view().runs.clone();
        for segment in runs.iter().rev().flat_map(|run| &run.segments) {
            let useless = count(segment)?;
            let is_worth_it = segment.byte_count() <= SMALL_SEGMENT_BYTES
                || useless.saturating_mul(USELESS_SHARE) >= segment.index.entry_count();
            if useless > 0 && is_worth_it && self.engine.has_room(segment.byte_count()) {
                self.rewrite_segment(segment)?;
            }
        }
        self.forget_dropped(&dropped)
    }

    /// Writes a segment anew, in its place, without dropped keys.
    fn rewrite_segment(&mut self, old: &Arc<Segment>) -> Result<(), Halt> {
        let is_in = |run: &Arc<SortedRun>| run.segments.iter().any(|segment| Arc::ptr_eq(segment, old));
        let inputs = Inputs {
            runs: vec![std::slice::from_ref(old)],
            cut: None,
            is_filtered: old.filter.byte_count() > 0,
            is_bottom: self.engine.view().runs.last().is_some_and(is_in),
            sums: Some(old.families.clone()),
        };
        let mut written = self.write_segments(inputs, Scope::NotRuns)?;
        let mut runs = self.engine.view().runs.clone();
        for run in runs.iter_mut().filter(|run| is_in(run)) {
            *run = Arc::new(run.replace(std::slice::from_ref(old), &written.segments));
        }
        runs.retain(|run| !run.segments.is_empty());
        let sums = Families::total([&self.manifest.sums, &written.sums].into_iter());
        self.install(Manifest { sums, ..self.manifest.clone() }, &runs, &[], &mut written)?;
        old.blob().into_iter().for_each(SegmentBlob::replaced);
        Ok(())
    }

    /// What segments say of families without keys, because all were dropped, is not true any more.
    fn forget_dropped(&mut self, dropped: &[Bytes]) -> Result<(), Halt> {
        let view = self.engine.view();
        let mut covered = DroppedPrefixes::new(dropped.to_vec());
        let mut said = Families::default();
        for family in view.families().into_iter().filter(|family| covered.covers(family)) {
            if view.sum(&family) != 0 && view.stored_entries(&family)? == 0 {
                said.add(&family, view.sum(&family));
            }
        }
        let sums = self.manifest.sums.less(&said);
        if sums == self.manifest.sums {
            return Ok(());
        }
        let manifest = Manifest { sums, ..self.manifest.clone() };
        self.install(manifest, &view.runs, &[], &mut WrittenSegments::default())
    }

    /// Writes what is in memory into a run, so that the next opening finds nothing to do.
    pub fn close(mut self) -> Result<(), Error> {
        self.is_closing = true;
        let segments = self.engine.view();
        if segments.memory.is_empty() {
            return Ok(());
        }
        self.perform(segments, MergeWork::WriteRun).map_err(Error::from)
    }

    /// The next thing to do, and with what, unless the disk has no room for it.
    fn next_work(&self, scope: Scope) -> Option<(Arc<SetView>, MergeWork)> {
        let segments = self.engine.view();
        let work = policy::choose(&segments, &self.engine.control().options, scope)?;
        self.has_room(&segments, &work).then_some((segments, work))
    }

    /// What to do when nobody commits.
    fn next_idle_work(&self, grown_bytes: u64) -> Option<(Arc<SetView>, MergeWork)> {
        let segments = self.engine.view();
        let memory_credit = (grown_bytes - self.idle_bytes) * IDLE_TIMES;
        let work = policy::choose_idle(&segments, memory_credit, self.run_credit)?;
        self.has_room(&segments, &work).then_some((segments, work))
    }

    fn spend_credit(&mut self, grown_bytes: u64) -> Option<(Arc<SetView>, MergeWork)> {
        let (segments, work) = self.next_idle_work(grown_bytes)?;
        match &work {
            MergeWork::MergeMemory(_) => self.idle_bytes = grown_bytes,
            MergeWork::WriteRun | MergeWork::MergeRuns(_) => self.run_credit = 0,
        }
        Some((segments, work))
    }

    /// Whether the disk has room for what the work writes. What is in memory has to be written in any case.
    fn has_room(&self, segments: &SetView, work: &MergeWork) -> bool {
        let MergeWork::MergeRuns(range) = work else { return true };
        self.has_room_for(&segments.runs[range.clone()])
    }

    /// Whether the disk has room for a step of merging these runs, and for the segments that it leaves in part.
    fn has_room_for(&self, runs: &[Arc<SortedRun>]) -> bool {
        let whole = runs.iter().map(|run| run.byte_count()).sum();
        let step = self.options().segment_bytes.saturating_mul(2 * runs.len() as u64);
        self.engine.has_room(step.min(whole))
    }

    /// Does what is more urgent than the work at hand.
    pub(crate) fn attend(&mut self, scope: Scope) -> Result<(), Halt> {
        if self.is_closing {
            return Ok(());
        }
        if self.engine.control().is_stopped() {
            return Err(Halt::Stopped);
        }
        while let Some((segments, work)) = self.next_work(scope) {
            self.perform(segments, work)?;
        }
        Ok(())
    }

    fn perform(&mut self, segments: Arc<SetView>, work: MergeWork) -> Result<(), Halt> {
        match work {
            MergeWork::MergeMemory(range) => self.merge_memory(&segments.memory[range]),
            MergeWork::WriteRun => self.write_run(&segments),
            MergeWork::MergeRuns(range) => {
                let older = segments.runs.len() - range.end;
                // What is replaced goes step by step, unless somebody holds it.
                drop(segments);
                self.merge_runs(range.len() - 1, older)
            }
        }
    }

    fn merge_memory(&mut self, old: &[Arc<Segment>]) -> Result<(), Halt> {
        let segment = Arc::new(merge_in_memory(old, self.options().block_bytes)?);
        self.engine
            .update(&mut |_, view| SetView::replace(&mut view.memory, old, Some(Arc::clone(&segment))));
        self.engine.control().merged(self.manifest.merged);
        Ok(())
    }

    /// Writes what is in memory into a run.
    fn write_run(&mut self, view: &SetView) -> Result<(), Halt> {
        let old = &view.memory;
        let Some((_, last)) = old.first().and_then(|newest| newest.groups()) else { return Ok(()) };
        let inputs = Inputs {
            runs: old.iter().map(std::slice::from_ref).collect(),
            cut: None,
            is_filtered: true,
            is_bottom: view.runs.is_empty(),
            sums: Some(Families::total(old.iter().map(|segment| &segment.families))),
        };
        let mut written = self.write_segments(inputs, Scope::OnlyMemoryBefore { written: old.len() })?;
        let run = Arc::new(SortedRun::of(written.segments.clone()));
        let mut runs = self.engine.view().runs.clone();
        if !run.segments.is_empty() {
            runs.insert(0, Arc::clone(&run));
        }
        let sums = Families::total([&self.manifest.sums, &written.sums].into_iter());
        let manifest = Manifest { merged: last, sums, ..self.manifest.clone() };
        self.install(manifest, &runs, old, &mut written)?;
        self.run_credit += run.byte_count() * IDLE_TIMES;
        self.drop_blocks();
        Ok(())
    }

    /// Merges `newer` runs and the one before the `older` last ones, into the place of that one, a range of keys at a time. A
    /// crash, or want of room, leaves some of it done, and everything there once.
    fn merge_runs(&mut self, mut newer: usize, older: usize) -> Result<(), Halt> {
        loop {
            let view = self.engine.view();
            let target = view.runs.len() - 1 - older;
            let runs = &view.runs[target - newer..=target];
            if !self.has_room_for(runs) {
                return Ok(());
            }
            let step = policy::next_step(runs, self.options().segment_bytes);
            let emptied = self.merge_step(&step, older)?;
            newer = match step.cut {
                Some(_) if emptied < newer => newer - emptied,
                _ => return Ok(()),
            };
        }
    }

    /// Merges the keys of some runs below a cut; gives how many of them but for the oldest are empty now.
    fn merge_step(&mut self, step: &MergeStep, older: usize) -> Result<usize, Halt> {
        let MergeStep { inputs: old, untouched, .. } = step;
        let cut = step.cut.as_deref();
        let (consumed, rest): (Vec<_>, Vec<_>) = old.iter().map(|run| run.split_off(cut)).unzip();
        let consumed = consumed.concat();
        let is_everything =
            cut.is_none() && untouched.segments.is_empty() && old.len() == self.engine.view().runs.len();
        let taken = self.manifest.sums.clone();
        let families = consumed.iter().map(|segment| &segment.families);
        let sums = (!is_everything).then(|| Families::total(families.chain([&taken])));
        let runs = old.iter().map(|run| &run.segments[..]).collect();
        let inputs = Inputs { runs, cut, is_bottom: older == 0, is_filtered: step.is_whole, sums };
        let mut written = self.write_segments(inputs, Scope::NotRuns)?;
        let mut runs = self.engine.view().runs.clone();
        let end = runs.len() - older;
        let newer = old.len() - 1;
        let target = [&untouched.segments[..], &written.segments, &rest[newer].segments].concat();
        let left: Vec<_> = rest[..newer].iter().filter(|run| !run.segments.is_empty()).cloned().collect();
        let emptied = newer - left.len();
        // While there is more to merge, the place of the oldest is kept, even if nothing is in it.
        let is_kept = !left.is_empty() || !target.is_empty();
        let new = left.into_iter().chain(is_kept.then(|| SortedRun::of(target))).map(Arc::new);
        runs.splice(end - old.len()..end, new);
        let sums = Families::total([&self.manifest.sums.less(&taken), &written.sums].into_iter());
        self.install(Manifest { sums, ..self.manifest.clone() }, &runs, &[], &mut written)?;
        consumed.iter().filter_map(|segment| segment.blob()).for_each(SegmentBlob::replaced);
        Ok(emptied)
    }

    /// Makes these the runs, and takes old segments out of memory.
    pub(crate) fn install(
        &mut self,
        mut manifest: Manifest,
        runs: &[Arc<SortedRun>],
        old_memory: &[Arc<Segment>],
        written: &mut WrittenSegments,
    ) -> Result<(), Halt> {
        let records = runs.iter().map(|run| run.records());
        manifest.runs = records.filter(|records| !records.is_empty()).collect();
        manifest.next = self.manifest.next;
        if let Err(error) = manifest.replace(&*self.backing.blobs) {
            if matches!(error, ReplaceError::Unknown(_)) {
                written.keep();
            }
            return Err(error.into());
        }
        written.keep();
        self.manifest = manifest;
        let (lost, sums) = (&self.manifest.lost, &self.manifest.sums);
        let needs_count = self.manifest.needs_count;
        self.engine.update(&mut |_, view| {
            SetView::replace(&mut view.memory, old_memory, None);
            view.runs = runs.to_vec();
            view.needs_count = needs_count;
            if view.lost[..] != lost[..] {
                view.lost = lost.clone().into();
            }
            if *view.sums != *sums {
                view.sums = Arc::new(sums.clone());
            }
        });
        self.engine.control().merged(self.manifest.merged);
        Ok(())
    }

    pub(crate) fn options(&self) -> &SetOptions {
        &self.engine.control().options
    }

    /// The number of the next run; none is given twice.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.manifest.next += 1;
        self.manifest.next - 1
    }

    /// Lets the journal forget the groups that are in runs now.
    pub(crate) fn drop_blocks(&self) {
        let Ok(journal) = self.engine.journal() else { return };
        // What stays takes room and does no harm; the next run frees it.
        if let Err(error) = journal.release(self.manifest.merged) {
            tracing::warn!(%error, "could not drop merged blocks of the set");
        }
    }
}
