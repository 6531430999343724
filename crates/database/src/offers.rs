//! Offers: the throughput of databases and containers.
//!
//! An offer is stored under the rid of what it belongs to, so that its owner finds it, and has a rid of its own, by
//! which clients address it. It is made and removed in the same commit as its owner.

use crate::databases::find;
use crate::documents::usage;
use crate::resharding::ranges_for;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link};
use astrarium_catalog::definition::throughput::{Migration, Offer, Throughput};
use astrarium_catalog::records::{self, Listing, RemovedDatabases, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{self as kv, ShardId, View, WriteBatch};
use serde_json::Value;

/// A change of throughput that a client asks for.
#[derive(Debug, Clone)]
pub struct OfferChange {
    /// The whole offer as the client sends it back.
    pub body: Value,
    /// Whether it is to change between manual and autoscale.
    pub migration: Option<Migration>,
}

impl CatalogHandle<'_> {
    /// Lists all offers in order of creation, after a number.
    pub async fn list_offers(self, after: u64, count_max: usize) -> Result<Listing, Error> {
        let view = self.core.catalog().await?;
        let removed = records::removed_databases(&*view).await?;
        let mut after = after;
        loop {
            let mut listing = records::list(&*view, RecordKind::Offer, Rid::ROOT, after, count_max).await?;
            after = listing.resources.last().map_or(after, |last| last.rid.number());
            listing.resources.retain(|offer| !is_of(&removed, offer));
            // A page without offers would end the list for some clients.
            if !listing.resources.is_empty() || !listing.more {
                return Ok(listing);
            }
            yield_if_due().await;
        }
    }

    /// Finds an offer by its own rid.
    pub async fn offer(self, rid: Rid) -> Result<Resource, Error> {
        let view = self.core.catalog().await?;
        find_offer_by_rid(&*view, rid).await?.ok_or(Error::NotFound)
    }

    /// The least throughput that an offer can be set to.
    pub async fn minimum_throughput(self, offer: &Resource) -> Result<u32, Error> {
        let view = self.core.catalog().await?;
        let sharing = self.core.sharing_containers(&*view, offer).await?;
        let offer = self.core.measured_offer(&*view, offer, &sharing).await?;
        Ok(offer.minimum(sharing.len() as u32))
    }

    /// Changes throughput.
    pub async fn replace_offer(
        self,
        rid: Rid,
        change: &OfferChange,
        conditions: &Conditions,
    ) -> Result<Resource, Error> {
        let (offer, resharded) = self
            .core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let old = find_offer_by_rid(&*view, rid).await?.ok_or(Error::NotFound)?;
                conditions.check_write(old.record.etag, old.record.timestamp)?;
                let sharing = self.core.sharing_containers(&*view, &old).await?;
                let offer = self.core.measured_offer(&*view, &old, &sharing).await?;
                let offer = offer
                    .replaced(&change.body, change.migration, sharing.len() as u32)
                    .map_err(Error::from)?;
                let definition = Value::Object(offer.content()).to_string();
                let record = self.core.new_record(&old.record.id, definition).await?;
                let mut batch = records::batch();
                records::stage_replace(&mut batch, &old, &record);
                records::stage_offer_change(&mut batch);
                let mut resharded = None;
                if let Some(container) = container_of(&old) {
                    let count = ranges_for(offer.throughput.highest());
                    let is_raised = self.core.stage_range_count(&*view, &mut batch, container, count).await?;
                    resharded = is_raised.then_some(container);
                }
                self.core.engine().commit(batch).await?;
                self.core.offer_changed(&old, &offer);
                Ok((Resource { record, ..old }, resharded))
            })
            .await?;
        if let Some(container) = resharded {
            self.core.reshard_if_small(container).await?;
        }
        Ok(offer)
    }

    /// Whether the key ranges of an offer's container are still on the way to what the offer asks for.
    pub async fn is_replace_pending(self, offer: &Resource) -> Result<bool, Error> {
        let Some(container) = container_of(offer) else { return Ok(false) };
        let view = self.core.catalog().await?;
        Ok(records::resharding(&*view, container).await?.is_some())
    }
}

