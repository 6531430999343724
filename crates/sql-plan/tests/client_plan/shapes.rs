//! Every shape of query that is not a hybrid search: what is sent and how it is merged.

use super::{FEATURES, ask, container, info};
use serde_json::{Value, json};

/// A container with a partition key, and with a policy for the vectors at `/v`.
fn check_all(cases: &[(&str, Value)]) {
    let container = container(&json!({
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"},
            {"path": "/w", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine"}
        ]}
    }));
    let parameters = json!([
        {"name": "@few", "value": 3}, {"name": "@many", "value": 40}, {"name": "@name", "value": "Ada"}
    ]);
    for (query, different) in cases {
        let plan = ask(query, &parameters, &container, Some(FEATURES));
        let plan = plan.unwrap_or_else(|error| panic!("{query} is refused: {error:?}"));
        assert_eq!(plan["queryInfo"], info(different), "{query}");
    }
}

#[test]
fn answers_have_the_members_in_the_order_of_the_service() {
    let plan = ask("SELECT * FROM c", &Value::Null, &super::keyed("/pk"), None).unwrap();
    let expected = r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":[],"groupByAliases":[],"aggregates":[],"groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":false,"dCountInfo":null,"hasNonStreamingOrderBy":false},"hybridSearchQueryInfo":null,"queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]}"#;
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn what_partitions_answer_for_themselves_is_sent_as_it_is() {
    check_all(&[
        ("SELECT * FROM c", json!({})),
        ("SELECT VALUE c.a + 1 FROM c WHERE c.b = @name", json!({"hasSelectValue": true})),
        ("SELECT c.a, x FROM c JOIN (SELECT VALUE t FROM t IN c.tags GROUP BY t) x", json!({})),
        ("SELECT ARRAY(SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c", json!({})),
        ("SELECT VALUE COUNT(1)", json!({"hasSelectValue": true})),
        ("SELECT DISTINCT TOP 2 5", json!({})),
    ]);
}

#[test]
fn limits_are_applied_after_merging() {
    check_all(&[
        ("SELECT TOP 5 * FROM c", json!({"top": 5})),
        ("SELECT TOP @few c.a FROM c WHERE c.pk = 1", json!({"top": 3})),
        (
            "SELECT c.a FROM c WHERE c.b > 1 OFFSET 10 LIMIT 5",
            json!({"offset": 10, "limit": 5,
                "rewrittenQuery": "SELECT c.a\nFROM c\nWHERE (c.b > 1)\nOFFSET 0 LIMIT 15"}),
        ),
        (
            "SELECT * FROM c OFFSET @few LIMIT @many",
            json!({"offset": 3, "limit": 40, "rewrittenQuery": "SELECT *\nFROM c\nOFFSET 0 LIMIT 43"}),
        ),
        (
            "SELECT * FROM c OFFSET 4294967295 LIMIT 10",
            json!({"offset": 4_294_967_295_u64, "limit": 10,
                "rewrittenQuery": "SELECT *\nFROM c\nOFFSET 0 LIMIT 4294967295"}),
        ),
        ("SELECT * FROM c WHERE c.pk = 'a' OFFSET 10 LIMIT 5", json!({})),
        (
            "SELECT * FROM c WHERE c.pk IN ('a', 'b') OFFSET 1 LIMIT 2",
            json!({"offset": 1, "limit": 2,
                "rewrittenQuery": "SELECT *\nFROM c\nWHERE (c.pk IN (\"a\", \"b\"))\nOFFSET 0 LIMIT 3"}),
        ),
    ]);
}

