//! A changed policy: a new generation is built in steps, comes into use, and the old one goes.

use crate::world::{World, document, only};
use astrarium_database::{Conditions, Error, Link, WriteMode};
use serde_json::{Value, json};

const QUERY: &str = "SELECT VALUE c.id FROM c WHERE c.n = 7";

async fn filled(definition: Value, count: usize) -> World {
    let world = World::new(definition).await;
    for number in 0..count {
        world.put(&document(number)).await;
    }
    world
}

#[tokio::test]
async fn a_changed_policy_builds_a_new_generation() {
    let world = filled(json!({}), 700).await;
    let before = world.query(QUERY).await;
    assert_eq!(before.len(), 70);
    let container = world.replace(only(&["/n/?", "/list/*"])).await;
    assert_eq!(container.generations.active, 1);
    assert_ne!(container.indexed_by(), &container.definition);
    assert_eq!(world.progress().await, 0);
    let mut last = 0;
    let mut steps = 0;
    while world.account.maintenance().build_indexes().await.unwrap() {
        steps += 1;
        let progress = world.progress().await;
        assert!(progress >= last, "progress goes forward");
        last = progress;
        assert_eq!(world.query(QUERY).await, before, "step {steps}");
        world.is_sound(&format!("step {steps}")).await;
    }
    assert!(steps >= 5, "{steps} steps for 700 documents are not bounded");
    assert_eq!(last, 100);
    let container = world.container().await;
    assert_eq!(container.generations.active, 2);
    assert_eq!(container.indexed_by(), &container.definition);
    assert!(world.generation(1).await.is_empty(), "the old generation went with the commit that replaced it");
    world.sweep().await;
    let fresh = filled(only(&["/n/?", "/list/*"]), 700).await;
    assert_eq!(world.active_entries().await, fresh.active_entries().await);
    world.is_sound("at the end").await;
}

#[tokio::test]
async fn a_query_that_knows_the_old_index_only_is_right_too() {
    let world = filled(json!({}), 300).await;
    let (old, before) = (world.container().await, world.query(QUERY).await);
    for policy in [only(&["/n/?"]), only(&["/text/?"]), json!({})] {
        world.replace(policy).await;
        world.build().await;
        world.sweep().await;
        assert_eq!(world.query_of(&old, QUERY).await, before);
    }
}

#[tokio::test]
async fn building_goes_on_after_a_restart() {
    let mut world = filled(json!({}), 500).await;
    world.replace(only(&["/text/?"])).await;
    let mut restarts = 0;
    while world.account.maintenance().build_indexes().await.unwrap() {
        world.restart().await;
        restarts += 1;
        world.put(&document(restarts)).await;
        world.delete(&document(499 - restarts)).await.unwrap();
    }
    world.restart().await;
    world.sweep().await;
    world.is_sound("after restarts").await;
    assert_eq!((world.progress().await, world.container().await.generations.active), (100, 2));
}

#[tokio::test]
async fn only_a_change_of_the_index_builds_one() {
    let world = filled(json!({"defaultTtl": 500}), 20).await;
    // Another lifetime, another order of paths, another spelling.
    world.replace(json!({"defaultTtl": 1000})).await;
    let spelled = json!({"defaultTtl": -1, "indexingPolicy": {"indexingMode": "Lazy", "automatic": true,
        "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/_etag/?"}]}});
    world.replace(spelled).await;
    assert_eq!((world.progress().await, world.build().await), (100, 0));
    // While one is built, other changes do not disturb it.
    let mut longer = only(&["/n/?"]);
    longer["defaultTtl"] = json!(2000);
    world.replace(longer.clone()).await;
    world.account.maintenance().build_indexes().await.unwrap();
    let building = world.container().await.generations.building;
    longer["defaultTtl"] = json!(5000);
    world.replace(longer).await;
    assert_eq!(world.container().await.generations.building, building);
    // Back to the index in use: what was built is given up.
    world.replace(json!({"defaultTtl": 5000})).await;
    assert_eq!((world.progress().await, world.build().await), (100, 0));
    world.is_sound("given up").await;
    world.sweep().await;
    assert!(world.generation(2).await.is_empty());
    assert_eq!(world.container().await.generations.active, 1);
}

#[tokio::test]
async fn a_second_change_begins_anew() {
    let world = filled(json!({}), 600).await;
    world.replace(only(&["/n/?"])).await;
    for _ in 0..3 {
        assert!(world.account.maintenance().build_indexes().await.unwrap());
    }
    assert!(!world.generation(2).await.is_empty());
    world.replace(only(&["/text/?"])).await;
    world.put(&document(1)).await;
    world.is_sound("between").await;
    world.build().await;
    world.sweep().await;
    world.is_sound("at the end").await;
    assert_eq!(world.container().await.generations.active, 3);
    assert_eq!(world.entries().await, world.generation(3).await);
    let mut fresh = filled(only(&["/text/?"]), 600).await.active_entries().await;
    // The document that was written again has another time and etag, neither of which is indexed here.
    assert_eq!(std::mem::take(&mut fresh), world.active_entries().await);
}

