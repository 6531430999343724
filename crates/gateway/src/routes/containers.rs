//! `/dbs/{id}/colls` and `/dbs/{id}/colls/{id}`.

use super::databases::{listed, resource_answer, shown, unless_not_modified};
use super::query;
use crate::answer::Answer;
use crate::database::definition::container::{ContainerDefinition, IndexingMode};
use crate::database::definition::throughput::Throughput;
use crate::database::{ChildKind, Container, DocumentsHandle, Error, Link, NewContainer};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::{self, Feed};
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let catalog = shared.account.catalog();
    let database = request.link(0);
    let link = request.link(1);
    match request.operation.action {
        Action::Query => {
            let (owner, all) = catalog.list_containers(database, 0, usize::MAX).await?;
            let feed = Feed { owner, kind: ResourceKind::Container };
            query::resources(shared, request, feed, shown(&all.resources)).await
        }
        Action::Create => {
            let definition = ContainerDefinition::from_create(&request.json()?)?;
            let new = NewContainer { definition, throughput: throughput(request)? };
            let container = catalog.create_container(database, &new).await?;
            let mut answer = single(shared, request, StatusCode::CREATED, &container).await?;
            answer.set_static(headers::OFFER_REPLACE_PENDING, "false");
            Ok(answer)
        }
        Action::ReadFeed => list(shared, request).await,
        Action::Delete => {
            catalog.delete_container(database, link, &request.conditions()).await?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        Action::Replace => {
            let definition = ContainerDefinition::from_replace(&request.json()?)?;
            let container =
                catalog.replace_container(database, link, &definition, &request.conditions()).await?;
            single(shared, request, StatusCode::OK, &container).await
        }
        Action::Read => {
            let container = catalog.current_container(database, link).await?;
            let answer = single(shared, request, StatusCode::OK, &container).await?;
            Ok(unless_not_modified(request, &container.resource, answer))
        }
        _ => Err(super::unserved()),
    }
}

async fn list(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let database = shared.account.catalog().database(request.link(0)).await.map_err(owner_missing)?;
    let feed = Feed { owner: database.rid, kind: ResourceKind::Container };
    let after = paging::after(shared, request, feed)?;
    let count_max = request.page_limit()?.count_max;
    let (_, listing) = shared.account.catalog().list_containers(request.link(0), after, count_max).await?;
    let mut answer = listed(shared, feed, &listing.resources, listing.more, |_, _| {});
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

async fn single(
    shared: &GatewayState,
    request: &Request<'_>,
    status: StatusCode,
    container: &Arc<Container>,
) -> Result<Answer, ErrorAnswer> {
    let mut answer = resource_answer(status, &container.resource);
    answer.set_text(headers::ALT_CONTENT_PATH, format!("dbs/{}", container.database_id));
    answer.set_text(headers::CONTENT_PATH, container.resource.parent.to_string());
    if request.flag(headers::POPULATE_QUOTA_INFO) {
        set_quota(shared, container, &mut answer).await?;
    }
    if request.flag(headers::POPULATE_PARTITION_STATISTICS) {
        let mut json = render::resource(&container.resource);
        json.insert("statistics".to_owned(), statistics(shared.account.documents(container)).await?);
        answer.body = Value::Object(json).to_string().into_bytes().into();
    }
    Ok(answer)
}

/// Kilobytes and counts as the service words them; -1 is no limit.
const QUOTA: &str = "functions=50;storedProcedures=100;triggers=25;documentSize=2048;documentsSize=10485760;\
                     documentsCount=-1;collectionSize=10485760;";

async fn set_quota(
    shared: &GatewayState,
    container: &Arc<Container>,
    answer: &mut Answer,
) -> Result<(), ErrorAnswer> {
    let documents = shared.account.documents(container);
    let (mut document_count, mut kilobytes) = (0, 0);
    for range in &container.ranges {
        let usage = match documents.range_usage(range).await {
            // Split a moment ago.
            Err(Error::KeyRangeGone) => continue,
            usage => usage?,
        };
        document_count += usage.documents;
        kilobytes += usage.bytes.div_ceil(1024);
    }
    let database = Link::Rid(container.resource.parent);
    let own = Link::Rid(container.rid());
    let mut scripts = [0; 3];
    let kinds = [
        ChildKind::UserDefinedFunction(database, own),
        ChildKind::StoredProcedure(database, own),
        ChildKind::Trigger(database, own),
    ];
    for (count, kind) in scripts.iter_mut().zip(kinds) {
        *count = shared.account.catalog().list_children(kind, 0, SCRIPT_COUNT_MAX).await?.1.resources.len();
    }
    let [functions, procedures, triggers] = scripts;
    answer.set_text(
        headers::RESOURCE_USAGE,
        format!(
            "functions={functions};storedProcedures={procedures};triggers={triggers};documentSize=0;\
             documentsSize={kilobytes};documentsCount={document_count};collectionSize={kilobytes};"
        ),
    );
    answer.set_static(headers::RESOURCE_QUOTA, QUOTA);
    let progress = documents.index_progress().await?;
    answer.set_number(headers::INDEX_TRANSFORMATION_PROGRESS, u64::from(progress));
    // Lazy indexes follow as the others do.
    if container.definition.indexing.mode == IndexingMode::Lazy {
        answer.set_static(headers::LAZY_INDEXING_PROGRESS, "100");
    }
    Ok(())
}

/// Scripts of one kind that are counted at most.
const SCRIPT_COUNT_MAX: usize = 1_000;

async fn statistics(documents: DocumentsHandle<'_>) -> Result<Value, ErrorAnswer> {
    let container = documents.container();
    let mut rows = Vec::new();
    for range in &container.ranges {
        let usage = match documents.range_usage(range).await {
            // Split a moment ago.
            Err(Error::KeyRangeGone) => continue,
            usage => usage?,
        };
        rows.push(json!({
            "id": range.id.to_string(),
            "sizeInKB": usage.bytes.div_ceil(1024),
            "documentCount": usage.documents,
            "sampledDistinctPartitionKeyCount": 0,
            "partitionKeys": [],
        }));
    }
    Ok(Value::Array(rows))
}

/// The throughput that the creation headers ask for.
pub(super) fn throughput(request: &Request<'_>) -> Result<Option<Throughput>, ErrorAnswer> {
    let manual = request.header(headers::OFFER_THROUGHPUT);
    let autoscale = request.header(headers::OFFER_AUTOPILOT_SETTINGS);
    Ok(Throughput::from_headers(manual, autoscale)?)
}
