//! New generations of a container's index: decided when a definition changes, built in steps beside requests, brought into
//! use when complete.
//!
//! In: definitions, and calls of `build_indexes` from whoever runs background work. Out: commits of the catalog
//! that say which generation is in use and which is under construction; `store::rebuild` does the steps.
//! Invariants
//! - Queries use the active generation only, and the engine refuses them a view if it was given up before, so their
//!   answers are right at any time.
//! - Everything needed to go on after a kill is in storage; a construction that nobody needs any more is marked to be swept
//!   in the commit that gives it up.

use crate::attempts::{Failure, Trial};
use crate::documents::usage;
use crate::leases::LeasedWork;
use crate::{AccountCore, Error, Link};
use astrarium_catalog::container::{Container, former_definition};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_catalog::{CATALOG_SHARD, records};
use astrarium_keys::Rid;
use astrarium_keys::index_state::{Building, GenerationsRecord, NO_GENERATION};
use astrarium_keys::record::KeyRangeRow;
use astrarium_kv::{Lease, View};
use astrarium_store::rebuild::{BuildStep, build_step, watermark};

/// What is known of indexes to be built.
#[derive(Debug, Default)]
pub(crate) struct BuildProgress {
    /// The version of the catalog that had none.
    none_at: Option<u64>,
    /// The container whose index was built last.
    last: Option<Rid>,
}

