//! Several stores: shards in each of them, and commits of the catalog that concern all.

use crate::ground::{cluster, fresh_store, open};
use astrarium_kv::contract::{self, META_SHARD, block_on, shard_key};
use astrarium_kv::{Engine, Error, Expectation, Founding, PlaceId, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_postgres::PostgresEngine;
use std::sync::Arc;

fn two_stores() -> Option<(String, PostgresEngine, PlaceId)> {
    let cluster = cluster()?;
    let url = fresh_store(cluster);
    let engine = open(&url);
    let second = engine.add_store("second", &fresh_address(cluster)).expect("a store is added");
    Some((url, engine, second))
}

/// Another schema stands for another PostgreSQL: nothing crosses it.
fn fresh_address(cluster: &astrarium_postgres_fixture::Cluster) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}?schema=further_{}", cluster.url(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn put(shard: ShardId, epoch: u64, name: &str) -> WriteBatch {
    let mut batch = WriteBatch::new(shard, epoch);
    batch.put(Space::Body, shard_key(shard, name.as_bytes()), vec![7; 9].into(), Stamp::NONE);
    batch.set.added.push(&[&shard.0.to_be_bytes()[..], b"familyof", name.as_bytes()].concat());
    batch
}

/// Nobody above can tell how many stores there are, but by asking.
#[test]
fn the_contract_holds_over_three_stores() {
    let Some(cluster) = cluster() else { return };
    contract::check(&|| {
        let engine = open(&fresh_store(cluster));
        for name in ["second", "third"] {
            engine.add_store(name, &fresh_address(cluster)).expect("a store is added");
        }
        Arc::new(engine) as Arc<dyn Engine>
    });
}

#[test]
fn shards_live_where_they_were_put() {
    let Some((url, engine, second)) = two_stores() else { return };
    let places = block_on(engine.places()).unwrap();
    assert_eq!(places.iter().map(|place| place.name.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    for (shard, place) in [(ShardId(10), PlaceId::FIRST), (ShardId(11), second)] {
        block_on(engine.place(shard, place)).unwrap();
        block_on(engine.commit(put(shard, 0, "a"))).unwrap();
        assert_eq!(block_on(engine.place_of(shard)).unwrap(), place);
        let elsewhere = if place == second { PlaceId::FIRST } else { second };
        assert!(matches!(block_on(engine.place(shard, elsewhere)), Err(Error::ShardExists { .. })));
    }
    assert!(matches!(block_on(engine.place(ShardId(12), PlaceId(9))), Err(Error::Contract { .. })));
    // Another server finds everything by itself.
    let other = open(&url);
    for shard in [ShardId(10), ShardId(11)] {
        let view = block_on(other.view(shard, 0)).unwrap();
        assert!(block_on(view.get(Space::Body, &shard_key(shard, b"a"))).unwrap().is_some());
        assert_eq!(view.state().version, 1);
    }
    // A place that is drained gets nothing new.
    block_on(engine.set_draining(PlaceId::FIRST, true)).unwrap();
    assert!(matches!(block_on(engine.set_draining(second, true)), Err(Error::Contract { .. })));
    block_on(engine.commit(put(ShardId(20), 0, "a"))).unwrap();
    assert_eq!(block_on(engine.place_of(ShardId(20))).unwrap(), second);
}

/// Founding, fencing and dropping shards of both stores happens in one commit of the catalog, or not at all.
#[test]
fn the_catalog_changes_shards_of_all_stores_together() {
    let Some((url, engine, second)) = two_stores() else { return };
    let other = open(&url);
    let shards = [(ShardId(30), PlaceId::FIRST), (ShardId(31), second)];
    let mut found = WriteBatch::new(META_SHARD, 0);
    for (shard, place) in shards {
        block_on(engine.place(shard, place)).unwrap();
        found.found(shard, Founding { version: 100, high_water: 5, tallies: [1, 2] });
    }
    found.put(Space::Meta, shard_key(META_SHARD, b"container"), vec![1].into(), Stamp::NONE);
    block_on(engine.commit(found.clone())).unwrap();
    assert!(matches!(block_on(engine.commit(found)), Err(Error::ShardExists { .. })));
    for (shard, _) in shards {
        for server in [&engine, &other] {
            let state = block_on(server.shard(shard)).unwrap();
            assert_eq!((state.version, state.epoch, state.high_water), (100, 1, 5));
        }
        block_on(other.commit(put(shard, 1, "a"))).unwrap();
    }
    // Refused in the catalog, so nothing of it happens anywhere.
    let mut refused = WriteBatch::new(META_SHARD, 0);
    refused.expect(Space::Meta, shard_key(META_SHARD, b"container"), Expectation::Absent);
    refused.fence(ShardId(30));
    refused.fence(ShardId(31));
    assert!(matches!(block_on(engine.commit(refused)), Err(Error::Conflict { .. })));
    for (shard, _) in shards {
        assert_eq!(block_on(other.shard(shard)).unwrap().epoch, 1);
        block_on(other.commit(put(shard, 1, "b"))).unwrap();
    }
    let mut fence = WriteBatch::new(META_SHARD, 0);
    fence.fence(ShardId(30));
    fence.fence(ShardId(31));
    block_on(engine.commit(fence)).unwrap();
    for (shard, _) in shards {
        assert!(matches!(block_on(other.commit(put(shard, 1, "c"))), Err(Error::Fenced { current: 2, .. })));
        block_on(other.commit(put(shard, 2, "c"))).unwrap();
    }
    let mut drop = WriteBatch::new(META_SHARD, 0);
    for (shard, _) in shards {
        drop.drop_shard(shard);
        drop.drop_prefix(Some(Space::Body), shard_key(shard, &[]));
        drop.drop_prefix(None, shard.0.to_be_bytes().to_vec().into());
    }
    block_on(engine.commit(drop)).unwrap();
    assert_eq!(block_on(engine.unreclaimed()).unwrap().len(), 4);
    for (shard, _) in shards {
        assert!(matches!(block_on(other.view(shard, 2)).map(std::mem::drop), Err(Error::Dropped { .. })));
    }
    engine.reclaim_now().unwrap();
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), []);
}
