//! Where ranges live, and moving them: one range by itself, or everything that a place holds.
//!
//! In: places of the engine ([`Place`]). Out: goals for `resharding`, which copies a range into one new shard that lives elsewhere and
//! swaps it in. A shard's place never changes; the range gets another shard, and another id.
//! A place that is drained is marked so in storage, and gets no new shards. Whoever does background work looks for ranges that live there,
//! and has some of them moved wherever there is room; so a drain goes on after any kill, in any process.
//! Invariant: a move to where a range is already, or one that a drain wanted which was stopped since, does nothing.

use crate::documents::usage;
use crate::{AccountCore, CatalogHandle, Container, Error, Link, MaintenanceHandle, RangeUsage};
use astrarium_catalog::records::{self, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::{KeyRangeRow, RecordKind};
use astrarium_keys::resharding::{ReshardingGoal, ReshardingRecord, ReshardingWork};
use astrarium_kv::{self as kv, Place, PlaceId, ShardId};
use std::sync::Arc;

/// Containers whose ranges wait to be changed, at most, for a drain to have more of them moved.
const WAITING_MAX: usize = 8;

/// Where everything is.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The places, the first one first.
    pub places: Vec<Place>,
    /// The ranges of all containers.
    pub ranges: Vec<RangePlacement>,
}

/// Where a range is.
#[derive(Debug, Clone)]
pub struct RangePlacement {
    /// The name of its database.
    pub database: String,
    /// The name of its container.
    pub container: String,
    /// Its id.
    pub range_id: u32,
    /// Where it lives.
    pub place: PlaceId,
    /// What it holds.
    pub usage: RangeUsage,
    /// How much of it is copied into ranges that will take its place, from 0 to 1, if it is.
    pub copied: Option<f64>,
}

/// A container, and what becomes of its ranges.
struct ContainerRanges {
    database: String,
    container: Resource,
    rows: Vec<KeyRangeRow>,
    resharding: Option<ReshardingRecord>,
}

impl CatalogHandle<'_> {
    /// Moves a range of a container to another place; one of a large container in the background. Done at once if it is there.
    pub async fn move_range(
        self,
        database: Link<'_>,
        container: Link<'_>,
        range_id: u32,
        place: PlaceId,
    ) -> Result<Arc<Container>, Error> {
        let goal = ReshardingGoal::Move { range: range_id, place: Some(place.0) };
        self.reshard_to(database, container, goal).await
    }
}

impl MaintenanceHandle {
    /// The places that there are.
    pub async fn places(&self) -> Result<Vec<Place>, Error> {
        Ok(self.core.engine().places().await?)
    }

    /// Has everything moved away from a place, one range after another, in the background; nothing new is put there from now on.
    pub async fn drain_place(&self, place: PlaceId) -> Result<(), Error> {
        let places = self.places().await?;
        if is_draining(&places, place)? {
            return Ok(());
        }
        if !places.iter().any(|other| other.id != place && !other.is_draining) {
            return Err(Error::invalid(
                "The place cannot be emptied: there is no other one that would take what it holds. Add one first.",
            ));
        }
        self.set_draining(place, true).await
    }

    /// Ends a drain: what was not moved yet stays, and new ranges are put there again.
    pub async fn stop_draining(&self, place: PlaceId) -> Result<(), Error> {
        if is_draining(&self.places().await?, place)? {
            self.set_draining(place, false).await
        } else {
            Ok(())
        }
    }

    async fn set_draining(&self, place: PlaceId, draining: bool) -> Result<(), Error> {
        match self.core.engine().set_draining(place, draining).await {
            // Somebody else changed the places meanwhile.
            Err(kv::Error::Contract { what }) => Err(Error::Invalid(what)),
            other => Ok(other?),
        }
    }

    /// Where every range of every container is.
    pub async fn placement(&self) -> Result<Placement, Error> {
        let places = self.places().await?;
        let containers = self.core.containers_with_ranges().await?;
        let mut ranges = Vec::new();
        for ContainerRanges { database, container, rows, resharding } in containers {
            let work = resharding.as_ref().and_then(|record| record.work.as_ref());
            for row in rows {
                let work = work.filter(|work| work.sources.contains(&row.id));
                if let Some((place, usage, copied)) = self.core.placed(ShardId(row.shard), work).await? {
                    let (database, container) = (database.clone(), container.record.id.clone());
                    let range_id = row.id;
                    ranges.push(RangePlacement { database, container, range_id, place, usage, copied });
                }
            }
            yield_if_due().await;
        }
        Ok(Placement { places, ranges })
    }

    /// Wants some ranges moved away from places that are drained; false when there is nothing to do, or enough waits.
    pub async fn drain(&self) -> Result<bool, Error> {
        self.core.drain().await
    }
}