impl AccountCore {
    /// Does a bounded part of building the indexes of containers whose policies changed or whose entries were lost, one
    /// container after another; false when there is nothing to do.
    pub(crate) async fn build_indexes(&self) -> Result<bool, Error> {
        if self.renew_lost_indexes().await? {
            return Ok(true);
        }
        let version = self.engine().shard(CATALOG_SHARD).await?.version;
        let after = {
            let progress = self.shared.build_progress.lock();
            if progress.none_at == Some(version) {
                return Ok(false);
            }
            progress.last
        };
        let view = self.catalog().await?;
        let next = match records::next_to_build(&*view, after).await? {
            None if after.is_some() => records::next_to_build(&*view, None).await?,
            next => next,
        };
        let none_at = next.is_none().then_some(version);
        *self.shared.build_progress.lock() = BuildProgress { none_at, last: next };
        let Some(rid) = next else {
            self.shared.background.build_gone(None);
            self.give_back(LeasedWork::Build).await?;
            return Ok(false);
        };
        // Another process builds.
        let Some(lease) = self.lease(LeasedWork::Build).await? else { return Ok(false) };
        let lease = &lease;
        let database =
            rid.database_part().ok_or_else(|| Error::Bug("a container has a database".to_owned()))?;
        let container = match self.container(Link::Rid(database), Link::Rid(rid)).await {
            Ok(container) => container,
            // Removed a moment ago; its record went with it.
            Err(Error::NotFound) => {
                self.shared.background.build_gone(Some(rid));
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let built =
            self.attempt(&container, |trial| async move { self.build_container(&trial, lease).await }).await;
        match built {
            Err(Error::RetryWith) => self.shared.containers.forget(rid),
            // Removed a moment ago.
            Err(Error::OwnerNotFound) => self.shared.background.build_gone(Some(rid)),
            other => return other,
        }
        Ok(true)
    }

    /// One step for one container; false when another process has taken over.
    async fn build_container(&self, trial: &Trial, lease: &Lease) -> Result<bool, Failure> {
        let container = &trial.container;
        let building = container.generations.building.ok_or(Error::RetryWith)?;
        self.shared.background.build_goes_on(container);
        let indexes = self.indexes(container);
        for range in &container.ranges {
            let (construction, number) = (building.construction, lease.fencing_number);
            match build_step(self.engine(), range, &indexes, construction, number, trial.lost).await? {
                BuildStep::Complete => {}
                BuildStep::Overtaken => {
                    self.forget_lease(LeasedWork::Build);
                    return Ok(false);
                }
                BuildStep::Moved => {
                    let percent = self.index_progress(container).await?;
                    self.shared.background.build_moved(container, percent);
                    return Ok(true);
                }
            }
        }
        self.activate(container, building, lease).await?;
        Ok(true)
    }

    /// Brings a complete generation into use.
    async fn activate(
        &self,
        container: &Container,
        building: Building,
        lease: &Lease,
    ) -> Result<(), Failure> {
        let view = self.catalog().await?;
        let old = records::generations(&*view, container.rid()).await?;
        if old.version != container.generations.version {
            return Err(Failure::Fenced);
        }
        let rows = records::ranges(&*view, container.rid()).await?;
        let new = GenerationsRecord {
            active: building.generation,
            has_expiry: container.definition.indexes_expiry(),
            ..GenerationsRecord::default()
        };
        let mut batch = records::batch();
        records::stage_generations(&mut batch, container.rid(), &rows, &old, &new);
        records::expect_present(&mut batch, &container.resource);
        lease.guard(&mut batch);
        self.engine().commit(batch).await?;
        self.shared.containers.forget(container.rid());
        self.shared.background.build_done(container);
        Ok(())
    }

    /// How far the index of a container is with following its policy, in percent; 100 when it does.
    pub(crate) async fn index_progress(&self, container: &Container) -> Result<u8, Error> {
        let Some(building) = container.generations.building else { return Ok(100) };
        let (mut done, mut all) = (0.0, 0.0);
        for range in &container.ranges {
            let state = self.engine().shard(range.shard).await?;
            let view = self.engine().view(range.shard, state.epoch).await?;
            let documents = usage(view.state()).documents as f64;
            let mark = watermark(&*view, range.shard.0, building.construction).await?;
            let share = mark.map_or(0.0, |mark| match mark.last {
                Some(_) if mark.is_complete() => 1.0,
                Some(last) => {
                    let first = range.first_number();
                    mark.built.saturating_sub(first) as f64 / last.saturating_sub(first).max(1) as f64
                }
                None => 0.0,
            });
            // Even an empty range takes a step.
            all += documents + 1.0;
            done += (documents + 1.0) * share;
        }
        Ok(((done / all * 100.0) as u8).min(99))
    }
}

/// What becomes of the generations of an index when a container's definition changes; `None` if nothing does.
pub(crate) async fn next_generations(
    view: &dyn View,
    rows: &[KeyRangeRow],
    generations: &GenerationsRecord,
    (old, new): (&ContainerDefinition, &ContainerDefinition),
    construction: u64,
) -> Result<Option<GenerationsRecord>, Error> {
    let former = former_definition(generations)?;
    let active_definition = former.as_ref().unwrap_or(old);
    let expires = new.indexes_expiry();
    let serves = new.has_same_indexes(active_definition) && (generations.has_expiry || !expires);
    if serves && generations.active != NO_GENERATION {
        // Entries by which documents expired go without the others.
        let settled = GenerationsRecord {
            active: generations.active,
            has_expiry: expires,
            ..GenerationsRecord::default()
        };
        let changes = generations.building.is_some() || generations.has_expiry != expires;
        return Ok(changes.then_some(settled));
    }
    let is_same = new.has_same_indexes(old) && expires == old.indexes_expiry();
    if generations.building.is_some() && is_same {
        return Ok(None);
    }
    let generation = free_generation(view, rows, generations).await?;
    Ok(Some(GenerationsRecord {
        version: 0,
        active: generations.active,
        building: Some(Building { generation, construction }),
        // Kept up until the new generation takes over.
        has_expiry: generations.has_expiry,
        definition: crate::containers::definition_text(active_definition),
    }))
}

/// A generation that a container does not have, and of which nothing waits to be removed.
pub(crate) async fn free_generation(
    view: &dyn View,
    rows: &[KeyRangeRow],
    generations: &GenerationsRecord,
) -> Result<u8, Error> {
    let building = generations.building.map(|building| building.generation);
    let mut used = vec![Some(generations.active), building];
    for row in rows {
        used.extend(records::generations_to_sweep_of(view, row.shard).await?.into_iter().map(Some));
    }
    // Sweeping is behind by hundreds of changes: later.
    (1..=u8::MAX).find(|number| !used.contains(&Some(*number))).ok_or(Error::Busy)
}
