//! What is refused of vectors, prose and computed properties.

use super::refusals::{INVALID, check, check_all};
use serde_json::{Value, json};

#[test]
fn vector_indexes() {
    let embedding = |path: &str, dimensions: u32| json!({"path": path, "dataType": "float32", "dimensions": dimensions, "distanceFunction": "euclidean"});
    let with = |index: Value| {
        json!({
            "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding("/vector1", 256), embedding("/vector2", 200), embedding("/wide", 550)]},
            "indexingPolicy": {"vectorIndexes": [index]}
        })
    };
    let alone = json!({"indexingPolicy": {"vectorIndexes": [{"path": "/vector1", "type": "flat"}]}});
    check(&alone, &["The Vector Indexing Policy's path::/vector1 not matching in Embedding's path."]);
    check(&with(json!({"path": "/vector3", "type": "flat"})), &["vector3 not matching in Embedding's path"]);
    check(&with(json!({"path": "/vector1", "type": "notFlat"})), &["Index Type::notFlat is invalid"]);
    check(&with(json!({"path": "/vector1"})), &[INVALID]);
    check(
        &with(json!({"path": "vector1", "type": "flat"})),
        &["The Vector Indexing Policy has an invalid Path: vector1."],
    );
    check(
        &with(json!({"path": "/vector1", "type": "quantizedFlat", "quantizationByteSize": 0})),
        &[
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
        ],
    );
    check(
        &with(json!({"path": "/wide", "type": "quantizedFlat", "quantizationByteSize": 513})),
        &[
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 513 is out of range.",
            "between 1 and 512",
        ],
    );
    for size in [5, -1, 501] {
        let fragment = format!(
            "IndexingSearchListSize value :: {size} is out of range. The allowed range is between 25 and 500."
        );
        check(
            &with(json!({"path": "/vector1", "type": "diskANN", "indexingSearchListSize": size})),
            &[&fragment],
        );
    }
    let shards =
        |key: Value| with(json!({"path": "/vector2", "type": "diskANN", "vectorIndexShardKey": key}));
    check(&shards(json!(["country"])), &["The Vector Indexing Policy has an invalid Shard Path: country."]);
    check(
        &shards(json!(["/country", "/city", "/zipcode"])),
        &["The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1."],
    );
    check(&shards(json!("/country")), &[INVALID]);
    check(&with(json!({"path": "/vector1", "type": "diskANN", "quantizerType": "cubic"})), &[INVALID]);
    check(&with(json!({"path": "/wide", "type": "flat"})), &["505 dimensions"]);
    let mut twice = with(json!({"path": "/vector2", "type": "flat"}));
    twice["indexingPolicy"]["vectorIndexes"] =
        json!([{"path": "/vector2", "type": "flat"}, {"path": "/vector2", "type": "diskANN"}]);
    check(&twice, &["Duplicate Path :/vector2 found in Vector Indexing Policy."]);
}

#[test]
fn vector_embeddings() {
    let with = |member: &str, value: Value| {
        let mut embedding = json!({"path": "/vector1", "dataType": "float32", "dimensions": 256, "distanceFunction": "euclidean"});
        embedding[member] = value;
        json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]}})
    };
    check(&with("dataType", json!("float33")), &["Vector Embedding Policy has an invalid DataType"]);
    check(
        &with("dimensions", json!(8000)),
        &["Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value"],
    );
    check(&with("dimensions", json!(-1)), &["The Vector Embedding Policy has Dimensions:-1"]);
    check(&with("dimensions", json!(0)), &["The Vector Embedding Policy has Dimensions:0"]);
    check(&with("dimensions", json!(i64::MAX)), &["more than the maximum supported value"]);
    check(
        &with("distanceFunction", json!("handMeasured")),
        &["The Vector Embedding Policy has an invalid DistanceFunction:handMeasured"],
    );
    check(&with("path", json!("vector1")), &["The Vector Embedding Policy has an invalid Path: vector1"]);
    for (member, value) in [
        ("path", json!(1)),
        ("dataType", json!(32)),
        ("dimensions", json!("256")),
        ("embeddingSource", json!("x")),
    ] {
        check(&with(member, value), &[INVALID]);
    }
    let source = |member: &str, value: Value| {
        let mut source = json!({"sourcePaths": ["/title"], "deploymentName": "d", "endpoint": "https://e", "authType": "ApiKey"});
        source[member] = value;
        with("embeddingSource", source)
    };
    check(
        &source("authType", json!("NotAnAuthType")),
        &["The auth type provided in the embedding source of vector policy is invalid."],
    );
    for (member, value) in
        [("sourcePaths", json!([])), ("endpoint", json!(null)), ("deploymentName", json!(null))]
    {
        check(&source(member, value), &[INVALID]);
    }
    let twice = json!({"vectorEmbeddings": [{"path": "/vector2"}, {"path": "/vector2"}]});
    check(
        &json!({"vectorEmbeddingPolicy": twice}),
        &["Duplicate Path :/vector2 found in Vector Embedding Policy."],
    );
    check_all(
        &[INVALID],
        |policy| json!({"vectorEmbeddingPolicy": policy}),
        [json!([]), json!({"vectorEmbeddings": {}})],
    );
}

