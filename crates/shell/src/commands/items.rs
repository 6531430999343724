//! Single items: `cat`, `put`, `create`, `rm`; the last one also of containers and databases.

use crate::failure::ShellFailure;
use crate::json_text::{pretty, quoted, value_of_word};
use crate::place::ShellPlace;
use crate::prompt;
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::{ContainerClient, ItemWrite, QueryRequest, raw_json};
use bytes::Bytes;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// Longest file of an item; servers take two megabytes.
const FILE_BYTES_MAX: usize = 16 << 20;

/// An item that was found.
pub(super) struct FoundItem {
    pub(super) container: ContainerClient,
    pub(super) id: String,
    /// Its partition key, a JSON array.
    pub(super) key: String,
    /// Its text as the server has it.
    pub(super) text: Bytes,
}

impl FoundItem {
    pub(super) fn etag(&self) -> Option<String> {
        let text = astrarium_value::json::Text::parse(&self.text).ok()?;
        text.root().get("_etag")?.as_str().map(std::borrow::Cow::into_owned)
    }
}

pub(super) async fn cat(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--key"], &[])?;
    let word = arguments.need("the item's id")?;
    arguments.end()?;
    let place = shell.place.follow(&word)?;
    let item = find(shell, &place, arguments.option("--key")).await?;
    let text = String::from_utf8_lossy(&item.text).into_owned();
    let shown = if shell.options.mode == crate::rows::OutputMode::Jsonl && !shell.output.surroundings().shows
    {
        crate::json_text::compact(&text).into_owned()
    } else {
        pretty(&text, 0)
    };
    let shown = shell.output.json_for_eyes(&shown).into_owned();
    shell.output.line(&shown)
}

/// Finds an item by its id, and by its partition key where that is not known from it.
pub(super) async fn find(
    shell: &mut Shell,
    place: &ShellPlace,
    key: Option<&CommandWord>,
) -> Result<FoundItem, ShellFailure> {
    let Some((database, container, id)) = place.item() else {
        return Err(ShellFailure::told(format!(
            "{place} is no item: cd into a container, or give /DATABASE/CONTAINER/ID"
        )));
    };
    let id = id.to_owned();
    let (database, container) = (database.to_owned(), container.to_owned());
    let container = shell.container(&database, &container).await?;
    let known =
        key.map(key_text).or_else(|| key_from_id(&container, &id)).or_else(|| shell.options.key.clone());
    if let Some(key) = known {
        let answer = container.read(&id, &key).await.map_err(|error| match error.status() {
            404 => ShellFailure::told(format!("there is no item {id:?} with the partition key {key}")),
            _ => error.into(),
        })?;
        return Ok(FoundItem { container, id, key, text: answer.body });
    }
    let mut query = QueryRequest::new("SELECT * FROM c WHERE c.id = @id");
    query.parameters = vec![("@id".to_owned(), quoted(&id))];
    let mut pages = container.query(query);
    let mut found: Vec<Bytes> = Vec::new();
    while let Some(page) = pages.next_page().await? {
        found.extend(page.items);
        if found.len() > 10 {
            break;
        }
    }
    let keys = found
        .iter()
        .map(|item| container.key_of(item).map(|(_, text)| text))
        .collect::<Result<Vec<_>, _>>()?;
    match (found.pop(), keys.as_slice()) {
        (Some(text), [key]) => Ok(FoundItem { container, id, key: key.clone(), text }),
        (Some(_), keys) => Err(ShellFailure::told(format!(
            "several items have the id {id:?}; say which one with --key: {}",
            keys.join("  ")
        ))),
        (None, _) => Err(ShellFailure::told(format!("there is no item {id:?} in {}", place.parent()))),
    }
}

/// A partition key as typed: a value, or an array of values.
pub(super) fn key_text(word: &CommandWord) -> String {
    if word.is_quoted {
        return format!("[{}]", quoted(&word.text));
    }
    let value = value_of_word(&word.text);
    if value.starts_with('[') { value } else { format!("[{value}]") }
}

/// The partition key where it is the id itself.
fn key_from_id(container: &ContainerClient, id: &str) -> Option<String> {
    let paths = container.definition().pointer("/partitionKey/paths")?.as_array()?;
    matches!(paths.as_slice(), [Value::String(path)] if path == "/id").then(|| format!("[{}]", quoted(id)))
}

