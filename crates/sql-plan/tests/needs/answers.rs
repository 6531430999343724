//! Orders, answers from an index alone, candidates for indexes, and computed properties.

use super::planned;
use super::print::{path, print};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_sql_plan::needs::{Computed, IndexOnly, Requirements, composite_spec, single_spec, used_paths};
use astrarium_sql_plan::{Catalog, Parameters, bind, plan};
use serde_json::json;

#[test]
fn orders() {
    let check = |query: &str, expected: Option<&str>| {
        let query = astrarium_sql_syntax::parse(query).expect("a query");
        // Bound only: several keys need a composite index before they are planned.
        let plan = bind(&query, &Catalog::default(), &Parameters::default()).expect("a plan");
        let found = Requirements::of(&plan, &[]).order;
        let found = found.map(|keys| keys.iter().map(composite_spec).collect::<Vec<_>>().join(", "));
        assert_eq!(found.as_deref(), expected, "{query:?}");
    };
    check("SELECT * FROM c ORDER BY c.a", Some("/a ASC"));
    check(
        "SELECT * FROM c WHERE c.x = 1 ORDER BY c.a.b DESC, c['first name']",
        Some("/a/b DESC, /\"first name\" ASC"),
    );
    check("SELECT t FROM c JOIN t IN c.tags ORDER BY c.a", Some("/a ASC"));
    check("SELECT * FROM c ORDER BY c._ts", Some("/_ts ASC"));
    check("SELECT * FROM c ORDER BY c._rid", None);
    check("SELECT * FROM c", None);
    check("SELECT c.a, COUNT(1) FROM c GROUP BY c.a ORDER BY c.a", None);
}

#[test]
fn from_an_index_alone() {
    let check = |query: &str, expected: &str| {
        let found = match Requirements::of(&planned(query), &[]).only {
            None => "no".to_owned(),
            Some(IndexOnly::Count) => "count".to_owned(),
            Some(IndexOnly::Extreme { path: at, maximum: true }) => format!("max {}", path(&at)),
            Some(IndexOnly::Extreme { path: at, maximum: false }) => format!("min {}", path(&at)),
            Some(IndexOnly::Values { path: at, undefined: false }) => format!("values {}", path(&at)),
            Some(IndexOnly::Values { path: at, undefined: true }) => format!("values {} and none", path(&at)),
        };
        assert_eq!(found, expected, "{query}");
    };
    check("SELECT VALUE COUNT(1) FROM c", "count");
    check("SELECT VALUE COUNT(c) FROM c WHERE c.a = 1 AND c.b > 2", "count");
    check("SELECT COUNT('x') AS n FROM c WHERE ARRAY_CONTAINS(c.tags, 1)", "count");
    check("SELECT VALUE COUNT(1) + 1 FROM c WHERE STARTSWITH(c.a, 'x')", "count");
    check("SELECT VALUE COUNT(1) FROM c WHERE false", "count");
    check("SELECT VALUE COUNT(undefined) FROM c", "no");
    check("SELECT VALUE COUNT(c.a) FROM c", "no");
    check("SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.a, 'x')", "no");
    check("SELECT VALUE COUNT(1) FROM c WHERE c.a = 1 AND LOWER(c.b) = 'x'", "no");
    check("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", "no");
    check("SELECT VALUE COUNT(1) FROM c.a", "no");
    check("SELECT COUNT(1), MAX(c.a) FROM c", "no");
    check("SELECT VALUE MIN(c.a.b) FROM c", "min /a/b");
    check("SELECT MAX(c.a) FROM c WHERE c.a < 5", "max /a");
    check("SELECT MAX(c.a) FROM c WHERE c.b < 5", "no");
    check("SELECT VALUE SUM(c.a) FROM c", "no");
    check("SELECT VALUE MAX(c.a + 1) FROM c", "no");
    check("SELECT DISTINCT VALUE c.a FROM c", "values /a");
    check("SELECT DISTINCT VALUE c.a FROM c WHERE c.a > 5 ORDER BY c.a DESC", "values /a");
    check("SELECT DISTINCT VALUE c.a FROM c WHERE c.b > 5", "no");
    check("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b", "no");
    check("SELECT DISTINCT c.a FROM c", "values /a and none");
    check("SELECT DISTINCT c.a FROM c WHERE c.a != null", "values /a");
    check("SELECT DISTINCT c.a, c.b FROM c", "no");
    check("SELECT DISTINCT * FROM c", "no");
    check("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a", "values /a and none");
    check("SELECT c.a, SUM(c.a) AS s, MAX(c.a) AS m FROM c WHERE c.a > 1 GROUP BY c.a", "values /a");
    check("SELECT c.a, SUM(c.b) AS s FROM c GROUP BY c.a", "no");
    check("SELECT COUNT(1) FROM c GROUP BY c.a, c.b", "no");
    check("SELECT COUNT(1) FROM c GROUP BY c.tags[0]", "no");
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c) s", "no");
}

