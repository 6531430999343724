//! Resource tokens: what a permission is turned into.
//!
//! A token names the permitted resource by rid (and what a permission names below a container by that name below the
//! container's rid), so it dies with the resource; and the permission by rid and etag, so it dies with that too.
//! Not here: what its holder may do (`authorize`).

use crate::authorize;
use crate::database::definition::permission::{PermissionDefinition, PermissionMode};
use crate::database::{Link, Resource, Rid};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::{Address, ResourceKind};
use crate::wire::headers;
use crate::wire::resource_token::{self, ResourceToken};
use serde_json::Value;

/// A token's life if the client does not say.
const EXPIRY_DEFAULT: u64 = 3_600;
const EXPIRY_MIN: u64 = 10;
const EXPIRY_MAX: u64 = 86_400;

/// The lifetime that a request asks for.
pub(crate) fn expiry_seconds(request: &Request<'_>) -> Result<u64, ErrorAnswer> {
    let Some(text) = request.header(headers::EXPIRY_SECONDS) else {
        return Ok(EXPIRY_DEFAULT);
    };
    text.parse().ok().filter(|seconds| (EXPIRY_MIN..=EXPIRY_MAX).contains(seconds)).ok_or_else(|| {
        ErrorAnswer::bad_request(format!(
            "{} must be a number of seconds from {EXPIRY_MIN} to {EXPIRY_MAX}.",
            headers::EXPIRY_SECONDS
        ))
    })
}

/// How long a token may live that a request gets: not longer than the session that asked for it, if one did.
pub(crate) fn life_seconds(request: &Request<'_>, now: u64) -> Result<u64, ErrorAnswer> {
    Ok(within_session(expiry_seconds(request)?, request.session_ends_at_seconds, now))
}

fn within_session(seconds: u64, session_ends_at_seconds: Option<u64>, now: u64) -> u64 {
    session_ends_at_seconds.map_or(seconds, |end| seconds.min(end.saturating_sub(now)))
}

/// Makes the token of a permission.
pub(crate) async fn issue(
    shared: &GatewayState,
    permission: &Resource,
    definition: &PermissionDefinition,
    life_seconds: u64,
    now: u64,
) -> Result<String, ErrorAnswer> {
    let token = ResourceToken {
        permission_rid: permission.rid.to_string(),
        permission_etag: permission.record.etag,
        mode: match definition.mode.value {
            PermissionMode::Read => resource_token::TokenMode::Read,
            PermissionMode::All => resource_token::TokenMode::All,
        },
        resource: canonical_resource(shared, permission.rid, &definition.resource).await.unwrap_or_default(),
        partition_key: definition.resource_partition_key.as_ref().map(header_form),
        issued_at_seconds: now,
        expires_at_seconds: now + life_seconds,
    };
    token
        .issue(&shared.settings.keys.primary)
        .map_err(|error| ErrorAnswer::new(error.status(), error.to_string()))
}

/// The rid of what a link leads to, or `rid of the container/keyword/name`; nothing if there is no such resource.
///
/// Ids are rids where the link begins with the rid of the permission's own database, and names everywhere else: what
/// exists has no say, so that no resource can be named to be taken for another.
async fn canonical_resource(shared: &GatewayState, permission: Rid, link: &str) -> Option<String> {
    let path = format!("/{}", link.trim_matches('/'));
    let address = Address::parse(&path, None).ok()?;
    let own = permission.database_part();
    let by_rid = address.looks_like_rid() && Rid::parse(address.ids.first()?) == own;
    if by_rid {
        authorize::check_rids(&address).ok()?;
    }
    let link_at = |index: usize| -> Option<Link<'_>> {
        let id: &str = address.ids.get(index)?;
        if by_rid { Rid::parse(id).map(Link::Rid) } else { Some(Link::Name(id)) }
    };
    let database = shared.account.catalog().database(link_at(0)?).await.ok()?;
    match address.kind {
        ResourceKind::Database => Some(database.rid.to_string()),
        ResourceKind::Container => Some(
            shared
                .account
                .catalog()
                .current_container(link_at(0)?, link_at(1)?)
                .await
                .ok()?
                .rid()
                .to_string(),
        ),
        kind if address.ids.len() == 3 && kind.path().get(1) == Some(&"colls") => {
            let container =
                shared.account.catalog().current_container(link_at(0)?, link_at(1)?).await.ok()?;
            let id = address.ids.get(2)?;
            Some(if by_rid {
                Rid::parse(id)?.to_string()
            } else {
                format!("{}/{}/{id}", container.rid(), kind.segment())
            })
        }
        _ => None,
    }
}

/// A key as headers have it: one that was given as a single value is an array of it.
fn header_form(key: &Value) -> String {
    if key.is_array() { key.to_string() } else { Value::Array(vec![key.clone()]).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_with_the_session_that_asked_for_it() {
        assert_eq!(within_session(3_600, None, 1_000), 3_600);
        assert_eq!(within_session(3_600, Some(1_600), 1_000), 600);
        assert_eq!(within_session(3_600, Some(50_000), 1_000), 3_600);
        assert_eq!(within_session(10, Some(1_000), 1_000), 0);
        assert_eq!(within_session(10, Some(999), 1_000), 0);
    }
}
