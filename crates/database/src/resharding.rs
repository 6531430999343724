//! Splitting and merging key ranges: wanted by a commit of the catalog, done in steps beside requests, swapped in by another commit.
//!
//! In: goals (a number of ranges, a range to be split, two to be merged), and calls of [`AccountCore::reshard`] from whoever runs
//! background work. Out: commits of the catalog that say which ranges a container has. `store::reshard` copies the documents.
//! A container's record ([`ReshardingRecord`]) is in one of three states:
//! - *wanted*: nothing is done yet, or what was done was given up;
//! - *copying*: new shards are filled, and writers of the old ones leave a trail of what they change;
//! - *closed*: writes wait, for some milliseconds; the rest is copied and the ranges are swapped.
//!
//! Invariants
//! - The swap is one commit: a container has its old ranges or its new ones, each whole. It founds the new shards at the version of the
//!   old ones, so LSNs never go back, and drops the old ones, so whoever still goes by them is told.
//! - Whatever changes the definition or the index of the container meanwhile makes the work begin again.
//! - How far a copy is stands in memory. After a kill the new shards are dropped, and the work begins again.

use crate::attempts::Failure;
use crate::documents::usage;
use crate::leases::LeasedWork;
use crate::{AccountCore, CatalogHandle, Error, Link};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::records;
use astrarium_env::{Instant, sleep};
use astrarium_keys::Rid;
use astrarium_keys::record::KeyRangeRow;
use astrarium_keys::resharding::{ReshardingGoal, ReshardingRecord, ReshardingWork};
use astrarium_kv::{self as kv, Founding, Lease, ShardId, ShardState, TALLY_COUNT, View, WriteBatch};
use astrarium_partition::{EffectiveKey, EffectiveRange};
use astrarium_store::reshard::{CopyProgress, CopyStep, CopyTarget, RangeCopier};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Ranges of a container at most.
const RANGES_MAX: usize = 1_000;
/// What one range is meant to serve, in request units per second.
const RANGE_THROUGHPUT: u32 = 10_000;
/// Bytes of a container whose ranges are changed within the request that asks for it, and how long that may take.
const SMALL_BYTES: u64 = 32 << 20;
const SMALL_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a request waits for work that cannot go on, because an index is built, say.
const STILL_TIME_MAX: Duration = Duration::from_secs(2);
/// Between two looks whether somebody else is done.
const WAIT_PAUSE: Duration = Duration::from_millis(5);
/// Steps behind the writers after which they have to wait even if there is more to copy.
const FOLLOW_STEPS_MAX: u32 = 100;

/// When key ranges are changed.
#[derive(Debug, Clone, Copy)]
pub struct RangeSettings {
    /// A range with more bytes of documents is split.
    pub bytes_max: u64,
    /// Containers with more documents have their ranges changed in the background, others within the request that asks for it.
    pub small_documents_max: u64,
}

impl Default for RangeSettings {
    fn default() -> RangeSettings {
        RangeSettings { bytes_max: 50 << 30, small_documents_max: 10_000 }
    }
}

/// How far the copy is that this process makes, and whether somebody is at it.
#[derive(Default)]
pub(crate) struct Reshardings {
    settings: RangeSettings,
    state: Mutex<ReshardingsState>,
}

#[derive(Default)]
struct ReshardingsState {
    is_busy: bool,
    job: Option<ReshardingJob>,
    /// The container that was worked on last.
    last: Option<Rid>,
    /// Ranges that hold more than they should, as writers have seen.
    large: BTreeSet<(Rid, u32)>,
    /// Those of them that cannot be split.
    whole: BTreeSet<(Rid, u32)>,
}

/// Ranges that are known to be too large, at most.
const LARGE_MAX: usize = 1_000;

/// A copy under way.
struct ReshardingJob {
    container: Rid,
    number: u64,
    /// What the copy goes by: the versions of the definition and of the index's generations.
    versions: (u64, u64),
    /// For each source.
    progress: Vec<CopyProgress>,
    follow_steps: u32,
}

/// What one step of changing ranges did.
enum ReshardingStep {
    /// Something; there may be more.
    Moved,
    /// Writers wait until the next steps are done.
    Closed,
    /// Nothing can be done now.
    Nothing,
}

