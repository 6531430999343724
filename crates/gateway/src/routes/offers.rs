//! `/offers` and `/offers/{rid}`.

use super::databases::{listed, resource_answer, shown, unless_not_modified};
use super::query;
use crate::answer::Answer;
use crate::database::definition::throughput::Migration;
use crate::database::{Error, Link, OfferChange, Resource, Rid};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::{self, Feed};
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;

const FEED: Feed = Feed { owner: Rid::ROOT, kind: ResourceKind::Offer };

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    match request.operation.action {
        Action::Query => {
            let all = shared.account.catalog().list_offers(0, usize::MAX).await?;
            let mut offers = shown(&all.resources);
            for (json, offer) in offers.iter_mut().zip(&all.resources) {
                if shared.account.catalog().is_replace_pending(offer).await? {
                    json["content"]["isOfferReplacePending"] = true.into();
                }
            }
            query::resources(shared, request, FEED, offers).await
        }
        Action::ReadFeed => list(shared, request).await,
        Action::Replace => {
            let to_autoscale = request.flag(headers::MIGRATE_OFFER_TO_AUTOPILOT);
            let to_manual = request.flag(headers::MIGRATE_OFFER_TO_MANUAL_THROUGHPUT);
            let migration = Migration::from_flags(to_autoscale, to_manual)?;
            let change = OfferChange { body: request.json()?, migration };
            let offer =
                shared.account.catalog().replace_offer(rid(request)?, &change, &request.conditions()).await?;
            single(shared, &offer).await
        }
        Action::Read => {
            let offer = shared.account.catalog().offer(rid(request)?).await?;
            Ok(unless_not_modified(request, &offer, single(shared, &offer).await?))
        }
        _ => Err(super::unserved()),
    }
}

/// Offers have no names.
fn rid(request: &Request<'_>) -> Result<Rid, ErrorAnswer> {
    match request.link(0) {
        Link::Rid(rid) => Ok(rid),
        Link::Name(_) => Err(Error::NotFound.into()),
    }
}

async fn single(shared: &GatewayState, offer: &Resource) -> Result<Answer, ErrorAnswer> {
    let mut answer = resource_answer(StatusCode::OK, offer);
    let minimum = shared.account.catalog().minimum_throughput(offer).await?;
    answer.set_number(headers::MIN_THROUGHPUT, u64::from(minimum));
    // Clients ask again until the container has the partitions that its throughput asks for.
    let is_pending = shared.account.catalog().is_replace_pending(offer).await?;
    answer.set_static(headers::OFFER_REPLACE_PENDING, if is_pending { "true" } else { "false" });
    Ok(answer)
}

async fn list(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let after = paging::after(shared, request, FEED)?;
    let listing = shared.account.catalog().list_offers(after, request.page_limit()?.count_max).await?;
    let mut answer = listed(shared, FEED, &listing.resources, listing.more, |_, _| {});
    answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
    Ok(answer)
}
