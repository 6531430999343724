//! A container of a case, and the comparison of all ways to ask a query of it.

use crate::documents::{Document, KEYS, SECOND_KEYS};
use crate::policies::Definition;
use crate::words::Words;
use astrarium_database::{Container, IndexUse, Kind, Limits, QueryScope, Resume};
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::answer::{Answer, shown};
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};
use proptest::test_runner::TestCaseError;
use std::sync::Arc;

/// Throughput of a container of four ranges.
const WIDE: u32 = 24_000;
/// Pages that a query may take at most.
const PAGE_COUNT_MAX: usize = 400;

/// How a query is asked: each page uses indexes as the next of the list says, over and over.
struct Manner {
    name: &'static str,
    uses: &'static [IndexUse],
    page_size: usize,
    /// Whether every page ends as soon as it may.
    hurried: bool,
    /// Whether reading is spread over all cores even for a few documents.
    spread_work: bool,
}

const fn manner(name: &'static str, uses: &'static [IndexUse], page_size: usize) -> Manner {
    Manner { name, uses, page_size, hurried: false, spread_work: false }
}

const SCAN: Manner = manner("scan", &[IndexUse::Never], ONE_PAGE);

/// The ways that must give what [`SCAN`] gives.
const MANNERS: [Manner; 9] = [
    manner("scan, pages of 1", &[IndexUse::Never], 1),
    manner("index", &[IndexUse::Always], ONE_PAGE),
    manner("index, pages of 1", &[IndexUse::Always], 1),
    Manner { spread_work: true, ..manner("index, pages of 3", &[IndexUse::Always], 3) },
    Manner { hurried: true, ..manner("index, hurried", &[IndexUse::Always], 2) },
    Manner { hurried: true, ..manner("scan, hurried", &[IndexUse::Never], 2) },
    manner("by cost", &[IndexUse::ByCost], ONE_PAGE),
    manner("by cost, pages of 1", &[IndexUse::ByCost], 1),
    // A position that one page leaves must serve the next, whichever way that one goes.
    manner("in turns", &[IndexUse::Always, IndexUse::Never, IndexUse::ByCost], 1),
];

/// A container under test.
pub(crate) struct World<'s> {
    stage: &'s mut Stage,
    container: Arc<Container>,
    hierarchical: bool,
}

pub(crate) fn fail(reason: impl Into<String>) -> TestCaseError {
    TestCaseError::fail(reason.into())
}

fn definition_json(definition: &Definition, words: &Words) -> Json {
    Json::parse(&definition.json(words).to_string()).expect("JSON of ours")
}

