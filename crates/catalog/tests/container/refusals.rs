//! What is refused, with the fragments of the message that clients look for.

use super::{read, refused};
use astrarium_catalog::definition::container::ContainerDefinition;
use serde_json::{Value, json};

pub(super) const INVALID: &str = "One of the specified inputs is invalid";

pub(super) fn check(members: &Value, fragments: &[&str]) {
    refused(read(members), fragments, members);
}

pub(super) fn check_all<'a>(
    fragments: &[&str],
    make: impl Fn(Value) -> Value,
    values: impl IntoIterator<Item = Value> + 'a,
) {
    for value in values {
        check(&make(value), fragments);
    }
}

#[test]
fn bodies_and_names() {
    for body in
        [json!(null), json!([]), json!("c"), json!(1), json!({}), json!({"id": 1}), json!({"id": null})]
    {
        refused(ContainerDefinition::from_json(&body), &[INVALID], &body);
    }
    let name = "Ensure to provide a unique non-empty string less than '255' characters.";
    check_all(
        &[name],
        |id| json!({ "id": id }),
        [json!(""), json!("a/b"), json!("a "), json!("x".repeat(1041))],
    );
}

#[test]
fn partition_keys() {
    let key = |key: Value| json!({ "partitionKey": key });
    check_all(
        &[INVALID],
        key,
        [
            json!("/pk"),
            json!([]),
            json!({}),
            json!({"paths": "/pk"}),
            json!({"paths": []}),
            json!({"paths": [1]}),
        ],
    );
    let with = |member: &str, value: Value| {
        let mut key = json!({"paths": ["/pk"], "kind": "Hash"});
        key[member] = value;
        json!({ "partitionKey": key })
    };
    check_all(&[INVALID], |kind| with("kind", kind), [json!("Round"), json!(1)]);
    check_all(&[INVALID], |version| with("version", version), [json!(0), json!(3), json!("V3"), json!(1.5)]);
    check_all(&[INVALID], |flag| with("systemKey", flag), [json!(true), json!("true")]);
    let characters = "Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character";
    for path in ["/", "/id/", "/id/*", "/id/?", "/a[0]", "//a", "/\"a"] {
        check(&key(json!({"paths": [path]})), &[characters]);
    }
    check(
        &key(json!({"paths": ["id"]})),
        &["The partition key component definition path 'id' could not be accepted"],
    );
    let many = "Too many partition key paths";
    check(&key(json!({"paths": ["/id", "/pk", "/id2", "/pk2"], "kind": "MultiHash", "version": 2})), &[many]);
    check(&key(json!({"paths": ["/users", "/test"]})), &[many]);
    check(&key(json!({"paths": ["/a", "/\"a\""], "kind": "MultiHash", "version": 2})), &["twice"]);
    check(&key(json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1})), &["version 2"]);
}

