//! Catalog resources in storage: finding them by name or rid, listing them, and staging their changes.
//!
//! Reads take a view of the catalog's shard; changes are appended to a batch that the caller commits. Nothing here decides whether a
//! change is allowed.
//! Invariants
//! - A resource, its name entry and (for offers) its owner agree in every commit.
//! - Creating expects the name to be free and the parent to be there; replacing and deleting expect the version that
//!   was read. So concurrent changes end in one winner, and no child outlives its parent unnoticed.

use crate::{CATALOG_EPOCH, CATALOG_SHARD, Error};
use astrarium_env::yield_if_due;
use astrarium_keys::account_state::{self, AccountState};
use astrarium_keys::erasure::{self, ErasureRecord};
use astrarium_keys::index_expiry::expiry_family;
use astrarium_keys::index_state::{self, GenerationsRecord};
use astrarium_keys::record::{self, KeyRangeRow, Record, RecordKind};
use astrarium_keys::removed_database;
use astrarium_keys::resharding::{self, ReshardingRecord};
use astrarium_keys::{Malformed, Rid, document, index_entry, tags, trail};
use astrarium_kv::{
    Direction, Expectation, Founding, KeyPrefix, KeyRange, ScanLimit, ShardState, Space, Stamp, View,
    WriteBatch,
};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Which of the catalog's running sums is an LSN that no removed container had got beyond.
const REMOVED_LSN_TALLY: usize = 0;

/// Which of the catalog's running sums counts changes of offers.
const OFFER_CHANGE_TALLY: usize = 1;

/// Bytes of definitions read in one step of a listing.
const LIST_BYTES_MAX: usize = 4 << 20;

/// A stored catalog resource with its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// What it is.
    pub kind: RecordKind,
    /// The rid of what it belongs to.
    pub parent: Rid,
    /// Its own rid.
    pub rid: Rid,
    /// Its stored content.
    pub record: Record,
}

impl Resource {
    fn key(&self) -> Bytes {
        record::record_key(self.kind, self.parent, self.rid.number())
    }
}

/// Databases that are removed and of which something is left.
#[derive(Debug, Clone, Default)]
pub struct RemovedDatabases(BTreeSet<Rid>);

impl RemovedDatabases {
    /// Whether a resource is, or was, one of these databases or below one.
    pub fn has(&self, rid: Rid) -> bool {
        !self.0.is_empty() && rid.database_part().is_some_and(|database| self.0.contains(&database))
    }

    /// The one to be removed next.
    pub fn first(&self) -> Option<Rid> {
        self.0.first().copied()
    }
}

/// Finds a resource by the name its user gave it.
pub async fn by_name(
    view: &dyn View,
    kind: RecordKind,
    parent: Rid,
    id: &str,
) -> Result<Option<Resource>, Error> {
    let name = record::name_key(kind, parent, id);
    match view.get(Space::Meta, &name).await? {
        None => Ok(None),
        Some(value) => by_number(view, kind, parent, record::read_name_value(&value)?).await,
    }
}

/// Finds a resource by its number below a parent.
pub async fn by_number(
    view: &dyn View,
    kind: RecordKind,
    parent: Rid,
    number: u64,
) -> Result<Option<Resource>, Error> {
    let key = record::record_key(kind, parent, number);
    let value = view.get(Space::Meta, &key).await?;
    value.map(|value| resource(kind, parent, number, &value)).transpose()
}

/// One step of a listing.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Resources in order of creation.
    pub resources: Vec<Resource>,
    /// Whether there are more after the last.
    pub more: bool,
}

/// Lists resources of a kind below a parent in order of creation, after a number.
pub async fn list(
    view: &dyn View,
    kind: RecordKind,
    parent: Rid,
    after: u64,
    count_max: usize,
) -> Result<Listing, Error> {
    let mut range = KeyRange::prefix(&record::record_prefix(kind, parent));
    range.start = record::record_key(kind, parent, after.saturating_add(1));
    let limit = ScanLimit { entry_count_max: count_max, byte_count_max: LIST_BYTES_MAX };
    let batch = view.scan(Space::Meta, &range, Direction::Forward, limit).await?;
    let resources = batch
        .entries
        .iter()
        .map(|(key, value)| resource(kind, parent, record::read_record_number(key)?, value))
        .collect::<Result<_, _>>()?;
    Ok(Listing { resources, more: batch.more })
}

