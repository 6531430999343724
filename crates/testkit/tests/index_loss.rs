//! Damage of the index: queries give the same rows as before, writes and unique keys go on, and a new index is built.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::value::json;
use astrarium_database::{
    Account, Conditions, Container, Env, Error, IndexDirective, IndexUse, Limits, Link, NewContainer, Query,
    QueryScope, WriteMode, WriteOptions,
};
use astrarium_kv::Engine as _;
use astrarium_kv_fjall::{FjallEngine, Options, SetOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const COUNT: usize = 400;

/// Queries that an index serves: by a value, a range, an order, a count.
const QUERIES: [&str; 4] = [
    "SELECT VALUE c.id FROM c WHERE c.n = 17",
    "SELECT VALUE c.id FROM c WHERE c.n > 380",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0",
];

struct World {
    folder: TempDir,
    engine: Arc<FjallEngine>,
    account: Account,
}

impl World {
    async fn open(folder: TempDir) -> World {
        let set = SetOptions {
            memory_bytes: 20_000,
            memory_fan: 3,
            run_fan: 3,
            block_bytes: 600,
            segment_bytes: 3_000,
        };
        let engine =
            Arc::new(FjallEngine::open(folder.path(), Options { set, ..Options::default() }).unwrap());
        let account = Account::open(engine.clone(), Env::system()).await.unwrap();
        World { folder, engine, account }
    }

    /// A container with a unique key in each of two databases.
    async fn furnished() -> World {
        let world = World::open(tempfile::tempdir().unwrap()).await;
        for database in ["a", "b"] {
            let body = serde_json::json!({"id": database});
            let definition = DatabaseDefinition::from_json(&body).unwrap();
            world.account.catalog().create_database(&definition, None).await.unwrap();
            let body = serde_json::json!({
                "id": "c",
                "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
                "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/n"]}]},
            });
            let definition = ContainerDefinition::from_json(&body).unwrap();
            let new = NewContainer { definition, throughput: None };
            world.account.catalog().create_container(Link::Name(database), &new).await.unwrap();
            for number in 0..COUNT {
                world.put(database, number, number).await.unwrap();
            }
        }
        world.engine.wait_until_merged().unwrap();
        world
    }

    async fn reopened(self, harm: impl FnOnce(&Path)) -> World {
        self.account.maintenance().close().unwrap();
        drop(self.account);
        drop(self.engine);
        harm(self.folder.path());
        World::open(self.folder).await
    }

    async fn container(&self, database: &str) -> Arc<Container> {
        self.account.catalog().container(Link::Name(database), Link::Name("c")).await.unwrap()
    }

    async fn put(&self, database: &str, id: usize, n: usize) -> Result<(), Error> {
        let container = self.container(database).await;
        let text = format!("{{\"id\":\"{id}\",\"pk\":\"p\",\"n\":{n}}}");
        let key =
            container.definition.partition_key.extract(json::Text::parse(text.as_bytes()).unwrap().root());
        let conditions = Conditions::default();
        let options = WriteOptions {
            partition_key: Some(&key),
            conditions: &conditions,
            index_directive: IndexDirective::Default,
        };
        self.account.documents(&container).write(WriteMode::Create, text.as_bytes(), options).await.map(drop)
    }

    /// All rows of a query, in pages of seven, forced by way of the index.
    async fn ask(&self, database: &str, text: &str) -> Vec<Vec<u8>> {
        let container = self.container(database).await;
        let query = Query::parse(text, Vec::new()).unwrap();
        let scope = QueryScope::Open { cross_partition: true, whole: true };
        let limits = Limits { row_count_max: 7, index_use: IndexUse::Always, ..Limits::default() };
        let (mut rows, mut resume) = (Vec::new(), None);
        loop {
            let page =
                self.account.documents(&container).query(&query, &scope, resume, limits).await.unwrap();
            rows.extend(page.rows);
            resume = page.resume;
            if resume.is_none() {
                return rows;
            }
        }
    }

    async fn answers(&self) -> Vec<Vec<Vec<u8>>> {
        let mut answers = Vec::new();
        for database in ["a", "b"] {
            for query in QUERIES {
                answers.push(self.ask(database, query).await);
            }
        }
        answers
    }

    async fn build(&self) {
        for _ in 0..10_000 {
            if !self.account.maintenance().build_indexes().await.unwrap() {
                return;
            }
        }
        panic!("building does not come to an end");
    }

    async fn problems(&self) -> Vec<String> {
        // Families are counted after damage.
        self.engine.wait_until_merged().unwrap();
        let mut problems = Vec::new();
        self.account
            .maintenance()
            .verify(|_, report| problems.extend(report.problems.clone()))
            .await
            .unwrap();
        problems
    }

    /// Everything is right while the index is lost, while it is built, and afterwards.
    async fn check_recovery(&self, right: &[Vec<Vec<u8>>]) {
        assert_eq!(self.answers().await, right, "as soon as it is damaged");
        self.put("a", COUNT, COUNT + 1000).await.unwrap();
        let twice = self.put("a", COUNT + 1, COUNT + 1000).await;
        assert!(matches!(twice, Err(Error::UniqueKey)), "{twice:?}");
        self.account.maintenance().renew_lost_indexes().await.unwrap();
        assert!(matches!(self.put("b", COUNT + 1, 5).await, Err(Error::UniqueKey)));
        self.account.maintenance().build_indexes().await.unwrap();
        assert_eq!(self.ask("b", QUERIES[2]).await, right[QUERIES.len() + 2], "while it is built");
        self.build().await;
        assert_eq!(self.engine.set_losses(), []);
        for database in ["a", "b"] {
            assert!(!self.container(database).await.generations.is_lost(), "a new index is in use");
        }
        let one = self.ask("a", &format!("SELECT VALUE c.id FROM c WHERE c.n = {}", COUNT + 1000)).await;
        assert_eq!(one.len(), 1);
        assert_eq!(self.ask("b", QUERIES[2]).await, right[QUERIES.len() + 2], "when it is built");
        while self.account.maintenance().sweep().await.unwrap() {}
        assert_eq!(self.problems().await, Vec::<String>::new());
    }
}

