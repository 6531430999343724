//! What a replace may change, and what stays although the client leaves it out.

use super::{container, read, refused, shown};
use serde_json::{Value, json};

fn check(old: &Value, new: &Value, expected: Result<&[(&str, Value)], &str>) {
    let stored = read(old).unwrap_or_else(|error| panic!("{old}: {error}"));
    let sent = read(new).unwrap_or_else(|error| panic!("{new}: {error}"));
    assert_eq!(stored.check_replacement(&sent), stored.replaced(sent.clone()).map(|_| ()));
    match (stored.replaced(sent), expected) {
        (Ok(replaced), Ok(expected)) => {
            let body = shown(&replaced);
            for (pointer, value) in expected {
                assert_eq!(body.pointer(pointer).unwrap_or(&Value::Null), value, "{pointer} of {body}");
            }
        }
        (result, Err(fragment)) => refused(result, &[fragment], new),
        (Err(error), Ok(_)) => panic!("{old} by {new}: {error}"),
    }
}

#[test]
fn policies_may_change() {
    let same = json!({});
    for (name, value) in [
        ("defaultTtl", json!(5)),
        (
            "indexingPolicy",
            json!({"indexingMode": "none", "automatic": false, "includedPaths": [], "excludedPaths": []}),
        ),
        ("computedProperties", json!([{"name": "a", "query": "SELECT VALUE c.b FROM c"}])),
        ("geospatialConfig", json!({"type": "Geometry"})),
        ("fullTextPolicy", json!({"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/new_path"}]})),
        ("changeFeedPolicy", json!({"retentionDuration": 10})),
        ("analyticalStorageTtl", json!(1000)),
    ] {
        check(&same, &json!({ name: value }), Ok(&[(&format!("/{name}"), value.clone())]));
    }
    check(&json!({"defaultTtl": 5}), &same, Ok(&[("/defaultTtl", json!(null))]));
    let prose = |path: &str| {
        json!({
            "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": path, "language": "en-US"}]},
            "indexingPolicy": {"fullTextIndexes": [{"path": path}]}
        })
    };
    check(
        &prose("/abstract"),
        &prose("/new_path"),
        Ok(&[("/indexingPolicy/fullTextIndexes/0/path", json!("/new_path"))]),
    );
    let wins = |path: &str| json!({"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": path}});
    check(&wins("/a"), &wins("/b"), Ok(&[("/conflictResolutionPolicy/conflictResolutionPath", json!("/b"))]));
}

#[test]
fn names_and_keys_stay() {
    check(&json!({}), &json!({"id": "other"}), Err("The id of a container cannot be changed"));
    let key = |key: Value| json!({ "partitionKey": key });
    let changed = Err("Document collection partition key cannot be changed");
    check(&json!({}), &key(json!({"paths": ["/key"], "kind": "Hash", "version": 2})), changed);
    check(&json!({}), &key(json!({"paths": ["/pk"], "kind": "Range", "version": 2})), changed);
    check(&json!({}), &key(json!({"paths": ["/pk"], "kind": "Hash", "version": 1})), changed);
    check(&json!({}), &key(json!(null)), changed);
    check(&json!({}), &key(json!({"paths": ["/pk"]})), Ok(&[("/partitionKey/version", json!(2))]));
    check(&json!({}), &key(json!({"paths": ["/\"pk\""]})), Ok(&[("/partitionKey/paths/0", json!("/pk"))]));
    check(
        &key(json!({"paths": ["/pk"]})),
        &key(json!({"paths": ["/pk"], "version": 1})),
        Ok(&[("/partitionKey/version", json!(null))]),
    );
    check(&key(json!({"paths": ["/pk"]})), &json!({}), changed);
    check(&key(json!(null)), &key(json!(null)), Ok(&[("/partitionKey/systemKey", json!(true))]));
    check(
        &key(json!({"paths": ["/_partitionKey"]})),
        &key(json!(null)),
        Ok(&[("/partitionKey/systemKey", json!(null))]),
    );

    let unique = |path: &str| json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [path]}]}});
    let kept = ("/uniqueKeyPolicy/uniqueKeys/0/paths", json!(["/a"]));
    check(&unique("/a"), &unique("/a"), Ok(std::slice::from_ref(&kept)));
    check(&unique("/a"), &json!({}), Ok(&[kept]));
    check(&unique("/a"), &unique("/b"), Err("The unique keys of a container cannot be changed"));
    check(&json!({}), &unique("/b"), Err("The unique keys of a container cannot be changed"));
}

#[test]
fn encryption_and_custom_conflicts_are_chosen_at_creation() {
    let encrypted = |key: &str| {
        json!({"clientEncryptionPolicy": {"policyFormatVersion": 1, "includedPaths": [
            {"path": "/p", "clientEncryptionKeyId": key, "encryptionType": "Randomized", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"}
        ]}})
    };
    let fixed = Err("'clientEncryptionPolicy' cannot be changed as part of collection replace operation.");
    check(&encrypted("k"), &encrypted("k"), Ok(&[]));
    check(&encrypted("k"), &json!({}), fixed);
    check(&encrypted("k"), &encrypted("l"), fixed);
    check(&json!({}), &encrypted("k"), fixed);
    let custom = json!({"conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionProcedure": "p"}});
    check(&json!({}), &custom, Err("Custom can only be chosen when a container is created"));
    check(&custom, &custom, Ok(&[]));
    check(&custom, &json!({}), Ok(&[("/conflictResolutionPolicy/mode", json!("LastWriterWins"))]));
}

#[test]
fn vectors_come_and_go_but_do_not_change() {
    let embedding = |path: &str, dimensions: u32| json!({"path": path, "dataType": "float32", "dimensions": dimensions, "distanceFunction": "euclidean"});
    let with = |embeddings: Value, indexes: Value| json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": embeddings}, "indexingPolicy": {"vectorIndexes": indexes}});
    let index = |path: &str, kind: &str| json!({"path": path, "type": kind});
    let one = with(json!([embedding("/a", 256)]), json!([index("/a", "flat")]));
    let two = with(
        json!([embedding("/a", 256), embedding("/b", 3)]),
        json!([index("/b", "diskANN"), index("/a", "flat")]),
    );
    check(&one, &two, Ok(&[("/indexingPolicy/vectorIndexes/0/path", json!("/b"))]));
    check(&two, &one, Ok(&[("/indexingPolicy/vectorIndexes/0/path", json!("/a"))]));
    check(&one, &json!({}), Ok(&[("/vectorEmbeddingPolicy", json!(null))]));
    check(
        &one,
        &with(json!([embedding("/a", 256)]), json!([index("/a", "quantizedFlat")])),
        Err("Paths in existing vector indexing policy cannot be modified in Collection Replace"),
    );
    check(
        &one,
        &with(json!([embedding("/a", 384)]), json!([index("/a", "flat")])),
        Err("Paths in existing embedding policy cannot be modified in Collection Replace"),
    );
    let bare = container(&json!({"indexingPolicy": {"vectorIndexes": [index("/a", "flat")]}}));
    refused(
        astrarium_catalog::definition::container::ContainerDefinition::from_json(&bare),
        &["The Vector Indexing Policy's path::/a not matching in Embedding's path."],
        &bare,
    );
}
