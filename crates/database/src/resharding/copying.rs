//! The steps of one resharding: begun, copied, closed, swapped in; or given up.
//!
//! In: a container and its record. Out: commits of the catalog, each of which expects the record as it was and carries the lease, and
//! commits of the new shards, each of which expects how far the copy was (`store::reshard`). So a step that comes late, from a
//! process that lost its lease while asleep, changes nothing.
//! Invariants
//! - How far a copy is stands in the new shards, so another process, or this one after a restart, goes on from there.
//! - A change of the container's definition or of its index makes the work begin again, with other shards.
//! - Ranges that are closed by somebody who does not go on are opened again by those who wait.

use super::planning::{keys, plan};
use super::{ReshardingJob, ReshardingStep};
use crate::attempts::Failure;
use crate::{AccountCore, Error};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::records;
use astrarium_keys::record::KeyRangeRow;
use astrarium_keys::resharding::{ReshardingGoal, ReshardingRecord, ReshardingWork};
use astrarium_kv::{self as kv, Founding, Lease, PlaceId, ShardId, TALLY_COUNT, WriteBatch};
use astrarium_store::reshard::{CopyBasis, CopyStep, CopyTarget, RangeCopier, TargetCopy};
use std::sync::Arc;
use std::time::Duration;

/// Steps behind the writers after which they have to wait even if there is more to copy.
const FOLLOW_STEPS_MAX: u32 = 100;
/// Ranges are closed for milliseconds. After so long whoever closed them is taken for gone.
const CLOSED_LONG: Duration = Duration::from_secs(3);