impl AccountCore {
    pub(crate) async fn new_offer(
        &self,
        owner: &Resource,
        throughput: Throughput,
    ) -> Result<Resource, Error> {
        let content = Value::Object(Offer::new(throughput).content()).to_string();
        self.new_resource(RecordKind::Offer, Rid::ROOT, &owner.rid.to_string(), content).await
    }

    pub(crate) async fn find_offer(&self, view: &dyn View, owner: Rid) -> Result<Option<Resource>, Error> {
        Ok(records::by_name(view, RecordKind::Offer, Rid::ROOT, &owner.to_string()).await?)
    }

    pub(crate) async fn stage_delete_offer(
        &self,
        view: &dyn View,
        batch: &mut WriteBatch,
        owner: Rid,
    ) -> Result<(), Error> {
        if let Some(offer) = self.find_offer(view, owner).await? {
            records::stage_delete(batch, &offer);
        }
        Ok(())
    }

    /// Has requests go by an offer as it is now.
    fn offer_changed(&self, resource: &Resource, offer: &Offer) {
        if let Some(owner) = Rid::parse(&resource.record.id) {
            self.shared.throttle.offer_changed(owner, offer);
        }
    }

    /// An offer with the most that its owner ever held, as far as that was noticed: what is held now, too.
    async fn measured_offer(
        &self,
        view: &dyn View,
        resource: &Resource,
        sharing: &[Rid],
    ) -> Result<Offer, Error> {
        let offer = stored_offer(resource)?;
        let own = Rid::parse(&resource.record.id).filter(|owner| owner.as_bytes().len() > 4);
        let mut bytes: u64 = 0;
        for container in own.iter().chain(sharing) {
            for range in records::ranges(view, *container).await? {
                yield_if_due().await;
                match self.engine().shard(ShardId(range.shard)).await {
                    Ok(state) => bytes += usage(state).bytes,
                    // Replaced a moment ago.
                    Err(kv::Error::Dropped { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let storage_kilobytes_ever = offer.storage_kilobytes_ever.max(bytes.div_ceil(1024));
        Ok(Offer { storage_kilobytes_ever, ..offer })
    }

    /// The containers that live from a database's offer; none from a container's.
    async fn sharing_containers(&self, view: &dyn View, offer: &Resource) -> Result<Vec<Rid>, Error> {
        let Some(owner) = Rid::parse(&offer.record.id).filter(|owner| owner.as_bytes().len() == 4) else {
            return Ok(Vec::new());
        };
        let mut sharing = Vec::new();
        for container in records::list_all(view, RecordKind::Container, owner).await? {
            yield_if_due().await;
            if self.find_offer(view, container.rid).await?.is_none() {
                sharing.push(container.rid);
            }
        }
        Ok(sharing)
    }
}

/// Finds an offer by its own rid, unless what it belongs to is gone with its database.
async fn find_offer_by_rid(view: &dyn View, rid: Rid) -> Result<Option<Resource>, Error> {
    let Some(offer) = find(view, RecordKind::Offer, Rid::ROOT, Link::Rid(rid)).await? else {
        return Ok(None);
    };
    let is_gone = is_of(&records::removed_databases(view).await?, &offer);
    Ok((!is_gone).then_some(offer))
}

/// Whether an offer belongs to a removed database or a container of one.
fn is_of(removed: &RemovedDatabases, offer: &Resource) -> bool {
    Rid::parse(&offer.record.id).is_some_and(|owner| removed.has(owner))
}

/// The container that an offer belongs to; nothing for a database's.
fn container_of(offer: &Resource) -> Option<Rid> {
    Rid::parse(&offer.record.id).filter(|owner| owner.as_bytes().len() == 8)
}

pub(crate) fn stored_offer(offer: &Resource) -> Result<Offer, Error> {
    let damaged = || Error::Damaged("offer cannot be decoded".to_owned());
    let content = serde_json::from_str(&offer.record.definition).map_err(|_| damaged())?;
    Offer::from_content(&content).map_err(|_| damaged())
}
