//! What holds for every body, hostile ones included: no panic, time linear in the body, and what is accepted comes back.

use super::{container, read, shown};
use astrarium_catalog::definition::container::ContainerDefinition;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A definition that uses every member.
fn full() -> Value {
    container(&json!({
        "indexingPolicy": {
            "indexingMode": "consistent", "automatic": true,
            "includedPaths": [{"path": "/*"}, {"path": "/a/[]/b/?", "indexes": [{"kind": "Range", "dataType": "Number", "precision": -1}]}],
            "excludedPaths": [{"path": "/\"_etag\"/?"}, {"path": "/c/*"}],
            "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
            "spatialIndexes": [{"path": "/l/?", "types": ["Point"], "boundingBox": {"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1}}],
            "vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizerType": "product", "quantizationByteSize": 8, "vectorIndexShardKey": ["/s"], "indexingSearchListSize": 50}],
            "fullTextIndexes": [{"path": "/t"}]
        },
        "defaultTtl": 10, "ttlPropertyPath": "/d", "analyticalStorageTtl": -1,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u", "/w/x"]}]},
        "conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/n", "conflictResolutionProcedure": ""},
        "changeFeedPolicy": {"retentionDuration": 10},
        "geospatialConfig": {"type": "Geometry"},
        "computedProperties": [{"name": "cp", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [{
            "path": "/v", "dataType": "float32", "dimensions": 64, "distanceFunction": "cosine",
            "embeddingSource": {"sourcePaths": ["/t"], "deploymentName": "d", "modelName": "m", "endpoint": "e", "authType": "ApiKey"}
        }]},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "de-DE"}]},
        "clientEncryptionPolicy": {"includedPaths": [{"path": "/e", "clientEncryptionKeyId": "k", "encryptionType": "Randomized", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"}], "policyFormatVersion": 1}
    }))
}

/// Pointers to every value inside a body.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| pointers(member, &format!("{at}/{name}"), found));
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(index, entry)| pointers(entry, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

fn hostile() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[/'\"\\\\a*?\\[\\] .@é-]{0,8}",
        "(SELECT|VALUE|FROM|c|\\.|a|\\(|\\)|'| |--|/\\*){0,8}",
        "\\PC{0,6}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2i64..600).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let names = prop_oneof!["path", "paths", "type", "types", "name", "query", "[a-z]{1,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn the_full_definition_is_accepted() {
    let definition = ContainerDefinition::from_json(&full()).unwrap();
    let body = shown(&definition);
    let mut names: Vec<&String> = body.as_object().unwrap().keys().collect();
    let whole = full();
    let mut given: Vec<&String> = whole.as_object().unwrap().keys().collect();
    names.sort();
    given.sort();
    assert_eq!(names, given);
}

#[test]
fn long_lists_take_linear_time() {
    let many = |make: &dyn Fn(usize) -> Value| (0..30_000).map(make).collect::<Vec<Value>>();
    let embeddings = many(&|number| json!({"path": format!("/v{number}")}));
    let indexes = many(&|number| json!({"path": format!("/v{number}"), "type": "diskANN"}));
    let prose = many(&|number| json!({"path": format!("/t{number}")}));
    let places = many(&|number| json!({"path": format!("/l{number}/*"), "types": ["Point"]}));
    let body = json!({
        "vectorEmbeddingPolicy": {"vectorEmbeddings": embeddings},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": prose},
        "indexingPolicy": {"vectorIndexes": indexes, "fullTextIndexes": prose, "spatialIndexes": places}
    });
    let definition = read(&body).unwrap();
    definition.check_replacement(&definition).unwrap();
    shown(&definition);
}

#[test]
fn the_most_paths_come_back_with_the_etag() {
    let paths: Vec<Value> = (0..1_500).map(|number| json!({"path": format!("/p{number}/?")})).collect();
    let definition = read(&json!({"indexingPolicy": {"excludedPaths": paths}})).unwrap();
    assert_eq!(definition.indexing.excluded.len(), 1_501);
    shown(&definition);
}

#[test]
fn long_texts_are_refused_with_short_messages() {
    let long = "x".repeat(2 << 20);
    for body in [
        json!({"id": long}),
        json!({"partitionKey": {"paths": [long]}}),
        json!({"indexingPolicy": {"indexingMode": long}}),
        json!({"indexingPolicy": {"includedPaths": [{"path": long}]}}),
        json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": [long]}]}}),
        json!({"computedProperties": [{"name": long, "query": long}]}),
        json!({"computedProperties": [{"name": "a", "query": format!("SELECT VALUE '{long}' FROM c")}]}),
        json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dataType": long}]}}),
        json!({"fullTextPolicy": {"defaultLanguage": long}}),
    ] {
        let error = read(&body).unwrap_err();
        assert!(error.message().len() < 4_000, "{} bytes of message", error.message().len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_member_may_be_anything(place in any::<prop::sample::Index>(), value in hostile()) {
        let mut body = full();
        let mut found = Vec::new();
        pointers(&body, "", &mut found);
        let pointer: &String = place.get(&found);
        *body.pointer_mut(pointer).unwrap() = value;
        if let Ok(definition) = ContainerDefinition::from_json(&body) {
            shown(&definition);
        }
    }

    #[test]
    fn any_body_is_read_without_panic(body in hostile()) {
        let _ = ContainerDefinition::from_json(&body);
        let _ = read(&json!({"indexingPolicy": body.clone(), "computedProperties": [body.clone()], "partitionKey": body}));
    }
}
