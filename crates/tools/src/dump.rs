//! `astrarium dump`: an account, or some of it, in one archive.
//!
//! Every container is consistent as of one moment (`snapshot`); different containers have different moments. The archive's form is in `archive`,
//! and in docs/tools.md for those who read it without us.

use crate::ToolReport;
use crate::archive::{ArchiveWriter, DEFINITIONS};
use crate::connection::{AccountSettings, open_container};
use crate::definitions::{self, text};
use crate::error::ToolError;
use crate::output::room_beside;
use crate::progress::ProgressLine;
use crate::snapshot::ContainerSnapshot;
use astrarium_client::CosmosClient;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Bytes of one part of a container's documents.
const PART_BYTES: usize = 8 << 20;

/// What to dump, and where to.
#[derive(Debug, Clone, Args)]
pub struct DumpSettings {
    /// The account.
    #[command(flatten)]
    pub account: AccountSettings,

    /// The archive to write; .zst and .gz are compressed.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Only this database, or this container as DATABASE/CONTAINER; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,

    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
}

/// Does a dump.
pub async fn dump(settings: &DumpSettings) -> Result<ToolReport, ToolError> {
    check_name(&settings.file)?;
    let client = settings.account.connect(4).await?;
    let databases = chosen(&client, &settings.only).await?;
    let mut archive = ArchiveWriter::create(&settings.file, client.now_seconds())?;
    archive.add(DEFINITIONS, format!("{:#}\n", json!({"databases": databases})).as_bytes())?;
    let room = room_beside(&settings.file);
    let mut line = ProgressLine::new(settings.quiet);
    let (mut containers, mut total) = (Vec::new(), 0_u64);
    let mut by_range = Vec::new();
    let expected = if settings.quiet { None } else { expected_documents(&client, &databases).await };
    for database in &databases {
        for container in database["containers"].as_array().into_iter().flatten() {
            let (database, name) = (text(database, "id"), text(container, "id"));
            let opened = open_container(&client, database, name).await?;
            let snapshot = ContainerSnapshot::take(&opened, &room, |count| {
                let count = total + count as u64;
                line.show(count, expected.map(|expected| (count, expected)), &format!("{database}/{name}"));
            });
            let snapshot = snapshot.await?;
            if !snapshot.is_one_moment() {
                by_range.push(format!("{database}/{name}"));
            }
            let folder = format!("items/{:04}", containers.len() + 1);
            total += snapshot.count() as u64;
            containers.push(json!({
                "database": database, "container": name, "folder": folder, "documents": snapshot.count(), "moment": snapshot.moment(),
            }));
            write_parts(&mut archive, &folder, snapshot)?;
        }
    }
    let about = json!({
        "endpoint": client.endpoint().to_string(),
        "seconds": client.now_seconds(),
        "program": concat!("astrarium ", env!("CARGO_PKG_VERSION")),
        "containers": containers,
    });
    archive.finish(about)?;
    line.end();
    let bytes = std::fs::metadata(&settings.file).map_or(0, |file| file.len());
    let mut text = format!(
        "{total} documents of {} containers dumped to {}, {bytes} bytes, in {:.1} s",
        containers.len(),
        settings.file.display(),
        line.seconds()
    );
    if !by_range.is_empty() {
        let _ = write!(
            text,
            "\n{}: written to all the while, so each key range is as of one moment of its own, and not the container as a whole",
            by_range.join(", ")
        );
    }
    Ok(ToolReport { text, is_complete: true })
}

/// Refuses a name of a single file of documents: a dump is an archive.
fn check_name(path: &Path) -> Result<(), ToolError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !matches!(extension, "json" | "jsonl" | "ndjson" | "csv" | "tsv" | "parquet") {
        return Ok(());
    }
    Err(ToolError::input(format!(
        "{}: a dump is an archive, so it is called .tar.zst, .tar.gz or .tar; astrarium export writes .{extension}",
        path.display()
    )))
}

/// How many documents there are to be read, if the server tells for all containers.
pub(crate) async fn expected_documents(client: &CosmosClient, databases: &[Value]) -> Option<u64> {
    let mut total = 0;
    for database in databases {
        for container in database["containers"].as_array().into_iter().flatten() {
            let opened = client.container(text(database, "id"), text(container, "id")).await.ok()?;
            total += opened.document_count().await?;
        }
    }
    Some(total)
}

/// The definitions of everything that is meant.
pub(crate) async fn chosen(client: &CosmosClient, only: &[String]) -> Result<Vec<Value>, ToolError> {
    let all = client.databases().await.map_err(ToolError::account("list the databases"))?;
    let offers = match client.offers().await {
        Ok(offers) => offers,
        // Accounts without throughput, and some emulators, have none.
        Err(error) if matches!(error.status(), 400 | 404 | 405 | 501) => Vec::new(),
        Err(error) => return Err(ToolError::account("list the throughput")(error)),
    };
    let mut databases = Vec::new();
    for database in &all {
        let name = text(database, "id");
        let meant = only.iter().filter_map(|one| match one.split_once('/') {
            None => (one == name).then_some(None),
            Some((own, container)) => (own == name).then_some(Some(container)),
        });
        let meant: Vec<Option<&str>> = meant.collect();
        if !only.is_empty() && meant.is_empty() {
            continue;
        }
        let mut read = definitions::read_database(client, database, &offers).await?;
        if !meant.is_empty() && !meant.contains(&None) {
            let is_meant = |container: &Value| meant.contains(&Some(text(container, "id")));
            if let Some(containers) = read.get_mut("containers").and_then(Value::as_array_mut) {
                containers.retain(is_meant);
            }
        }
        databases.push(read);
    }
    for one in only {
        let (database, container) = one
            .split_once('/')
            .map_or((one.as_str(), None), |(database, container)| (database, Some(container)));
        let known = databases.iter().find(|known| text(known, "id") == database);
        let has = |known: &Value| {
            let mut containers = known["containers"].as_array().into_iter().flatten();
            container.is_none_or(|container| containers.any(|known| text(known, "id") == container))
        };
        if !known.is_some_and(has) {
            let kind = if container.is_some() { "container" } else { "database" };
            return Err(ToolError::input(format!("there is no {kind} {one} in this account (--only)")));
        }
    }
    definitions::settle_links(&mut databases);
    Ok(databases)
}

fn write_parts(
    archive: &mut ArchiveWriter,
    folder: &str,
    snapshot: ContainerSnapshot,
) -> Result<(), ToolError> {
    let mut part = Vec::with_capacity(PART_BYTES);
    let mut number = 0;
    let mut put = |part: &mut Vec<u8>| {
        number += 1;
        let added = archive.add(&format!("{folder}/{number:06}.jsonl"), part);
        part.clear();
        added
    };
    snapshot.for_each(|document| {
        if !part.is_empty() && part.len() + document.len() >= PART_BYTES {
            put(&mut part)?;
        }
        part.extend_from_slice(document);
        part.push(b'\n');
        Ok(())
    })?;
    if part.is_empty() { Ok(()) } else { put(&mut part) }
}
