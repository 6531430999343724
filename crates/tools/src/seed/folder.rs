//! Reads and checks the folder of a seed.

use super::{SeedContainer, SeedDatabase};
use crate::definitions::{self, text};
use crate::documents;
use crate::error::ToolError;
use crate::formats;
use crate::input;
use astrarium_client::{ClientOptions, ContainerClient, CosmosClient};
use astrarium_rows::csv::CsvOptions;
use astrarium_value::json::{Kind, Text};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most bytes of all documents: a seed is for tests, and held in memory.
const DOCUMENT_BYTES_MAX: usize = 512 << 20;
/// Longest other file.
const FILE_BYTES_MAX: u64 = 4 << 20;

pub(super) fn read(folder: &Path) -> Result<Vec<SeedDatabase>, ToolError> {
    let mut room = DOCUMENT_BYTES_MAX;
    let mut databases = Vec::new();
    for (name, path) in entries(folder)? {
        if !path.is_dir() {
            return Err(wrong(&path, "is not a folder; those here are the databases"));
        }
        databases.push(read_database(&name, &path, &mut room)?);
    }
    if databases.is_empty() {
        return Err(wrong(folder, "has no folder, so it declares no database"));
    }
    Ok(databases)
}

fn read_database(id: &str, folder: &Path, room: &mut usize) -> Result<SeedDatabase, ToolError> {
    let mut database =
        SeedDatabase { id: id.to_owned(), throughput: json!({}), users: Vec::new(), containers: Vec::new() };
    let mut users = None;
    for (name, path) in entries(folder)? {
        match name.as_str() {
            "database.json" => {
                database.throughput = read_json(&path)?;
                only_members(&path, &database.throughput, &["throughput", "autoscale"])?;
                check_throughput(&path, &database.throughput)?;
            }
            "users.json" => users = Some((path.clone(), read_json(&path)?)),
            _ if path.is_dir() => database.containers.push(read_container(&name, &path, room)?),
            _ => {
                return Err(wrong(
                    &path,
                    "is unknown here; there may be database.json, users.json and folders of containers",
                ));
            }
        }
    }
    if let Some((path, users)) = users {
        let users = users.as_array().cloned().ok_or_else(|| wrong(&path, "must be an array of users"))?;
        check_users(&path, &users, &database)?;
        database.users = users;
    }
    Ok(database)
}

fn check_throughput(path: &Path, declared: &Value) -> Result<(), ToolError> {
    definitions::check_throughput(declared).map_err(|what| wrong(path, &what))
}

