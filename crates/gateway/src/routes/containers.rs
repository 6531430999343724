//! `/dbs/{id}/colls` and `/dbs/{id}/colls/{id}`.

use super::databases::{listed, resource_answer, unless_not_modified};
use crate::answer::Answer;
use crate::database::definition::container::ContainerDefinition;
use crate::database::definition::throughput::Throughput;
use crate::database::{Container, Error, NewContainer};
use crate::error::Failure;
use crate::lookup::Lookup;
use crate::paging::{self, Feed};
use crate::request::Request;
use crate::service::Shared;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::{Method, StatusCode};

pub(super) async fn serve(shared: &Shared, request: &Request<'_>) -> Result<Answer, Failure> {
    let account = &shared.account;
    let database = request.link(0);
    if request.address.is_feed() {
        return match *request.method {
            Method::POST if request.is_query() => {
                let lookup = Lookup::parse(&request.json()?)?;
                list(shared, request, &lookup).await
            }
            Method::POST => {
                let definition = ContainerDefinition::from_json(&request.json()?)?;
                let new = NewContainer {
                    definition,
                    throughput: throughput(request)?,
                };
                let container = account.create_container(database, &new).await?;
                let mut answer = single(StatusCode::CREATED, request, &container);
                answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
                Ok(answer)
            }
            _ => list(shared, request, &Lookup::everything()).await,
        };
    }
    let link = request.link(1);
    match *request.method {
        Method::DELETE => {
            account
                .delete_container(database, link, &request.conditions())
                .await?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        Method::PUT => {
            let definition = ContainerDefinition::from_json(&request.json()?)?;
            let container = account
                .replace_container(database, link, &definition, &request.conditions())
                .await?;
            Ok(single(StatusCode::OK, request, &container))
        }
        _ => {
            let container = account.container(database, link).await?;
            let answer = single(StatusCode::OK, request, &container);
            Ok(unless_not_modified(request, &container.resource, answer))
        }
    }
}

async fn list(shared: &Shared, request: &Request<'_>, lookup: &Lookup) -> Result<Answer, Failure> {
    let database = shared
        .account
        .database(request.link(0))
        .await
        .map_err(owner_missing)?;
    let feed = Feed {
        owner: database.rid,
        kind: ResourceKind::Container,
    };
    let after = paging::after(shared, request, feed)?;
    let count_max = request.page_limit()?.count_max;
    let (_, listing) = shared
        .account
        .list_containers(request.link(0), after, count_max)
        .await?;
    let mut answer = listed(shared, feed, &listing.resources, listing.more, lookup, |_, _| {
        Ok(())
    })?;
    answer.set_text(headers::ALT_CONTENT_PATH, format!("dbs/{}", database.record.id));
    answer.set_text(headers::CONTENT_PATH, database.rid.to_string());
    Ok(answer)
}

/// Whatever is asked of a child of something missing is answered as a missing owner.
pub(super) fn owner_missing(error: Error) -> Error {
    match error {
        Error::NotFound => Error::OwnerNotFound,
        other => other,
    }
}

fn single(status: StatusCode, request: &Request<'_>, container: &Container) -> Answer {
    let mut answer = resource_answer(status, &container.resource);
    answer.set_text(
        headers::ALT_CONTENT_PATH,
        format!("dbs/{}", container.database_id),
    );
    answer.set_text(headers::CONTENT_PATH, container.resource.parent.to_string());
    if request.flag(headers::POPULATE_QUOTA_INFO) {
        answer.set_static(headers::INDEX_TRANSFORMATION_PROGRESS, "100");
        answer.set_static(headers::LAZY_INDEXING_PROGRESS, "-1");
    }
    answer
}

/// The throughput that the creation headers ask for.
pub(super) fn throughput(request: &Request<'_>) -> Result<Option<Throughput>, Failure> {
    let manual = request.header(headers::OFFER_THROUGHPUT);
    let autoscale = request.header(headers::OFFER_AUTOPILOT_SETTINGS);
    Ok(Throughput::from_headers(manual, autoscale)?)
}
