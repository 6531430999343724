//! Where rows of an order begin, as clients say it that merge ranges themselves: from every row on, exactly the rest.
//!
//! For random documents and orders every row of every range is a place to begin: before or after its document, and before or
//! after all rows with its sort keys. Expected are the rows of the query without such a place, from there on.

use astrarium_database::{IndexUse, Limits, OrderStart, Query, QueryScope, Resume, Rid, StartKey};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::RefCell;
use std::sync::Arc;

const DEFINITION: &str = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"compositeIndexes\":[\
    [{\"path\":\"/a\"},{\"path\":\"/b\"}],[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}}";
/// Throughput of a container of four ranges.
const WIDE: u32 = 24_000;

const ORDERS: [&[&str]; 6] = [
    &["c.a"],
    &["c.a DESC"],
    &["c.a", "c.b"],
    &["c.a DESC", "c.b DESC"],
    &["c.a", "c.b DESC"],
    &["c.a DESC", "c.b"],
];

/// Values of sort keys, and for arrays and objects the halves of their hashes as the .NET SDK computes them.
const HASHES: [(&str, i64, i64); 8] = [
    ("[]", -6_706_074_647_855_398_782, 9_031_114_912_533_472_255),
    ("[1]", 3_156_792_105_152_516_121, -4_093_997_899_287_633_148),
    ("[1,2,3]", -6_805_181_268_167_426_770, 8_082_636_597_619_141_244),
    ("[\"abc\"]", -8_941_976_791_818_049_579, 1_292_626_409_783_875_350),
    ("{}", 1_457_042_291_250_783_704, 1_493_060_239_874_959_160),
    ("{\"a\":1}", 6_626_721_030_009_087_975, 3_382_389_252_530_516_517),
    ("{\"a\":1,\"b\":\"x\"}", 8_392_098_340_119_730_390, -4_787_301_616_242_328_831),
    ("[[1,\"a\"],{\"k\":null}]", 8_203_779_580_806_199_439, 4_264_153_533_339_824_304),
];

/// A value of a document, as text; nothing for an absent one.
fn value() -> BoxedStrategy<Option<String>> {
    let long = |count: usize| {
        (select(vec!["x", "y", "é"])).prop_map(move |end| Some(format!("\"{}{end}\"", "x".repeat(count))))
    };
    let plain = vec!["null", "false", "true", "0", "1", "1", "-2.5", "\"\"", "\"a\"", "\"b\""];
    prop_oneof![
        2 => Just(None),
        8 => select(plain).prop_map(|text| Some(text.to_owned())),
        2 => select(HASHES.to_vec()).prop_map(|(text, ..)| Some(text.to_owned())),
        1 => long(100),
        1 => long(700),
    ]
    .boxed()
}

/// Documents by the values of their two sort keys.
type Documents = Vec<(Option<String>, Option<String>)>;

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::new(Stage::new(EngineKind::Memory));
}

fn furnished(stage: &mut Stage, documents: &Documents) -> Result<Arc<astrarium_database::Container>, String> {
    let definition = Json::parse(DEFINITION).expect("JSON of ours");
    let text = |(number, (a, b)): (usize, &(Option<String>, Option<String>))| {
        let member = |name: &str, value: &Option<String>| {
            value.as_ref().map_or_else(String::new, |value| format!(",\"{name}\":{value}"))
        };
        format!("{{\"id\":\"{number}\",\"pk\":{number}{}{}}}", member("a", a), member("b", b))
    };
    let texts: Vec<String> = documents.iter().enumerate().map(text).collect();
    stage.container(&definition, Some(WIDE), &texts)
}

/// A row of a rewritten query: its document and its sort keys as they were given.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    rid: String,
    keys: String,
}

fn row(json: &Json) -> Row {
    let json: serde_json::Value = serde_json::from_str(&json.to_string()).expect("a row");
    Row { rid: json["_rid"].as_str().expect("a rid").to_owned(), keys: json["orderByItems"].to_string() }
}

/// The sort keys of a row as a client says them.
fn start_keys(row: &Row) -> Vec<StartKey> {
    let items: Vec<serde_json::Value> = serde_json::from_str(&row.keys).expect("an array");
    let key = |item: &serde_json::Value| match item.get("item") {
        None => StartKey::Value(astrarium_database::value::Value::Undefined),
        Some(value) if value.is_array() || value.is_object() => {
            let known = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON of ours");
            let (_, low, high) =
                HASHES.into_iter().find(|(text, ..)| known(text) == *value).expect("a known array or object");
            let (low, high) = (low.cast_unsigned(), high.cast_unsigned());
            if value.is_array() { StartKey::Array(low, high) } else { StartKey::Object(low, high) }
        }
        Some(value) => {
            StartKey::Value(astrarium_database::value::json::seek::value(value.to_string().as_bytes()))
        }
    };
    items.iter().map(key).collect()
}

