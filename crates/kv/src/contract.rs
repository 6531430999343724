//! The rules of the contract that every engine shares, and the suite that proves an engine keeps them.
//!
//! In: a [`WriteBatch`] as a caller made it. Out: [`Error::Contract`] when it breaks a rule, before anything is queued.
//! The small pure pieces that decide semantics (limits, the shard of a key, expectations, stamps, fences, scan limits) stand here once,
//! so that no two engines can understand them differently.
//! Invariants
//! - A batch that passes [`validate`] can be applied by any engine without another check of its shape.
//! - [`ScanCollector`] gives at least one entry if there is one, and copies nothing beyond the limit.
//!
//! Not here: the order of commits, storage. [`check`] and [`check_reopen`] are for tests of engines, in this crate and
//! in those that implement an engine; they panic when the engine is wrong.

mod commits;
mod drops;
mod ground;
mod placement;
mod places;
mod reads;
mod sets;
mod shards;
mod suite;

pub use placement::{
    META_OF_SHARD, META_SHARD, SHARD_BYTES, check_key, check_keys, check_range, highest_shard, shard_of,
};
pub use suite::{Ending, block_on, check, check_reopen, set_key, shard_key};

use crate::{
    CommitVersion, EntryBatch, Error, Expectation, FAMILY_BYTES, Founding, KeyBatch, Mutation, PrefixSet,
    SHORT_VALUE_BYTES_MAX, ScanBatch, ScanLimit, ShardId, ShardState, Space, Stamp, WriteBatch,
};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use placement::PLACE_BYTES;
use std::collections::BTreeMap;

/// Bytes of a key at most; a key has at least one.
pub const KEY_BYTES_MAX: usize = 32 * 1024;

/// Keys that begin so are the engines' own.
pub const RESERVED_PREFIX: [u8; 16] = [0xFF; 16];

/// Bytes of a value at most.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a version where it is stamped into a key or value.
const STAMP_BYTES: usize = size_of::<u64>();

/// Refuses a batch that breaks a rule which does not depend on what is stored.
pub fn validate(batch: &WriteBatch) -> Result<(), Error> {
    for (index, (shard, _)) in batch.foundings.iter().enumerate() {
        if batch.foundings[..index].iter().any(|(other, _)| other == shard) {
            return Err(broken("a shard is founded twice"));
        }
    }
    let shard = batch.shard;
    let validate_own = |space: Space, key: &[u8]| {
        validate_key(key)?;
        check_key(shard, Some(space), key)
    };
    for (space, key, _) in &batch.expectations {
        validate_own(*space, key)?;
    }
    for mutation in &batch.mutations {
        match mutation {
            Mutation::Put { space, key, value, stamp } => {
                validate_own(*space, key)?;
                validate_value(value, *stamp)?;
                let offset = stamp.key_offset.map(|offset| offset as usize);
                if offset.is_some_and(|offset| offset < PLACE_BYTES || offset + STAMP_BYTES > key.len()) {
                    return Err(broken("the version stamp of a key lies outside the key or over its shard"));
                }
            }
            Mutation::Delete { space, key } => validate_own(*space, key)?,
        }
    }
    for key in batch.set.added.iter().chain(batch.set.removed.iter()) {
        validate_set_key(shard, key)?;
    }
    for (key, value) in batch.set.valued_entries() {
        validate_set_key(shard, key)?;
        if value.len() > SHORT_VALUE_BYTES_MAX {
            return Err(broken("a value of the set is longer than 1 KiB"));
        }
    }
    validate_drops(batch)
}

fn validate_drops(batch: &WriteBatch) -> Result<(), Error> {
    if batch.drops.shards.contains(&batch.shard) {
        return Err(broken("a batch drops the shard it belongs to"));
    }
    for prefix in &batch.drops.prefixes {
        validate_key(&prefix.bytes)?;
        if shard_of(prefix.space, &prefix.bytes).is_none() {
            return Err(broken("a dropped prefix reaches over shards"));
        }
        if prefix.bytes.iter().all(|byte| *byte == 0xFF) {
            return Err(broken("a dropped prefix consists of bytes FF"));
        }
        if prefix.space.is_none() && prefix.bytes.len() > FAMILY_BYTES {
            return Err(broken("a dropped prefix of the set is longer than a family"));
        }
    }
    batch.drops.prefixes.iter().cloned().collect::<PrefixSet>().check(batch)
}

