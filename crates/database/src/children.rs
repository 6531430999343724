//! Resources that are a name and a definition below a parent: users, permissions, client encryption keys, scripts.
//!
//! They differ in what their definition may be (checked by `catalog::definition` before it comes here), in their
//! parent, and in what goes with them when they are removed.

use crate::attempts::Failure;
use crate::databases::{find, find_database};
use crate::scripts::script_count_max;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link};
use astrarium_catalog::records::{self, Listing, Resource};
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{self as kv, View, WriteBatch};

/// Which kind of child, and where.
#[derive(Debug, Clone, Copy)]
pub enum ChildKind<'a> {
    /// A user of a database.
    User(Link<'a>),
    /// A permission of a user of a database.
    Permission(Link<'a>, Link<'a>),
    /// A client encryption key of a database.
    ClientEncryptionKey(Link<'a>),
    /// A stored procedure of a container of a database.
    StoredProcedure(Link<'a>, Link<'a>),
    /// A trigger of a container of a database.
    Trigger(Link<'a>, Link<'a>),
    /// A user-defined function of a container of a database.
    UserDefinedFunction(Link<'a>, Link<'a>),
}

impl ChildKind<'_> {
    fn record_kind(self) -> RecordKind {
        match self {
            ChildKind::User(_) => RecordKind::User,
            ChildKind::Permission(..) => RecordKind::Permission,
            ChildKind::ClientEncryptionKey(_) => RecordKind::ClientEncryptionKey,
            ChildKind::StoredProcedure(..) => RecordKind::StoredProcedure,
            ChildKind::Trigger(..) => RecordKind::Trigger,
            ChildKind::UserDefinedFunction(..) => RecordKind::UserDefinedFunction,
        }
    }

    async fn parent(self, view: &dyn View) -> Result<Resource, Error> {
        let (database, below) = match self {
            ChildKind::User(database) | ChildKind::ClientEncryptionKey(database) => (database, None),
            ChildKind::Permission(database, user) => (database, Some((RecordKind::User, user))),
            ChildKind::StoredProcedure(database, container)
            | ChildKind::Trigger(database, container)
            | ChildKind::UserDefinedFunction(database, container) => {
                (database, Some((RecordKind::Container, container)))
            }
        };
        let database = find_database(view, database).await?.ok_or(Error::OwnerNotFound)?;
        match below {
            None => Ok(database),
            Some((kind, link)) => find(view, kind, database.rid, link).await?.ok_or(Error::OwnerNotFound),
        }
    }
}

