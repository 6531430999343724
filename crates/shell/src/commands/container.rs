//! Databases and containers as a whole: `mkdb`, `mkcontainer`, `.throughput`, `.info`.

use crate::failure::ShellFailure;
use crate::rows::{OutputMode, ShownRows};
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::RequestTarget;
use astrarium_wire::headers;
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) async fn make_database(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--throughput"], &[])?;
    let name = arguments.need("the database's name")?.text;
    arguments.end()?;
    let throughput = throughput_header(&arguments)?;
    shell.client.create_definition(&[], "dbs", &json!({"id": name}), throughput).await?;
    shell.forget();
    shell.remark("created");
    Ok(())
}

pub(super) async fn make_container(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--throughput"], &[])?;
    let word = arguments.need("the container's name")?;
    let throughput = throughput_header(&arguments)?;
    let mut paths = Vec::new();
    while let Some(path) = arguments.next() {
        if !path.text.starts_with('/') {
            return Err(ShellFailure::told(format!(
                "{:?} is no path of a partition key: it begins with /, as in mkcontainer books /author",
                path.text
            )));
        }
        paths.push(path.text);
    }
    if paths.is_empty() {
        return Err(ShellFailure::told(
            "a container needs the path of its partition key: mkcontainer books /author",
        ));
    }
    let place = match shell.place.depth() {
        // In a container, a bare name means one beside it.
        2 if !word.text.contains('/') => shell.place.parent().follow(&word)?,
        _ => shell.place.follow(&word)?,
    };
    let Some((database, name)) = place.container().filter(|_| place.depth() == 2) else {
        return Err(ShellFailure::told("say where: cd into a database, or mkcontainer /DATABASE/NAME /KEY"));
    };
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let body = json!({"id": name, "partitionKey": {"paths": paths, "kind": kind, "version": 2}});
    shell.client.create_definition(&["dbs", database], "colls", &body, throughput).await?;
    shell.forget();
    shell.remark("created");
    Ok(())
}

fn throughput_header(arguments: &CommandArguments) -> Result<Vec<(&'static str, String)>, ShellFailure> {
    let Some(word) = arguments.option("--throughput") else { return Ok(Vec::new()) };
    Ok(vec![(headers::OFFER_THROUGHPUT, request_units(&word.text)?.to_string())])
}

fn request_units(text: &str) -> Result<u64, ShellFailure> {
    text.parse()
        .ok()
        .filter(|units| *units > 0)
        .ok_or_else(|| ShellFailure::told(format!("{text:?} is no number of request units per second")))
}

pub(super) async fn throughput(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let wanted = match arguments.next() {
        None => None,
        Some(word) if word.text == "auto" => {
            Some((true, request_units(&arguments.need("the greatest throughput")?.text)?))
        }
        Some(word) => Some((false, request_units(&word.text)?)),
    };
    arguments.end()?;
    let mut offer = offer(shell).await?.ok_or_else(|| {
        ShellFailure::told(format!(
            "{} has no throughput of its own: it shares that of its database, or the account has none",
            shell.place
        ))
    })?;
    if let Some((is_auto, units)) = wanted {
        change_offer(shell, &mut offer, is_auto, units).await?;
    }
    let line = describe_offer(&offer);
    shell.output.line(&line)
}

/// The offer of the container or database that one is in.
async fn offer(shell: &Shell) -> Result<Option<Value>, ShellFailure> {
    let segments: Vec<&str> = match (shell.place.database(), shell.place.container()) {
        (_, Some((database, container))) => vec!["dbs", database, "colls", container],
        (Some(database), None) => vec!["dbs", database],
        _ => return Err(ShellFailure::told("throughput belongs to a database or container: cd into one")),
    };
    let definition = shell.client.read_definition(&segments).await?;
    let rid = definition.get("_rid").and_then(Value::as_str).unwrap_or_default();
    let offers = shell.client.offers().await?;
    Ok(offers.into_iter().find(|offer| offer.get("offerResourceId").and_then(Value::as_str) == Some(rid)))
}

