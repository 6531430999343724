//! The storage engine without a server: ready-made batches, committed from as many tasks as there would be connections.

use super::{EngineOutcome, EngineRun, SHARD, Written, written};
use crate::process::{own_usage, own_usage_when_quiet};
use astrarium_kv::{Engine, Expectation, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, Options};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) fn run(run: &EngineRun) -> anyhow::Result<()> {
    let batches: Arc<[WriteBatch]> = written(run.count)?.into_iter().map(batch).collect();
    let folder = tempfile::tempdir()?;
    let engine = Arc::new(FjallEngine::open(folder.path(), Options::default())?);
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let next = Arc::new(AtomicUsize::new(0));
    let all_micros = Arc::new(Mutex::new(Vec::new()));
    let (usage, began) = (own_usage()?, Instant::now());
    let deadline = began + Duration::from_secs_f64(run.seconds);
    let tasks: Vec<_> = (0..run.submitters)
        .map(|_| {
            let (engine, batches) = (engine.clone(), batches.clone());
            let (next, all_micros) = (next.clone(), all_micros.clone());
            runtime.spawn(async move {
                let mut micros = Vec::new();
                loop {
                    let began = Instant::now();
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = batches.get(number).filter(|_| began < deadline) else { break };
                    engine.commit(batch.clone()).await?;
                    micros.push(began.elapsed().as_secs_f64() * 1e6);
                }
                all_micros.lock().map_err(|_| astrarium_kv::Error::Busy)?.extend(micros);
                Ok::<_, astrarium_kv::Error>(())
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task)??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = own_usage_when_quiet()?.since(usage).0;
    let (stats, times) = (engine.stats(), engine.commit_times());
    let mut micros = all_micros.lock().map(|mut micros| std::mem::take(&mut *micros)).unwrap_or_default();
    micros.sort_by(f64::total_cmp);
    let at = |part: f64| micros.get((micros.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let per_batch = |time: Duration| time.as_secs_f64() * 1e6 / stats.commits as f64;
    EngineOutcome {
        count: stats.commits,
        groups: stats.groups,
        seconds,
        cpu_seconds,
        p50_micros: at(0.5),
        p99_micros: at(0.99),
        prepare_micros: per_batch(times.prepare),
        write_micros: per_batch(times.write),
        publish_micros: per_batch(times.publish),
    }
    .print();
    Ok(())
}

/// The batch that a create commits.
fn batch(written: Written) -> WriteBatch {
    let mut batch = WriteBatch::new(ShardId(SHARD), 0);
    batch.expect(Space::Body, written.body.0.clone(), Expectation::Absent);
    batch.put(Space::Body, written.body.0, written.body.1, Stamp::VALUE);
    batch.put(Space::Log, written.directory.0, written.directory.1, Stamp::NONE);
    batch.put(Space::Log, written.feed.0, written.feed.1, Stamp::key_at(astrarium_keys::feed::LSN_OFFSET));
    batch
}
