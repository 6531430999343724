//! The page at `/metrics`, in the OpenMetrics text form: what was counted, and what storage, scripts, background work and
//! the process say at the moment.
//!
//! The page needs no signature, so it names no database and no container.

use super::{Metrics, process};
use crate::cluster::{Cluster, Measures};
use crate::database::{
    BackgroundStatistics, Health, Memory, MonitoringHandle, ScriptStatistics, WorkerUsage,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

impl Metrics {
    /// The whole page.
    pub(crate) fn page(&self, account: MonitoringHandle<'_>, servers: Option<&dyn Cluster>) -> String {
        let mut text = String::new();
        let registries = [
            storage(&account.health()),
            background(&account.background_statistics()),
            scripts(account.script_statistics()),
            work(account.worker_usage(), account.memory()),
            cluster(servers),
            process::registry(),
        ];
        for registry in std::iter::once(&self.registry).chain(&registries) {
            // Each registry ends the page as if it were the last.
            text.truncate(text.rfind("# EOF").unwrap_or(text.len()));
            // Writing to a string cannot fail.
            let _ = encode(&mut text, registry);
        }
        text
    }
}

/// What the program is and since when it runs.
pub(super) fn register_build(registry: &mut Registry, started_seconds: u64) {
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "Version of the server", version);
    let started = ConstGauge::new(started_seconds.cast_signed());
    registry.register("start_time_seconds", "When the server started, in seconds since 1970", started);
}

fn gauge(value: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

fn storage(health: &Health) -> Registry {
    let mut storage = Registry::with_prefix("astrarium_storage");
    let stats = &health.stats;
    storage.register("commits", "Transactions committed", ConstCounter::new(stats.commits));
    storage.register("conflicts", "Transactions refused by a conflict", ConstCounter::new(stats.conflicts));
    storage.register("groups", "Groups written, one sync each", ConstCounter::new(stats.groups));
    storage.register("queued", "Transactions waiting", ConstGauge::new(stats.queued.cast_signed()));
    storage.register("disk_bytes", "Bytes on disk", ConstGauge::new(stats.disk_bytes.cast_signed()));
    let writable = i64::from(health.write_refusal.is_none());
    storage.register("writable", "1 while writes are taken", ConstGauge::new(writable));
    let index_lost = i64::try_from(health.index_losses.len()).unwrap_or(i64::MAX);
    storage.register(
        "index_lost",
        "Damaged parts of the index that are not being built anew yet",
        ConstGauge::new(index_lost),
    );
    let damages = i64::try_from(health.damage.len()).unwrap_or(i64::MAX);
    storage.register("damages", "Damaged places in stored files", ConstGauge::new(damages));
    storage
}

fn cluster(servers: Option<&dyn Cluster>) -> Registry {
    let mut registry = Registry::with_prefix("astrarium");
    if let Some(servers) = servers {
        registry.register_collector(Box::new(Measures(servers.measures())));
    }
    registry
}

fn background(work: &BackgroundStatistics) -> Registry {
    let mut registry = Registry::with_prefix("astrarium");
    registry.register("index_builds_running", "Indexes under construction", gauge(work.builds_running));
    let progress = ConstGauge::new(work.build_progress);
    registry.register(
        "index_build_progress_ratio",
        "How far they are on average, 1 when there are none",
        progress,
    );
    registry.register("index_builds", "Indexes completed", ConstCounter::new(work.builds));
    registry.register("index_build_steps", "Steps of building", ConstCounter::new(work.build_steps));
    registry.register(
        "sweeps_waiting",
        "Removed ranges and indexes with space to free",
        gauge(work.sweeps_waiting),
    );
    registry.register("sweeps", "Removed ranges and indexes freed", ConstCounter::new(work.sweeps));
    registry.register(
        "expired_documents",
        "Documents erased because they had expired",
        ConstCounter::new(work.expired_documents),
    );
    registry.register("sweep_steps", "Steps of freeing", ConstCounter::new(work.sweep_steps));
    registry
}

fn scripts(scripts: ScriptStatistics) -> Registry {
    let mut registry = Registry::with_prefix("astrarium_scripts");
    registry.register("running", "Scripts that run", gauge(scripts.running));
    registry.register("waiting", "Scripts that wait for their turn", gauge(scripts.waiting));
    registry.register("processes", "Processes that scripts run in", gauge(scripts.processes));
    registry.register("runaways", "Scripts that did not stop in time, now", gauge(scripts.runaways));
    let ever = ConstCounter::new(scripts.runaways_ever);
    registry.register(
        "runaways_ever",
        "Scripts that did not stop in time; those in processes were killed",
        ever,
    );
    registry.register("cached", "Compiled scripts kept", gauge(scripts.cached_scripts));
    registry.register("cached_bytes", "Bytes of compiled scripts kept", gauge(scripts.cached_bytes));
    registry
}

fn work(workers: WorkerUsage, memory: &Memory) -> Registry {
    let mut registry = Registry::with_prefix("astrarium");
    registry.register("queries_running", "Pages of long queries that run", gauge(workers.pages));
    registry.register(
        "queries_waiting",
        "Pages of long queries that wait to be admitted",
        gauge(workers.waiting),
    );
    let refused = ConstCounter::new(workers.refused);
    registry.register("queries_refused", "Pages of long queries refused because too many waited", refused);
    let budget = gauge(memory.bytes_max());
    registry.register("memory_budget_bytes", "Memory for queries, scripts, bodies and answers", budget);
    registry.register("memory_taken_bytes", "How much of it is taken", gauge(memory.taken()));
    let refused = ConstCounter::new(memory.refused() as u64);
    registry.register("memory_refused", "Requests refused because memory was short", refused);
    registry
}
