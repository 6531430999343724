//! Definitions of databases, containers, scripts, users and permissions: taken from an account, and made in another.
//!
//! A definition is what an account says of a thing without what the system adds. Throughput is an offer there; here it stands beside the
//! definition as `{"throughput": 400}` or `{"autoscale": 4000}`.

use crate::connection::ContainerPath;
use crate::error::ToolError;
use astrarium_client::{ContainerClient, CosmosClient, ScriptKind};
use astrarium_wire::headers;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How often a definition is made again after a failure that leaves open whether it was, each time after twice the wait.
const TRIES_MAX: u32 = 6;

/// Most request units a second of a database or container.
const THROUGHPUT_MAX: u64 = 1_000_000;

/// What the system adds to definitions.
const SYSTEM_MEMBERS: [&str; 14] = [
    "_rid",
    "_self",
    "_etag",
    "_ts",
    "_colls",
    "_users",
    "_docs",
    "_sprocs",
    "_triggers",
    "_udfs",
    "_conflicts",
    "_permissions",
    "_token",
    "statistics",
];

/// A definition without what the system adds.
pub(crate) fn plain(definition: &Value) -> Value {
    let Some(members) = definition.as_object() else { return definition.clone() };
    let kept = members.iter().filter(|(name, _)| !SYSTEM_MEMBERS.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A text member of a definition.
pub(crate) fn text<'a>(definition: &'a Value, name: &str) -> &'a str {
    definition.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether declared throughput is what the service takes: one of both, within its limits and in its steps.
pub(crate) fn check_throughput(declared: &Value) -> Result<(), String> {
    let mut told = 0;
    for (name, least, step) in [("throughput", 400, 100), ("autoscale", 1_000, 1_000)] {
        let Some(units) = declared.get(name) else { continue };
        told += 1;
        if units.as_u64().is_none_or(|units| !(least..=THROUGHPUT_MAX).contains(&units) || units % step != 0)
        {
            return Err(format!(
                "has {name} {units}, which must be a multiple of {step} from {least} to {THROUGHPUT_MAX}"
            ));
        }
    }
    if told == 2 { Err("has both throughput and autoscale; only one can be".to_owned()) } else { Ok(()) }
}

/// Headers that give a new database or container its throughput.
pub(crate) fn throughput_headers(throughput: &Value) -> Vec<(&'static str, String)> {
    let mut made = Vec::new();
    if let Some(units) = throughput.get("throughput").and_then(Value::as_u64) {
        made.push((headers::OFFER_THROUGHPUT, units.to_string()));
    }
    if let Some(most) = throughput.get("autoscale").and_then(Value::as_u64) {
        made.push((headers::OFFER_AUTOPILOT_SETTINGS, json!({"maxThroughput": most}).to_string()));
    }
    made
}

/// The throughput of a thing by its resource id, out of all offers.
pub(crate) fn throughput_of(offers: &[Value], rid: &str) -> Value {
    let offer = offers.iter().find(|offer| text(offer, "offerResourceId") == rid);
    let Some(content) = offer.and_then(|offer| offer.get("content")) else { return json!({}) };
    let most = content.pointer("/offerAutopilotSettings/maxThroughput").and_then(Value::as_u64);
    match (most, content.get("offerThroughput").and_then(Value::as_u64)) {
        (Some(most), _) => json!({"autoscale": most}),
        (None, Some(units)) => json!({"throughput": units}),
        (None, None) => json!({}),
    }
}

/// A container that is not there yet, with a partition key at the paths.
pub(crate) fn planned_container(
    client: &CosmosClient,
    path: &ContainerPath,
    paths: &str,
) -> Result<ContainerClient, ToolError> {
    let paths: Vec<&str> = paths.split(',').collect();
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let definition =
        json!({"id": path.container, "partitionKey": {"paths": paths, "kind": kind, "version": 2}});
    ContainerClient::planned(client, &path.database, &path.container, definition).map_err(|_| {
        ToolError::input(format!(
            "--create-container {:?} must be paths such as /pk, or /tenant,/user",
            paths.join(",")
        ))
    })
}

/// Makes a planned container, its database too, unless they are there.
pub(crate) async fn make_container(
    client: &CosmosClient,
    planned: ContainerClient,
    is_wanted: bool,
    throughput: Option<u32>,
) -> Result<ContainerClient, ToolError> {
    if is_wanted {
        make_if_missing(client, &[], "dbs", &json!({"id": planned.database()}), Vec::new()).await?;
        let units = throughput.map_or(json!({}), |units| json!({"throughput": units}));
        let owner = ["dbs", planned.database()];
        make_if_missing(client, &owner, "colls", &plain(planned.definition()), throughput_headers(&units))
            .await?;
    }
    let opened = client.container(planned.database(), planned.name()).await;
    opened.map_err(ToolError::account(format!("open {}/{}", planned.database(), planned.name())))
}

/// Makes a thing; false if one with its id is there.
pub(crate) async fn make_if_missing(
    client: &CosmosClient,
    owner: &[&str],
    kind: &str,
    body: &Value,
    headers: Vec<(&'static str, String)>,
) -> Result<bool, ToolError> {
    for tries in 0.. {
        match client.create_definition(owner, kind, body, headers.clone()).await {
            Ok(_) => return Ok(true),
            Err(error) if error.status() == 409 => return Ok(false),
            // Whether it was made or not: the next try tells.
            Err(error) if error.is_ambiguous() && tries < TRIES_MAX => {
                tokio::time::sleep(Duration::from_millis(250 << tries)).await;
            }
            Err(error) => {
                let what = format!("make {kind}/{} in {:?}", text(body, "id"), owner.join("/"));
                return Err(ToolError::account(what)(error));
            }
        }
    }
    Ok(false)
}

/// Everything about a database but its documents.
pub(crate) async fn read_database(
    client: &CosmosClient,
    database: &Value,
    offers: &[Value],
) -> Result<Value, ToolError> {
    let name = text(database, "id");
    let failed = |what: &str| ToolError::account(format!("read the {what} of {name}"));
    let mut containers = Vec::new();
    for definition in client.containers(name).await.map_err(failed("containers"))? {
        containers.push(read_container(client, name, &definition, offers).await?);
    }
    let mut users = Vec::new();
    for user in client.users(name).await.map_err(failed("users"))? {
        let permissions = client.permissions(name, text(&user, "id")).await.map_err(failed("permissions"))?;
        let permissions: Vec<Value> = permissions.iter().map(plain).collect();
        users.push(json!({"id": text(&user, "id"), "permissions": permissions}));
    }
    Ok(json!({
        "id": name,
        "throughput": throughput_of(offers, text(database, "_rid")),
        "containers": containers,
        "users": users,
        "_self": text(database, "_self"),
    }))
}

async fn read_container(
    client: &CosmosClient,
    database: &str,
    definition: &Value,
    offers: &[Value],
) -> Result<Value, ToolError> {
    let name = text(definition, "id");
    let failed = || ToolError::account(format!("read the scripts of {database}/{name}"));
    let container = client.container(database, name).await.map_err(failed())?;
    let mut scripts = Map::new();
    for kind in ScriptKind::ALL {
        let listed = match container.scripts(kind).await {
            Ok(listed) => listed,
            // Some servers have no scripts at all.
            Err(error) if matches!(error.status(), 404 | 405 | 501) => Vec::new(),
            Err(error) => return Err(failed()(error)),
        };
        scripts.insert(kind.segment().to_owned(), listed.iter().map(plain).collect());
    }
    Ok(json!({
        "id": name,
        "definition": plain(definition),
        "throughput": throughput_of(offers, text(definition, "_rid")),
        "scripts": scripts,
        "_self": text(definition, "_self"),
    }))
}

/// Links of permissions by resource id become links by name, which stay true elsewhere; notes for that are then dropped.
pub(crate) fn settle_links(databases: &mut [Value]) {
    let mut links: Vec<(String, String)> = Vec::new();
    for database in databases.iter() {
        let name = text(database, "id");
        for container in database.get("containers").and_then(Value::as_array).into_iter().flatten() {
            links.push((
                text(container, "_self").to_owned(),
                format!("dbs/{name}/colls/{}", text(container, "id")),
            ));
        }
    }
    for database in databases.iter_mut() {
        for user in database.get_mut("users").and_then(Value::as_array_mut).into_iter().flatten() {
            for permission in user.get_mut("permissions").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let resource = text(permission, "resource").trim_matches('/').to_owned();
                let known =
                    links.iter().find(|(own, _)| !own.is_empty() && own.trim_matches('/') == resource);
                if let Some((_, by_name)) = known {
                    permission["resource"] = json!(by_name);
                }
            }
        }
        drop_member(database, "_self");
        for container in database.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
            drop_member(container, "_self");
        }
    }
}

