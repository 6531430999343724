//! Two processes and a container `d/c` that both have loaded.

use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::{
    Account, Conditions, Container, Env, Error, FeedScope, IndexDirective, Limits, Link, NewContainer,
    Outcome, PageLimit, Query, QueryScope, Resources, WriteMode, WriteOptions,
};
use astrarium_env::{ManualClock, Random};
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const DATABASE: Link<'static> = Link::Name("d");
pub(crate) const CONTAINER: Link<'static> = Link::Name("c");
pub(crate) const EVERYTHING: PageLimit = PageLimit { count_max: 10_000, bytes_max: 64 << 20 };

pub(crate) struct Processes {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: ManualClock,
    pub(crate) one: Process,
    pub(crate) other: Process,
}

/// One process. Its clock is that of the others.
pub(crate) struct Process {
    pub(crate) account: Account,
}

pub(crate) fn key(text: &str) -> PartitionKey {
    PartitionKey::new(vec![Component::String(text.into())])
}

pub(crate) fn definition(more: &Value) -> ContainerDefinition {
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ContainerDefinition::from_json(&definition).unwrap()
}

impl Processes {
    /// Both know the container as it was made.
    pub(crate) async fn new(more: Value) -> Processes {
        let processes = Processes::without_container(Resources::default).await;
        processes.one.make(&more, None).await;
        processes.one.container().await;
        processes.other.container().await;
        processes
    }

    pub(crate) async fn without_container(resources: impl Fn() -> Resources) -> Processes {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let clock = ManualClock::at_seconds(1_000_000);
        let process = async |seed| Process::open(&engine, &clock, seed, resources()).await;
        let (one, other) = (process(1).await, process(2).await);
        one.account
            .catalog()
            .create_database(&DatabaseDefinition { id: "d".to_owned() }, None)
            .await
            .unwrap();
        Processes { engine, clock, one, other }
    }

    /// A process that has just begun.
    pub(crate) async fn third(&self) -> Process {
        Process::open(&self.engine, &self.clock, 3, Resources::default()).await
    }

    /// Splits a range of the container through one of them.
    pub(crate) async fn split(&self, id: u32) {
        while self.one.account.maintenance().build_indexes().await.unwrap() {}
        self.one.account.catalog().split_range(DATABASE, CONTAINER, id).await.unwrap();
        while self.one.account.maintenance().reshard().await.unwrap() {}
    }
}

impl Process {
    async fn open(engine: &Arc<dyn Engine>, clock: &ManualClock, seed: u64, resources: Resources) -> Process {
        let env = Env::new(Box::new(clock.clone()), Random::from_seed(seed));
        Process { account: Account::open_within(Arc::clone(engine), env, resources).await.unwrap() }
    }

    pub(crate) async fn make(&self, more: &Value, throughput: Option<u32>) -> Arc<Container> {
        let throughput = throughput.map(|throughput| {
            let text = throughput.to_string();
            astrarium_database::definition::throughput::Throughput::from_headers(Some(&text), None)
                .unwrap()
                .unwrap()
        });
        let new = NewContainer { definition: definition(more), throughput };
        self.account.catalog().create_container(DATABASE, &new).await.unwrap()
    }

    pub(crate) async fn remove(&self) {
        self.account.catalog().delete_container(DATABASE, CONTAINER, &Conditions::default()).await.unwrap();
    }

    pub(crate) async fn replace(&self, more: &Value) {
        let catalog = self.account.catalog();
        catalog
            .replace_container(DATABASE, CONTAINER, &definition(more), &Conditions::default())
            .await
            .unwrap();
    }

    /// The container as this process knows it.
    pub(crate) async fn container(&self) -> Arc<Container> {
        self.account.catalog().container(DATABASE, CONTAINER).await.unwrap()
    }

    pub(crate) async fn write(&self, mode: WriteMode<'_>, document: &Value) -> Result<Outcome, Error> {
        let (container, conditions) = (self.container().await, Conditions::default());
        let partition_key = key(document["pk"].as_str().unwrap());
        let options = WriteOptions {
            partition_key: Some(&partition_key),
            conditions: &conditions,
            index_directive: IndexDirective::Default,
        };
        let text = document.to_string();
        self.account.documents(&container).write(mode, text.as_bytes(), options).await
    }

    pub(crate) async fn create(&self, id: &str, pk: &str) -> Result<Outcome, Error> {
        self.write(WriteMode::Create, &json!({"id": id, "pk": pk})).await
    }

    pub(crate) async fn put(&self, document: &Value) -> Outcome {
        self.write(WriteMode::Upsert, document).await.unwrap()
    }

    pub(crate) async fn read(&self, id: &str, pk: &str) -> Result<Value, Error> {
        let container = self.container().await;
        let outcome = self.account.documents(&container).read(Link::Name(id), Some(&key(pk))).await?;
        Ok(serde_json::from_slice(outcome.body.text()).unwrap())
    }

    pub(crate) async fn query(&self, text: &str) -> Result<Vec<Value>, Error> {
        self.query_in(text, &QueryScope::Given(FeedScope::All)).await
    }

    pub(crate) async fn query_in(&self, text: &str, scope: &QueryScope) -> Result<Vec<Value>, Error> {
        let (container, query) = (self.container().await, Query::parse(text, Vec::new()).unwrap());
        let limits = Limits { row_count_max: 10_000, ..Limits::default() };
        let page = self.account.documents(&container).query(&query, scope, None, limits).await?;
        assert!(page.resume.is_none(), "all rows are in one page");
        Ok(page.rows.iter().map(|row| serde_json::from_slice(row).unwrap()).collect())
    }

    /// The ids of all documents, in their order in the feed.
    pub(crate) async fn ids(&self) -> Vec<String> {
        let container = self.container().await;
        let (mut ids, mut position) = (Vec::new(), None);
        loop {
            let documents = self.account.documents(&container);
            let page = documents.read_feed(&FeedScope::All, position, EVERYTHING).await.unwrap();
            for body in &page.documents {
                let document: Value = serde_json::from_slice(body.text()).unwrap();
                ids.push(document["id"].as_str().unwrap().to_owned());
            }
            match page.resume {
                Some(resume) => position = Some(resume),
                None => return ids,
            }
        }
    }

    /// What a check of everything stored finds to be wrong.
    pub(crate) async fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let maintenance = self.account.maintenance();
        maintenance.verify(|_, report| problems.extend(report.problems.clone())).await.unwrap();
        problems
    }
}