/// Lists everything of a kind below a parent.
pub async fn list_all(view: &dyn View, kind: RecordKind, parent: Rid) -> Result<Vec<Resource>, Error> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let step = list(view, kind, parent, after, 1_000).await?;
        after = step.resources.last().map_or(after, |last| last.rid.number());
        all.extend(step.resources);
        if !step.more {
            return Ok(all);
        }
        yield_if_due().await;
    }
}

fn resource(kind: RecordKind, parent: Rid, number: u64, value: &[u8]) -> Result<Resource, Error> {
    Ok(Resource { kind, parent, rid: kind.rid(parent, number), record: Record::decode(value)? })
}

/// An empty batch of the catalog.
pub fn batch() -> WriteBatch {
    WriteBatch::new(CATALOG_SHARD, CATALOG_EPOCH)
}

/// Stages a new resource. Its first expectation is that the name is free, its second that the number is.
pub fn stage_create(batch: &mut WriteBatch, resource: &Resource) {
    let number = resource.rid.number();
    let name = record::name_key(resource.kind, resource.parent, &resource.record.id);
    batch.expect(Space::Meta, name.clone(), Expectation::Absent);
    batch.put(Space::Meta, name, record::name_value(number), Stamp::NONE);
    batch.expect(Space::Meta, resource.key(), Expectation::Absent);
    batch.put(Space::Meta, resource.key(), resource.record.encode(), Stamp::VALUE);
    batch.high_water = batch.high_water.max(number);
}

/// Stages new content, and the new name if it changes.
pub fn stage_replace(batch: &mut WriteBatch, old: &Resource, record: &Record) {
    batch.expect(Space::Meta, old.key(), Expectation::Version(old.record.version));
    batch.put(Space::Meta, old.key(), record.encode(), Stamp::VALUE);
    if record.id != old.record.id {
        let name = record::name_key(old.kind, old.parent, &record.id);
        batch.expect(Space::Meta, name.clone(), Expectation::Absent);
        batch.put(Space::Meta, name, record::name_value(old.rid.number()), Stamp::NONE);
        batch.delete(Space::Meta, record::name_key(old.kind, old.parent, &old.record.id));
    }
}

/// Stages the removal of one resource, not of what is below it.
pub fn stage_delete(batch: &mut WriteBatch, old: &Resource) {
    batch.expect(Space::Meta, old.key(), Expectation::Version(old.record.version));
    batch.delete(Space::Meta, old.key());
    batch.delete(Space::Meta, record::name_key(old.kind, old.parent, &old.record.id));
}

/// Stages the removal of everything of a kind below a parent. The parent itself is removed in the same batch, and
/// creating a child expects the parent, so a child made meanwhile makes one of the two commits fail.
pub async fn stage_delete_all(
    view: &dyn View,
    batch: &mut WriteBatch,
    kind: RecordKind,
    parent: Rid,
) -> Result<Vec<Resource>, Error> {
    let all = list_all(view, kind, parent).await?;
    for resource in &all {
        stage_delete(batch, resource);
    }
    Ok(all)
}

/// Makes a batch fail if a resource is removed before it commits.
pub fn expect_present(batch: &mut WriteBatch, resource: &Resource) {
    batch.expect(Space::Meta, resource.key(), Expectation::Present);
}

/// Makes a batch fail if a resource changes before it commits.
pub fn expect_unchanged(batch: &mut WriteBatch, resource: &Resource) {
    batch.expect(Space::Meta, resource.key(), Expectation::Version(resource.record.version));
}

/// The LSN of a container's creation in each of its first ranges, as on the service: the first document's is the next.
pub const CREATION_LSN: u64 = 1;

/// Stages a new container's key ranges.
pub fn stage_ranges(batch: &mut WriteBatch, container: Rid, rows: &[KeyRangeRow]) {
    batch.expect(Space::Meta, record::ranges_key(container), Expectation::Absent);
    batch.put(Space::Meta, record::ranges_key(container), KeyRangeRow::encode_all(rows), Stamp::NONE);
    for row in rows {
        let founding = Founding { version: CREATION_LSN, ..Founding::default() };
        batch.found(astrarium_kv::ShardId(row.shard), founding);
    }
}

