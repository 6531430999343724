//! Point operations on documents: read, create, upsert, replace, delete, and delete of a logical partition.
//!
//! The checks come in the service's order: container, body, partition key, existence, condition. A write is staged on
//! a view and committed once; if somebody else was faster, everything is checked again on a new view.

use crate::attempts::Failure;
use crate::charge::{read_charge, terms_charge, write_charge};
use crate::{AccountCore, Conditions, DocumentsHandle, Error, Link};
use astrarium_catalog::container::{Container, Range};
use astrarium_keys::body::{Body, IndexDirective};
use astrarium_keys::rid::{ChildType, Rid};
use astrarium_kv::{self as kv, ShardId, ShardState, View};
use astrarium_partition::{PartitionKey, PartitionKeyDefinition};
use astrarium_store::{Expiry, FeedScope, Incoming, Location, Transaction};
use bytes::Bytes;
use std::sync::Arc;

/// Which document, by name within its logical partition or by rid.
pub type DocumentLink<'a> = Link<'a>;

/// What a write may find.
#[derive(Debug, Clone, Copy)]
pub enum WriteMode<'a> {
    /// The document must be new.
    Create,
    /// The document is made or replaced.
    Upsert,
    /// The document named must be there.
    Replace(DocumentLink<'a>),
}

/// How a write is to be done.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions<'a> {
    /// The partition key the client names; it must be the document's.
    pub partition_key: Option<&'a PartitionKey>,
    /// What must hold of the present version.
    pub conditions: &'a Conditions,
    /// What the client says about indexing the document.
    pub index_directive: IndexDirective,
}

/// What a range holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RangeUsage {
    /// Documents, those included that have expired but are not swept yet.
    pub documents: u64,
    /// Bytes of their texts.
    pub bytes: u64,
}

/// What an operation on a document did.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The container, as of the commit.
    pub container: Arc<Container>,
    /// The id of the range that served.
    pub range_id: u32,
    /// The range's LSN after the operation.
    pub lsn: u64,
    /// The document: as read, as written; for a delete what it was.
    pub body: Body,
    /// Whether the document is new.
    pub created: bool,
    /// Request units.
    pub charge: f64,
}

impl DocumentsHandle<'_> {
    /// Reads a document.
    pub async fn read(
        self,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
    ) -> Result<Outcome, Error> {
        let DocumentsHandle { core, container } = self;
        core.attempt(container, |trial| async move {
            let container = trial.container;
            let (body, range_id, lsn) = core.read_once(&container, link, partition_key).await?;
            let body = body.ok_or(Error::NotFound)?;
            let charge = read_charge(body.text().len());
            Ok(Outcome { container, range_id, lsn, body, created: false, charge })
        })
        .await
    }

    /// Creates, upserts or replaces a document.
    pub async fn write(
        self,
        mode: WriteMode<'_>,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Outcome, Error> {
        let DocumentsHandle { core, container } = self;
        core.attempt(container, |trial| async move {
            // Checked anew in each round, since the container may have changed; only a lost race pays twice.
            let incoming = Incoming::parse(&trial.container.definition, text).map_err(Error::from)?;
            let partition = checked_partition(&trial.container, &incoming, options.partition_key)?;
            let write = Write { container: &trial.container, mode, partition: &partition, options };
            if trial.lost == 0 && matches!(mode, WriteMode::Create) {
                core.create_unseen(&write, incoming).await
            } else {
                core.write_seen(&write, incoming).await
            }
        })
        .await
    }

    /// Removes a document and gives what it was.
    pub async fn delete(
        self,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
        conditions: &Conditions,
    ) -> Result<Outcome, Error> {
        let DocumentsHandle { core, container } = self;
        core.attempt(container, |trial| async move {
            core.delete_once(&trial.container, link, partition_key, conditions).await
        })
        .await
    }

    /// The id and LSN of the range that a partition key belongs to, or of the first range without one.
    pub async fn position(self, partition_key: Option<&PartitionKey>) -> Result<(u32, u64), Error> {
        let DocumentsHandle { core, container } = self;
        let definition = &container.definition.partition_key;
        let range = match partition_key.and_then(|key| checked_key(definition, key).ok()) {
            Some(key) => container.range_of(&definition.effective(&key)),
            None => &container.ranges[0],
        };
        Ok((range.id, core.range_lsn(range).await?))
    }
}

