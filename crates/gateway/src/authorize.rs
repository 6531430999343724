//! Whether the sender of a request may do its operation: account keys by what they may do, tokens by their permission.
//!
//! In: access, and a request with its operation. Out: nothing, or the refusal.
//! Invariants
//! - Only [`Operation::needs`](crate::operation::Operation::needs), the address and the partition keys of a request are
//!   asked; the body only for the keys of a batch's operations and the id of a replaced item, read as the route reads them.
//! - A token is good while its permission is there unchanged, with its user and their database.
//! - What a token is for is compared by rid, or by name below a container's rid; never the one with the other.
//! - A token for one partition key reaches no other, whatever else the request names.
//!
//! Not here: signatures (`authenticate`), making tokens (`token`).

use crate::authenticate::{self, SenderAccess};
use crate::database::partition::PartitionKey;
use crate::database::value::json::{Node, Text};
use crate::database::{Error, Link, Rid};
use crate::error::ErrorAnswer;
use crate::operation::{Action, Needs, Operation, OperationEffect, Partition, Reach};
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::{Address, ResourceKind};
use crate::wire::resource_token::{ResourceToken, TokenMode};
use crate::wire::{batch, binary_json};
use http::request::Parts;

/// Refuses a request that its sender may not make.
pub(crate) async fn check(
    shared: &GatewayState,
    access: &SenderAccess,
    parts: &Parts,
    request: &Request<'_>,
) -> Result<(), ErrorAnswer> {
    let needs = request.operation.needs();
    match access {
        SenderAccess::Full => Ok(()),
        SenderAccess::ReadOnly(_) if needs.effect == OperationEffect::Read => Ok(()),
        SenderAccess::ReadOnly(proof) => Err(authenticate::read_only(*proof, parts, &request.address)),
        SenderAccess::Token(token) => check_token(shared, token, needs, request).await,
    }
}

/// Refuses a token whose permission is not there any more as it was. Asked before anything else is told to its holder.
pub(crate) async fn check_alive(shared: &GatewayState, token: &ResourceToken) -> Result<(), ErrorAnswer> {
    let permission = match Rid::parse(&token.permission_rid) {
        Some(rid) => shared.account.catalog().permission(rid).await?,
        None => None,
    };
    if permission.is_none_or(|permission| permission.record.etag != token.permission_etag) {
        return Err(ErrorAnswer::forbidden(
            "The permission behind this resource token was changed or deleted. Read the permission again for a token that \
             is good.",
        ));
    }
    Ok(())
}

/// Whether an address begins with the rid of the database that a token is for something in.
pub(crate) fn is_database_of(token: &ResourceToken, address: &Address<'_>) -> bool {
    let own = Permitted::of(token).and_then(|permitted| permitted.rid.database_part());
    own.is_some() && own == address.ids.first().and_then(|id| Rid::parse(id))
}

/// What a token is for.
struct Permitted<'a> {
    /// Of a database, a container, or something below a container.
    rid: Rid,
    /// Keyword and name of something below the container, where it is known by name.
    below: Option<(&'a str, &'a str)>,
}

impl Permitted<'_> {
    fn of(token: &ResourceToken) -> Option<Permitted<'_>> {
        let (rid, below) = match token.resource.split_once('/') {
            None => (token.resource.as_str(), None),
            Some((rid, below)) => (rid, Some(below.split_once('/')?)),
        };
        Some(Permitted { rid: Rid::parse(rid)?, below })
    }

    fn is_container(&self) -> bool {
        self.below.is_none() && self.rid.is_container()
    }

    /// Whether it is the very resource that a request is about, or about something below.
    fn is_resource_of(&self, request: &Request<'_>) -> bool {
        let (Some(keyword), Some(id)) = (request.address.kind.path().get(2), request.address.ids.get(2))
        else {
            return false;
        };
        match self.below {
            Some((own_keyword, name)) => !request.by_rid && own_keyword == *keyword && name == id,
            None => request.by_rid && Rid::parse(id) == Some(self.rid),
        }
    }
}

async fn check_token(
    shared: &GatewayState,
    token: &ResourceToken,
    needs: Needs,
    request: &Request<'_>,
) -> Result<(), ErrorAnswer> {
    if needs.effect == OperationEffect::Write && token.mode == TokenMode::Read {
        return Err(ErrorAnswer::forbidden(
            "The permission behind this resource token allows reading only. Ask for one with permissionMode All.",
        ));
    }
    if !reaches(shared, token, needs.reach, request).await {
        return Err(not_covered());
    }
    if needs.reach == Reach::Resource && renames(token, request) {
        return Err(ErrorAnswer::forbidden(
            "The permission behind this resource token is for one item, and a replace that gives it another id makes \
             another one.",
        ));
    }
    check_partition(token, needs, request)
}

