//! `/offers` and `/offers/{rid}`.

use super::databases::{listed, resource_answer, unless_not_modified};
use crate::answer::Answer;
use crate::database::definition::throughput::Migration;
use crate::database::{Error, Link, OfferChange, Resource, Rid};
use crate::error::Failure;
use crate::lookup::Lookup;
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
                let lookup = Lookup::parse(&request.json()?)?;
                list(shared, request, &lookup).await
            }
            Method::POST => Err(Failure::new(405, "Offers come and go with their databases and containers.")),
            _ => list(shared, request, &Lookup::everything()).await,
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

async fn list(shared: &Shared, request: &Request<'_>, lookup: &Lookup) -> Result<Answer, Failure> {
    let after = paging::after(shared, request, FEED)?;
    let count_max = request.page_limit()?.count_max;
    let mut listing = shared.account.list_offers(after, count_max).await?;
    // A lookup is answered whole: clients take an empty first page for "no such offer".
    while listing.more && !lookup.is_everything() {
        let last = listing.resources.last().map_or(0, |offer| offer.rid.number());
        let next = shared.account.list_offers(last, 1_000).await?;
        listing.more = next.more;
        listing.resources.extend(next.resources);
    }
    let mut answer = listed(shared, FEED, &listing.resources, listing.more, lookup, |_, _| Ok(()))?;
    answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
    Ok(answer)
}
