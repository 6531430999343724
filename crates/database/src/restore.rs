//! Making an account agree with itself again after a loss was accepted: everything that can be told from documents and
//! definitions is made anew from them.
//!
//! In: an engine that nobody else uses. Out: names, directories, feeds, unique keys and indexes that fit the documents that are
//! there, and the counters that the engine should have. What is lost can be created again.

use crate::{AccountCore, Container, Error, index_cache};
use astrarium_catalog::{CATALOG_SHARD, records};
use astrarium_keys::Rid;
use astrarium_keys::index_state::GenerationsRecord;
use astrarium_keys::record::{self, KeyRangeRow, RecordKind};
use astrarium_keys::tags::{self, meta};
use astrarium_kv::{Direction, KeyRange, ScanLimit, ShardId, ShardState, Space, Stamp};
use astrarium_store::restore::restore_range;
use bytes::Bytes;

/// Entries read at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 1_000, byte_count_max: 4 << 20 };

impl AccountCore {
    /// Restores all containers; tells of each how many documents are there and how many had to go. Gives what the engine should
    /// know of every shard.
    pub(crate) async fn restore(
        &self,
        mut progress: impl FnMut(&str, u64, u64),
    ) -> Result<Vec<(ShardId, ShardState)>, Error> {
        self.restore_names().await?;
        let mut states = vec![(CATALOG_SHARD, self.catalog_state().await?)];
        let view = self.catalog().await?;
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let name = format!("{}/{}", database.record.id, resource.record.id);
                let source_of = |shard, above| self.number_source(shard, above);
                let container =
                    Container::load(self.engine(), resource, database.record.id.clone(), source_of).await?;
                let indexes = index_cache::make(&container);
                let (mut documents, mut dropped) = (0, 0);
                for range in &container.ranges {
                    let restored = restore_range(self.engine(), &container, &indexes, range).await?;
                    documents += restored.documents;
                    dropped += restored.dropped;
                    states.push((range.shard, restored.state));
                }
                progress(&name, documents, dropped);
            }
        }
        Ok(states)
    }

    /// Builds what indexes lack, and frees what nobody needs, to the end.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        while self.build_indexes().await? {}
        while self.sweep().await? {}
        Ok(())
    }

    /// Every resource has its name, and no name leads nowhere.
    async fn restore_names(&self) -> Result<(), Error> {
        let mut batch = records::batch();
        for (key, value) in self.entries(Space::Meta, &[meta::NAME]).await? {
            let is_there = match record::record_key_of_name(&key, &value) {
                Some(record_key) => self.catalog().await?.get(Space::Meta, &record_key).await?.is_some(),
                None => false,
            };
            if !is_there {
                batch.delete(Space::Meta, key);
            }
        }
        for (key, value) in self.entries(Space::Meta, &[meta::RECORD]).await? {
            let number = record::read_record_number(&key).map_err(astrarium_catalog::Error::from)?;
            let id = record::Record::decode(&value).map_err(astrarium_catalog::Error::from)?.id;
            let name = record::name_key_of_record(&key, &id);
            let value = record::name_value(number);
            if self.catalog().await?.get(Space::Meta, &name).await?.as_ref() != Some(&value) {
                batch.put(Space::Meta, name, value, Stamp::NONE);
            }
        }
        if !batch.mutations.is_empty() {
            self.engine().commit(batch).await?;
        }
        Ok(())
    }

    /// What the engine should know of the catalog: no number is given twice, not even one that only lost definitions had.
    async fn catalog_state(&self) -> Result<ShardState, Error> {
        let mut state = self.engine().shard(CATALOG_SHARD).await?;
        let malformed = astrarium_catalog::Error::from;
        for (key, value) in self.entries(Space::Meta, &[meta::RECORD]).await? {
            state.high_water = state.high_water.max(record::read_record_number(&key).map_err(malformed)?);
            state.version = state.version.max(version_of(&value));
        }
        for (_, value) in self.entries(Space::Meta, &[meta::RANGES]).await? {
            let rows = KeyRangeRow::decode_all(&value).map_err(malformed)?;
            state.high_water = rows.iter().fold(state.high_water, |high, row| high.max(row.shard));
        }
        for (_, value) in self.entries(Space::Meta, &[meta::GENERATIONS]).await? {
            let record = GenerationsRecord::decode(&value).map_err(malformed)?;
            state.version = state.version.max(record.version);
            let construction = record.building.map_or(0, |building| building.construction);
            state.high_water = state.high_water.max(construction);
        }
        for (space, tag) in [
            (Space::Body, tags::body::DOCUMENT),
            (Space::Log, tags::log::NUMBER),
            (Space::Log, tags::log::FEED),
            (Space::Log, tags::log::UNIQUE),
        ] {
            let one = ScanLimit { entry_count_max: 1, byte_count_max: 1 };
            let range = KeyRange::prefix(&[tag]);
            let last = self.catalog().await?.scan(space, &range, Direction::Backward, one).await?;
            let shard = last.entries.first().and_then(|(key, _)| key.get(1..)?.first_chunk().copied());
            state.high_water = state.high_water.max(shard.map_or(0, u64::from_be_bytes));
        }
        Ok(state)
    }

    async fn entries(&self, space: Space, prefix: &[u8]) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let mut range = KeyRange::prefix(prefix);
        let mut entries = Vec::new();
        let view = self.catalog().await?;
        loop {
            let step = view.scan(space, &range, Direction::Forward, STEP).await?;
            entries.extend(step.entries);
            match entries.last() {
                Some((last, _)) if step.more => range.start = astrarium_kv::just_after(last),
                _ => return Ok(entries),
            }
        }
    }
}

fn version_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |version| u64::from_be_bytes(*version))
}
