//! Containers: create, find, replace, remove; and the way from a name to a container ready for use.

use crate::attempts::Failure;
use crate::databases::{find, find_database};
use crate::index_builds::next_generations;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link, computed};
use astrarium_catalog::container::{Container, stored_definition};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_catalog::definition::throughput::Throughput;
use astrarium_catalog::records::{self, Listing, Resource};
use astrarium_keys::Rid;
use astrarium_keys::record::{KeyRangeRow, Record, RecordKind};
use astrarium_kv::{self as kv, View, WriteBatch};
use astrarium_partition::EffectiveRange;
use std::sync::Arc;

/// A container to be made.
#[derive(Debug, Clone)]
pub struct NewContainer {
    /// Its checked definition.
    pub definition: ContainerDefinition,
    /// Throughput of its own, if the client asked for any.
    pub throughput: Option<Throughput>,
}

impl CatalogHandle<'_> {
    /// Makes a container. Without throughput of its own it shares the database's, or gets the default.
    pub async fn create_container(
        self,
        database: Link<'_>,
        new: &NewContainer,
    ) -> Result<Arc<Container>, Error> {
        let (database, container) =
            self.core.attempt_catalog(|| self.core.create_container_once(database, new)).await?;
        self.core.container(Link::Rid(database), Link::Rid(container)).await
    }

    /// Lists the containers of a database in order of creation, after a number.
    pub async fn list_containers(
        self,
        database: Link<'_>,
        after: u64,
        count_max: usize,
    ) -> Result<(Rid, Listing), Error> {
        let view = self.core.catalog().await?;
        let database = find_database(&*view, database).await?.ok_or(Error::OwnerNotFound)?;
        let listing = records::list(&*view, RecordKind::Container, database.rid, after, count_max).await?;
        Ok((database.rid, listing))
    }

    /// A container as it is now, also where another process has changed it: for what is told of the definition or the ranges
    /// themselves. Whoever asks for documents is told by storage if he goes by an outdated one, and needs [`Self::container`] only.
    pub async fn current_container(
        self,
        database: Link<'_>,
        container: Link<'_>,
    ) -> Result<Arc<Container>, Error> {
        if let Some(known) = self.core.cached_container(database, container)
            && !self.is_outdated(&known).await?
        {
            return Ok(known);
        }
        self.core.container(database, container).await
    }

    /// The container that is gone by without asking storage, if another process may have changed it meanwhile.
    pub fn assumed_container(self, database: Link<'_>, container: Link<'_>) -> Option<Arc<Container>> {
        if self.core.engine().is_exclusive() {
            return None;
        }
        self.core.cached_container(database, container)
    }

    /// Whether a container has changed since it was loaded, or is gone; it is loaded anew then by the next who asks for it.
    pub async fn is_outdated(self, container: &Arc<Container>) -> Result<bool, Error> {
        let is_outdated = !self.core.is_current(container).await?;
        if is_outdated {
            self.core.shared.containers.forget_outdated(container);
        }
        Ok(is_outdated)
    }

    /// Replaces what may change of a container's definition. Where that asks for another index, one is built in the
    /// background, and queries use the old one until then.
    pub async fn replace_container(
        self,
        database: Link<'_>,
        container: Link<'_>,
        definition: &ContainerDefinition,
        conditions: &Conditions,
    ) -> Result<Arc<Container>, Error> {
        let (parent, replaced) = self
            .core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let parent = find_database(&*view, database).await?.ok_or(Error::OwnerNotFound)?;
                let old = find(&*view, RecordKind::Container, parent.rid, container)
                    .await?
                    .ok_or(Error::NotFound)?;
                conditions.check_write(old.record.etag, old.record.timestamp)?;
                let batch = self.core.stage_replacement(&*view, &old, definition).await?;
                self.core.engine().commit(batch).await?;
                Ok((parent.rid, old.rid))
            })
            .await?;
        self.core.shared.containers.forget(replaced);
        self.core.container(Link::Rid(parent), Link::Rid(replaced)).await
    }

    /// Removes a container with its documents, scripts and throughput. The commit drops its shards
    /// whole; storage gives back their space in the background.
    pub async fn delete_container(
        self,
        database: Link<'_>,
        container: Link<'_>,
        conditions: &Conditions,
    ) -> Result<(), Error> {
        let (parent, old, shards) = self
            .core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let parent = find_database(&*view, database).await?.ok_or(Error::NotFound)?;
                let old = find(&*view, RecordKind::Container, parent.rid, container)
                    .await?
                    .ok_or(Error::NotFound)?;
                conditions.check_write(old.record.etag, old.record.timestamp)?;
                let mut batch = records::batch();
                self.core.stage_delete_container(&*view, &mut batch, &old).await?;
                let shards = batch.drops.shards.clone();
                self.core.engine().commit(batch).await?;
                Ok((parent, old, shards))
            })
            .await?;
        self.core.shared.containers.forget(old.rid);
        self.core.shared.throttle.forget(old.rid);
        self.core.shared.containers.forget_shards(&shards);
        self.core.shared.background.ranges_removed(shards.len());
        let (database, container) = (parent.record.id, old.record.id);
        tracing::info!(database, container, "container dropped");
        Ok(())
    }
}