#[test]
fn rows_to_order_bring_their_keys() {
    const FILTER: &str = "({documentdb-formattableorderbyquery-filter})";
    let ordered = |text: &str| text.replace("FILTER", FILTER);
    check_all(&[
        (
            "SELECT * FROM root r ORDER BY r.a",
            json!({"orderBy": ["Ascending"], "orderByExpressions": ["r.a"], "rewrittenQuery": ordered(
                "SELECT r._rid, [{\"item\": r.a}] AS orderByItems, r AS payload\nFROM root AS r\n\
                 WHERE FILTER\nORDER BY r.a")}),
        ),
        (
            "SELECT c.a, c.b + 1, c['odd key'] FROM c WHERE c.ok ORDER BY c.x DESC, c[\"y z\"] ASC",
            json!({"orderBy": ["Descending", "Ascending"], "orderByExpressions": ["c.x", "c[\"y z\"]"],
                "rewrittenQuery": ordered("SELECT c._rid, [{\"item\": c.x}, {\"item\": c[\"y z\"]}] AS orderByItems, \
                {\"a\": c.a, \"$1\": (c.b + 1), \"odd key\": c[\"odd key\"]} AS payload\nFROM c\n\
                WHERE (c.ok AND FILTER)\nORDER BY c.x DESC, c[\"y z\"] ASC")}),
        ),
        (
            "SELECT VALUE c.n FROM c WHERE c.a = 1 AND c.b = 2 ORDER BY c.x",
            json!({"hasSelectValue": true, "orderBy": ["Ascending"], "orderByExpressions": ["c.x"],
                "rewrittenQuery": ordered("SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c.n AS payload\nFROM c\n\
                WHERE ((((c.a = 1) AND (c.b = 2)) AND FILTER) AND IS_DEFINED(c.n))\nORDER BY c.x")}),
        ),
        (
            "SELECT TOP @few * FROM c ORDER BY c.x",
            json!({"top": 3, "orderBy": ["Ascending"], "orderByExpressions": ["c.x"], "rewrittenQuery": ordered(
                "SELECT TOP 3 c._rid, [{\"item\": c.x}] AS orderByItems, c AS payload\nFROM c\nWHERE FILTER\n\
                 ORDER BY c.x")}),
        ),
        (
            "SELECT * FROM c WHERE c.pk = 1 ORDER BY c.x OFFSET 2 LIMIT 3",
            json!({"offset": 2, "limit": 3, "orderBy": ["Ascending"], "orderByExpressions": ["c.x"],
                "rewrittenQuery": ordered("SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c AS payload\nFROM c\n\
                WHERE ((c.pk = 1) AND FILTER)\nORDER BY c.x\nOFFSET 0 LIMIT 5")}),
        ),
        (
            "SELECT t FROM c JOIN t IN c.tags ORDER BY c.x",
            json!({"orderBy": ["Ascending"], "orderByExpressions": ["c.x"], "rewrittenQuery": ordered(
                "SELECT c._rid, [{\"item\": c.x}] AS orderByItems, {\"t\": t} AS payload\nFROM c\n\
                 JOIN t IN c.tags\nWHERE FILTER\nORDER BY c.x")}),
        ),
    ]);
}

#[test]
fn a_document_without_a_name_gets_one_to_be_ordered() {
    let expected = |from: &str, row: &str, document: &str| {
        json!({"orderBy": ["Ascending"], "orderByExpressions": [format!("{row}.x")], "rewrittenQuery": format!(
            "SELECT {document}._rid, [{{\"item\": {row}.x}}] AS orderByItems, {row} AS payload\nFROM {from}\n\
             WHERE ({{documentdb-formattableorderbyquery-filter}})\nORDER BY {row}.x")})
    };
    check_all(&[
        ("SELECT * FROM t IN c.tags ORDER BY t.x", expected("c\nJOIN t IN c.tags", "t", "c")),
        ("SELECT * FROM c IN c.tags ORDER BY c.x", expected("root\nJOIN c IN root.tags", "c", "root")),
        ("SELECT * FROM c.a.b ORDER BY b.x", expected("c\nJOIN (\n    SELECT VALUE c.a.b\n) AS b", "b", "c")),
    ]);
}

#[test]
fn vectors_are_sorted_by_the_client() {
    let expected = |direction: &str, key: &str| {
        json!({"top": 5, "orderBy": [direction], "orderByExpressions": [key], "hasNonStreamingOrderBy": true,
            "rewrittenQuery": format!("SELECT TOP 5 c._rid, [{{\"item\": {key}}}] AS orderByItems, c AS payload\n\
            FROM c\nWHERE ({{documentdb-formattableorderbyquery-filter}})\nORDER BY {key}")})
    };
    check_all(&[
        (
            "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.v, [1, 2])",
            expected("Ascending", "VectorDistance(c.v, [1, 2])"),
        ),
        (
            "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.w, [1, 2])",
            expected("Descending", "VectorDistance(c.w, [1, 2])"),
        ),
        (
            "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.w, [1, 2], true, {'distanceFunction': 'euclidean'})",
            expected("Ascending", "VectorDistance(c.w, [1, 2], true, {\"distanceFunction\": \"euclidean\"})"),
        ),
    ]);
}

