//! How long do small writes wait while somebody writes a document with very many index entries?
//!
//! `cargo run --release -p astrarium-kv-fjall --example large_items [large documents]` (10 by default) prints, on this engine
//! and in memory, the median, the 99th percentile and the maximum of what a small commit (a body of 1 KB, 25 keys of the
//! set) takes beside
//! - nothing,
//! - documents of 90,000 properties, each a key of a family of its own,
//! - documents of 200,000 array elements, all keys of one family,
//!
//! and where the committer's time went. Keys of the large documents are made before the clock runs, as a request does it.

use astrarium_kv::contract::block_on;
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{Engine, KeyList, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, Options};
use bytes::Bytes;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 4;

/// Makes the batch of a large document.
type Large = fn(u64) -> WriteBatch;

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(10), |count| count.parse())?;
    let kinds: [(&str, Option<Large>); 3] =
        [("nothing", None), ("90,000 properties", Some(properties)), ("200,000 elements", Some(elements))];
    for (what, large) in kinds {
        let folder = tempfile::tempdir()?;
        let engine = FjallEngine::open(folder.path(), Options::default())?;
        measure(&format!("fjall, beside {what}"), &engine, large, count);
        println!("    {:?}", engine.commit_times());
        engine.close()?;
        measure(&format!("memory, beside {what}"), &MemoryEngine::new(), large, count);
    }
    Ok(())
}

fn measure(what: &str, engine: &dyn Engine, large: Option<Large>, count: u64) {
    let is_over = AtomicBool::new(false);
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut waits = Vec::new();
                    for number in (writer..).step_by(WRITERS as usize) {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let batch = small(number);
                        let begun = Instant::now();
                        block_on(engine.commit(batch)).expect("a small commit");
                        waits.push(begun.elapsed());
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    waits
                })
            })
            .collect();
        for number in 0..count {
            if let Some(large) = large {
                let batch = large(number);
                block_on(engine.commit(batch)).expect("a large commit");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    println!("{what}: {} commits, p50 {:?}, p99 {:?}, max {:?}", waits.len(), at(0.5), at(0.99), at(1.0));
}

fn small(number: u64) -> WriteBatch {
    batch(1, number, 1000, |list| (0..25u64).for_each(|path| push(list, 1, path, number % 100, number)))
}

fn properties(number: u64) -> WriteBatch {
    batch(2, number, 1_500_000, |list| (0..90_000u64).for_each(|path| push(list, 2, path, path % 7, number)))
}

fn elements(number: u64) -> WriteBatch {
    batch(2, number, 1_500_000, |list| (0..200_000u64).for_each(|value| push(list, 2, 1, value, number)))
}

fn batch(shard: u64, number: u64, body_bytes: usize, fill: impl Fn(&mut KeyList)) -> WriteBatch {
    let mut batch = WriteBatch::new(ShardId(shard), 0);
    let mut key = vec![1];
    key.extend(shard.to_be_bytes());
    key.extend(number.to_be_bytes());
    batch.put(Space::Body, key.into(), Bytes::from(vec![b'x'; body_bytes]), Stamp::VALUE);
    let mut added = KeyList::new();
    fill(&mut added);
    batch.set.added = added.sorted();
    batch
}

fn push(list: &mut KeyList, shard: u64, path: u64, value: u64, number: u64) {
    list.push_with(|key| {
        key.extend(shard.to_be_bytes());
        key.push(1);
        // Like the first bytes of a hash of the path.
        key.extend(&path.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..7]);
        key.extend(value.to_be_bytes());
        key.extend(number.to_be_bytes());
    });
}
