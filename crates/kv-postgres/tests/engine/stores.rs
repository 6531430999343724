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

/// A store goes when nothing lives there; whoever still asks for what did is told that it is gone, and nothing new gets there.
#[test]
fn a_drained_store_is_removed() {
    let Some((url, engine, second)) = two_stores() else { return };
    let other = open(&url);
    let (living, unfounded) = (ShardId(40), ShardId(41));
    block_on(engine.place(living, second)).unwrap();
    block_on(engine.commit(put(living, 0, "a"))).unwrap();
    block_on(other.view(living, 0)).unwrap();
    let refused = |name: &str| engine.remove_store(name).unwrap().expect("a refusal");
    assert!(refused("second").contains("is not being drained"));
    block_on(engine.set_draining(second, true)).unwrap();
    assert!(refused("second").contains("1 key ranges live"), "{}", refused("second"));
    assert_eq!(block_on(engine.places()).unwrap().len(), 2, "a refusal changes nothing");
    block_on(engine.commit(put(living, 0, "b"))).unwrap();
    let mut drop = WriteBatch::new(META_SHARD, 0);
    drop.drop_shard(living);
    block_on(engine.commit(drop)).unwrap();
    // Somebody has chosen the store for a shard and was killed.
    let cluster = cluster().expect("there is one");
    let schema = url.rsplit('=').next().unwrap();
    cluster
        .psql(&format!("INSERT INTO {schema}.placement VALUES ({}, {}, true)", unfounded.0, second.0))
        .unwrap();
    assert_eq!(engine.remove_store("second").unwrap(), None);
    for server in [&engine, &other, &open(&url)] {
        assert_eq!(block_on(server.places()).unwrap().len(), 1);
        for shard in [living, unfounded] {
            let answer = block_on(server.view(shard, 0)).map(std::mem::drop);
            assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
        }
        block_on(server.commit(put(ShardId(50), 0, "a"))).unwrap();
        assert_eq!(block_on(server.place_of(ShardId(50))).unwrap(), PlaceId::FIRST);
    }
    let third = engine.add_store("second", &fresh_address(cluster)).unwrap();
    assert!(third > second, "places are not used again");
}

/// A server that has not heard of it yet chooses a store that was removed: it hears of it then.
#[test]
fn nothing_new_gets_into_a_removed_store() {
    let Some((url, engine, second)) = two_stores() else { return };
    let late = open(&url);
    block_on(late.places()).unwrap();
    block_on(late.place(ShardId(61), second)).unwrap();
    block_on(engine.set_draining(second, true)).unwrap();
    assert_eq!(engine.remove_store("second").unwrap(), None);
    assert!(block_on(late.place(ShardId(60), second)).is_err());
    for shard in (61..70).map(ShardId) {
        block_on(late.commit(put(shard, 0, "a"))).unwrap();
        assert_eq!(block_on(late.place_of(shard)).unwrap(), PlaceId::FIRST);
    }
}

/// Servers go on when a store is said to be elsewhere.
#[test]
fn another_address_is_learnt_while_running() {
    let Some((url, engine, second)) = two_stores() else { return };
    let other = open(&url);
    let shard = ShardId(70);
    block_on(engine.place(shard, second)).unwrap();
    block_on(engine.commit(put(shard, 0, "a"))).unwrap();
    block_on(other.commit(put(shard, 0, "b"))).unwrap();
    let overview = engine.overview().unwrap();
    let address = &overview.stores[1].url;
    let respelt = address.replace("127.0.0.1", "localhost");
    assert_ne!(&respelt, address);
    assert_eq!(engine.set_store_url("second", &respelt).unwrap(), None);
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(5);
    // Asking for places would have it look at once.
    while other.usage().stores.len() < 2 || block_on(other.commit(put(shard, 0, "c"))).is_err() {
        assert!(std::time::Instant::now() < deadline, "the server goes on");
    }
    assert!(other.overview().unwrap().stores[1].url.contains("localhost"));
    let view = block_on(other.view(shard, 0)).unwrap();
    assert!(block_on(view.get(Space::Body, &shard_key(shard, b"a"))).unwrap().is_some());
}

/// What is at an address is looked at before anything is written there.
#[test]
fn only_the_stores_of_the_account_are_used() {
    let Some((url, engine, second)) = two_stores() else { return };
    let cluster = cluster().expect("there is one");
    let shard = ShardId(80);
    block_on(engine.place(shard, second)).unwrap();
    block_on(engine.commit(put(shard, 0, "a"))).unwrap();
    // A further store is no account by itself.
    let further = engine.overview().unwrap().stores[1].url.clone();
    let refusal = PostgresEngine::open(&further, crate::ground::options()).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("the account's first store"), "{refusal}");
    // Somebody writes a wrong address into the list.
    let (foreign, schema) = (fresh_store(cluster), url.rsplit('=').next().unwrap());
    cluster.psql(&format!("UPDATE {schema}.store SET url = '{foreign}' WHERE id = {}", second.0)).unwrap();
    let misled = open(&url);
    let answer = block_on(misled.commit(put(shard, 0, "b")));
    assert!(
        matches!(&answer, Err(Error::Unavailable { reason }) if reason.contains("is not store 1")),
        "{answer:?}"
    );
    let foreign = foreign.rsplit('=').next().unwrap();
    assert_eq!(cluster.psql(&format!("SELECT count(*) FROM {foreign}.shard")).unwrap().trim(), "0");
}

