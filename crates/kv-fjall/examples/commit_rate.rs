//! How fast does the engine commit and read, beside bare fjall doing the same?
//!
//! `cargo run --release -p astrarium-kv-fjall --example commit_rate [batches]` (20,000 by default) prints
//! - commits of one document (a body of 1 KB and two small keys, one expectation that the body is absent) with 1, 16
//!   and 64 submitters: batches a second, groups, the mean size of a group, what a batch costs the committer thread
//!   (checking; inside fjall; answering), and the same keys written by bare fjall in groups of that size;
//! - point reads from the cache: a snapshot and a get, beside a get of bare fjall;
//! - opening a folder after a kill, with as much journal as the run left, and after closing.
//!
//! Everything goes to a temporary folder on the disk of the system's folder for such (`TMPDIR` chooses another): on a
//! file system in memory, syncs cost nothing and the numbers say little.

use astrarium_kv::contract::{self, block_on};
use astrarium_kv::{Engine, Expectation, Mutation, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, Options};
use bytes::Bytes;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BODY_BYTES: usize = 1000;
const READS: u32 = 1_000_000;
const DOCUMENTS_READ: u64 = 10_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let count = std::env::args().nth(1).map_or(Ok(20_000), |count| count.parse())?;
    println!(
        "submitters  batches/s  groups  batches/group  check us  fjall us  answer us  bare batches/s  ratio"
    );
    for (submitters, batches) in [(1, count / 8), (16, count), (64, count)] {
        commits(submitters, batches)?;
    }
    let folder = tempfile::tempdir()?;
    reads(folder.path())?;
    opening(folder.path(), count * 2)
}

fn commits(submitters: u64, batches: u64) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let engine = Arc::new(FjallEngine::open(folder.path(), Options::default())?);
    let seconds = submit(&engine, submitters, batches)?;
    let (stats, times) = (engine.stats(), engine.commit_times());
    engine.close()?;
    let group_size = stats.commits as f64 / stats.groups as f64;
    let bare_seconds = bare(group_size.round() as u64, batches)?;
    let per_batch = |time: std::time::Duration| time.as_secs_f64() * 1e6 / batches as f64;
    println!(
        "{submitters:10} {:10.0} {:7} {group_size:14.1} {:9.2} {:9.2} {:10.2} {:15.0} {:6.2}",
        batches as f64 / seconds,
        stats.groups,
        per_batch(times.prepare),
        per_batch(times.write),
        per_batch(times.publish),
        batches as f64 / bare_seconds,
        bare_seconds / seconds,
    );
    Ok(())
}