#[test]
fn duplicates_are_removed_by_the_client() {
    let ordered = |select: &str, key: &str| {
        format!(
            "SELECT c._rid, [{{\"item\": {key}}}] AS orderByItems, {select} AS payload\nFROM c\n\
             WHERE ({{documentdb-formattableorderbyquery-filter}})\nORDER BY {key}"
        )
    };
    check_all(&[
        ("SELECT DISTINCT c.a FROM c", json!({"distinctType": "Unordered"})),
        (
            "SELECT DISTINCT TOP 5 VALUE c.a FROM c",
            json!({"distinctType": "Unordered", "top": 5, "hasSelectValue": true,
                "rewrittenQuery": "SELECT DISTINCT VALUE c.a\nFROM c"}),
        ),
        (
            "SELECT DISTINCT * FROM c WHERE c.pk = 5 OFFSET 1 LIMIT 2",
            json!({"distinctType": "Unordered", "offset": 1, "limit": 2,
                "rewrittenQuery": "SELECT DISTINCT *\nFROM c\nWHERE (c.pk = 5)"}),
        ),
        (
            "SELECT DISTINCT TOP 5 c.a FROM c ORDER BY c.a",
            json!({"distinctType": "Ordered", "top": 5, "orderBy": ["Ascending"], "orderByExpressions": ["c.a"],
                "rewrittenQuery": ordered("{\"a\": c.a}", "c.a")}),
        ),
        (
            "SELECT DISTINCT c.a FROM c ORDER BY c.b OFFSET 1 LIMIT 2",
            json!({"distinctType": "Unordered", "offset": 1, "limit": 2, "orderBy": ["Ascending"],
                "orderByExpressions": ["c.b"], "rewrittenQuery": ordered("{\"a\": c.a}", "c.b")}),
        ),
    ]);
}

#[test]
fn distinct_rows_are_counted_by_the_client() {
    let counted = |alias: &str, value: bool, rows: &str| {
        json!({"distinctType": "Unordered", "dCountInfo": {"dCountAlias": alias}, "hasSelectValue": value,
            "rewrittenQuery": rows})
    };
    check_all(&[
        (
            "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.k FROM c)",
            counted("", true, "SELECT DISTINCT VALUE c.k\nFROM c"),
        ),
        (
            "SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a, c.b FROM c WHERE c.pk = 1) AS d",
            counted("n", false, "SELECT DISTINCT c.a, c.b\nFROM c\nWHERE (c.pk = 1)"),
        ),
        (
            "SELECT COUNT(d) FROM (SELECT DISTINCT VALUE c.k FROM c) d",
            counted("$1", false, "SELECT DISTINCT VALUE c.k\nFROM c"),
        ),
    ]);
}

#[test]
fn a_single_aggregate_comes_in_parts() {
    let one = |name: &str, part: &str| {
        json!({"hasSelectValue": true, "aggregates": [name],
            "rewrittenQuery": format!("SELECT VALUE [{part}]\nFROM c")})
    };
    check_all(&[
        ("SELECT VALUE COUNT(1) FROM c", one("Count", "{\"item\": COUNT(1)}")),
        ("SELECT VALUE sum(c.a) FROM c", one("Sum", "{\"item\": sum(c.a)}")),
        ("SELECT VALUE CountIf(c.a > 1) FROM c", one("CountIf", "{\"item\": CountIf((c.a > 1))}")),
        ("SELECT VALUE MAKELIST(c.a) FROM c", one("MakeList", "{\"item\": MAKELIST(c.a)}")),
        ("SELECT VALUE MAKESET(c.a) FROM c", one("MakeSet", "{\"item\": MAKESET(c.a)}")),
        (
            "SELECT VALUE AVG(c.a * 2) FROM c",
            one("Average", "{\"item\": {\"sum\": SUM((c.a * 2)), \"count\": COUNT((c.a * 2))}}"),
        ),
        (
            "SELECT VALUE MIN(c.a) FROM c",
            one("Min", "{\"item\": MIN(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": COUNT(c.a)}}"),
        ),
        (
            "SELECT VALUE Max(c.a) FROM c",
            one("Max", "{\"item\": Max(c.a), \"item2\": {\"max\": Max(c.a), \"count\": COUNT(c.a)}}"),
        ),
        (
            "SELECT TOP 1 VALUE COUNT(1) FROM c WHERE c.a = @name ORDER BY c.b",
            json!({"top": 1, "hasSelectValue": true, "aggregates": ["Count"], "rewrittenQuery":
                "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c\nWHERE (c.a = @name)\nORDER BY c.b"}),
        ),
        (
            "SELECT DISTINCT VALUE SUM(c.a) FROM c WHERE c.pk = 1 OFFSET 0 LIMIT 1",
            json!({"distinctType": "Unordered", "offset": 0, "limit": 1, "hasSelectValue": true,
                "aggregates": ["Sum"],
                "rewrittenQuery": "SELECT VALUE [{\"item\": SUM(c.a)}]\nFROM c\nWHERE (c.pk = 1)"}),
        ),
    ]);
}

