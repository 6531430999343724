//! Partition keys of every kind, and items of the same id told apart by them.

use azure_data_cosmos::PartitionKey;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, PartitionKeyVersion};
use sdk_tests::expect::{item_answered, refused, same};
use sdk_tests::fixture::Fixture;
use serde_json::{Value, json};

/// Gives every key an item of the same id, and expects each to be found by its own key only.
async fn check(container: &ContainerClient, cases: Vec<(PartitionKey, Value)>) {
    let cases: Vec<_> = cases
        .into_iter()
        .enumerate()
        .map(|(position, (key, mut item))| {
            item["id"] = "same".into();
            item["position"] = position.into();
            (key, item)
        })
        .collect();
    for (key, item) in &cases {
        item_answered(201, container.create_item(key.clone(), "same", item, None).await);
        refused(409, container.create_item(key.clone(), "same", item, None).await);
    }
    for (position, (key, item)) in cases.iter().enumerate() {
        same(item, item_answered(200, container.read_item(key.clone(), "same", None).await));
        let (_, other) = &cases[(position + 1) % cases.len()];
        refused(400, container.replace_item(key.clone(), "same", other, None).await);
        item_answered(200, container.replace_item(key.clone(), "same", item, None).await);
        item_answered(200, container.upsert_item(key.clone(), "same", item, None).await);
    }
    for (key, _) in &cases {
        item_answered(204, container.delete_item(key.clone(), "same", None).await);
        refused(404, container.read_item(key.clone(), "same", None).await);
    }
}

fn scalar_keys() -> Vec<(PartitionKey, Value)> {
    let long = [100, 101, 1024].map(|length| "x".repeat(length));
    let texts = [
        "",
        "a",
        "A",
        " ",
        "5",
        "true",
        "null",
        "quote\" and \\ backslash",
        "percent %41",
        "Ωμέγα 鱀",
        "a\u{301}",
        "á",
    ];
    let mut cases: Vec<(PartitionKey, Value)> = texts
        .iter()
        .map(ToString::to_string)
        .chain(long)
        .map(|text| (PartitionKey::from(text.clone()), json!({ "pk": text })))
        .collect();
    for number in [0_i64, 1, -1, 5, 9_007_199_254_740_991] {
        cases.push((number.into(), json!({ "pk": number })));
    }
    for number in [0.1_f64, 1e300] {
        cases.push((number.try_into().expect("a finite number"), json!({ "pk": number })));
    }
    for truth in [true, false] {
        cases.push((truth.into(), json!({ "pk": truth })));
    }
    cases.push((PartitionKey::NULL.into(), json!({ "pk": null })));
    cases.push((PartitionKey::UNDEFINED.into(), json!({})));
    cases
}

pub(crate) async fn scalars(fixture: Fixture) {
    check(&fixture.container("current").await, scalar_keys()).await;
    let definition = PartitionKeyDefinition::from("/pk").with_version(PartitionKeyVersion::V1);
    let container = fixture.container_of(ContainerProperties::new("original", definition)).await;
    check(&container, scalar_keys()).await;
}

pub(crate) async fn nested(fixture: Fixture) {
    let container = fixture.container_by("nested", "/address/zip").await;
    let cases = vec![
        ("10115".into(), json!({ "address": { "zip": "10115" } })),
        (10115.into(), json!({ "address": { "zip": 10115 } })),
        (PartitionKey::NULL.into(), json!({ "address": { "zip": null } })),
        (PartitionKey::UNDEFINED.into(), json!({ "address": "not an object" })),
    ];
    check(&container, cases).await;
}

pub(crate) async fn hierarchical(fixture: Fixture) {
    let container = fixture.container_by("levels", ("/tenant", "/user", "/session")).await;
    let cases = vec![
        (("a", "b", "c").into(), json!({ "tenant": "a", "user": "b", "session": "c" })),
        (("a", "bc", "").into(), json!({ "tenant": "a", "user": "bc", "session": "" })),
        (("a", 1, true).into(), json!({ "tenant": "a", "user": 1, "session": true })),
        (
            ("a", PartitionKey::NULL, PartitionKey::NULL).into(),
            json!({ "tenant": "a", "user": null, "session": null }),
        ),
    ];
    check(&container, cases).await;
    // A prefix of the key names many partitions, so an item cannot be addressed with it.
    refused(400, container.read_item(("a", "b"), "same", None).await);
}