/// How often offers were changed so far, by the counters of the catalog's shard.
pub fn offer_changes(state: ShardState) -> u64 {
    u64::try_from(state.tallies[OFFER_CHANGE_TALLY]).unwrap_or_default()
}

/// Stages that an offer is changed, for those who go by what they read of offers before.
pub fn stage_offer_change(batch: &mut WriteBatch) {
    batch.tallies[OFFER_CHANGE_TALLY] += 1;
}

/// What was done to all data of the account.
pub async fn account_state(view: &dyn View) -> Result<AccountState, Error> {
    let value = view.get(Space::Meta, &account_state::account_state_key()).await?;
    Ok(value.map(|value| AccountState::decode(&value)).transpose()?.unwrap_or_default())
}

/// Stages what was done to all data of the account.
pub fn stage_account_state(batch: &mut WriteBatch, state: AccountState) {
    batch.put(Space::Meta, account_state::account_state_key(), state.encode(), Stamp::NONE);
}

/// The databases that are removed and of which something is left.
pub async fn removed_databases(view: &dyn View) -> Result<RemovedDatabases, Error> {
    let mut range = KeyRange::prefix(&[tags::meta::REMOVED_DATABASE]);
    let limit = ScanLimit { entry_count_max: 1_000, byte_count_max: LIST_BYTES_MAX };
    let mut removed = BTreeSet::new();
    loop {
        let batch = view.scan(Space::Meta, &range, Direction::Forward, limit).await?;
        for (key, value) in &batch.entries {
            removed.insert(removed_database::read_removed_database(key, value)?);
        }
        match batch.entries.last() {
            Some((last, _)) if batch.more => range.start = astrarium_kv::just_after(last),
            _ => return Ok(RemovedDatabases(removed)),
        }
        yield_if_due().await;
    }
}

/// Stages that a database is removed and its content is not: nothing below it is found any more, and it is removed later.
pub fn stage_removed_database(batch: &mut WriteBatch, database: Rid) {
    let key = removed_database::removed_database_key(database);
    batch.put(Space::Meta, key, removed_database::removed_database_value(), Stamp::NONE);
}

/// Stages that nothing is left of a removed database. It expects the record, so that two who remove the rest do not both go on.
pub fn stage_removal_done(batch: &mut WriteBatch, database: Rid) {
    let key = removed_database::removed_database_key(database);
    batch.expect(Space::Meta, key.clone(), Expectation::Present);
    batch.delete(Space::Meta, key);
}

/// The highest LSN that a removed container may have reached, also one whose database is removed and that is still there.
pub async fn highest_former_lsn(view: &dyn View) -> Result<u64, Error> {
    let is_all_counted = removed_databases(view).await?.0.is_empty();
    Ok(if is_all_counted { highest_removed_lsn(view) } else { u64::MAX })
}

/// The highest LSN that a removed container may have reached. A client that knew a container may name its positions, up to this one, to
/// another container that was created under the same name.
pub fn highest_removed_lsn(view: &dyn View) -> u64 {
    u64::try_from(view.state().tallies[REMOVED_LSN_TALLY]).unwrap_or_default()
}

/// Stages that a container is removed which had reached an LSN. Only what it had above the highest so far is added: of two that are removed at
/// once the sum may be more than is needed, and never less.
pub fn stage_removed_lsn(view: &dyn View, batch: &mut WriteBatch, lsn: u64) {
    let added = &mut batch.tallies[REMOVED_LSN_TALLY];
    let highest = highest_removed_lsn(view).saturating_add_signed(*added);
    *added = added.saturating_add_unsigned(lsn.saturating_sub(highest));
}

/// Stages the end of a container's ranges: its shards are dropped with everything they hold, and those that were to take their place.
pub fn stage_remove_ranges(
    batch: &mut WriteBatch,
    container: Rid,
    rows: &[KeyRangeRow],
    resharding: Option<&ReshardingRecord>,
) {
    batch.delete(Space::Meta, record::ranges_key(container));
    batch.delete(Space::Meta, index_state::generations_key(container));
    let targets = resharding.and_then(|record| record.work.as_ref()).map_or(&[][..], |work| &work.targets);
    for row in rows.iter().chain(targets) {
        stage_drop_shard(batch, row.shard);
    }
    stage_resharding(batch, container, resharding, None);
}

