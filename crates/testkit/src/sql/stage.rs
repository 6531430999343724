//! Containers on an engine, and queries over them, page by page.
//!
//! In: the definition and documents of a case file, queries. Out: all rows of a query in one [`QueryAnswer`].
//! Each container is made twice: as defined, and with all documents in one logical partition, so that the same query can
//! be asked with and without a partition key.
//! Invariants
//! - Every position between two pages goes through the bytes of a token and back.
//! - A query that does not come to an end fails; it does not hang.
//!
//! Not here: what the rows should be (`answer`), changes of what is furnished (`changes`).

mod changes;

use super::answer::QueryAnswer;
use super::case_file::Setting;
use crate::json::Json;
use crate::server::{EngineKind, START_SECONDS, open_engine, runtime};
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::partition::{EffectiveRange, PartitionKey};
use astrarium_database::value::{Value, json};
use astrarium_database::{
    Account, Container, Env, Error, FeedScope, IndexDirective, IndexUse, KeptUse, Limits, Link, NewContainer,
    Query, QueryPage, QueryScope, Resume,
};
use astrarium_env::{ManualClock, Random};
use std::collections::BTreeSet;
use std::sync::Arc;
use tempfile::TempDir;

/// Pages that a query may take at most.
const PAGE_COUNT_MAX: usize = 10_000;
/// Rows of a page that should hold everything.
pub const ONE_PAGE: usize = 100_000;
/// The path of a property that no document has.
const NOWHERE: &str = "{\"paths\":[\"/no/where\"],\"kind\":\"Hash\",\"version\":2}";

/// An account of a test.
pub struct Stage {
    account: Account,
    clock: ManualClock,
    container_count: usize,
    /// Removed when the stage is gone.
    _folder: Option<TempDir>,
}

/// The containers of one definition.
#[derive(Debug)]
pub struct Set {
    /// As defined.
    pub spread: Arc<Container>,
    /// With all documents in one logical partition; absent where ids would clash or the definition forbids it.
    pub together: Option<Arc<Container>>,
    /// How many documents each has.
    pub document_count: usize,
}

/// A way to ask a query.
#[derive(Debug, Clone)]
pub struct Way {
    /// What it is called in reports.
    pub name: &'static str,
    /// Where it looks.
    pub container: Arc<Container>,
    /// Which part of that.
    pub scope: QueryScope,
    /// Rows of a page.
    pub page_size: usize,
    /// Whether reading is spread over all cores even for a few documents.
    pub spread_work: bool,
    /// When indexes are used.
    pub index_use: IndexUse,
}

impl Stage {
    /// An empty account with one database.
    pub fn new(engine: EngineKind) -> Stage {
        let clock = ManualClock::at_seconds(START_SECONDS);
        let env = Env::new(Box::new(clock.clone()), Random::from_seed(1));
        let (engine, folder) = open_engine(engine);
        let account = runtime().block_on(async {
            let account = Account::open(engine, env).await.expect("open an empty account");
            let database = serde_json::json!({"id": "d"});
            let database = DatabaseDefinition::from_json(&database).expect("a definition of ours");
            account.catalog().create_database(&database, None).await.expect("make a database");
            account
        });
        Stage { account, clock, container_count: 0, _folder: folder }
    }

    /// Makes the containers of a definition and fills them.
    pub fn furnish(&mut self, definition: &Json, documents: &[String]) -> Result<Set, String> {
        let spread = self.container(definition, None, documents)?;
        let ids = documents
            .iter()
            .map(|document| Json::parse(document)?.get("id").map(Json::to_string).ok_or("no id".to_owned()));
        let ids: BTreeSet<String> = ids.collect::<Result<_, String>>()?;
        let alone = ids.len() == documents.len() && definition.get("uniqueKeyPolicy").is_none();
        let together = if alone { Some(self.container(&moved(definition), None, documents)?) } else { None };
        Ok(Set { spread, together, document_count: documents.len() })
    }

