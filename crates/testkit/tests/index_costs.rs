//! What queries cost on a container of 20,000 documents: they look at as many documents as they give, not at all of them.
//!
//! Counts, not times: the number of documents that each page looked at, which is the same on every machine. Every query is
//! asked in pages of 100; no page of a long result may look at more than its share, and what an index answers alone looks
//! at none.

use astrarium_database::{Container, IndexUse, Limits, QueryScope, Resume};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};
use std::sync::{Arc, LazyLock};

const DOCUMENT_COUNT: usize = 20_000;
/// Partitions are large, so that a key alone does not make a query cheap.
const PARTITION_COUNT: usize = 4;
const PAGE_SIZE: usize = 100;
/// Documents that a page may look at besides those it gives: to learn whether there is another page, and because reading
/// in steps overshoots.
const SLACK: u64 = 32;

const DEFINITION: &str = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\
    \"excludedPaths\":[{\"path\":\"/hidden/?\"}],\
    \"compositeIndexes\":[[{\"path\":\"/g\",\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"descending\"}],\
    [{\"path\":\"/h\",\"order\":\"descending\"},{\"path\":\"/n\",\"order\":\"ascending\"}]]}}";

/// A document: `n` is a permutation, `g` and `h` have 50 values, `o.k` has 1,000, tags and items are in arrays, one in a
/// thousand is rare, all others have something in common.
fn document(number: usize) -> String {
    let rare = if number.is_multiple_of(1_000) {
        ",\"rare\":5".to_owned()
    } else {
        format!(",\"common\":{}", number * 7_919 % DOCUMENT_COUNT)
    };
    format!(
        "{{\"id\":\"{number}\",\"pk\":\"p{}\",\"n\":{},\"g\":{},\"h\":{},\"t\":\"name-{number:05}\",\"o\":{{\"k\":{}}},\
         \"tags\":[\"t{}\",\"u{}\"],\"items\":[{{\"sku\":{},\"q\":{}}},{{\"sku\":-1,\"q\":7}}],\"hidden\":{number}{rare}}}",
        number % PARTITION_COUNT,
        number * 7_919 % DOCUMENT_COUNT,
        number % 50,
        number % 50,
        number % 1_000,
        number % 200,
        number % 7,
        number % 500,
        number % 3,
    )
}

/// What a query may look at.
enum Cost {
    /// Nothing but the index.
    NoDocuments,
    /// As many documents as it gives rows.
    Rows,
    /// So many documents in all.
    Documents(u64),
}