/// What is wanted of a container's ranges and not there yet.
pub async fn resharding(view: &dyn View, container: Rid) -> Result<Option<ReshardingRecord>, Error> {
    let value = view.get(Space::Meta, &resharding::resharding_key(container)).await?;
    Ok(value.map(|value| ReshardingRecord::decode(&value)).transpose()?)
}

/// Stages another record of a container's resharding, or its end.
pub fn stage_resharding(
    batch: &mut WriteBatch,
    container: Rid,
    old: Option<&ReshardingRecord>,
    new: Option<&ReshardingRecord>,
) {
    expect_resharding(batch, container, old);
    let key = resharding::resharding_key(container);
    match new {
        Some(new) => batch.put(Space::Meta, key, new.encode(), Stamp::VALUE),
        None if old.is_some() => batch.delete(Space::Meta, key),
        None => {}
    }
}

/// Makes a batch fail if something else is wanted of a container's ranges, or was done for it, before it commits.
pub fn expect_resharding(batch: &mut WriteBatch, container: Rid, known: Option<&ReshardingRecord>) {
    let expectation = known.map_or(Expectation::Absent, |known| Expectation::Version(known.version));
    batch.expect(Space::Meta, resharding::resharding_key(container), expectation);
}

/// Makes a batch fail if the generations of a container's index change before it commits.
pub fn expect_generations(batch: &mut WriteBatch, container: Rid, version: u64) {
    let expectation = if version == 0 { Expectation::Absent } else { Expectation::Version(version) };
    batch.expect(Space::Meta, index_state::generations_key(container), expectation);
}

/// Stages other key ranges of a container, whose resharding record tells that nobody else does.
pub fn stage_new_ranges(batch: &mut WriteBatch, container: Rid, rows: &[KeyRangeRow]) {
    batch.put(Space::Meta, record::ranges_key(container), KeyRangeRow::encode_all(rows), Stamp::NONE);
}

/// Stages the end of the trail that a shard's writers left for a resharding.
pub fn stage_drop_trail(batch: &mut WriteBatch, shard: u64, number: u64) {
    batch.drop_prefix(Some(Space::Log), Bytes::copy_from_slice(&trail::trail_prefix(shard, number)));
}

/// Stages the end of the record of how far the copy into a shard is, which comes into use.
pub fn stage_drop_copy_record(batch: &mut WriteBatch, shard: u64) {
    batch.drop_prefix(Some(Space::Meta), resharding::copy_key(shard));
}

/// The first container after another one, in the order of rids, whose ranges are not what is wanted. One of a removed database is passed
/// over.
pub async fn next_to_reshard(view: &dyn View, after: Option<Rid>) -> Result<Option<Rid>, Error> {
    let removed = removed_databases(view).await?;
    let mut range = KeyRange::prefix(&[tags::meta::RESHARDING]);
    if let Some(after) = after {
        range.start = astrarium_kv::just_after(&resharding::resharding_key(after));
    }
    let limit = ScanLimit { entry_count_max: 1, byte_count_max: LIST_BYTES_MAX };
    loop {
        let batch = view.scan(Space::Meta, &range, Direction::Forward, limit).await?;
        let Some((key, _)) = batch.entries.first() else { return Ok(None) };
        let container = resharding::read_resharding_key(key)?;
        if !removed.has(container) {
            return Ok(Some(container));
        }
        range.start = astrarium_kv::just_after(key);
        yield_if_due().await;
    }
}

/// Stages the end of a shard and of everything that belongs to it.
pub fn stage_drop_shard(batch: &mut WriteBatch, shard: u64) {
    batch.drop_shard(astrarium_kv::ShardId(shard));
    let owned = |prefix: &[u8]| Bytes::copy_from_slice(prefix);
    batch.drop_prefix(Some(Space::Body), owned(&document::shard_prefix(shard)));
    for prefix in tags::log_prefixes(shard) {
        batch.drop_prefix(Some(Space::Log), owned(&prefix));
    }
    batch.drop_prefix(Some(Space::Meta), owned(&index_state::watermark_key(shard)));
    batch.drop_prefix(Some(Space::Meta), owned(&index_state::sweep_prefix(shard)));
    batch.drop_prefix(None, owned(&shard.to_be_bytes()));
}

