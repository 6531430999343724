//! `astrarium store`: the tables of stores, the list of an account's stores, and what is in each of them.
//!
//! In: addresses. Out: facts, one a line, without passwords; an error that says what to do.
//! Tables and the list are asked of the stores themselves, servers may run or not; data is moved by a running server.

use crate::columns::{facts, table};
use crate::settings::{StoreAddress, StoreCommand, StoreSettings};
use crate::{admin, engines, transfers};
use anyhow::bail;
use astrarium_kv::Engine as _;
use astrarium_kv_postgres::{FORMAT, StoreStatus, StoreUrl, init_store, migrate_store, store_status};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(settings: &StoreSettings) -> anyhow::Result<ExitCode> {
    match &settings.command {
        StoreCommand::Init(address) => init(address),
        StoreCommand::Status(address) => status(address),
        StoreCommand::Migrate(address) => migrate(address),
        StoreCommand::Add { store, name, url } => add(store, name, url),
        StoreCommand::Import { data, store } => transfers::import(data, store),
        StoreCommand::Export { store, data } => transfers::export(store, data),
        StoreCommand::SetUrl { store, name, url } => set_url(store, name, url),
        StoreCommand::Remove { store, name } => remove(store, name),
        StoreCommand::Placement(server) => {
            print!("{}", placement(&admin::ask(server, "placement", None)?));
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Move { server, of, range, place } => {
            let mut body = admin::named(of);
            body["range"] = range.to_string().into();
            body["place"] = place.clone().into();
            let answer = admin::ask(server, "move", Some(&body))?;
            print!("{}{}", placed_ranges(&answer), admin::pending(&answer));
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Drain { server, place, stop } => {
            let body = json!({"place": place, "stop": stop});
            print!("{}", placement(&admin::ask(server, "drain", Some(&body))?));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn init(StoreAddress { url }: &StoreAddress) -> anyhow::Result<ExitCode> {
    let was_there = store_status(url)?.format.is_some();
    let account = init_store(url)?;
    let tables = if was_there { "there already, nothing was changed" } else { "made" };
    print!(
        "{}",
        facts(&[
            ("store", StoreUrl::parse(url)?.shown()),
            ("tables", tables.to_owned()),
            ("format", FORMAT.to_string()),
            ("account", account),
        ])
    );
    Ok(ExitCode::SUCCESS)
}

fn status(StoreAddress { url }: &StoreAddress) -> anyhow::Result<ExitCode> {
    let status = store_status(url)?;
    print!("{}", facts(&told(&StoreUrl::parse(url)?.shown(), &status)));
    let is_usable = status.format == Some(FORMAT);
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a store is, in words.
fn told(shown: &str, status: &StoreStatus) -> Vec<(&'static str, String)> {
    let mut told = vec![("store", shown.to_owned()), ("version", status.version.clone())];
    told.push(("format", format_words(status.format)));
    if let Some(account) = &status.account {
        told.push(("account", account.clone()));
        told.push(("shards", status.shards.to_string()));
        told.push(("bytes", status.bytes.to_string()));
    }
    told.extend(status.warnings.iter().map(|warning| ("warning", warning.clone())));
    told
}

/// A format, and what to do about it.
pub(crate) fn format_words(format: Option<u32>) -> String {
    match format {
        Some(FORMAT) => FORMAT.to_string(),
        Some(older) if older < FORMAT => {
            format!("{older}, and this program needs {FORMAT}: run `astrarium store migrate`")
        }
        Some(newer) => format!("{newer}, and this program understands {FORMAT} at most: use a newer program"),
        None => "none, there are no tables: run `astrarium store init`".to_owned(),
    }
}

fn migrate(StoreAddress { url }: &StoreAddress) -> anyhow::Result<ExitCode> {
    let before = migrate_store(url)?;
    let tables = if before == FORMAT { "up to date, nothing was changed" } else { "migrated" };
    print!(
        "{}",
        facts(&[
            ("store", StoreUrl::parse(url)?.shown()),
            ("tables", tables.to_owned()),
            ("before", before.to_string()),
            ("format", FORMAT.to_string()),
        ])
    );
    Ok(ExitCode::SUCCESS)
}

fn add(first: &str, name: &str, url: &str) -> anyhow::Result<ExitCode> {
    let engine = engines::postgres_for_command(first)?;
    if let Some(refusal) = engine.refusal_to_add(name, url)? {
        bail!("{refusal}");
    }
    let place = engine.add_store(name, url)?;
    let shown = StoreUrl::parse(url)?.shown();
    print!("{}", facts(&[("store", name.to_owned()), ("url", shown), ("place", place.0.to_string())]));
    engine.close()?;
    Ok(ExitCode::SUCCESS)
}

fn set_url(first: &str, name: &str, url: &str) -> anyhow::Result<ExitCode> {
    let engine = engines::postgres_for_command(first)?;
    if let Some(refusal) = engine.set_store_url(name, url)? {
        bail!("{refusal}");
    }
    let shown = StoreUrl::parse(url)?.shown();
    print!("{}", facts(&[("store", name.to_owned()), ("url", shown)]));
    engine.close()?;
    Ok(ExitCode::SUCCESS)
}

fn remove(first: &str, name: &str) -> anyhow::Result<ExitCode> {
    let engine = engines::postgres_for_command(first)?;
    if let Some(refusal) = engine.remove_store(name)? {
        bail!("{refusal}");
    }
    let told = "removed; its tables are of no use any more, and can be dropped".to_owned();
    print!("{}", facts(&[("store", name.to_owned()), ("state", told)]));
    engine.close()?;
    Ok(ExitCode::SUCCESS)
}

/// The stores, and the ranges that are shown with them.
fn placement(answer: &Value) -> String {
    let row = |place: &Value| {
        let is_draining = place["draining"] == Value::Bool(true);
        vec![
            place["name"].as_str().unwrap_or_default().to_owned(),
            place["id"].to_string(),
            place["shards"].to_string(),
            place["bytes"].to_string(),
            if is_draining { "draining" } else { "" }.to_owned(),
        ]
    };
    let rows: Vec<_> = answer["places"].as_array().into_iter().flatten().map(row).collect();
    let stores = table(&["store", "place", "shards", "bytes", "state"], &rows);
    format!("{stores}\n{}", placed_ranges(answer))
}

/// Ranges, and where they are.
fn placed_ranges(answer: &Value) -> String {
    let row = |range: &Value| {
        let text = |name: &str| range[name].as_str().unwrap_or_default();
        vec![
            format!("{}/{}", text("database"), text("container")),
            text("range").to_owned(),
            text("place").to_owned(),
            range["documents"].to_string(),
            range["bytes"].to_string(),
            range["copiedPercent"].as_f64().map_or(String::new(), |percent| format!("{percent} % copied")),
        ]
    };
    let rows: Vec<_> = answer["ranges"].as_array().into_iter().flatten().map(row).collect();
    table(&["container", "range", "store", "documents", "bytes", "move"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_ranges_stand_in_columns() {
        let place = json!({"id": 1, "name": "second", "draining": true, "shards": 3, "bytes": 4_096});
        let range = json!({"database": "d", "container": "c", "range": "7", "place": "second", "documents": 12,
            "bytes": 900, "copiedPercent": 30.0});
        let shown = placement(&json!({"places": [place], "ranges": [range]}));
        let expected = "store   place  shards  bytes  state\n\
                        second      1       3   4096  draining\n\n\
                        container  range  store   documents  bytes  move\n\
                        d/c            7  second         12    900  30 % copied\n";
        assert_eq!(shown, expected);
    }
}
