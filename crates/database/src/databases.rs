//! Databases: create, find, list, remove with everything in them.

use crate::attempts::Failure;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link};
use astrarium_catalog::definition::database::DatabaseDefinition;
use astrarium_catalog::definition::throughput::Throughput;
use astrarium_catalog::records::{self, Listing, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{self as kv, Expectation, View, WriteBatch};

impl CatalogHandle<'_> {
    /// Makes a database, with shared throughput if any is given.
    pub async fn create_database(
        self,
        definition: &DatabaseDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Resource, Error> {
        self.core
            .attempt_catalog(|| async move {
                let (id, kind) = (&definition.id, RecordKind::Database);
                let mut resource = self.core.new_resource(kind, Rid::ROOT, id, "{}".to_owned()).await?;
                let mut batch = records::batch();
                records::stage_create(&mut batch, &resource);
                if let Some(throughput) = throughput {
                    records::stage_create(&mut batch, &self.core.new_offer(&resource, throughput).await?);
                }
                resource.record.version = self.core.commit_create(batch).await?;
                Ok(resource)
            })
            .await
    }

    /// Finds a database.
    pub async fn database(self, link: Link<'_>) -> Result<Resource, Error> {
        let view = self.core.catalog().await?;
        find_database(&*view, link).await?.ok_or(Error::NotFound)
    }

    /// Lists databases in order of creation, after a number.
    pub async fn list_databases(self, after: u64, count_max: usize) -> Result<Listing, Error> {
        let view = self.core.catalog().await?;
        Ok(records::list(&*view, RecordKind::Database, Rid::ROOT, after, count_max).await?)
    }

    /// Removes a database and everything in it.
    pub async fn delete_database(self, link: Link<'_>, conditions: &Conditions) -> Result<(), Error> {
        let (database, containers, shards) = self
            .core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let database = find_database(&*view, link).await?.ok_or(Error::NotFound)?;
                conditions.check_write(database.record.etag, database.record.timestamp)?;
                let mut batch = records::batch();
                records::stage_delete(&mut batch, &database);
                let containers = self.core.stage_delete_content(&*view, &mut batch, &database).await?;
                let shards = batch.drops.shards.clone();
                self.core.engine().commit(batch).await?;
                Ok((database, containers, shards))
            })
            .await?;
        for container in containers {
            self.core.shared.containers.forget(container);
        }
        self.core.shared.containers.forget_shards(&shards);
        self.core.shared.background.ranges_removed(shards.len());
        tracing::info!(database = database.record.id, "database dropped");
        Ok(())
    }
}

impl AccountCore {
    /// Stages the removal of everything below a database and gives the containers among it.
    async fn stage_delete_content(
        &self,
        view: &dyn View,
        batch: &mut WriteBatch,
        database: &Resource,
    ) -> Result<Vec<Rid>, Error> {
        let mut gone = Vec::new();
        for container in records::list_all(view, RecordKind::Container, database.rid).await? {
            yield_if_due().await;
            self.stage_delete_container(view, batch, &container).await?;
            gone.push(container.rid);
        }
        for user in records::stage_delete_all(view, batch, RecordKind::User, database.rid).await? {
            yield_if_due().await;
            records::stage_delete_all(view, batch, RecordKind::Permission, user.rid).await?;
        }
        records::stage_delete_all(view, batch, RecordKind::ClientEncryptionKey, database.rid).await?;
        self.stage_delete_offer(view, batch, database.rid).await?;
        Ok(gone)
    }

    /// A resource that is not stored yet, with a number, etag and time of its own.
    pub(crate) async fn new_resource(
        &self,
        kind: RecordKind,
        parent: Rid,
        id: &str,
        definition: String,
    ) -> Result<Resource, Error> {
        let record = self.new_record(id, definition).await?;
        Ok(Resource { kind, parent, rid: kind.rid(parent, self.next_catalog_number().await?), record })
    }

    /// Commits a creation: its first expectation is the free name, those of presence are about the owner, and a number that
    /// somebody has is drawn anew.
    pub(crate) async fn commit_create(&self, batch: WriteBatch) -> Result<u64, Failure> {
        let expected: Vec<Expectation> =
            batch.expectations.iter().map(|(_, _, expected)| *expected).collect();
        match self.engine().commit(batch).await {
            Ok(version) => Ok(version.0),
            Err(kv::Error::Conflict { expectation: 0 }) => Err(Error::Exists.into()),
            Err(kv::Error::Conflict { expectation }) if expected[expectation] == Expectation::Absent => {
                Err(Failure::Lost)
            }
            Err(kv::Error::Conflict { .. }) => Err(Error::OwnerNotFound.into()),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn find_database(view: &dyn View, link: Link<'_>) -> Result<Option<Resource>, Error> {
    find(view, RecordKind::Database, Rid::ROOT, link).await
}

/// Finds a resource of a kind below a parent, by name or rid.
pub(crate) async fn find(
    view: &dyn View,
    kind: RecordKind,
    parent: Rid,
    link: Link<'_>,
) -> Result<Option<Resource>, Error> {
    let found = match link {
        Link::Name(id) => records::by_name(view, kind, parent, id).await?,
        Link::Rid(rid) => {
            let found = records::by_number(view, kind, parent, rid.number()).await?;
            found.filter(|resource| resource.rid == rid)
        }
    };
    Ok(found)
}