    /// Makes one container and fills it. Throughput decides how many ranges it has: 10,000 is one, 24,000 are four.
    pub fn container(
        &mut self,
        definition: &Json,
        throughput: Option<u32>,
        documents: &[String],
    ) -> Result<Arc<Container>, String> {
        self.container_count += 1;
        let body = definition_body(definition, self.container_count)?;
        let definition = ContainerDefinition::from_json(&body).map_err(|error| error.to_string())?;
        let new = NewContainer { definition, throughput: throughput.map(Throughput::Manual) };
        runtime().block_on(async {
            let container = self.account.catalog().create_container(Link::Name("d"), &new).await;
            let container = container.map_err(|error| error.to_string())?;
            for document in documents {
                self.write(&container, document, IndexDirective::Default)
                    .await
                    .map_err(|error| format!("{document}: {error}"))?;
            }
            Ok(container)
        })
    }

    /// The ways in which a query must give the same.
    pub fn ways(&self, set: &Set, setting: &Setting) -> Result<Vec<Way>, String> {
        let way = |name, scope, page_size| Way {
            name,
            container: set.spread.clone(),
            scope,
            page_size,
            spread_work: page_size == 3,
            index_use: IndexUse::ByCost,
        };
        if let Some(key) = &setting.key {
            let scope = self.partition(&set.spread, key)?;
            return Ok(vec![
                way("key", scope.clone(), ONE_PAGE),
                way("key, pages of 1", scope.clone(), 1),
                way("key, pages of 3", scope, 3),
            ]);
        }
        let open = QueryScope::Open { cross_partition: !setting.closed, whole: true };
        let mut ways = vec![
            way("open", open.clone(), ONE_PAGE),
            way("open, pages of 1", open.clone(), 1),
            Way { index_use: IndexUse::Always, ..way("open, by index", open.clone(), ONE_PAGE) },
            Way { index_use: IndexUse::Always, ..way("open, by index, pages of 1", open.clone(), 1) },
            Way { index_use: IndexUse::Never, ..way("open, pages of 3", open, 3) },
        ];
        if !setting.closed {
            let slice = QueryScope::Given(FeedScope::Slice(EffectiveRange::full()));
            ways.push(way("slice, pages of 2", slice, 2));
            let range = way("range", QueryScope::Given(FeedScope::Range(0)), ONE_PAGE);
            ways.push(Way { spread_work: true, ..range });
        }
        if let Some(container) = set.together.clone().filter(|_| !setting.closed) {
            let key = PartitionKey::default();
            let scope = self
                .account
                .documents(&container)
                .partition_scope(&key)
                .map_err(|error| error.to_string())?;
            for (name, page_size) in [("one partition", ONE_PAGE), ("one partition, pages of 1", 1)] {
                let scope = QueryScope::Given(scope.clone());
                let spread_work = page_size == 1;
                let container = container.clone();
                let index_use = if spread_work { IndexUse::Always } else { IndexUse::ByCost };
                ways.push(Way { name, container, scope, page_size, spread_work, index_use });
            }
        }
        Ok(ways)
    }

    /// Asks a query to its end.
    pub fn ask(&self, query: &Query, way: &Way) -> QueryAnswer {
        let mut limits =
            Limits { row_count_max: way.page_size, index_use: way.index_use, ..Limits::default() };
        if way.spread_work {
            limits.alone_documents_max = 0;
        }
        // Some ways compute every page, some take the next ones from what is kept.
        if way.page_size < 3 && way.index_use == IndexUse::ByCost {
            limits.kept_use = KeptUse::Always;
        }
        self.ask_within(query, way, limits)
    }

    /// Asks a query to its end, each page within limits.
    pub fn ask_within(&self, query: &Query, way: &Way, limits: Limits) -> QueryAnswer {
        let mut rows = Vec::new();
        let mut resume: Option<Resume> = None;
        for _ in 0..PAGE_COUNT_MAX {
            let (page, next) = self.page(query, way, limits, resume.take())?;
            rows.extend(page);
            resume = next;
            if resume.is_none() {
                return Ok(rows);
            }
        }
        Err(Error::Bug(format!("a query without end: {} rows in {PAGE_COUNT_MAX} pages", rows.len())))
    }

    /// Asks for one page, and gives it with what it cost.
    pub fn query_page(
        &self,
        query: &Query,
        way: &Way,
        limits: Limits,
        resume: Option<Resume>,
    ) -> Result<QueryPage, Error> {
        runtime().block_on(self.account.documents(&way.container).query(query, &way.scope, resume, limits))
    }

