//! Documents that expire: what erases them, what it leaves, and what index-only answers say meanwhile.

use crate::world::World;
use astrarium_catalog::{CATALOG_EPOCH, CATALOG_SHARD};
use astrarium_database::{
    ChangeFeedMode, ChangeFeedStart, ChangeOperation, ChangePosition, FeedScope, IndexDirective, IndexUse,
    Limits, Link, PageLimit, Query, QueryScope, ReadChanges, WriteMode,
};
use astrarium_keys::index_expiry::expiry_family;
use astrarium_keys::index_state::generations_key;
use astrarium_kv::{Engine as _, KeyList, Space, WriteBatch};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

const UNIQUE: &str = r#"{"defaultTtl": 10, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
    "changeFeedPolicy": {"retentionDuration": 5}}"#;

/// Erases whatever is due; gives the number of steps.
async fn erase(world: &World) -> usize {
    let mut steps = 0;
    while world.account.maintenance().erase_expired().await.unwrap() {
        steps += 1;
        assert!(steps < 10_000, "erasing has an end");
    }
    steps
}

/// Documents that storage has, expired ones included.
async fn stored(world: &World) -> u64 {
    let mut documents = 0;
    world.account.maintenance().verify(|_, report| documents += report.documents).await.unwrap();
    documents
}

/// The entries by which documents expire.
async fn expiry_entries(world: &World) -> Vec<Vec<u8>> {
    let container = world.container().await;
    let prefix = expiry_family(container.generations.active).prefix(container.ranges[0].shard.0);
    world.entries().await.into_iter().filter(|entry| entry.starts_with(&prefix)).collect()
}

/// The rows of a query, and how many documents were read for them.
async fn ask(world: &World, text: &str, index_use: IndexUse) -> (Vec<String>, u64) {
    let limits = Limits { row_count_max: 10_000, index_use, ..Limits::default() };
    let (query, scope) = (Query::parse(text, Vec::new()).unwrap(), QueryScope::Given(FeedScope::All));
    let container = world.container().await;
    let page = world.account.documents(&container).query(&query, &scope, None, limits).await.unwrap();
    let mut rows: Vec<String> =
        page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
    rows.sort();
    (rows, page.documents)
}

#[tokio::test]
async fn what_has_expired_is_erased_with_all_that_belongs_to_it() {
    let world = World::new(serde_json::from_str(UNIQUE).unwrap()).await;
    for n in 0..600 {
        let mut document = json!({"id": format!("{n}"), "pk": format!("p{}", n % 7), "u": n});
        match n % 3 {
            0 => document["ttl"] = json!(5),
            1 => document["ttl"] = json!(-1),
            _ => {}
        }
        world.put(&document).await;
    }
    assert_eq!((erase(&world).await, stored(&world).await), (0, 600), "nothing is due");
    world.clock.advance_seconds(4);
    assert_eq!((erase(&world).await, stored(&world).await), (0, 600), "a second before");
    world.clock.advance_seconds(1);
    assert!(erase(&world).await > 1, "more than one step of a hundred at most");
    assert_eq!(stored(&world).await, 400, "those with five seconds of their own");
    world.is_sound("own lifetimes").await;
    world.clock.advance_seconds(5);
    erase(&world).await;
    assert_eq!(stored(&world).await, 200, "those with the default, but none that live for ever");
    world.is_sound("the default").await;
    assert_eq!(erase(&world).await, 0);
    assert_eq!(expiry_entries(&world).await, Vec::<Vec<u8>>::new(), "what lives for ever has none");
    let statistics = world.account.maintenance().monitoring().background_statistics();
    assert_eq!(statistics.expired_documents, 400);
    // The unique key of what was erased is free.
    world.write(WriteMode::Create, &json!({"id": "new", "pk": "p0", "u": 0})).await.unwrap();
}

#[tokio::test]
async fn erased_documents_are_told_to_readers_of_all_versions_once() {
    let world = World::new(serde_json::from_str(UNIQUE).unwrap()).await;
    world.put(&json!({"id": "1", "pk": "a", "u": 1})).await;
    world.clock.advance_seconds(10);
    erase(&world).await;
    world.put(&json!({"id": "1", "pk": "a", "u": 1})).await;
    let request = ReadChanges {
        scope: FeedScope::All,
        range_id: None,
        mode: ChangeFeedMode::AllVersionsAndDeletes,
        start: ChangeFeedStart::Now,
        limit: PageLimit { count_max: 100, bytes_max: usize::MAX },
        wait: Duration::ZERO,
    };
    let container = world.container().await;
    let mut position = world.account.documents(&container).read_changes(&request).await.unwrap().position;
    position.ranges.iter_mut().for_each(|(_, position)| *position = ChangePosition::default());
    let request = ReadChanges { start: ChangeFeedStart::Position(position), ..request };
    let page = world.account.documents(&container).read_changes(&request).await.unwrap();
    let told: Vec<ChangeOperation> = page.changes.iter().map(|change| change.operation).collect();
    assert_eq!(told, [ChangeOperation::Create, ChangeOperation::Expire, ChangeOperation::Create]);
}

