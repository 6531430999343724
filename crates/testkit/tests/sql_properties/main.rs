//! Laws of queries, over random documents and random queries.
//!
//! The rows are those of the naive evaluator, on an engine and over values at hand; any page size, any scope and any
//! set of rules gives them; printing and reading a query does not change them; and no text and no token breaks anything.

mod generator;
mod shape;

use astrarium_database::value::{Value, json};
use astrarium_database::{Error, Kind, Limits, Query, Resume};
use astrarium_env::{Env, Memory, Work};
use astrarium_sql_exec::{Alone, Input, Runtime, UserFunctions, run};
use astrarium_sql_functions::SpatialMode;
use astrarium_sql_plan::{Catalog, Parameters, PlanError, QueryPlan};
use astrarium_sql_syntax::ast;
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::answer::{QueryAnswer, indented, same, shown};
use astrarium_testkit::sql::case_file::Setting;
use astrarium_testkit::sql::naive::data::Data;
use astrarium_testkit::sql::naive::rows;
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, read_query};
use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// What the server adds to documents.
const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Pages that a plan may take at most.
const PAGE_COUNT_MAX: usize = 1_000;

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn data(documents: &[String]) -> Vec<Data> {
    documents.iter().map(|document| Data::of(&Json::parse(document).expect("a document is JSON"))).collect()
}

fn fail(reason: impl Into<String>) -> TestCaseError {
    TestCaseError::fail(reason.into())
}

fn parse(text: &str) -> Result<ast::SelectQuery, TestCaseError> {
    astrarium_sql_syntax::parse(text).map_err(|error| fail(error.render(text)))
}

/// The parameters of every query.
fn parameters() -> Vec<(String, Json)> {
    let parameter =
        |(name, value): (&str, &str)| (name.to_owned(), Json::parse(value).expect("JSON of ours"));
    generator::PARAMETERS.map(parameter).to_vec()
}

/// The rows that the naive evaluator gives.
fn expected(text: &str, documents: &[String]) -> Result<Vec<Json>, TestCaseError> {
    let parameters: Vec<(String, Data)> =
        parameters().iter().map(|(name, value)| (name.clone(), Data::of(value))).collect();
    let rows = rows(&parse(text)?, &data(documents), &parameters)
        .map_err(|unknown| fail(format!("{text}: {unknown}")))?;
    Ok(rows.iter().map(|row| Json::parse(&row.to_string()).expect("a row is JSON")).collect())
}

/// A row without what the server adds, for comparisons of whole items.
fn stripped(row: &Json) -> Json {
    match row {
        Json::Object { members, open } => {
            let own = members.iter().filter(|(name, _)| !SYSTEM_PROPERTIES.contains(&name.as_str()));
            Json::Object { members: own.cloned().collect(), open: *open }
        }
        other => other.clone(),
    }
}

fn check_same(what: &str, text: &str, expected: &[Json], actual: &[Json]) -> Result<(), TestCaseError> {
    let agree = expected.len() == actual.len()
        && expected.iter().zip(actual).all(|(expected, actual)| same(expected, &stripped(actual), 1e-12));
    let list = |rows: &[Json]| indented(&rows.iter().map(Json::to_string).collect::<Vec<_>>());
    let report = || fail(format!("{what}: {text}\n  expected\n{}  got\n{}", list(expected), list(actual)));
    if agree { Ok(()) } else { Err(report()) }
}

thread_local! {
    /// One account for all cases of a thread: each case has containers of its own.
    static STAGE: RefCell<Stage> = RefCell::new(Stage::new(EngineKind::Memory));
}

/// Asks a query in all ways and hands each answer to a check.
fn ask_all(
    documents: &[String],
    texts: &[String],
    check: impl Fn(&str, &str, QueryAnswer) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    STAGE.with_borrow_mut(|stage| {
        let definition = Json::parse(generator::CONTAINER).expect("JSON of ours");
        let set = stage.furnish(&definition, documents).map_err(fail)?;
        for text in texts {
            match read_query(text, &parameters()) {
                Err(error) => check("read", text, Err(error))?,
                Ok(query) => {
                    for way in stage.ways(&set, &Setting::default()).map_err(fail)? {
                        check(way.name, text, stage.ask(&query, &way))?;
                    }
                }
            }
        }
        Ok(())
    })
}