impl AccountCore {
    async fn create_container_once(
        &self,
        database: Link<'_>,
        new: &NewContainer,
    ) -> Result<(Rid, Rid), Failure> {
        let view = self.catalog().await?;
        let database = find_database(&*view, database).await?.ok_or(Error::OwnerNotFound)?;
        check_encryption_keys(&*view, database.rid, &new.definition).await?;
        computed::check(&new.definition)?;
        new.definition.check_expiry().map_err(Error::from)?;
        let (definition, id) = (definition_text(&new.definition), &new.definition.id);
        let resource = self.new_resource(RecordKind::Container, database.rid, id, definition).await?;
        let shared = self.find_offer(&*view, database.rid).await?.is_some();
        let throughput = new.throughput.or((!shared).then_some(Throughput::DEFAULT));
        let rows = self.new_ranges(&new.definition, throughput).await?;
        if records::by_name(&*view, RecordKind::Container, database.rid, id).await?.is_some() {
            return Err(Error::Exists.into());
        }
        let mut batch = records::batch();
        records::stage_create(&mut batch, &resource);
        records::expect_present(&mut batch, &database);
        records::stage_ranges(&mut batch, resource.rid, &rows);
        if new.definition.indexes_expiry() {
            records::stage_first_expiry(&mut batch, resource.rid);
        }
        batch.high_water = rows.iter().map(|row| row.shard).fold(batch.high_water, u64::max);
        if let Some(throughput) = throughput {
            records::stage_create(&mut batch, &self.new_offer(&resource, throughput).await?);
        }
        self.commit_create(batch).await?;
        Ok((database.rid, resource.rid))
    }

