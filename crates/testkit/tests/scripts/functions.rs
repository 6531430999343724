//! User-defined functions beside indexes: what the rest of a filter rules out is not even read.

use astrarium_database::{IndexUse, Limits};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::case_file::Setting;
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};

const DOCUMENT_COUNT: usize = 2_000;

/// A query, how many rows it has, and how many documents may be read for them.
const COSTS: [(&str, usize, u64); 8] = [
    ("SELECT VALUE c.id FROM c WHERE c.n = 500 AND udf.yes(c.n)", 1, 1),
    ("SELECT VALUE c.id FROM c WHERE udf.yes(c.n) AND c.n = 500", 1, 1),
    ("SELECT VALUE c.id FROM c WHERE c.n >= 100 AND c.n < 120 AND udf.isEven(c.n)", 10, 20),
    ("SELECT VALUE udf.twice(c.n) FROM c WHERE c.n IN (1, 2, 3)", 3, 3),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND (udf.isEven(c.n) OR c.n = 7)", 1, 20),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 8 AND udf.isEven(c.n)", 1, 20),
    ("SELECT TOP 5 VALUE udf.twice(c.n) FROM c ORDER BY c.n DESC", 5, 6),
    ("SELECT VALUE c.id FROM c WHERE udf.isEven(c.n)", DOCUMENT_COUNT / 2, DOCUMENT_COUNT as u64),
];

#[test]
fn the_index_serves_the_rest_of_a_filter() {
    let mut stage = Stage::new(EngineKind::Memory);
    let definition = Json::parse("{\"partitionKey\":\"/pk\"}").expect("JSON of ours");
    let documents: Vec<String> = (0..DOCUMENT_COUNT)
        .map(|n| format!("{{\"id\":\"{n}\",\"pk\":\"a\",\"n\":{n},\"g\":{}}}", n % 100))
        .collect();
    let set = stage.furnish(&definition, &documents).expect("make a container");
    let functions = [
        ("yes", "function () { return true; }"),
        ("isEven", "function (n) { return n % 2 === 0; }"),
        ("twice", "function (n) { return 2 * n; }"),
    ];
    let functions = functions.map(|(name, source)| (name.to_owned(), source.to_owned()));
    stage.define_functions(&set, &functions).expect("make functions");
    let ways = stage.ways(&set, &Setting::default()).expect("ways to ask");
    let way: &Way = ways.first().expect("a way to ask");
    for (text, row_count, documents_max) in COSTS {
        let query = read_query(text, &[]).expect("a query");
        let limits = |index_use| Limits { row_count_max: ONE_PAGE, index_use, ..Limits::default() };
        let page = stage.query_page(&query, way, limits(IndexUse::ByCost), None).expect("an answer");
        assert_eq!(page.rows.len(), row_count, "{text}");
        assert!(page.documents <= documents_max, "{text}: {} documents of {documents_max}", page.documents);
        let scanned = stage.query_page(&query, way, limits(IndexUse::Never), None).expect("an answer");
        assert_eq!(page.rows, scanned.rows, "{text}");
    }
}