#[test]
fn a_list_of_aggregates_comes_as_one_group() {
    check_all(&[(
        "SELECT COUNT(1) AS n, AVG(c.a), 'x' AS kind, MAX(c.b) FROM c",
        json!({"groupByAliases": ["n", "$1", "kind", "$2"],
            "groupByAliasToAggregateType": {"n": "Count", "$1": "Average", "kind": null, "$2": "Max"},
            "rewrittenQuery": "SELECT {\"n\": {\"item\": COUNT(1)}, \
                \"$1\": {\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}, \"kind\": \"x\", \
                \"$2\": {\"item\": MAX(c.b), \"item2\": {\"max\": MAX(c.b), \"count\": COUNT(c.b)}}} AS payload\nFROM c"}),
    )]);
}

#[test]
fn groups_bring_their_keys() {
    check_all(&[
        (
            "SELECT c.k, SUM(c.n) AS s, UPPER(c.k) FROM c WHERE c.n > 0 GROUP BY c.k, c.l",
            json!({"groupByExpressions": ["c.k", "c.l"], "groupByAliases": ["k", "s", "$1"],
                "groupByAliasToAggregateType": {"k": null, "s": "Sum", "$1": null},
                "rewrittenQuery": "SELECT [{\"item\": c.k}, {\"item\": c.l}] AS groupByItems, \
                    {\"k\": c.k, \"s\": {\"item\": SUM(c.n)}, \"$1\": UPPER(c.k)} AS payload\nFROM c\n\
                    WHERE (c.n > 0)\nGROUP BY c.k, c.l"}),
        ),
        (
            "SELECT VALUE c.k FROM c GROUP BY c.k",
            json!({"hasSelectValue": true, "groupByExpressions": ["c.k"], "rewrittenQuery":
                "SELECT [{\"item\": c.k}] AS groupByItems, c.k AS payload\nFROM c\nGROUP BY c.k"}),
        ),
        (
            "SELECT TOP 2 VALUE MIN(c.n) FROM c GROUP BY LOWER(c.k)",
            json!({"top": 2, "hasSelectValue": true, "groupByExpressions": ["LOWER(c.k)"], "aggregates": ["Min"],
                "rewrittenQuery": "SELECT [{\"item\": LOWER(c.k)}] AS groupByItems, [{\"item\": MIN(c.n), \
                    \"item2\": {\"min\": MIN(c.n), \"count\": COUNT(c.n)}}] AS payload\nFROM c\nGROUP BY LOWER(c.k)"}),
        ),
        (
            "SELECT c.k FROM c WHERE c.pk = 5 GROUP BY c.k ORDER BY c.k OFFSET 1 LIMIT 2",
            json!({"offset": 1, "limit": 2, "groupByExpressions": ["c.k"], "groupByAliases": ["k"],
                "groupByAliasToAggregateType": {"k": null}, "rewrittenQuery": "SELECT [{\"item\": c.k}] AS groupByItems, \
                    {\"k\": c.k} AS payload\nFROM c\nWHERE (c.pk = 5)\nGROUP BY c.k\nORDER BY c.k"}),
        ),
        (
            "SELECT DISTINCT c.k FROM c GROUP BY c.k",
            json!({"distinctType": "Unordered", "groupByExpressions": ["c.k"], "groupByAliases": ["k"],
                "groupByAliasToAggregateType": {"k": null}, "rewrittenQuery":
                "SELECT [{\"item\": c.k}] AS groupByItems, {\"k\": c.k} AS payload\nFROM c\nGROUP BY c.k"}),
        ),
        (
            "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.k",
            json!({"hasSelectValue": true, "groupByExpressions": ["c.k"], "aggregates": ["Count"], "rewrittenQuery":
                "SELECT [{\"item\": c.k}] AS groupByItems, [{\"item\": COUNT(1)}] AS payload\nFROM c\nGROUP BY c.k"}),
        ),
    ]);
}