/// A container's key ranges, in order of their bounds.
pub async fn ranges(view: &dyn View, container: Rid) -> Result<Vec<KeyRangeRow>, Error> {
    let value = view.get(Space::Meta, &record::ranges_key(container)).await?;
    let value = value.ok_or(Malformed::new("key ranges of a container"))?;
    Ok(KeyRangeRow::decode_all(&value)?)
}

/// Shards that were removed before they could be dropped whole, and whose content waits for that.
pub async fn shards_to_sweep(view: &dyn View) -> Result<Vec<u64>, Error> {
    let range = KeyRange::prefix(&[tags::meta::SWEEP]);
    let limit = ScanLimit { entry_count_max: 1_000, byte_count_max: LIST_BYTES_MAX };
    let batch = view.scan(Space::Meta, &range, Direction::Forward, limit).await?;
    Ok(batch.entries.iter().map(|(key, _)| record::read_sweep_key(key)).collect::<Result<_, _>>()?)
}

/// The generations of a container's index.
pub async fn generations(view: &dyn View, container: Rid) -> Result<GenerationsRecord, Error> {
    let value = view.get(Space::Meta, &index_state::generations_key(container)).await?;
    Ok(value.map(|value| GenerationsRecord::decode(&value)).transpose()?.unwrap_or_default())
}

/// Stages that the first generation of a new container's index has the entries by which documents expire.
pub fn stage_first_expiry(batch: &mut WriteBatch, container: Rid) {
    let key = index_state::generations_key(container);
    let record = GenerationsRecord { has_expiry: true, ..GenerationsRecord::default() };
    batch.expect(Space::Meta, key.clone(), Expectation::Absent);
    batch.put(Space::Meta, key, record.encode(), Stamp::VALUE);
}

/// Stages new generations of a container's index. Prepared writes of its documents are wrong then, so all its shards are
/// fenced.
pub fn stage_generations(
    batch: &mut WriteBatch,
    container: Rid,
    rows: &[KeyRangeRow],
    old: &GenerationsRecord,
    new: &GenerationsRecord,
) {
    let key = index_state::generations_key(container);
    let expectation = if old.version == 0 { Expectation::Absent } else { Expectation::Version(old.version) };
    batch.expect(Space::Meta, key.clone(), expectation);
    batch.put(Space::Meta, key, new.encode(), Stamp::VALUE);
    let is_kept = |generation: u8| {
        generation == new.active || new.building.is_some_and(|building| building.generation == generation)
    };
    let building = old.building.map(|building| building.generation);
    for row in rows {
        batch.fence(astrarium_kv::ShardId(row.shard));
        for generation in [Some(old.active), building].into_iter().flatten().filter(|own| !is_kept(*own)) {
            let mark = index_state::sweep_key(row.shard, generation);
            batch.put(Space::Meta, mark, Bytes::new(), Stamp::NONE);
            batch.drop_prefix(None, generation_entries(row.shard, generation).bytes);
        }
        if old.active == new.active && old.has_expiry && !new.has_expiry {
            let prefix = expiry_family(old.active).prefix(row.shard);
            batch.drop_prefix(None, Bytes::copy_from_slice(&prefix));
        }
    }
}

/// The generations of a shard's index whose entries wait to be removed.
pub async fn generations_to_sweep_of(view: &dyn View, shard: u64) -> Result<Vec<u8>, Error> {
    let marks = sweep_marks(view, &index_state::sweep_prefix(shard)).await?;
    Ok(marks.into_iter().map(|(_, generation)| generation).collect())
}

/// Shards and generations of their index whose entries wait to be removed.
pub async fn generations_to_sweep(view: &dyn View) -> Result<Vec<(u64, u8)>, Error> {
    sweep_marks(view, &[tags::meta::SWEEP_GENERATION]).await
}

/// What the entries of a generation in a shard have in common.
pub fn generation_entries(shard: u64, generation: u8) -> KeyPrefix {
    let bytes = Bytes::copy_from_slice(&index_entry::generation_prefix(shard, generation));
    KeyPrefix { space: None, bytes }
}

