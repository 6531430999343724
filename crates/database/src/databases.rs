//! Databases: create, find, list, remove with everything in them.

use crate::attempts::Failure;
use crate::leases::LeasedWork;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link};
use astrarium_catalog::definition::database::DatabaseDefinition;
use astrarium_catalog::definition::throughput::Throughput;
use astrarium_catalog::records::{self, Listing, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{self as kv, Expectation, Lease, ShardId, View, WriteBatch};

/// Resources and key ranges of a database that are removed with it, in one commit. Of a database that has more the content is removed in steps.
const CONTENT_AT_ONCE: usize = 500;

/// The same of a step beside requests, whose commits wait for it.
const CONTENT_IN_STEP: usize = 200;

/// The same within a request, where other processes have the storage open: their commits wait for each step anyway, and a commit there is slow.
const CONTENT_AT_ONCE_SHARED: usize = 5_000;

/// What is staged of a database's content.
#[derive(Debug, Default)]
struct StagedContent {
    containers: Vec<Rid>,
    shards: Vec<ShardId>,
    /// Resources besides containers.
    other_count: usize,
    /// Whether nothing of the content is left.
    is_all: bool,
}

impl StagedContent {
    /// Resources and key ranges.
    fn count(&self) -> usize {
        self.containers.len() + self.shards.len() + self.other_count
    }

    fn stage(&mut self, batch: &mut WriteBatch, resources: &[Resource]) {
        for resource in resources {
            records::stage_delete(batch, resource);
        }
        self.other_count += resources.len();
    }
}

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

    /// Removes a database and everything in it. The content of a large one is left for steps beside requests (`AccountCore::remove_content`):
    /// it is found through the database only, so it is gone for every request with the commit that removes the database.
    pub async fn delete_database(self, link: Link<'_>, conditions: &Conditions) -> Result<(), Error> {
        let core = self.core;
        let (database, is_complete) = core
            .attempt_catalog(|| async move {
                let view = core.catalog().await?;
                let database = find_database(&*view, link).await?.ok_or(Error::NotFound)?;
                conditions.check_write(database.record.etag, database.record.timestamp)?;
                let mut batch = records::batch();
                records::stage_delete(&mut batch, &database);
                let content =
                    core.stage_some_content(&*view, &mut batch, database.rid, CONTENT_AT_ONCE).await?;
                drop(view);
                if content.is_all {
                    core.engine().commit(batch).await?;
                    core.content_removed(&content);
                } else {
                    core.remove_without_content(&database).await?;
                }
                Ok((database, content.is_all))
            })
            .await?;
        if !is_complete && !core.engine().is_exclusive() {
            // Other processes have containers of it in their memory, and learn that they are gone when their shards are.
            while core.remove_content_for_request(database.rid).await? {}
        }
        tracing::info!(database = database.record.id, "database dropped");
        Ok(())
    }
}

impl AccountCore {
    /// Stages the removal of what is below a database, up to so many resources and key ranges.
    async fn stage_some_content(
        &self,
        view: &dyn View,
        batch: &mut WriteBatch,
        database: Rid,
        count_max: usize,
    ) -> Result<StagedContent, Error> {
        let mut staged = StagedContent::default();
        let containers = records::list(view, RecordKind::Container, database, 0, count_max).await?;
        for container in &containers.resources {
            if staged.count() >= count_max {
                return Ok(staged);
            }
            yield_if_due().await;
            self.stage_delete_container(view, batch, container).await?;
            staged.containers.push(container.rid);
            staged.shards.extend_from_slice(&batch.drops.shards[staged.shards.len()..]);
        }
        let users = records::list(view, RecordKind::User, database, 0, count_max).await?;
        let mut has_more = containers.more || users.more;
        for user in &users.resources {
            let left = count_max.saturating_sub(staged.count());
            if left == 0 {
                return Ok(staged);
            }
            yield_if_due().await;
            let permissions = records::list(view, RecordKind::Permission, user.rid, 0, left).await?;
            staged.stage(batch, &permissions.resources);
            if permissions.more {
                return Ok(staged);
            }
            staged.stage(batch, std::slice::from_ref(user));
        }
        let left = count_max.saturating_sub(staged.count());
        if left == 0 {
            return Ok(staged);
        }
        let keys = records::list(view, RecordKind::ClientEncryptionKey, database, 0, left).await?;
        staged.stage(batch, &keys.resources);
        has_more |= keys.more;
        self.stage_delete_offer(view, batch, database).await?;
        staged.is_all = !has_more;
        Ok(staged)
    }

    /// Commits that a database is gone, and leaves what is below it for later.
    async fn remove_without_content(&self, database: &Resource) -> Result<(), Error> {
        let mut batch = records::batch();
        records::stage_delete(&mut batch, database);
        records::stage_removed_database(&mut batch, database.rid);
        self.shared.containers.begin_removal(database.rid);
        let outcome = self.engine().commit(batch).await;
        // After another error it may have happened, so its containers are still not kept.
        if let Ok(_) | Err(kv::Error::Conflict { .. }) = &outcome {
            self.shared.containers.end_removal(database.rid, outcome.is_ok());
        }
        Ok(outcome.map(drop)?)
    }

    /// Removes something of what is left of a removed database: one step. Gives whether it was committed; not where another process has the
    /// lease, or something below the database changed meanwhile.
    pub(crate) async fn remove_content(&self, lease: &Lease, database: Rid) -> Result<bool, Error> {
        let view = self.catalog().await?;
        let mut batch = records::batch();
        let staged = self.stage_some_content(&*view, &mut batch, database, CONTENT_IN_STEP).await?;
        drop(view);
        if staged.is_all {
            records::stage_removal_done(&mut batch, database);
        }
        let is_done = self.commit_guarded(LeasedWork::Sweep, lease, batch).await?;
        if is_done {
            self.content_removed(&staged);
        }
        Ok(is_done)
    }

    /// The same for a request, without a lease: what two remove at once is removed by one of them. False when nothing is left.
    async fn remove_content_for_request(&self, database: Rid) -> Result<bool, Error> {
        self.attempt_catalog(|| async move {
            let view = self.catalog().await?;
            if !records::removed_databases(&*view).await?.has(database) {
                return Ok(false);
            }
            let mut batch = records::batch();
            let staged =
                self.stage_some_content(&*view, &mut batch, database, CONTENT_AT_ONCE_SHARED).await?;
            drop(view);
            if staged.is_all {
                records::stage_removal_done(&mut batch, database);
            }
            self.engine().commit(batch).await?;
            self.content_removed(&staged);
            Ok(!staged.is_all)
        })
        .await
    }

    /// Forgets what was known of content that is removed.
    fn content_removed(&self, staged: &StagedContent) {
        for container in &staged.containers {
            self.shared.containers.forget(*container);
            self.shared.throttle.forget(*container);
        }
        self.shared.containers.forget_shards(&staged.shards);
        self.shared.background.ranges_removed(staged.shards.len());
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