/// Another default moves no entry, and no index is built.
#[tokio::test]
async fn a_change_of_the_default_takes_effect_at_once() {
    let world = World::new(json!({"defaultTtl": 1000})).await;
    world.put(&json!({"id": "1", "pk": "a"})).await;
    world.clock.advance_seconds(20);
    world.put(&json!({"id": "2", "pk": "a"})).await;
    assert_eq!(erase(&world).await, 0);
    world.replace(json!({"defaultTtl": 20})).await;
    assert_eq!(world.build().await, 0);
    assert_eq!((erase(&world).await, stored(&world).await), (1, 1));
    world.replace(json!({"defaultTtl": -1})).await;
    world.clock.advance_seconds(1_000);
    assert_eq!((erase(&world).await, stored(&world).await, world.build().await), (0, 1, 0));
    world.is_sound("after changes of the default").await;
}

#[tokio::test]
async fn turning_expiry_on_builds_its_index_and_turning_it_off_drops_it() {
    let mut world = World::new(json!({})).await;
    for n in 0..50 {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "ttl": 5 + n})).await;
    }
    assert_eq!(expiry_entries(&world).await.len(), 0);
    world.replace(json!({"defaultTtl": -1})).await;
    world.clock.advance_seconds(5);
    assert_eq!(erase(&world).await, 0, "the index is not built yet");
    assert_eq!(ask(&world, "SELECT VALUE COUNT(1) FROM c", IndexUse::Always).await.0, ["49"]);
    assert!(world.build().await > 0);
    assert_eq!(expiry_entries(&world).await.len(), 50);
    assert_eq!(ask(&world, "SELECT VALUE COUNT(1) FROM c", IndexUse::Always).await, (vec!["49".into()], 0));
    assert_eq!((erase(&world).await, stored(&world).await), (1, 49));
    world.restart().await;
    world.clock.advance_seconds(1);
    assert_eq!((erase(&world).await, stored(&world).await), (1, 48), "after a restart");
    world.replace(json!({})).await;
    assert_eq!(
        (world.build().await, expiry_entries(&world).await.len()),
        (0, 0),
        "dropped, and nothing is built"
    );
    world.clock.advance_seconds(1_000);
    assert_eq!(ask(&world, "SELECT VALUE COUNT(1) FROM c", IndexUse::Always).await, (vec!["48".into()], 0));
    world.put(&json!({"id": "0", "pk": "a", "ttl": 5})).await;
    world.is_sound("turned off").await;
    world.replace(json!({"defaultTtl": 100_000})).await;
    world.build().await;
    world.sweep().await;
    assert_eq!((erase(&world).await, stored(&world).await), (1, 1), "all but the one written a moment ago");
    world.is_sound("turned on again").await;
}

/// A container that a version of the program made which had no expiry index.
#[tokio::test]
async fn containers_from_before_get_their_index() {
    let world = World::new(json!({"defaultTtl": 10})).await;
    for n in 0..30 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    let container = world.container().await;
    let mut removed = KeyList::new();
    expiry_entries(&world).await.iter().for_each(|entry| removed.push(entry));
    world.plant(|batch| batch.set.removed = removed.sorted()).await;
    let mut batch = WriteBatch::new(CATALOG_SHARD, CATALOG_EPOCH);
    batch.delete(Space::Meta, generations_key(container.rid()));
    batch.fence(container.ranges[0].shard);
    world.engine.commit(batch).await.unwrap();
    world.clock.advance_seconds(10);
    let read = world.account.documents(&container).read(Link::Name("1"), None).await;
    assert!(read.is_err(), "the container was loaded anew");
    assert!(world.account.maintenance().erase_expired().await.unwrap(), "its index is begun");
    assert_eq!((erase(&world).await, stored(&world).await), (0, 30), "and not built yet");
    assert!(world.build().await > 0);
    erase(&world).await;
    assert_eq!(stored(&world).await, 0);
    world.sweep().await;
    world.is_sound("a container from before").await;
}