impl AccountCore {
    /// Begins what a record wants; ends the record if there is nothing to do.
    pub(super) async fn begin_resharding(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
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
        let is_wanted = self.is_move_wanted(&rows, record.goal).await?;
        let Some(planned) = plan(container, &rows, record.goal).filter(|_| is_wanted) else {
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
        let place = match record.goal {
            ReshardingGoal::Move { place, .. } => place,
            _ => None,
        };
        let work = ReshardingWork { number, is_closed: false, sources: planned.sources, targets, place };
        let new = ReshardingRecord { version: 0, goal: record.goal, work: Some(work) };
        records::stage_resharding(&mut batch, rid, Some(record), Some(&new));
        self.engine().commit(batch).await?;
        self.shared.containers.forget(rid);
        Ok(ReshardingStep::Moved)
    }

    /// Takes up the copies into new shards, wherever they are: from now on nobody else gets any further with them.
    pub(super) async fn take_up_copies(
        &self,
        lease: &Lease,
        container: &Container,
        record: &ReshardingRecord,
        work: &ReshardingWork,
        job: &mut Option<ReshardingJob>,
    ) -> Result<ReshardingStep, Failure> {
        let versions = (container.resource.record.version, container.generations.version);
        let basis = CopyBasis { resharding: work.number, versions, source_count: work.sources.len() };
        let mut copies = Vec::with_capacity(work.targets.len());
        for (row, target) in work.targets.iter().zip(copy_targets(work)) {
            if let Some(place) = work.place {
                match self.engine().place(ShardId(row.shard), PlaceId(place)).await {
                    Ok(()) => {}
                    Err(kv::Error::Contract { what }) => {
                        tracing::error!(container = container.path(), what, "a range cannot be moved");
                        self.end_resharding(lease, container, record, work, None).await?;
                        return Ok(ReshardingStep::Moved);
                    }
                    // Nobody puts anything into a new shard before it has its place; if somebody did, it begins again.
                    Err(kv::Error::ShardExists { .. }) => {
                        return self.give_up_resharding(lease, container, record, work).await;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            match TargetCopy::take_up(self.engine(), target, basis).await? {
                Some(copy) => copies.push(copy),
                None => return self.give_up_resharding(lease, container, record, work).await,
            }
        }
        *job = Some(ReshardingJob {
            container: container.rid(),
            number: work.number,
            versions,
            copies,
            follow_steps: 0,
        });
        Ok(if work.is_closed { ReshardingStep::Closed } else { ReshardingStep::Moved })
    }

    /// Copies a bounded part; when little is left, all of it, and swaps the ranges.
    pub(super) async fn go_on_resharding(
        &self,
        lease: &Lease,
        container: &Arc<Container>,
        record: &ReshardingRecord,
        work: &ReshardingWork,
        job: &mut ReshardingJob,
    ) -> Result<ReshardingStep, Failure> {
        if !work.is_closed {
            let mut is_near_end = true;
            for place in 0..work.sources.len() {
                for target in 0..job.copies.len() {
                    match self.copy_step(container, work, job, place, target).await? {
                        CopyStep::Complete => {}
                        CopyStep::NearEnd => job.follow_steps += 1,
                        CopyStep::Moved => is_near_end = false,
                    }
                }
                if !is_near_end {
                    break;
                }
            }
            let mut progress = job.copies.iter().flat_map(TargetCopy::progress);
            let is_behind = progress.all(|progress| progress.last_number == Some(progress.number));
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
        for place in 0..work.sources.len() {
            for target in 0..job.copies.len() {
                while self.copy_step(container, work, job, place, target).await? != CopyStep::Complete {}
            }
        }
        self.swap_ranges(lease, container, record, work).await?;
        let progress = job.copies.iter().flat_map(TargetCopy::progress);
        let documents: u64 = progress.map(|progress| progress.documents).sum();
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
        target: usize,
    ) -> Result<CopyStep, Failure> {
        let indexes = self.indexes(container);
        let source = source(container, work, place)?;
        let copier = RangeCopier { engine: self.engine(), indexes: &indexes, source, place };
        let copy = &mut job.copies[target];
        let step = copier.step(copy).await?;
        if work.is_closed && step == CopyStep::Complete {
            copier.copy_horizon(copy).await?;
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
        stage_closed(&mut batch, container, record, work, true)?;
        self.engine().commit(batch).await?;
        self.shared.containers.forget(container.rid());
        Ok(())
    }

    /// Has the writers of ranges go on that were closed long ago, by whoever is gone since, or asleep. Nothing is lost by it: one who
    /// was about to swap them is refused, and closes them again when there is little left to copy.
    pub(crate) async fn reopen_if_stuck(&self, container: &Container) -> Result<(), Error> {
        let Some(record) = &container.resharding else { return Ok(()) };
        let Some(work) = record.work.as_ref().filter(|work| work.is_closed) else { return Ok(()) };
        let rid = container.rid();
        if self.shared.reshardings.closed_for(rid, record.version) < CLOSED_LONG {
            return Ok(());
        }
        let mut batch = records::batch();
        if stage_closed(&mut batch, container, record, work, false).is_err() {
            return Ok(());
        }
        match self.engine().commit(batch).await {
            Ok(_) => tracing::warn!(
                container = container.path(),
                "ranges that were closed for long are opened again"
            ),
            // Somebody else was faster.
            Err(kv::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.shared.containers.forget(rid);
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
            records::stage_drop_copy_record(&mut batch, target.shard);
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
    pub(super) async fn give_up_resharding(
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

    /// Gives up all that is copied, with nobody else at work and whatever state it is in: a restore leaves no trail.
    pub(crate) async fn give_up_all_reshardings(&self) -> Result<(), Error> {
        let mut last = None;
        while let Some(rid) = records::next_to_reshard(&*self.catalog().await?, last).await? {
            last = Some(rid);
            let view = self.catalog().await?;
            let Some(record) = records::resharding(&*view, rid).await? else { continue };
            let Some(work) = &record.work else { continue };
            let mut batch = records::batch();
            for row in records::ranges(&*view, rid).await?.iter().filter(|row| work.sources.contains(&row.id))
            {
                batch.fence(ShardId(row.shard));
                records::stage_drop_trail(&mut batch, row.shard, work.number);
            }
            for target in &work.targets {
                records::stage_drop_shard(&mut batch, target.shard);
            }
            let wanted = ReshardingRecord { version: 0, goal: record.goal, work: None };
            records::stage_resharding(&mut batch, rid, Some(&record), Some(&wanted));
            self.engine().commit(batch).await?;
            self.shared.containers.forget(rid);
        }
        Ok(())
    }
}

/// Stages that the sources of a copy take no writes, or that they do again.
fn stage_closed(
    batch: &mut WriteBatch,
    container: &Container,
    record: &ReshardingRecord,
    work: &ReshardingWork,
    is_closed: bool,
) -> Result<(), Failure> {
    for place in 0..work.sources.len() {
        batch.fence(source(container, work, place)?.shard);
    }
    let work = ReshardingWork { is_closed, ..work.clone() };
    let new = ReshardingRecord { version: 0, goal: record.goal, work: Some(work) };
    records::stage_resharding(batch, container.rid(), Some(record), Some(&new));
    Ok(())
}

/// Where the documents of the sources go, in order: what is below the bound between two belongs to the first of them.
fn copy_targets(work: &ReshardingWork) -> impl Iterator<Item = CopyTarget> {
    let bounds: Vec<_> = work.targets.iter().skip(1).map(|row| keys(row).min).collect();
    let target = |(place, row): (usize, &KeyRangeRow)| {
        let from = place.checked_sub(1).and_then(|before| bounds.get(before));
        CopyTarget::new(ShardId(row.shard), from, bounds.get(place))
    };
    work.targets.iter().enumerate().map(target).collect::<Vec<_>>().into_iter()
}

fn source<'c>(container: &'c Container, work: &ReshardingWork, place: usize) -> Result<&'c Range, Failure> {
    let id = work.sources.get(place);
    container.ranges.iter().find(|range| Some(&range.id) == id).ok_or(Failure::Fenced)
}
