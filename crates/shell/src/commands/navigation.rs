//! `ls`, `cd`, `pwd`.

use super::nearest;
use crate::failure::ShellFailure;
use crate::rows::ShownRows;
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::{ClientError, ContainerClient, QueryRequest};
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) fn pwd(shell: &mut Shell) -> Result<(), ShellFailure> {
    let place = shell.place.to_string();
    shell.output.line(&place)
}

pub(super) async fn cd(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let target = match arguments.next() {
        Some(word) => shell.place.follow(&word)?,
        None => shell.place.follow_path("/")?,
    };
    arguments.end()?;
    if target.depth() == 3 {
        return Err(ShellFailure::told(format!(
            "{target} would be an item; see it with cat, change it with .edit"
        )));
    }
    match (target.database().map(str::to_owned), target.container()) {
        (_, Some((database, container))) => {
            let (database, container) = (database.to_owned(), container.to_owned());
            shell.container(&database, &container).await?;
        }
        (Some(database), None) => {
            if let Err(error) = shell.client.read_definition(&["dbs", &database]).await {
                return Err(missing_database(shell, &database, error).await);
            }
        }
        (None, None) => {}
    }
    shell.place = target;
    Ok(())
}

pub(super) async fn ls(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &["-l"])?;
    let place = match arguments.next() {
        Some(word) => shell.place.follow(&word)?,
        None => shell.place.clone(),
    };
    arguments.end()?;
    let is_long = arguments.has("-l");
    if let Some((database, container)) = place.container() {
        if place.depth() == 3 {
            return Err(ShellFailure::told(format!("{place} would be an item; see it with cat")));
        }
        let (database, container) = (database.to_owned(), container.to_owned());
        let container = shell.container(&database, &container).await?;
        return list_items(shell, &container, is_long).await;
    }
    let (definitions, describe): (Vec<Value>, fn(&Value) -> Value) = match place.database() {
        None => (
            shell.client.databases().await?,
            |one| json!({"id": one["id"], "_rid": one["_rid"], "_ts": one["_ts"]}),
        ),
        Some(database) => {
            let database = database.to_owned();
            match shell.client.containers(&database).await {
                Ok(found) => (found, describe_container),
                Err(error) => return Err(missing_database(shell, &database, error).await),
            }
        }
    };
    shell.row_count = Some(definitions.len() as u64);
    if is_long {
        let mut writer = ShownRows::new(shell.options.mode, true);
        let rows = definitions.iter().map(|one| Bytes::from(describe(one).to_string())).collect();
        writer.add(rows, &mut shell.output)?;
        return writer.end(&mut shell.output);
    }
    for definition in definitions {
        let name = definition.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = shell.output.for_eyes(name).into_owned();
        shell.output.line(&name)?;
    }
    Ok(())
}

fn describe_container(one: &Value) -> Value {
    let paths = one.pointer("/partitionKey/paths").and_then(Value::as_array);
    let paths: Vec<&str> = paths.into_iter().flatten().filter_map(Value::as_str).collect();
    json!({
        "id": one["id"],
        "partitionKey": paths.join(" "),
        "ttl": one.get("defaultTtl").unwrap_or(&Value::Null),
        "indexing": one.pointer("/indexingPolicy/indexingMode").unwrap_or(&Value::Null),
    })
}

/// Ids, a page at a time, so that a container of any size can be listed.
async fn list_items(
    shell: &mut Shell,
    container: &ContainerClient,
    is_long: bool,
) -> Result<(), ShellFailure> {
    let text = if is_long {
        format!("SELECT c.id{}, c._ts FROM c", key_columns(container))
    } else {
        "SELECT c.id FROM c".to_owned()
    };
    let mut pages = container.query(QueryRequest::new(&text));
    let mut writer = ShownRows::new(shell.options.mode, true);
    let mut count = 0;
    while let Some(page) = pages.next_page().await? {
        count += page.items.len() as u64;
        shell.row_count = Some(count);
        if is_long {
            writer.add(page.items, &mut shell.output)?;
            continue;
        }
        for item in page.items {
            let text = astrarium_value::json::Text::parse(&item).ok();
            let id = text.as_ref().and_then(|text| text.root().get("id")?.as_str()).unwrap_or_default();
            let id = shell.output.for_eyes(&id).into_owned();
            shell.output.line(&id)?;
        }
    }
    if is_long { writer.end(&mut shell.output) } else { Ok(()) }
}

/// The partition key's paths as columns of SELECT, each by its last name.
fn key_columns(container: &ContainerClient) -> String {
    let paths = container.definition().pointer("/partitionKey/paths").and_then(Value::as_array);
    let mut columns = String::new();
    for path in paths.into_iter().flatten().filter_map(Value::as_str).filter(|path| *path != "/id") {
        let members: Vec<String> = path
            .split('/')
            .skip(1)
            .map(|name| format!("[{}]", crate::json_text::quoted(name.trim_matches('"'))))
            .collect();
        columns.push_str(", c");
        columns.push_str(&members.concat());
    }
    columns
}

/// Why a database cannot be used, with the name that was perhaps meant.
async fn missing_database(shell: &Shell, database: &str, error: ClientError) -> ShellFailure {
    if error.status() != 404 {
        return error.into();
    }
    let Ok(all) = shell.client.databases().await else { return error.into() };
    told_missing("database", database, &all)
}

/// Why a container cannot be used, with the name that was perhaps meant.
pub(crate) async fn missing_container(shell: &Shell, database: &str, container: &str) -> ShellFailure {
    match shell.client.containers(database).await {
        Ok(all) => told_missing("container", container, &all),
        Err(error) => missing_database(shell, database, error).await,
    }
}

fn told_missing(kind: &str, name: &str, all: &[Value]) -> ShellFailure {
    let names = all.iter().filter_map(|one| one.get("id")?.as_str());
    let hint = nearest(name, names).map(|near| format!(" Did you mean {near:?}?")).unwrap_or_default();
    ShellFailure::told(format!("there is no {kind} {name:?}.{hint} ls lists what there is."))
}
