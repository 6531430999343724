//! An account with a container, and what tests do with it.

use crate::interposed::Interposed;
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::partition::PartitionKey;
use astrarium_database::value::json::Text;
use astrarium_database::{
    Account, Conditions, Container, Env, Error, FeedScope, IndexDirective, IndexUse, Limits, Link, Memory,
    NewContainer, Outcome, Query, QueryScope, RangeSettings, Resources, WriteMode, WriteOptions,
};
use astrarium_env::{Clock, Random};
use astrarium_kv::{Direction, Engine, KeyRange, ScanLimit, ShardId, View, WriteBatch};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) account: Account,
    pub(crate) engine: Arc<Interposed>,
    pub(crate) clock: TestClock,
}

/// A clock that is moved by hand, and by a little whenever somebody looks: bounded steps do little work then.
#[derive(Clone)]
pub(crate) struct TestClock {
    micros: Arc<AtomicU64>,
    tick_micros: u64,
}

impl TestClock {
    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_micros(&self) -> u64 {
        self.micros.fetch_add(self.tick_micros, Ordering::Relaxed)
    }
}

const START_SECONDS: u64 = 1_000_000;
pub(crate) const UNLIMITED: ScanLimit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };

impl World {
    /// A container `c` with partition key `/pk` and more of its definition.
    pub(crate) async fn new(definition: Value) -> World {
        World::ticking(definition, 0).await
    }

    /// The same with a clock that goes on by so much whenever somebody looks.
    pub(crate) async fn ticking(definition: Value, tick_micros: u64) -> World {
        let engine = Arc::new(Interposed::default());
        let clock = TestClock { micros: Arc::new(AtomicU64::new(START_SECONDS * 1_000_000)), tick_micros };
        let account = open(&engine, &clock, 1, RangeSettings::default().bytes_max).await;
        account.catalog().create_database(&DatabaseDefinition { id: "d".to_owned() }, None).await.unwrap();
        let world = World { account, engine, clock };
        world.add_container("c", definition).await;
        world
    }

    /// The same in another process, which has a budget of memory.
    pub(crate) async fn with_memory(&self, memory: &Memory) -> World {
        let env = Env::new(Box::new(self.clock.clone()), Random::from_seed(5));
        let engine: Arc<dyn Engine> = self.engine.clone();
        let resources = Resources { memory: memory.clone(), ..Resources::default() };
        World { account: Account::open_within(engine, env, resources).await.unwrap(), ..self.clone() }
    }

    /// The same with ranges that are split when they hold more than so many bytes.
    pub(crate) async fn with_ranges(definition: Value, bytes_max: u64) -> World {
        let mut world = World::new(definition).await;
        world.account = open(&world.engine, &world.clock, 3, bytes_max).await;
        world
    }

    /// Has the engine do something.
    pub(crate) async fn add_database_and_remove_it(&self) {
        let catalog = self.account.catalog();
        catalog.create_database(&DatabaseDefinition { id: "gone".to_owned() }, None).await.unwrap();
        catalog.delete_database(Link::Name("gone"), &Conditions::default()).await.unwrap();
    }

    pub(crate) async fn add_container(&self, id: &str, definition: Value) {
        let new = NewContainer { definition: full(id, definition), throughput: None };
        self.account.catalog().create_container(Link::Name("d"), &new).await.unwrap();
    }

    /// The same data in a new process.
    pub(crate) async fn restart(&mut self) {
        self.engine.exclusive.store(true, Ordering::Relaxed);
        self.account = open(&self.engine, &self.clock, 2, RangeSettings::default().bytes_max).await;
    }

    /// Another process over the same data, beside this one.
    pub(crate) async fn beside(&self) -> World {
        let account = open(&self.engine, &self.clock, 9, RangeSettings::default().bytes_max).await;
        World { account, ..self.clone() }
    }

    pub(crate) async fn container(&self) -> Arc<Container> {
        self.account.catalog().container(Link::Name("d"), Link::Name("c")).await.unwrap()
    }

    pub(crate) async fn replace(&self, definition: Value) -> Arc<Container> {
        self.try_replace(definition).await.unwrap()
    }

    pub(crate) async fn try_replace(&self, definition: Value) -> Result<Arc<Container>, Error> {
        let (definition, none) = (full("c", definition), Conditions::default());
        self.account.catalog().replace_container(Link::Name("d"), Link::Name("c"), &definition, &none).await
    }

    pub(crate) async fn write(&self, mode: WriteMode<'_>, document: &Value) -> Result<Outcome, Error> {
        self.write_as(mode, document, IndexDirective::Default).await
    }

    pub(crate) async fn write_as(
        &self,
        mode: WriteMode<'_>,
        document: &Value,
        index_directive: IndexDirective,
    ) -> Result<Outcome, Error> {
        let container = self.container().await;
        let (text, conditions) = (document.to_string(), Conditions::default());
        let key = key_of(&container, document);
        let options = WriteOptions { partition_key: Some(&key), conditions: &conditions, index_directive };
        self.account.documents(&container).write(mode, text.as_bytes(), options).await
    }

    pub(crate) async fn put(&self, document: &Value) {
        self.write(WriteMode::Upsert, document).await.unwrap();
    }

