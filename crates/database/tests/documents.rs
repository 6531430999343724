//! Documents through the library, on the in-memory engine: outcomes, races, expiry, feeds, removal.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::{
    Account, ChildKind, Conditions, Container, Env, Error, EtagCondition, FeedScope, IndexDirective, Link,
    NewContainer, PageLimit, WriteMode, WriteOptions, etag_text,
};
use astrarium_env::{ManualClock, Random};
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use serde_json::{Value, json};
use std::sync::Arc;

struct World {
    account: Account,
    engine: Arc<MemoryEngine>,
    clock: ManualClock,
    container: Arc<Container>,
}

const EVERYTHING: PageLimit = PageLimit { count_max: 10_000, bytes_max: 64 << 20 };

async fn world(definition: Value) -> World {
    let engine = Arc::new(MemoryEngine::default());
    let clock = ManualClock::at_seconds(1_000_000);
    let env = Env::new(Box::new(clock.clone()), Random::from_seed(1));
    let account = Account::open(engine.clone(), env).await.unwrap();
    account.catalog().create_database(&DatabaseDefinition { id: "d".to_owned() }, None).await.unwrap();
    let definition = ContainerDefinition::from_json(&definition).unwrap();
    let new = NewContainer { definition, throughput: None };
    let container = account.catalog().create_container(Link::Name("d"), &new).await.unwrap();
    World { account, engine, clock, container }
}

async fn plain_world() -> World {
    world(json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})).await
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::new(vec![Component::String(text.into())])
}

impl World {
    async fn write(
        &self,
        mode: WriteMode<'_>,
        document: &Value,
        conditions: &Conditions,
    ) -> Result<u64, Error> {
        let partition_key = key(document["pk"].as_str().unwrap());
        let options = WriteOptions {
            partition_key: Some(&partition_key),
            conditions,
            index_directive: IndexDirective::Default,
        };
        let text = document.to_string();
        let outcome = self.account.documents(&self.container).write(mode, text.as_bytes(), options).await?;
        Ok(outcome.body.header.etag)
    }

    async fn create(&self, id: &str, pk: &str) -> Result<u64, Error> {
        let document = json!({"id": id, "pk": pk, "n": 0});
        self.write(WriteMode::Create, &document, &Conditions::default()).await
    }

    async fn read(&self, id: &str, pk: &str) -> Result<Value, Error> {
        let outcome = self.account.documents(&self.container).read(Link::Name(id), Some(&key(pk))).await?;
        Ok(serde_json::from_slice(outcome.body.text()).unwrap())
    }

