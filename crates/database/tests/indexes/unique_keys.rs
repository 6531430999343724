//! Unique keys: one holder in each logical partition, whatever happens at the same time.

use crate::world::World;
use astrarium_database::{Error, WriteMode};
use serde_json::{Value, json};
use std::sync::Arc;

fn policy(paths: &[&[&str]]) -> Value {
    let keys: Vec<Value> = paths.iter().map(|paths| json!({"paths": paths})).collect();
    json!({"uniqueKeyPolicy": {"uniqueKeys": keys}, "defaultTtl": -1})
}

async fn create(world: &World, document: Value, expected: bool) {
    match world.write(WriteMode::Create, &document).await {
        Ok(_) => assert!(expected, "{document} was taken"),
        Err(Error::UniqueKey) => assert!(!expected, "{document} was refused"),
        Err(error) => panic!("{document}: {error}"),
    }
}

#[tokio::test]
async fn a_combination_is_held_once_in_a_partition() {
    let world = World::new(policy(&[&["/email"], &["/first", "/name/last"]])).await;
    create(&world, json!({"id": "1", "pk": "a", "email": "x", "first": "A", "name": {"last": "B"}}), true)
        .await;
    create(&world, json!({"id": "2", "pk": "a", "email": "x", "first": "C"}), false).await;
    create(&world, json!({"id": "2", "pk": "b", "email": "x", "first": "A", "name": {"last": "B"}}), true)
        .await;
    create(&world, json!({"id": "3", "pk": "a", "email": "y", "first": "A", "name": {"last": "B"}}), false)
        .await;
    create(&world, json!({"id": "3", "pk": "a", "email": "y", "first": "A", "name": {"last": "b"}}), true)
        .await;
    // What is not there counts as null.
    create(&world, json!({"id": "4", "pk": "a", "first": "D"}), true).await;
    create(&world, json!({"id": "5", "pk": "a", "email": null, "first": "E"}), false).await;
    create(&world, json!({"id": "5", "pk": "a", "email": 1, "first": "D", "name": {"last": null}}), false)
        .await;
    create(&world, json!({"id": "5", "pk": "a", "email": "1", "first": "D", "name": {"last": 0}}), true)
        .await;
    // A document does not collide with itself, and gives up what it no longer has.
    world.put(&json!({"id": "1", "pk": "a", "email": "x", "first": "A", "name": {"last": "Z"}})).await;
    create(&world, json!({"id": "6", "pk": "a", "email": "z", "first": "A", "name": {"last": "B"}}), true)
        .await;
    world.delete(&json!({"id": "1", "pk": "a"})).await.unwrap();
    create(&world, json!({"id": "7", "pk": "a", "email": "x", "first": "A", "name": {"last": "Z"}}), true)
        .await;
    world.is_sound("at the end").await;
}

#[tokio::test]
async fn hierarchical_partitions_have_keys_of_their_own() {
    let mut definition = policy(&[&["/email"]]);
    definition["partitionKey"] = json!({"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2});
    let world = World::new(definition).await;
    create(&world, json!({"id": "1", "t": "a", "u": 1, "email": "x"}), true).await;
    create(&world, json!({"id": "2", "t": "a", "u": 1, "email": "x"}), false).await;
    create(&world, json!({"id": "2", "t": "a", "u": 2, "email": "x"}), true).await;
    create(&world, json!({"id": "3", "t": "a", "email": "x"}), true).await;
    create(&world, json!({"id": "4", "t": "a", "email": "x"}), false).await;
    world.is_sound("at the end").await;
}

#[tokio::test]
async fn an_expired_holder_gives_way() {
    let world = World::new(policy(&[&["/email"]])).await;
    create(&world, json!({"id": "1", "pk": "a", "email": "x", "ttl": 10}), true).await;
    create(&world, json!({"id": "2", "pk": "a", "email": "x"}), false).await;
    world.clock.advance_seconds(11);
    create(&world, json!({"id": "2", "pk": "a", "email": "x"}), true).await;
    create(&world, json!({"id": "1", "pk": "a", "email": "x"}), false).await;
    create(&world, json!({"id": "1", "pk": "a", "email": "y"}), true).await;
    world.is_sound("at the end").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_writers_one_wins() {
    let world = Arc::new(World::new(policy(&[&["/email"]])).await);
    for round in 0..10 {
        let tries: Vec<_> = (0..16)
            .map(|number| {
                let world = Arc::clone(&world);
                let document =
                    json!({"id": format!("{round}-{number}"), "pk": "a", "email": format!("{round}")});
                #[expect(clippy::disallowed_methods, reason = "concurrent writers are the point")]
                tokio::spawn(async move {
                    let mode = if number % 2 == 0 { WriteMode::Create } else { WriteMode::Upsert };
                    world.write(mode, &document).await
                })
            })
            .collect();
        let mut winners = 0;
        for one in tries {
            match one.await.unwrap() {
                Ok(_) => winners += 1,
                Err(error) => assert!(matches!(error, Error::UniqueKey), "{error}"),
            }
        }
        assert_eq!(winners, 1, "round {round}");
    }
    world.is_sound("at the end").await;
}