/// The right to work on the copy; given back when it is dropped.
struct ReshardingTurn<'a> {
    all: &'a Reshardings,
    job: Option<ReshardingJob>,
}

impl Reshardings {
    pub(crate) fn new(settings: RangeSettings) -> Reshardings {
        Reshardings { settings, state: Mutex::default() }
    }

    /// Looks whether a range that is written to holds more than it should.
    pub(crate) fn look(&self, container: &Container, range: &Range, state: ShardState) {
        if usage(state).bytes > self.settings.bytes_max && container.resharding.is_none() {
            let mut state = self.state.lock();
            let range = (container.rid(), range.id);
            if state.large.len() < LARGE_MAX && !state.whole.contains(&range) {
                state.large.insert(range);
            }
        }
    }

    /// Takes the copy under way; nothing if somebody else has it.
    fn take(&self) -> Option<ReshardingTurn<'_>> {
        let mut state = self.state.lock();
        if state.is_busy {
            return None;
        }
        state.is_busy = true;
        let job = state.job.take();
        Some(ReshardingTurn { all: self, job })
    }
}

impl Drop for ReshardingTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        state.is_busy = false;
        state.job = self.job.take();
    }
}

/// How far new ranges of a container are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReshardingStatus {
    /// Whether there is something to do.
    pub is_pending: bool,
    /// From 0 to 1, of the copy under way.
    pub progress: f64,
}

impl CatalogHandle<'_> {
    /// Splits a range of a container in the middle of its keys; one of a large container in the background.
    pub async fn split_range(
        self,
        database: Link<'_>,
        container: Link<'_>,
        range_id: u32,
    ) -> Result<Arc<Container>, Error> {
        self.reshard_to(database, container, ReshardingGoal::Split(range_id)).await
    }

    /// Makes one range of two neighbours of a container; of a large container in the background.
    pub async fn merge_ranges(
        self,
        database: Link<'_>,
        container: Link<'_>,
        ids: (u32, u32),
    ) -> Result<Arc<Container>, Error> {
        self.reshard_to(database, container, ReshardingGoal::Merge(ids.0, ids.1)).await
    }

    async fn reshard_to(
        self,
        database: Link<'_>,
        container: Link<'_>,
        goal: ReshardingGoal,
    ) -> Result<Arc<Container>, Error> {
        let core = self.core;
        let container = core.container(database, container).await?;
        let rid = container.rid();
        core.attempt_catalog(|| async move {
            let view = core.catalog().await?;
            if records::resharding(&*view, rid).await?.is_some() {
                return Err(Error::Resharding.into());
            }
            let rows = records::ranges(&*view, rid).await?;
            let container = core.loaded(rid).await?;
            if plan(&container, &rows, goal).is_none() {
                return Err(impossible(goal).into());
            }
            let mut batch = records::batch();
            records::expect_present(&mut batch, &container.resource);
            let record = ReshardingRecord { version: 0, goal, work: None };
            records::stage_resharding(&mut batch, rid, None, Some(&record));
            core.engine().commit(batch).await?;
            Ok(())
        })
        .await?;
        core.reshard_if_small(rid).await?;
        core.loaded(rid).await
    }

    /// How far new ranges of a container are.
    pub async fn resharding_status(self, container: Rid) -> Result<ReshardingStatus, Error> {
        let view = self.core.catalog().await?;
        let record = records::resharding(&*view, container).await?;
        let state = self.core.shared.reshardings.state.lock();
        let job = state.job.as_ref().filter(|job| job.container == container);
        let progress = job.map_or(0.0, |job| {
            let share = |progress: &CopyProgress| match progress.last_number {
                Some(last) if last > 0 => {
                    let low = u64::MAX << 40;
                    (progress.number & !low) as f64 / ((last & !low).max(1)) as f64
                }
                _ => 0.0,
            };
            job.progress.iter().map(share).sum::<f64>() / job.progress.len().max(1) as f64
        });
        Ok(ReshardingStatus { is_pending: record.is_some(), progress: progress.min(1.0) })
    }
}

