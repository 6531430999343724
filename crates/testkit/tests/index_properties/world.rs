//! A container of a case, and the comparison of all ways to ask a query of it.

use crate::documents::{Document, KEYS, SECOND_KEYS};
use crate::policies::Definition;
use crate::words::{Words, member};
use astrarium_database::{Container, IndexUse, Kind, Limits, QueryScope, Resume};
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::answer::{QueryAnswer, shown};
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};
use proptest::test_runner::TestCaseError;
use std::sync::Arc;

/// Throughput of a container of four ranges.
const WIDE: u32 = 24_000;
/// How an order by a path is refused that the policy leaves out.
const EXCLUDED: &str = "The index path corresponding to the specified order-by item is excluded.";
/// Pages that a query may take at most.
const PAGE_COUNT_MAX: usize = 3_000;

/// How a query is asked: each page uses indexes as the next of the list says, over and over.
struct Manner {
    name: &'static str,
    uses: &'static [IndexUse],
    page_size: usize,
    /// Whether every page ends as soon as it may.
    hurried: bool,
    /// Whether reading is spread over all cores even for a few documents.
    spread_work: bool,
    /// Whether indexes under construction get on between pages.
    building: bool,
}

const fn manner(name: &'static str, uses: &'static [IndexUse], page_size: usize) -> Manner {
    Manner { name, uses, page_size, hurried: false, spread_work: false, building: false }
}

const SCAN: Manner = manner("scan", &[IndexUse::Never], ONE_PAGE);

/// The ways that must give what [`SCAN`] gives.
const MANNERS: [Manner; 10] = [
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
    // The last, because a policy that comes into use may change what is refused.
    Manner { building: true, ..manner("while building", &[IndexUse::Always], 1) },
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

    pub(crate) fn put(&self, document: &Document, words: &Words) -> Result<(), TestCaseError> {
        let text = document.text(words);
        let put = self.stage.put_with(&self.container, &text, document.directive);
        put.map_err(|error| fail(format!("{text}: {error}")))
    }

    /// Removes a document if it is there.
    pub(crate) fn remove(&self, document: &Document) {
        // Most often there is none.
        let _ = self.stage.remove(&self.container, &self.key(document.key), &document.id.to_string());
    }

    /// Removes a partition.
    pub(crate) fn clear(&self, key: (usize, usize)) -> Result<(), TestCaseError> {
        self.stage.clear(&self.container, &self.key(key)).map_err(fail)
    }

    pub(crate) fn wait(&self, seconds: u64) {
        self.stage.clock().advance_seconds(seconds);
    }

    pub(crate) fn erase_expired(&self) -> Result<(), TestCaseError> {
        self.stage.erase_expired().map(|_| ()).map_err(fail)
    }

    /// Changes the policy; its index is still to be built.
    pub(crate) fn redefine(&mut self, definition: &Definition, words: &Words) -> Result<(), TestCaseError> {
        let json = definition_json(definition, words);
        let container = self.stage.redefine(&self.container, &json);
        self.container = container.map_err(|error| fail(format!("{json}: {error}")))?;
        Ok(())
    }

    /// Does a step of building indexes.
    pub(crate) fn build(&self) -> Result<(), TestCaseError> {
        self.stage.build_indexes().map(drop).map_err(fail)
    }

    /// Builds what is to be built, and brings it into use. Without this the container at hand may be an older view of
    /// itself, which must do as well.
    pub(crate) fn settle(&mut self) -> Result<(), TestCaseError> {
        while self.stage.build_indexes().map_err(fail)? {}
        self.container = self.stage.renewed(&self.container).map_err(fail)?;
        Ok(())
    }

    /// Everything stored agrees, and nothing is left of it once the container is gone.
    pub(crate) fn end(self) -> Result<(), TestCaseError> {
        let problems = self.stage.problems().map_err(fail)?;
        if !problems.is_empty() {
            return Err(fail(format!("what is stored disagrees: {}", problems.join("; "))));
        }
        self.stage.discard(&self.container).map_err(fail)?;
        self.stage.sweep().map_err(fail)
    }

    /// An order by a path is refused exactly if the policy leaves the path out.
    pub(crate) fn order(&self, path: &[&str], is_indexed: bool) -> Result<(), TestCaseError> {
        let path = path.iter().fold("c".to_owned(), |text, name| text + &member(name));
        let query = read_query(&format!("SELECT VALUE c.id FROM c ORDER BY {path}"), &[])
            .map_err(|error| fail(format!("{path}: {error}")))?;
        let scope = QueryScope::Open { cross_partition: true, whole: true };
        let refused = self.ask(&query, &self.way(scope), &SCAN).err().map(|error| error.to_string());
        let expected = (!is_indexed).then(|| EXCLUDED.to_owned());
        let told = || fail(format!("ORDER BY {path}: {refused:?} instead of {expected:?}"));
        if refused == expected { Ok(()) } else { Err(told()) }
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
                // The first key is the one that most documents have.
                let key = self.key((number % 8 % 6, number / 8 % 5 % 4));
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
    pub(crate) fn compare(&self, text: &str, words: &Words, number: usize) -> Result<(), TestCaseError> {
        let query = match read_query(text, &words.parameters()) {
            Ok(query) => query,
            Err(error) if error.kind() == Kind::Request => return Ok(()),
            Err(error) => return Err(fail(format!("{text}: {error}"))),
        };
        for (name, scope) in self.scopes(number)? {
            let way = self.way(scope);
            let expected = self.ask(&query, &way, &SCAN);
            if let Err(error) = &expected
                && error.kind() != Kind::Request
            {
                return Err(fail(format!("{name}: {text}\n{error}")));
            }
            for manner in &MANNERS {
                if manner.building && text.contains("ORDER BY") {
                    continue;
                }
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
        Ok(())
    }

    fn way(&self, scope: QueryScope) -> Way {
        Way {
            name: "",
            container: Arc::clone(&self.container),
            scope,
            page_size: ONE_PAGE,
            spread_work: false,
            index_use: IndexUse::Never,
        }
    }

    fn ask(&self, query: &astrarium_database::Query, way: &Way, manner: &Manner) -> QueryAnswer {
        let mut rows = Vec::new();
        let mut resume: Option<Resume> = None;
        for index_use in manner.uses.iter().cycle().take(PAGE_COUNT_MAX) {
            let mut limits =
                Limits { row_count_max: manner.page_size, index_use: *index_use, ..Limits::default() };
            if manner.hurried {
                limits.page_micros = 0;
            }
            if manner.spread_work {
                limits.alone_documents_max = 0;
            }
            if manner.building {
                self.stage.build_indexes().map_err(astrarium_database::Error::Bug)?;
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
fn agree(expected: &QueryAnswer, answer: &QueryAnswer) -> bool {
    match (expected, answer) {
        (Ok(expected), Ok(rows)) => expected == rows,
        (Err(expected), Err(error)) => expected.to_string() == error.to_string(),
        _ => false,
    }
}
