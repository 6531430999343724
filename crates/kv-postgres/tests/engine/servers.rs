//! Several engines over one store, as several servers have them.

use crate::ground::{cluster, fresh_store, open, options};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{CommitVersion, Engine, Error, Expectation, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, ServerDescription};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn join(engine: &PostgresEngine, name: &str) {
    let description = ServerDescription { name: name.to_owned(), ..ServerDescription::default() };
    engine.join(description, Some(SocketAddr::from(([127, 0, 0, 1], 0)))).expect("a server joins");
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(5);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log(shard: ShardId, text: &str) -> WriteBatch {
    let mut batch = WriteBatch::new(shard, 0);
    let key = [&shard_key(shard, &[])[..], &[0; 8], text.as_bytes()].concat();
    batch.put(Space::Log, key.into(), text.to_owned().into(), Stamp::key_at(9));
    batch.set.added.push(&[&shard.0.to_be_bytes()[..], b"familyof", text.as_bytes()].concat());
    batch
}

/// Writers of two servers meet in the commit groups of each shard's owner; versions have no gaps, and both see everything.
#[test]
fn batches_go_to_the_owner_of_their_shard() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let engines = [open(&url), open(&url)].map(Arc::new);
    join(&engines[0], "one");
    join(&engines[1], "two");
    until("both know of each other", || engines.iter().all(|engine| engine.alive().len() == 2));
    let shards: Vec<ShardId> = (1..=8).map(ShardId).collect();
    let owners: Vec<_> = shards.iter().map(|shard| engines[0].owner(*shard).unwrap().id).collect();
    let other_view: Vec<_> = shards.iter().map(|shard| engines[1].owner(*shard).unwrap().id).collect();
    assert_eq!(owners, other_view, "all agree who owns what");
    std::thread::scope(|scope| {
        for (number, engine) in engines.iter().enumerate() {
            let shards = &shards;
            scope.spawn(move || {
                for round in 0..25 {
                    let replies: Vec<_> = shards
                        .iter()
                        .map(|shard| engine.commit(log(*shard, &format!("{number}-{round}"))))
                        .collect();
                    for reply in replies {
                        block_on(reply).expect("nothing is in the way");
                    }
                }
            });
        }
    });
    for engine in &engines {
        let (sent, received) = engine.forwarded();
        assert!(sent > 0 && received > 0, "{sent} sent, {received} received");
        for shard in &shards {
            let view = block_on(engine.view(*shard, 0)).unwrap();
            assert_eq!(view.state().version, 50);
            let range = astrarium_kv::KeyRange::prefix(&shard_key(*shard, &[]));
            let limit = astrarium_kv::ScanLimit { entry_count_max: 1000, byte_count_max: usize::MAX };
            let direction = astrarium_kv::Direction::Forward;
            let entries = block_on(view.scan(Space::Log, &range, direction, limit)).unwrap().entries;
            let versions: Vec<u64> =
                entries.iter().map(|(key, _)| u64::from_be_bytes(key[9..17].try_into().unwrap())).collect();
            assert_eq!(versions, (1..=50).collect::<Vec<u64>>());
            let family: [u8; 16] = [&shard.0.to_be_bytes()[..], b"familyof"].concat().try_into().unwrap();
            assert_eq!(block_on(view.count_keys(&family)).unwrap(), 50, "the index has what both wrote");
        }
    }
    // A server that leaves is followed at once by the others, also for its shards.
    engines[0].close().unwrap();
    until("the other one is alone", || engines[1].alive().len() == 1);
    for shard in &shards {
        assert_eq!(block_on(engines[1].commit(log(*shard, "after"))).unwrap(), CommitVersion(51));
    }
    engines[1].close().unwrap();
}

/// One server hears of what another one commits, fences and drops.
#[test]
fn watches_end_when_another_server_commits() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let (here, there) = (open(&url), open(&url));
    let shard = ShardId(5);
    block_on(there.commit(log(shard, "first"))).unwrap();
    std::thread::scope(|scope| {
        let watch = here.watch(shard, 0, 1);
        let waiting = scope.spawn(|| block_on(watch));
        block_on(there.commit(log(shard, "second"))).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), CommitVersion(2));
        let fenced = here.watch(shard, 0, 10);
        let waiting = scope.spawn(|| block_on(fenced));
        let mut fence = WriteBatch::new(ShardId(0), 0);
        fence.fence(shard);
        block_on(there.commit(fence)).unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Fenced { current: 1, .. })));
    });
    let answer = block_on(here.view(shard, 0)).map(drop);
    assert!(matches!(answer, Err(Error::Fenced { current: 1, .. })), "{answer:?}");
}

/// However many servers try, of those who expect the same one succeeds.
#[test]
fn one_of_several_servers_wins() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let engines: Vec<_> = (0..3).map(|_| open(&url)).collect();
    let shard = ShardId(3);
    for round in 0..20u64 {
        let outcomes: Vec<bool> = std::thread::scope(|scope| {
            let tries: Vec<_> = engines
                .iter()
                .map(|engine| {
                    scope.spawn(move || {
                        let mut batch = WriteBatch::new(shard, 0);
                        let key = shard_key(shard, b"document");
                        let expected =
                            if round == 0 { Expectation::Absent } else { Expectation::Version(round) };
                        batch.expect(Space::Body, key.clone(), expected);
                        batch.put(Space::Body, key, vec![0; 8].into(), Stamp::VALUE);
                        match block_on(engine.commit(batch)) {
                            Ok(_) => true,
                            Err(Error::Conflict { .. }) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|is_won| **is_won).count(), 1, "round {round}");
    }
}

/// While servers are replaced one by one, those of another protocol are not sent what they would not understand.
#[test]
fn servers_of_different_protocols_commit_for_themselves() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let newer = PostgresOptions { peer_protocol: u64::MAX, ..options() };
    let engines = [open(&url), PostgresEngine::open(&url, newer).expect("the store opens")];
    join(&engines[0], "old");
    join(&engines[1], "new");
    until("both know of each other", || engines.iter().all(|engine| engine.alive().len() == 2));
    for shard in (1..=8).map(ShardId) {
        for (number, engine) in engines.iter().enumerate() {
            let version =
                block_on(engine.commit(log(shard, &number.to_string()))).expect("nothing is in the way");
            assert_eq!(version, CommitVersion(number as u64 + 1));
        }
    }
    assert_eq!(engines.map(|engine| engine.forwarded()), [(0, 0), (0, 0)]);
}
