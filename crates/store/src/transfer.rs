//! Copies an account from one engine to another as it is: from a data folder into a shared store, or back.
//!
//! In: an engine that nobody writes to, an engine without an account. Out: the same keys, sets and counters in the other one.
//! Everything a client can see stays: rids, etags, timestamps, LSNs, and so session tokens, continuations and change-feed positions.
//! Shards come first, each founded at the version it had; then the catalog's counters, then its records, so that an account
//! that was not copied to its end has no databases.
//! Invariants
//! - Versions of the catalog go on above those of the source: etags are made of them, and never come twice.
//! - Epochs begin anew; nothing that is stored names one.
//! - Leases stay behind: whoever held them is not here.

use crate::Error;
use astrarium_catalog::records;
use astrarium_catalog::{CATALOG_EPOCH, CATALOG_SHARD};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_keys::tags::{body, log_prefixes, meta};
use astrarium_kv::{
    self as kv, Direction, Engine, Founding, KeyRange, ScanLimit, ShardId, ShardState, Space, Stamp, View,
    WriteBatch, just_after,
};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Keys of one batch.
const STEP: ScanLimit = ScanLimit { entry_count_max: 1_000, byte_count_max: 2 << 20 };

/// Empty commits that wait together while the catalog's version is raised.
const RAISED_AT_ONCE: u64 = 64;

/// The epoch of a shard that nobody founded or fenced yet.
const UNFOUNDED_EPOCH: u64 = 0;

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Shards that hold something.
    pub shards: u64,
    /// Keys of all spaces.
    pub keys: u64,
    /// Entries of indexes.
    pub index_entries: u64,
}