#[test]
fn indexing_policies() {
    let policy = |policy: Value| json!({ "indexingPolicy": policy });
    check_all(
        &[INVALID],
        policy,
        [
            json!("consistent"),
            json!([]),
            json!({"indexingMode": "sometimes"}),
            json!({"indexingMode": 1}),
            json!({"automatic": "true"}),
            json!({"includedPaths": "/*"}),
            json!({"includedPaths": ["/*"]}),
            json!({"includedPaths": [{}]}),
            json!({"includedPaths": [{"path": 1}]}),
            json!({"includedPaths": [{"path": "/*", "indexes": {}}]}),
            json!({"includedPaths": [{"path": "/*", "indexes": [{"kind": "Tree"}]}]}),
            json!({"includedPaths": [{"path": "/*", "indexes": [{"kind": "Range", "precision": "x"}]}]}),
            json!({"excludedPaths": {"path": "/*"}}),
            json!({"compositeIndexes": {}}),
            json!({"compositeIndexes": [{"path": "/a"}]}),
            json!({"compositeIndexes": [["/a", "/b"]]}),
            json!({"compositeIndexes": [[{"path": "/a", "order": "up"}, {"path": "/b"}]]}),
            json!({"spatialIndexes": [1]}),
            json!({"spatialIndexes": [{"path": "/a/*", "types": ["Circle"]}]}),
            json!({"spatialIndexes": [{"path": "/a/*", "types": "Point"}]}),
            json!({"vectorIndexes": [1]}),
            json!({"fullTextIndexes": [{"not_path": "abstract"}]}),
        ],
    );
    let path = "could not be accepted, failed near position";
    for text in ["expiration", "/expiration", "/a/*/b/?", "/a-b/?", "/a/[]", "/?"] {
        check(
            &policy(json!({"includedPaths": [{"path": "/*"}, {"path": text}]})),
            &["The indexing path", path],
        );
        check(&policy(json!({"excludedPaths": [{"path": text}]})), &["The indexing path", path]);
    }
    check(&policy(json!({"includedPaths": [{"path": "/a/?"}]})), &["mandatory indexing path"]);
    check(
        &policy(
            json!({"includedPaths": [{"path": "/*"}, {"path": "/a/?"}], "excludedPaths": [{"path": "/\"a\"/?"}]}),
        ),
        &["in both includedPaths and excludedPaths"],
    );
    check(&policy(json!({"includedPaths": [{"path": "/*"}, {"path": "/"}]})), &["twice in includedPaths"]);
    check(
        &policy(json!({"excludedPaths": [{"path": "/a/?"}, {"path": "/a/?"}]})),
        &["twice in excludedPaths"],
    );
    let contradiction = "contradicts itself";
    check(&policy(json!({"indexingMode": "none", "automatic": true})), &[contradiction, "automatic"]);
    check(
        &policy(json!({"indexingMode": "none", "includedPaths": [{"path": "/*"}]})),
        &[contradiction, "includedPaths"],
    );
    check(
        &policy(json!({"indexingMode": "none", "spatialIndexes": [{"path": "/a/*", "types": ["Point"]}]})),
        &[contradiction, "spatial"],
    );
    for name in ["includedPaths", "excludedPaths"] {
        let list: Vec<Value> = (0..1_502).map(|number| json!({"path": format!("/p{number}/?")})).collect();
        check(&policy(json!({ name: list })), &["Too many", name]);
    }
}

#[test]
fn composite_and_spatial_indexes() {
    let composite = |paths: &[&str]| {
        let paths: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
        json!({"indexingPolicy": {"compositeIndexes": [paths]}})
    };
    check(&composite(&[]), &["2 to 8 paths"]);
    check(&composite(&["/a"]), &["2 to 8 paths"]);
    check(&composite(&["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i"]), &["2 to 8 paths"]);
    check(&composite(&["/a", "/\"a\""]), &["twice"]);
    for path in ["/a/?", "/a/*", "/*", "/a/[]/b", "a", ""] {
        check(&composite(&["/x", path]), &["The composite index path", "could not be accepted"]);
    }
    let pair = json!([{"path": "/a"}, {"path": "/b"}]);
    check(
        &json!({"indexingPolicy": {"compositeIndexes": vec![pair; 51]}}),
        &["Too many paths in composite indexes"],
    );

    let spatial = |config: &str, index: Value| json!({"geospatialConfig": {"type": config}, "indexingPolicy": {"spatialIndexes": [index]}});
    let area = |xmin: Value, xmax: Value| json!({"xmin": xmin, "ymin": 0, "xmax": xmax, "ymax": 10});
    check(
        &spatial("Geometry", json!({"path": "/location/?", "types": ["Point"]})),
        &["boundingBox", "Geometry"],
    );
    check(
        &spatial(
            "Geography",
            json!({"path": "/location/?", "types": ["Point"], "boundingBox": area(json!(0), json!(1))}),
        ),
        &["boundingBox", "Geography"],
    );
    for bad in [
        area(json!(1), json!(1)),
        area(json!(2), json!(1)),
        area(json!("0"), json!(1)),
        json!({}),
        json!([0, 0, 1, 1]),
    ] {
        check(
            &spatial("Geometry", json!({"path": "/l/?", "types": ["Point"], "boundingBox": bad})),
            &[INVALID],
        );
    }
    check(
        &spatial("Geography", json!({"path": "/address/spatial/*"})),
        &[
            "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path",
        ],
    );
    let twice = json!([{"path": "/a/*", "types": ["Point"]}, {"path": "/a/*", "types": ["Polygon"]}]);
    check(&json!({"indexingPolicy": {"spatialIndexes": twice}}), &["twice"]);
    check(&json!({"geospatialConfig": {"type": "Flat"}}), &[INVALID]);
}

