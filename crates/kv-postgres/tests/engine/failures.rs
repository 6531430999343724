//! Connections that break at any moment, and stores that go away and come back.

use crate::ground::{cluster, fresh_store, open, options};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Direction, Engine, Error, KeyRange, ScanLimit, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, StoreConnections};
use astrarium_postgres_fixture::{Cluster, Installation, Proxy, Settings};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SHARD: ShardId = ShardId(4);

fn entry(name: &str) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    let key = [&shard_key(SHARD, &[])[..], &[0; 8], name.as_bytes()].concat();
    batch.put(Space::Log, key.into(), name.to_owned().into(), Stamp::key_at(9));
    batch.set.added.push(&[&SHARD.0.to_be_bytes()[..], b"familyof", name.as_bytes()].concat());
    batch
}

/// All entries: name and version.
fn entries(engine: &PostgresEngine) -> Vec<(String, u64)> {
    let view = block_on(engine.view(SHARD, 0)).expect("the store answers");
    let range = KeyRange::prefix(&shard_key(SHARD, &[]));
    let limit = ScanLimit { entry_count_max: 100_000, byte_count_max: usize::MAX };
    let found = block_on(view.scan(Space::Log, &range, Direction::Forward, limit)).expect("a scan answers");
    let version = |key: &[u8]| u64::from_be_bytes(key[9..17].try_into().expect("eight bytes"));
    let name = |value: &[u8]| String::from_utf8(value.to_vec()).expect("a name of ours");
    found.entries.iter().map(|(key, value)| (name(value), version(key))).collect()
}

/// Panics unless everything acknowledged is there once, as it was acknowledged, and nothing is there twice.
fn check(engine: &PostgresEngine, acknowledged: &BTreeMap<String, u64>) {
    let found = entries(engine);
    let mut seen = BTreeMap::new();
    for (name, version) in &found {
        assert_eq!(seen.insert(name.clone(), *version), None, "{name} is there twice");
    }
    for (name, version) in acknowledged {
        assert_eq!(seen.get(name), Some(version), "{name} was acknowledged");
    }
    let versions: Vec<u64> = found.iter().map(|(_, version)| *version).collect();
    assert_eq!(versions, (1..=found.len() as u64).collect::<Vec<_>>(), "versions have no gaps");
    let view = block_on(engine.view(SHARD, 0)).expect("the store answers");
    let family = [&SHARD.0.to_be_bytes()[..], b"familyof"].concat();
    let family: [u8; 16] = family.try_into().expect("sixteen bytes");
    assert_eq!(
        block_on(view.count_keys(&family)).expect("a count answers"),
        found.len() as u64,
        "the index has the same"
    );
}

/// Writers go on while somebody breaks things; gives what was acknowledged, and how many outcomes are unknown.
fn write_while(
    engine: &PostgresEngine,
    duration: Duration,
    mut harm: impl FnMut(u32) + Send,
) -> (BTreeMap<String, u64>, usize) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let (mut acknowledged, mut unknown) = (BTreeMap::new(), 0);
                    for number in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let name = format!("{writer}-{number}");
                        match block_on(engine.commit(entry(&name))) {
                            Ok(version) => {
                                acknowledged.insert(name, version.0);
                            }
                            Err(Error::Unavailable { .. } | Error::Busy) => {
                                unknown += 1;
                                std::thread::sleep(Duration::from_millis(5));
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    (acknowledged, unknown)
                })
            })
            .collect();
        let began = Instant::now();
        for round in 0.. {
            if began.elapsed() > duration {
                break;
            }
            harm(round);
        }
        is_over.store(true, Ordering::Relaxed);
        let mut all = (BTreeMap::new(), 0);
        for writer in writers {
            let (acknowledged, unknown) = writer.join().expect("a writer ends");
            all.0.extend(acknowledged);
            all.1 += unknown;
        }
        all
    })
}

