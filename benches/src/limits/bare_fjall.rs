//! fjall without our engine: one thread writes the same keys in synced batches of a given size, checking nothing.

use super::{EngineOutcome, EngineRun, written};
use crate::process::{own_usage, own_usage_when_quiet};
use fjall::config::{BlockSizePolicy, CompressionPolicy, HashRatioPolicy};
use fjall::{CompressionType, Database, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Slice};
use std::time::Instant;

pub(crate) fn run(run: &EngineRun) -> anyhow::Result<()> {
    let items = written(run.count)?;
    let folder = tempfile::tempdir()?;
    let database = Database::builder(folder.path())
        .cache_size(64 << 20)
        .journal_compression(CompressionType::None)
        .max_journaling_size(64 << 20)
        .open()?;
    // The same shapes as our engine gives its spaces, so that only our own work makes the difference.
    let body = database.keyspace("body", || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(16 << 20)
            .data_block_size_policy(BlockSizePolicy::all(8 << 10))
            .data_block_hash_ratio_policy(HashRatioPolicy::all(0.75))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
    })?;
    let log = database.keyspace("log", || KeyspaceCreateOptions::default().max_memtable_size(8 << 20))?;
    let (usage, began) = (own_usage()?, Instant::now());
    let mut outcome =
        EngineOutcome { p50_micros: f64::NAN, p99_micros: f64::NAN, ..EngineOutcome::default() };
    for group in items.chunks(run.group_size) {
        if began.elapsed().as_secs_f64() > run.seconds {
            break;
        }
        let mut batch = OwnedWriteBatch::with_capacity(database.clone(), group.len() * 3);
        for item in group {
            for (keyspace, (key, value)) in [(&body, &item.body), (&log, &item.directory), (&log, &item.feed)]
            {
                batch.insert(keyspace, Slice::from(key.clone()), Slice::from(value.clone()));
            }
        }
        batch.durability(Some(PersistMode::SyncData)).commit()?;
        outcome.count += group.len() as u64;
        outcome.groups += 1;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = own_usage_when_quiet()?.since(usage).0;
    outcome.print();
    Ok(())
}
