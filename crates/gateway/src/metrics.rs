//! Counters for operators, in the OpenMetrics text form, at `/metrics`.
//!
//! All series exist from the start and are plain atomics, so counting costs a request a few nanoseconds.

use crate::database::{Health, Memory, ScriptStatistics, WorkerUsage};
use crate::wire::address::ResourceKind;
use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

type Labels = [(&'static str, &'static str); 2];

pub(crate) struct Metrics {
    registry: Registry,
    /// By kind of resource, then by class of status.
    requests: Vec<[Counter; STATUS_CLASSES.len()]>,
    durations: Histogram,
    sent_bytes: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("astrarium");
        let family = Family::<Labels, Counter>::default();
        registry.register("requests", "Requests answered", family.clone());
        let requests = ResourceKind::ALL
            .iter()
            .map(|kind| {
                let resource = if kind.segment().is_empty() { "account" } else { kind.segment() };
                STATUS_CLASSES
                    .map(|status| family.get_or_create(&[("resource", resource), ("status", status)]).clone())
            })
            .collect();
        let bounds =
            [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];
        let durations = Histogram::new(bounds);
        registry.register_with_unit("request_duration", "Time to answer", Unit::Seconds, durations.clone());
        let sent_bytes = Counter::default();
        registry.register_with_unit("response", "Bytes of answers' bodies", Unit::Bytes, sent_bytes.clone());
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let connections_refused = Counter::default();
        registry.register(
            "connections_refused",
            "Connections closed at once because too many were open",
            connections_refused.clone(),
        );
        Metrics { registry, requests, durations, sent_bytes, connections, connections_refused }
    }

    /// All requests answered so far.
    pub(crate) fn request_count(&self) -> u64 {
        self.requests.iter().flatten().map(Counter::get).sum()
    }

    pub(crate) fn request(&self, kind: ResourceKind, status: StatusCode, elapsed: Duration, bytes: usize) {
        let class = match status.as_u16() {
            0..=299 => 0,
            300..=399 => 1,
            429 => 3,
            400..=499 => 2,
            _ => 4,
        };
        let row = ResourceKind::ALL.iter().position(|one| *one == kind).unwrap_or(0);
        self.requests[row][class].inc();
        self.durations.observe(elapsed.as_secs_f64());
        self.sent_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn render(
        &self,
        health: &Health,
        scripts: ScriptStatistics,
        workers: WorkerUsage,
        memory: &Memory,
    ) -> String {
        let mut storage = Registry::with_prefix("astrarium_storage");
        let stats = &health.stats;
        storage.register("commits", "Transactions committed", ConstCounter::new(stats.commits));
        storage.register(
            "conflicts",
            "Transactions refused by a conflict",
            ConstCounter::new(stats.conflicts),
        );
        storage.register("groups", "Groups written, one sync each", ConstCounter::new(stats.groups));
        storage.register("queued", "Transactions waiting", ConstGauge::new(stats.queued.cast_signed()));
        storage.register("disk_bytes", "Bytes on disk", ConstGauge::new(stats.disk_bytes.cast_signed()));
        let writable = i64::from(health.write_refusal.is_none());
        storage.register("writable", "1 while writes are taken", ConstGauge::new(writable));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        if let Some(end) = text.rfind("# EOF") {
            text.truncate(end);
        }
        let _ = encode(&mut text, &storage);
        if let Some(end) = text.rfind("# EOF") {
            text.truncate(end);
        }
        let _ = encode(&mut text, &script_registry(scripts));
        if let Some(end) = text.rfind("# EOF") {
            text.truncate(end);
        }
        let _ = encode(&mut text, &work_registry(workers, memory));
        text
    }
}

fn work_registry(workers: WorkerUsage, memory: &Memory) -> Registry {
    let gauge = |value: usize| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
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

fn script_registry(scripts: ScriptStatistics) -> Registry {
    let gauge = |value: usize| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
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