fn until_it_answers(engine: &PostgresEngine) {
    let deadline = Instant::now() + Duration::from_mins(5);
    while block_on(engine.view(SHARD, 0)).is_err() {
        assert!(Instant::now() < deadline, "it goes on by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Connections are cut in the middle of commits, again and again: the mark decides whether one has happened.
#[test]
fn no_commit_is_lost_or_happens_twice_when_connections_break() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let proxy =
        Proxy::start(format!("127.0.0.1:{}", cluster.port()).parse().unwrap()).expect("a proxy starts");
    let through = url.replace(&format!(":{}", cluster.port()), &format!(":{}", proxy.address().port()));
    let engine = open(&through);
    let (acknowledged, _) = write_while(&engine, Duration::from_secs(4), |round| {
        std::thread::sleep(Duration::from_millis(u64::from(120 + round * 37 % 200)));
        proxy.cut();
        std::thread::sleep(Duration::from_millis(u64::from(round * 7 % 20)));
        proxy.resume();
    });
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    check(&open(&url), &acknowledged);
    until_it_answers(&engine);
    check(&engine, &acknowledged);
}

/// Backends are ended from outside, as an operator or a failover does.
#[test]
fn backends_that_are_terminated_cost_nothing() {
    let Ok(installation) = Installation::find() else { return };
    let cluster = Cluster::start(&installation, Settings::default()).expect("PostgreSQL starts");
    let engine = open(&fresh_store(&cluster));
    let (acknowledged, unknown) = write_while(&engine, Duration::from_secs(3), |_| {
        std::thread::sleep(Duration::from_millis(150));
        let ended = cluster.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'astrarium commit'",
        );
        ended.expect("psql answers");
    });
    assert!(acknowledged.len() > 10, "{} acknowledged, {unknown} unknown", acknowledged.len());
    check(&engine, &acknowledged);
}

/// The store is killed and started again: refusals come quickly, and everything goes on by itself.
#[test]
fn a_killed_store_is_refused_quickly_and_comes_back() {
    let Ok(installation) = Installation::find() else { return };
    let settings = Settings::default().durable();
    let cluster = Cluster::start(&installation, settings).expect("PostgreSQL starts");
    let url = fresh_store(&cluster);
    let engine = open(&url);
    let (mut acknowledged, _) = write_while(&engine, Duration::from_millis(700), |_| {
        std::thread::sleep(Duration::from_millis(100));
    });
    for round in 0..2 {
        cluster.kill().expect("PostgreSQL is killed");
        // What was under way may take its time; from then on nobody waits.
        let deadline = Instant::now() + Duration::from_mins(5);
        while block_on(engine.view(SHARD, 0)).is_ok() {
            assert!(Instant::now() < deadline, "the store is gone");
        }
        // None of them is answered only because the store is back.
        for _ in 0..50 {
            assert!(matches!(block_on(engine.view(SHARD, 0)).map(drop), Err(Error::Unavailable { .. })));
            let refused = block_on(engine.commit(entry(&format!("refused-{round}"))));
            assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        }
        assert!(engine.write_refusal().is_some());
        cluster.start_again().expect("PostgreSQL starts again");
        until_it_answers(&engine);
        let name = format!("after-{round}");
        acknowledged.insert(name.clone(), block_on(engine.commit(entry(&name))).expect("it takes writes").0);
    }
    check(&engine, &acknowledged);
}

/// A server that is frozen in the middle of a commit holds the shard's row; the store takes it away within seconds.
#[test]
fn a_frozen_transaction_does_not_hold_the_others() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let proxy =
        Proxy::start(format!("127.0.0.1:{}", cluster.port()).parse().unwrap()).expect("a proxy starts");
    let through = url.replace(&format!(":{}", cluster.port()), &format!(":{}", proxy.address().port()));
    let (frozen, other) = (open(&through), PostgresEngine::open(&url, options()).unwrap());
    block_on(frozen.commit(entry("before"))).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..2000 {
                if block_on(frozen.commit(entry(&format!("frozen-{number}")))).is_err() {
                    break;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        proxy.stall();
        // The proxy goes on only when it has.
        block_on(other.commit(entry("other"))).expect("the other server goes on");
        proxy.resume();
        writing.join().unwrap();
    });
    let names = entries(&other);
    assert!(names.iter().any(|(name, _)| name == "other"));
}

