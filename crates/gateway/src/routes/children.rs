//! Users, permissions, client encryption keys and scripts: a name and a definition below a parent.

use super::databases::{listed, resource_answer, shown, unless_not_modified};
use super::{query, scripts};
use crate::answer::Answer;
use crate::database::definition::client_encryption_key::ClientEncryptionKeyDefinition;
use crate::database::definition::permission::PermissionDefinition;
use crate::database::definition::script::{StoredProcedure, Trigger, UserDefinedFunction};
use crate::database::definition::user::UserDefinition;
use crate::database::{ChildKind, RecordKind, Resource};
use crate::error::ErrorAnswer;
use crate::operation::Action;
use crate::paging::{self, Feed};
use crate::request::Request;
use crate::service::GatewayState;
use crate::token;
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use http::StatusCode;
use serde_json::{Map, Value};

pub(super) async fn serve(shared: &GatewayState, request: &Request<'_>) -> Result<Answer, ErrorAnswer> {
    let kind = child_kind(request);
    // Before anything is written: a refused request changes nothing.
    token::expiry_seconds(request)?;
    let link = request.link(request.address.ids.len() - 1);
    match request.operation.action {
        Action::Query => {
            let (owner, all) = shared.account.catalog().list_children(kind, 0, usize::MAX).await?;
            let feed = Feed { owner, kind: request.address.kind };
            let mut rows = shown(&all.resources);
            for (child, row) in all.resources.iter().zip(&mut rows) {
                if let Some(row) = row.as_object_mut().filter(|_| shows_token(request, child)) {
                    add_token(shared, request, child, row).await?;
                }
            }
            query::resources(shared, request, feed, rows).await
        }
        Action::Create => create(shared, request, kind).await,
        Action::Upsert => upsert(shared, request, kind).await,
        Action::ReadFeed => list(shared, request, kind).await,
        Action::Replace => {
            let (id, definition) = definition(request)?;
            check_rename(shared, request, kind, &id).await?;
            let conditions = request.conditions();
            let child =
                shared.account.catalog().replace_child(kind, link, &id, &definition, &conditions).await?;
            single(shared, request, StatusCode::OK, &child).await
        }
        Action::Delete => {
            shared.account.catalog().delete_child(kind, link, &request.conditions()).await?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        Action::Execute => scripts::execute(shared, request).await,
        Action::Read => {
            let child = shared.account.catalog().child(kind, link).await?;
            let answer = single(shared, request, StatusCode::OK, &child).await?;
            Ok(unless_not_modified(request, &child, answer))
        }
        _ => Err(super::unserved()),
    }
}

fn child_kind<'a>(request: &'a Request<'_>) -> ChildKind<'a> {
    let (first, second) = (request.link(0), request.link(1));
    match request.address.kind {
        ResourceKind::Permission => ChildKind::Permission(first, second),
        ResourceKind::ClientEncryptionKey => ChildKind::ClientEncryptionKey(first),
        ResourceKind::StoredProcedure => ChildKind::StoredProcedure(first, second),
        ResourceKind::Trigger => ChildKind::Trigger(first, second),
        ResourceKind::UserDefinedFunction => ChildKind::UserDefinedFunction(first, second),
        _ => ChildKind::User(first),
    }
}

/// Users and permissions can be renamed by a replace, scripts and keys cannot.
async fn check_rename(
    shared: &GatewayState,
    request: &Request<'_>,
    kind: ChildKind<'_>,
    id: &str,
) -> Result<(), ErrorAnswer> {
    if matches!(request.address.kind, ResourceKind::User | ResourceKind::Permission) {
        return Ok(());
    }
    let link = request.link(request.address.ids.len() - 1);
    if shared.account.catalog().child(kind, link).await?.record.id == id {
        return Ok(());
    }
    Err(ErrorAnswer::bad_request(
        "Replacing cannot change the id: the id in the body must be the one of the resource.",
    ))
}

/// The checked definition in a body: its id, and the text to store.
fn definition(request: &Request<'_>) -> Result<(String, String), ErrorAnswer> {
    let body = request.json()?;
    let (id, json) = match request.address.kind {
        ResourceKind::Permission => {
            let checked = PermissionDefinition::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
        ResourceKind::ClientEncryptionKey => {
            let checked = ClientEncryptionKeyDefinition::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
        ResourceKind::StoredProcedure => {
            let checked = StoredProcedure::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
        ResourceKind::Trigger => {
            let checked = Trigger::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
        ResourceKind::UserDefinedFunction => {
            let checked = UserDefinedFunction::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
        _ => {
            let checked = UserDefinition::from_json(&body)?;
            (checked.id.clone(), checked.to_json())
        }
    };
    Ok((id, Value::Object(json).to_string()))
}

async fn create(
    shared: &GatewayState,
    request: &Request<'_>,
    kind: ChildKind<'_>,
) -> Result<Answer, ErrorAnswer> {
    let (id, definition) = definition(request)?;
    let child = shared.account.catalog().create_child(kind, &id, &definition).await?;
    single(shared, request, StatusCode::CREATED, &child).await
}

async fn upsert(
    shared: &GatewayState,
    request: &Request<'_>,
    kind: ChildKind<'_>,
) -> Result<Answer, ErrorAnswer> {
    let (id, definition) = definition(request)?;
    let conditions = request.conditions();
    let (child, created) = shared.account.catalog().upsert_child(kind, &id, &definition, &conditions).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    single(shared, request, status, &child).await
}

async fn single(
    shared: &GatewayState,
    request: &Request<'_>,
    status: StatusCode,
    child: &Resource,
) -> Result<Answer, ErrorAnswer> {
    let mut answer = resource_answer(status, child);
    if shows_token(request, child) {
        let mut json = crate::render::resource(child);
        add_token(shared, request, child, &mut json).await?;
        answer.body = Value::Object(json).to_string().into_bytes().into();
    }
    answer.set_text(headers::CONTENT_PATH, child.parent.to_string());
    Ok(answer)
}

async fn list(
    shared: &GatewayState,
    request: &Request<'_>,
    kind: ChildKind<'_>,
) -> Result<Answer, ErrorAnswer> {
    let count_max = request.page_limit()?.count_max;
    // The owner's rid is part of the token, so it is looked up before the token is read.
    let (owner, _) = shared.account.catalog().list_children(kind, u64::MAX - 1, 1).await?;
    let feed = Feed { owner, kind: request.address.kind };
    let after = paging::after(shared, request, feed)?;
    let (_, listing) = shared.account.catalog().list_children(kind, after, count_max).await?;
    let mut tokens = Map::new();
    for child in listing.resources.iter().filter(|child| shows_token(request, child)) {
        let mut json = Map::new();
        add_token(shared, request, child, &mut json).await?;
        tokens.insert(child.rid.to_string(), json.remove("_token").unwrap_or_default());
    }
    Ok(listed(shared, feed, &listing.resources, listing.more, |child, json| {
        if let Some(token) = tokens.remove(&child.rid.to_string()) {
            json.insert("_token".to_owned(), token);
        }
    }))
}

/// Only who may do everything gets tokens: who may read only could write with one.
fn shows_token(request: &Request<'_>, child: &Resource) -> bool {
    child.kind == RecordKind::Permission && request.sees_tokens
}

async fn add_token(
    shared: &GatewayState,
    request: &Request<'_>,
    permission: &Resource,
    json: &mut Map<String, Value>,
) -> Result<(), ErrorAnswer> {
    let damaged = || ErrorAnswer::new(500, "A stored permission cannot be decoded.");
    let stored = serde_json::from_str(&permission.record.definition).map_err(|_| damaged())?;
    let definition = PermissionDefinition::from_json(&stored).map_err(|_| damaged())?;
    let now = shared.account.env().now_seconds();
    let seconds = token::life_seconds(request, now)?;
    let token = token::issue(shared, permission, &definition, seconds, now).await?;
    json.insert("_token".to_owned(), token.into());
    Ok(())
}
