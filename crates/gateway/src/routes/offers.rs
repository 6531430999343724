//! `/offers` and `/offers/{rid}`.

use super::databases::{listed, resource_answer, shown, unless_not_modified};
use super::query;
use crate::answer::Answer;
use crate::database::definition::throughput::Migration;
use crate::database::{Error, Link, OfferChange, Resource, Rid};
use crate::error::Failure;
use crate::paging::{self, Feed};
use crate::request::Request;
use crate::service::Shared;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::{Method, StatusCode};

const FEED: Feed = Feed { owner: Rid::ROOT, kind: ResourceKind::Offer };

pub(super) async fn serve(shared: &Shared, request: &Request<'_>) -> Result<Answer, Failure> {
    if request.address.is_feed() {
        return match *request.method {
            Method::POST if request.is_query() => {
                let all = shared.account.list_offers(0, usize::MAX).await?;
                let mut answer = query::resources(shared, request, FEED, shown(&all.resources)).await?;
                answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
                Ok(answer)
            }
            Method::POST => Err(Failure::new(405, "Offers come and go with their databases and containers.")),
            _ => list(shared, request).await,
        };
    }
    let Link::Rid(rid) = request.link(0) else {
        return Err(Error::NotFound.into());
    };
    if *request.method == Method::PUT {
        let to_autoscale = request.flag(headers::MIGRATE_OFFER_TO_AUTOPILOT);
        let to_manual = request.flag(headers::MIGRATE_OFFER_TO_MANUAL_THROUGHPUT);
        let change =
            OfferChange { body: request.json()?, migration: Migration::from_flags(to_autoscale, to_manual)? };
        let offer = shared.account.replace_offer(rid, &change, &request.conditions()).await?;
        return single(shared, &offer).await;
    }
    let offer = shared.account.offer(rid).await?;
    Ok(unless_not_modified(request, &offer, single(shared, &offer).await?))
}

async fn single(shared: &Shared, offer: &Resource) -> Result<Answer, Failure> {
    let mut answer = resource_answer(StatusCode::OK, offer);
    let minimum = shared.account.minimum_throughput(offer).await?;
    answer.set_number(headers::MIN_THROUGHPUT, u64::from(minimum));
    answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
    Ok(answer)
}

async fn list(shared: &Shared, request: &Request<'_>) -> Result<Answer, Failure> {
    let after = paging::after(shared, request, FEED)?;
    let listing = shared.account.list_offers(after, request.page_limit()?.count_max).await?;
    let mut answer = listed(shared, FEED, &listing.resources, listing.more, |_, _| {});
    answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
    Ok(answer)
}
