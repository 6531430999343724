//! A container ready for use: its definition, its key ranges, the shards that hold its documents, and the generations
//! of its index.

use crate::definition::container::ContainerDefinition;
use crate::numbers::NumberSource;
use crate::records::{self, Resource};
use crate::{Error, definition};
use astrarium_keys::document;
use astrarium_keys::erasure::ErasureRecord;
use astrarium_keys::index_state::{Building, GenerationsRecord, NO_GENERATION};
use astrarium_keys::record::KeyRangeRow;
use astrarium_keys::resharding::ReshardingRecord;
use astrarium_keys::{Malformed, Rid};
use astrarium_kv::{Engine, ShardId, ShardState};
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
    /// How many minutes its changes are kept for readers of all versions, by its own policy or the account's; not at all if none.
    pub history_minutes: Option<u32>,
    /// The generations of its index.
    pub generations: Generations,
    /// What is wanted of its ranges and not there yet.
    pub resharding: Option<ReshardingRecord>,
    /// Texts that every answer about its documents needs.
    texts: Texts,
}

#[derive(Debug)]
struct Texts {
    path: String,
    rid: String,
}

/// The generations of a container's index: the one that queries use, and one that may be under construction because the
/// definition has changed.
#[derive(Debug)]
pub struct Generations {
    /// The catalog commit that wrote the record; 0 without one.
    pub version: u64,
    /// The generation that queries use.
    pub active: u8,
    /// The generation that is being made by the container's present definition.
    pub building: Option<Building>,
    /// Whether the generation that queries use has the entries by which documents expire.
    pub has_expiry: bool,
    /// What the active generation was made by, if that is not the present definition.
    former_definition: Option<ContainerDefinition>,
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
    /// Whether it, or a range it came from, was merged of several.
    pub is_merged: bool,
    /// How far the shard is at least.
    pub known_version: KnownVersion,
    /// Gives numbers to new documents.
    pub numbers: NumberSource,
    /// Deletes of logical partitions that are not done yet: nobody sees these documents.
    pub erasures: Erasures,
    /// Whether it is copied into new ranges.
    pub copied: Option<RangeCopy>,
}

/// How far a shard was when somebody of this process last saw it. It never goes back, so the shard is at least as far now.
#[derive(Debug, Clone, Default)]
pub struct KnownVersion(Arc<AtomicU64>);

impl KnownVersion {
    /// The shard was seen at a version.
    pub fn note(&self, version: u64) {
        // Mostly nothing is new, and then nobody's memory is written to.
        if !self.is_at_least(version) {
            self.0.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// Whether the shard is known to be as far as that.
    pub fn is_at_least(&self, version: u64) -> bool {
        self.0.load(Ordering::Relaxed) >= version
    }
}

/// Documents of a range that were deleted and are not erased yet.
#[derive(Debug, Clone, Default)]
pub struct Erasures(Arc<[ErasureRecord]>);

impl Erasures {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a document is one of them, by its key and LSN.
    pub fn has(&self, key: &[u8], lsn: u64) -> bool {
        let suffix = || key.get(document::SHARD_PREFIX_LENGTH..).unwrap_or_default();
        self.0.iter().any(|erasure| erasure.has(suffix(), lsn))
    }
}

/// What writers have to know of a range that is copied into new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeCopy {
    /// The number of the resharding, for which they leave a trail of what they change.
    pub number: u64,
    /// Whether the range takes no more writes: those wait for the new ones.
    pub is_closed: bool,
}

impl Range {
    /// A range from its row.
    fn new(row: KeyRangeRow, state: ShardState, numbers: NumberSource) -> Range {
        let keys =
            EffectiveRange { min: EffectiveKey::from_bytes(row.min), max: EffectiveKey::from_bytes(row.max) };
        let KeyRangeRow { id, shard, parents, is_merged, .. } = row;
        let known_version = KnownVersion::default();
        known_version.note(state.version);
        Range {
            id,
            keys,
            shard: ShardId(shard),
            epoch: state.epoch,
            parents,
            is_merged,
            known_version,
            numbers,
            erasures: Erasures::default(),
            copied: None,
        }
    }

    /// Whether it has the documents of another range, or is that one.
    pub fn inherits(&self, range_id: u32) -> bool {
        self.id == range_id || self.parents.contains(&range_id)
    }

    /// The number that the numbers of its documents are above, unless they came from a range it was split from.
    pub fn first_number(&self) -> u64 {
        first_number(self.id)
    }

