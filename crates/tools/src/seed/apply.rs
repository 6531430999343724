//! Makes an account what a seed declares.

use super::{SeedContainer, SeedDatabase, SeedPlan};
use crate::ToolReport;
use crate::bulk_writer::{BulkWriter, DocumentEnd, ExistingMode};
use crate::check::PreparedDocument;
use crate::connection::AccountSettings;
use crate::definitions::{make_if_missing, plain, text, throughput_headers, throughput_of};
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
        let offers = if self.declares_throughput() { client.offers().await } else { Ok(Vec::new()) };
        let offers = offers.map_err(ToolError::account("list the throughput"))?;
        let mut changes = Vec::new();
        for database in &self.databases {
            changes.extend(check(&client, database, &offers).await?);
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
        for offer in changes {
            let replaced = client.replace_offer(text(&offer, "_rid"), &offer).await;
            replaced.map_err(ToolError::account(format!(
                "change the throughput of {}",
                text(&offer, "resource")
            )))?;
        }
        let text = format!(
            "seeded {} databases, {containers} containers, {documents} documents",
            self.databases.len()
        );
        Ok(ToolReport { text, is_complete: true })
    }
}

impl SeedPlan {
    fn declares_throughput(&self) -> bool {
        let is_told = |throughput: &Value| *throughput != json!({});
        self.databases.iter().any(|database| {
            is_told(&database.throughput)
                || database.containers.iter().any(|container| is_told(&container.throughput))
        })
    }
}

/// The offer of a thing that exists, changed to what is declared; none if it is so already. Changes nothing yet.
fn changed_offer(
    name: &str,
    rid: &str,
    declared: &Value,
    offers: &[Value],
) -> Result<Option<Value>, ToolError> {
    let known = throughput_of(offers, rid);
    let refused = |what: &str| {
        Err(ToolError::input(format!("the seed is refused, and nothing was changed: {name} exists {what}")))
    };
    let Some(offer) = offers.iter().find(|offer| text(offer, "offerResourceId") == rid) else {
        return if *declared == json!({}) { Ok(None) } else { refused("without throughput of its own") };
    };
    if *declared == json!({}) || known == *declared {
        return Ok(None);
    }
    let mut changed = offer.clone();
    if let (Some(units), Some(_)) = (declared.get("throughput"), known.get("throughput")) {
        changed["content"]["offerThroughput"] = units.clone();
    } else if let (Some(units), Some(_)) = (declared.get("autoscale"), known.get("autoscale")) {
        changed["content"]["offerAutopilotSettings"] = json!({"maxThroughput": units});
    } else {
        return refused(&format!(
            "with the throughput {known}; between throughput and autoscale a seed does not change"
        ));
    }
    Ok(Some(changed))
}

/// Refuses what the account contradicts; changes nothing. Gives the offers that are to be changed.
async fn check(
    client: &CosmosClient,
    database: &SeedDatabase,
    offers: &[Value],
) -> Result<Vec<Value>, ToolError> {
    let mut changes = Vec::new();
    match client.read_definition(&["dbs", &database.id]).await {
        Ok(known) => {
            changes.extend(changed_offer(&database.id, text(&known, "_rid"), &database.throughput, offers)?);
        }
        Err(error) if error.status() == 404 => return Ok(changes),
        Err(error) => return Err(ToolError::account(format!("read {}", database.id))(error)),
    }
    let existing = match client.containers(&database.id).await {
        Ok(existing) => existing,
        Err(error) if error.status() == 404 => Vec::new(),
        Err(error) => {
            return Err(ToolError::account(format!("list the containers of {}", database.id))(error));
        }
    };
    for container in &database.containers {
        let Some(known) = existing.iter().find(|known| text(known, "id") == container.id) else { continue };
        let shown = format!("{}/{}", database.id, container.id);
        changes.extend(changed_offer(&shown, text(known, "_rid"), &container.throughput, offers)?);
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
    Ok(changes)
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
    for settled in writer.take_settled()? {
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