impl AccountCore {
    /// A document as it is now, with its range and the range's LSN. By its name it is one key, and storage is asked once.
    async fn read_once(
        &self,
        container: &Container,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
    ) -> Result<(Option<Body>, u32, u64), Failure> {
        let expiry = self.expiry(container);
        if let Link::Name(id) = link {
            let key = checked_key(&container.definition.partition_key, required(partition_key)?)?;
            let location = Location::of(container, &key, id);
            let range = location.range;
            let (body, lsn) = astrarium_store::read_now(self.engine(), location, expiry).await?;
            range.known_version.note(lsn);
            return Ok((body, range.id, lsn));
        }
        let (location, view) = self.locate(container, link, partition_key).await?;
        let body = astrarium_store::read(&*view, &location, expiry).await?;
        Ok((body, location.range.id, view.state().version))
    }

    /// Writes a new document without reading first: the commit tells whether there is one already.
    async fn create_unseen(&self, write: &Write<'_>, incoming: Incoming) -> Result<Outcome, Failure> {
        let location = Location::of(write.container, write.partition, &incoming.id);
        let view = self.view_to_write(location.range).await?;
        let mut transaction = self.begin(write.container, location.range, view).await?;
        let length = incoming.text_length();
        let written = transaction.write_unseen(location.key, incoming, write.options.index_directive);
        let body = written.await?.clone();
        let (lsn, terms) = self.commit(transaction).await?;
        location.range.known_version.note(lsn);
        Ok(Outcome {
            container: write.container.clone(),
            range_id: location.range.id,
            lsn,
            body: body.committed_at(lsn),
            created: true,
            charge: write_charge(length) + terms,
        })
    }

    async fn write_seen(&self, write: &Write<'_>, incoming: Incoming) -> Result<Outcome, Failure> {
        let location = Location::of(write.container, write.partition, &incoming.id);
        let view = self.view(location.range).await?;
        let replaced = match write.mode {
            WriteMode::Replace(link) => {
                Some(locate_in(&*view, write.container, link, write.partition).await?.key)
            }
            WriteMode::Create | WriteMode::Upsert => None,
        };
        let mut transaction = self.begin(write.container, location.range, view).await?;
        let target = Target { key: &location.key, replaced: replaced.as_ref() };
        let staged = stage_write(&mut transaction, target, write.mode, incoming, write.options).await?;
        let (lsn, terms) = self.commit(transaction).await?;
        location.range.known_version.note(lsn);
        Ok(Outcome {
            container: write.container.clone(),
            range_id: location.range.id,
            lsn,
            body: staged.body.committed_at(lsn),
            created: staged.created,
            charge: staged.charge + terms,
        })
    }

    async fn delete_once(
        &self,
        container: &Arc<Container>,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
        conditions: &Conditions,
    ) -> Result<Outcome, Failure> {
        let (location, view) = self.locate(container, link, partition_key).await?;
        let mut transaction = self.begin(container, location.range, view).await?;
        let body = transaction.remove(&location.key).await?.ok_or(Error::NotFound)?;
        conditions.check_write(body.header.etag, body.header.timestamp)?;
        let (lsn, terms) = self.commit(transaction).await?;
        location.range.known_version.note(lsn);
        let charge = write_charge(body.text().len()) + terms;
        let range_id = location.range.id;
        Ok(Outcome { container: container.clone(), range_id, lsn, body, created: false, charge })
    }

    /// What a range holds.
    pub(crate) async fn range_usage(&self, range: &Range) -> Result<RangeUsage, Error> {
        Ok(usage(self.range_state(range).await?))
    }

    /// The LSN of a range.
    pub(crate) async fn range_lsn(&self, range: &Range) -> Result<u64, Error> {
        Ok(self.range_state(range).await?.version)
    }

    /// The highest number that a document of a range has had.
    pub(crate) async fn range_high_water(&self, range: &Range) -> Result<u64, Error> {
        Ok(self.range_state(range).await?.high_water)
    }

    /// The counters of a range, which others may have replaced meanwhile.
    async fn range_state(&self, range: &Range) -> Result<ShardState, Error> {
        match self.engine().shard(range.shard).await {
            Err(kv::Error::Dropped { .. }) => Err(Error::KeyRangeGone),
            state => Ok(state?),
        }
    }

    pub(crate) fn expiry(&self, container: &Container) -> Expiry {
        Expiry { default_ttl: container.definition.default_ttl, now: self.env().now_seconds() }
    }

