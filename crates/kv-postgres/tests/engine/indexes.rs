//! The index as rows: merged by whoever has the lease, read by all, damaged without harm.

use crate::ground::{cluster, fresh_store, open, options};
use astrarium_kv::contract::{META_SHARD, block_on};
use astrarium_kv::{Direction, Engine, Error, KeyRange, ScanLimit, ShardId, View, WriteBatch};
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SHARD: ShardId = ShardId(6);
const NO_LIMIT: ScanLimit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };

fn key(number: u64) -> Vec<u8> {
    // Scattered, so that every merge mixes old and new.
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [&SHARD.0.to_be_bytes()[..], b"familyof", &scattered.to_be_bytes()].concat()
}

fn change(added: impl Iterator<Item = u64>, removed: impl Iterator<Item = u64>) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    added.for_each(|number| batch.set.added.push(&key(number)));
    removed.for_each(|number| batch.set.removed.push(&key(number)));
    batch
}

fn keys(view: &dyn View) -> Result<BTreeSet<Vec<u8>>, Error> {
    let range = KeyRange::prefix(&SHARD.0.to_be_bytes());
    let found = block_on(view.scan_keys(&range, Direction::Forward, NO_LIMIT))?;
    Ok(found.keys.iter().map(<[u8]>::to_vec).collect())
}

/// Readers of two servers see the same before, while and after blocks become runs and runs are merged; old views stay as they were.
#[test]
fn merges_change_nothing_that_is_seen() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let (writer, reader) = (open(&url), open(&url));
    let mut expected = BTreeSet::new();
    let mut old = None;
    for round in 0..12u64 {
        let added = round * 300..(round + 1) * 300;
        let removed =
            (0..round * 300).filter(|number| number % 17 == round && expected.contains(&key(*number)));
        let removed: Vec<u64> = removed.collect();
        block_on(writer.commit(change(added.clone(), removed.iter().copied()))).unwrap();
        for number in &removed {
            assert!(expected.remove(&key(*number)));
        }
        expected.extend(added.map(key));
        if round == 5 {
            old = Some((block_on(reader.view(SHARD, 0)).unwrap(), expected.clone()));
        }
        if round % 3 == 2 {
            // In turn by both servers: the lease goes with the work.
            (if round % 2 == 0 { &writer } else { &reader }).merge_now(SHARD).unwrap();
        }
        for server in [&writer, &reader] {
            let view = block_on(server.view(SHARD, 0)).unwrap();
            assert_eq!(keys(&*view).unwrap(), expected, "round {round}");
            let family: [u8; 16] = key(0)[..16].try_into().unwrap();
            assert_eq!(block_on(view.count_keys(&family)).unwrap(), expected.len() as u64);
        }
    }
    let (view, expected) = old.unwrap();
    assert_eq!(keys(&*view).unwrap(), expected, "a view from before the merges");
    let fresh = open(&url);
    assert!(!keys(&*block_on(fresh.view(SHARD, 0)).unwrap()).unwrap().is_empty());
}

/// What another server merges while this one has the lease changes nothing.
#[test]
fn a_merge_that_lost_its_lease_changes_nothing() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let engine = open(&url);
    block_on(engine.commit(change(0..100, 0..0))).unwrap();
    engine.merge_now(SHARD).unwrap();
    block_on(engine.commit(change(100..200, 0..0))).unwrap();
    let manifest = || cluster.psql(&format!("SELECT number FROM {schema}.set_manifest")).unwrap();
    let before = manifest();
    // Somebody else has it, and has not given it back.
    cluster
        .psql(&format!("UPDATE {schema}.set_manifest SET fence = fence + 1, holder = 1, expires = now() + interval '1 hour'"))
        .unwrap();
    engine.merge_now(SHARD).unwrap();
    assert_eq!(manifest(), before, "who has no lease merges nothing");
    let view = block_on(engine.view(SHARD, 0)).unwrap();
    assert_eq!(keys(&*view).unwrap().len(), 200);
}