fn runs(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("set")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|name| name == "run")).collect()
}

/// Alters a byte of every block.
fn alter_runs(folder: &Path) {
    for run in runs(folder) {
        let mut bytes = std::fs::read(&run).unwrap();
        let length = bytes.len();
        for place in (20..length.saturating_sub(2_000)).step_by(300) {
            bytes[place] ^= 1;
        }
        // In place, as rot would: the server has the file open.
        let mut file = std::fs::OpenOptions::new().write(true).open(&run).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
    }
}

#[tokio::test]
async fn a_damaged_index_is_found_at_the_start() {
    let world = World::furnished().await;
    let right = world.answers().await;
    let remove = |folder: &Path| std::fs::remove_file(runs(folder).first().unwrap()).unwrap();
    let world = world.reopened(remove).await;
    assert_eq!(world.engine.set_losses().len(), 1);
    world.check_recovery(&right).await;
}

/// Each run in turn goes: only containers with keys in it get a new index, and all answers are right.
#[tokio::test]
async fn only_containers_with_damaged_entries_are_built_anew() {
    let mut world = World::furnished().await;
    let right = world.answers().await;
    let mut unconcerned = 0;
    for turn in 0..3 {
        world = world
            .reopened(|folder| {
                let mut runs = runs(folder);
                runs.sort();
                std::fs::remove_file(&runs[turn % runs.len()]).unwrap();
            })
            .await;
        let losses = world.engine.set_losses();
        let mut concerned = Vec::new();
        for database in ["a", "b"] {
            let shards = world.container(database).await.ranges.clone();
            let is_lost = |shard: u64| losses.iter().any(|loss| loss.concerns(&shard.to_be_bytes()));
            concerned.push(shards.iter().any(|range| is_lost(range.shard.0)));
        }
        assert!(concerned.contains(&true), "{losses:?}");
        assert_eq!(world.answers().await, right);
        assert!(world.account.maintenance().renew_lost_indexes().await.unwrap());
        for (database, is_concerned) in ["a", "b"].into_iter().zip(concerned) {
            assert_eq!(world.container(database).await.generations.is_lost(), is_concerned, "{database}");
            unconcerned += usize::from(!is_concerned);
        }
        world.build().await;
        while world.account.maintenance().sweep().await.unwrap() {}
        assert_eq!(world.problems().await, Vec::<String>::new());
        world.engine.wait_until_merged().unwrap();
    }
    assert!(unconcerned > 0, "runs are cut, so that some have keys of one container only");
}

#[tokio::test]
async fn indexes_are_built_anew_on_demand() {
    let world = World::furnished().await;
    let right = world.answers().await;
    alter_runs(world.folder.path());
    let world = world.reopened(|_| {}).await;
    world.account.maintenance().rebuild_indexes().await.unwrap();
    assert_eq!(world.engine.set_losses(), []);
    assert_eq!(world.problems().await, Vec::<String>::new());
    assert_eq!(world.answers().await, right);
}

#[tokio::test]
async fn a_damaged_index_is_found_by_a_query() {
    let world = World::furnished().await;
    let right = world.answers().await;
    let world = world.reopened(|_| {}).await;
    assert_eq!(world.engine.set_losses(), []);
    alter_runs(world.folder.path());
    assert_eq!(world.answers().await, right);
    world.check_recovery(&right).await;
}

#[tokio::test]
async fn a_renewal_that_was_cut_short_goes_on() {
    let world = World::furnished().await;
    let right = world.answers().await;
    let world = world.reopened(|folder| std::fs::remove_dir_all(folder.join("set")).unwrap()).await;
    assert!(world.account.maintenance().renew_lost_indexes().await.unwrap());
    world.account.maintenance().build_indexes().await.unwrap();
    let world = world.reopened(|folder| std::fs::remove_file(folder.join("set/RUNS")).unwrap()).await;
    world.check_recovery(&right).await;
}
