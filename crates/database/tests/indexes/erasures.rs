//! Deletes of logical partitions: gone at once, erased in steps, and what was written afterwards stays.

use crate::world::{World, key_of};
use astrarium_database::{
    ChangeFeedMode, ChangeFeedStart, ChangeOperation, Error, FeedScope, Link, PageLimit, ReadChanges,
    WriteMode,
};
use serde_json::{Value, json};
use std::time::Duration;

/// More than a request removes itself.
const MANY: usize = 1_300;

async fn filled(definition: Value) -> World {
    let world = World::new(definition).await;
    for n in 0..MANY {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "n": n, "u": n})).await;
    }
    world.put(&json!({"id": "other", "pk": "b", "n": 1, "u": 1})).await;
    world
}

async fn delete(world: &World, document: &Value) -> Result<(u32, u64, f64), Error> {
    let container = world.container().await;
    let key = key_of(&container, document);
    world.account.documents(&container).delete_partition(&key).await
}

async fn stored(world: &World) -> u64 {
    let mut documents = 0;
    world.account.maintenance().verify(|_, report| documents += report.documents).await.unwrap();
    documents
}

async fn erase(world: &World) -> usize {
    let mut steps = 0;
    while world.account.maintenance().erase_deleted().await.unwrap() {
        steps += 1;
        assert!(steps < 10_000, "erasing has an end");
    }
    steps
}

async fn count(world: &World) -> Vec<String> {
    world.query("SELECT VALUE COUNT(1) FROM c").await
}

/// The documents of a partition are gone for every reader when the delete is answered, and from storage a while later.
#[tokio::test]
async fn a_large_partition_is_gone_at_once_and_erased_later() {
    let definition = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
    let world = filled(definition).await;
    assert_eq!(count(&world).await, [format!("{}", MANY + 1)]);
    delete(&world, &json!({"pk": "a"})).await.unwrap();
    assert!(stored(&world).await > 100, "most is still there");
    world.is_sound("before it is erased").await;
    let container = world.container().await;
    let documents = world.account.documents(&container);
    let key = key_of(&container, &json!({"pk": "a"}));
    for scope in [FeedScope::All, FeedScope::Partition(key.clone())] {
        let limit = PageLimit { count_max: 10_000, bytes_max: usize::MAX };
        let mut found = 0;
        let mut position = None;
        loop {
            let page = documents.read_feed(&scope, position, limit).await.unwrap();
            found += page.documents.len();
            position = page.resume;
            if position.is_none() {
                break;
            }
        }
        assert_eq!(found, usize::from(matches!(scope, FeedScope::All)), "{scope:?}");
    }
    let late = format!("{}", MANY - 1);
    assert!(matches!(documents.read(Link::Name(&late), Some(&key)).await, Err(Error::NotFound)));
    assert!(matches!(world.delete(&json!({"id": late, "pk": "a"})).await, Err(Error::NotFound)));
    assert_eq!(count(&world).await, ["1"]);
    assert_eq!(world.query("SELECT VALUE c.id FROM c WHERE c.n >= 0").await, ["\"other\""]);
    assert_eq!(world.query("SELECT VALUE MAX(c.n) FROM c").await, ["1"]);
    // Ids and unique keys are free, and what takes them stays.
    for (id, u) in [("late", MANY - 1), (late.as_str(), MANY - 2)] {
        world.write(WriteMode::Create, &json!({"id": id, "pk": "a", "u": u, "n": 0})).await.unwrap();
    }
    assert!(erase(&world).await > 1);
    assert_eq!((stored(&world).await, count(&world).await), (3, vec!["3".to_owned()]));
    world.is_sound("erased").await;
    assert_eq!(erase(&world).await, 0);
}

#[tokio::test]
async fn a_small_partition_is_removed_at_once() {
    let world = World::new(json!({})).await;
    for n in 0..300 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
    }
    delete(&world, &json!({"pk": "a"})).await.unwrap();
    assert_eq!((stored(&world).await, erase(&world).await), (0, 0));
}