    /// The key ranges of a new container, each with a shard of its own.
    async fn new_ranges(
        &self,
        definition: &ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Vec<KeyRangeRow>, Error> {
        let count = range_count(throughput.map_or(0, Throughput::highest));
        let slices = EffectiveRange::equal_slices(count, &definition.partition_key);
        let mut rows = Vec::with_capacity(slices.len());
        for (id, slice) in (0..).zip(slices) {
            rows.push(KeyRangeRow {
                id,
                shard: self.next_catalog_number().await?,
                min: slice.min.as_bytes().to_vec(),
                max: slice.max.as_bytes().to_vec(),
                parents: Vec::new(),
                is_merged: false,
            });
        }
        Ok(rows)
    }

    /// A container ready for use.
    pub(crate) async fn container(
        &self,
        database: Link<'_>,
        container: Link<'_>,
    ) -> Result<Arc<Container>, Error> {
        match self.cached_container(database, container) {
            Some(container) => Ok(container),
            None => self.load_container(database, container).await,
        }
    }

    /// A container as it was when it was last loaded.
    fn cached_container(&self, database: Link<'_>, container: Link<'_>) -> Option<Arc<Container>> {
        match (database, container) {
            (Link::Name(database), Link::Name(container)) => {
                self.shared.containers.by_name(database, container)
            }
            (Link::Rid(database), Link::Rid(rid)) if rid.database_part() == Some(database) => {
                self.shared.containers.by_rid(rid)
            }
            // A name with a rid, or a rid of another database: storage knows whether there is such a thing.
            _ => None,
        }
    }

    /// Loads a container: once more if it changes meanwhile, so that its definition is not older than its epochs.
    pub(crate) async fn load_container(
        &self,
        database: Link<'_>,
        link: Link<'_>,
    ) -> Result<Arc<Container>, Error> {
        let cache = &self.shared.containers;
        self.attempt_catalog(|| async move {
            let generation = cache.generation();
            let view = self.catalog().await?;
            let database = find_database(&*view, database).await?.ok_or(Error::NotFound)?;
            let resource = find(&*view, RecordKind::Container, database.rid, link).await?;
            let resource = resource.ok_or(Error::NotFound)?;
            let (rid, version) = (resource.rid, resource.record.version);
            let generations = records::generations(&*view, rid).await?.version;
            let erasures = records::erasures(&*view, rid).await?;
            let resharding = records::resharding(&*view, rid).await?.map(|record| record.version);
            // Views may be few: nobody has one of the catalog and waits for another.
            drop(view);
            let source_of = |shard, above| self.number_source(shard, above);
            let (name, history) = (database.record.id, self.account_history());
            let loaded = Container::load(self.engine(), resource, name, source_of, history).await;
            let view = self.catalog().await?;
            let again = find(&*view, RecordKind::Container, database.rid, Link::Rid(rid)).await?;
            let is_same = again.is_some_and(|again| again.record.version == version)
                && generations == records::generations(&*view, rid).await?.version
                && erasures == records::erasures(&*view, rid).await?
                && resharding == records::resharding(&*view, rid).await?.map(|record| record.version);
            if is_same {
                let container = Arc::new(loaded?);
                cache.insert(generation, &container);
                return Ok(container);
            }
            Err(Failure::Lost)
        })
        .await
    }

    async fn stage_replacement(
        &self,
        view: &dyn View,
        old: &Resource,
        definition: &ContainerDefinition,
    ) -> Result<WriteBatch, Error> {
        let old_definition = stored_definition(old)?;
        let definition = old_definition.replaced(definition.clone())?;
        computed::check(&definition)?;
        definition.check_expiry()?;
        let mut batch = records::batch();
        let record = self.new_record(&old.record.id, definition_text(&definition)).await?;
        records::stage_replace(&mut batch, old, &record);
        let rows = records::ranges(view, old.rid).await?;
        for row in &rows {
            batch.fence(kv::ShardId(row.shard));
        }
        let generations = records::generations(view, old.rid).await?;
        let definitions = (&old_definition, &definition);
        let number = self.next_catalog_number().await?;
        if let Some(new) = next_generations(view, &rows, &generations, definitions, number).await? {
            records::stage_generations(&mut batch, old.rid, &rows, &generations, &new);
            let construction = new.building.map_or(0, |building| building.construction);
            batch.high_water = batch.high_water.max(construction);
        }
        Ok(batch)
    }

    pub(crate) async fn stage_delete_container(
        &self,
        view: &dyn View,
        batch: &mut WriteBatch,
        container: &Resource,
    ) -> Result<(), Error> {
        records::stage_delete(batch, container);
        let rows = records::ranges(view, container.rid).await?;
        records::stage_removed_lsn(view, batch, self.highest_lsn(&rows).await?);
        let resharding = records::resharding(view, container.rid).await?;
        records::stage_remove_ranges(batch, container.rid, &rows, resharding.as_ref());
        for kind in [RecordKind::StoredProcedure, RecordKind::Trigger, RecordKind::UserDefinedFunction] {
            records::stage_delete_all(view, batch, kind, container.rid).await?;
        }
        self.stage_delete_offer(view, batch, container.rid).await
    }

    /// New content for a resource: a new etag and time.
    pub(crate) async fn new_record(&self, id: &str, definition: String) -> Result<Record, Error> {
        Ok(Record {
            version: 0,
            etag: self.shared.stamps.next().await?,
            timestamp: self.env().now_seconds(),
            id: id.to_owned(),
            definition,
        })
    }
}

/// How many ranges a container of this throughput starts with, as the service gives it.
fn range_count(throughput: u32) -> u32 {
    if throughput <= 10_000 { 1 } else { throughput.div_ceil(6_000) }
}

/// An encryption policy may name only keys that the database has.
async fn check_encryption_keys(
    view: &dyn View,
    database: Rid,
    definition: &ContainerDefinition,
) -> Result<(), Error> {
    let paths = definition.client_encryption.iter().flat_map(|policy| &policy.included_paths);
    for path in paths {
        let id = &path.key_id;
        if records::by_name(view, RecordKind::ClientEncryptionKey, database, id).await?.is_none() {
            return Err(Error::invalid(format!("ClientEncryptionKey with id '[{id}]' does not exist.")));
        }
    }
    Ok(())
}

pub(crate) fn definition_text(definition: &ContainerDefinition) -> String {
    serde_json::Value::Object(definition.to_json()).to_string()
}