#[tokio::test]
async fn indexing_is_switched_off_and_on_again() {
    let world = filled(json!({}), 300).await;
    let (before, entries) = (world.query(QUERY).await, world.active_entries().await);
    let off = json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}});
    world.replace(off).await;
    assert!(world.build().await <= 2, "nothing to build takes no steps");
    world.sweep().await;
    assert!(world.entries().await.is_empty());
    assert_eq!(world.query(QUERY).await, before);
    world.is_sound("off").await;
    world.replace(json!({})).await;
    world.build().await;
    assert_eq!(world.active_entries().await, entries, "documents are indexed as if it had never been off");
    assert_eq!(world.query(QUERY).await, before);
    world.is_sound("on").await;
}

#[tokio::test]
async fn containers_are_built_in_turn() {
    let world = filled(json!({}), 600).await;
    world.replace(only(&["/n/?"])).await;
    world.add_container("small", json!({})).await;
    let small = || world.account.catalog().container(Link::Name("d"), Link::Name("small"));
    let mut definition = small().await.unwrap().definition.clone();
    definition.indexing = world.container().await.definition.indexing.clone();
    let (d, c, none) = (Link::Name("d"), Link::Name("small"), Conditions::default());
    world.account.catalog().replace_container(d, c, &definition, &none).await.unwrap();
    let mut steps = 0;
    while world.account.documents(&small().await.unwrap()).index_progress().await.unwrap() < 100 {
        assert!(world.account.maintenance().build_indexes().await.unwrap());
        steps += 1;
    }
    assert!(steps <= 8, "the small container waited {steps} steps");
    assert!(world.progress().await < 100);
    world.build().await;
    world.is_sound("at the end").await;
}

#[tokio::test]
async fn removing_documents_keeps_a_half_built_index_right() {
    let world = filled(json!({"defaultTtl": 50}), 600).await;
    let mut policy = only(&["/n/?"]);
    policy["defaultTtl"] = json!(50);
    world.replace(policy).await;
    for _ in 0..3 {
        world.account.maintenance().build_indexes().await.unwrap();
    }
    let container = world.container().await;
    let partition = astrarium_database::partition::PartitionKey::parse_header("[\"p1\"]").unwrap();
    world.account.documents(&container).delete_partition(&partition).await.unwrap();
    world.is_sound("a partition removed").await;
    world.clock.advance_seconds(60);
    // These have expired: they are replaced by new ones, each with a new number.
    for number in (0..600).step_by(6) {
        world.write(WriteMode::Create, &document(number)).await.unwrap();
    }
    world.is_sound("expired ones replaced").await;
    world.build().await;
    world.sweep().await;
    world.is_sound("at the end").await;
    assert_eq!(world.query("SELECT VALUE c.id FROM c WHERE c.n >= 0").await.len(), 100);
}

#[tokio::test]
async fn a_container_removed_while_it_is_built_leaves_nothing() {
    let world = filled(json!({}), 600).await;
    let shard = world.container().await.ranges[0].shard;
    world.replace(only(&["/n/?"])).await;
    for _ in 0..3 {
        world.account.maintenance().build_indexes().await.unwrap();
    }
    world.replace(only(&["/text/?"])).await;
    world.account.catalog().delete_database(Link::Name("d"), &Conditions::default()).await.unwrap();
    world.sweep().await;
    assert_eq!(world.build().await, 0);
    assert!(matches!(
        astrarium_kv::Engine::shard(&*world.engine, shard).await,
        Err(astrarium_kv::Error::Dropped { .. })
    ));
    assert_eq!(world.engine.key_count(), 0);
}

#[tokio::test]
async fn generations_are_used_again_only_when_they_are_swept() {
    let world = filled(json!({}), 5).await;
    let mut changes = 0;
    let busy = loop {
        let policy = if changes % 2 == 0 { only(&["/n/?"]) } else { only(&["/text/?"]) };
        match world.try_replace(policy).await {
            Ok(_) => changes += 1,
            Err(error) => break error,
        }
        world.account.maintenance().build_indexes().await.unwrap();
    };
    assert!(matches!(busy, Error::Busy), "{busy}");
    assert_eq!(changes, 254);
    world.is_sound("many generations").await;
    world.sweep().await;
    world.replace(only(&["/list/*"])).await;
    world.build().await;
    world.sweep().await;
    world.is_sound("at the end").await;
    let fresh = filled(only(&["/list/*"]), 5).await;
    assert_eq!(world.active_entries().await, fresh.active_entries().await);
}