/// Queries over everything: text, number of rows, cost.
const OPEN: [(&str, usize, Cost); 61] = [
    ("SELECT VALUE c.id FROM c WHERE c.n = 500", 1, Cost::Rows),
    ("SELECT * FROM c WHERE c.id = \"77\"", 1, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n = 500.5", 0, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n >= 1000 AND c.n < 1100", 100, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n BETWEEN 1000 AND 1999", 1_000, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n IN (1, 2, 3, 19999, 20000)", 4, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n = 1 OR c.t = \"name-00123\" OR c.o.k = 7", 22, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7", 400, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.t, \"name-0012\")", 10, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.t LIKE \"name-0012%\"", 10, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.rare)", 20, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.rare != 6", 20, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE IS_NUMBER(c.rare) AND c.g = 0", 20, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND ARRAY_CONTAINS(c.tags, \"u3\")", 57, Cost::Rows),
    // The composite index has both paths.
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND c.n < 2000", 40, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n >= 18000 AND c.g IN (7, 8, 9)", 120, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n = 8933 AND c.g = 7", 1, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND c.n < 2000 OR c.n = 1", 41, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND c.n < 2000 AND c.o.k = 7", 2, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7 AND c.n < 19000", 380, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, \"t57\")", 100, Cost::Rows),
    (
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.items WHERE x.sku = 77)",
        40,
        Cost::Rows,
    ),
    (
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.tags WHERE x = \"t57\")",
        100,
        Cost::Rows,
    ),
    ("SELECT VALUE x.q FROM c JOIN x IN c.items WHERE x.sku = 77", 40, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n DESC", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.id FROM c ORDER BY c._ts DESC", 10, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 20 LIMIT 10", 10, Cost::Documents(30)),
    ("SELECT VALUE c.n FROM c ORDER BY c.n", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.g, c.n DESC", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.g DESC, c.n", 10, Cost::Rows),
    ("SELECT VALUE c.n FROM c WHERE c.n > 19900 ORDER BY c.n", 99, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.n > 10000 ORDER BY c.n DESC", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.n > 10000 ORDER BY c.n", 10, Cost::Rows),
    ("SELECT VALUE c.n FROM c WHERE c.n BETWEEN 5000 AND 14999 ORDER BY c.n DESC", 10_000, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.g = 7 ORDER BY c.n", 10, Cost::Documents(600)),
    // Within the documents that are equal in the first path of a composite index.
    ("SELECT VALUE c.n FROM c WHERE c.g = 7 ORDER BY c.g, c.n DESC", 400, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.g = 49 ORDER BY c.g DESC, c.n", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.g = 7 AND c.n < 9000 ORDER BY c.g, c.n DESC", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c WHERE c.h = 7 ORDER BY c.n DESC", 10, Cost::Rows),
    ("SELECT VALUE c.n FROM c WHERE c.h = 7 ORDER BY c.n", 400, Cost::Rows),
    // A path that few documents have, and one that few have not.
    ("SELECT VALUE c.id FROM c ORDER BY c.rare", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT VALUE c.id FROM c ORDER BY c.rare DESC", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT TOP 10 VALUE c.id FROM c WHERE c.g = 7 ORDER BY c.rare", 10, Cost::Documents(600)),
    ("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.rare) ORDER BY c.rare DESC", 20, Cost::Rows),
    ("SELECT TOP 10 VALUE c.id FROM c ORDER BY c.common DESC", 10, Cost::Rows),
    ("SELECT VALUE c.id FROM c ORDER BY c.common", DOCUMENT_COUNT, Cost::Rows),
    ("SELECT TOP 10 VALUE c.id FROM c WHERE c.common > 10000 ORDER BY c.common", 10, Cost::Rows),
    ("SELECT VALUE COUNT(1) FROM c", 1, Cost::NoDocuments),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 7", 1, Cost::NoDocuments),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 7 AND c.n < 2000", 1, Cost::NoDocuments),
    ("SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, \"u3\")", 1, Cost::NoDocuments),
    ("SELECT VALUE MIN(c.n) FROM c", 1, Cost::NoDocuments),
    ("SELECT VALUE MAX(c.n) FROM c WHERE c.n < 15000", 1, Cost::NoDocuments),
    ("SELECT DISTINCT VALUE c.g FROM c", 50, Cost::NoDocuments),
    ("SELECT DISTINCT VALUE c.g FROM c WHERE c.g > 40 ORDER BY c.g DESC", 9, Cost::NoDocuments),
    ("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", 50, Cost::NoDocuments),
    ("SELECT c.g, SUM(c.g) AS n FROM c WHERE c.g < 10 GROUP BY c.g", 10, Cost::NoDocuments),
    ("SELECT c.g, MAX(c.n) AS n FROM c WHERE c.o.k = 7 GROUP BY c.g", 1, Cost::Documents(20)),
    ("SELECT VALUE c.id FROM c WHERE c.hidden = 77", 1, Cost::Documents(DOCUMENT_COUNT as u64)),
];

/// Queries over the 5,000 documents of one partition.
const PARTITION: [(&str, usize, Cost); 10] = [
    ("SELECT VALUE c.id FROM c WHERE c.n = 599", 1, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.o.k = 57", 20, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.g = 7", 200, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE c.n < 400", 100, Cost::Rows),
    ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, \"t57\")", 100, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n", 10, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n DESC", 10, Cost::Rows),
    ("SELECT VALUE COUNT(1) FROM c", 1, Cost::NoDocuments),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.g = 7", 1, Cost::NoDocuments),
    ("SELECT VALUE c.id FROM c", 5_000, Cost::Rows),
];

/// Nobody changes it.
static WORLD: LazyLock<World> = LazyLock::new(World::new);

struct World {
    stage: Stage,
    container: Arc<Container>,
}

impl World {
    fn new() -> World {
        let mut stage = Stage::new(EngineKind::Memory);
        let definition = Json::parse(DEFINITION).expect("JSON of ours");
        let documents: Vec<String> = (0..DOCUMENT_COUNT).map(document).collect();
        let container = stage.container(&definition, None, &documents).expect("make a container");
        World { stage, container }
    }

    fn way(&self, scope: &QueryScope) -> Way {
        Way {
            name: "",
            container: Arc::clone(&self.container),
            scope: scope.clone(),
            page_size: PAGE_SIZE,
            spread_work: false,
            index_use: IndexUse::ByCost,
        }
    }

    /// All rows of a query, whose pages use indexes in turns.
    fn ask(&self, scope: &QueryScope, text: &str, uses: &[IndexUse], page_size: usize) -> Vec<String> {
        let query = read_query(text, &[]).expect("a query of ours");
        let mut rows = Vec::new();
        let mut resume: Option<Resume> = None;
        for index_use in uses.iter().cycle() {
            let limits = Limits { row_count_max: page_size, index_use: *index_use, ..Limits::default() };
            let page = self.stage.page(&query, &self.way(scope), limits, resume.take());
            let (page, next) = page.expect("a page");
            rows.extend(page.iter().map(Json::to_string));
            resume = next;
            if resume.is_none() || rows.len() > DOCUMENT_COUNT {
                break;
            }
        }
        rows
    }

    /// Asks a query in pages; what is wrong with its rows or its cost.
    fn check(&self, scope: &QueryScope, (text, row_count, cost): &(&str, usize, Cost)) -> Option<String> {
        let query = read_query(text, &[]).expect("a query of ours");
        let way = self.way(scope);
        let limits = Limits { row_count_max: PAGE_SIZE, ..Limits::default() };
        let mut resume: Option<Resume> = None;
        let (mut rows, mut documents, mut most) = (0, 0, 0);
        loop {
            let page = self.stage.query_page(&query, &way, limits, resume.take()).expect("a page");
            rows += page.rows.len();
            documents += page.documents;
            let beyond = page.documents.saturating_sub(page.rows.len() as u64);
            most = most.max(beyond);
            resume = page.resume;
            if resume.is_none() || rows > DOCUMENT_COUNT {
                break;
            }
        }
        let is_cheap = match cost {
            Cost::NoDocuments => documents == 0,
            Cost::Rows => most <= SLACK,
            Cost::Documents(bound) => documents <= bound + SLACK,
        };
        let told = format!(
            "{text}\n  {rows} rows instead of {row_count}, {documents} documents, {most} too many in a page"
        );
        (rows != *row_count || !is_cheap).then_some(told)
    }
}

#[test]
fn cost_follows_the_answer() {
    let world = &*WORLD;
    let open = QueryScope::Open { cross_partition: true, whole: true };
    let partition = world.stage.partition(&world.container, "[\"p1\"]").expect("a key");
    let slice = Stage::slices(&world.container, 1).remove(0);
    let mut wrong: Vec<String> = OPEN.iter().filter_map(|case| world.check(&open, case)).collect();
    wrong.extend(PARTITION.iter().filter_map(|case| world.check(&partition, case)));
    // A slice of everything costs what everything costs.
    let of_one_family = ["DISTINCT", "GROUP", "MIN(", "MAX("];
    let streams = OPEN.iter().filter(|(text, ..)| !of_one_family.iter().any(|word| text.contains(word)));
    wrong.extend(streams.filter_map(|case| world.check(&slice, case)).map(|told| format!("slice: {told}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rows do not depend on the way, however large a scope is, nor on the way of the pages before. Their order does in a
/// keyed scope of more than 2,000 documents: without an index it is read in order of keys.
#[test]
fn a_large_scope_gives_the_same_rows() {
    use IndexUse::{Always, ByCost, Never};
    let world = &*WORLD;
    let scopes = [
        world.stage.partition(&world.container, "[\"p1\"]").expect("a key"),
        Stage::slices(&world.container, 2).remove(1),
        QueryScope::Open { cross_partition: true, whole: true },
    ];
    let texts = [
        "SELECT VALUE c.id FROM c WHERE c.g = 7",
        "SELECT VALUE c.id FROM c WHERE c.n < 400",
        "SELECT VALUE c.id FROM c WHERE c.n >= 16000",
    ];
    for text in texts {
        for scope in &scopes {
            let is_keyed = matches!(scope, QueryScope::Given(_));
            let expected = world.ask(scope, text, &[Never], ONE_PAGE);
            for (uses, page_size) in [
                (&[Always][..], ONE_PAGE),
                (&[ByCost], ONE_PAGE),
                (&[Always], 100),
                (&[ByCost], 100),
                (&[Never], 100),
                (&[Always, Never], 100),
                (&[Never, Always], 100),
            ] {
                let (mut rows, mut expected) = (world.ask(scope, text, uses, page_size), expected.clone());
                if is_keyed && uses != [Never] {
                    rows.sort();
                    expected.sort();
                }
                assert_eq!(rows, expected, "{text} {scope:?} {uses:?}, pages of {page_size}");
            }
        }
    }
}

/// Orders over four ranges: the entries of all of them are merged, and groups and distinct values come from all indexes.
const SEVERAL_RANGES: [(&str, usize, Cost); 12] = [
    ("SELECT VALUE c.n FROM c ORDER BY c.n", 2_000, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", 2_000, Cost::Rows),
    ("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n DESC", 10, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 20 LIMIT 10", 10, Cost::Documents(30)),
    ("SELECT VALUE c.n FROM c WHERE c.n > 19000 ORDER BY c.n", 100, Cost::Rows),
    ("SELECT VALUE c.n FROM c ORDER BY c.g, c.n DESC", 2_000, Cost::Rows),
    ("SELECT VALUE c.id FROM c ORDER BY c.common", 2_000, Cost::Rows),
    ("SELECT VALUE c.id FROM c ORDER BY c.common DESC", 2_000, Cost::Rows),
    ("SELECT VALUE {\"id\": c.id, \"x\": x.sku} FROM c JOIN x IN c.items ORDER BY c.n", 4_000, Cost::Rows),
    ("SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g", 50, Cost::NoDocuments),
    ("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", 50, Cost::NoDocuments),
    ("SELECT VALUE MAX(c.n) FROM c", 1, Cost::NoDocuments),
];

#[test]
fn orders_of_several_ranges_are_merged() {
    use IndexUse::{Always, ByCost, Never};
    const DOCUMENT_COUNT: usize = 2_000;
    let mut stage = Stage::new(EngineKind::Memory);
    let definition = Json::parse(DEFINITION).expect("JSON of ours");
    let document = |number: usize| document(number).replace("\"pk\":\"p", &format!("\"pk\":\"{number}-"));
    let documents: Vec<String> = (0..DOCUMENT_COUNT).map(document).collect();
    let container = stage.container(&definition, Some(24_000), &documents).expect("make a container");
    assert_eq!(container.ranges.len(), 4);
    let world = World { stage, container };
    let open = QueryScope::Open { cross_partition: true, whole: true };
    let wrong: Vec<String> = SEVERAL_RANGES.iter().filter_map(|case| world.check(&open, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (text, ..) in &SEVERAL_RANGES {
        let expected = world.ask(&open, text, &[Never], ONE_PAGE);
        for (uses, page_size) in [(&[ByCost][..], 70), (&[Always], 7), (&[Always, Never], 70)] {
            assert_eq!(
                world.ask(&open, text, uses, page_size),
                expected,
                "{text} {uses:?}, pages of {page_size}"
            );
        }
    }
}
