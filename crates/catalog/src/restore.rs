//! Making the catalog agree with itself again after a loss was accepted.
//!
//! In: an engine that nobody else uses. Out: every definition has its name, and the counters that the engine should have of the
//! catalog's shard. Definitions that are lost can be created again.

use crate::{CATALOG_SHARD, Error, records, stamps, view};
use astrarium_keys::erasure::read_erasure_key;
use astrarium_keys::index_state::GenerationsRecord;
use astrarium_keys::record::{self, KeyRangeRow};
use astrarium_keys::removed_database::read_removed_database;
use astrarium_keys::resharding::ReshardingRecord;
use astrarium_keys::tags::meta;
use astrarium_kv::{Direction, Engine, KeyRange, ScanLimit, ShardState, Space, Stamp};
use bytes::Bytes;

/// Entries read at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 1_000, byte_count_max: 4 << 20 };

/// Every resource has its name, and no name leads nowhere.
pub async fn restore_names(engine: &dyn Engine) -> Result<(), Error> {
    let mut batch = records::batch();
    for (key, value) in entries(engine, &[meta::NAME]).await? {
        let is_there = match record::record_key_of_name(&key, &value) {
            Some(record_key) => view(engine).await?.get(Space::Meta, &record_key).await?.is_some(),
            None => false,
        };
        if !is_there {
            batch.delete(Space::Meta, key);
        }
    }
    for (key, value) in entries(engine, &[meta::RECORD]).await? {
        let number = record::read_record_number(&key)?;
        let id = record::Record::decode(&value)?.id;
        let name = record::name_key_of_record(&key, &id);
        let value = record::name_value(number);
        if view(engine).await?.get(Space::Meta, &name).await?.as_ref() != Some(&value) {
            batch.put(Space::Meta, name, value, Stamp::NONE);
        }
    }
    if !batch.mutations.is_empty() {
        engine.commit(batch).await?;
    }
    Ok(())
}

/// What the engine should know of the catalog: no number or stamp is given twice, not even one that only lost definitions had.
pub async fn catalog_state(engine: &dyn Engine) -> Result<ShardState, Error> {
    let mut state = engine.shard(CATALOG_SHARD).await?;
    for (key, value) in entries(engine, &[meta::RECORD]).await? {
        state.high_water = state.high_water.max(record::read_record_number(&key)?);
        let stamped = stamps::version_of(record::Record::decode(&value)?.etag);
        state.version = state.version.max(version_of(&value)).max(stamped);
    }
    for (_, value) in entries(engine, &[meta::RANGES]).await? {
        let rows = KeyRangeRow::decode_all(&value)?;
        state.high_water = rows.iter().fold(state.high_water, |high, row| high.max(row.shard));
    }
    for (_, value) in entries(engine, &[meta::GENERATIONS]).await? {
        let record = GenerationsRecord::decode(&value)?;
        state.version = state.version.max(record.version);
        let construction = record.building.map_or(0, |building| building.construction);
        state.high_water = state.high_water.max(construction);
    }
    for (key, value) in entries(engine, &[meta::ERASURE]).await? {
        state.version = state.version.max(version_of(&value));
        state.high_water = state.high_water.max(read_erasure_key(&key)?.1);
    }
    for (_, value) in entries(engine, &[meta::RESHARDING]).await? {
        let record = ReshardingRecord::decode(&value)?;
        state.version = state.version.max(record.version);
        let number = record.work.map_or(0, |work| work.number);
        state.high_water = state.high_water.max(number);
    }
    for (key, value) in entries(engine, &[meta::REMOVED_DATABASE]).await? {
        state.high_water = state.high_water.max(read_removed_database(&key, &value)?.number());
    }
    let highest_shard = engine.highest_shard().await?;
    state.high_water = state.high_water.max(highest_shard.0);
    Ok(state)
}

async fn entries(engine: &dyn Engine, prefix: &[u8]) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut range = KeyRange::prefix(prefix);
    let mut entries = Vec::new();
    let view = view(engine).await?;
    loop {
        let step = view.scan(Space::Meta, &range, Direction::Forward, STEP).await?;
        entries.extend(step.entries);
        match entries.last() {
            Some((last, _)) if step.more => range.start = astrarium_kv::just_after(last),
            _ => return Ok(entries),
        }
    }
}

fn version_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |version| u64::from_be_bytes(*version))
}
