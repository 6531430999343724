//! Resource tokens: what a permission is turned into, and what its holder may do.
//!
//! A token names the permitted resource by rid (and a document by name below its container's rid), so it dies with
//! the resource. Every holder may read the account, the container it needs, and that container's key ranges: no SDK
//! works without.

use crate::database::definition::permission::{PermissionDefinition, PermissionMode};
use crate::database::partition::PartitionKey;
use crate::database::{Container, Link, Resource, Rid};
use crate::error::Failure;
use crate::request::Request;
use crate::service::Shared;
use crate::wire::address::{Address, ResourceKind};
use crate::wire::headers;
use crate::wire::resource_token::{self, ResourceToken};
use http::Method;

/// A token's life if the client does not say.
const EXPIRY_DEFAULT: u64 = 3_600;
const EXPIRY_MIN: u64 = 10;
const EXPIRY_MAX: u64 = 86_400;

/// The lifetime that a request asks for.
pub(crate) fn expiry_seconds(request: &Request<'_>) -> Result<u64, Failure> {
    let Some(text) = request.header(headers::EXPIRY_SECONDS) else {
        return Ok(EXPIRY_DEFAULT);
    };
    text.parse().ok().filter(|seconds| (EXPIRY_MIN..=EXPIRY_MAX).contains(seconds)).ok_or_else(|| {
        Failure::bad_request(format!(
            "{} must be a number of seconds from {EXPIRY_MIN} to {EXPIRY_MAX}.",
            headers::EXPIRY_SECONDS
        ))
    })
}

/// Makes the token of a permission.
pub(crate) async fn issue(
    shared: &Shared,
    permission: &Resource,
    definition: &PermissionDefinition,
    expiry_seconds: u64,
) -> Result<String, Failure> {
    let now = shared.account.env().now_seconds();
    let token = ResourceToken {
        permission_rid: permission.rid.to_string(),
        mode: match definition.mode.value {
            PermissionMode::Read => resource_token::PermissionMode::Read,
            PermissionMode::All => resource_token::PermissionMode::All,
        },
        resource: canonical_resource(shared, &definition.resource).await.unwrap_or_default(),
        partition_key: definition.resource_partition_key.as_ref().map(ToString::to_string),
        issued_at_seconds: now,
        expires_at_seconds: now + expiry_seconds,
    };
    token
        .issue(&shared.settings.keys.primary)
        .map_err(|error| Failure::new(error.status(), error.to_string()))
}

/// `rid of the database or container`, or `rid of the container/keyword/id`; nothing if there is no such resource.
async fn canonical_resource(shared: &Shared, link: &str) -> Option<String> {
    let path = format!("/{}", link.trim_matches('/'));
    let address = Address::parse(&path, None).ok()?;
    let by_rid = address.looks_like_rid();
    let link_at = |index: usize| -> Option<Link<'_>> {
        let id: &str = address.ids.get(index)?;
        if by_rid { Rid::parse(id).map(Link::Rid) } else { Some(Link::Name(id)) }
    };
    let database = shared.account.database(link_at(0)?).await.ok()?;
    match address.kind {
        ResourceKind::Database => Some(database.rid.to_string()),
        ResourceKind::Container => {
            Some(shared.account.container(link_at(0)?, link_at(1)?).await.ok()?.rid().to_string())
        }
        kind if address.ids.len() == 3 && kind.path().get(1) == Some(&"colls") => {
            let container = shared.account.container(link_at(0)?, link_at(1)?).await.ok()?;
            Some(format!("{}/{}/{}", container.rid(), kind.segment(), address.ids.get(2)?))
        }
        _ => None,
    }
}

/// Checks that a token covers a request.
pub(crate) async fn check(
    shared: &Shared,
    token: &ResourceToken,
    request: &Request<'_>,
) -> Result<(), Failure> {
    let address = &request.address;
    let read = matches!(*request.method, Method::GET | Method::HEAD) || request.is_query();
    if !read && token.mode == resource_token::PermissionMode::Read {
        return Err(Failure::forbidden(
            "The permission behind this resource token allows reading only. Ask for one with permissionMode All.",
        ));
    }
    if address.kind.path().get(1) != Some(&"colls") || address.ids.len() < 2 {
        let database = shared.account.database(request.link(0)).await;
        let covered = database.is_ok_and(|database| token.resource == database.rid.to_string());
        return if covered { Ok(()) } else { Err(not_covered()) };
    }
    let container =
        shared.account.container(request.link(0), request.link(1)).await.map_err(|_| not_covered())?;
    if !covers(token, request, &container, read) {
        return Err(not_covered());
    }
    check_partition_key(token, request)
}

fn covers(token: &ResourceToken, request: &Request<'_>, container: &Container, read: bool) -> bool {
    let address = &request.address;
    let rid = container.rid().to_string();
    let database = rid_text(container.rid().database_part());
    let (permitted, below) = token.resource.split_once('/').unwrap_or((&token.resource, ""));
    if permitted == database && below.is_empty() {
        return true;
    }
    if permitted != rid {
        return false;
    }
    let needed_by_sdks = read
        && matches!(address.kind, ResourceKind::Container | ResourceKind::PartitionKeyRange)
        && address.ids.len() == 2;
    if below.is_empty() || needed_by_sdks {
        return true;
    }
    let own = address.ids.get(2).map(|id| format!("{}/{id}", address.kind.segment()));
    own.as_deref() == Some(below)
}

fn rid_text(rid: Option<Rid>) -> String {
    rid.map(|rid| rid.to_string()).unwrap_or_default()
}

/// A token of one partition key works on items of that key only.
fn check_partition_key(token: &ResourceToken, request: &Request<'_>) -> Result<(), Failure> {
    let Some(permitted) = &token.partition_key else {
        return Ok(());
    };
    let within_a_partition = matches!(
        request.address.kind,
        ResourceKind::Document
            | ResourceKind::Attachment
            | ResourceKind::PartitionKeyDelete
            | ResourceKind::StoredProcedure
            | ResourceKind::Conflict
    );
    let reads = matches!(*request.method, Method::GET | Method::HEAD);
    if reads && request.address.kind != ResourceKind::Document {
        return Ok(());
    }
    if !within_a_partition {
        return Err(not_covered());
    }
    let permitted = PartitionKey::parse_header(permitted).map_err(|_| not_covered())?;
    if request.partition_key()?.is_some_and(|key| key == permitted) {
        return Ok(());
    }
    Err(Failure::forbidden(
        "The permission behind this resource token is for another partition key than the request's.",
    ))
}

fn not_covered() -> Failure {
    Failure::forbidden("The permission behind this resource token does not cover the requested resource.")
}