proptest! {
    #![proptest_config(config(250))]

    /// An engine gives what the naive evaluator gives, in every scope and page size.
    #[test]
    fn an_engine_agrees_with_the_naive_evaluator(
        documents in generator::documents(),
        shapes in proptest::collection::vec(generator::shape(), 1..6),
    ) {
        let texts: Vec<String> = shapes.iter().map(shape::Shape::text).collect();
        ask_all(&documents, &texts, |way, text, answer| match &answer {
            Ok(rows) => check_same(way, text, &expected(text, &documents)?, rows),
            Err(_) => Err(fail(format!("{way}: {text}\n{}", shown(&answer)))),
        })?;
    }

    /// Plans with and without rules, over values at hand and in pages of any size, give what the naive evaluator gives.
    #[test]
    fn rules_and_pages_change_nothing(
        documents in generator::documents(),
        shape in generator::shape(),
        page_size in 1_usize..5,
    ) {
        let text = shape.text();
        let expected = expected(&text, &documents)?;
        let values: Vec<Value> = documents.iter().map(|document| json::seek::value(document.as_bytes())).collect();
        let tree = parse(&text)?;
        let value = |value: &Json| json::seek::value(value.to_string().as_bytes());
        let parameters = parameters().iter().map(|(name, own)| (name.clone(), value(own))).collect();
        let (catalog, parameters) = (Catalog::default(), Parameters::new(parameters));
        let refused = |error: PlanError| fail(format!("{text}: {error:?}"));
        let bare = astrarium_sql_plan::bind(&tree, &catalog, &parameters).map_err(refused)?;
        let improved = astrarium_sql_plan::plan(&tree, &catalog, &parameters).map_err(refused)?;
        for (what, plan) in [("without rules", &bare), ("with rules", &improved)] {
            for size in [ONE_PAGE, page_size] {
                check_same(&format!("{what}, pages of {size}"), &text, &expected, &run_plan(&Arc::new(plan.clone()), &values, size)?)?;
            }
        }
        prop_assert!(!astrarium_sql_plan::explain::explain(&improved, &astrarium_sql_plan::physical::PhysicalPlan::of_all(&improved)).is_empty());
    }

    /// The printed text of a query gives the same rows.
    #[test]
    fn a_printed_query_means_the_same(documents in generator::documents(), shape in generator::shape()) {
        let text = shape.text();
        let printed = astrarium_sql_syntax::print(&parse(&text)?);
        prop_assert_eq!(&parse(&printed)?, &parse(&text)?);
        check_same("printed", &printed, &expected(&text, &documents)?, &expected(&printed, &documents)?)?;
    }

    /// Any tree of the grammar is answered or refused, never more.
    #[test]
    fn any_query_is_answered_or_refused(query in astrarium_sql_syntax::testing::query()) {
        let document = "{\"id\":\"1\",\"pk\":\"a\",\"r\":[1,{\"x\":2}],\"x\":{\"c\":[3]},\"a1\":\"t\"}".to_owned();
        ask_all(&[document], &[astrarium_sql_syntax::print(&query)], |way, text, answer| match answer {
            Err(error) if error.kind() != Kind::Request => Err(fail(format!("{way}: {text}: {error}"))),
            _ => Ok(()),
        })?;
    }

    /// Any text is read or refused.
    #[test]
    fn any_text_is_read_or_refused(text in TEXT) {
        if let Err(error) = Query::parse(&text, Vec::new()) {
            prop_assert!(matches!(error, Error::Query(_)), "{error}");
        }
    }

    /// Any bytes are a position or none, and a position is read as it was written.
    #[test]
    fn tokens_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(resume) = Resume::decode(&bytes) {
            prop_assert_eq!(Resume::decode(&resume.encode()), Some(resume));
        }
    }
}

/// Words of the language in any order.
const TEXT: &str = "(SELECT|VALUE|FROM|c|x|IN|\\(|\\)|\\[|\\]|\\.|,|1|\"a\"| |\\*|JOIN|WHERE|=|@p|ARRAY|NOT|\\?|:|\\||-|'|\\\\|é){0,40}";

struct NoFunctions;

impl UserFunctions for NoFunctions {
    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        Err(format!("there is no function {name}"))
    }
}

/// All rows of a plan over values at hand.
fn run_plan(plan: &Arc<QueryPlan>, values: &[Value], page_size: usize) -> Result<Vec<Json>, TestCaseError> {
    let runtime = Runtime {
        work: Arc::new(Work::new(Duration::from_mins(1))),
        memory: Memory::unlimited(),
        helpers: Arc::new(Alone),
        env: Env::system(),
        user_functions: Arc::new(NoFunctions),
        spatial_mode: SpatialMode::Geography,
    };
    let limits = Limits { row_count_max: page_size, ..Limits::default() };
    let input = match &plan.input {
        Some(inner) => {
            // The rows of a subquery stand where documents would.
            let rows = run_plan(inner, values, ONE_PAGE)?;
            Input::Values(rows.iter().map(|row| json::seek::value(row.to_string().as_bytes())).collect())
        }
        None if plan.reads_documents() => Input::Values(values.into()),
        None => Input::Nothing,
    };
    let mut rows = Vec::new();
    let mut resume = None;
    for _ in 0..PAGE_COUNT_MAX {
        let page = block_on(run(&runtime, plan, &input, (None, resume.take()), limits))
            .map_err(|error| fail(error.to_string()))?;
        for row in &page.rows {
            rows.push(Json::parse(&String::from_utf8_lossy(row)).map_err(fail)?);
        }
        resume = page.resume;
        if resume.is_none() {
            return Ok(rows);
        }
    }
    Err(fail("a plan without end"))
}

/// Nothing waits when values are at hand, but the future must be asked all the same.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().expect("start a runtime").block_on(future)
}