    /// How far somebody has seen it who tells by the ids of ranges. It began where the ranges ended that it came from, so
    /// what was seen of them was seen of it.
    pub fn seen_by(&self, position_of: impl Fn(u32) -> Option<u64>) -> Option<u64> {
        self.parents.iter().copied().chain([self.id]).filter_map(position_of).max()
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

    /// The definition that the generation in use follows: an older one while a new generation is under construction.
    pub fn indexed_by(&self) -> &ContainerDefinition {
        self.generations.former_definition.as_ref().unwrap_or(&self.definition)
    }

    /// Whether some of its ranges take no writes for a moment, because others are about to take their place.
    pub fn is_closed(&self) -> bool {
        self.ranges.iter().any(|range| range.copied.is_some_and(|copied| copied.is_closed))
    }

    /// The range that an effective key belongs to.
    pub fn range_of(&self, key: &EffectiveKey) -> &Range {
        let after = self.ranges.partition_point(|range| range.keys.min <= *key);
        &self.ranges[after.saturating_sub(1)]
    }

    /// The effective keys that a range had which is gone: those of the ranges that came of it.
    pub fn former_keys(&self, id: u32) -> Option<EffectiveRange> {
        let mut descendants = self.ranges.iter().filter(|range| range.parents.contains(&id));
        let first = descendants.next()?;
        let last = descendants.next_back().unwrap_or(first);
        Some(EffectiveRange { min: first.keys.min.clone(), max: last.keys.max.clone() })
    }

    /// Builds a container from what is stored. `source_of` gives each shard its one number source; `account_history` are the minutes
    /// that the account keeps changes of containers without a policy of their own.
    pub async fn load(
        engine: &dyn Engine,
        resource: Resource,
        database_id: String,
        source_of: impl Fn(ShardId, u64) -> NumberSource,
        account_history: Option<u32>,
    ) -> Result<Container, Error> {
        let definition = stored_definition(&resource)?;
        let own_history = definition.change_feed_retention_minutes.filter(|minutes| *minutes > 0);
        let history_minutes = own_history.max(account_history);
        let view = crate::view(engine).await?;
        let generations = Generations::new(&records::generations(&*view, resource.rid).await?)?;
        let resharding = records::resharding(&*view, resource.rid).await?;
        let work = resharding.as_ref().and_then(|record| record.work.as_ref());
        let mut ranges = Vec::new();
        for row in records::ranges(&*view, resource.rid).await? {
            let shard = ShardId(row.shard);
            let state = engine.shard(shard).await?;
            let numbers = source_of(shard, first_number(row.id));
            let copied = work
                .filter(|work| work.sources.contains(&row.id))
                .map(|work| RangeCopy { number: work.number, is_closed: work.is_closed });
            ranges.push(Range { copied, ..Range::new(row, state, numbers) });
        }
        let erasures = records::erasures(&*view, resource.rid).await?;
        for range in ranges.iter_mut().filter(|_| !erasures.is_empty()) {
            let own = erasures.iter().filter(|(_, erasure)| range.inherits(erasure.range_id));
            range.erasures = Erasures(own.map(|(_, erasure)| erasure.clone()).collect());
        }
        if ranges.is_empty() {
            return Err(Malformed::new("key ranges of a container").into());
        }
        let texts = Texts {
            path: format!("dbs/{database_id}/colls/{}", resource.record.id),
            rid: resource.rid.to_string(),
        };
        Ok(Container {
            resource,
            database_id,
            definition,
            ranges,
            history_minutes,
            generations,
            resharding,
            texts,
        })
    }
}

/// Numbers of a range start at its own place, so that they stay unique in the container when ranges split.
fn first_number(range: u32) -> u64 {
    u64::from(range) << 40
}

impl Generations {
    /// Whether queries have to do without an index, because its entries were lost.
    pub fn is_lost(&self) -> bool {
        self.active == NO_GENERATION
    }

    fn new(record: &GenerationsRecord) -> Result<Generations, Error> {
        Ok(Generations {
            version: record.version,
            active: record.active,
            building: record.building,
            has_expiry: record.has_expiry,
            former_definition: former_definition(record)?,
        })
    }
}

/// The definition in a stored container.
pub fn stored_definition(resource: &Resource) -> Result<ContainerDefinition, Error> {
    read_definition(&resource.record.definition)
}

/// The definition that the active generation follows, if it is not the container's own.
pub fn former_definition(record: &GenerationsRecord) -> Result<Option<ContainerDefinition>, Error> {
    let text = Some(&record.definition).filter(|text| !text.is_empty());
    text.map(|text| read_definition(text)).transpose()
}

fn read_definition(text: &str) -> Result<ContainerDefinition, Error> {
    let malformed = || Malformed::new("container definition");
    let json = serde_json::from_str(text).map_err(|_| malformed())?;
    definition::container::ContainerDefinition::from_json(&json).map_err(|_| malformed().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_kv::memory::MemoryEngine;
    use std::sync::Arc;

    /// How far a client with `token` (range, position) has seen a range that came from `parents`.
    #[track_caller]
    fn check(id: u32, parents: &[u32], token: &[(u32, u64)], expected: Option<u64>) {
        let row = KeyRangeRow {
            id,
            shard: 1,
            min: Vec::new(),
            max: vec![0xFF],
            parents: parents.to_vec(),
            is_merged: false,
        };
        let numbers = NumberSource::new(Arc::new(MemoryEngine::new()), ShardId(1), 0);
        let seen = Range::new(row, ShardState::default(), numbers).seen_by(|asked| {
            token.iter().filter(|(id, _)| *id == asked).map(|(_, position)| *position).max()
        });
        assert_eq!(seen, expected, "{id} of {parents:?} by {token:?}");
    }

    #[test]
    fn what_was_seen_of_ancestors_counts() {
        check(0, &[], &[(0, 7)], Some(7));
        check(0, &[], &[(1, 7)], None);
        // Split: the token of the parent alone, both, the child's own alone, a grandparent's.
        check(2, &[0], &[(0, 7)], Some(7));
        check(2, &[0], &[(0, 7), (2, 9)], Some(9));
        check(2, &[0], &[(0, 7), (1, 12)], Some(7));
        check(2, &[0], &[(2, 3)], Some(3));
        check(5, &[0, 2], &[(0, 7), (1, 12)], Some(7));
        check(5, &[0, 2], &[(0, 7), (2, 9), (4, 20)], Some(9));
        // Merge: the farther of the two.
        check(3, &[1, 2], &[(1, 4), (2, 6)], Some(6));
    }
}