/// Whether a replace would give the one item that a token is for, by its name, a name that the token is not for.
fn renames(token: &ResourceToken, request: &Request<'_>) -> bool {
    let is_of_one = Permitted::of(token).is_some_and(|permitted| permitted.below.is_some());
    let replaces = request.operation.kind == ResourceKind::Document;
    if !(is_of_one && replaces && request.operation.action == Action::Replace) {
        return false;
    }
    let text = match request.body.first() {
        Some(&binary_json::FIRST_BYTE) => binary_json::to_text(&request.body).unwrap_or_default(),
        _ => request.body.to_vec(),
    };
    // A body that cannot be read is refused by the route, and does nothing.
    let Ok(text) = Text::parse(&text) else { return false };
    text.root().get("id").and_then(Node::as_str).as_deref() != request.address.ids.get(2).map(AsRef::as_ref)
}

/// Whether what a token is for includes what a request is about. Whatever is not there is not included.
async fn reaches(shared: &GatewayState, token: &ResourceToken, reach: Reach, request: &Request<'_>) -> bool {
    let Some(permitted) = Permitted::of(token) else { return reach == Reach::Anything };
    let database = permitted.rid.database_part();
    match reach {
        Reach::Anything => return true,
        Reach::AccountKey => return false,
        Reach::Database => {
            let found = shared.account.catalog().database(request.link(0)).await;
            let is_whole = permitted.below.is_none() && Some(permitted.rid) == database;
            return is_whole && found.is_ok_and(|found| found.rid == permitted.rid);
        }
        Reach::Container | Reach::Routing | Reach::Resource => {}
    }
    let catalog = shared.account.catalog();
    let Ok(container) = catalog.current_container(request.link(0), request.link(1)).await else {
        return false;
    };
    if permitted.below.is_none() && Some(permitted.rid) == database {
        return container.rid().database_part() == database;
    }
    if permitted.rid.container_part() != Some(container.rid()) {
        return false;
    }
    match reach {
        Reach::Routing => true,
        Reach::Resource => permitted.is_container() || permitted.is_resource_of(request),
        _ => permitted.is_container(),
    }
}

/// A token of one partition key works within that key only.
fn check_partition(token: &ResourceToken, needs: Needs, request: &Request<'_>) -> Result<(), ErrorAnswer> {
    let Some(permitted) = &token.partition_key else {
        return Ok(());
    };
    match needs.partition {
        Partition::Neutral => return Ok(()),
        Partition::Beyond => return Err(not_covered()),
        Partition::Within => {}
    }
    let permitted = PartitionKey::parse_header(permitted).map_err(|_| not_covered())?;
    let key = request.partition_key()?;
    let is_permitted = match request.operation.action {
        Action::Transaction | Action::Bulk => batch_is_within(request, key.as_ref(), &permitted),
        _ => key.as_ref() == Some(&permitted),
    };
    if is_permitted {
        return Ok(());
    }
    Err(ErrorAnswer::forbidden(
        "The permission behind this resource token is for another partition key than the request's.",
    ))
}

/// Whether the request and every operation of its batch name no other key. One that names none has the request's.
fn batch_is_within(request: &Request<'_>, key: Option<&PartitionKey>, permitted: &PartitionKey) -> bool {
    if key.is_some_and(|key| key != permitted) {
        return false;
    }
    // A body that cannot be read is refused by the route, and does nothing.
    let Ok(parsed) = batch::parse(&request.body) else { return true };
    parsed.operations.iter().all(|operation| match &operation.partition_key {
        Some(own) => PartitionKey::parse_header(own).is_ok_and(|own| own == *permitted),
        None => key.is_some(),
    })
}

fn not_covered() -> ErrorAnswer {
    ErrorAnswer::forbidden("The permission behind this resource token does not cover the requested resource.")
}

/// Refuses an address whose ids are rids, but not of one another's resources, or no rids at all.
pub(crate) fn check_rids(address: &Address<'_>) -> Result<(), ErrorAnswer> {
    let mut above = Rid::ROOT;
    for (index, id) in address.ids.iter().enumerate() {
        // Key ranges have ids and no names, and are asked for by them also below rids.
        if index == 2 && address.kind == ResourceKind::PartitionKeyRange {
            break;
        }
        let rid = Rid::parse(id).filter(|rid| {
            rid.as_bytes().len() > above.as_bytes().len() && rid.as_bytes().starts_with(above.as_bytes())
        });
        let is_owner = address.is_feed() || index + 1 < address.ids.len();
        above = rid.ok_or(if is_owner { Error::OwnerNotFound } else { Error::NotFound })?;
    }
    Ok(())
}

/// Refuses a change through the rid of a database that another one has as its name. SDKs that tell names from rids by
/// their form sign such a name as a rid, so either may be meant; the other one shall not suffer.
pub(crate) async fn refuse_ambiguous(
    shared: &GatewayState,
    operation: Operation,
    address: &Address<'_>,
) -> Result<(), ErrorAnswer> {
    let [id] = address.ids.as_slice() else { return Ok(()) };
    if address.kind == ResourceKind::Offer || operation.needs().effect == OperationEffect::Read {
        return Ok(());
    }
    match shared.account.catalog().database(Link::Name(id)).await {
        Err(Error::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(ErrorAnswer::bad_request(format!(
            "A database has the name {id}, which is also the form of a resource id. Sign the request with the link              dbs/{id} to mean the name, or use another name."
        ))),
    }
}
