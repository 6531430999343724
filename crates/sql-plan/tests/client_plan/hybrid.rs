//! ORDER BY RANK: statistics, one query per score, weights and limits.

use super::{FEATURES, ask, info, keyed};
use serde_json::{Value, json};

const SKIP: &str = "HybridSearchSkipOrderByRewrite";

/// The score of a text on one partition, as the service writes it.
fn score(text: &str, terms: &str, place: usize) -> String {
    format!(
        "_FullTextScore({text}, [{terms}], {{documentdb-formattablehybridsearchquery-totaldocumentcount}}, \
         {{documentdb-formattablehybridsearchquery-totalwordcount-{place}}}, \
         {{documentdb-formattablehybridsearchquery-hitcountsarray-{place}}})"
    )
}

fn hybrid(query: &str, extra: &str) -> Value {
    let parameters = json!([{"name": "@word", "value": "swim"}, {"name": "@words", "value": ["a", "b\""]}]);
    let features = format!("{FEATURES}, {extra}");
    let plan = ask(query, &parameters, &keyed("/pk"), Some(&features)).expect("a plan");
    assert_eq!(plan["queryInfo"], Value::Null, "{query}");
    plan["hybridSearchQueryInfo"].clone()
}

#[test]
fn one_score_is_an_ordered_query() {
    let score = score("c.text", "\"swim\", @word", 0);
    let text = |scores: &str| {
        format!(
            "SELECT TOP 120 c._rid, [{{\"item\": {score}}}] AS orderByItems, {{\"payload\": c, \
             \"componentScores\": [{scores}]}} AS payload\nFROM c\n\
             WHERE ({{documentdb-formattableorderbyquery-filter}})\nORDER BY {score} DESC"
        )
    };
    let query = "SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.text, 'swim', @word)";
    for (extra, scores) in [("", format!("({score} ?? -1)")), (SKIP, String::new())] {
        let component = info(&json!({"top": 120, "orderBy": ["Descending"], "orderByExpressions": [score],
            "hasNonStreamingOrderBy": true, "rewrittenQuery": text(&scores)}));
        let expected = json!({
            "globalStatisticsQuery": "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": \
                SUM(_FullTextWordCount(c.text)), \"hitCounts\": [COUNTIF(FullTextContains(c.text, \"swim\")), \
                COUNTIF(FullTextContains(c.text, @word))]}] AS fullTextStatistics\nFROM c",
            "componentQueryInfos": [component],
            "componentWithoutPayloadQueryInfos": [], "projectionQueryInfo": null, "componentWeights": [],
            "skip": null, "take": 10, "requiresGlobalStatistics": true
        });
        assert_eq!(hybrid(query, extra).to_string(), expected.to_string());
    }
}

