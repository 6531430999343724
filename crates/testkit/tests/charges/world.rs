//! An account on an engine, and what its operations cost.

use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::{
    Account, Conditions, Container, Env, FeedScope, IndexDirective, IndexUse, KeptUse, Limits, Link,
    NewContainer, PageLimit, Query, QueryScope, WriteMode, WriteOptions,
};
use astrarium_env::{ManualClock, Random};
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv_fjall::{FjallEngine, Options};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// How a query is asked: none of it may change what the query costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) page: usize,
    pub(crate) index_use: IndexUse,
    pub(crate) kept_use: KeptUse,
}

pub(crate) const ONE_PAGE: Asked =
    Asked { page: 100_000, index_use: IndexUse::ByCost, kept_use: KeptUse::Never };

/// An account whose containers are in the database `d`.
pub(crate) struct World {
    pub(crate) account: Account,
}

impl World {
    pub(crate) async fn in_memory() -> World {
        World::on(Arc::new(MemoryEngine::default())).await
    }

    pub(crate) async fn in_folder(folder: &Path) -> World {
        World::on(Arc::new(FjallEngine::open(folder, Options::default()).unwrap())).await
    }

    async fn on(engine: Arc<dyn Engine>) -> World {
        let clock = ManualClock::at_seconds(1_000_000);
        let env = Env::new(Box::new(clock), Random::from_seed(1));
        let account = Account::open(engine, env).await.unwrap();
        let made = account.catalog().create_database(&DatabaseDefinition { id: "d".to_owned() }, None).await;
        let _ = made.is_ok();
        World { account }
    }

    pub(crate) async fn create(&self, id: &str, path: &str, more: Value) -> Arc<Container> {
        let mut definition =
            json!({"id": id, "partitionKey": {"paths": [path], "kind": "Hash", "version": 2}});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let definition = ContainerDefinition::from_json(&definition).unwrap();
        let new = NewContainer { definition, throughput: None };
        self.account.catalog().create_container(Link::Name("d"), &new).await.unwrap()
    }

    pub(crate) async fn container(&self, id: &str) -> Arc<Container> {
        self.account.catalog().container(Link::Name("d"), Link::Name(id)).await.unwrap()
    }

    pub(crate) async fn write(
        &self,
        container: &Arc<Container>,
        mode: WriteMode<'_>,
        document: &Value,
    ) -> f64 {
        let key = key_of(container, document);
        let options = WriteOptions {
            partition_key: Some(&key),
            conditions: &Conditions::default(),
            index_directive: IndexDirective::Default,
        };
        let text = document.to_string();
        self.account.documents(container).write(mode, text.as_bytes(), options).await.unwrap().charge
    }

    pub(crate) async fn read(&self, container: &Arc<Container>, document: &Value) -> f64 {
        let key = key_of(container, document);
        let id = document["id"].as_str().unwrap();
        self.account.documents(container).read(Link::Name(id), Some(&key)).await.unwrap().charge
    }

    pub(crate) async fn delete(&self, container: &Arc<Container>, document: &Value) -> f64 {
        let key = key_of(container, document);
        let id = document["id"].as_str().unwrap();
        let handle = self.account.documents(container);
        handle.delete(Link::Name(id), Some(&key), &Conditions::default()).await.unwrap().charge
    }

    pub(crate) async fn read_feed(&self, container: &Arc<Container>, page: usize) -> f64 {
        let (mut position, mut charge) = (None, 0.0);
        loop {
            let limit = PageLimit { count_max: page, bytes_max: 4 << 20 };
            let handle = self.account.documents(container);
            let page = handle.read_feed(&FeedScope::All, position, limit).await.unwrap();
            charge += page.charge;
            position = page.resume;
            if position.is_none() {
                return charge;
            }
        }
    }

    /// What a query costs in all its pages, and how many rows it gives.
    pub(crate) async fn query(
        &self,
        container: &Arc<Container>,
        partition: Option<&str>,
        text: &str,
        asked: Asked,
    ) -> (f64, usize) {
        let query = Query::parse(text, Vec::new()).unwrap();
        let scope = match partition {
            Some(key) => QueryScope::Given(FeedScope::Partition(key_text(key))),
            None => QueryScope::Given(FeedScope::All),
        };
        let limits = Limits {
            row_count_max: asked.page,
            index_use: asked.index_use,
            kept_use: asked.kept_use,
            ..Limits::default()
        };
        let (mut resume, mut charge, mut rows) = (None, 0.0, 0);
        loop {
            let page = self.account.documents(container).query(&query, &scope, resume, limits).await.unwrap();
            charge += page.charge;
            rows += page.rows.len();
            resume = page.resume;
            if resume.is_none() {
                return (charge, rows);
            }
        }
    }
}

pub(crate) fn key_text(text: &str) -> PartitionKey {
    PartitionKey::new(vec![Component::String(text.into())])
}

fn key_of(container: &Container, document: &Value) -> PartitionKey {
    let name = container.definition.partition_key.paths[0].as_str().trim_start_matches('/').to_owned();
    key_text(document[name.as_str()].as_str().unwrap())
}

/// Fails unless a charge is about what was published.
#[track_caller]
pub(crate) fn assert_about(what: &str, charge: f64, published: f64) {
    let ratio = charge / published;
    assert!((0.85..=1.15).contains(&ratio), "{what}: {charge} and not about {published}, {ratio:.2} of it");
}