impl AccountCore {
    /// Where a shard is, what it holds, and how much of it is copied; nothing if it was replaced a moment ago.
    async fn placed(
        &self,
        shard: ShardId,
        work: Option<&ReshardingWork>,
    ) -> Result<Option<(PlaceId, RangeUsage, Option<f64>)>, Error> {
        let (place, state) = match (self.engine().place_of(shard).await, self.engine().shard(shard).await) {
            (Ok(place), Ok(state)) => (place, state),
            (Err(kv::Error::Dropped { .. }), _) | (_, Err(kv::Error::Dropped { .. })) => return Ok(None),
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        let copied = match work {
            Some(work) => Some(self.copied_share(work, vec![shard]).await?),
            None => None,
        };
        Ok(Some((place, usage(state), copied)))
    }

    pub(crate) async fn drain(&self) -> Result<bool, Error> {
        let places = self.engine().places().await?;
        let draining: Vec<PlaceId> =
            places.iter().filter(|place| place.is_draining).map(|place| place.id).collect();
        if draining.is_empty() {
            return Ok(false);
        }
        let containers = self.containers_with_ranges().await?;
        let mut waiting = containers.iter().filter(|container| container.resharding.is_some()).count();
        let mut is_begun = false;
        for ContainerRanges { container, rows, .. } in
            containers.iter().filter(|container| container.resharding.is_none())
        {
            if waiting >= WAITING_MAX {
                break;
            }
            if let Some(range) = self.range_in(rows, &draining).await? {
                is_begun |= self.want_moved(container, range).await?;
                waiting += 1;
            }
            yield_if_due().await;
        }
        Ok(is_begun)
    }

    /// All containers of the account, as one view of the catalog shows them. It is not held any longer, since whoever asks storage
    /// for each of them may need others.
    async fn containers_with_ranges(&self) -> Result<Vec<ContainerRanges>, Error> {
        let view = self.catalog().await?;
        let mut containers = Vec::new();
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for container in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let rows = records::ranges(&*view, container.rid).await?;
                let resharding = records::resharding(&*view, container.rid).await?;
                let database = database.record.id.clone();
                containers.push(ContainerRanges { database, container, rows, resharding });
                yield_if_due().await;
            }
        }
        Ok(containers)
    }

    /// The first of some ranges that lives in one of some places.
    async fn range_in(&self, rows: &[KeyRangeRow], places: &[PlaceId]) -> Result<Option<u32>, Error> {
        for row in rows {
            match self.engine().place_of(ShardId(row.shard)).await {
                Ok(place) if places.contains(&place) => return Ok(Some(row.id)),
                Ok(_) | Err(kv::Error::Dropped { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Wants a range moved to wherever there is room; false if somebody else has changed the container.
    async fn want_moved(&self, container: &Resource, range: u32) -> Result<bool, Error> {
        let mut batch = records::batch();
        records::expect_present(&mut batch, container);
        let goal = ReshardingGoal::Move { range, place: None };
        let record = ReshardingRecord { version: 0, goal, work: None };
        records::stage_resharding(&mut batch, container.rid, None, Some(&record));
        match self.engine().commit(batch).await {
            Ok(_) => {
                self.shared.containers.forget(container.rid);
                Ok(true)
            }
            Err(kv::Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a goal moves something: not if the range is there already. Other goals have nothing to do with places.
    pub(super) async fn check_move(&self, rows: &[KeyRangeRow], goal: ReshardingGoal) -> Result<bool, Error> {
        let ReshardingGoal::Move { range, place } = goal else { return Ok(true) };
        let Some(row) = rows.iter().find(|row| row.id == range) else { return Ok(false) };
        let here = match self.engine().place_of(ShardId(row.shard)).await {
            Err(kv::Error::Dropped { .. }) => return Ok(false),
            here => here?,
        };
        let places = self.engine().places().await?;
        match place.map(PlaceId) {
            None => is_draining(&places, here),
            Some(place) if place == here => Ok(false),
            Some(place) if is_draining(&places, place)? => Err(Error::invalid(
                "The place is being emptied, so nothing can be moved there. End that first, or name another place.",
            )),
            Some(_) => Ok(true),
        }
    }

    /// The same when the move is about to begin: what has become impossible meanwhile is not done.
    pub(super) async fn is_move_wanted(
        &self,
        rows: &[KeyRangeRow],
        goal: ReshardingGoal,
    ) -> Result<bool, Error> {
        match self.check_move(rows, goal).await {
            Err(Error::Invalid(what)) => {
                tracing::warn!(what, "a range is not moved");
                Ok(false)
            }
            other => other,
        }
    }
}

/// Whether a place is being emptied; refused if there is none.
fn is_draining(places: &[Place], place: PlaceId) -> Result<bool, Error> {
    let found = places.iter().find(|known| known.id == place);
    let known = || places.iter().map(|place| place.name.as_str()).collect::<Vec<_>>().join(", ");
    let refusal = || Error::Invalid(format!("There is no place {}. The places are: {}.", place.0, known()));
    found.map(|place| place.is_draining).ok_or_else(refusal)
}