impl CatalogHandle<'_> {
    /// Makes a child.
    pub async fn create_child(
        self,
        kind: ChildKind<'_>,
        id: &str,
        definition: &str,
    ) -> Result<Resource, Error> {
        self.core.attempt_catalog(|| self.core.create_child_once(kind, id, definition)).await
    }

    /// Finds a child.
    pub async fn child(self, kind: ChildKind<'_>, link: Link<'_>) -> Result<Resource, Error> {
        let view = self.core.catalog().await?;
        let parent = kind.parent(&*view).await?;
        find(&*view, kind.record_kind(), parent.rid, link).await?.ok_or(Error::NotFound)
    }

    /// Finds a permission by its rid alone, if it, its user and its database are there.
    pub async fn permission(self, rid: Rid) -> Result<Option<Resource>, Error> {
        let (Some(database), Some(user)) = (rid.database_part(), rid.container_part()) else {
            return Ok(None);
        };
        let view = self.core.catalog().await?;
        if find_database(&*view, Link::Rid(database)).await?.is_none()
            || find(&*view, RecordKind::User, database, Link::Rid(user)).await?.is_none()
        {
            return Ok(None);
        }
        find(&*view, RecordKind::Permission, user, Link::Rid(rid)).await
    }

    /// Lists children in order of creation, after a number; also gives the parent's rid.
    pub async fn list_children(
        self,
        kind: ChildKind<'_>,
        after: u64,
        count_max: usize,
    ) -> Result<(Rid, Listing), Error> {
        let view = self.core.catalog().await?;
        let parent = kind.parent(&*view).await?;
        let listing = records::list(&*view, kind.record_kind(), parent.rid, after, count_max).await?;
        Ok((parent.rid, listing))
    }

    /// Gives a child new content, and a new name if that changes.
    pub async fn replace_child(
        self,
        kind: ChildKind<'_>,
        link: Link<'_>,
        id: &str,
        definition: &str,
        conditions: &Conditions,
    ) -> Result<Resource, Error> {
        self.core
            .attempt_catalog(|| self.core.replace_child_once(kind, link, id, definition, conditions))
            .await
    }

    /// Makes a child, or gives the one of this name new content; tells whether it was made.
    pub async fn upsert_child(
        self,
        kind: ChildKind<'_>,
        id: &str,
        definition: &str,
        conditions: &Conditions,
    ) -> Result<(Resource, bool), Error> {
        self.core
            .attempt_catalog(|| async move {
                match self.core.replace_child_once(kind, Link::Name(id), id, definition, conditions).await {
                    Err(Failure::Refused(Error::NotFound)) => {}
                    replaced => return replaced.map(|resource| (resource, false)),
                }
                match self.core.create_child_once(kind, id, definition).await {
                    // Made by somebody else since.
                    Err(Failure::Refused(Error::Exists)) => Err(Failure::Lost),
                    created => Ok((created?, true)),
                }
            })
            .await
    }

    /// Removes a child; a user goes with its permissions.
    pub async fn delete_child(
        self,
        kind: ChildKind<'_>,
        link: Link<'_>,
        conditions: &Conditions,
    ) -> Result<(), Error> {
        self.core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let parent = kind.parent(&*view).await?;
                let old = find(&*view, kind.record_kind(), parent.rid, link).await?.ok_or(Error::NotFound)?;
                conditions.check_write(old.record.etag, old.record.timestamp)?;
                let mut batch: WriteBatch = records::batch();
                records::stage_delete(&mut batch, &old);
                if old.kind == RecordKind::User {
                    records::stage_delete_all(&*view, &mut batch, RecordKind::Permission, old.rid).await?;
                }
                self.core.engine().commit(batch).await?;
                Ok(())
            })
            .await
    }
}

impl AccountCore {
    async fn create_child_once(
        &self,
        kind: ChildKind<'_>,
        id: &str,
        definition: &str,
    ) -> Result<Resource, Failure> {
        let view = self.catalog().await?;
        let parent = kind.parent(&*view).await?;
        let resource = self.new_resource(kind.record_kind(), parent.rid, id, definition.to_owned()).await?;
        if is_script(resource.kind) {
            self.check_script_count(&*view, &resource).await?;
            self.check_script(&resource).await?;
        }
        let mut batch = records::batch();
        records::stage_create(&mut batch, &resource);
        records::expect_present(&mut batch, &parent);
        self.commit_create(batch).await?;
        Ok(resource)
    }

    async fn replace_child_once(
        &self,
        kind: ChildKind<'_>,
        link: Link<'_>,
        id: &str,
        definition: &str,
        conditions: &Conditions,
    ) -> Result<Resource, Failure> {
        let view = self.catalog().await?;
        let parent = kind.parent(&*view).await?;
        let old = find(&*view, kind.record_kind(), parent.rid, link).await?.ok_or(Error::NotFound)?;
        conditions.check_write(old.record.etag, old.record.timestamp)?;
        let record = self.new_record(id, definition.to_owned()).await?;
        if is_script(old.kind) {
            self.check_script(&Resource { record: record.clone(), ..old.clone() }).await?;
        }
        let mut batch = records::batch();
        records::stage_replace(&mut batch, &old, &record);
        match self.engine().commit(batch).await {
            Ok(version) => {
                let record = astrarium_keys::record::Record { version: version.0, ..record };
                Ok(Resource { record, ..old })
            }
            // The first expectation is the version that was read, the second the new name.
            Err(kv::Error::Conflict { expectation: 1.. }) => Err(Error::Exists.into()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_script(kind: RecordKind) -> bool {
    script_count_max(kind).is_some()
}
