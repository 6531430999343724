//! What clients read back.

use super::{read, shown};
use astrarium_catalog::definition::container::{ContainerDefinition, DefaultTtl, IndexingMode};
use serde_json::{Value, json};

/// Members of the echo, by JSON pointer; `null` means that the member is not there.
fn check(members: &Value, expected: &[(&str, Value)]) {
    let definition = read(members).unwrap_or_else(|error| panic!("{members}: {error}"));
    let body = shown(&definition);
    for (pointer, value) in expected {
        assert_eq!(body.pointer(pointer).unwrap_or(&Value::Null), value, "{pointer} of {body}");
    }
}

/// Members that come back exactly as they are given.
fn check_same(members: &Value) {
    let body = shown(&read(members).unwrap_or_else(|error| panic!("{members}: {error}")));
    for (name, value) in members.as_object().into_iter().flatten() {
        assert_eq!(&body[name], value, "{name} of {body}");
    }
}

#[test]
fn defaults_have_the_shape_of_the_service() {
    let definition = read(&json!({})).unwrap();
    let expected = concat!(
        r#"{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"#,
        r#""excludedPaths":[{"path":"/\"_etag\"/?"}]},"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"#,
        r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","#,
        r#""conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}}"#
    );
    assert_eq!(shown(&definition).to_string(), expected);
}

#[test]
fn unknown_members_and_system_properties_are_ignored() {
    let noise = json!({"_rid": "x", "_ts": 1, "_self": {}, "_etag": [], "throughput": 400, "statistics": [1], "x": null});
    assert_eq!(shown(&read(&noise).unwrap()), shown(&read(&json!({})).unwrap()));
    let nulls = json!({"defaultTtl": null, "indexingPolicy": null, "uniqueKeyPolicy": null, "computedProperties": null});
    assert_eq!(shown(&read(&nulls).unwrap()), shown(&read(&json!({})).unwrap()));
    check(
        &json!({"computedProperties": [], "uniqueKeyPolicy": {"uniqueKeys": []}, "vectorEmbeddingPolicy": {}}),
        &[
            ("/computedProperties", json!(null)),
            ("/uniqueKeyPolicy", json!(null)),
            ("/vectorEmbeddingPolicy", json!(null)),
        ],
    );
}

