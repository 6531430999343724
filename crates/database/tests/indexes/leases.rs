//! Two processes over one storage: one of them builds indexes at a time.

use crate::world::World;
use astrarium_database::{Account, Env, Link, Resources};
use astrarium_env::Random;
use astrarium_kv::Engine;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn one_process_builds_at_a_time() {
    let world = World::new(json!({})).await;
    for n in 0..600 {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "n": n})).await;
    }
    let engine: Arc<dyn Engine> = world.engine.clone();
    let env = Env::new(Box::new(world.clock.clone()), Random::from_seed(9));
    let resources = Resources { process: 2, ..Resources::default() };
    let other = Account::open_within(engine, env, resources).await.unwrap();
    assert!(!other.maintenance().build_indexes().await.unwrap(), "nothing to do, and no lease taken");
    world.replace(json!({"indexingPolicy": {"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}})).await;
    assert!(world.account.maintenance().build_indexes().await.unwrap());
    assert!(!other.maintenance().build_indexes().await.unwrap(), "the first process has the lease");
    // The first one sleeps for longer than its lease lasts.
    world.clock.advance_seconds(60);
    assert!(other.maintenance().build_indexes().await.unwrap(), "another goes on");
    assert!(!world.account.maintenance().build_indexes().await.unwrap(), "and the first one has to stop");
    while other.maintenance().build_indexes().await.unwrap() {}
    assert_eq!(world.container().await.ranges.len(), 1);
    let container = other.catalog().container(Link::Name("d"), Link::Name("c")).await.unwrap();
    assert!(container.generations.building.is_none(), "it is built");
    assert!(
        !world.account.maintenance().build_indexes().await.unwrap(),
        "given back, and nothing left to do"
    );
    while other.maintenance().sweep().await.unwrap() {}
    world.is_sound("after a build by two processes").await;
}