/// Commits batches from as many tasks at once, each waiting for its answer; gives the seconds.
fn submit(engine: &Arc<FjallEngine>, submitters: u64, batches: u64) -> Outcome<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let shares: Vec<Vec<_>> = (0..submitters)
        .map(|submitter| (submitter..batches).step_by(submitters as usize).map(batch).collect())
        .collect();
    let begun = Instant::now();
    let tasks: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let engine = Arc::clone(engine);
            runtime.spawn(async move {
                for batch in share {
                    engine.commit(batch).await?;
                }
                Ok::<_, astrarium_kv::Error>(())
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task)??;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// The same keys and values by bare fjall, in groups of this size, each synced.
fn bare(group_size: u64, batches: u64) -> Outcome<f64> {
    let folder = tempfile::tempdir()?;
    let database = Database::builder(folder.path()).open()?;
    let memtable =
        |megabytes: u64| move || KeyspaceCreateOptions::default().max_memtable_size(megabytes << 20);
    let (body, log) = (database.keyspace("body", memtable(16))?, database.keyspace("log", memtable(8))?);
    let batches: Vec<_> = (0..batches).map(batch).collect();
    let mut batches = batches.into_iter().peekable();
    let begun = Instant::now();
    while batches.peek().is_some() {
        let mut group = database.batch().durability(Some(PersistMode::SyncData));
        for batch in batches.by_ref().take(group_size as usize) {
            for mutation in batch.mutations {
                if let Mutation::Put { space, key, value, .. } = mutation {
                    group.insert(if space == Space::Body { &body } else { &log }, key, value);
                }
            }
        }
        group.commit()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn reads(folder: &Path) -> Outcome<()> {
    let engine = FjallEngine::open(folder, Options::default())?;
    let documents: Vec<_> = (0..DOCUMENTS_READ).map(batch).collect();
    for batches in documents.chunks(1000) {
        let waiting: Vec<_> = batches.iter().map(|batch| engine.commit(batch.clone())).collect();
        for reply in waiting {
            block_on(reply)?;
        }
    }
    let keys: Vec<_> = (0..DOCUMENTS_READ).map(document_key).collect();
    measure_reads("memtable", &engine, &keys)?;
    engine.close()?;
    let engine = FjallEngine::open(folder, Options::default())?;
    measure_reads("tables, all blocks cached", &engine, &keys)?;
    engine.close()?;
    let database = Database::builder(folder.join("engine")).cache_size(64 << 20).open()?;
    let body = database.keyspace("body", KeyspaceCreateOptions::default)?;
    let get = |key: &Bytes| body.get(key).map(|value| assert!(value.is_some()));
    repeat("bare fjall, get", &keys, get)?;
    Ok(())
}

fn measure_reads(what: &str, engine: &FjallEngine, keys: &[Bytes]) -> Outcome<()> {
    let get = |key: &Bytes| {
        let shard = contract::shard_of(Some(Space::Body), key).unwrap_or(ShardId(0));
        let value = block_on(block_on(engine.view(shard, 0))?.get(Space::Body, key));
        value.map(|value| assert!(value.is_some()))
    };
    repeat(&format!("{what}: view"), keys, |_| block_on(engine.view(ShardId(0), 0)).map(drop))?;
    repeat(&format!("{what}: view and get"), keys, get)
}

fn repeat<E: Error + 'static>(
    what: &str,
    keys: &[Bytes],
    read: impl Fn(&Bytes) -> Result<(), E>,
) -> Outcome<()> {
    for key in keys {
        read(key)?;
    }
    let begun = Instant::now();
    for number in 0..READS {
        read(&keys[number.wrapping_mul(2_654_435_761) as usize % keys.len()])?;
    }
    println!("{what}: {:.2} us", begun.elapsed().as_secs_f64() * 1e6 / f64::from(READS));
    Ok(())
}

fn opening(folder: &Path, batches: u64) -> Outcome<()> {
    let engine = Arc::new(FjallEngine::open(folder, Options::default())?);
    let mut waiting = Vec::new();
    for number in DOCUMENTS_READ..DOCUMENTS_READ + batches {
        waiting.push(engine.commit(batch(number)));
        if waiting.len() == 64 {
            for reply in waiting.drain(..) {
                block_on(reply)?;
            }
        }
    }
    for reply in waiting {
        block_on(reply)?;
    }
    drop(engine);
    let journals = journal_bytes(&folder.join("engine"))?;
    for what in ["after a kill", "after closing"] {
        let begun = Instant::now();
        let engine = FjallEngine::open(folder, Options::default())?;
        println!("opening {what}: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
        engine.close()?;
    }
    println!("(journals at the kill, with preallocated zeros: {:.0} MB)", journals as f64 / 1e6);
    Ok(())
}

fn journal_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "jnl") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn batch(number: u64) -> WriteBatch {
    let mut batch = WriteBatch::new(ShardId(number % 4), 0);
    batch.expect(Space::Body, document_key(number), Expectation::Absent);
    batch.put(Space::Body, document_key(number), Bytes::from(document(number)), Stamp::VALUE);
    batch.put(Space::Log, log_key(number), Bytes::from(vec![0; 24]), Stamp::key_at(9));
    batch.put(Space::Log, number_key(number), Bytes::from(vec![0; 16]), Stamp::NONE);
    batch
}

/// Spread like the hash of a partition key.
fn document_key(number: u64) -> Bytes {
    let mut key = vec![b'd'];
    key.extend((number % 4).to_be_bytes());
    key.extend(number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key.extend(number.to_be_bytes());
    key.into()
}

fn log_key(number: u64) -> Bytes {
    let mut key = vec![b'l'];
    key.extend((number % 4).to_be_bytes());
    key.extend(number.to_be_bytes());
    key.into()
}

fn number_key(number: u64) -> Bytes {
    let mut key = vec![b'n'];
    key.extend((number % 4).to_be_bytes());
    key.extend(number.to_be_bytes());
    key.into()
}

/// Text that compresses about as well as JSON does.
fn document(number: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(BODY_BYTES + 40);
    let mut random = number;
    text.extend([0; 8]);
    while text.len() < BODY_BYTES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.extend(format!("\"property{}\":\"{random:016x}\",", text.len() % 20).bytes());
    }
    text.truncate(BODY_BYTES);
    text
}