#[test]
fn partition_keys() {
    let key = |key: Value| json!({ "partitionKey": key });
    let hash = |version: Value| json!({"paths": ["/pk"], "kind": "Hash", "version": version});
    check_same(&key(hash(json!(1))));
    check_same(&key(hash(json!(2))));
    check_same(&key(json!({"paths": ["/a", "/b/c", "/d"], "kind": "MultiHash", "version": 2})));
    check_same(&key(json!({"paths": [r#"/"level' 1*()"/"le/vel2""#], "kind": "Hash", "version": 2})));
    check_same(&key(json!({"paths": [r#"/'level" 1*()'/'le/vel2'"#], "kind": "Hash", "version": 2})));
    check(&key(json!({"paths": ["/id"]})), &[("/partitionKey", json!({"paths": ["/id"], "kind": "Hash"}))]);
    check(&key(json!({"paths": ["/a", "/b"], "kind": "multihash"})), &[("/partitionKey/version", json!(2))]);
    let legacy = json!({"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true});
    let without = ContainerDefinition::from_json(&json!({"id": "c"})).unwrap();
    assert_eq!(shown(&without)["partitionKey"], legacy);
    check_same(&key(legacy));
}

#[test]
fn indexing_policies() {
    let policy = |policy: Value| json!({ "indexingPolicy": policy });
    let etag = || json!({"path": "/\"_etag\"/?"});
    let default = json!({
        "indexingMode": "consistent", "automatic": true, "includedPaths": [{"path": "/*"}], "excludedPaths": [etag()]
    });
    for same_as_default in [
        json!({}),
        json!({"indexingMode": "Consistent", "automatic": true}),
        json!({"includedPaths": [{"path": "/*"}]}),
        json!({"includedPaths": [{"path": "/", "indexes": [{"kind": "Hash", "dataType": "Number", "precision": 2}]}]}),
        json!({"includedPaths": [{"path": "/*", "indexes": [{"kind": "Range", "dataType": "String"}]}]}),
        json!({"includedPaths": [], "excludedPaths": [], "compositeIndexes": [], "spatialIndexes": [], "vectorIndexes": [], "fullTextIndexes": []}),
    ] {
        check(&policy(same_as_default), &[("/indexingPolicy", default.clone())]);
    }
    check(
        &policy(
            json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/\"systemMetadata\"/*"}]}),
        ),
        &[
            ("/indexingPolicy/excludedPaths", json!([{"path": "/\"systemMetadata\"/*"}, etag()])),
            ("/indexingPolicy/includedPaths", json!([{"path": "/*"}])),
        ],
    );
    check(
        &policy(json!({"excludedPaths": [{"path": "/*"}]})),
        &[
            ("/indexingPolicy/includedPaths", json!([])),
            ("/indexingPolicy/excludedPaths", json!([{"path": "/*"}, etag()])),
        ],
    );
    check(
        &policy(json!({"excludedPaths": [{"path": "/a/?"}]})),
        &[("/indexingPolicy/includedPaths", json!([{"path": "/*"}]))],
    );
    check(
        &policy(json!({"includedPaths": [{"path": "/*"}, {"path": "/_etag/?"}]})),
        &[("/indexingPolicy/excludedPaths", json!([]))],
    );
    check(
        &policy(
            json!({"includedPaths": [{"path": "/a/?"}, {"path": "/a/[]/b/*"}], "excludedPaths": [{"path": "/*"}, {"path": "/a/*"}]}),
        ),
        &[("/indexingPolicy/includedPaths", json!([{"path": "/a/?"}, {"path": "/a/[]/b/*"}]))],
    );
    let none = json!({"indexingMode": "none", "automatic": false, "includedPaths": [], "excludedPaths": []});
    check(&policy(json!({"indexingMode": "None", "automatic": false})), &[("/indexingPolicy", none.clone())]);
    check(&policy(json!({"indexingMode": "none"})), &[("/indexingPolicy", none.clone())]);
    check_same(&policy(none));
    check_same(&policy(json!({
        "indexingMode": "lazy", "automatic": false, "includedPaths": [{"path": "/*"}], "excludedPaths": [etag()]
    })));
    assert_eq!(read(&json!({})).unwrap().indexing.mode, IndexingMode::Consistent);
}

#[test]
fn composite_and_spatial_indexes() {
    let all = json!(["Point", "LineString", "Polygon", "MultiPolygon"]);
    let given = json!({
        "spatialIndexes": [{"path": "/path0/*", "types": all}, {"path": "/path1/*", "types": all}],
        "compositeIndexes": [
            [{"path": "/path1", "order": "ascending"}, {"path": "/path2", "order": "descending"}],
            [{"path": "/path4", "order": "ascending"}, {"path": "/path5", "order": "descending"}, {"path": "/a/b", "order": "ascending"}],
        ]
    });
    check(
        &json!({"indexingPolicy": given}),
        &[
            ("/indexingPolicy/spatialIndexes", given["spatialIndexes"].clone()),
            ("/indexingPolicy/compositeIndexes", given["compositeIndexes"].clone()),
        ],
    );
    check(
        &json!({"indexingPolicy": {"compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "Descending"}]]}}),
        &[(
            "/indexingPolicy/compositeIndexes",
            json!([[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]),
        )],
    );
    check(
        &json!({"indexingPolicy": {"spatialIndexes": [{"path": "/location/?", "types": ["point"]}]}}),
        &[("/indexingPolicy/spatialIndexes", json!([{"path": "/location/?", "types": all}]))],
    );
    let area = json!({"xmin": 0, "ymin": -1.5, "xmax": 10, "ymax": 10});
    check(
        &json!({
            "geospatialConfig": {"type": "geometry"},
            "indexingPolicy": {"spatialIndexes": [{"path": "/region/?", "types": ["Polygon"], "boundingBox": area}]}
        }),
        &[
            ("/geospatialConfig", json!({"type": "Geometry"})),
            ("/indexingPolicy/spatialIndexes/0/boundingBox", area.clone()),
        ],
    );
}

#[test]
fn vectors() {
    let embedding = |path: &str, kind: &str, dimensions: u32, distance: &str| json!({"path": path, "dataType": kind, "dimensions": dimensions, "distanceFunction": distance});
    let policy = json!({"vectorEmbeddings": [
        embedding("/vector1", "float32", 256, "euclidean"),
        embedding("/vector2", "int8", 200, "dotproduct"),
        embedding("/vector3", "uint8", 400, "cosine"),
        embedding("/vector4", "float16", 4096, "euclidean"),
    ]});
    let indexes = json!([
        {"path": "/vector1", "type": "flat"},
        {"path": "/vector2", "type": "quantizedFlat", "quantizerType": "product", "quantizationByteSize": 8},
        {"path": "/vector3", "type": "diskANN", "quantizerType": "product", "quantizationByteSize": 8, "vectorIndexShardKey": ["/country/city"], "indexingSearchListSize": 50},
        {"path": "/vector4", "type": "diskANN", "quantizerType": "spherical", "indexingSearchListSize": 500},
    ]);
    check(
        &json!({"vectorEmbeddingPolicy": policy, "indexingPolicy": {"vectorIndexes": indexes}}),
        &[("/vectorEmbeddingPolicy", policy.clone()), ("/indexingPolicy/vectorIndexes", indexes.clone())],
    );
    check(
        &json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v"}]}}),
        &[("/vectorEmbeddingPolicy/vectorEmbeddings", json!([embedding("/v", "float32", 1536, "cosine")]))],
    );
    let mut sourced = embedding("/embedding", "float32", 1536, "cosine");
    sourced["embeddingSource"] = json!({
        "sourcePaths": ["/title", "/abstract"], "deploymentName": "small", "modelName": "small",
        "endpoint": "https://example.com", "authType": "Entra"
    });
    check_same(&json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [sourced]}}));
}

#[test]
fn full_text() {
    let policy = json!({"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/abstract", "language": "fr-FR"}, {"path": "/fts1/fts2"}]});
    check(
        &json!({"fullTextPolicy": policy, "indexingPolicy": {"fullTextIndexes": [{"path": "/abstract"}]}}),
        &[
            ("/fullTextPolicy", policy.clone()),
            ("/indexingPolicy/fullTextIndexes", json!([{"path": "/abstract"}])),
        ],
    );
    check(
        &json!({"fullTextPolicy": {"defaultLanguage": "en-US"}}),
        &[("/fullTextPolicy/defaultLanguage", json!("en-US"))],
    );
}

#[test]
fn computed_properties() {
    check_same(&json!({"computedProperties": [
        {"name": "cp_lower", "query": "SELECT VALUE LOWER(c.db_group) FROM c"},
        {"name": "cp_power", "query": "SELECT VALUE POWER(c.val, 2) FROM c"},
        {"name": "estimatedTax", "query": "select value c.salary * 0.2 from root as c"},
        {"name": "lowerLastName", "query": "SELECT VALUE LOWER(IS_DEFINED(c.lastName) ? c.lastName : c.parents[0].familyName) FROM c"},
        {"name": "words", "query": "SELECT VALUE CONCAT(c.order, ' where \\' join ', c[\"group\"], c.top) FROM c -- order by"},
        {"name": "object", "query": "SELECT VALUE {order: c.a, \"top\": c.b, limit: c.max} /* join */ FROM c"},
        {"name": "ts", "query": "SELECT VALUE r._ts FROM root r"},
    ]}));
}

#[test]
fn other_policies() {
    check_same(&json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a", "/b/c"]}, {"paths": ["/a"]}]}}));
    check_same(&json!({"defaultTtl": -1, "ttlPropertyPath": "/creationDate"}));
    check_same(&json!({"defaultTtl": 2_147_483_647}));
    assert_eq!(read(&json!({"defaultTtl": 10})).unwrap().default_ttl, Some(DefaultTtl::Seconds(10)));
    check_same(&json!({"analyticalStorageTtl": -1}));
    check_same(&json!({"changeFeedPolicy": {"retentionDuration": 10}}));
    let wins = |path: &str| json!({"mode": "LastWriterWins", "conflictResolutionPath": path, "conflictResolutionProcedure": ""});
    check_same(&json!({"conflictResolutionPolicy": wins("/lww")}));
    check(
        &json!({"conflictResolutionPolicy": {"mode": "lastWriterWins"}}),
        &[("/conflictResolutionPolicy", wins("/_ts"))],
    );
    check_same(
        &json!({"conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionPath": "", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s"}}),
    );
    let encrypted = |path: &str, key: &str, encryption: &str| json!({"path": path, "clientEncryptionKeyId": key, "encryptionType": encryption, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"});
    check_same(&json!({"clientEncryptionPolicy": {
        "includedPaths": [encrypted("/path1", "dek1", "Randomized"), encrypted("/path2", "dek2", "Deterministic")],
        "policyFormatVersion": 1
    }}));
    check_same(&json!({"clientEncryptionPolicy": {
        "includedPaths": [encrypted("/pk", "dek1", "Deterministic"), encrypted("/id", "dek2", "Deterministic")],
        "policyFormatVersion": 2
    }}));
}