#[test]
fn full_text() {
    let policy = |default: Value, path: Value| json!({"fullTextPolicy": {"defaultLanguage": default, "fullTextPaths": [path]}});
    check(
        &policy(json!("en-US"), json!({"path": "abstract", "language": "en-US"})),
        &["The Full Text Policy contains an invalid Path: abstract"],
    );
    check(
        &policy(json!("spa-SPA"), json!({"path": "/abstract"})),
        &["The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: 'en-US'"],
    );
    check(
        &policy(json!("en-US"), json!({"path": "/abstract", "language": ""})),
        &["The Full Text Policy contains an unsupported language . Supported languages are:"],
    );
    let syntax = "The Full Text Policy contains invalid syntax.";
    check(&policy(json!("en-US"), json!({"path": "/abstract", "language": null})), &[syntax]);
    check(&policy(json!(null), json!({"path": "/abstract"})), &[syntax]);
    check(&policy(json!("en-US"), json!({"language": "en-US"})), &[INVALID]);
    check(
        &json!({"fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/a"}, {"path": "/a"}]}}),
        &["Duplicate"],
    );
    let index = |path: &str| {
        let mut body = policy(json!("en-US"), json!({"path": "/abstract"}));
        body["indexingPolicy"] = json!({"fullTextIndexes": [{"path": path}]});
        body
    };
    check(&index("/path"), &["path::/path is not in the Full Text Policy"]);
    check(&index("abstract"), &["The Full Text Indexing Policy contains an invalid Path: abstract"]);
}

#[test]
fn computed_properties() {
    let query = "SELECT VALUE LOWER(c.name) FROM c";
    let list = |list: Value| json!({ "computedProperties": list });
    let one = |name: &str, query: &str| json!({"computedProperties": [{"name": name, "query": query}]});
    check_all(
        &[INVALID],
        list,
        [
            json!({"name": "a", "query": query}),
            json!([1]),
            json!([{"query": query}]),
            json!([{"name": "a"}]),
            json!([{"name": 1, "query": query}]),
        ],
    );
    check(&one("", query), &["Computed property 'name' is either empty or unspecified."]);
    check(&one("a", ""), &["Computed property 'query' is either empty or unspecified."]);
    check(&one("id", query), &["The system property name 'id' cannot be used as a computed property name."]);
    check(&one("_ts", query), &["The system property name '_ts' cannot be used"]);
    check(
        &list(json!([{"name": "lowerName", "query": query}, {"name": "lowerName", "query": query}])),
        &["Computed property name 'lowerName' cannot be used in multiple definitions."],
    );
    let mut spatial = one("spatial", query);
    spatial["indexingPolicy"] = json!({"spatialIndexes": [{"path": "/spatial/*", "types": ["Point"]}]});
    check(
        &spatial,
        &[
            "Computed property 'spatial' at index (0) has a spatial index. Remove the spatial index on this path.",
        ],
    );
    check(
        &one("a", "SELECT LOWER(c.name) FROM c"),
        &[
            "Required VALUE expression missing from computed property query 'SELECT LOWER(c.name) FROM c' at index (0).",
        ],
    );
    for malformed in [
        "x",
        "LOWER(c.name)",
        "SELECT VALUE c.a",
        "SELECT VALUE FROM c",
        "SELECT VALUE c.a FROM c IN c.b",
        "SELECT VALUE 'a FROM c",
        "SELECT VALUE c.a /* FROM c",
        "SELECT VALUE c.a FROM c.b",
        "SELECT VALUE c.a FROM",
    ] {
        check(&one("a", malformed), &["Computed property at index (0) has a malformed query", malformed]);
    }
    for (forbidden, word) in [
        ("SELECT VALUE c.a FROM c WHERE c.b = 1", "WHERE"),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", "JOIN"),
        ("SELECT VALUE c.a FROM c ORDER BY c.a", "ORDER"),
        ("SELECT VALUE c.a FROM c GROUP BY c.a", "GROUP"),
        ("SELECT TOP 1 VALUE c.a FROM c", "TOP"),
        ("SELECT DISTINCT VALUE c.a FROM c", "DISTINCT"),
        ("SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1", "OFFSET"),
        ("SELECT VALUE (SELECT VALUE c.a) FROM c", "SELECT"),
        ("SELECT VALUE count(1) FROM c", "count"),
        ("SELECT VALUE udf.f(c.a) FROM c", "udf"),
        ("SELECT VALUE GetCurrentDateTime() FROM c", "GetCurrentDateTime"),
        ("SELECT VALUE ST_DISTANCE(c.a, c.b) FROM c", "ST_DISTANCE"),
        ("SELECT VALUE c.a = @p FROM c", "parameters"),
    ] {
        check(&one("a", forbidden), &["Computed property 'a' at index (0) cannot use", word]);
    }
    for reference in ["SELECT VALUE c.a FROM c", "SELECT VALUE r['a'] FROM root r"] {
        check(
            &list(json!([{"name": "a", "query": query}, {"name": "b", "query": reference}])),
            &["Computed property 'b' at index (1) cannot reference the computed property 'a'."],
        );
    }
    let many: Vec<Value> =
        (0..21).map(|number| json!({"name": format!("p{number}"), "query": query})).collect();
    check(&list(json!(many)), &["Too many computed properties: 21"]);
}
