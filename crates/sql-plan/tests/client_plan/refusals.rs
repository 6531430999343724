//! What is refused, with the service's codes and sentences, and what a client must list.

use super::{FEATURES, ask, keyed};
use serde_json::Value;

fn check(query: &str, features: Option<&str>, expected: Option<(&str, &str)>) {
    let answer = ask(query, &Value::Null, &keyed("/pk"), features);
    let refusal = answer.err();
    assert_eq!(refusal.as_ref().map(|(code, message)| (*code, message.as_str())), expected, "{query}");
}

#[test]
fn queries_that_make_no_sense_are_refused_as_elsewhere() {
    let cases = [
        ("SELECT BADFUNC(c.a) FROM c", "SC2005", "'BADFUNC' is not a recognized built-in function name."),
        ("SELECT d.a FROM c", "SC2001", "Identifier 'd' could not be resolved."),
        ("SELECT * FROM c GROUP BY c.a", "SC2041", "'SELECT *' is not allowed with GROUP BY."),
        (
            "SELECT VALUE MAX(MIN(c)) FROM c",
            "SC2101",
            "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
        ),
        (
            "SELECT * FROM c ORDER BY LOWER(c.a)",
            "2206",
            "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.",
        ),
    ];
    for (query, code, message) in cases {
        check(query, Some(FEATURES), Some((code, message)));
    }
}

#[test]
fn aggregates_that_cannot_be_added_up_are_refused() {
    let queries = [
        "SELECT VALUE {'sum': SUM(c.a)} FROM c",
        "SELECT VALUE [SUM(c.a)] FROM c",
        "SELECT VALUE FLOOR(AVG(c.a)) FROM c",
        "SELECT MIN(c.a) / 2 FROM c",
        "SELECT COUNT(1), MIN(c.a) + MAX(c.a) AS middle FROM c",
        "SELECT c.k, ABS(AVG(c.a)) FROM c GROUP BY c.k",
        "SELECT VALUE {'k': c.k, 'n': COUNT(1)} FROM c GROUP BY c.k",
    ];
    for query in queries {
        let message = "Compositions of aggregates and other expressions are not allowed.";
        check(query, Some(FEATURES), Some(("", message)));
    }
}

#[test]
fn ranks_of_groups_and_too_many_scores_are_refused() {
    let message = "DISTINCT and GROUP BY cannot be combined with ORDER BY RANK across partitions.";
    let query = "SELECT DISTINCT TOP 5 c.a FROM c ORDER BY RANK FullTextScore(c.t, 'a')";
    check(query, Some(FEATURES), Some(("", message)));
    let scores = vec!["FullTextScore(c.t, 'a')"; 33].join(", ");
    let query = format!("SELECT TOP 5 c.a FROM c ORDER BY RANK RRF({scores})");
    let message = "ORDER BY RANK can fuse at most 32 scores across partitions.";
    check(&query, Some(FEATURES), Some(("", message)));
}

#[test]
fn clients_must_be_able_to_merge() {
    let cases: [(&str, &[&str]); 15] = [
        ("SELECT c.a FROM c WHERE c.b = 1", &[]),
        ("SELECT TOP 5 * FROM c", &["Top"]),
        ("SELECT * FROM c OFFSET 1 LIMIT 2", &["OffsetAndLimit"]),
        ("SELECT * FROM c WHERE c.pk = 1 OFFSET 1 LIMIT 2", &[]),
        ("SELECT * FROM c ORDER BY c.a", &["OrderBy"]),
        ("SELECT * FROM c ORDER BY c.a, c.b", &["MultipleOrderBy"]),
        ("SELECT DISTINCT c.a FROM c", &["Distinct"]),
        ("SELECT VALUE AVG(c.a) FROM c", &["Aggregate"]),
        ("SELECT AVG(c.a) FROM c", &["NonValueAggregate"]),
        ("SELECT COUNT(1), AVG(c.a) FROM c", &["MultipleAggregates", "NonValueAggregate"]),
        ("SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k", &["GroupBy", "NonValueAggregate"]),
        ("SELECT VALUE MAKESET(c.a) FROM c", &["Aggregate", "ListAndSetAggregate"]),
        ("SELECT COUNTIF(c.a) FROM c", &["NonValueAggregate", "CountIf"]),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.k FROM c)", &["DCount"]),
        (
            "SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.v, [1, 2])",
            &["OrderBy", "Top", "NonStreamingOrderBy"],
        ),
    ];
    for (query, needed) in cases {
        check(query, Some(&needed.join(", ")), None);
        check(query, Some(&needed.join(",").to_lowercase()), None);
        let line =
            |name: &&str| format!("\nQuery contained {name}, which the calling client does not support.");
        let lines = needed.iter().map(line).collect::<Vec<_>>().concat();
        let message = format!(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the \
             requested features:{lines}"
        );
        let refusal = (!needed.is_empty()).then_some(("", message.as_str()));
        check(query, None, refusal);
        check(query, Some("None"), refusal);
    }
}
