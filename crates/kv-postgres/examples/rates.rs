//! How fast the engine commits and reads over one PostgreSQL, without anything above it.
//!
//! `cargo run --release -p astrarium-kv-postgres --example rates -- postgres://user@host/database [WRITERS] [SECONDS]`

use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Engine, Expectation, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, init_store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A document of 1 KB with 25 index entries and an entry of the feed.
fn document(shard: ShardId, number: u64) -> WriteBatch {
    let mut batch = WriteBatch::new(shard, 0);
    let key = shard_key(shard, &number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    batch.expect(Space::Body, key.clone(), Expectation::Absent);
    batch.put(Space::Body, key.clone(), vec![b'x'; 1024].into(), Stamp::VALUE);
    let log = [&shard_key(shard, &[])[..], &[0; 8]].concat();
    batch.put(Space::Log, log.into(), key, Stamp::key_at(9));
    for term in 0..25u64 {
        let value = (number * 31 + term).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let parts = [&shard.0.to_be_bytes()[..], b"familyof", &term.to_be_bytes(), &value.to_be_bytes()];
        batch.set.added.push(&[&parts.concat()[..], &number.to_be_bytes()].concat());
    }
    batch
}

fn rate(name: &str, writers: u64, seconds: u64, work: impl Fn(u64) + Sync) {
    let count = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (count, work) = (&count, &work);
            scope.spawn(move || {
                while began.elapsed() < Duration::from_secs(seconds) {
                    work(writer);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let rate = count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    println!("{name:<40} {rate:>10.0} /s");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let url = arguments.get(1).expect("the address of a PostgreSQL");
    let writers = arguments.get(2).map_or(64, |text| text.parse().expect("a number"));
    let seconds = arguments.get(3).map_or(5, |text| text.parse().expect("a number"));
    init_store(url).expect("the tables are made");
    let engine = Arc::new(PostgresEngine::open(url, PostgresOptions::default()).expect("the store opens"));
    let next = AtomicU64::new(u64::from(std::process::id()) << 32);
    for shards in [1, 4] {
        rate(&format!("creates, {shards} shards, {writers} writers"), writers, seconds, |writer| {
            let shard = ShardId(100 + writer % shards);
            block_on(engine.commit(document(shard, next.fetch_add(1, Ordering::Relaxed)))).expect("a commit");
        });
    }
    let (commits, groups) = (engine.stats().commits, engine.stats().groups);
    println!("{:<40} {:>10.1}", "documents in a commit group", commits as f64 / groups as f64);
    let key = shard_key(ShardId(100), b"document");
    rate("point reads", writers, seconds, |_| {
        block_on(engine.read(ShardId(100), 0, Space::Body, key.clone())).expect("a read");
    });
    rate("views with one value", writers, seconds, |_| {
        let view = block_on(engine.view(ShardId(100), 0)).expect("a view");
        block_on(view.get(Space::Body, &key)).expect("a value");
    });
    rate("views with a count of the index", writers, seconds, |_| {
        let view = block_on(engine.view(ShardId(100), 0)).expect("a view");
        let family = [&100u64.to_be_bytes()[..], b"familyof"].concat();
        block_on(view.count_keys(&family[..].try_into().expect("16 bytes"))).expect("a count");
    });
    engine.close().expect("it closes");
}
