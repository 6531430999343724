//! `astrarium store import` and `export`: an account moves from a data folder into a store, or back, as it is.
//!
//! In: a folder, a store's address. Out: a copy that was checked; the source stays as it is.
//! Nobody may write to the source meanwhile: a folder is locked, and a store with a server that is alive is refused.

use crate::columns::facts;
use crate::{engines, offline};
use anyhow::{Context as _, ensure};
use astrarium_database::{Account, Env, Transferred, transfer};
use astrarium_kv::Engine;
use astrarium_kv_postgres::{PostgresEngine, init_store};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Tables of a folder that are kept open.
const OPEN_TABLES: usize = 64;
/// Megabytes of the disk that stay free.
const RESERVE_MB: u64 = 256;

pub(crate) fn import(data: &Path, url: &str) -> anyhow::Result<ExitCode> {
    offline::must_exist(data)?;
    let source = Arc::new(engines::embedded(data, None, 0, OPEN_TABLES)?);
    init_store(url)?;
    let target = Arc::new(engines::postgres_for_command(url)?);
    check_unused(&target)?;
    copy(
        &*source,
        target,
        "the store has an account already; use an empty one (another ?schema=NAME will do)",
    )
}

pub(crate) fn export(url: &str, data: &Path) -> anyhow::Result<ExitCode> {
    let source = Arc::new(engines::postgres_for_command(url)?);
    check_unused(&source)?;
    let target = Arc::new(engines::embedded(data, None, RESERVE_MB, OPEN_TABLES)?);
    copy(&*source, target, "the folder has an account already; name a new one")
}

/// Refuses a store that a server writes to.
fn check_unused(engine: &PostgresEngine) -> anyhow::Result<()> {
    let overview = engine.overview()?;
    let alive = overview.servers.iter().find(|server| server.is_alive);
    if let Some(server) = alive {
        let name = &server.description.name;
        anyhow::bail!("server {name} uses the store, or did seconds ago; stop all servers first");
    }
    Ok(())
}

fn copy(source: &dyn Engine, target: Arc<dyn Engine>, occupied: &str) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (copied, problem_count) = runtime.block_on(async {
        ensure!(transfer::is_vacant(&*target).await?, "{occupied}");
        let told = |shard: astrarium_kv::ShardId, done: &Transferred| {
            eprintln!("shard {}: {} keys so far", shard.0, done.keys);
        };
        let copied = transfer::transfer(source, &*target, told).await.context("copy the account")?;
        let maintenance = Account::open(target, Env::system()).await?.maintenance();
        let problem_count = offline::check_containers(&maintenance, true).await?;
        maintenance.close()?;
        anyhow::Ok((copied, problem_count))
    })?;
    source.close()?;
    let Transferred { shards, keys, index_entries } = copied;
    print!(
        "{}",
        facts(&[
            ("shards", shards.to_string()),
            ("keys", keys.to_string()),
            ("index entries", index_entries.to_string()),
            ("problems", problem_count.to_string()),
        ])
    );
    Ok(if problem_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
