//! What the program knows of the other servers of its account, and of the stores that they share. A server alone has none of it.
//!
//! In: questions of the account document, `/ready` and `/metrics`. Out: plain data, at once: nobody waits for a store here.
//! Not here: how servers know of each other; that is the engine's business, and the program passes it on.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Several servers over the same storage.
pub trait Cluster: fmt::Debug + Send + Sync {
    /// The servers that are alive, in an order that all of them give alike.
    fn servers(&self) -> Vec<ServerEndpoint>;

    /// Why this server should get no requests at the moment, if so, beside what its storage says.
    fn trouble(&self) -> Option<String>;

    /// What an operator should know although requests are taken, a sentence each.
    fn remarks(&self) -> Vec<String>;

    /// Numbers for `/metrics`.
    fn measures(&self) -> Vec<Measure>;
}

/// A server that clients may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEndpoint {
    /// What clients call it: the name of its region, for SDKs.
    pub name: String,
    /// Where they reach it.
    pub endpoint: String,
    /// Whether it is this one.
    pub is_here: bool,
}

/// A number for `/metrics`, or several of one name that labels tell apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Its name, without `astrarium_` before it and without what counters end with.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// Labels and values.
    pub values: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Measure {
    /// A number that goes up and down.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Measure {
        Measure { name, help, is_counter: false, values: vec![(Vec::new(), value)] }
    }

    /// A number that only grows.
    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Measure {
        Measure { is_counter: true, ..Measure::gauge(name, help, value) }
    }
}

/// Numbers as the page prints them.
#[derive(Debug)]
pub(crate) struct Measures(pub(crate) Vec<Measure>);

impl Collector for Measures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for measure in &self.0 {
            let kind = if measure.is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut family = encoder.encode_descriptor(measure.name, measure.help, None, kind)?;
            if let [(labels, value)] = &measure.values[..]
                && labels.is_empty()
            {
                encode(*value, measure.is_counter, family)?;
                continue;
            }
            for (labels, value) in &measure.values {
                let labels: Vec<(&str, &str)> =
                    labels.iter().map(|(name, text)| (*name, text.as_str())).collect();
                let single = family.encode_family(&labels)?;
                encode(*value, measure.is_counter, single)?;
            }
        }
        Ok(())
    }
}

fn encode(value: f64, is_counter: bool, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
    if is_counter { ConstCounter::new(value).encode(encoder) } else { ConstGauge::new(value).encode(encoder) }
}
