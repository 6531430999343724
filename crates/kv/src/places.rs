//! Places: stores of their own, in one of which each shard lives.
//!
//! An engine with several keeps every shard whole in one of them. It chooses where there is room when something is first committed to
//! a shard (a batch of its own, a founding, a fence), unless somebody has said before where it shall be ([`crate::Engine::place`]).
//! A shard's place never changes: what it holds is moved by copying it into another shard.
//! Invariants
//! - The catalog's shard lives in the first place.
//! - A place that is being drained is chosen for nothing new; whoever names it gets it.
//!
//! Not here: copying (`store::reshard`), and who decides what moves (`database`).

use crate::contract::META_SHARD;
use crate::{Error, ShardId};
use std::collections::BTreeMap;

/// A place that shards can live in: a store of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(pub u32);

impl PlaceId {
    /// The place that every engine has, and in which the catalog lives.
    pub const FIRST: PlaceId = PlaceId(0);
}

/// What is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which one it is. Never another one's, also when it is gone.
    pub id: PlaceId,
    /// What operators call it; no other place has the same.
    pub name: String,
    /// Whether no new shards are put there.
    pub is_draining: bool,
    /// Shards that live there, the catalog's included; 0 where there is one place only and nobody counts.
    pub shard_count: u64,
    /// Bytes that they take; 0 where nobody counts them, in memory say.
    pub byte_count: u64,
}

impl Place {
    /// The place of an engine that has one.
    pub fn only() -> Place {
        Place {
            id: PlaceId::FIRST,
            name: "here".to_owned(),
            is_draining: false,
            shard_count: 0,
            byte_count: 0,
        }
    }
}

/// The refusal of a place that there is not.
pub fn no_such_place(place: PlaceId) -> Error {
    Error::Contract { what: format!("there is no place {}", place.0) }
}

/// The refusal to drain the last place that new shards can go to.
pub fn no_other_place(place: PlaceId) -> Error {
    Error::Contract { what: format!("place {} cannot be drained: there is no other one", place.0) }
}

/// Which shard lives where, in an engine of one process.
#[derive(Debug)]
pub(crate) struct PlaceTable {
    /// By their numbers.
    places: Vec<CountedPlace>,
    /// Of shards that something was committed to.
    settled: BTreeMap<ShardId, PlaceId>,
    /// Of shards that nothing was committed to yet.
    wanted: BTreeMap<ShardId, PlaceId>,
}

#[derive(Debug, Clone, Default)]
struct CountedPlace {
    is_draining: bool,
    shard_count: u64,
}

impl PlaceTable {
    /// So many places, at least one, all empty.
    pub(crate) fn new(count: usize) -> PlaceTable {
        let places = vec![CountedPlace::default(); count.max(1)];
        PlaceTable { places, settled: BTreeMap::new(), wanted: BTreeMap::new() }
    }

    pub(crate) fn all(&self) -> Vec<Place> {
        let is_only = self.places.len() == 1;
        let place = |(id, place): (u32, &CountedPlace)| Place {
            id: PlaceId(id),
            name: if is_only { Place::only().name } else { format!("place-{id}") },
            is_draining: place.is_draining,
            shard_count: place.shard_count,
            byte_count: 0,
        };
        (0..).zip(&self.places).map(place).collect()
    }

    /// Where a shard lives, or would live from now on.
    pub(crate) fn place_of(&self, shard: ShardId) -> PlaceId {
        let known = self.settled.get(&shard).or_else(|| self.wanted.get(&shard));
        known.copied().unwrap_or_else(|| self.choose(shard))
    }

    /// Where there is room for a new shard: the place with the fewest.
    fn choose(&self, shard: ShardId) -> PlaceId {
        let open = (0..).zip(&self.places).filter(|(_, place)| !place.is_draining);
        match open.min_by_key(|(_, place)| place.shard_count) {
            Some((id, _)) if shard != META_SHARD => PlaceId(id),
            _ => PlaceId::FIRST,
        }
    }

    /// Says where a shard will live.
    pub(crate) fn want(&mut self, shard: ShardId, place: PlaceId) -> Result<(), Error> {
        if place.0 as usize >= self.places.len() {
            return Err(no_such_place(place));
        }
        match self.settled.get(&shard) {
            Some(settled) if *settled == place => Ok(()),
            Some(_) => Err(Error::ShardExists { shard }),
            None if shard == META_SHARD && place != PlaceId::FIRST => Err(Error::ShardExists { shard }),
            None => {
                self.wanted.insert(shard, place);
                Ok(())
            }
        }
    }

    /// Something is committed to a shard: from now on it lives where it was wanted, or where there is room.
    pub(crate) fn settle(&mut self, shard: ShardId) {
        if !self.settled.contains_key(&shard) {
            let place = self.place_of(shard);
            self.wanted.remove(&shard);
            self.settled.insert(shard, place);
            self.places[place.0 as usize].shard_count += 1;
        }
    }

    /// A shard is dropped.
    pub(crate) fn leave(&mut self, shard: ShardId) {
        self.wanted.remove(&shard);
        if let Some(place) = self.settled.remove(&shard) {
            self.places[place.0 as usize].shard_count -= 1;
        }
    }

    pub(crate) fn set_draining(&mut self, place: PlaceId, is_draining: bool) -> Result<(), Error> {
        let others = self.places.iter().filter(|place| !place.is_draining).count();
        let found = self.places.get_mut(place.0 as usize).ok_or_else(|| no_such_place(place))?;
        if is_draining && !found.is_draining && others == 1 {
            return Err(no_other_place(place));
        }
        found.is_draining = is_draining;
        Ok(())
    }
}