/// A damaged row costs its shard the index until it is accepted; nobody is given what is left for the whole.
#[test]
fn damage_is_noticed_and_can_be_accepted() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let writer = open(&url);
    block_on(writer.commit(change(0..5000, 0..0))).unwrap();
    writer.merge_now(SHARD).unwrap();
    drop(writer);
    let damage = format!(
        "UPDATE {schema}.set_blob SET bytes = overlay(bytes placing '\\xDEADBEEF'::bytea from 100) WHERE n = 0"
    );
    cluster.psql(&damage).unwrap();
    let engine = open(&url);
    let answer = keys(&*block_on(engine.view(SHARD, 0)).unwrap());
    assert!(matches!(answer, Err(Error::SetLost { .. })), "{answer:?}");
    let deadline = Instant::now() + Duration::from_mins(5);
    let count = || cluster.psql(&format!("SELECT count(*) FROM {schema}.shard WHERE set_is_lost")).unwrap();
    while count().trim() != "1" {
        assert!(Instant::now() < deadline, "the loss is written down");
        std::thread::sleep(Duration::from_millis(20));
    }
    let losses = engine.set_losses();
    assert_eq!(losses.len(), 1);
    // What is added meanwhile is kept.
    block_on(engine.commit(change(9000..9010, 0..0))).unwrap();
    let answer = keys(&*block_on(engine.view(SHARD, 0)).unwrap());
    assert!(matches!(answer, Err(Error::SetLost { .. })), "{answer:?}");
    engine.accept_set_losses(&losses).unwrap();
    assert_eq!(engine.set_losses(), []);
    let found = keys(&*block_on(engine.view(SHARD, 0)).unwrap()).unwrap();
    assert_eq!(found, (9000..9010).map(key).collect::<BTreeSet<_>>());
}