async fn change_offer(
    shell: &Shell,
    offer: &mut Value,
    is_auto: bool,
    units: u64,
) -> Result<(), ShellFailure> {
    let rid = offer.get("_rid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let was_auto =
        offer.pointer("/content/offerAutopilotSettings").is_some_and(|settings| !settings.is_null());
    let mut headers_sent = Vec::new();
    if is_auto != was_auto {
        let name = if is_auto {
            headers::MIGRATE_OFFER_TO_AUTOPILOT
        } else {
            headers::MIGRATE_OFFER_TO_MANUAL_THROUGHPUT
        };
        headers_sent.push((name, "true".to_owned()));
    }
    let content = offer.get_mut("content").and_then(Value::as_object_mut);
    let content = content.ok_or_else(|| ShellFailure::told("the server's offer has no content"))?;
    if is_auto {
        content.remove("offerThroughput");
        content.insert("offerAutopilotSettings".to_owned(), json!({"maxThroughput": units}));
    } else {
        content.remove("offerAutopilotSettings");
        content.insert("offerThroughput".to_owned(), json!(units));
    }
    let answer =
        shell.client.request("PUT", RequestTarget::offer(&rid), headers_sent, offer.to_string()).await?;
    *offer = answer.json()?;
    Ok(())
}

fn describe_offer(offer: &Value) -> String {
    let number = |pointer: &str| offer.pointer(pointer).filter(|value| value.is_number());
    match (number("/content/offerAutopilotSettings/maxThroughput"), number("/content/offerThroughput")) {
        (Some(most), _) => format!("{most} RU/s at most, scaled automatically"),
        (None, Some(units)) => format!("{units} RU/s"),
        (None, None) => "the server does not tell".to_owned(),
    }
}

pub(super) async fn info(shell: &mut Shell) -> Result<(), ShellFailure> {
    let facts = match (shell.place.database().map(str::to_owned), shell.place.container().is_some()) {
        (None, _) => account_facts(shell).await?,
        (Some(database), false) => {
            let definition = shell.client.read_definition(&["dbs", &database]).await?;
            let containers = shell.client.containers(&database).await?;
            let mut facts = vec![
                ("database", database),
                ("rid", text_of(&definition, "_rid")),
                ("containers", containers.len().to_string()),
            ];
            facts.extend(throughput_fact(shell).await?);
            facts
        }
        (Some(_), true) => return container_info(shell).await,
    };
    show_facts(shell, facts)
}

async fn account_facts(shell: &Shell) -> Result<Vec<(&'static str, String)>, ShellFailure> {
    let account = shell.client.check().await?.json()?;
    let names = |key: &str| {
        let places = account.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        places.iter().map(|place| text_of(place, "name")).collect::<Vec<_>>().join(", ")
    };
    let level = account
        .pointer("/userConsistencyPolicy/defaultConsistencyLevel")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(vec![
        ("endpoint", shell.client.endpoint().to_string()),
        ("account", text_of(&account, "id")),
        ("consistency", level.to_owned()),
        ("writable in", names("writableLocations")),
        ("readable in", names("readableLocations")),
        ("databases", shell.client.databases().await?.len().to_string()),
    ])
}

async fn throughput_fact(shell: &Shell) -> Result<Option<(&'static str, String)>, ShellFailure> {
    Ok(offer(shell).await?.map(|offer| ("throughput", describe_offer(&offer))))
}

async fn container_info(shell: &mut Shell) -> Result<(), ShellFailure> {
    let container = shell.current_container().await?;
    let segments = ["dbs", container.database(), "colls", container.name()];
    let asked = vec![
        (headers::POPULATE_QUOTA_INFO, "True".to_owned()),
        (headers::POPULATE_PARTITION_STATISTICS, "True".to_owned()),
    ];
    let answer = shell.client.request("GET", RequestTarget::resource(&segments), asked, Bytes::new()).await?;
    let definition = answer.json()?;
    let paths = definition.pointer("/partitionKey/paths").map(Value::to_string).unwrap_or_default();
    let mut facts = vec![
        ("container", format!("{}/{}", container.database(), container.name())),
        ("rid", text_of(&definition, "_rid")),
        ("partition key", paths),
        (
            "indexing",
            definition
                .pointer("/indexingPolicy/indexingMode")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        ),
    ];
    if let Some(seconds) = definition.get("defaultTtl") {
        facts.push(("time to live", format!("{seconds} s")));
    }
    facts.extend(throughput_fact(shell).await?);
    let usage = answer.header(headers::RESOURCE_USAGE).unwrap_or_default();
    for (name, title, unit) in [
        ("documentsCount", "items", ""),
        ("documentsSize", "size of items", " KB"),
        ("collectionSize", "size", " KB"),
    ] {
        let value = usage.split(';').filter_map(|part| part.split_once('=')).find(|(own, _)| *own == name);
        facts.extend(value.map(|(_, value)| (title, format!("{value}{unit}"))));
    }
    show_facts(shell, facts)?;
    let statistics = definition.get("statistics").and_then(Value::as_array).cloned().unwrap_or_default();
    let ranges = container.ranges().await?;
    let rows = ranges.iter().map(|range| {
        let own = statistics.iter().find(|one| text_of(one, "id") == range.id);
        let number = |name: &str| own.and_then(|one| one.get(name)).cloned().unwrap_or(Value::Null);
        let row = json!({
            "partition": range.id, "from": range.min.to_string(), "to": range.max.to_string(),
            "items": number("documentCount"), "KB": number("sizeInKB"),
        });
        Bytes::from(row.to_string())
    });
    let mode = if shell.options.mode == OutputMode::Table { OutputMode::Table } else { OutputMode::Jsonl };
    let mut writer = ShownRows::new(mode, true);
    writer.add(rows.collect(), &mut shell.output)?;
    writer.end(&mut shell.output)
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Names and values: lines to read, or one JSON object where the output is for programs.
fn show_facts(shell: &mut Shell, facts: Vec<(&'static str, String)>) -> Result<(), ShellFailure> {
    if shell.options.mode != OutputMode::Table {
        let object: serde_json::Map<String, Value> =
            facts.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
        let line = shell.output.json_for_eyes(&Value::Object(object).to_string()).into_owned();
        return shell.output.line(&line);
    }
    for (name, value) in facts {
        let line = shell.output.for_eyes(&format!("{name:<14} {value}")).into_owned();
        shell.output.line(&line)?;
    }
    Ok(())
}