fn check_users(path: &Path, users: &[Value], database: &SeedDatabase) -> Result<(), ToolError> {
    let mut ids = BTreeSet::new();
    for user in users {
        only_members(path, user, &["id", "permissions"])?;
        let id = text(user, "id");
        if id.is_empty() {
            return Err(wrong(path, "has a user without an id"));
        }
        if !ids.insert(id) {
            return Err(wrong(path, &format!("has the user {id:?} twice")));
        }
        let (mut permission_ids, mut resources) = (BTreeSet::new(), BTreeSet::new());
        for permission in user.get("permissions").and_then(Value::as_array).into_iter().flatten() {
            let own = text(permission, "id");
            if own.is_empty() {
                return Err(wrong(path, &format!("has a permission of {id:?} without an id")));
            }
            if !permission_ids.insert(own) {
                return Err(wrong(path, &format!("has the permission {own:?} of {id:?} twice")));
            }
            // Accounts allow one permission of a user for a resource; with a key it is for that part of it.
            let part = permission.get("resourcePartitionKey").map(Value::to_string);
            if !resources.insert((text(permission, "resource").trim_matches('/'), part)) {
                return Err(wrong(path, &format!("has two permissions of {id:?} for one resource")));
            }
            let resource = text(permission, "resource").trim_matches('/');
            let start = format!("dbs/{}/colls/", database.id);
            let container =
                resource.strip_prefix(&start).map(|rest| rest.split('/').next().unwrap_or_default());
            let is_known =
                container.is_some_and(|name| database.containers.iter().any(|known| known.id == name));
            if !is_known {
                return Err(wrong(
                    path,
                    &format!(
                        "has a permission for {resource:?}, which is no container of this folder ({start}…)"
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn read_container(id: &str, folder: &Path, room: &mut usize) -> Result<SeedContainer, ToolError> {
    let mut declared = None;
    let mut container = SeedContainer {
        id: id.to_owned(),
        definition: Value::Null,
        throughput: json!({}),
        scripts: Vec::new(),
        documents: Vec::new(),
    };
    let mut item_files = Vec::new();
    for (name, path) in entries(folder)? {
        match name.as_str() {
            "container.json" => declared = Some((path.clone(), read_json(&path)?)),
            "items" => item_files = entries(&path)?,
            "sprocs" => read_scripts(&path, "sprocs", &mut container.scripts)?,
            "udfs" => read_scripts(&path, "udfs", &mut container.scripts)?,
            "triggers" => read_scripts(&path, "triggers", &mut container.scripts)?,
            _ => {
                return Err(wrong(
                    &path,
                    "is unknown here; there may be container.json, items, sprocs, triggers and udfs",
                ));
            }
        }
    }
    let Some((path, mut definition)) = declared else {
        return Err(wrong(folder, "has no container.json, such as {\"partitionKey\": \"/pk\"}"));
    };
    let Some(members) = definition.as_object_mut() else { return Err(wrong(&path, "must be an object")) };
    for name in ["throughput", "autoscale"] {
        if let Some(units) = members.remove(name) {
            container.throughput[name] = units;
        }
    }
    check_throughput(&path, &container.throughput)?;
    if members.get("id").is_some_and(|own| own != id) {
        return Err(wrong(&path, &format!("has another id than its folder, {id:?}")));
    }
    members.insert("id".to_owned(), json!(id));
    if let Some(Value::String(key)) = members.get("partitionKey") {
        let key = json!({"paths": [key], "kind": "Hash", "version": 2});
        members.insert("partitionKey".to_owned(), key);
    }
    if definition.pointer("/partitionKey/paths").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return Err(wrong(&path, "needs a partitionKey, such as \"/pk\""));
    }
    container.definition = definition;
    for (_, file) in item_files {
        read_items(&file, room, &mut container.documents)?;
    }
    check_twice(folder, &container)?;
    Ok(container)
}

fn read_items(path: &Path, room: &mut usize, documents: &mut Vec<Bytes>) -> Result<(), ToolError> {
    if !path.is_file() {
        return Err(wrong(path, "is not a file"));
    }
    let opened = input::open(path)?;
    let format = formats::choose(None, path, &opened)?;
    let options = CsvOptions::default();
    let shape = formats::shape(format, path, &options)?;
    let mut rows = formats::rows(format, opened, path, &options, shape)?;
    while let Some(row) = rows.next_row()? {
        let bad = |what: &str| wrong(path, &format!("row {}: {what}", row.number));
        let document = match &row.text {
            Ok(document) => document.clone(),
            Err(fault) => return Err(bad(&fault.reason)),
        };
        let parsed = Text::parse(&document).map_err(|error| bad(&format!("it is not JSON: {error}")))?;
        if parsed.root().kind() != Kind::Object {
            return Err(bad("it is not an object"));
        }
        if documents::id_of(&document).is_none_or(|id| id.is_empty()) {
            return Err(bad("it needs an id that is a string"));
        }
        *room = room.checked_sub(document.len()).ok_or_else(|| {
            wrong(path, "makes the seed larger than 512 MB; use astrarium import for so much")
        })?;
        documents.push(document.into());
    }
    Ok(())
}

/// Two documents of one id and key are a contradiction, even if they are equal: which file counts? Keys are compared as keys: 1 and 1.0 are one.
fn check_twice(folder: &Path, container: &SeedContainer) -> Result<(), ToolError> {
    // Nothing is sent: what documents have for a key depends on the definition alone.
    let nobody = CosmosClient::new(ClientOptions::default());
    let planned = nobody
        .and_then(|client| ContainerClient::planned(&client, "", &container.id, container.definition.clone()))
        .map_err(|error| wrong(folder, &format!("has a container.json that is not understood: {error}")))?;
    let mut seen = BTreeSet::new();
    for document in &container.documents {
        let id = documents::id_of(document).unwrap_or_default();
        let (_, key) = planned.key_of(document).map_err(|error| wrong(folder, &error.to_string()))?;
        if !seen.insert((id.clone(), key)) {
            return Err(wrong(
                folder,
                &format!("has two documents with the id {id:?} and the same partition key"),
            ));
        }
    }
    Ok(())
}

fn read_scripts(
    folder: &Path,
    kind: &'static str,
    scripts: &mut Vec<(&'static str, Value)>,
) -> Result<(), ToolError> {
    for (name, path) in entries(folder)? {
        let Some(stem) = name.strip_suffix(".js") else { return Err(wrong(&path, "must end in .js")) };
        let body = read_text(&path)?;
        let script = if kind == "triggers" {
            let mut parts = stem.rsplitn(3, '.');
            let (operation, when, id) = (parts.next(), parts.next(), parts.next());
            let (Some(operation), Some(when @ ("Pre" | "Post")), Some(id)) = (operation, when, id) else {
                return Err(wrong(
                    &path,
                    "must be called ID.Pre.Create.js: Pre or Post, and All, Create, Replace, Update, Delete or Upsert",
                ));
            };
            if !["All", "Create", "Replace", "Update", "Delete", "Upsert"].contains(&operation) {
                return Err(wrong(
                    &path,
                    "names no operation of triggers: All, Create, Replace, Update, Delete or Upsert",
                ));
            }
            json!({"id": id, "body": body, "triggerType": when, "triggerOperation": operation})
        } else {
            json!({"id": stem, "body": body})
        };
        if scripts.iter().any(|(own, known)| *own == kind && text(known, "id") == text(&script, "id")) {
            return Err(wrong(&path, "is declared twice"));
        }
        scripts.push((kind, script));
    }
    Ok(())
}

/// What a folder holds, by name; what is hidden does not count.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, ToolError> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(ToolError::file("read", folder))? {
        let path = entry.map_err(ToolError::file("read", folder))?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| wrong(&path, "has a name that is not UTF-8"))?;
        if !name.starts_with('.') {
            entries.push((name.to_owned(), path.clone()));
        }
    }
    entries.sort();
    Ok(entries)
}

fn read_text(path: &Path) -> Result<String, ToolError> {
    let found = std::fs::metadata(path).map_err(ToolError::file("look at", path))?;
    if !found.is_file() {
        return Err(wrong(path, "is no plain file"));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(wrong(path, "is longer than 4 MB"));
    }
    std::fs::read_to_string(path).map_err(ToolError::file("read", path))
}

fn read_json(path: &Path) -> Result<Value, ToolError> {
    serde_json::from_str(&read_text(path)?).map_err(|error| wrong(path, &format!("is not JSON: {error}")))
}

fn only_members(path: &Path, value: &Value, known: &[&str]) -> Result<(), ToolError> {
    let members = value.as_object().ok_or_else(|| wrong(path, "must be an object"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(wrong(path, &format!("has {name:?}, which is unknown; there may be {}", known.join(" and "))))
        }
        None => Ok(()),
    }
}

fn wrong(path: &Path, what: &str) -> ToolError {
    ToolError::input(format!("the seed is refused, and nothing was changed: {} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], fragment: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        match read(folder.path()) {
            Ok(databases) => assert_eq!(fragment, "", "{files:?} {databases:?}"),
            Err(error) => {
                assert!(!fragment.is_empty() && error.to_string().contains(fragment), "{files:?}: {error}");
            }
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let key = ("d/c/container.json", "{\"partitionKey\":\"/pk\"}");
        check(&[key], "");
        check(&[key, ("d/.hidden", "x"), ("d/c/triggers/t.Pre.Create.js", "function () {}")], "");
        check(&[], "declares no database");
        check(&[("file", "x")], "is not a folder");
        check(&[("d/c/items/a.json", "[]")], "has no container.json");
        check(&[("d/c/container.json", "{}")], "needs a partitionKey");
        check(&[("d/c/container.json", "{")], "is not JSON");
        check(&[("d/c/container.json", "{\"id\":\"x\",\"partitionKey\":\"/pk\"}")], "another id");
        check(&[key, ("d/c/other", "x")], "is unknown here");
        check(&[key, ("d/database.json", "{\"thruput\":1}")], "\"thruput\", which is unknown");
        check(
            &[
                key,
                ("d/c/items/a.jsonl", "{\"id\":\"1\",\"pk\":\"a\"}\n"),
                ("d/c/items/b.json", "[{\"id\":\"1\",\"pk\":\"a\"}]"),
            ],
            "two documents",
        );
        check(
            &[key, ("d/c/items/a.jsonl", "{\"id\":\"1\",\"pk\":\"a\"}\n{\"id\":\"1\",\"pk\":\"b\"}\n")],
            "",
        );
        check(&[key, ("d/c/items/a.jsonl", "{\"pk\":\"a\"}\n")], "row 1: it needs an id");
        check(&[key, ("d/c/items/a.csv", "id,pk\n1\n")], "row 1: the row has 1 cells");
        check(&[key, ("d/c/triggers/t.js", "x")], "ID.Pre.Create.js");
        check(&[key, ("d/c/triggers/t.Pre.Never.js", "x")], "no operation");
        check(&[key, ("d/c/sprocs/p.txt", "x")], "must end in .js");
        let users = "[{\"id\":\"u\",\"permissions\":[{\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d/colls/x\"}]}]";
        check(&[key, ("d/users.json", users)], "no container of this folder");
        for (throughput, fragment) in [
            ("{\"throughput\":400}", ""),
            ("{\"throughput\":0}", "must be a multiple of"),
            ("{\"throughput\":-400}", "must be a multiple of"),
            ("{\"throughput\":450}", "must be a multiple of 100 from 400"),
            ("{\"throughput\":400.5}", "must be a multiple of"),
            ("{\"autoscale\":\"4000\"}", "must be a multiple of"),
            ("{\"throughput\":400,\"autoscale\":4000}", "only one can be"),
        ] {
            check(&[key, ("d/database.json", throughput)], fragment);
            let container = throughput.replace('{', "{\"partitionKey\":\"/pk\",");
            check(&[("d/c/container.json", &container)], fragment);
        }
        check(&[key, ("d/users.json", "[{\"id\":\"u\"},{\"id\":\"u\"}]")], "the user \"u\" twice");
        let permission = |id: &str| {
            format!("{{\"id\":\"{id}\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d/colls/c\"}}")
        };
        let users = |one: &str, other: &str| {
            format!("[{{\"id\":\"u\",\"permissions\":[{},{}]}}]", permission(one), permission(other))
        };
        check(&[key, ("d/users.json", &users("p", "p"))], "the permission \"p\" of \"u\" twice");
        check(&[key, ("d/users.json", &users("p", "q"))], "two permissions of \"u\" for one resource");
        let keys = "{\"id\":\"1\",\"pk\":1}\n{\"id\":\"1\",\"pk\":1.0}\n";
        check(&[key, ("d/c/items/a.jsonl", keys)], "two documents");
        check(&[key, ("d/c/items/a.jsonl", "{\"id\":\"1\",\"pk\":null}\n{\"id\":\"1\"}\n")], "");
    }
}
