//! Offers: the throughput of databases and containers.
//!
//! An offer is stored under the rid of what it belongs to, so that its owner finds it, and has a rid of its own, by
//! which clients address it. It is made and removed in the same commit as its owner.

use crate::databases::find;
use crate::{AccountCore, CatalogHandle, Conditions, Error, Link};
use astrarium_catalog::definition::throughput::{Migration, Offer, Throughput};
use astrarium_catalog::records::{self, Listing, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{View, WriteBatch};
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
        Ok(records::list(&*view, RecordKind::Offer, Rid::ROOT, after, count_max).await?)
    }

    /// Finds an offer by its own rid.
    pub async fn offer(self, rid: Rid) -> Result<Resource, Error> {
        let view = self.core.catalog().await?;
        find(&*view, RecordKind::Offer, Rid::ROOT, Link::Rid(rid)).await?.ok_or(Error::NotFound)
    }

    /// The least throughput that an offer can be set to.
    pub async fn minimum_throughput(self, offer: &Resource) -> Result<u32, Error> {
        let view = self.core.catalog().await?;
        let sharing = self.core.sharing_containers(&*view, offer).await?;
        Ok(stored_offer(offer)?.minimum(sharing))
    }

    /// Changes throughput.
    pub async fn replace_offer(
        self,
        rid: Rid,
        change: &OfferChange,
        conditions: &Conditions,
    ) -> Result<Resource, Error> {
        self.core
            .attempt_catalog(|| async move {
                let view = self.core.catalog().await?;
                let old = find(&*view, RecordKind::Offer, Rid::ROOT, Link::Rid(rid))
                    .await?
                    .ok_or(Error::NotFound)?;
                conditions.check_write(old.record.etag, old.record.timestamp)?;
                let sharing = self.core.sharing_containers(&*view, &old).await?;
                let offer = stored_offer(&old)?
                    .replaced(&change.body, change.migration, sharing)
                    .map_err(Error::from)?;
                let definition = Value::Object(offer.content()).to_string();
                let record = self.core.new_record(&old.record.id, definition).await?;
                let mut batch = records::batch();
                records::stage_replace(&mut batch, &old, &record);
                self.core.engine().commit(batch).await?;
                Ok(Resource { record, ..old })
            })
            .await
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

    /// How many containers live from a database's offer; none from a container's.
    async fn sharing_containers(&self, view: &dyn View, offer: &Resource) -> Result<u32, Error> {
        let Some(owner) = Rid::parse(&offer.record.id).filter(|owner| owner.as_bytes().len() == 4) else {
            return Ok(0);
        };
        let mut sharing = 0;
        for container in records::list_all(view, RecordKind::Container, owner).await? {
            yield_if_due().await;
            sharing += u32::from(self.find_offer(view, container.rid).await?.is_none());
        }
        Ok(sharing)
    }
}

fn stored_offer(offer: &Resource) -> Result<Offer, Error> {
    let damaged = || Error::Damaged("offer cannot be decoded".to_owned());
    let content = serde_json::from_str(&offer.record.definition).map_err(|_| damaged())?;
    Offer::from_content(&content).map_err(|_| damaged())
}
