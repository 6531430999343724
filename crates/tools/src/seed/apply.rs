//! Makes an account what a seed declares.

use super::{SeedContainer, SeedDatabase, SeedPlan};
use crate::ToolReport;
use crate::bulk_writer::{BulkWriter, DocumentEnd, ExistingMode};
use crate::check::PreparedDocument;
use crate::connection::AccountSettings;
use crate::definitions::{make_if_missing, plain, text, throughput_headers};
use crate::error::ToolError;
use astrarium_client::{ContainerClient, CosmosClient};
use bytes::Bytes;
use serde_json::{Value, json};

/// Requests at once.
const WORKERS: usize = 4;
/// What a container cannot change.
const FIXED: [&str; 2] = ["partitionKey", "uniqueKeyPolicy"];

impl SeedPlan {
    /// Checks the plan against an account, and then makes the account so.
    pub async fn apply(&self, account: &AccountSettings) -> Result<ToolReport, ToolError> {
        let client = account.connect(WORKERS + 1).await?;
        for database in &self.databases {
            check(&client, database).await?;
        }
        let (mut containers, mut documents) = (0, 0);
        for database in &self.databases {
            let throughput = throughput_headers(&database.throughput);
            make_if_missing(&client, &[], "dbs", &json!({"id": database.id}), throughput).await?;
            for container in &database.containers {
                make_container(&client, &database.id, container).await?;
                documents += write_documents(&client, &database.id, container).await?;
                containers += 1;
            }
            make_users(&client, database).await?;
        }
        let text = format!(
            "seeded {} databases, {containers} containers, {documents} documents",
            self.databases.len()
        );
        Ok(ToolReport { text, is_complete: true })
    }
}

/// Refuses what the account contradicts; changes nothing.
async fn check(client: &CosmosClient, database: &SeedDatabase) -> Result<(), ToolError> {
    let existing = match client.containers(&database.id).await {
        Ok(existing) => existing,
        Err(error) if error.status() == 404 => Vec::new(),
        Err(error) => {
            return Err(ToolError::account(format!("list the containers of {}", database.id))(error));
        }
    };
    for container in &database.containers {
        let Some(known) = existing.iter().find(|known| text(known, "id") == container.id) else { continue };
        for name in FIXED {
            let (declared, has) = (container.definition.get(name), known.get(name));
            if declared.is_some_and(|declared| !is_within(declared, has.unwrap_or(&Value::Null))) {
                return Err(ToolError::input(format!(
                    "the seed is refused, and nothing was changed: {}/{} exists with another {name}, {}",
                    database.id,
                    container.id,
                    has.unwrap_or(&Value::Null)
                )));
            }
        }
    }
    Ok(())
}

/// Whether everything that is declared is so; accounts add what is left out.
fn is_within(declared: &Value, known: &Value) -> bool {
    match (declared, known) {
        (Value::Object(declared), Value::Object(known)) => {
            declared.iter().all(|(name, value)| known.get(name).is_some_and(|known| is_within(value, known)))
        }
        (Value::Array(declared), Value::Array(known)) => {
            declared.len() == known.len()
                && declared.iter().zip(known).all(|(declared, known)| is_within(declared, known))
        }
        _ => declared == known,
    }
}

async fn make_container(
    client: &CosmosClient,
    database: &str,
    container: &SeedContainer,
) -> Result<(), ToolError> {
    let throughput = throughput_headers(&container.throughput);
    let owner = ["dbs", database, "colls", container.id.as_str()];
    if !make_if_missing(client, &["dbs", database], "colls", &container.definition, throughput).await? {
        replace_if_other(client, &owner, &container.definition).await?;
    }
    for (kind, script) in &container.scripts {
        if !make_if_missing(client, &owner, kind, script, Vec::new()).await? {
            let segments = [&owner[..], &[kind, text(script, "id")]].concat();
            replace_if_other(client, &segments, script).await?;
        }
    }
    Ok(())
}

/// Changes what is there only if it is not what is declared.
async fn replace_if_other(
    client: &CosmosClient,
    segments: &[&str],
    declared: &Value,
) -> Result<(), ToolError> {
    let shown = segments.join("/");
    let known =
        client.read_definition(segments).await.map_err(ToolError::account(format!("read {shown}")))?;
    if is_within(declared, &known) {
        return Ok(());
    }
    let mut wanted = plain(&known);
    if let (Some(wanted), Some(declared)) = (wanted.as_object_mut(), declared.as_object()) {
        for (name, value) in declared.iter().filter(|(name, _)| !FIXED.contains(&name.as_str())) {
            wanted.insert(name.clone(), value.clone());
        }
    }
    let replaced = client.replace_definition(segments, &wanted, None).await;
    replaced.map_err(ToolError::account(format!("replace {shown}"))).map(|_| ())
}

/// Writes documents that are missing, and those that differ; others keep their etags.
async fn write_documents(
    client: &CosmosClient,
    database: &str,
    container: &SeedContainer,
) -> Result<usize, ToolError> {
    let opened = client.container(database, &container.id).await;
    let opened = opened.map_err(ToolError::account(format!("open {database}/{}", container.id)))?;
    let differing = write_all(&opened, ExistingMode::Insert, container.documents.clone()).await?;
    let refused = write_all(&opened, ExistingMode::Upsert, differing).await?;
    if !refused.is_empty() {
        return Err(ToolError::input(format!(
            "{} documents of {database}/{} were refused",
            refused.len(),
            container.id
        )));
    }
    Ok(container.documents.len())
}

/// Writes documents; those that exist and differ come back. Others that fail end it.
async fn write_all(
    container: &ContainerClient,
    mode: ExistingMode,
    documents: Vec<Bytes>,
) -> Result<Vec<Bytes>, ToolError> {
    let mut writer = BulkWriter::new(container, mode, WORKERS, None, u64::MAX).await?;
    let mut differing = Vec::new();
    for (index, body) in documents.into_iter().enumerate() {
        let (key, header) = container.key_of(&body).map_err(ToolError::account("read a document"))?;
        let effective = container.key_definition().effective(&key);
        writer.push(PreparedDocument { number: index as u64 + 1, body, key: header, effective }).await?;
    }
    writer.finish().await?;
    for settled in writer.take_settled() {
        match (settled.end, settled.body) {
            (DocumentEnd::Failed(409, _), Some(body)) => differing.push(body),
            (DocumentEnd::Failed(status, reason), _) => {
                let (database, name) = (container.database(), container.name());
                return Err(ToolError::input(format!(
                    "document {} of {database}/{name} is refused: {status} {reason}",
                    settled.number
                )));
            }
            _ => {}
        }
    }
    Ok(differing)
}

async fn make_users(client: &CosmosClient, database: &SeedDatabase) -> Result<(), ToolError> {
    for user in &database.users {
        let id = text(user, "id");
        make_if_missing(client, &["dbs", &database.id], "users", &json!({"id": id}), Vec::new()).await?;
        for permission in user.get("permissions").and_then(Value::as_array).into_iter().flatten() {
            let owner = ["dbs", database.id.as_str(), "users", id];
            if !make_if_missing(client, &owner, "permissions", permission, Vec::new()).await? {
                let segments = [&owner[..], &["permissions", text(permission, "id")]].concat();
                replace_if_other(client, &segments, permission).await?;
            }
        }
    }
    Ok(())
}