    /// Asks for one page; gives its rows and where to go on.
    pub fn page(
        &self,
        query: &Query,
        way: &Way,
        limits: Limits,
        resume: Option<Resume>,
    ) -> Result<(Vec<Json>, Option<Resume>), Error> {
        let page = self.query_page(query, way, limits, resume)?;
        let (count, count_max) = (page.rows.len(), limits.row_count_max);
        // Rows in an order that no index has come all at once, since clients that merge them take one page of each range.
        let is_vector = query.text().to_ascii_uppercase().contains("VECTORDISTANCE");
        assert!(count <= count_max || is_vector, "a page of {count} rows instead of {count_max}");
        let read = |row: &Vec<u8>| {
            let text = std::str::from_utf8(row).map_err(|_| Error::Bug("a row is no UTF-8".to_owned()))?;
            Json::parse(text).map_err(|error| Error::Bug(format!("a row {text}: {error}")))
        };
        let rows = page.rows.iter().map(read).collect::<Result<_, _>>()?;
        let resume = page.resume.as_ref().map(|next| {
            let decoded = Resume::decode(&next.encode());
            assert_eq!(decoded.as_ref(), Some(next), "a position survives its token");
            next.clone()
        });
        Ok((rows, resume))
    }

    /// One partition, or those whose keys begin so.
    pub fn partition(&self, container: &Arc<Container>, key: &str) -> Result<QueryScope, String> {
        let key = PartitionKey::parse_header(key).map_err(|error| error.to_string())?;
        self.account
            .documents(container)
            .partition_scope(&key)
            .map(QueryScope::Given)
            .map_err(|error| error.to_string())
    }

    /// One range.
    pub fn range(id: u32) -> QueryScope {
        QueryScope::Given(FeedScope::Range(id))
    }

    /// Everything, in so many slices.
    pub fn slices(container: &Container, count: u32) -> Vec<QueryScope> {
        let slices = EffectiveRange::equal_slices(count, &container.definition.partition_key);
        slices.into_iter().map(|slice| QueryScope::Given(FeedScope::Slice(slice))).collect()
    }

    /// How a query would run.
    pub fn explain(&self, query: &Query, set: &Set) -> Result<String, Error> {
        runtime().block_on(self.account.documents(&set.spread).plan_text(query))
    }
}

/// Reads a query with its parameters.
pub fn read_query(text: &str, parameters: &[(String, Json)]) -> Result<Query, Error> {
    let value = |value: &Json| -> Value { json::seek::value(value.to_string().as_bytes()) };
    let parameters = parameters.iter().map(|(name, own)| (name.clone(), value(own))).collect();
    Query::parse(text, parameters)
}

/// The definition with a partition key that no document has.
fn moved(definition: &Json) -> Json {
    let Json::Object { members, open } = definition else { return definition.clone() };
    let mut members: Vec<_> = members.iter().filter(|(name, _)| name != "partitionKey").cloned().collect();
    members.push(("partitionKey".to_owned(), Json::parse(NOWHERE).expect("JSON of ours")));
    Json::Object { members, open: *open }
}

/// The body of a request that makes a container, with the short forms of `partitionKey` written out.
fn definition_body(definition: &Json, number: usize) -> Result<serde_json::Value, String> {
    let mut body: serde_json::Value =
        serde_json::from_str(&definition.to_string()).map_err(|error| error.to_string())?;
    let members = body.as_object_mut().ok_or("a definition is an object")?;
    members.insert("id".to_owned(), format!("c{number}").into());
    let key = match members.get("partitionKey") {
        None => serde_json::json!({"paths": ["/pk"], "kind": "Hash", "version": 2}),
        Some(serde_json::Value::String(path)) => {
            serde_json::json!({"paths": [path], "kind": "Hash", "version": 2})
        }
        Some(serde_json::Value::Array(paths)) => {
            serde_json::json!({"paths": paths, "kind": "MultiHash", "version": 2})
        }
        Some(other) => other.clone(),
    };
    members.insert("partitionKey".to_owned(), key);
    Ok(body)
}