/// A commit whose server died after its decision is carried out in the other stores though nobody asks for those shards again.
#[test]
fn decided_drops_are_carried_out_by_whoever_is_there() {
    let Some((url, engine, second)) = two_stores() else { return };
    let cluster = cluster().expect("there is one");
    let shard = ShardId(90);
    block_on(engine.place(shard, second)).unwrap();
    block_on(engine.commit(put(shard, 0, "a"))).unwrap();
    let first = url.rsplit('=').next().unwrap();
    let further = engine.overview().unwrap().stores[1].url.clone();
    let further = further.rsplit('=').next().unwrap();
    let decision = "07".repeat(16);
    cluster.psql(&format!("INSERT INTO {first}.decision VALUES ('\\x{decision}', true)")).unwrap();
    let pending = format!("UPDATE {further}.shard SET pending = '\\x{decision}02' WHERE id = {}", shard.0);
    cluster.psql(&pending).unwrap();
    engine.reclaim_now().unwrap();
    let left = cluster
        .psql(&format!("SELECT is_dropped, pending IS NULL FROM {further}.shard WHERE id = {}", shard.0));
    assert_eq!(left.unwrap().trim(), "t|t");
}

/// Writers of very many ranges that the catalog changes wait for the change, and not for each other's connections.
#[test]
fn a_change_of_many_ranges_does_not_block_their_writers() {
    let Some((_, engine, second)) = two_stores() else { return };
    let shards: Vec<ShardId> = (100..116).map(ShardId).collect();
    for shard in &shards {
        block_on(engine.place(*shard, second)).unwrap();
        block_on(engine.commit(put(*shard, 0, "a"))).unwrap();
    }
    for epoch in 0..5_u64 {
        let mut fence = WriteBatch::new(META_SHARD, 0);
        for shard in &shards {
            fence.fence(*shard);
        }
        let fenced = engine.commit(fence);
        let writes: Vec<_> = shards.iter().map(|shard| engine.commit(put(*shard, epoch, "b"))).collect();
        block_on(fenced).unwrap();
        for write in writes {
            let outcome = block_on(write);
            assert!(matches!(outcome, Ok(_) | Err(Error::Fenced { .. })), "{outcome:?}");
        }
    }
}

/// Whoever lost the answer of a commit finds its mark though the shard was dropped meanwhile, and its space given back.
#[test]
fn marks_outlive_their_shard() {
    let Some((url, engine, _)) = two_stores() else { return };
    let (cluster, schema) = (cluster().expect("there is one"), url.rsplit('=').next().unwrap());
    let shard = ShardId(120);
    block_on(engine.place(shard, PlaceId::FIRST)).unwrap();
    block_on(engine.commit(put(shard, 0, "a"))).unwrap();
    let mut drop = WriteBatch::new(META_SHARD, 0);
    drop.drop_shard(shard);
    drop.drop_prefix(Some(Space::Body), shard_key(shard, &[]));
    drop.drop_prefix(None, shard.0.to_be_bytes().to_vec().into());
    block_on(engine.commit(drop)).unwrap();
    engine.reclaim_now().unwrap();
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), []);
    let marks =
        cluster.psql(&format!("SELECT count(*) FROM {schema}.mark WHERE shard = {}", shard.0)).unwrap();
    assert_eq!(marks.trim(), "1");
}

/// A store that was restored from a backup, and has got other content under the same numbers since, is not read from what is remembered.
#[test]
fn nothing_is_remembered_over_another_history() {
    let Some((url, engine, second)) = two_stores() else { return };
    let cluster = cluster().expect("there is one");
    let shard = ShardId(130);
    block_on(engine.place(shard, second)).unwrap();
    block_on(engine.commit(put(shard, 0, "a"))).unwrap();
    block_on(engine.commit(put(shard, 0, "lost"))).unwrap();
    let family: [u8; 16] = [&shard.0.to_be_bytes()[..], b"familyof"].concat().try_into().unwrap();
    let names = |engine: &PostgresEngine| {
        let view = block_on(engine.view(shard, 0)).unwrap();
        let range = astrarium_kv::KeyRange::prefix(&family);
        let limit = astrarium_kv::ScanLimit { entry_count_max: 100, byte_count_max: usize::MAX };
        let found = block_on(view.scan_keys(&range, astrarium_kv::Direction::Forward, limit)).unwrap();
        found.keys.iter().map(|key| String::from_utf8(key[16..].to_vec()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&engine), ["a", "lost"]);
    let further = engine.overview().unwrap().stores[1].url.clone();
    let schema = further.rsplit('=').next().unwrap();
    // As a backup of the moment between the two.
    cluster
        .psql(&format!(
            "DELETE FROM {schema}.set_group WHERE shard = 130 AND grp = 2; DELETE FROM {schema}.kv WHERE shard = 130 AND k LIKE '%lost'; \
             UPDATE {schema}.shard SET version = 1, set_group = 1 WHERE id = 130"
        ))
        .unwrap();
    block_on(open(&url).commit(put(shard, 0, "b"))).unwrap();
    assert_eq!(engine.set_store_url("second", &further.replace("127.0.0.1", "localhost")).unwrap(), None);
    block_on(engine.places()).unwrap();
    assert_eq!(names(&engine), ["a", "b"]);
}