/// Stages that the number of a generation may be used again: its entries are gone.
pub fn stage_generation_swept(batch: &mut WriteBatch, shard: u64, generation: u8) {
    batch.delete(Space::Meta, index_state::sweep_key(shard, generation));
}

/// Stages the end of a shard that was marked to be removed.
pub fn stage_drop_marked_shard(batch: &mut WriteBatch, shard: u64) {
    stage_drop_shard(batch, shard);
    batch.delete(Space::Meta, record::sweep_key(shard));
}

async fn sweep_marks(view: &dyn View, prefix: &[u8]) -> Result<Vec<(u64, u8)>, Error> {
    let limit = ScanLimit { entry_count_max: 1_000, byte_count_max: LIST_BYTES_MAX };
    let batch = view.scan(Space::Meta, &KeyRange::prefix(prefix), Direction::Forward, limit).await?;
    Ok(batch.entries.iter().map(|(key, _)| index_state::read_sweep_key(key)).collect::<Result<_, _>>()?)
}

/// Deletes of logical partitions of a container that are not done yet, with their numbers.
pub async fn erasures(view: &dyn View, container: Rid) -> Result<Vec<(u64, ErasureRecord)>, Error> {
    let all = erasures_within(view, &KeyRange::prefix(&erasure::erasure_prefix(container)), 1_000).await?;
    Ok(all.into_iter().map(|(_, number, record)| (number, record)).collect())
}

/// The first of all such deletes after another one, in the order of containers.
pub async fn next_erasure(
    view: &dyn View,
    after: Option<(Rid, u64)>,
) -> Result<Option<(Rid, u64, ErasureRecord)>, Error> {
    let mut range = KeyRange::prefix(&[tags::meta::ERASURE]);
    if let Some((container, number)) = after {
        range.start = astrarium_kv::just_after(&erasure::erasure_key(container, number));
    }
    Ok(erasures_within(view, &range, 1).await?.pop())
}

async fn erasures_within(
    view: &dyn View,
    range: &KeyRange,
    count_max: usize,
) -> Result<Vec<(Rid, u64, ErasureRecord)>, Error> {
    let limit = ScanLimit { entry_count_max: count_max, byte_count_max: LIST_BYTES_MAX };
    let batch = view.scan(Space::Meta, range, Direction::Forward, limit).await?;
    let read = |(key, value): &(Bytes, Bytes)| {
        let (container, number) = erasure::read_erasure_key(key)?;
        Ok((container, number, ErasureRecord::decode(value)?))
    };
    batch.entries.iter().map(read).collect()
}

/// Stages that documents are deleted, or how far that is.
pub fn stage_erasure(batch: &mut WriteBatch, container: Rid, number: u64, record: &ErasureRecord) {
    batch.put(Space::Meta, erasure::erasure_key(container, number), record.encode(), Stamp::VALUE);
    batch.high_water = batch.high_water.max(number);
}

/// Stages that all of them are erased.
pub fn stage_erased(batch: &mut WriteBatch, container: Rid, number: u64) {
    batch.delete(Space::Meta, erasure::erasure_key(container, number));
}

/// The first container after another one, in the order of rids, that has a generation under construction. One of a removed database is
/// passed over.
pub async fn next_to_build(view: &dyn View, after: Option<Rid>) -> Result<Option<Rid>, Error> {
    let removed = removed_databases(view).await?;
    let mut range = KeyRange::prefix(&[tags::meta::GENERATIONS]);
    let beyond = |key: &[u8]| Bytes::from([key, &[0]].concat());
    if let Some(after) = after {
        range.start = beyond(&index_state::generations_key(after));
    }
    let limit = ScanLimit { entry_count_max: 1_000, byte_count_max: LIST_BYTES_MAX };
    loop {
        let batch = view.scan(Space::Meta, &range, Direction::Forward, limit).await?;
        for (key, value) in &batch.entries {
            if GenerationsRecord::decode(value)?.building.is_some() {
                let container = index_state::read_generations_key(key)?;
                if !removed.has(container) {
                    return Ok(Some(container));
                }
            }
        }
        match batch.entries.last() {
            Some((last, _)) if batch.more => range.start = beyond(last),
            _ => return Ok(None),
        }
    }
}
