//! Making an account's databases and containers elsewhere, and filling them: what `load` and `copy` share.

use crate::bulk_writer::{BulkWriter, DocumentEnd, ExistingMode};
use crate::check::PreparedDocument;
use crate::definitions::{self, make_if_missing, text, throughput_headers};
use crate::error::ToolError;
use crate::progress::ProgressLine;
use astrarium_client::{ContainerClient, CosmosClient};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Reasons of failures that are told.
const REASONS_MAX: usize = 5;

/// What has been written.
#[derive(Debug, Default)]
pub(crate) struct RestoredCounts {
    pub(crate) written: u64,
    pub(crate) failed: u64,
    pub(crate) reasons: Vec<String>,
    /// How many of the failures were told of.
    pub(crate) failed_told: u64,
    /// How many documents there will be, if that is known.
    pub(crate) total: Option<u64>,
}

/// The containers of a definition of a database.
pub(crate) fn containers(database: &Value) -> impl Iterator<Item = &Value> {
    database.get("containers").and_then(Value::as_array).into_iter().flatten()
}

/// Refuses if a container exists already, or with `merges` if it has another partition key. Nothing is changed.
pub(crate) async fn check_target(
    client: &CosmosClient,
    databases: &[Value],
    merges: bool,
) -> Result<(), ToolError> {
    for database in databases {
        let name = text(database, "id");
        let existing = match client.containers(name).await {
            Ok(existing) => existing,
            Err(error) if error.status() == 404 => continue,
            Err(error) => return Err(ToolError::account(format!("list the containers of {name}"))(error)),
        };
        for container in containers(database) {
            let id = text(container, "id");
            let Some(known) = existing.iter().find(|known| text(known, "id") == id) else { continue };
            if !merges {
                return Err(ToolError::input(format!(
                    "{name}/{id} exists, so nothing was changed. Remove it, or say --merge: then its documents are replaced by those of the same id"
                )));
            }
            let paths = |definition: &Value| definition.pointer("/partitionKey/paths").cloned();
            if paths(known) != container.get("definition").and_then(paths) {
                return Err(ToolError::input(format!(
                    "{name}/{id} exists with another partition key, so nothing was changed"
                )));
            }
        }
    }
    Ok(())
}

/// Makes databases and containers that are missing.
pub(crate) async fn make_containers(client: &CosmosClient, databases: &[Value]) -> Result<(), ToolError> {
    let empty = json!({});
    for database in databases {
        let name = text(database, "id");
        let throughput = database.get("throughput").unwrap_or(&empty);
        make_if_missing(client, &[], "dbs", &json!({"id": name}), throughput_headers(throughput)).await?;
        for container in containers(database) {
            let definition = definitions::plain(container.get("definition").unwrap_or(&Value::Null));
            let throughput = container.get("throughput").unwrap_or(&empty);
            make_if_missing(client, &["dbs", name], "colls", &definition, throughput_headers(throughput))
                .await?;
        }
    }
    Ok(())
}

/// Writes documents that come through a queue into a container.
pub(crate) async fn pour(
    container: &ContainerClient,
    mode: ExistingMode,
    workers: usize,
    mut queue: mpsc::Receiver<Vec<Bytes>>,
    counts: &mut RestoredCounts,
    line: &mut ProgressLine,
) -> Result<(), ToolError> {
    let mut writer = BulkWriter::new(container, mode, workers, None, u64::MAX).await?;
    let mut number = 0;
    while let Some(documents) = queue.recv().await {
        for body in documents {
            number += 1;
            let keyed = container.key_of(&body).map_err(ToolError::account("read a document"));
            let (key, header) = keyed?;
            let effective = container.key_definition().effective(&key);
            writer.push(PreparedDocument { number, body, key: header, effective }).await?;
        }
        count(&mut writer, counts)?;
        let total = counts.total.map(|total| (counts.written + counts.failed, total));
        line.show(counts.written, total, &format!("{}/{}", container.database(), container.name()));
    }
    writer.finish().await?;
    count(&mut writer, counts)
}

fn count(writer: &mut BulkWriter, counts: &mut RestoredCounts) -> Result<(), ToolError> {
    for settled in writer.take_settled()? {
        match settled.end {
            DocumentEnd::Written | DocumentEnd::Existed => counts.written += 1,
            DocumentEnd::Failed(status, reason) => {
                counts.failed += 1;
                if counts.reasons.len() < REASONS_MAX {
                    counts.reasons.push(format!("  document {}: {status}: {reason}", settled.number));
                }
            }
        }
    }
    Ok(())
}

impl RestoredCounts {
    /// What to say about failures.
    pub(crate) fn remark(&self) -> String {
        if self.failed == 0 {
            String::new()
        } else {
            format!(", {} failed:\n{}", self.failed, self.reasons.join("\n"))
        }
    }
}