/// A restart goes on where it ended, and no key is looked at twice but those of the last steps.
#[tokio::test]
async fn erasing_goes_on_after_restarts() {
    let mut world = filled(json!({})).await;
    delete(&world, &json!({"pk": "a"})).await.unwrap();
    let mut left = stored(&world).await;
    for _ in 0..3 {
        assert!(world.account.maintenance().erase_deleted().await.unwrap());
        world.restart().await;
        assert_eq!(count(&world).await, ["1"], "nothing comes back");
        let now = stored(&world).await;
        assert!(now < left);
        left = now;
    }
    world.put(&json!({"id": "new", "pk": "a"})).await;
    erase(&world).await;
    assert_eq!(stored(&world).await, 2);
    world.is_sound("after restarts").await;
}

#[tokio::test]
async fn a_prefix_of_a_hierarchical_key() {
    let key = json!({"paths": ["/pk", "/sub"], "kind": "MultiHash", "version": 2});
    let world = World::new(json!({"partitionKey": key})).await;
    for n in 0..MANY {
        let pk = if n % 2 == 0 { "a" } else { "b" };
        world.put(&json!({"id": format!("{n}"), "pk": pk, "sub": n % 50})).await;
    }
    let container = world.container().await;
    let prefix = astrarium_database::partition::PartitionKey::parse_header("[\"a\"]").unwrap();
    world.account.documents(&container).delete_partition(&prefix).await.unwrap();
    assert_eq!(count(&world).await, [format!("{}", MANY / 2)]);
    world.put(&json!({"id": "new", "pk": "a", "sub": 1})).await;
    erase(&world).await;
    assert_eq!(stored(&world).await, MANY as u64 / 2 + 1);
    world.is_sound("after a prefix").await;
}

#[tokio::test]
async fn a_container_that_goes_takes_its_deletes_along() {
    let world = filled(json!({})).await;
    delete(&world, &json!({"pk": "a"})).await.unwrap();
    let none = astrarium_database::Conditions::default();
    world.account.catalog().delete_container(Link::Name("d"), Link::Name("c"), &none).await.unwrap();
    assert_eq!((erase(&world).await, erase(&world).await), (1, 0));
    world.add_container("c", json!({})).await;
    world.put(&json!({"id": "1", "pk": "a"})).await;
    assert_eq!((erase(&world).await, count(&world).await), (0, vec!["1".to_owned()]));
}

#[tokio::test]
async fn readers_of_all_versions_hear_of_each_document() {
    let world = filled(json!({"changeFeedPolicy": {"retentionDuration": 5}})).await;
    let container = world.container().await;
    let mut request = ReadChanges {
        scope: FeedScope::All,
        range_id: None,
        mode: ChangeFeedMode::AllVersionsAndDeletes,
        start: ChangeFeedStart::Now,
        limit: PageLimit { count_max: 10_000, bytes_max: usize::MAX },
        wait: Duration::ZERO,
    };
    let now = world.account.documents(&container).read_changes(&request).await.unwrap().position;
    delete(&world, &json!({"pk": "a"})).await.unwrap();
    // One of them is written again before it is erased.
    let last = world.query("SELECT VALUE MAX(c.n) FROM c").await;
    assert_eq!(last, ["1"]);
    for n in 0..MANY {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "n": 0})).await;
        if n == 3 {
            break;
        }
    }
    erase(&world).await;
    request.start = ChangeFeedStart::Position(now);
    let mut told: Vec<ChangeOperation> = Vec::new();
    loop {
        let container = world.container().await;
        let page = world.account.documents(&container).read_changes(&request).await.unwrap();
        if page.changes.is_empty() {
            break;
        }
        told.extend(page.changes.iter().map(|change| change.operation));
        request.start = ChangeFeedStart::Position(page.position);
    }
    let of = |operation| told.iter().filter(|own| **own == operation).count();
    assert_eq!((of(ChangeOperation::Delete), of(ChangeOperation::Create)), (MANY, 4));
    assert_eq!(told.len(), MANY + 4);
}
