//! Which engine holds the data, and with what settings.

use crate::machine;
use anyhow::Context as _;
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv_fjall::{FjallEngine, Options};
use astrarium_kv_postgres::PostgresEngine;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A throw-away store.
pub(crate) fn memory() -> Arc<dyn Engine> {
    Arc::new(MemoryEngine::exclusive())
}

/// The embedded store of a data folder.
pub(crate) fn embedded(
    folder: &Path,
    cache_mb: Option<u64>,
    reserve_mb: u64,
    open_tables_max: usize,
) -> anyhow::Result<FjallEngine> {
    let eighth = machine::memory_bytes() / 8;
    let cache_bytes = cache_mb.map_or(eighth.clamp(16 << 20, 1 << 30), |megabytes| megabytes << 20);
    let options = Options {
        cache_bytes,
        open_tables_max,
        free_space_reserve_bytes: reserve_mb << 20,
        free_space: Some(Arc::new(machine::free_disk_bytes)),
        ..Options::default()
    };
    Ok(FjallEngine::open(folder, options)?)
}

/// The store at an address for a command that looks at it or changes its list of stores: not a server's, so space is left to servers
/// to give back.
pub(crate) fn postgres_for_command(url: &str) -> anyhow::Result<PostgresEngine> {
    let options = astrarium_kv_postgres::PostgresOptions {
        reclaim_interval: Duration::from_hours(1),
        ..astrarium_kv_postgres::PostgresOptions::default()
    };
    PostgresEngine::open(url, options).context("open the store that --store (ASTRARIUM_STORE) names")
}

/// The store at an address, shared with other servers.
pub(crate) fn postgres(url: &str, cache_mb: u64) -> anyhow::Result<PostgresEngine> {
    let options = astrarium_kv_postgres::PostgresOptions {
        cache_bytes: cache_mb << 20,
        ..astrarium_kv_postgres::PostgresOptions::default()
    };
    PostgresEngine::open(url, options).context("open the store that --store (ASTRARIUM_STORE) names")
}