/// Whoever asks may go away at any moment, as clients do: nobody after him reads in his transaction.
#[test]
fn readers_that_are_given_up_leave_no_transaction_behind() {
    let Some(cluster) = cluster() else { return };
    let engine = open(&fresh_store(cluster));
    let key = [&shard_key(SHARD, &[])[..], &[0; 8], b"any"].concat();
    for number in 0..120_u32 {
        {
            let mut asked = std::pin::pin!(engine.view(SHARD, 0));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            for _ in 0..=number % 4 {
                if asked.as_mut().poll(&mut context).is_ready() {
                    break;
                }
                std::thread::sleep(Duration::from_micros(u64::from(number % 7) * 100));
            }
        }
        let version = block_on(engine.commit(entry(&number.to_string()))).expect("a commit succeeds").0;
        for _ in 0..3 {
            let read = block_on(engine.read(SHARD, 0, Space::Log, key.clone().into()));
            assert_eq!(read.expect("a read answers").0.version, version, "a read after {number} commits");
        }
        let view = block_on(engine.view(SHARD, 0)).expect("a view is given");
        assert_eq!(view.state().version, version, "a view after {number} commits");
    }
}

/// Readers of many shards do not wait for each other, however few connections there are.
#[test]
fn readers_of_many_shards_do_not_block_each_other() {
    let Some(cluster) = cluster() else { return };
    let connections = StoreConnections { readers: 3, ..StoreConnections::default() };
    let options = PostgresOptions { connections, ..options() };
    let engine = PostgresEngine::open(&fresh_store(cluster), options).expect("the store opens");
    let wanted: Vec<(ShardId, u64)> = (4..14).map(|number| (ShardId(number), 0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let views = engine.views(&wanted).expect("this engine gives several at once");
                    let views = block_on(views).expect("views are given");
                    let shards: Vec<_> = views.iter().map(|view| (view.shard(), 0)).collect();
                    assert_eq!(shards, wanted);
                    let state = block_on(engine.shard(ShardId(4))).expect("beside views, counters are told");
                    assert_eq!(state.version, 0);
                }
            });
        }
    });
}

/// A key that no index entry of the store can hold costs its own writer an error, at once, and nobody else anything.
#[test]
fn a_key_that_is_too_long_is_refused_alone() {
    let Some(cluster) = cluster() else { return };
    let engine = open(&fresh_store(cluster));
    block_on(engine.commit(entry("first"))).unwrap();
    let mut long = WriteBatch::new(SHARD, 0);
    let mut state = 7_u64;
    // Nothing that could be compressed.
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(4000)
    .collect();
    long.put(Space::Body, shard_key(SHARD, &bytes), vec![1].into(), Stamp::NONE);
    let replies: Vec<_> = (0..20)
        .map(|number| match number {
            10 => engine.commit(long.clone()),
            _ => engine.commit(entry(&number.to_string())),
        })
        .collect();
    for (number, reply) in replies.into_iter().enumerate() {
        let outcome = block_on(reply);
        let is_right =
            if number == 10 { matches!(outcome, Err(Error::KeyTooLong { .. })) } else { outcome.is_ok() };
        assert!(is_right, "{number}: {outcome:?}");
    }
}

/// While the standby does not answer nothing is acknowledged: not by a timeout of the role, not after somebody has ended the wait, and not
/// because the mark is found afterwards.
#[test]
fn nothing_is_acknowledged_without_the_standby() {
    let Ok(installation) = Installation::find() else { return };
    let primary = Cluster::start(&installation, Settings::default()).expect("PostgreSQL starts");
    primary.psql("ALTER ROLE ALL SET statement_timeout = '500ms'").unwrap();
    let engine = open(&fresh_store(&primary));
    block_on(engine.commit(entry("before"))).unwrap();
    let standby = primary.standby().expect("a standby starts");
    primary.make_synchronous(standby.name()).unwrap();
    block_on(engine.commit(entry("with"))).unwrap();
    standby.freeze().unwrap();
    let waiting = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| {
            let outcome = block_on(engine.commit(entry("waiting")));
            waiting.store(false, Ordering::SeqCst);
            outcome
        });
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'astrarium commit' AND wait_event = 'SyncRep'";
            primary.psql(&format!("SET synchronous_commit = local; {cancel}")).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            assert!(waiting.load(Ordering::SeqCst), "acknowledged without the standby");
        }
        standby.thaw();
        let outcome = commit.join().unwrap();
        assert!(outcome.is_ok(), "{outcome:?}");
    });
    let names: Vec<_> = entries(&engine).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["before", "with", "waiting"]);
}