impl<'s> World<'s> {
    pub(crate) fn new(
        stage: &'s mut Stage,
        definition: &Definition,
        words: &Words,
    ) -> Result<World<'s>, TestCaseError> {
        let throughput = definition.wide.then_some(WIDE);
        let json = definition_json(definition, words);
        let container =
            stage.container(&json, throughput, &[]).map_err(|error| fail(format!("{json}: {error}")))?;
        Ok(World { stage, container, hierarchical: definition.hierarchical })
    }

    pub(crate) fn put(&self, text: &str) -> Result<(), TestCaseError> {
        self.stage.put(&self.container, text).map_err(|error| fail(format!("{text}: {error}")))
    }

    /// Removes a document if it is there.
    pub(crate) fn remove(&self, document: &Document) {
        // Most often there is none.
        let _ = self.stage.remove(&self.container, &self.key(document.key), &document.id.to_string());
    }

    pub(crate) fn wait(&self, seconds: u64) {
        self.stage.clock().advance_seconds(seconds);
    }

    /// A partition key as a header has it.
    fn key(&self, (first, second): (usize, usize)) -> String {
        let first = KEYS[first % KEYS.len()].unwrap_or("{}");
        let second = SECOND_KEYS[second % SECOND_KEYS.len()].unwrap_or("{}");
        if self.hierarchical { format!("[{first},{second}]") } else { format!("[{first}]") }
    }

    /// Scopes to ask a query over: everything, and another one by number.
    fn scopes(&self, number: usize) -> Result<Vec<(String, QueryScope)>, TestCaseError> {
        let open = QueryScope::Open { cross_partition: true, whole: true };
        let (kind, number) = (number % 5, number / 5);
        let other = match kind {
            0 | 1 => {
                let key = self.key((number, number / 8));
                (format!("key {key}"), self.stage.partition(&self.container, &key).map_err(fail)?)
            }
            2 if self.hierarchical => {
                let prefix = format!("[{}]", KEYS[number % KEYS.len()].unwrap_or("{}"));
                let scope = self.stage.partition(&self.container, &prefix).map_err(fail)?;
                (format!("prefix {prefix}"), scope)
            }
            2 | 3 => {
                let count = 1 + u32::try_from(number % 3).unwrap_or_default();
                let slices = Stage::slices(&self.container, count);
                (format!("slice of {count}"), slices[number % slices.len()].clone())
            }
            _ => {
                let range = self.container.ranges[number % self.container.ranges.len()].id;
                (format!("range {range}"), Stage::range(range))
            }
        };
        Ok(vec![("open".to_owned(), open), other])
    }

    /// Asks a query over several scopes, in all manners; all must agree.
    pub(crate) fn compare(&self, text: &str, words: &Words, number: usize) -> Result<bool, TestCaseError> {
        if std::env::var("IX_SKIP").is_ok_and(|skip| skip.split(';').any(|part| text.contains(part))) {
            return Ok(false);
        }
        let query = match read_query(text, &words.parameters()) {
            Ok(query) => query,
            Err(error) if error.kind() == Kind::Request => return Ok(false),
            Err(error) => return Err(fail(format!("{text}: {error}"))),
        };
        let mut answered = false;
        for (name, scope) in self.scopes(number)? {
            let way = Way {
                name: "",
                container: Arc::clone(&self.container),
                scope,
                page_size: ONE_PAGE,
                spread_work: false,
                index_use: IndexUse::Never,
            };
            let expected = self.ask(&query, &way, &SCAN);
            answered |= expected.is_ok();
            if let Err(error) = &expected
                && error.kind() != Kind::Request
            {
                return Err(fail(format!("{name}: {text}\n{error}")));
            }
            for manner in &MANNERS {
                let answer = self.ask(&query, &way, manner);
                if !agree(&expected, &answer) {
                    return Err(fail(format!(
                        "{name}: {text}\n  scan gave\n{}  {} gave\n{}",
                        shown(&expected),
                        manner.name,
                        shown(&answer)
                    )));
                }
            }
        }
        Ok(answered)
    }

    fn ask(&self, query: &astrarium_database::Query, way: &Way, manner: &Manner) -> Answer {
        let mut rows = Vec::new();
        let mut resume: Option<Resume> = None;
        for index_use in manner.uses.iter().cycle().take(PAGE_COUNT_MAX) {
            let mut limits =
                Limits { row_count_max: manner.page_size, index_use: *index_use, ..Limits::default() };
            if manner.hurried && way.container.ranges.len() == 1 {
                limits.page_micros = 0;
            }
            if manner.spread_work {
                limits.alone_documents_max = 0;
            }
            let (page, next) = self.stage.page(query, way, limits, resume.take())?;
            rows.extend(page);
            if next.is_none() {
                return Ok(rows);
            }
            resume = next;
        }
        Err(astrarium_database::Error::Bug(format!("a query without end: {} rows", rows.len())))
    }
}

/// Whether two answers are the same rows in the same order, or the same refusal.
fn agree(expected: &Answer, answer: &Answer) -> bool {
    match (expected, answer) {
        (Ok(expected), Ok(rows)) => expected == rows,
        (Err(expected), Err(error)) => expected.to_string() == error.to_string(),
        _ => false,
    }
}
