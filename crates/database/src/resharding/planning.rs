//! Which ranges are to become which for a goal. Pure; shards and places are chosen by whoever begins.

use crate::Error;
use astrarium_catalog::container::Container;
use astrarium_keys::record::KeyRangeRow;
use astrarium_keys::resharding::ReshardingGoal;
use astrarium_partition::{EffectiveKey, EffectiveRange};

/// Ranges of a container at most.
const RANGES_MAX: usize = 1_000;

/// Which ranges are to become which, as far as that is known: the new shards have no numbers yet.
pub(super) struct PlannedRanges {
    pub(super) sources: Vec<u32>,
    pub(super) targets: Vec<KeyRangeRow>,
}

/// What to do next for a goal; nothing if it is reached, or cannot be.
pub(super) fn plan(
    container: &Container,
    rows: &[KeyRangeRow],
    goal: ReshardingGoal,
) -> Option<PlannedRanges> {
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
        ReshardingGoal::Move { range, .. } => {
            let row = rows.iter().find(|row| row.id == range)?;
            // A range of its own, so that SDKs find out as they do with a split: it is the only child.
            let moved = KeyRangeRow { id: next_id, shard: 0, parents: descent([row]), ..row.clone() };
            Some(PlannedRanges { sources: vec![row.id], targets: vec![moved] })
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

/// The effective keys of a range.
pub(super) fn keys(row: &KeyRangeRow) -> EffectiveRange {
    let key = |bytes: &[u8]| EffectiveKey::from_bytes(bytes.to_vec());
    EffectiveRange { min: key(&row.min), max: key(&row.max) }
}

/// What a client is told whose goal cannot be reached.
pub(super) fn impossible(goal: ReshardingGoal) -> Error {
    match goal {
        ReshardingGoal::Merge(..) => Error::invalid(
            "Only two neighbouring partition key ranges can be merged; name the lower one first, as the list of partition key \
             ranges has them.",
        ),
        ReshardingGoal::Move { .. } => Error::invalid(
            "The partition key range cannot be moved: the container does not have it. A range that was moved has another id; \
             the list of partition key ranges has it.",
        ),
        _ => Error::invalid(
            "The partition key range cannot be split: the container does not have it, it is too narrow, or the container has no \
             hashed partition key.",
        ),
    }
}
