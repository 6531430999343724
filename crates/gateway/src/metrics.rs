//! Counters for operators; `page` prints them.
//!
//! All series exist from the start and are plain atomics, so counting costs a request a few nanoseconds.
//! Invariant: the page has its series in the same order every time and in every process, so that two can be compared.

mod page;
mod process;
mod usage;

pub(crate) use usage::UsedRange;

use crate::wire::address::ResourceKind;
use http::StatusCode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use usage::ItemUsage;

const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "429", "5xx"];

/// A counter of something that is not whole.
type DecimalCounter = Counter<f64, AtomicU64>;

pub(crate) struct Metrics {
    registry: Registry,
    requests: RequestCounts,
    charges: Charges,
    durations: Histogram,
    sent_bytes: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) background_failures: Counter,
    pub(crate) usage: ItemUsage,
}

impl Metrics {
    /// Counters of a server that started at this time.
    pub(crate) fn new(started_seconds: u64) -> Metrics {
        let mut registry = Registry::with_prefix("astrarium");
        page::register_build(&mut registry, started_seconds);
        let requests = RequestCounts::default();
        registry.register("requests", "Requests answered", requests.clone());
        let charges = Charges::default();
        registry.register("request_units", "Request units charged", charges.clone());
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
        let background_failures = Counter::default();
        registry.register(
            "background_failures",
            "Times that background work stopped because of an error of the program and was begun again",
            background_failures.clone(),
        );
        let usage = ItemUsage::default();
        for (name, help, series) in usage.series() {
            registry.register(name, help, series);
        }
        Metrics {
            registry,
            requests,
            charges,
            durations,
            sent_bytes,
            connections,
            connections_refused,
            background_failures,
            usage,
        }
    }

    /// All requests answered so far.
    pub(crate) fn request_count(&self) -> u64 {
        self.requests.rows.iter().flatten().map(Counter::get).sum()
    }

    pub(crate) fn request(
        &self,
        kind: ResourceKind,
        status: StatusCode,
        elapsed: Duration,
        bytes: usize,
        charge: f64,
    ) {
        let class = match status.as_u16() {
            0..=299 => 0,
            300..=399 => 1,
            429 => 3,
            400..=499 => 2,
            _ => 4,
        };
        let row = ResourceKind::ALL.iter().position(|one| *one == kind).unwrap_or(0);
        self.requests.rows[row][class].inc();
        self.charges.rows[row].inc_by(charge);
        self.durations.observe(elapsed.as_secs_f64());
        self.sent_bytes.inc_by(bytes as u64);
    }
}

/// What a kind of resource is called in a label.
fn label(kind: ResourceKind) -> &'static str {
    if kind.segment().is_empty() { "account" } else { kind.segment() }
}

/// Requests by kind of resource, then by class of status.
#[derive(Debug, Clone, Default)]
struct RequestCounts {
    rows: Arc<[[Counter; STATUS_CLASSES.len()]; ResourceKind::ALL.len()]>,
}

impl EncodeMetric for RequestCounts {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (kind, row) in ResourceKind::ALL.iter().zip(self.rows.iter()) {
            for (status, counter) in STATUS_CLASSES.iter().zip(row) {
                let labels = [("resource", label(*kind)), ("status", *status)];
                counter.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// Request units by kind of resource.
#[derive(Debug, Clone, Default)]
struct Charges {
    rows: Arc<[DecimalCounter; ResourceKind::ALL.len()]>,
}

impl EncodeMetric for Charges {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (kind, counter) in ResourceKind::ALL.iter().zip(self.rows.iter()) {
            counter.encode(encoder.encode_family(&[("resource", label(*kind))])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