    pub(crate) async fn begin(
        &self,
        container: &Arc<Container>,
        range: &Range,
        view: Arc<dyn View>,
    ) -> Result<Transaction, astrarium_store::Error> {
        let (stamps, indexes) = (&self.shared.stamps, self.indexes(container));
        self.shared.reshardings.look(container, range, view.state());
        Transaction::begin(self.env(), stamps, container, range, indexes, view).await
    }

    /// Commits a transaction; gives the range's LSN then, and the price of the index terms that came and went.
    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<(u64, f64), Failure> {
        let (batch, terms) = transaction.into_counted_batch();
        let batch = batch.ok_or_else(|| Error::Bug("a write that changes nothing".to_owned()))?;
        Ok((self.engine().commit(batch).await?.0, terms_charge(terms.sum())))
    }

    /// Where a document named by a client is, and a view of its range.
    pub(crate) async fn locate<'a>(
        &self,
        container: &'a Container,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
    ) -> Result<(Location<'a>, Arc<dyn View>), Failure> {
        let definition = &container.definition.partition_key;
        match link {
            Link::Name(id) => {
                let key = checked_key(definition, required(partition_key)?)?;
                let location = Location::of(container, &key, id);
                let view = self.view(location.range).await?;
                Ok((location, view))
            }
            Link::Rid(rid) => {
                let key = partition_key.map(|key| checked_key(definition, key)).transpose()?;
                let ranges = match &key {
                    Some(key) => std::slice::from_ref(container.range_of(&definition.effective(key))),
                    None => &container.ranges[..],
                };
                for range in ranges {
                    let view = self.view(range).await?;
                    if let Some(location) = by_rid(&*view, container, range, rid, key.as_ref()).await? {
                        return Ok((location, view));
                    }
                }
                Err(Error::NotFound.into())
            }
        }
    }

    /// Loads a container anew after a fence: the same one under its names, or none.
    pub(crate) async fn reload(&self, container: &Container) -> Result<Arc<Container>, Error> {
        self.shared.containers.forget(container.rid());
        let database = container.rid().database_part().ok_or(Error::OwnerNotFound)?;
        let loaded = match self.container(Link::Rid(database), Link::Rid(container.rid())).await {
            Err(Error::NotFound) => Err(Error::OwnerNotFound),
            Ok(container) if container.is_closed() => {
                Box::pin(self.reopen_if_stuck(&container)).await?;
                Ok(container)
            }
            other => other,
        };
        if matches!(loaded, Ok(_) | Err(Error::OwnerNotFound)) {
            let is_kept = |shard| {
                loaded.as_ref().is_ok_and(|loaded| loaded.ranges.iter().any(|range| range.shard == shard))
            };
            let shards = container.ranges.iter().map(|range| range.shard);
            let gone: Vec<ShardId> = shards.filter(|shard| !is_kept(*shard)).collect();
            self.shared.containers.forget_shards(&gone);
        }
        loaded
    }
}

/// A write under way.
struct Write<'a> {
    container: &'a Arc<Container>,
    mode: WriteMode<'a>,
    partition: &'a PartitionKey,
    options: WriteOptions<'a>,
}

/// A write that is part of a transaction now.
pub(crate) struct Staged {
    /// The document as it will be.
    pub(crate) body: Body,
    /// Whether it is new.
    pub(crate) created: bool,
    /// Request units, without those of the index terms, which the commit tells.
    pub(crate) charge: f64,
}

/// Where a write goes.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The key of the document as it will be.
    pub(crate) key: &'a Bytes,
    /// The key of the document that a replace names, which may have another id.
    pub(crate) replaced: Option<&'a Bytes>,
}

impl<'a> From<&'a Bytes> for Target<'a> {
    fn from(key: &'a Bytes) -> Target<'a> {
        Target { key, replaced: None }
    }
}