fn drop_member(value: &mut Value, name: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(name);
    }
}

/// Makes scripts, users and permissions of a database that has its containers; those that exist stay.
pub(crate) async fn make_rest(client: &CosmosClient, database: &Value) -> Result<(), ToolError> {
    let name = text(database, "id");
    let list = |value: &Value, member: &str| {
        value.get(member).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    for container in list(database, "containers") {
        let owner = ["dbs", name, "colls", text(&container, "id")];
        for kind in ScriptKind::ALL {
            let scripts =
                container.get("scripts").map(|scripts| list(scripts, kind.segment())).unwrap_or_default();
            for script in scripts {
                make_if_missing(client, &owner, kind.segment(), &script, Vec::new()).await?;
            }
        }
    }
    for user in list(database, "users") {
        let id = text(&user, "id");
        make_if_missing(client, &["dbs", name], "users", &json!({"id": id}), Vec::new()).await?;
        for permission in list(&user, "permissions") {
            make_if_missing(client, &["dbs", name, "users", id], "permissions", &permission, Vec::new())
                .await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_plain() {
        let definition = json!({"id": "c", "_rid": "x", "defaultTtl": 7, "_token": "secret"});
        assert_eq!(plain(&definition), json!({"id": "c", "defaultTtl": 7}));
        let offers = [
            json!({"offerResourceId": "a", "content": {"offerThroughput": 400}}),
            json!({"offerResourceId": "b", "content": {"offerThroughput": 400, "offerAutopilotSettings": {"maxThroughput": 4000}}}),
        ];
        assert_eq!(throughput_of(&offers, "a"), json!({"throughput": 400}));
        assert_eq!(throughput_of(&offers, "b"), json!({"autoscale": 4000}));
        assert_eq!(throughput_of(&offers, "c"), json!({}));
        assert_eq!(
            throughput_headers(&json!({"autoscale": 4000})),
            [(headers::OFFER_AUTOPILOT_SETTINGS, "{\"maxThroughput\":4000}".to_owned())]
        );
    }

    #[test]
    fn links_by_resource_id_become_names() {
        let mut databases = [json!({
            "id": "d", "_self": "dbs/AAAAAA==/",
            "containers": [{"id": "c", "_self": "dbs/AAAAAA==/colls/AAAAAIAAAAA=/"}],
            "users": [{"id": "u", "permissions": [{"id": "p", "resource": "dbs/AAAAAA==/colls/AAAAAIAAAAA="}, {"id": "q", "resource": "dbs/d/colls/c"}]}],
        })];
        settle_links(&mut databases);
        assert_eq!(databases[0]["users"][0]["permissions"][0]["resource"], "dbs/d/colls/c");
        assert_eq!(databases[0]["users"][0]["permissions"][1]["resource"], "dbs/d/colls/c");
        assert!(databases[0].get("_self").is_none() && databases[0]["containers"][0].get("_self").is_none());
    }
}
