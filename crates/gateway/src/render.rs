//! The JSON of resources as the wire shows them: the user's content with the system properties.

use crate::database::{Body, RecordKind, Resource, Rid};
use crate::wire::address::ResourceKind;
use serde_json::{Map, Value};

/// The rid of a stored document.
pub(crate) fn document_rid(container: Rid, body: &Body) -> Rid {
    Rid::child(container, crate::database::ChildType::Document, body.header.number)
}

/// The feed envelope around documents that are already JSON.
pub(crate) fn feed(owner: Rid, kind: ResourceKind, items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + items.iter().map(|item| item.len() + 1).sum::<usize>());
    out.extend_from_slice(b"{\"_rid\":\"");
    owner.push_text(&mut out);
    out.extend_from_slice(b"\",\"");
    out.extend_from_slice(kind.feed_key().as_bytes());
    out.extend_from_slice(b"\":[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.extend_from_slice(b"],\"_count\":");
    out.extend_from_slice(itoa::Buffer::new().format(items.len()).as_bytes());
    out.push(b'}');
    out
}

/// The `_self` link of a resource: rids all the way, with a slash at the end.
pub(crate) fn self_link(kind: RecordKind, rid: Rid) -> String {
    let database = rid.database_part().unwrap_or(rid);
    let owner = rid.container_part().unwrap_or(rid);
    match kind {
        RecordKind::Database => format!("dbs/{rid}/"),
        RecordKind::Container => format!("dbs/{database}/colls/{rid}/"),
        RecordKind::User => format!("dbs/{database}/users/{rid}/"),
        RecordKind::ClientEncryptionKey => format!("dbs/{database}/clientencryptionkeys/{rid}/"),
        RecordKind::Permission => format!("dbs/{database}/users/{owner}/permissions/{rid}/"),
        RecordKind::StoredProcedure => format!("dbs/{database}/colls/{owner}/sprocs/{rid}/"),
        RecordKind::Trigger => format!("dbs/{database}/colls/{owner}/triggers/{rid}/"),
        RecordKind::UserDefinedFunction => format!("dbs/{database}/colls/{owner}/udfs/{rid}/"),
        RecordKind::Offer => format!("offers/{rid}/"),
    }
}

/// A catalog resource: its definition with the system properties and links of its kind.
pub(crate) fn resource(resource: &Resource) -> Map<String, Value> {
    let record = &resource.record;
    let mut json = match serde_json::from_str(&record.definition) {
        Ok(Value::Object(definition)) if resource.kind != RecordKind::Offer => definition,
        Ok(content) => offer(resource, content),
        Err(_) => Map::new(),
    };
    let id = if resource.kind == RecordKind::Offer { resource.rid.to_string() } else { record.id.clone() };
    // `id` stands first, as the service writes it.
    json.shift_remove("id");
    json.shift_insert(0, "id".to_owned(), id.into());
    json.insert("_rid".to_owned(), resource.rid.to_string().into());
    json.insert("_ts".to_owned(), record.timestamp.into());
    json.insert("_self".to_owned(), self_link(resource.kind, resource.rid).into());
    json.insert("_etag".to_owned(), crate::database::etag_text(record.etag, record.timestamp).into());
    for (name, link) in child_links(resource.kind) {
        json.insert((*name).to_owned(), (*link).into());
    }
    json
}

/// The names under which a resource shows the feeds below it.
fn child_links(kind: RecordKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        RecordKind::Database => &[("_colls", "colls/"), ("_users", "users/")],
        RecordKind::Container => &[
            ("_docs", "docs/"),
            ("_sprocs", "sprocs/"),
            ("_triggers", "triggers/"),
            ("_udfs", "udfs/"),
            ("_conflicts", "conflicts/"),
        ],
        RecordKind::User => &[("_permissions", "permissions/")],
        _ => &[],
    }
}

fn offer(resource: &Resource, content: Value) -> Map<String, Value> {
    let owner_rid = Rid::parse(&resource.record.id).unwrap_or(Rid::ROOT);
    let owner_kind = if owner_rid.is_container() { RecordKind::Container } else { RecordKind::Database };
    let mut json = Map::new();
    json.insert("resource".to_owned(), self_link(owner_kind, owner_rid).into());
    json.insert("offerType".to_owned(), "Invalid".into());
    json.insert("offerResourceId".to_owned(), resource.record.id.clone().into());
    json.insert("offerVersion".to_owned(), "V2".into());
    json.insert("content".to_owned(), content);
    json
}
