//! Bounds of a query: what a page may hold, how long it may take, how much memory it may use; and hostile queries.
//!
//! Rows never depend on the bounds of a page, only where pages end does. What needs more than a query may have is
//! refused with a message for its author, and nothing is ever held without a bound.

use astrarium_database::{Error, Kind, Limits};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::answer::{QueryAnswer, shown};
use astrarium_testkit::sql::case_file::Setting;
use astrarium_testkit::sql::stage::{Set, Stage, read_query};
use std::time::{Duration, Instant};

/// What these tests look for would take hours.
const TIME_MAX: Duration = Duration::from_mins(5);

/// More documents than are read at once, and than are looked at for the end of a page.
const DOCUMENT_COUNT: usize = 2_600;

/// Queries that stream, sort, group and join.
const QUERIES: [&str; 14] = [
    "SELECT VALUE c.n FROM c",
    "SELECT VALUE c.n FROM c WHERE c.n > 2590",
    "SELECT VALUE c.n FROM c WHERE c.n < 5 OR c.n = 2599",
    "SELECT VALUE c.n FROM c WHERE c.n = -1",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.r DESC",
    "SELECT TOP 700 VALUE c.n FROM c ORDER BY c.r",
    "SELECT VALUE c.n FROM c OFFSET 1200 LIMIT 700",
    "SELECT VALUE c.n FROM c ORDER BY c.r OFFSET 1200 LIMIT 700",
    "SELECT DISTINCT VALUE c.r FROM c",
    "SELECT DISTINCT VALUE c.r FROM c ORDER BY c.r",
    "SELECT c.r, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.r",
    "SELECT c.n, x FROM c JOIN x IN c.l WHERE c.n % 3 = x",
    "SELECT c.n, x FROM c JOIN x IN c.l ORDER BY c.r OFFSET 3 LIMIT 900",
];

fn furnished(documents: &[String]) -> (Stage, Set) {
    let mut stage = Stage::new(EngineKind::Memory);
    let definition = Json::parse("{\"partitionKey\":\"/pk\"}").expect("JSON of ours");
    let set = stage.furnish(&definition, documents).expect("make a container");
    (stage, set)
}

/// Asks over the whole container within limits.
fn ask(stage: &Stage, set: &Set, text: &str, limits: Limits) -> QueryAnswer {
    let way = stage.ways(set, &Setting::default()).expect("ways to ask").swap_remove(0);
    stage.ask_within(&read_query(text, &[])?, &way, limits)
}

fn many() -> Vec<String> {
    let document = |number: usize| {
        let (key, group) = (number % 5, number * 7919 % 97);
        format!("{{\"id\":\"{number}\",\"pk\":{key},\"n\":{number},\"r\":{group},\"l\":[0,1,2]}}")
    };
    (0..DOCUMENT_COUNT).map(document).collect()
}

#[test]
fn rows_do_not_depend_on_the_bounds_of_a_page() {
    let (stage, set) = furnished(&many());
    let everything =
        Limits { row_count_max: 1_000_000, byte_count_max: usize::MAX >> 8, ..Limits::default() };
    for text in QUERIES {
        let whole = ask(&stage, &set, text, everything).unwrap();
        for (what, limits) in [
            ("100 rows", Limits { row_count_max: 100, ..everything }),
            ("997 rows", Limits { row_count_max: 997, ..everything }),
            ("3000 bytes", Limits { byte_count_max: 3_000, ..everything }),
            ("no time", Limits { page_micros: 0, ..everything }),
            ("all of it", Limits { row_count_max: 300, byte_count_max: 5_000, page_micros: 0, ..everything }),
        ] {
            let paged = ask(&stage, &set, text, limits).unwrap();
            assert!(
                paged == whole,
                "{text}, pages of {what}: {} rows instead of {}",
                paged.len(),
                whole.len()
            );
        }
    }
}