/// A reader who comes back long after its runs were replaced gets an error or the right answer, and the index is not given up.
#[test]
fn a_reader_of_replaced_runs_gives_nobody_damage() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let (writer, reader) = (open(&url), open(&url));
    block_on(writer.commit(change(0..3000, 0..0))).unwrap();
    writer.merge_now(SHARD).unwrap();
    let late = block_on(reader.view(SHARD, 0)).unwrap();
    block_on(writer.commit(change(3000..6000, 0..3000))).unwrap();
    writer.merge_now(SHARD).unwrap();
    cluster
        .psql(&format!("DELETE FROM {schema}.set_blob b USING {schema}.set_garbage g WHERE b.shard = g.shard AND b.number = g.number"))
        .unwrap();
    match keys(&*late) {
        Ok(found) => assert_eq!(found.len(), 3000),
        Err(Error::SetLost { .. } | Error::Unavailable { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    drop(late);
    let deadline = Instant::now() + Duration::from_mins(5);
    while !reader.set_losses().is_empty() {
        assert!(Instant::now() < deadline, "the suspicion passes");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(keys(&*block_on(reader.view(SHARD, 0)).unwrap()).unwrap().len(), 3000);
}

/// A server that only writes merges what it writes, too.
#[test]
fn blocks_are_merged_without_a_reader() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let writer = open(&url);
    for round in 0..14u64 {
        block_on(writer.commit(change(round * 10_000..(round + 1) * 10_000, 0..0))).unwrap();
    }
    let runs = || cluster.psql(&format!("SELECT count(*) FROM {schema}.set_blob")).unwrap();
    let deadline = Instant::now() + Duration::from_mins(5);
    while runs().trim() == "0" {
        assert!(Instant::now() < deadline, "a run is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(keys(&*block_on(writer.view(SHARD, 0)).unwrap()).unwrap().len(), 140_000);
}

/// A shard that is dropped while a part of its index is still to be given back leaves nothing, and nothing is called damaged.
#[test]
fn what_goes_with_its_shard_is_not_made_anew() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.rsplit_once('=').unwrap().1;
    let engine = open(&url);
    block_on(engine.commit(change(0..300, 0..0))).unwrap();
    let mut replaced = WriteBatch::new(SHARD, 0);
    replaced.drop_prefix(None, key(0)[..16].to_vec().into());
    block_on(engine.commit(replaced)).unwrap();
    let mut dropped = WriteBatch::new(META_SHARD, 0);
    dropped.drop_shard(SHARD);
    dropped.drop_prefix(None, SHARD.0.to_be_bytes().to_vec().into());
    block_on(engine.commit(dropped)).unwrap();
    assert_eq!(block_on(engine.unreclaimed()).unwrap().len(), 2);
    engine.reclaim_now().unwrap();
    assert_eq!(block_on(engine.unreclaimed()).unwrap(), []);
    for table in ["set_manifest", "set_group", "set_blob"] {
        let left = cluster.psql(&format!("SELECT count(*) FROM {schema}.{table} WHERE shard = {}", SHARD.0));
        assert_eq!(left.unwrap().trim(), "0", "{table}");
    }
}

/// What a killed merge left is never taken for what a later one wrote, nor the other way round.
#[test]
fn what_a_killed_merge_left_does_no_harm() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let options = PostgresOptions { replaced_blobs_kept: Duration::ZERO, ..options() };
    let engine = PostgresEngine::open(&url, options).unwrap();
    for round in 0..4 {
        block_on(engine.commit(change(round * 1000..(round + 1) * 1000, 0..0))).unwrap();
        engine.merge_now(SHARD).unwrap();
        // Rows of the runs that would come next, of a merge that ended before its manifest.
        let left = format!(
            "INSERT INTO {schema}.set_blob SELECT {}, m.number + i, n, '\\xDEADBEEF' FROM \
             (SELECT max(number) AS number FROM {schema}.set_blob) m, generate_series(1, 3) i, generate_series(0, 40) n",
            SHARD.0
        );
        cluster.psql(&left).unwrap();
    }
    block_on(engine.commit(change(4000..5000, 0..0))).unwrap();
    engine.merge_now(SHARD).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    engine.reclaim_now().unwrap();
    assert_eq!(engine.set_losses(), []);
    let fresh = open(&url);
    assert_eq!(keys(&*block_on(fresh.view(SHARD, 0)).unwrap()).unwrap().len(), 5000);
}

/// What one server has had built anew is lost for no other one; and a loss that came later is not accepted with the first.
#[test]
fn losses_are_accepted_one_by_one_and_by_all() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let quick = || PostgresOptions { reclaim_interval: Duration::from_millis(50), ..options() };
    let writer = open(&url);
    block_on(writer.commit(change(0..5000, 0..0))).unwrap();
    writer.merge_now(SHARD).unwrap();
    let damage = format!(
        "UPDATE {schema}.set_blob SET bytes = overlay(bytes placing '\\xDEADBEEF'::bytea from 100) WHERE n = 0"
    );
    cluster.psql(&damage).unwrap();
    let (one, other) = (open(&url), PostgresEngine::open(&url, quick()).unwrap());
    keys(&*block_on(one.view(SHARD, 0)).unwrap()).unwrap_err();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_mins(5);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("the other one hears of it", &|| !other.set_losses().is_empty());
    let losses = one.set_losses();
    // Another loss comes: what was begun since the first relies on it.
    cluster.psql(&format!("UPDATE {schema}.set_manifest SET number = number + 1; UPDATE {schema}.shard SET manifest = manifest + 1")).unwrap();
    one.accept_set_losses(&losses).unwrap();
    assert_eq!(one.set_losses().len(), 1, "it stays lost");
    one.accept_set_losses(&losses).unwrap();
    assert_eq!(one.set_losses(), []);
    until("the other one hears of that too", &|| other.set_losses().is_empty());
}