#[test]
fn unique_keys_and_lifetimes() {
    let keys = |keys: Value| json!({"uniqueKeyPolicy": {"uniqueKeys": keys}});
    check_all(
        &[INVALID],
        keys,
        [
            json!({}),
            json!(["/a"]),
            json!([{}]),
            json!([{"paths": []}]),
            json!([{"paths": "/a"}]),
            json!([{"paths": [1]}]),
        ],
    );
    check(&json!({"uniqueKeyPolicy": []}), &[INVALID]);
    for path in ["a", "/a/*", "/a/?", "/a/[]/b", "/a[0]", "/"] {
        check(&keys(json!([{"paths": [path]}])), &["The unique key path", "could not be accepted"]);
    }
    let paths: Vec<String> = (0..17).map(|number| format!("/p{number}")).collect();
    check(&keys(json!([{ "paths": paths }])), &["Too many paths in a unique key: 17"]);
    let many: Vec<Value> = paths[..11].iter().map(|path| json!({"paths": [path]})).collect();
    check(&keys(json!(many)), &["Too many unique keys: 11"]);
    check(&keys(json!([{"paths": ["/a", "/a"]}])), &["same path twice"]);
    check(&keys(json!([{"paths": ["/a", "/b"]}, {"paths": ["/b", "/a"]}])), &["same paths"]);

    for ttl in [0, -10, i64::from(i32::MAX) + 1] {
        check(&json!({"defaultTtl": ttl}), &[&format!("The defaultTtl {ttl} is invalid")]);
    }
    check_all(
        &[INVALID],
        |ttl| json!({"defaultTtl": ttl}),
        [json!("10"), json!(1.5), json!(true), json!({})],
    );
    check(&json!({"ttlPropertyPath": "/creationDate"}), &["needs a defaultTtl"]);
    check(&json!({"ttlPropertyPath": "creationDate", "defaultTtl": 1}), &["ttlPropertyPath"]);
    check(&json!({"analyticalStorageTtl": -2}), &["analyticalStorageTtl"]);
    for minutes in [json!(-1), json!("10"), json!(u64::MAX), json!(0.5)] {
        check(&json!({"changeFeedPolicy": {"retentionDuration": minutes}}), &[INVALID]);
    }
}

#[test]
fn conflicts_encryption_and_unsupported_members() {
    let conflicts = |policy: Value| json!({ "conflictResolutionPolicy": policy });
    check_all(
        &[INVALID],
        conflicts,
        [json!("Custom"), json!({"mode": "First"}), json!({"conflictResolutionPath": 1})],
    );
    check(
        &conflicts(json!({"mode": "LastWriterWins", "conflictResolutionProcedure": "x"})),
        &["mode Custom"],
    );
    check(&conflicts(json!({"mode": "Custom", "conflictResolutionPath": "/a"})), &["mode LastWriterWins"]);
    check(
        &conflicts(json!({"mode": "LastWriterWins", "conflictResolutionPath": "a"})),
        &["conflictResolutionPath 'a'"],
    );

    let encryption = |version: Value, member: &str, value: Value| {
        let mut path = json!({"path": "/p", "clientEncryptionKeyId": "k", "encryptionType": "Randomized", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"});
        path[member] = value;
        json!({"clientEncryptionPolicy": {"includedPaths": [path], "policyFormatVersion": version}})
    };
    for (member, value) in [
        ("path", json!("/a/b")),
        ("path", json!("p")),
        ("path", json!(null)),
        ("clientEncryptionKeyId", json!(1)),
        ("encryptionType", json!("Plaintext")),
        ("encryptionType", json!(null)),
        ("encryptionAlgorithm", json!("ROT13")),
    ] {
        check(&encryption(json!(1), member, value), &[INVALID]);
    }
    check(&encryption(json!(3), "path", json!("/p")), &[INVALID]);
    check(
        &encryption(json!(1), "path", json!("/pk")),
        &[
            "Path: /pk which is part of the partition key cannot be encrypted with PolicyFormatVersion: 1. Please use PolicyFormatVersion: 2.",
        ],
    );
    check(
        &encryption(json!(1), "path", json!("/id")),
        &["Path: /id cannot be encrypted with PolicyFormatVersion: 1."],
    );
    check(&encryption(json!(2), "path", json!("/id")), &["Path: /id has to be encrypted with Deterministic"]);
    let mut twice = encryption(json!(1), "path", json!("/p"));
    let path = twice["clientEncryptionPolicy"]["includedPaths"][0].clone();
    twice["clientEncryptionPolicy"]["includedPaths"] = json!([path, path]);
    check(&twice, &["Duplicate Path: /p"]);

    for name in ["materializedViewDefinition", "dataMaskingPolicy"] {
        check(&json!({ name: {} }), &["is not supported", name]);
    }
}