/// A page that needs more than the steps of a short one is begun again on a thread for queries. Wherever the first attempt ended, also
/// among the parts that threads read side by side, the second one has all the time there is.
#[test]
fn a_page_that_begins_again_has_its_time() {
    let (stage, set) = furnished(&many());
    for text in QUERIES {
        let spread = Limits { row_count_max: 10_000, alone_documents_max: 0, ..Limits::default() };
        let answers = [
            spread,
            Limits { alone_documents_max: 300, ..spread },
            Limits { row_count_max: 10_000, ..Limits::default() },
        ]
        .map(|limits| {
            ask(&stage, &set, text, limits).unwrap_or_else(|error| panic!("{text}: {error}")).len()
        });
        assert_eq!(answers, [answers[2]; 3], "{text}");
    }
}

#[track_caller]
fn check_refused(answer: &QueryAnswer) {
    match answer {
        Err(error @ Error::Timeout(_)) => assert_eq!(error.kind(), Kind::Request),
        other => panic!("not refused: {}", shown(other).chars().take(200).collect::<String>()),
    }
}

#[test]
fn what_needs_too_much_memory_is_refused() {
    let (stage, set) = furnished(&many());
    let limits = Limits { memory_bytes_max: 50_000, ..Limits::default() };
    for text in [
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT c.n, COUNT(1) AS count FROM c GROUP BY c.n",
        "SELECT VALUE MAKELIST(c.id) FROM c",
        "SELECT VALUE MAKESET(c.id) FROM c",
        "SELECT TOP 2000 * FROM c ORDER BY c.n",
    ] {
        check_refused(&ask(&stage, &set, text, Limits { row_count_max: 10_000, ..limits }));
    }
    // A short page of sorted rows needs only the rows of that page.
    let top = ask(&stage, &set, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", limits).unwrap();
    assert_eq!(top.iter().map(Json::to_string).collect::<Vec<_>>(), ["2599", "2598", "2597"]);
}

/// A document with an array and a long text.
fn one() -> Vec<String> {
    let items: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    vec![format!("{{\"id\":\"1\",\"pk\":1,\"l\":[{}],\"s\":\"{}\"}}", items.join(","), "a".repeat(20_000))]
}

/// A value that grows by a factor with each level of nested subqueries.
fn nested(step: &str, seed: &str, levels: usize) -> String {
    (0..levels).fold(format!("(SELECT VALUE {seed})"), |inner, level| {
        format!("(SELECT VALUE {} FROM {inner} x{level})", step.replace('x', &format!("x{level}")))
    })
}

#[test]
fn values_cannot_grow_without_bound() {
    let (stage, set) = furnished(&one());
    let limits = Limits { memory_bytes_max: 1 << 20, ..Limits::default() };
    for (step, seed, levels) in [
        ("[x, x]", "[1]", 18),
        ("{\"p\": x, \"q\": x}", "1", 18),
        ("ARRAY(SELECT VALUE x FROM i IN (SELECT VALUE [1, 2]))", "[1]", 18),
    ] {
        let answer =
            ask(&stage, &set, &format!("SELECT VALUE {} FROM c", nested(step, seed, levels)), limits);
        // Either the query is refused, or the value that is too large is undefined and leaves no row.
        let bounded = match &answer {
            Ok(rows) => rows.is_empty(),
            Err(error) => error.kind() == Kind::Request,
        };
        assert!(bounded, "{step} grows: {} bytes", shown(&answer).len());
    }
    for text in [
        "SELECT VALUE ARRAY(SELECT VALUE a FROM a IN c.l JOIN b IN c.l JOIN d IN c.l) FROM c",
        "SELECT VALUE ARRAY(SELECT DISTINCT VALUE [a, b, d] FROM a IN c.l JOIN b IN c.l JOIN d IN c.l) FROM c",
        "SELECT VALUE COUNT(1) FROM c JOIN (SELECT VALUE [a, b, d] FROM a IN c.l JOIN b IN c.l JOIN d IN c.l) x",
    ] {
        check_refused(&ask(&stage, &set, text, limits));
    }
}

#[test]
fn products_of_joins_are_read_as_far_as_needed() {
    let (stage, set) = furnished(&one());
    let product =
        "FROM c JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l JOIN g IN c.l JOIN h IN c.l JOIN i IN c.l";
    let began = Instant::now();
    let limits = Limits { row_count_max: 100_000, ..Limits::default() };
    for text in
        [format!("SELECT TOP 3 VALUE i {product}"), format!("SELECT VALUE i {product} OFFSET 2 LIMIT 3")]
    {
        assert_eq!(ask(&stage, &set, &text, limits).unwrap().len(), 3, "{text}");
    }
    assert!(began.elapsed() < TIME_MAX, "three rows took {:?}", began.elapsed());
}

/// A page in the middle of one document's rows costs what the first page costs, not the sum of those before it.
#[test]
fn pages_of_a_product_cost_the_same() {
    let (stage, set) = furnished(&one());
    let text = "SELECT VALUE e FROM c JOIN d IN c.l JOIN e IN c.l JOIN f IN (SELECT VALUE [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])";
    let time = |row_count_max| {
        let (began, limits) = (Instant::now(), Limits { row_count_max, ..Limits::default() });
        assert_eq!(ask(&stage, &set, text, limits).expect("a product").len(), 25_000);
        began.elapsed()
    };
    // Pages that began at the first row again would have to make 250 times as many rows.
    let (few, many) = (time(5_000), time(50));
    assert!(many < few * 60 + Duration::from_secs(1), "5 pages took {few:?}, 500 pages {many:?}");
}

#[test]
fn hostile_expressions_take_no_time() {
    let (stage, set) = furnished(&one());
    let many_items: Vec<String> = (0..20_000).map(|number| format!("\"{number}\"")).collect();
    let many_conditions: Vec<String> = (0..5_000).map(|number| format!("c.n = {number}")).collect();
    let texts = [
        "SELECT VALUE c.s LIKE \"%a%a%a%a%a%a%a%a%a%b\" FROM c".to_owned(),
        "SELECT VALUE REGEXMATCH(c.s, \"^(a+)+$b\") FROM c".to_owned(),
        "SELECT VALUE REGEXMATCH(c.s, \"(a|aa)*c\") FROM c".to_owned(),
        "SELECT VALUE LENGTH(REPLACE(c.s, \"a\", c.s)) FROM c".to_owned(),
        "SELECT VALUE LENGTH(STRINGJOIN(STRINGSPLIT(c.s, \"a\"), c.s)) FROM c".to_owned(),
        "SELECT VALUE REPLICATE(c.s, 1000000000) FROM c".to_owned(),
        format!("SELECT VALUE LENGTH({}) FROM c", nested("CONCAT(x, x)", "\"aaaa\"", 40)),
        format!("SELECT VALUE LENGTH({}) FROM c", nested("x || x", "\"aaaa\"", 40)),
        format!("SELECT VALUE ARRAY_LENGTH({}) FROM c", nested("ARRAY_CONCAT(x, x)", "[1]", 40)),
        format!("SELECT * FROM c WHERE c.id IN ({})", many_items.join(",")),
        format!("SELECT * FROM c WHERE {}", many_conditions.join(" OR ")),
        format!("SELECT VALUE {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT VALUE {}", "[".repeat(100_000)),
        format!("SELECT VALUE {}1", "NOT ".repeat(50_000)),
        format!("SELECT VALUE 1{}", " + 1".repeat(50_000)),
        format!("SELECT VALUE c{} FROM c", ".a".repeat(50_000)),
        format!("SELECT VALUE {}1", "true ? 1 : ".repeat(20_000)),
        format!("SELECT VALUE {}", "ARRAY(SELECT VALUE ".repeat(20_000)),
        format!("SELECT VALUE \"{}\"", "\\u0061".repeat(50_000)),
    ];
    for text in texts {
        let began = Instant::now();
        let answer = ask(&stage, &set, &text, Limits::default());
        let head: String = text.chars().take(80).collect();
        if let Err(error) = answer {
            assert_eq!(error.kind(), Kind::Request, "{head}: {error}");
        }
        assert!(began.elapsed() < TIME_MAX, "{head} took {:?}", began.elapsed());
    }
}
