//! Two processes over one storage: one of them does a kind of background work at a time, and one that was asleep does no harm.

use crate::world::World;
use astrarium_database::{Account, Env, Link};
use astrarium_env::Random;
use astrarium_kv::Engine;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) async fn other_process(world: &World) -> Account {
    let engine: Arc<dyn Engine> = world.engine.clone();
    let env = Env::new(Box::new(world.clock.clone()), Random::from_seed(9));
    Account::open(engine, env).await.unwrap()
}

fn indexed(path: &str) -> Value {
    json!({"indexingPolicy": {"includedPaths": [{"path": path}], "excludedPaths": [{"path": "/*"}]}})
}

#[tokio::test]
async fn one_process_builds_at_a_time() {
    let world = World::new(json!({})).await;
    for n in 0..600 {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "n": n})).await;
    }
    let other = other_process(&world).await;
    assert!(!other.maintenance().build_indexes().await.unwrap(), "nothing to do, and no lease taken");
    world.replace(indexed("/n/?")).await;
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

/// A world whose container had so many other indexes before, all of them built and replaced.
async fn world_to_sweep(paths: &[&str]) -> World {
    let world = World::new(json!({})).await;
    world.put(&json!({"id": "1", "pk": "a", "n": 1})).await;
    for path in paths {
        world.replace(indexed(path)).await;
        while world.account.maintenance().build_indexes().await.unwrap() {}
    }
    world
}

fn sweeps(account: &Account) -> u64 {
    account.monitoring().background_statistics().sweeps
}

#[tokio::test]
async fn a_sweep_that_was_asleep_changes_nothing() {
    let world = world_to_sweep(&["/a/?", "/b/?"]).await;
    let other = other_process(&world).await;
    assert!(world.account.maintenance().sweep().await.unwrap());
    assert!(!other.maintenance().sweep().await.unwrap(), "the first process has the lease");
    let (clock, awake) = (world.clock.clone(), other.clone());
    world.engine.before_commit(async move {
        clock.advance_seconds(60);
        while awake.maintenance().sweep().await.unwrap() {}
    });
    assert!(!world.account.maintenance().sweep().await.unwrap(), "another process has done it");
    assert_eq!((sweeps(&world.account), sweeps(&other)), (1, 1), "each was swept once");
    world.is_sound("after a sweep by two processes").await;
}

#[tokio::test]
async fn space_is_freed_while_storage_takes_only_removals() {
    let world = world_to_sweep(&["/a/?", "/b/?"]).await;
    let other = other_process(&world).await;
    world.engine.is_full.store(true, Ordering::Relaxed);
    assert!(world.account.maintenance().sweep().await.unwrap(), "without a lease");
    let awake = other.clone();
    let engine = Arc::clone(&world.engine);
    world.engine.before_commit(async move {
        // There is space again, and another process has a lease.
        engine.is_full.store(false, Ordering::Relaxed);
        while awake.maintenance().sweep().await.unwrap() {}
    });
    let _ = world.account.maintenance().sweep().await;
    while world.account.maintenance().sweep().await.unwrap() {}
    assert_eq!(sweeps(&world.account) + sweeps(&other), 2, "each was swept once");
}

#[tokio::test]
async fn a_build_that_was_asleep_gets_no_further() {
    let world = World::new(json!({})).await;
    for n in 0..1_500 {
        world.put(&json!({"id": format!("{n}"), "pk": "a", "n": n})).await;
    }
    let other = other_process(&world).await;
    world.replace(indexed("/n/?")).await;
    assert!(world.account.maintenance().build_indexes().await.unwrap());
    let (clock, awake) = (world.clock.clone(), other.clone());
    world.engine.before_commit(async move {
        clock.advance_seconds(60);
        assert!(awake.maintenance().build_indexes().await.unwrap());
    });
    assert!(!world.account.maintenance().build_indexes().await.unwrap(), "another process builds");
    assert!(!world.account.maintenance().build_indexes().await.unwrap(), "and has the lease");
    while other.maintenance().build_indexes().await.unwrap() {}
    while other.maintenance().sweep().await.unwrap() {}
    world.is_sound("after a build by two processes").await;
}

#[tokio::test]
async fn a_trim_that_was_asleep_changes_nothing() {
    let world = World::new(json!({"changeFeedPolicy": {"retentionDuration": 5}})).await;
    let other = other_process(&world).await;
    for n in 0..3 {
        world.put(&json!({"id": format!("{n}"), "pk": "a"})).await;
        world.clock.advance_seconds(5);
    }
    world.clock.advance_seconds(5 * 60 - 14);
    assert!(world.account.maintenance().trim_histories().await.unwrap(), "the first change is old");
    world.clock.advance_seconds(5);
    let (clock, awake) = (world.clock.clone(), other.clone());
    world.engine.before_commit(async move {
        clock.advance_seconds(60);
        assert!(awake.maintenance().trim_histories().await.unwrap());
    });
    assert!(!world.account.maintenance().trim_histories().await.unwrap(), "another process has done it");
}
