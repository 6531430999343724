//! Indexing policies: what they refuse, what they leave alone, what the metrics say; unique keys.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ContainerProperties, IndexingPolicy, UniqueKeyPolicy};
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use futures::TryStreamExt as _;
use sdk_tests::expect::{done, item_answered, refused};
use sdk_tests::fixture::Fixture;
use serde_json::Value;
use std::num::NonZeroU32;

fn cases() -> Value {
    serde_json::from_str(include_str!("../../../cases/indexing.json")).expect("the shared cases")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

async fn indexed(fixture: &Fixture, cases: &Value) -> ContainerClient {
    let policy: IndexingPolicy = done(serde_json::from_value(cases["definition"]["indexingPolicy"].clone()));
    let properties = ContainerProperties::new("indexed", "/pk".into()).with_indexing_policy(policy);
    let container = fixture.container_of(properties).await;
    for item in list(&cases["documents"]) {
        let (key, id) = (text(&item["pk"]).to_owned(), text(&item["id"]));
        item_answered(201, container.create_item(key, id, item, None).await);
    }
    container
}

async fn rows(container: &ContainerClient, query: &str, size: u32) -> azure_data_cosmos::Result<Vec<Value>> {
    let hint = NonZeroU32::new(size).map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit);
    let options = QueryOptions::default().with_max_item_count(hint);
    let query = query.to_owned();
    container.query_items(query, FeedScope::full_container(), Some(options)).await?.try_collect().await
}

pub(crate) async fn policies(fixture: Fixture) {
    let cases = cases();
    let container = indexed(&fixture, &cases).await;
    for case in list(&cases["queries"]) {
        for size in [0, 1, 4] {
            let found = done(rows(&container, text(&case["query"]), size).await);
            let ids: Vec<&Value> = found.iter().map(|row| &row["id"]).collect();
            assert_eq!(ids, list(&case["ids"]).iter().collect::<Vec<_>>(), "{}", case["query"]);
        }
    }
    for case in list(&cases["refusals"]) {
        let refusal = rows(&container, text(&case["query"]), 0).await;
        let message = format!("{:?}", refused(400, refusal));
        assert!(message.contains(text(&case["message"])), "{message}");
    }
}

pub(crate) async fn unique_keys(fixture: Fixture) {
    let cases = &cases()["uniqueKeys"];
    let policy: UniqueKeyPolicy = done(serde_json::from_value(cases["policy"].clone()));
    let properties = ContainerProperties::new("unique", "/pk".into()).with_unique_key_policy(policy);
    let container = fixture.container_of(properties).await;
    for write in list(&cases["writes"]) {
        let item = &write["item"];
        let (key, id) = (text(&item["pk"]).to_owned(), text(&item["id"]));
        let outcome = match text(&write["act"]) {
            "create" => container.create_item(key, id, item, None).await,
            "upsert" => container.upsert_item(key, id, item, None).await,
            "replace" => container.replace_item(key, id, item, None).await,
            _ => container.delete_item(key, id, None).await,
        };
        if write["conflict"] == true {
            let message = format!("{:?}", refused(409, outcome));
            assert!(message.contains(text(&cases["message"])), "{message}");
        } else {
            done(outcome);
        }
    }
}