fn validate_set_key(shard: ShardId, key: &[u8]) -> Result<(), Error> {
    validate_key(key)?;
    check_key(shard, None, key)?;
    if key.len() < FAMILY_BYTES {
        return Err(broken("a key of the set is shorter than its family"));
    }
    Ok(())
}

fn validate_key(key: &[u8]) -> Result<(), Error> {
    match key.len() {
        0 => Err(broken("a key is empty")),
        length if length > KEY_BYTES_MAX => Err(broken("a key is longer than 32 KiB")),
        _ if key.starts_with(&RESERVED_PREFIX) => Err(broken("a key begins with sixteen bytes FF")),
        _ => Ok(()),
    }
}

fn validate_value(value: &Bytes, stamp: Stamp) -> Result<(), Error> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(broken("a value is longer than 16 MiB"));
    }
    if stamp.value && value.len() < STAMP_BYTES {
        return Err(broken("a value with a version stamp is shorter than 8 bytes"));
    }
    Ok(())
}

fn broken(rule: &str) -> Error {
    Error::Contract { what: rule.to_owned() }
}

/// Whether an expectation holds for the present value of its key.
pub fn holds(expectation: Expectation, present: Option<&[u8]>) -> bool {
    match expectation {
        Expectation::Absent => present.is_none(),
        Expectation::Present => present.is_some(),
        Expectation::Version(version) => {
            present.and_then(|value| value.first_chunk()) == Some(&version.to_be_bytes())
        }
    }
}

/// Fills the version into the places of a write that are kept free for it, without a copy where the bytes are ours
/// alone. The batch must have passed [`validate`].
pub fn stamp_put(key: Bytes, value: Bytes, stamp: Stamp, version: CommitVersion) -> (Bytes, Bytes) {
    let key = match stamp.key_offset {
        Some(offset) => stamp_bytes(key, offset as usize, version),
        None => key,
    };
    let value = if stamp.value { stamp_bytes(value, 0, version) } else { value };
    (key, value)
}

fn stamp_bytes(bytes: Bytes, offset: usize, version: CommitVersion) -> Bytes {
    let mut writable = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    writable[offset..offset + STAMP_BYTES].copy_from_slice(&version.0.to_be_bytes());
    writable.freeze()
}

/// The epoch of a shard that was founded; one that nobody founded begins at 0.
pub const FOUNDED_EPOCH: u64 = 1;

/// The counters that a shard is founded with; refused if it was founded, fenced or dropped before. What was committed to it while
/// nobody had founded it is the content that it begins with.
pub fn found(shard: ShardId, founding: Founding, present: ShardState) -> Result<ShardState, Error> {
    if present.epoch != 0 || present.is_dropped || shard == ShardId(0) {
        return Err(Error::ShardExists { shard });
    }
    let mut tallies = present.tallies;
    for (sum, change) in tallies.iter_mut().zip(founding.tallies) {
        *sum = sum.wrapping_add(change);
    }
    Ok(ShardState {
        version: present.version.max(founding.version),
        epoch: FOUNDED_EPOCH,
        high_water: present.high_water.max(founding.high_water),
        tallies,
        is_dropped: false,
    })
}

/// What a watch of a shard has to say, once it has.
pub fn watched(
    shard: ShardId,
    epoch: u64,
    version: u64,
    state: Result<ShardState, Error>,
) -> Option<Result<CommitVersion, Error>> {
    let state = match state.and_then(|state| check_epoch(shard, epoch, state).map(|()| state)) {
        Ok(state) => state,
        Err(error) => return Some(Err(error)),
    };
    (state.version > version).then_some(Ok(CommitVersion(state.version)))
}

/// The numbers that an engine of one process has given out, as long as it is open.
#[derive(Debug, Default)]
pub struct Draws {
    last: Mutex<BTreeMap<ShardId, u64>>,
}

impl Draws {
    /// The first of a block above a number, above the shard's high water and above all blocks given before.
    pub fn draw(&self, shard: ShardId, state: ShardState, above: u64, count: u64) -> u64 {
        let mut last = self.last.lock();
        let last = last.entry(shard).or_default();
        let first = (*last).max(state.high_water).max(above).saturating_add(1);
        *last = first.saturating_add(count).saturating_sub(1);
        first
    }
}

