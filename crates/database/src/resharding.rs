//! Splitting, merging and moving key ranges: wanted by a commit of the catalog, done in steps beside requests, swapped in by another
//! commit.
//!
//! In: goals (a number of ranges, a range to be split, two to be merged, one to be moved to another place), and calls of [`AccountCore::reshard`] from whoever runs
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
//! - One process at a time does it, who has the lease. What it knows of the copy stands in storage too, so another one goes on.
//!
//! Not here: what is to become of which range (`planning`), the steps of a copy (`copying`), places (`moves`).

mod copying;
mod moves;
mod planning;

pub use moves::{Placement, RangePlacement};

use crate::attempts::Failure;
use crate::documents::usage;
use crate::leases::LeasedWork;
use crate::{AccountCore, CatalogHandle, Error, Link};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::records;
use astrarium_env::{Instant, sleep};
use astrarium_keys::Rid;
use astrarium_keys::resharding::{ReshardingGoal, ReshardingRecord, ReshardingWork};
use astrarium_kv::{self as kv, ShardId, ShardState, View, WriteBatch};
use astrarium_store::reshard::{TargetCopy, copy_record};
use parking_lot::Mutex;
use planning::{impossible, plan};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What one range is meant to serve, in request units per second.
const RANGE_THROUGHPUT: u32 = 10_000;
/// Bytes of a container whose ranges are changed within the request that asks for it, and how long that may take.
const SMALL_BYTES: u64 = 32 << 20;
const SMALL_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a request waits for work that cannot go on, because an index is built, say.
const STILL_TIME_MAX: Duration = Duration::from_secs(2);
/// Between two looks whether somebody else is done.
const WAIT_PAUSE: Duration = Duration::from_millis(5);

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

/// The copy that this process makes, and whether somebody is at it.
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
    /// The record by which writers of a container wait, and when it was first seen here.
    closed: Option<(Rid, u64, Instant)>,
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
    /// For each target.
    copies: Vec<TargetCopy>,
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

    /// For how long the ranges of a container are closed by a record, as far as this process has seen.
    fn closed_for(&self, container: Rid, version: u64) -> Duration {
        let mut state = self.state.lock();
        match state.closed {
            Some((rid, known, since)) if (rid, known) == (container, version) => since.elapsed(),
            _ => {
                state.closed = Some((container, version, Instant::now()));
                Duration::ZERO
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
        // Not one that another process has removed and made anew meanwhile.
        let container = self.current_container(database, container).await?;
        let (rid, known) = (container.rid(), &container);
        core.attempt_catalog(|| async move {
            let view = core.catalog().await?;
            if records::resharding(&*view, rid).await?.is_some() {
                return Err(Error::Resharding.into());
            }
            let rows = records::ranges(&*view, rid).await;
            if rows.is_err() && !core.is_current(known).await? {
                return Err(Error::NotFound.into());
            }
            let rows = rows?;
            drop(view);
            let container = core.loaded(rid).await?;
            if plan(&container, &rows, goal).is_none() {
                return Err(impossible(goal).into());
            }
            if !core.check_move(&rows, goal).await? {
                return Ok(());
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

    /// How far new ranges of a container are, whoever makes them.
    pub async fn resharding_status(self, container: Rid) -> Result<ReshardingStatus, Error> {
        let view = self.core.catalog().await?;
        let record = records::resharding(&*view, container).await?;
        let Some(work) = record.as_ref().and_then(|record| record.work.as_ref()) else {
            return Ok(ReshardingStatus { is_pending: record.is_some(), progress: 0.0 });
        };
        let rows = records::ranges(&*view, container).await?;
        drop(view);
        let sources = rows.iter().filter(|row| work.sources.contains(&row.id));
        let sources = sources.map(|row| ShardId(row.shard)).collect();
        let progress = self.core.copied_share(work, sources).await?;
        Ok(ReshardingStatus { is_pending: true, progress })
    }
}

/// How many ranges a container gets when its throughput is raised.
pub(crate) fn ranges_for(throughput: u32) -> u32 {
    throughput.div_ceil(RANGE_THROUGHPUT).max(1)
}

impl AccountCore {
    /// The share of the sources' documents that is copied, from 0 to 1.
    async fn copied_share(&self, work: &ReshardingWork, sources: Vec<ShardId>) -> Result<f64, Error> {
        let (mut copied, mut documents) = (0, 0);
        for shard in sources {
            match self.engine().shard(shard).await {
                Ok(state) => documents += usage(state).documents,
                // Replaced a moment ago.
                Err(kv::Error::Dropped { .. }) => return Ok(1.0),
                Err(error) => return Err(error.into()),
            }
        }
        for target in &work.targets {
            match copy_record(self.engine(), ShardId(target.shard)).await {
                Ok(record) => {
                    let progress = record.map(|record| record.progress).unwrap_or_default();
                    copied += progress.iter().map(|progress| progress.documents).sum::<u64>();
                }
                // In use since a moment ago, or given up.
                Err(astrarium_store::Error::Storage(
                    kv::Error::Fenced { .. } | kv::Error::Dropped { .. },
                )) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // What was changed meanwhile is copied once more, and counted once more.
        Ok((copied as f64 / documents.max(1) as f64).min(1.0))
    }

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
        let (mut moved_at, mut known) = (began, 0);
        while began.elapsed() < SMALL_TIME_MAX && moved_at.elapsed() < STILL_TIME_MAX {
            let record = records::resharding(&*self.catalog().await?, rid).await?;
            let Some(record) = record else { return Ok(()) };
            // Another process may be at it.
            let has_moved = std::mem::replace(&mut known, record.version) != record.version;
            let moved = match self.shared.reshardings.take() {
                Some(mut turn) => self.reshard_container(rid, &mut turn.job).await?,
                None => false,
            };
            if has_moved {
                moved_at = Instant::now();
            }
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
        let (last, at_work) = {
            let state = self.shared.reshardings.state.lock();
            (state.last, state.job.as_ref().map(|job| job.container))
        };
        // One after another, a copy to its end.
        let next = if at_work.is_some() {
            at_work
        } else {
            let view = self.catalog().await?;
            match records::next_to_reshard(&*view, last).await? {
                None if last.is_some() => records::next_to_reshard(&*view, None).await?,
                next => next,
            }
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
        // A step that fails, or whose client hangs up, may have copied something that this process did not note: then the copy is taken
        // up again from what storage has noted.
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
        let record = records::resharding(&*self.catalog().await?, rid).await?;
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
            None => {
                *job = None;
                self.begin_resharding(&lease, &container, &record).await
            }
            Some(work) => match job {
                Some(own) if (own.container, own.number, own.versions) == (rid, work.number, versions) => {
                    self.go_on_resharding(&lease, &container, &record, work, own).await
                }
                // Begun a moment ago, or by a process that is gone, or by what the container was.
                _ => {
                    *job = None;
                    self.take_up_copies(&lease, &container, &record, work, job).await
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

    /// A container as it is now, by its rid.
    async fn loaded(&self, rid: Rid) -> Result<Arc<Container>, Error> {
        let database =
            rid.database_part().ok_or_else(|| Error::Bug("a container has a database".to_owned()))?;
        self.container(Link::Rid(database), Link::Rid(rid)).await
    }
}