    async fn ids(&self, scope: &FeedScope, limit: PageLimit) -> Vec<String> {
        let mut ids = Vec::new();
        let mut position = None;
        loop {
            let page =
                self.account.documents(&self.container).read_feed(scope, position, limit).await.unwrap();
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

    async fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.account
            .maintenance()
            .verify(|_, report| problems.extend(report.problems.clone()))
            .await
            .unwrap();
        problems
    }
}

#[tokio::test]
async fn a_document_lives_and_dies() {
    let world = plain_world().await;
    world.create("1", "a").await.unwrap();
    assert!(matches!(world.create("1", "a").await, Err(Error::Exists)));
    world.create("1", "b").await.expect("ids are unique within a partition key only");
    let replaced = json!({"id": "1", "pk": "a", "n": 1});
    world.write(WriteMode::Replace(Link::Name("1")), &replaced, &Conditions::default()).await.unwrap();
    assert_eq!(world.read("1", "a").await.unwrap(), replaced);
    assert_eq!(world.read("1", "b").await.unwrap()["n"], 0);
    let none = Conditions::default();
    world.account.documents(&world.container).delete(Link::Name("1"), Some(&key("a")), &none).await.unwrap();
    assert!(matches!(world.read("1", "a").await, Err(Error::NotFound)));
    assert_eq!(world.problems().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_version_have_one_winner() {
    let world = Arc::new(plain_world().await);
    let etag = world.create("1", "a").await.unwrap();
    let condition = EtagCondition::OneOf(vec![etag_text(etag, 1_000_000).trim_matches('"').to_owned()]);
    let conditions = Conditions { if_match: Some(condition), if_none_match: None };
    let tries: Vec<_> = (0..20)
        .map(|n| {
            let (world, conditions) = (world.clone(), conditions.clone());
            #[expect(clippy::disallowed_methods, reason = "concurrent writers are the point")]
            tokio::spawn(async move {
                let document = json!({"id": "1", "pk": "a", "n": n});
                world.write(WriteMode::Replace(Link::Name("1")), &document, &conditions).await
            })
        })
        .collect();
    let mut winners = 0;
    for one in tries {
        match one.await.unwrap() {
            Ok(_) => winners += 1,
            Err(error) => assert!(matches!(error, Error::PreconditionFailed), "{error}"),
        }
    }
    assert_eq!(winners, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_upserts_all_succeed_and_leave_one_document() {
    let world = Arc::new(plain_world().await);
    let tries: Vec<_> = (0..20)
        .map(|n| {
            let world = world.clone();
            #[expect(clippy::disallowed_methods, reason = "concurrent writers are the point")]
            tokio::spawn(async move {
                world
                    .write(WriteMode::Upsert, &json!({"id": "1", "pk": "a", "n": n}), &Conditions::default())
                    .await
            })
        })
        .collect();
    for one in tries {
        one.await.unwrap().unwrap();
    }
    assert_eq!(world.ids(&FeedScope::All, EVERYTHING).await, ["1"]);
    assert_eq!(world.problems().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_expired_document_is_gone_and_its_place_is_free() {
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    definition["defaultTtl"] = json!(10);
    let world = world(definition).await;
    world.create("default", "a").await.unwrap();
    let own = |ttl: i32| json!({"id": format!("own{ttl}"), "pk": "a", "ttl": ttl});
    for ttl in [-1, 5, 20] {
        world.write(WriteMode::Create, &own(ttl), &Conditions::default()).await.unwrap();
    }
    let visible = async |seconds: u64| {
        world.clock.set_seconds(1_000_000 + seconds);
        world.ids(&FeedScope::Partition(key("a")), EVERYTHING).await
    };
    assert_eq!(visible(4).await, ["default", "own-1", "own5", "own20"]);
    assert_eq!(visible(5).await, ["default", "own-1", "own20"]);
    assert_eq!(visible(10).await, ["own-1", "own20"]);
    assert!(matches!(world.read("default", "a").await, Err(Error::NotFound)));
    world.create("default", "a").await.expect("an expired document does not stand in the way");
    assert_eq!(visible(20).await, ["own-1"]);
    assert_eq!(world.problems().await, Vec::<String>::new());
}

#[tokio::test]
async fn any_page_size_gives_the_same_documents_in_the_same_order() {
    let world = plain_world().await;
    let mut inserted = Vec::new();
    for n in 0..57 {
        let id = format!("{}", (n * 37) % 100);
        world.create(&id, if n % 3 == 0 { "a" } else { "b" }).await.unwrap();
        inserted.push(id);
    }
    let a = key("a");
    let whole_partition = world.ids(&FeedScope::Partition(a.clone()), EVERYTHING).await;
    assert_eq!(whole_partition.len(), 19);
    let slice = astrarium_database::partition::EffectiveRange::full();
    let whole_slice = world.ids(&FeedScope::Slice(slice.clone()), EVERYTHING).await;
    assert_eq!(whole_slice.len(), 57);
    for count_max in [1, 2, 7, 56, 57, 58] {
        let limit = PageLimit { count_max, bytes_max: 4 << 20 };
        assert_eq!(world.ids(&FeedScope::All, limit).await, inserted, "pages of {count_max}");
        assert_eq!(world.ids(&FeedScope::Range(0), limit).await, inserted);
        assert_eq!(world.ids(&FeedScope::Partition(a.clone()), limit).await, whole_partition);
        assert_eq!(world.ids(&FeedScope::Slice(slice.clone()), limit).await, whole_slice);
    }
    let small = PageLimit { count_max: 100, bytes_max: 60 };
    assert_eq!(world.ids(&FeedScope::All, small).await, inserted, "pages bounded by bytes");
}

#[tokio::test]
async fn a_partition_is_removed_whole_and_alone() {
    let world = plain_world().await;
    for n in 0..1_200 {
        world.create(&format!("{n}"), if n % 2 == 0 { "a" } else { "b" }).await.unwrap();
    }
    world.account.documents(&world.container).delete_partition(&key("a")).await.unwrap();
    assert_eq!(world.ids(&FeedScope::Partition(key("a")), EVERYTHING).await, Vec::<String>::new());
    assert_eq!(world.ids(&FeedScope::All, EVERYTHING).await.len(), 600);
    assert_eq!(world.problems().await, Vec::<String>::new());
}

#[tokio::test]
async fn writes_prepared_from_an_old_container_are_prepared_again_or_refused() {
    let world = plain_world().await;
    let definition = json!({"id": "c", "defaultTtl": 100,
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::from_json(&definition).unwrap();
    let (database, container) = (Link::Name("d"), Link::Name("c"));
    world
        .account
        .catalog()
        .replace_container(database, container, &definition, &Conditions::default())
        .await
        .unwrap();
    // `world.container` is the old one: its epoch is fenced, and the write goes through on the new one.
    world.create("1", "a").await.unwrap();
    world.account.catalog().delete_container(database, container, &Conditions::default()).await.unwrap();
    assert!(matches!(world.create("2", "a").await, Err(Error::OwnerNotFound)));
}

#[tokio::test]
async fn removed_containers_leave_nothing_behind_and_their_rids_never_return() {
    let world = plain_world().await;
    for n in 0..700 {
        world.create(&format!("{n}"), "a").await.unwrap();
    }
    let old = world.container.rid();
    let commits = world.engine.stats().commits;
    world.account.catalog().delete_database(Link::Name("d"), &Conditions::default()).await.unwrap();
    while world.account.maintenance().sweep().await.unwrap() {}
    assert_eq!(world.engine.stats().commits, commits + 1, "whatever there was, it goes with one commit");
    assert_eq!(world.engine.unreclaimed().await.unwrap(), []);
    let shard = world.container.ranges[0].shard;
    let refused = world.engine.view(shard, 1).await.map(drop);
    assert!(matches!(refused, Err(astrarium_kv::Error::Dropped { .. })), "{refused:?}");
    assert_eq!(world.engine.key_count(), 0);
    // Opened again, as after a restart: numbers go on where they were.
    let account = Account::open(world.engine.clone(), Env::system()).await.unwrap();
    account.catalog().create_database(&DatabaseDefinition { id: "d".to_owned() }, None).await.unwrap();
    let new = NewContainer { definition: world.container.definition.clone(), throughput: None };
    let container = account.catalog().create_container(Link::Name("d"), &new).await.unwrap();
    assert_ne!(container.rid(), old);
    assert_ne!(container.rid().database_part(), old.database_part());
}

/// A database with more key ranges than one commit removes is gone at once all the same, with one small commit; the rest goes in steps, over
/// restarts.
#[tokio::test]
async fn a_large_database_is_gone_before_its_content() {
    let engine = Arc::new(MemoryEngine::exclusive());
    let open = async || Account::open(engine.clone(), Env::system()).await.unwrap();
    let account = open().await;
    let catalog = account.catalog();
    let database = DatabaseDefinition { id: "d".to_owned() };
    catalog.create_database(&database, None).await.unwrap();
    let definition = |id: &str, policy: Value| {
        let mut definition =
            json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        definition["indexingPolicy"] = policy;
        ContainerDefinition::from_json(&definition).unwrap()
    };
    let everything = json!({"includedPaths": [{"path": "/*"}]});
    for id in ["c1", "c2", "c3", "c4"] {
        let throughput = Some(Throughput::Manual(1_000_000));
        let new = NewContainer { definition: definition(id, everything.clone()), throughput };
        catalog.create_container(Link::Name("d"), &new).await.unwrap();
    }
    catalog.create_child(ChildKind::User(Link::Name("d")), "u", "{}").await.unwrap();
    let container = catalog.container(Link::Name("d"), Link::Name("c1")).await.unwrap();
    let (rid, shards) = (container.rid(), container.ranges.iter().map(|range| range.shard));
    let shards: Vec<_> = shards.collect();
    let partition_key = key("a");
    let create = async |account: &Account, container: &Arc<Container>, id: &str| {
        let conditions = Conditions::default();
        let options = WriteOptions {
            partition_key: Some(&partition_key),
            conditions: &conditions,
            index_directive: IndexDirective::Default,
        };
        let text = json!({"id": id, "pk": "a"}).to_string();
        account.documents(container).write(WriteMode::Create, text.as_bytes(), options).await
    };
    let mut last = 0;
    for n in 0..10 {
        last = create(&account, &container, &n.to_string()).await.unwrap().lsn;
    }
    // An index is wanted of one of them, and no work beside requests may look for that container in vain.
    let other = definition("c2", json!({"includedPaths": [], "excludedPaths": [{"path": "/*"}]}));
    let (in_database, conditions) = (Link::Name("d"), Conditions::default());
    catalog.replace_container(in_database, Link::Name("c2"), &other, &conditions).await.unwrap();
    let offers = catalog.list_offers(0, 100).await.unwrap().resources;
    assert_eq!(offers.len(), 4);

    let commits = engine.stats().commits;
    catalog.delete_database(in_database, &conditions).await.unwrap();
    assert_eq!(engine.stats().commits, commits + 1);
    assert!(engine.shard(shards[0]).await.is_ok(), "nothing of it is dropped yet");

    // Gone for everyone, also for who still has the container.
    assert!(matches!(create(&account, &container, "late").await, Err(Error::OwnerNotFound)));
    let read = account.documents(&container).read(Link::Name("1"), Some(&partition_key)).await;
    assert!(matches!(read, Err(Error::OwnerNotFound)), "{read:?}");
    for account in [&account, &open().await] {
        let catalog = account.catalog();
        assert!(catalog.list_databases(0, 100).await.unwrap().resources.is_empty());
        let by_name = catalog.container(Link::Name("d"), Link::Name("c1")).await.map(drop);
        assert!(matches!(by_name, Err(Error::NotFound)), "{by_name:?}");
        let link = (Link::Rid(rid.database_part().unwrap()), Link::Rid(rid));
        let by_rid = catalog.container(link.0, link.1).await.map(drop);
        assert!(matches!(by_rid, Err(Error::NotFound)), "{by_rid:?}");
        assert!(catalog.list_offers(0, 1).await.unwrap().resources.is_empty());
        assert!(matches!(catalog.offer(offers[0].rid).await, Err(Error::NotFound)));
        assert!(!account.maintenance().build_indexes().await.unwrap());
        assert!(!account.maintenance().reshard().await.unwrap());
    }

    // The name is free; sessions of the former container hold in the one that is made again.
    catalog.create_database(&database, None).await.unwrap();
    assert!(matches!(catalog.container(in_database, Link::Name("c1")).await, Err(Error::NotFound)));
    let new = NewContainer { definition: definition("c1", everything), throughput: None };
    let again = catalog.create_container(in_database, &new).await.unwrap();
    let check = async |account: &Account| {
        let container = account.catalog().container(in_database, Link::Name("c1")).await.unwrap();
        assert_eq!(container.rid(), again.rid());
        account.documents(&container).check_session(&FeedScope::All, |_| Some(last)).await.unwrap();
    };
    check(&account).await;
    create(&account, &again, "1").await.unwrap();

    // Some steps, then a new process.
    assert!(account.maintenance().sweep().await.unwrap());
    let account = open().await;
    check(&account).await;
    while account.maintenance().sweep().await.unwrap() {}
    check(&account).await;
    for shard in shards {
        assert!(matches!(engine.shard(shard).await, Err(astrarium_kv::Error::Dropped { .. })));
    }
    let read = account.documents(&again).read(Link::Name("1"), Some(&partition_key)).await;
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(account.catalog().list_offers(0, 100).await.unwrap().resources.len(), 1);
    account.catalog().delete_database(in_database, &conditions).await.unwrap();
    while account.maintenance().sweep().await.unwrap() {}
    assert_eq!(engine.unreclaimed().await.unwrap(), []);
    assert_eq!(engine.key_count(), 0, "nothing is left of the first one, nor of the second");
}

#[tokio::test]
async fn documents_are_found_by_rid_too() {
    let world = plain_world().await;
    world.create("1", "a").await.unwrap();
    let outcome =
        world.account.documents(&world.container).read(Link::Name("1"), Some(&key("a"))).await.unwrap();
    let number = outcome.body.header.number;
    let rid = astrarium_database::Rid::child(
        world.container.rid(),
        astrarium_database::ChildType::Document,
        number,
    );
    let again = world.account.documents(&world.container).read(Link::Rid(rid), None).await.unwrap();
    assert_eq!(again.body, outcome.body);
}

#[tokio::test]
async fn verify_finds_each_kind_of_disagreement() {
    use astrarium_keys::{feed, number};
    use astrarium_kv::{Space, Stamp, WriteBatch};
    let shard_of = |world: &World| world.container.ranges[0].shard;
    let plant = async |change: &dyn Fn(&mut WriteBatch, u64)| {
        let world = plain_world().await;
        world.create("1", "a").await.unwrap();
        let epoch = world.container.ranges[0].epoch;
        let mut batch = WriteBatch::new(shard_of(&world), epoch);
        change(&mut batch, shard_of(&world).0);
        world.engine.commit(batch).await.unwrap();
        world.problems().await
    };
    let found = plant(&|batch, shard| batch.delete(Space::Log, number::number_key(shard, 1))).await;
    assert!(found.iter().any(|problem| problem.contains("directory entry missing")), "{found:?}");
    let found = plant(&|batch, shard| batch.delete(Space::Log, feed::feed_key(shard, 2, 0))).await;
    assert!(found.iter().any(|problem| problem.contains("change feed entry missing")), "{found:?}");
    let stray = plant(&|batch, shard| {
        batch.put(Space::Log, number::number_key(shard, 9), b"x".to_vec().into(), Stamp::NONE);
    });
    let found = stray.await;
    assert!(
        found.iter().any(|problem| problem.contains("directory has 2 entries for 1 documents")),
        "{found:?}"
    );
    let stray = plant(&|batch, shard| {
        let key = [&astrarium_keys::document::shard_prefix(shard)[..], b"junk"].concat();
        batch.put(Space::Body, key.into(), vec![0; 60].into(), Stamp::VALUE);
    });
    let found = stray.await;
    assert!(found.iter().any(|problem| problem.contains("document cannot be decoded")), "{found:?}");
}

/// Two processes over one storage: each has its own caches and draws its own numbers.
#[tokio::test]
async fn two_accounts_write_side_by_side() {
    let first = plain_world().await;
    let env = Env::new(Box::new(first.clock.clone()), Random::from_seed(2));
    let account = Account::open(first.engine.clone(), env).await.unwrap();
    let container = account.catalog().container(Link::Name("d"), Link::Name("c")).await.unwrap();
    let second = World { account, engine: first.engine.clone(), clock: first.clock.clone(), container };
    for n in 0..150 {
        first.create(&format!("{n} of the first"), "a").await.unwrap();
        second.create(&format!("{n} of the second"), "a").await.unwrap();
    }
    let mut rids = Vec::new();
    for (world, id) in [(&first, "x"), (&second, "y"), (&first, "z")] {
        let new = DatabaseDefinition { id: id.to_owned() };
        rids.push(world.account.catalog().create_database(&new, None).await.unwrap().rid);
    }
    rids.dedup();
    assert_eq!(rids.len(), 3);
    assert_eq!(first.problems().await, Vec::<String>::new(), "no number was given twice");
    assert_eq!(second.ids(&FeedScope::All, EVERYTHING).await.len(), 300);
    // The clock stands still or goes back, and each account is one more process over the same storage.
    let (engine, clock) = (&first.engine, &first.clock);
    let (mut etags, mut worlds) = (std::collections::BTreeSet::new(), Vec::new());
    for (seed, seconds) in [(3, 1_000_000), (4, 1_000_000), (5, 999_000), (6, 1_000_000)] {
        clock.set_seconds(seconds);
        let env = Env::new(Box::new(clock.clone()), Random::from_seed(seed));
        let account = Account::open(engine.clone(), env).await.unwrap();
        let container = account.catalog().container(Link::Name("d"), Link::Name("c")).await.unwrap();
        worlds.push(World { account, engine: engine.clone(), clock: clock.clone(), container });
        for world in [&first, &second].into_iter().chain(&worlds) {
            let document = json!({"id": "one", "pk": "a"});
            let etag = world.write(WriteMode::Upsert, &document, &Conditions::default()).await.unwrap();
            assert!(etags.insert(etag), "an etag comes twice");
        }
    }
}

#[tokio::test]
async fn an_account_that_only_reads_commits_nothing() {
    let first = plain_world().await;
    first.create("1", "a").await.unwrap();
    let commits = first.engine.stats().commits;
    let env = Env::new(Box::new(first.clock.clone()), Random::from_seed(2));
    let account = Account::open(first.engine.clone(), env).await.unwrap();
    let container = account.catalog().container(Link::Name("d"), Link::Name("c")).await.unwrap();
    let second = World { account, engine: first.engine.clone(), clock: first.clock.clone(), container };
    second.read("1", "a").await.unwrap();
    second.ids(&FeedScope::All, EVERYTHING).await;
    assert!(!second.account.maintenance().build_indexes().await.unwrap());
    assert!(!second.account.maintenance().sweep().await.unwrap());
    assert_eq!(first.engine.stats().commits, commits);
    second.create("2", "a").await.unwrap();
    assert_eq!(first.engine.stats().commits, commits + 2, "one for a block of stamps");
    second.create("3", "a").await.unwrap();
    assert_eq!(first.engine.stats().commits, commits + 3);
}