    pub(crate) async fn delete(&self, document: &Value) -> Result<Outcome, Error> {
        let container = self.container().await;
        let (key, id) = (key_of(&container, document), document["id"].as_str().unwrap());
        let conditions = Conditions::default();
        self.account.documents(&container).delete(Link::Name(id), Some(&key), &conditions).await
    }

    /// Builds whatever is to be built; gives the number of steps.
    pub(crate) async fn build(&self) -> usize {
        let mut steps = 0;
        while self.account.maintenance().build_indexes().await.unwrap() {
            steps += 1;
            assert!(steps < 100_000, "building has an end");
        }
        steps
    }

    pub(crate) async fn sweep(&self) {
        while self.account.maintenance().sweep().await.unwrap() {}
    }

    pub(crate) async fn progress(&self) -> u8 {
        let container = self.container().await;
        self.account.documents(&container).index_progress().await.unwrap()
    }

    /// The entries of a generation.
    pub(crate) async fn generation(&self, generation: u8) -> BTreeSet<Vec<u8>> {
        self.entries().await.into_iter().filter(|entry| entry[8] == generation).collect()
    }

    /// The entries of the generation in use, with 0 in place of its number.
    pub(crate) async fn active_entries(&self) -> BTreeSet<Vec<u8>> {
        let active = self.generation(self.container().await.generations.active).await;
        active.into_iter().map(unnumbered).collect()
    }

    /// All entries of the container.
    pub(crate) async fn entries(&self) -> BTreeSet<Vec<u8>> {
        let mut all = BTreeSet::new();
        for range in &self.container().await.ranges {
            let view = self.view(range.shard).await;
            let keys = KeyRange::prefix(&range.shard.0.to_be_bytes());
            let found = view.scan_keys(&keys, Direction::Forward, UNLIMITED).await.unwrap();
            all.extend(found.keys.iter().map(<[u8]>::to_vec));
        }
        all
    }

    /// A shard as it is.
    pub(crate) async fn view(&self, shard: ShardId) -> Arc<dyn View> {
        let epoch = self.engine.shard(shard).await.unwrap().epoch;
        self.engine.view(shard, epoch).await.unwrap()
    }

    /// The rows of a query, sorted: found by index wherever that is possible.
    pub(crate) async fn query(&self, text: &str) -> Vec<String> {
        self.query_of(&self.container().await, text).await
    }

    /// The same, asked by somebody who found the container a while ago.
    pub(crate) async fn query_of(&self, container: &Arc<Container>, text: &str) -> Vec<String> {
        let limits = Limits { row_count_max: 10_000, index_use: IndexUse::Always, ..Limits::default() };
        let scope = QueryScope::Given(FeedScope::All);
        let query = Query::parse(text, Vec::new()).unwrap();
        let page = self.account.documents(container).query(&query, &scope, None, limits).await.unwrap();
        let mut rows: Vec<String> =
            page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
        rows.sort();
        rows
    }

    pub(crate) async fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.account
            .maintenance()
            .verify(|_, report| problems.extend(report.problems.clone()))
            .await
            .unwrap();
        problems
    }

    pub(crate) async fn is_sound(&self, context: &str) {
        assert_eq!(self.problems().await, Vec::<String>::new(), "{context}");
    }

    /// Changes what is stored behind the account's back.
    pub(crate) async fn plant(&self, change: impl FnOnce(&mut WriteBatch)) {
        let shard = self.container().await.ranges[0].shard;
        let mut batch = WriteBatch::new(shard, self.engine.shard(shard).await.unwrap().epoch);
        change(&mut batch);
        self.engine.commit(batch).await.unwrap();
    }
}

async fn open(engine: &Arc<Interposed>, clock: &TestClock, seed: u64, bytes_max: u64) -> Account {
    let env = Env::new(Box::new(clock.clone()), Random::from_seed(seed));
    let engine: Arc<dyn Engine> = engine.clone();
    // Ranges are changed when tests say so.
    let ranges = RangeSettings { small_documents_max: 0, bytes_max };
    Account::open_within(engine, env, Resources { ranges, ..Resources::default() }).await.unwrap()
}

fn full(id: &str, mut definition: Value) -> ContainerDefinition {
    definition["id"] = json!(id);
    if definition.get("partitionKey").is_none() {
        definition["partitionKey"] = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    }
    ContainerDefinition::from_json(&definition).unwrap()
}

pub(crate) fn key_of(container: &Container, document: &Value) -> PartitionKey {
    let text = document.to_string();
    container.definition.partition_key.extract(Text::parse(text.as_bytes()).unwrap().root())
}

pub(crate) fn unnumbered(mut entry: Vec<u8>) -> Vec<u8> {
    entry[8] = 0;
    entry
}

/// A policy that indexes these paths and nothing else.
pub(crate) fn only(paths: &[&str]) -> Value {
    let included: Vec<Value> = paths.iter().map(|path| json!({"path": path})).collect();
    json!({"indexingPolicy": {"includedPaths": included, "excludedPaths": [{"path": "/*"}]}})
}

pub(crate) fn document(number: usize) -> Value {
    json!({"id": format!("{number}"), "pk": format!("p{}", number % 3), "n": number % 10, "text": "word",
        "list": [number, {"deep": number % 4}]})
}