#[tokio::test]
async fn an_index_that_calls_the_living_expired_is_built_anew() {
    let world = World::new(json!({"defaultTtl": 1000})).await;
    world.put(&json!({"id": "1", "pk": "a"})).await;
    let entry = expiry_entries(&world).await.remove(0);
    let mut wrong = entry.clone();
    wrong[17..25].fill(0);
    let (mut added, mut removed) = (KeyList::new(), KeyList::new());
    added.push(&wrong);
    removed.push(&entry);
    world.plant(|batch| (batch.set.added, batch.set.removed) = (added, removed)).await;
    assert_eq!((erase(&world).await, stored(&world).await), (0, 1));
    world.build().await;
    world.sweep().await;
    world.is_sound("built anew").await;
}

#[tokio::test]
async fn documents_that_are_left_out_of_the_index_are_erased_too() {
    let world = World::new(json!({"defaultTtl": 5})).await;
    let document = json!({"id": "1", "pk": "a"});
    world.write_as(WriteMode::Create, &document, IndexDirective::Exclude).await.unwrap();
    world.clock.advance_seconds(5);
    assert_eq!((erase(&world).await, stored(&world).await), (1, 0));
}

#[tokio::test]
async fn another_writer_wins_against_the_sweep() {
    let world = World::new(json!({"defaultTtl": 5})).await;
    for n in 0..3 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    world.clock.advance_seconds(5);
    let other = world.clone();
    world.account.maintenance().erase_expired().await.unwrap();
    for n in 0..3 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    world.clock.advance_seconds(5);
    world.engine.before_commit(async move { other.put(&json!({"id": "1", "pk": "a", "n": "new"})).await });
    erase(&world).await;
    assert_eq!(ask(&world, "SELECT VALUE c.n FROM c", IndexUse::Never).await.0, ["\"new\""]);
    assert_eq!(stored(&world).await, 1);
    world.is_sound("after a race").await;
}

/// Two processes, one asleep in the middle of a step.
#[tokio::test]
async fn a_sweep_that_was_asleep_changes_nothing() {
    let world = World::new(json!({"defaultTtl": 5})).await;
    for n in 0..5 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    let mut other = world.clone();
    other.account = crate::leases::other_process(&world).await;
    world.clock.advance_seconds(5);
    let awake = other.clone();
    assert!(world.account.maintenance().erase_expired().await.unwrap());
    for n in 0..5 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    world.clock.advance_seconds(5);
    world.engine.before_commit(async move {
        awake.clock.advance_seconds(60);
        assert!(awake.account.maintenance().erase_expired().await.unwrap());
    });
    erase(&world).await;
    assert_eq!(stored(&world).await, 0);
    world.is_sound("after two sweeps").await;
}

const QUERIES: [&str; 7] = [
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n = 1",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 1 AND c.n < 3",
    "SELECT VALUE MIN(c.n) FROM c",
    "SELECT VALUE MAX(c.n) FROM c",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
];

fn lifetimes() -> impl Strategy<Value = Option<i32>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(-1)), 4 => (1..9_i32).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// At every second, before and after a step of erasing, the index alone says what all documents say.
    #[test]
    fn index_only_answers_are_those_of_a_scan_at_every_second(
        default in prop_oneof![Just(-1), 1..9_i32],
        documents in proptest::collection::vec((0..4_u8, lifetimes(), 0..3_u64), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // Nothing is indexed that tells lifetimes, but the expiry index.
            let policy = json!({"includedPaths": [{"path": "/n/*"}], "excludedPaths": [{"path": "/*"}]});
            let world = World::new(json!({"defaultTtl": default, "indexingPolicy": policy})).await;
            for (place, (n, ttl, pause)) in documents.iter().enumerate() {
                let mut document = json!({"id": format!("{place}"), "pk": "a", "n": n});
                if let Some(ttl) = ttl {
                    document["ttl"] = Value::from(*ttl);
                }
                world.put(&document).await;
                world.clock.advance_seconds(*pause);
            }
            for second in 0..11 {
                for text in QUERIES {
                    let (rows, read) = ask(&world, text, IndexUse::Always).await;
                    let scanned = ask(&world, text, IndexUse::Never).await.0;
                    assert_eq!((rows, read), (scanned, 0), "second {second}: {text}");
                }
                if second % 3 == 2 {
                    world.account.maintenance().erase_expired().await.unwrap();
                }
                world.clock.advance_seconds(1);
            }
            erase(&world).await;
            world.is_sound("after expiry").await;
        });
    }
}