#[test]
fn several_scores_are_sent_with_every_row() {
    let found = hybrid(
        "SELECT c.a FROM c WHERE c.ok ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1, 2]), \
         FullTextScore(c.u, @words), VectorDistance(c.w, [3])) OFFSET 100 LIMIT 50",
        "",
    );
    let scores = [
        score("c.t", "\"x\"", 0),
        "_VectorScore(c.v, [1, 2])".to_owned(),
        score("c.u", "\"a\", \"b\\\"\"", 1),
        "_VectorScore(c.w, [3])".to_owned(),
    ];
    let worst = ["-1", "-1.79769e+308", "-1", "-1.79769e+308"];
    let known: Vec<String> =
        scores.iter().zip(worst).map(|(score, worst)| format!("({score} ?? {worst})")).collect();
    for (place, score) in scores.iter().enumerate() {
        let direction = if place % 2 == 0 { " DESC" } else { "" };
        let text = format!(
            "SELECT c._rid, [{{\"item\": {score}}}] AS orderByItems, {{\"payload\": {{\"a\": c.a}}, \
             \"componentScores\": [{}]}} AS payload\nFROM c\n\
             WHERE (c.ok AND ({{documentdb-formattableorderbyquery-filter}}))\nORDER BY {score}{direction}\n\
             OFFSET 0 LIMIT 300",
            known.join(", ")
        );
        let expected = info(&json!({"offset": 0, "limit": 300, "orderBy": ["Descending"],
            "orderByExpressions": [score], "hasNonStreamingOrderBy": true, "rewrittenQuery": text}));
        assert_eq!(found["componentQueryInfos"][place], expected);
    }
    assert_eq!((&found["skip"], &found["take"]), (&json!(100), &json!(50)));
    assert_eq!(
        found["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.t)), \"hitCounts\": \
         [COUNTIF(FullTextContains(c.t, \"x\"))]}, {\"totalWordCount\": SUM(_FullTextWordCount(c.u)), \"hitCounts\": \
         [COUNTIF(FullTextContains(c.u, \"a\")), COUNTIF(FullTextContains(c.u, \"b\\\"\"))]}] AS \
         fullTextStatistics\nFROM c"
    );
}

#[test]
fn weights_lose_their_sign_to_the_order() {
    let query = "SELECT TOP 200 VALUE c.a FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1]), \
                 VectorDistance(c.w, [2]), [-0.5, 2])";
    let found = hybrid(query, "");
    assert_eq!(found["componentWeights"], json!([0.5, 2.0]));
    assert_eq!(found["requiresGlobalStatistics"], false);
    assert_eq!(
        found["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics\nFROM c"
    );
    let first = &found["componentQueryInfos"][0];
    assert_eq!((&first["top"], &first["orderBy"]), (&json!(400), &json!(["Ascending"])));
    assert_eq!(
        first["rewrittenQuery"],
        "SELECT TOP 400 c._rid, [{\"item\": _VectorScore(c.v, [1])}] AS orderByItems, {\"payload\": c.a, \
         \"componentScores\": [(_VectorScore(c.v, [1]) ?? 1.79769e+308), (_VectorScore(c.w, [2]) ?? \
         -1.79769e+308)]} AS payload\nFROM c\nWHERE (({documentdb-formattableorderbyquery-filter}) AND \
         IS_DEFINED(c.a))\nORDER BY _VectorScore(c.v, [1]) ASC"
    );
    let found = hybrid(query, SKIP);
    let text = |order: &str| {
        format!(
            "SELECT TOP 400 c._rid, c.a AS payload, [(-1 * (_VectorScore(c.v, [1]) ?? 1.79769e+308)), \
             (_VectorScore(c.w, [2]) ?? -1.79769e+308)] AS componentScores\nFROM c\nWHERE IS_DEFINED(c.a)\n\
             ORDER BY {order}"
        )
    };
    for (place, order) in ["_VectorScore(c.v, [1]) ASC", "_VectorScore(c.w, [2])"].into_iter().enumerate() {
        let expected = info(&json!({"top": 400, "hasSelectValue": true, "rewrittenQuery": text(order)}));
        assert_eq!(found["componentQueryInfos"][place], expected);
    }
}

#[test]
fn the_number_of_rows_is_bounded_on_both_sides() {
    let cases = [
        ("TOP 0", "", json!(120)),
        ("TOP 60", "", json!(120)),
        ("TOP 61", "", json!(122)),
        ("TOP 4294967295", "", json!(2_147_483_647)),
        ("", "", Value::Null),
    ];
    for (top, limit, expected) in cases {
        let query = format!("SELECT {top} c.a FROM c ORDER BY RANK FullTextScore(c.t, 'x') {limit}");
        assert_eq!(hybrid(&query, "")["componentQueryInfos"][0]["top"], expected, "{query}");
    }
}

#[test]
fn statistics_are_about_documents_unless_the_text_is_not() {
    let from = |query: &str| {
        let found = hybrid(query, "");
        let text = found["globalStatisticsQuery"].as_str().unwrap().to_owned();
        text.split_once("FROM ").unwrap().1.to_owned()
    };
    let query = "SELECT TOP 5 t FROM c JOIN t IN c.tags ORDER BY RANK FullTextScore(c.text, 'x')";
    assert_eq!(from(query), "c");
    let query = "SELECT TOP 5 t FROM c JOIN t IN c.tags ORDER BY RANK FullTextScore(t.text, 'x')";
    assert_eq!(from(query), "c\nJOIN t IN c.tags");
}