/// Whether an engine has nothing that a copy could meet.
pub async fn is_vacant(engine: &dyn Engine) -> Result<bool, Error> {
    if engine.highest_shard().await? != CATALOG_SHARD {
        return Ok(false);
    }
    let view = astrarium_catalog::view(engine).await?;
    for range in catalog_ranges() {
        let limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
        if !view.scan(Space::Meta, &range, Direction::Forward, limit).await?.entries.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies everything; the target must be vacant. Tells of each shard when it is done.
pub async fn transfer(
    source: &dyn Engine,
    target: &dyn Engine,
    mut progress: impl FnMut(ShardId, &Transferred),
) -> Result<Transferred, Error> {
    let mut done = Transferred::default();
    let in_use = shards_in_use(source).await?;
    let highest = source.highest_shard().await?;
    for shard in (1..=highest.0).map(ShardId) {
        let state = match source.shard(shard).await {
            Err(kv::Error::Dropped { .. }) => continue,
            state => state?,
        };
        if state == ShardState::default() {
            continue;
        }
        let is_founded = state.epoch != UNFOUNDED_EPOCH || in_use.contains(&shard);
        copy_shard(source, target, (shard, state, is_founded), &mut done).await?;
        done.shards += 1;
        progress(shard, &done);
    }
    let state = source.shard(CATALOG_SHARD).await?;
    raise_catalog(target, state).await?;
    let view = astrarium_catalog::view(source).await?;
    for range in catalog_ranges() {
        copy_range(&*view, target, (CATALOG_SHARD, CATALOG_EPOCH), (Space::Meta, range), &mut done).await?;
    }
    Ok(done)
}

/// The shards of all key ranges.
async fn shards_in_use(source: &dyn Engine) -> Result<BTreeSet<ShardId>, Error> {
    let view = astrarium_catalog::view(source).await?;
    let mut shards = BTreeSet::new();
    for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
        for container in records::list_all(&*view, RecordKind::Container, database.rid).await? {
            let rows = records::ranges(&*view, container.rid).await?;
            shards.extend(rows.iter().map(|row| ShardId(row.shard)));
            yield_if_due().await;
        }
    }
    Ok(shards)
}

/// The keys of the catalog, without leases and without the keys of shards that stand between them.
fn catalog_ranges() -> [KeyRange; 3] {
    let between = |start: u8, end: u8| KeyRange {
        start: Bytes::copy_from_slice(&[start]),
        end: Bytes::copy_from_slice(&[end]),
    };
    [
        between(0, meta::WATERMARK),
        between(meta::WATERMARK + 1, meta::LEASE),
        between(meta::LEASE + 1, u8::MAX),
    ]
}

async fn copy_shard(
    source: &dyn Engine,
    target: &dyn Engine,
    (shard, state, is_founded): (ShardId, ShardState, bool),
    done: &mut Transferred,
) -> Result<(), Error> {
    let view = source.view(shard, state.epoch).await?;
    let place = (shard, UNFOUNDED_EPOCH);
    let of_shard = |tag: u8| {
        let mut prefix = vec![tag];
        prefix.extend_from_slice(&shard.0.to_be_bytes());
        KeyRange::prefix(&prefix)
    };
    copy_range(&*view, target, place, (Space::Meta, of_shard(meta::WATERMARK)), done).await?;
    copy_range(&*view, target, place, (Space::Body, of_shard(body::DOCUMENT)), done).await?;
    for prefix in log_prefixes(shard.0) {
        copy_range(&*view, target, place, (Space::Log, KeyRange::prefix(&prefix)), done).await?;
    }
    copy_set(&*view, target, shard, done).await?;
    let ShardState { version, high_water, tallies, .. } = view.state();
    let mut batch = records::batch();
    if is_founded {
        batch.found(shard, Founding { version, high_water, tallies });
    } else {
        // It is being filled for a range that is moved or split, which goes on with what is there, and founds it.
        batch = WriteBatch { high_water, tallies, ..WriteBatch::new(shard, UNFOUNDED_EPOCH) };
    }
    target.commit(batch).await?;
    Ok(())
}

/// Copies the keys of a range, in batches of the shard that they belong to.
async fn copy_range(
    view: &dyn View,
    target: &dyn Engine,
    (shard, epoch): (ShardId, u64),
    (space, mut range): (Space, KeyRange),
    done: &mut Transferred,
) -> Result<(), Error> {
    loop {
        yield_if_due().await;
        let found = view.scan(space, &range, Direction::Forward, STEP).await?;
        let Some((last, _)) = found.entries.last() else { return Ok(()) };
        range.start = just_after(last);
        let mut batch = WriteBatch::new(shard, epoch);
        done.keys += found.entries.len() as u64;
        for (key, value) in found.entries {
            batch.put(space, key, value, Stamp::NONE);
        }
        target.commit(batch).await?;
        if !found.more {
            return Ok(());
        }
    }
}

/// Copies the index entries of a shard.
async fn copy_set(
    view: &dyn View,
    target: &dyn Engine,
    shard: ShardId,
    done: &mut Transferred,
) -> Result<(), Error> {
    let mut range = KeyRange::prefix(&shard.0.to_be_bytes());
    loop {
        yield_if_due().await;
        let found = view.scan_entries(&range, Direction::Forward, STEP).await?;
        let Some((last, _)) = found.entries.iter().next_back() else { return Ok(()) };
        range.start = just_after(last);
        let mut batch = WriteBatch::new(shard, UNFOUNDED_EPOCH);
        for (key, value) in found.entries.iter() {
            if value.is_empty() {
                batch.set.added.push(key);
            } else {
                batch.set.add_entry(key, value);
            }
        }
        done.index_entries += found.entries.len() as u64;
        target.commit(batch).await?;
        if !found.more {
            return Ok(());
        }
    }
}

/// Has the catalog's counters go on above those of the source.
async fn raise_catalog(target: &dyn Engine, state: ShardState) -> Result<(), Error> {
    let counters = WriteBatch { high_water: state.high_water, tallies: state.tallies, ..records::batch() };
    let mut version = target.commit(counters).await?.0;
    while version < state.version {
        let count = RAISED_AT_ONCE.min(state.version - version);
        let commits: Vec<_> = (0..count).map(|_| target.commit(records::batch())).collect();
        for commit in commits {
            version = version.max(commit.await?.0);
        }
    }
    Ok(())
}