#[test]
fn candidates() {
    let check = |query: &str, single: &[&str], composite: &[&[&str]]| {
        let query = astrarium_sql_syntax::parse(query).expect("a query");
        let (catalog, parameters) = (Catalog::default(), Parameters::default());
        let plan = plan(&query, &catalog, &parameters);
        let plan = plan.or_else(|_| bind(&query, &catalog, &parameters)).expect("a plan");
        let used = used_paths(&Requirements::of(&plan, &[]));
        let found: Vec<String> =
            used.single.iter().map(|used| format!("{} {:?}", single_spec(&used.path), used.usage)).collect();
        assert_eq!(found, single, "{query:?}");
        let both = used.filter_composite.iter().chain(&used.order_composite);
        let found: Vec<Vec<String>> = both.map(|paths| paths.iter().map(composite_spec).collect()).collect();
        assert_eq!(found, composite, "{query:?}");
    };
    check("SELECT * FROM c", &[], &[]);
    check("SELECT * FROM c WHERE c.a = 1", &["/a/? Equality"], &[]);
    check(
        "SELECT * FROM c WHERE c.name = 'x' AND c.age > 5",
        &["/name/? Equality", "/age/? Range"],
        &[&["/name ASC", "/age ASC"]],
    );
    check(
        "SELECT * FROM c WHERE c.age > 5 AND c.b < 2 AND c.name = 'x'",
        &["/age/? Range", "/b/? Range", "/name/? Equality"],
        &[&["/name ASC", "/age ASC"], &["/name ASC", "/b ASC"]],
    );
    check(
        "SELECT * FROM c WHERE c.a = 1 AND c.b = 2",
        &["/a/? Equality", "/b/? Equality"],
        &[&["/a ASC", "/b ASC"]],
    );
    check("SELECT * FROM c WHERE c.a > 1 AND c.b > 2", &["/a/? Range", "/b/? Range"], &[]);
    check("SELECT * FROM c WHERE c.a = 1 OR c.b = 2", &["/a/? Equality", "/b/? Equality"], &[]);
    check(
        "SELECT * FROM c WHERE CONTAINS(c['a b'], 'x') AND ARRAY_CONTAINS(c.tags, {x: 1}, true)",
        &["/\"a b\"/? Function", "/tags/[]/x/? Equality"],
        &[],
    );
    check(
        "SELECT * FROM c WHERE c.b = 1 ORDER BY c.a, c.b DESC",
        &["/b/? Equality", "/a/? Order"],
        &[&["/a ASC", "/b DESC"]],
    );
}

#[test]
fn computed_properties_are_found_again() {
    let container = ContainerDefinition::from_json(&json!({
        "id": "items",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "computedProperties": [
            {"name": "lowerName", "query": "SELECT VALUE LOWER(c.name) FROM c"},
            {"name": "price", "query": "SELECT VALUE c.net * 1.2 FROM c"},
        ],
    }))
    .expect("a container");
    let computed = Computed::of(&container);
    let check = |filter: &str, expected: &str| {
        let text = format!("SELECT * FROM c WHERE {filter}");
        let query = astrarium_sql_syntax::parse(&text).expect("a query");
        let catalog = Catalog { container: Some(&container) };
        let plan = plan(&query, &catalog, &Parameters::default()).expect("a plan");
        assert_eq!(print(&Requirements::of(&plan, &computed).needed), expected, "{filter}");
        assert_eq!(print(&Requirements::of(&plan, &[]).needed), "anything ..", "{filter}");
    };
    check("c.lowerName = 'x'", "/lowerName = \"x\"");
    check("LOWER(c.name) = 'x'", "/lowerName = \"x\"");
    check("STARTSWITH(c.lowerName, 'x') AND c.price > 5", "(/lowerName begins x and 5 < /price)");
    let text = "SELECT * FROM c ORDER BY c.price DESC";
    let query = astrarium_sql_syntax::parse(text).expect("a query");
    let plan =
        plan(&query, &Catalog { container: Some(&container) }, &Parameters::default()).expect("a plan");
    let order = Requirements::of(&plan, &computed).order.expect("an order");
    assert_eq!(order.iter().map(composite_spec).collect::<Vec<_>>(), ["/price DESC"]);
    assert_eq!(Requirements::of(&plan, &[]).order, None);
}
