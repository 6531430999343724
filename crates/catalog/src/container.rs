//! A container ready for use: its definition, its key ranges, and the shards that hold its documents.

use crate::definition::container::ContainerDefinition;
use crate::records::{self, Resource};
use crate::{Error, definition};
use astrarium_keys::record::KeyRangeRow;
use astrarium_keys::{Malformed, Rid};
use astrarium_kv::{Engine, ShardId};
use astrarium_partition::{EffectiveKey, EffectiveRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A container as a request uses it. Immutable; a change of the definition makes a new one.
#[derive(Debug)]
pub struct Container {
    /// The stored resource.
    pub resource: Resource,
    /// The database's name.
    pub database_id: String,
    /// The checked definition.
    pub definition: ContainerDefinition,
    /// Its key ranges in order; they tile the whole key space.
    pub ranges: Vec<Range>,
    /// Texts that every answer about its documents needs.
    texts: Texts,
}

#[derive(Debug)]
struct Texts {
    path: String,
    rid: String,
}

/// A physical partition of a container.
#[derive(Debug, Clone)]
pub struct Range {
    /// Its id on the wire.
    pub id: u32,
    /// The effective keys it holds.
    pub keys: EffectiveRange,
    /// Where its documents are.
    pub shard: ShardId,
    /// The shard's epoch at the time the container was loaded.
    pub epoch: u64,
    /// The ranges it came from.
    pub parents: Vec<u32>,
    /// Gives numbers to new documents.
    pub numbers: NumberSource,
}

/// Gives each new document of a shard its number; shared by everything that writes to the shard.
#[derive(Debug, Clone)]
pub struct NumberSource {
    last: Arc<AtomicU64>,
}

impl NumberSource {
    /// Goes on after a number.
    pub fn after(last: u64) -> NumberSource {
        NumberSource { last: Arc::new(AtomicU64::new(last)) }
    }

    /// A number nobody was given before.
    pub fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Container {
    /// The container's rid.
    pub fn rid(&self) -> Rid {
        self.resource.rid
    }

    /// The text of its rid.
    pub fn rid_text(&self) -> &str {
        &self.texts.rid
    }

    /// Its path by names, without slashes at the ends.
    pub fn path(&self) -> &str {
        &self.texts.path
    }

    /// The range that an effective key belongs to.
    pub fn range_of(&self, key: &EffectiveKey) -> &Range {
        let after = self.ranges.partition_point(|range| range.keys.min <= *key);
        &self.ranges[after.saturating_sub(1)]
    }

    /// Builds a container from what is stored. `source_of` gives each shard its one number source.
    pub async fn load(
        engine: &dyn Engine,
        resource: Resource,
        database_id: String,
        source_of: impl Fn(ShardId, u64) -> NumberSource,
    ) -> Result<Container, Error> {
        let definition = stored_definition(&resource)?;
        let snapshot = engine.snapshot();
        let mut ranges = Vec::new();
        for row in records::ranges(&*snapshot, resource.rid).await? {
            let shard = ShardId(row.shard);
            let state = engine.shard(shard).await?;
            let last = state.high_water.max(first_number(row.id));
            ranges.push(range(row, state.epoch, source_of(shard, last)));
        }
        if ranges.is_empty() {
            return Err(Malformed::new("key ranges of a container").into());
        }
        let texts = Texts {
            path: format!("dbs/{database_id}/colls/{}", resource.record.id),
            rid: resource.rid.to_string(),
        };
        Ok(Container { resource, database_id, definition, ranges, texts })
    }
}

/// Numbers of a range start at its own place, so that they stay unique in the container when ranges split.
fn first_number(range: u32) -> u64 {
    u64::from(range) << 40
}

fn range(row: KeyRangeRow, epoch: u64, numbers: NumberSource) -> Range {
    let keys =
        EffectiveRange { min: EffectiveKey::from_bytes(row.min), max: EffectiveKey::from_bytes(row.max) };
    Range { id: row.id, keys, shard: ShardId(row.shard), epoch, parents: row.parents, numbers }
}

/// The definition in a stored container.
pub fn stored_definition(resource: &Resource) -> Result<ContainerDefinition, Error> {
    let malformed = || Malformed::new("container definition");
    let json = serde_json::from_str(&resource.record.definition).map_err(|_| malformed())?;
    definition::container::ContainerDefinition::from_json(&json).map_err(|_| malformed().into())
}