/// How many ranges a container gets when its throughput is raised.
pub(crate) fn ranges_for(throughput: u32) -> u32 {
    throughput.div_ceil(RANGE_THROUGHPUT).max(1)
}

impl AccountCore {
    /// Stages that a container is wanted to have so many ranges at least, if it has fewer; tells whether it has.
    pub(crate) async fn stage_range_count(
        &self,
        view: &dyn View,
        batch: &mut WriteBatch,
        container: Rid,
        count: u32,
    ) -> Result<bool, Error> {
        let rows = records::ranges(view, container).await?;
        let old = records::resharding(view, container).await?;
        if rows.len() >= count as usize {
            return Ok(false);
        }
        let goal = match old.as_ref().map(|record| record.goal) {
            Some(ReshardingGoal::Count(before)) => ReshardingGoal::Count(before.max(count)),
            _ => ReshardingGoal::Count(count),
        };
        let new = ReshardingRecord { version: 0, goal, work: old.as_ref().and_then(|old| old.work.clone()) };
        records::stage_resharding(batch, container, old.as_ref(), Some(&new));
        Ok(true)
    }

    /// Works on the ranges of a container until they are what is wanted, if it is small.
    pub(crate) async fn reshard_if_small(&self, rid: Rid) -> Result<(), Error> {
        let container = self.loaded(rid).await?;
        let (mut documents, mut bytes) = (0, 0);
        for range in &container.ranges {
            let range = match self.engine().shard(range.shard).await {
                Ok(state) => usage(state),
                // Replaced a moment ago.
                Err(kv::Error::Dropped { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            documents += range.documents;
            bytes += range.bytes;
        }
        if documents > self.shared.reshardings.settings.small_documents_max || bytes > SMALL_BYTES {
            tracing::info!(
                container = container.path(),
                documents,
                bytes,
                "ranges are changed in the background"
            );
            return Ok(());
        }
        let began = Instant::now();
        let mut moved_at = began;
        while began.elapsed() < SMALL_TIME_MAX && moved_at.elapsed() < STILL_TIME_MAX {
            let view = self.catalog().await?;
            if records::resharding(&*view, rid).await?.is_none() {
                return Ok(());
            }
            let moved = match self.shared.reshardings.take() {
                Some(mut turn) => self.reshard_container(rid, &mut turn.job).await?,
                None => false,
            };
            if moved {
                moved_at = Instant::now();
            } else {
                sleep(WAIT_PAUSE).await;
            }
        }
        Ok(())
    }

    /// Does a bounded part of changing ranges, one container after another; false when there is nothing to do.
    pub(crate) async fn reshard(&self) -> Result<bool, Error> {
        self.split_large_ranges().await?;
        let view = self.catalog().await?;
        let (last, at_work) = {
            let state = self.shared.reshardings.state.lock();
            (state.last, state.job.as_ref().map(|job| job.container))
        };
        // One after another, a copy to its end.
        let next = match at_work {
            Some(rid) => Some(rid),
            None => match records::next_to_reshard(&*view, last).await? {
                None if last.is_some() => records::next_to_reshard(&*view, None).await?,
                next => next,
            },
        };
        let Some(rid) = next else {
            self.shared.reshardings.state.lock().last = None;
            self.give_back(LeasedWork::Reshard).await?;
            return Ok(false);
        };
        // Somebody else is at it, for a request.
        let Some(mut turn) = self.shared.reshardings.take() else { return Ok(false) };
        self.shared.reshardings.state.lock().last = Some(rid);
        self.reshard_container(rid, &mut turn.job).await
    }

    /// Has ranges split that hold more than they should, where that divides what they hold.
    async fn split_large_ranges(&self) -> Result<(), Error> {
        loop {
            let Some((rid, id)) = self.shared.reshardings.state.lock().large.pop_first() else {
                return Ok(());
            };
            let container = match self.loaded(rid).await {
                Ok(container) => container,
                // Removed meanwhile.
                Err(Error::NotFound) => continue,
                Err(error) => return Err(error),
            };
            let divides = match container.ranges.iter().find(|range| range.id == id) {
                Some(range) => self.divides(&container, range).await?,
                None => continue,
            };
            if !divides {
                self.shared.reshardings.state.lock().whole.insert((rid, id));
                tracing::warn!(
                    container = container.path(),
                    range = id,
                    "a large range has keys in one half only"
                );
                continue;
            }
            let mut batch = records::batch();
            records::expect_present(&mut batch, &container.resource);
            let record = ReshardingRecord { version: 0, goal: ReshardingGoal::Split(id), work: None };
            records::stage_resharding(&mut batch, rid, None, Some(&record));
            match self.engine().commit(batch).await {
                // Another one is under way, or was until now: writers will see whether the range is large still.
                Ok(_) | Err(kv::Error::Conflict { .. }) => self.shared.containers.forget(rid),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether both halves of a range hold documents.
    async fn divides(&self, container: &Container, range: &Range) -> Result<bool, Error> {
        let Some(middle) = range.keys.split_midpoint(&container.definition.partition_key) else {
            return Ok(false);
        };
        let view = match self.view(range).await {
            Ok(view) => view,
            Err(kv::Error::Fenced { .. } | kv::Error::Dropped { .. }) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        Ok(astrarium_store::reshard::has_both_halves(&*view, range, &middle).await?)
    }

    /// Does a bounded part for one container; false if nothing can be done now. Whoever closes a range goes on until it is replaced,
    /// for others wait.
    async fn reshard_container(&self, rid: Rid, job: &mut Option<ReshardingJob>) -> Result<bool, Error> {
        // A step that fails, or whose client hangs up, may have copied something that nobody has noted: then all begins again.
        let mut own = job.take();
        let has_moved = loop {
            match self.reshard_once(rid, &mut own).await? {
                ReshardingStep::Closed => {}
                ReshardingStep::Moved => break true,
                ReshardingStep::Nothing => break false,
            }
        };
        *job = own;
        Ok(has_moved)
    }

    async fn reshard_once(&self, rid: Rid, job: &mut Option<ReshardingJob>) -> Result<ReshardingStep, Error> {
        let Some(lease) = self.lease(LeasedWork::Reshard).await? else { return Ok(ReshardingStep::Nothing) };
        let container = match self.loaded(rid).await {
            Ok(container) => container,
            // Removed a moment ago; its record went with it.
            Err(Error::NotFound | Error::OwnerNotFound) => {
                *job = None;
                return Ok(ReshardingStep::Moved);
            }
            Err(error) => return Err(error),
        };
        let view = self.catalog().await?;
        let record = records::resharding(&*view, rid).await?;
        let known = container.resharding.as_ref().map(|record| record.version);
        if record.as_ref().map(|record| record.version) != known {
            self.shared.containers.forget(rid);
            return Ok(ReshardingStep::Moved);
        }
        let Some(record) = record else {
            *job = None;
            return Ok(ReshardingStep::Moved);
        };
        let versions = (container.resource.record.version, container.generations.version);
        let outcome = match &record.work {
            None => self.begin_resharding(&lease, &container, &record, job).await,
            Some(work) => match job {
                Some(own) if (own.container, own.number, own.versions) == (rid, work.number, versions) => {
                    self.go_on_resharding(&lease, &container, &record, work, own).await
                }
                // Begun by a process that is gone, or by what the container was.
                _ => {
                    *job = None;
                    self.give_up_resharding(&lease, &container, &record, work).await
                }
            },
        };
        match outcome {
            Ok(step) => Ok(step),
            // The container has changed, or another process has the lease: looked at anew.
            Err(Failure::Lost | Failure::Fenced | Failure::Closed) => {
                *job = None;
                self.forget_lease(LeasedWork::Reshard);
                self.shared.containers.forget(rid);
                Ok(ReshardingStep::Moved)
            }
            Err(Failure::Refused(error)) => Err(error),
        }
    }

    /// Begins what a record wants; ends the record if there is nothing to do.
    async fn begin_resharding(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        job: &mut Option<ReshardingJob>,
    ) -> Result<ReshardingStep, Failure> {
        let is_erasing = container.ranges.iter().any(|range| !range.erasures.is_empty());
        if container.generations.building.is_some() || container.generations.is_lost() || is_erasing {
            // An index is copied with its documents, so it must be whole first; and deleted documents need not be copied.
            return Ok(ReshardingStep::Nothing);
        }
        let rid = container.rid();
        let rows = records::ranges(&*self.catalog().await?, rid).await?;
        let mut batch = records::batch();
        records::expect_unchanged(&mut batch, &container.resource);
        records::expect_generations(&mut batch, rid, container.generations.version);
        lease.guard(&mut batch);
        let Some(planned) = plan(container, &rows, record.goal) else {
            records::stage_resharding(&mut batch, rid, Some(record), None);
            self.engine().commit(batch).await?;
            self.shared.containers.forget(rid);
            return Ok(ReshardingStep::Moved);
        };
        let number = self.next_catalog_number().await?;
        let mut targets = planned.targets;
        for target in &mut targets {
            target.shard = self.next_catalog_number().await?;
            batch.high_water = batch.high_water.max(target.shard);
        }
        batch.high_water = batch.high_water.max(number);
        for row in rows.iter().filter(|row| planned.sources.contains(&row.id)) {
            batch.fence(ShardId(row.shard));
        }
        let source_count = planned.sources.len();
        let work = ReshardingWork { number, is_closed: false, sources: planned.sources, targets };
        let new = ReshardingRecord { version: 0, goal: record.goal, work: Some(work) };
        records::stage_resharding(&mut batch, rid, Some(record), Some(&new));
        self.engine().commit(batch).await?;
        self.shared.containers.forget(rid);
        *job = Some(ReshardingJob {
            container: rid,
            number,
            versions: (container.resource.record.version, container.generations.version),
            progress: vec![CopyProgress::default(); source_count],
            follow_steps: 0,
        });
        Ok(ReshardingStep::Moved)
    }

    /// Copies a bounded part; when little is left, all of it, and swaps the ranges.
    async fn go_on_resharding(
        &self,
        lease: &Lease,
        container: &Arc<Container>,
        record: &ReshardingRecord,
        work: &ReshardingWork,
        job: &mut ReshardingJob,
    ) -> Result<ReshardingStep, Failure> {
        if !work.is_closed {
            let mut is_near_end = true;
            for place in 0..job.progress.len() {
                match self.copy_step(container, work, job, place).await? {
                    CopyStep::Complete => {}
                    CopyStep::NearEnd => job.follow_steps += 1,
                    CopyStep::Moved => {
                        is_near_end = false;
                        break;
                    }
                }
            }
            let is_behind = job.progress.iter().all(|progress| progress.last_number == Some(progress.number));
            job.follow_steps += u32::from(is_behind);
            if is_near_end || job.follow_steps > FOLLOW_STEPS_MAX {
                self.close_sources(lease, container, record, work).await?;
                return Ok(ReshardingStep::Closed);
            }
            return Ok(ReshardingStep::Moved);
        }
        let is_erasing = container.ranges.iter().any(|range| !range.erasures.is_empty());
        if is_erasing && work.sources.len() > 1 {
            return self.give_up_resharding(lease, container, record, work).await;
        }
        for place in 0..job.progress.len() {
            while self.copy_step(container, work, job, place).await? != CopyStep::Complete {}
        }
        self.swap_ranges(lease, container, record, work).await?;
        let documents: u64 = job.progress.iter().map(|progress| progress.documents).sum();
        let new: Vec<u32> = work.targets.iter().map(|row| row.id).collect();
        tracing::info!(container = container.path(), old = ?work.sources, ?new, documents, "ranges replaced");
        Ok(ReshardingStep::Moved)
    }

    async fn copy_step(
        &self,
        container: &Arc<Container>,
        work: &ReshardingWork,
        job: &mut ReshardingJob,
        place: usize,
    ) -> Result<CopyStep, Failure> {
        let indexes = self.indexes(container);
        let source = source(container, work, place)?;
        let targets: Vec<CopyTarget> = work.targets.iter().map(copy_target).collect();
        let copier = RangeCopier {
            engine: self.engine(),
            indexes: &indexes,
            source,
            targets: &targets,
            resharding: work.number,
            is_second: place > 0,
        };
        let step = copier.step(&mut job.progress[place]).await?;
        if work.is_closed && step == CopyStep::Complete {
            copier.copy_horizon().await?;
        }
        Ok(step)
    }

    /// Has the writers of the sources wait.
    async fn close_sources(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        work: &ReshardingWork,
    ) -> Result<(), Failure> {
        let mut batch = records::batch();
        records::expect_unchanged(&mut batch, &container.resource);
        lease.guard(&mut batch);
        for place in 0..work.sources.len() {
            batch.fence(source(container, work, place)?.shard);
        }
        let closed = ReshardingWork { is_closed: true, ..work.clone() };
        let new = ReshardingRecord { version: 0, goal: record.goal, work: Some(closed) };
        records::stage_resharding(&mut batch, container.rid(), Some(record), Some(&new));
        self.engine().commit(batch).await?;
        self.shared.containers.forget(container.rid());
        Ok(())
    }

    /// The commit that gives a container its new ranges.
    async fn swap_ranges(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        work: &ReshardingWork,
    ) -> Result<(), Failure> {
        let rid = container.rid();
        let (mut version, mut sums) = (0, [0_i64; TALLY_COUNT]);
        let mut batch = records::batch();
        let mut dropped = Vec::new();
        for place in 0..work.sources.len() {
            let source = source(container, work, place)?;
            let state = self.engine().view(source.shard, source.epoch).await?.state();
            version = version.max(state.version);
            sums.iter_mut().zip(state.tallies).for_each(|(sum, tally)| *sum += tally);
            records::stage_drop_shard(&mut batch, source.shard.0);
            dropped.push(source.shard);
        }
        for target in &work.targets {
            let shard = ShardId(target.shard);
            let state = self.engine().shard(shard).await?;
            sums.iter_mut().zip(state.tallies).for_each(|(sum, tally)| *sum -= tally);
            batch.found(shard, Founding { version, ..Founding::default() });
        }
        if sums != [0; TALLY_COUNT] {
            // Nothing is lost: the old ranges are in use still, and stay so until somebody asks again.
            tracing::error!(
                container = container.path(),
                ?sums,
                "copied ranges differ from what they were copied of"
            );
            return self.end_resharding(lease, container, record, work, None).await;
        }
        let mut rows = records::ranges(&*self.catalog().await?, rid).await?;
        rows.retain(|row| !work.sources.contains(&row.id));
        rows.extend(work.targets.iter().cloned());
        rows.sort_by(|one, other| one.min.cmp(&other.min));
        records::expect_unchanged(&mut batch, &container.resource);
        records::expect_generations(&mut batch, rid, container.generations.version);
        lease.guard(&mut batch);
        records::stage_new_ranges(&mut batch, rid, &rows);
        let is_enough = !matches!(record.goal, ReshardingGoal::Count(count) if rows.len() < count as usize);
        let rest = ReshardingRecord { version: 0, goal: record.goal, work: None };
        records::stage_resharding(&mut batch, rid, Some(record), (!is_enough).then_some(&rest));
        self.engine().commit(batch).await?;
        self.shared.containers.forget(rid);
        self.shared.containers.forget_shards(&dropped);
        self.shared.background.ranges_removed(dropped.len());
        Ok(())
    }

    /// Drops what was copied, so that the work begins again.
    async fn give_up_resharding(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        work: &ReshardingWork,
    ) -> Result<ReshardingStep, Failure> {
        let wanted = ReshardingRecord { version: 0, goal: record.goal, work: None };
        self.end_resharding(lease, container, record, work, Some(&wanted)).await?;
        Ok(ReshardingStep::Moved)
    }

    /// Drops what was copied; `wanted` is what is to be done afterwards.
    async fn end_resharding(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        work: &ReshardingWork,
        wanted: Option<&ReshardingRecord>,
    ) -> Result<(), Failure> {
        let mut batch = records::batch();
        records::expect_present(&mut batch, &container.resource);
        lease.guard(&mut batch);
        for place in 0..work.sources.len() {
            let shard = source(container, work, place)?.shard;
            batch.fence(shard);
            records::stage_drop_trail(&mut batch, shard.0, work.number);
        }
        for target in &work.targets {
            records::stage_drop_shard(&mut batch, target.shard);
        }
        records::stage_resharding(&mut batch, container.rid(), Some(record), wanted);
        self.engine().commit(batch).await?;
        self.shared.containers.forget(container.rid());
        Ok(())
    }

    /// A container as it is now, by its rid.
    async fn loaded(&self, rid: Rid) -> Result<Arc<Container>, Error> {
        let database =
            rid.database_part().ok_or_else(|| Error::Bug("a container has a database".to_owned()))?;
        self.container(Link::Rid(database), Link::Rid(rid)).await
    }
}

/// Which ranges are to become which, as far as that is known: the new shards have no numbers yet.
struct PlannedRanges {
    sources: Vec<u32>,
    targets: Vec<KeyRangeRow>,
}

/// What to do next for a goal; nothing if it is reached, or cannot be.
fn plan(container: &Container, rows: &[KeyRangeRow], goal: ReshardingGoal) -> Option<PlannedRanges> {
    let next_id = rows.iter().flat_map(|row| row.parents.iter().chain([&row.id])).max()? + 1;
    let split = |row: &KeyRangeRow| {
        let middle = keys(row).split_midpoint(&container.definition.partition_key)?;
        let middle = middle.as_bytes().to_vec();
        let parents = descent([row]);
        let (min, max, is_merged) = (row.min.clone(), middle.clone(), row.is_merged);
        let low = KeyRangeRow { id: next_id, shard: 0, min, max, parents, is_merged };
        let high = KeyRangeRow { id: next_id + 1, min: middle, max: row.max.clone(), ..low.clone() };
        Some(PlannedRanges { sources: vec![row.id], targets: vec![low, high] })
    };
    match goal {
        ReshardingGoal::Count(count) => {
            if rows.len() >= (count as usize).min(RANGES_MAX) {
                return None;
            }
            // The widest first, so that they stay about equal.
            let mut widest: Vec<&KeyRangeRow> = rows.iter().collect();
            widest.sort_by(|one, other| keys(other).width().total_cmp(&keys(one).width()));
            widest.into_iter().find_map(split)
        }
        ReshardingGoal::Split(id) => {
            rows.iter().find(|row| row.id == id).filter(|_| rows.len() < RANGES_MAX).and_then(split)
        }
        ReshardingGoal::Merge(low, high) => {
            let place = rows.iter().position(|row| row.id == low)?;
            let (low, high) = (&rows[place], rows.get(place + 1).filter(|row| row.id == high)?);
            let parents = descent([low, high]);
            let (min, max) = (low.min.clone(), high.max.clone());
            let merged = KeyRangeRow { id: next_id, shard: 0, min, max, parents, is_merged: true };
            Some(PlannedRanges { sources: vec![low.id, high.id], targets: vec![merged] })
        }
    }
}

/// Ranges with all that they came of, oldest first.
fn descent<'r>(rows: impl IntoIterator<Item = &'r KeyRangeRow>) -> Vec<u32> {
    let mut ids: Vec<u32> =
        rows.into_iter().flat_map(|row| row.parents.iter().copied().chain([row.id])).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn keys(row: &KeyRangeRow) -> EffectiveRange {
    let key = |bytes: &[u8]| EffectiveKey::from_bytes(bytes.to_vec());
    EffectiveRange { min: key(&row.min), max: key(&row.max) }
}

fn copy_target(row: &KeyRangeRow) -> CopyTarget {
    CopyTarget { shard: ShardId(row.shard), keys: keys(row) }
}

fn source<'c>(container: &'c Container, work: &ReshardingWork, place: usize) -> Result<&'c Range, Failure> {
    let id = work.sources.get(place);
    container.ranges.iter().find(|range| Some(&range.id) == id).ok_or(Failure::Fenced)
}

fn impossible(goal: ReshardingGoal) -> Error {
    match goal {
        ReshardingGoal::Merge(..) => Error::invalid(
            "Only two neighbouring partition key ranges can be merged; name the lower one first, as the list of partition key \
             ranges has them.",
        ),
        _ => Error::invalid(
            "The partition key range cannot be split: the container does not have it, it is too narrow, or the container has no \
             hashed partition key.",
        ),
    }
}