struct Asked<'a> {
    stage: &'a Stage,
    way: Way,
}

impl Asked<'_> {
    /// The rows of a query in pages; where `token_after` is given, the position after so many rows comes with the place.
    fn rows(
        &self,
        query: &Query,
        page_size: usize,
        resume: Option<Resume>,
    ) -> Result<Vec<Row>, TestCaseError> {
        let (mut rows, mut resume) = (Vec::new(), resume);
        loop {
            let limits =
                Limits { row_count_max: page_size, index_use: self.way.index_use, ..Limits::default() };
            let page = self.stage.page(query, &self.way, limits, resume.take());
            let (page, next) = page.map_err(|error| TestCaseError::fail(error.to_string()))?;
            rows.extend(page.iter().map(row));
            prop_assert!(rows.len() < 1_000, "without end");
            match next {
                None => return Ok(rows),
                next => resume = next,
            }
        }
    }

    /// The position after so many rows.
    fn position(&self, query: &Query, count: usize) -> Result<Option<Resume>, TestCaseError> {
        let limits = Limits { row_count_max: count, index_use: self.way.index_use, ..Limits::default() };
        let page = self.stage.page(query, &self.way, limits, None);
        page.map(|(_, next)| next).map_err(|error| TestCaseError::fail(error.to_string()))
    }

    fn check(&self, query: &Query, page_size: usize) -> Result<(), TestCaseError> {
        let all = self.rows(query, ONE_PAGE, None)?;
        for (place, row) in all.iter().enumerate() {
            let ties = |row: &Row| all.iter().position(|other| other.keys == row.keys).unwrap_or_default();
            let behind = all.iter().rposition(|other| other.keys == row.keys).unwrap_or_default() + 1;
            let number = Rid::parse(&row.rid).expect("a rid").number();
            let forms = [
                (Some(number), false, place),
                (Some(number), true, place + 1),
                (None, false, ties(row)),
                (None, true, behind),
            ];
            for (document, exclude, from) in forms {
                let start = OrderStart { keys: start_keys(row), document, exclude };
                let own = query.clone().starting(start.clone());
                let rest = self.rows(&own, page_size, None)?;
                prop_assert_eq!(&rest, &all[from..], "{} {:?}", query.text(), start);
                // With a position of the query itself the one counts that is further on.
                let count = (place * 7 + 3) % all.len() + 1;
                if let Some(position) = self.position(query, count)? {
                    let rest = self.rows(&own, page_size, Some(position))?;
                    prop_assert_eq!(
                        &rest,
                        &all[from.max(count)..],
                        "{} {:?} after {}",
                        query.text(),
                        start,
                        count
                    );
                }
            }
        }
        Ok(())
    }
}

fn run(documents: &Documents, order: &[&str], page_size: usize) -> Result<(), TestCaseError> {
    STAGE.with_borrow_mut(|stage| {
        let container = furnished(stage, documents).map_err(TestCaseError::fail)?;
        let items: Vec<String> =
            order.iter().map(|key| format!("{{\"item\": {}}}", key.trim_end_matches(" DESC"))).collect();
        let text = format!(
            "SELECT c._rid, [{}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY {}",
            items.join(", "),
            order.join(", ")
        );
        let query = read_query(&text, &[]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for range in &container.ranges {
            for index_use in [IndexUse::Always, IndexUse::Never] {
                let scope: QueryScope = Stage::range(range.id);
                let way = Way {
                    name: "",
                    container: Arc::clone(&container),
                    scope,
                    page_size: ONE_PAGE,
                    spread_work: false,
                    index_use,
                };
                Asked { stage, way }.check(&query, page_size)?;
            }
        }
        stage.discard(&container).map_err(TestCaseError::fail)?;
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn from_every_row_on_exactly_the_rest_is_given(
        documents in vec((value(), value()), 1..24),
        order in select(ORDERS.to_vec()),
        page_size in select(vec![1, 3, ONE_PAGE]),
    ) {
        run(&documents, order, page_size)?;
    }
}