/// Adds a write to a transaction, if the document that is there allows it.
pub(crate) async fn stage_write(
    transaction: &mut Transaction,
    target: Target<'_>,
    mode: WriteMode<'_>,
    incoming: Incoming,
    options: WriteOptions<'_>,
) -> Result<Staged, Failure> {
    let key = target.key;
    let renamed = target.replaced.filter(|replaced| *replaced != key);
    let old = transaction.read(renamed.unwrap_or(key)).await?;
    let old = old.map(|body| (body.header, body.text().len()));
    match (mode, old) {
        (WriteMode::Create, Some(_)) => return Err(Error::Exists.into()),
        (WriteMode::Replace(_), None) => return Err(Error::NotFound.into()),
        (_, Some((header, _))) => options.conditions.check_write(header.etag, header.timestamp)?,
        (_, None) => {}
    }
    if renamed.is_some() && transaction.read(key).await?.is_some() {
        return Err(Error::Exists.into());
    }
    let charge = write_charge(incoming.text_length()) + old.map_or(0.0, |(_, length)| write_charge(length));
    let directive = options.index_directive;
    let body = match renamed {
        Some(renamed) => transaction.rename(renamed, key, incoming, directive).await?.clone(),
        None => transaction.write(key, incoming, directive).await?.clone(),
    };
    if transaction.breaks_unique_key(key).await? {
        std::iter::once(key).chain(renamed).for_each(|key| transaction.undo_write(key));
        return Err(Error::UniqueKey.into());
    }
    Ok(Staged { body, created: old.is_none(), charge })
}

/// Where a document of a logical partition is, as a view of the partition's range has it.
pub(crate) async fn locate_in<'a>(
    view: &dyn View,
    container: &'a Container,
    link: DocumentLink<'_>,
    key: &PartitionKey,
) -> Result<Location<'a>, Error> {
    match link {
        Link::Name(id) => Ok(Location::of(container, key, id)),
        Link::Rid(rid) => {
            let range = container.range_of(&container.definition.partition_key.effective(key));
            by_rid(view, container, range, rid, Some(key)).await?.ok_or(Error::NotFound)
        }
    }
}

/// Where a document is that a range may have, by its rid; nothing for one of another logical partition.
async fn by_rid<'a>(
    view: &dyn View,
    container: &Container,
    range: &'a Range,
    rid: Rid,
    key: Option<&PartitionKey>,
) -> Result<Option<Location<'a>>, Error> {
    // Only the number is looked up, and other containers and other kinds of resources have the same ones.
    if rid != Rid::child(container.rid(), ChildType::Document, rid.number()) {
        return Ok(None);
    }
    // A document of another partition is not there, as far as this request is concerned.
    Ok(Location::by_number(view, container, range, rid.number(), key).await?)
}

/// What a range holds whose shard has these counters.
pub(crate) fn usage(state: ShardState) -> RangeUsage {
    RangeUsage::of(state.tallies)
}

/// Whether a range holds keys of a scope.
pub(crate) fn touches(container: &Container, range: &Range, scope: &FeedScope) -> bool {
    match scope {
        FeedScope::Partition(key) => range.keys.contains(&container.definition.partition_key.effective(key)),
        FeedScope::Slice(slice) => range.keys.overlaps(slice),
        FeedScope::Range(id) => range.id == *id,
        FeedScope::All => true,
    }
}

pub(crate) fn required(partition_key: Option<&PartitionKey>) -> Result<&PartitionKey, Error> {
    partition_key.ok_or_else(|| Error::invalid("PartitionKey value must be supplied for this operation."))
}

/// The partition key of a point operation in the container's terms: all levels, undefined ones included.
pub(crate) fn checked_key(
    definition: &PartitionKeyDefinition,
    key: &PartitionKey,
) -> Result<PartitionKey, Error> {
    let key = definition.canonical(key.clone());
    let whole = key.components().len() == definition.paths.len();
    let none = definition.system_key && key.components().is_empty();
    if !(whole || none) {
        return Err(Error::PartitionKeyMismatch);
    }
    key.check_size().map_err(|error| Error::invalid(error.to_string()))?;
    Ok(key)
}

/// The partition key of a write: the client's must be the document's.
fn checked_partition(
    container: &Container,
    incoming: &Incoming,
    given: Option<&PartitionKey>,
) -> Result<PartitionKey, Error> {
    let given = checked_key(&container.definition.partition_key, required(given)?)?;
    check_own_partition(container, incoming, &given)?;
    Ok(given)
}

/// Refuses a document of another partition than the one that a request is for.
pub(crate) fn check_own_partition(
    container: &Container,
    incoming: &Incoming,
    key: &PartitionKey,
) -> Result<(), Error> {
    if checked_key(&container.definition.partition_key, &incoming.partition)? == *key {
        return Ok(());
    }
    Err(Error::PartitionKeyDiffers { link: format!("{}/docs/{}", container.path(), incoming.id) })
}