pub(super) async fn put(
    shell: &mut Shell,
    words: Vec<CommandWord>,
    may_exist: bool,
) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let word = arguments.need("the item as JSON, or @FILE,")?;
    arguments.end()?;
    let document = match word.text.strip_prefix('@').filter(|_| !word.is_quoted) {
        Some(file) => read_file(file)?,
        None => word.text,
    };
    let container = shell.current_container().await?;
    if !document.trim_start().starts_with('{') {
        return Err(ShellFailure::told("an item is a JSON object: put {\"id\": \"1\", …}"));
    }
    let (_, key) =
        container.key_of(document.as_bytes()).map_err(|error| ShellFailure::told(error.to_string()))?;
    let how = ItemWrite { minimal: true, ..ItemWrite::default() };
    let answer = if may_exist {
        container.upsert(&key, document, &how).await?
    } else {
        container.create(&key, document, &how).await?
    };
    shell.remark(if answer.status == 201 { "created" } else { "replaced" });
    Ok(())
}

fn read_file(file: &str) -> Result<String, ShellFailure> {
    let told = |what: String| ShellFailure::told(format!("read {file}: {what}"));
    let read =
        astrarium_env::read_file(Path::new(file), FILE_BYTES_MAX).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                told("it is longer than any item; many items are for astrarium import".to_owned())
            }
            _ => told(error.to_string()),
        })?;
    String::from_utf8(read).map_err(|_| told("it is not UTF-8 text".to_owned()))
}

pub(super) async fn rm(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--key"], &["-y"])?;
    let word = arguments.need("what to remove")?;
    arguments.end()?;
    let place = shell.place.follow(&word)?;
    let is_sure = arguments.has("-y");
    if place.item().is_some() {
        let item = find(shell, &place, arguments.option("--key")).await?;
        if shell.output.surroundings().is_interactive()
            && !is_sure
            && !prompt::confirm(&format!("Remove item {place}?"))?
        {
            return Err(ShellFailure::told("nothing was removed"));
        }
        let how = ItemWrite { if_match: item.etag(), ..ItemWrite::default() };
        item.container.delete(&item.id, &item.key, &how).await?;
        shell.remark("removed");
        return Ok(());
    }
    remove_definition(shell, &place, is_sure).await
}

async fn remove_definition(shell: &mut Shell, place: &ShellPlace, is_sure: bool) -> Result<(), ShellFailure> {
    let Some(database) = place.database().map(str::to_owned) else {
        return Err(ShellFailure::told("the account itself cannot be removed"));
    };
    let container = place.container().map(|(_, container)| container.to_owned());
    let name = container.as_ref().unwrap_or(&database);
    let kind = if container.is_some() { "container" } else { "database" };
    if !is_sure {
        if !shell.output.surroundings().is_interactive() {
            return Err(ShellFailure::told(format!(
                "to remove a whole {kind} without being asked, say rm -y {place}"
            )));
        }
        let question =
            format!("This removes the {kind} {place} and everything in it. Type its name to go on: ");
        if prompt::ask(&question)?.trim() != name {
            return Err(ShellFailure::told("nothing was removed"));
        }
    }
    let mut segments = vec!["dbs", database.as_str()];
    if let Some(container) = &container {
        segments.extend(["colls", container.as_str()]);
    }
    shell.client.delete_definition(&segments).await?;
    let is_inside = shell.place.to_string() == place.to_string()
        || shell.place.to_string().starts_with(&format!("{place}/"));
    if is_inside {
        shell.place = place.parent();
    }
    shell.forget();
    shell.remark("removed");
    Ok(())
}

/// The document without what the server adds, as a person edits it; other members keep their text.
pub(super) fn without_system(raw: &[u8]) -> String {
    let mut text = String::from("{");
    for (name, value) in raw_json::members(raw) {
        if [&b"\"_rid\""[..], b"\"_self\"", b"\"_etag\"", b"\"_attachments\"", b"\"_ts\""].contains(&name) {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&String::from_utf8_lossy(name));
        text.push(':');
        text.push_str(&String::from_utf8_lossy(value));
    }
    text.push('}');
    text
}