/// Gives the batch its version in its own shard's state; fences are raised apart, by [`raise_fences`].
pub fn advance(state: &mut ShardState, batch: &WriteBatch) -> CommitVersion {
    state.version += 1;
    state.high_water = state.high_water.max(batch.high_water);
    for (sum, change) in state.tallies.iter_mut().zip(batch.tallies) {
        *sum = sum.wrapping_add(change);
    }
    CommitVersion(state.version)
}

/// Ends a shard.
pub fn drop_shard(state: &mut ShardState) {
    state.is_dropped = true;
    state.epoch += 1;
}

/// Refuses whoever goes by another epoch than a shard's, or comes to a shard that was dropped.
pub fn check_epoch(shard: ShardId, epoch: u64, current: ShardState) -> Result<(), Error> {
    if current.is_dropped {
        return Err(Error::Dropped { shard });
    }
    if epoch != current.epoch {
        return Err(Error::Fenced { shard, current: current.epoch });
    }
    Ok(())
}

/// The shards whose counters a batch changes.
pub fn changed_shards(batch: &WriteBatch) -> impl Iterator<Item = ShardId> + '_ {
    let founded = batch.foundings.iter().map(|(shard, _)| *shard);
    std::iter::once(batch.shard)
        .chain(batch.fences.iter().copied())
        .chain(batch.drops.shards.iter().copied())
        .chain(founded)
}

/// Calls `raise` once for each shard the batch fences, however often it is named.
pub fn raise_fences(batch: &WriteBatch, mut raise: impl FnMut(ShardId)) {
    for (index, shard) in batch.fences.iter().enumerate() {
        if !batch.fences[..index].contains(shard) {
            raise(*shard);
        }
    }
}

/// Gathers keys of the set until the limit is reached.
pub fn gather_keys<'a>(keys: impl Iterator<Item = &'a [u8]>, limit: ScanLimit) -> KeyBatch {
    let mut batch = KeyBatch::default();
    for key in keys {
        if limit.is_reached(batch.keys.len(), batch.keys.byte_count()) {
            batch.more = true;
            break;
        }
        batch.keys.push(key);
    }
    batch
}

/// The same with values.
pub fn gather_entries<'a>(
    entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    limit: ScanLimit,
) -> EntryBatch {
    let mut batch = EntryBatch::default();
    for (key, value) in entries {
        if limit.is_reached(batch.entries.len(), batch.entries.byte_count()) {
            batch.more = true;
            break;
        }
        batch.entries.push(key, value);
    }
    batch
}

/// Gathers the entries of a scan until its limit is reached.
#[derive(Debug)]
pub struct ScanCollector {
    limit: ScanLimit,
    byte_count: usize,
    entries: Vec<(Bytes, Bytes)>,
}

impl ScanCollector {
    /// Nothing gathered yet.
    pub fn new(limit: ScanLimit) -> ScanCollector {
        ScanCollector { limit, byte_count: 0, entries: Vec::new() }
    }

    /// Whether the limit is reached: one more entry in the range now means `more`.
    pub fn is_full(&self) -> bool {
        self.limit.is_reached(self.entries.len(), self.byte_count)
    }

    /// Takes an entry; only called while not full.
    pub fn push(&mut self, key: Bytes, value: Bytes) {
        self.byte_count += key.len() + value.len();
        self.entries.push((key, value));
    }

    /// The answer; `more` says whether the range has an entry beyond those gathered.
    pub fn finish(self, more: bool) -> ScanBatch {
        ScanBatch { entries: self.entries, more }
    }
}

/// The first of some values, until they hold so many bytes; further ones are not read.
pub fn try_collect_values<E>(
    values: impl ExactSizeIterator<Item = Result<Option<Bytes>, E>>,
    byte_count_max: usize,
) -> Result<Vec<Option<Bytes>>, E> {
    let (mut collected, mut byte_count) = (Vec::with_capacity(values.len()), 0);
    for value in values {
        let value = value?;
        byte_count += value.as_ref().map_or(0, Bytes::len);
        collected.push(value);
        if byte_count >= byte_count_max {
            break;
        }
    }
    Ok(collected)
}

/// Leaves the values that [`try_collect_values`] would have collected.
pub fn truncate_values(values: &mut Vec<Option<Bytes>>, byte_count_max: usize) {
    let mut byte_count = 0;
    let reaches = |value: &Option<Bytes>| {
        byte_count += value.as_ref().map_or(0, Bytes::len);
        byte_count >= byte_count_max
    };
    if let Some(last) = values.iter().position(reaches) {
        values.truncate(last + 1);
    }
}
