//! How much a page may take: rows, bytes, time, memory.

use astrarium_env::Env;
use astrarium_sql_plan::evaluate::EvaluateError;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bounds of one page.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows at most.
    pub row_count_max: usize,
    /// No further row once rows hold this many bytes.
    pub byte_count_max: usize,
    /// A streaming query ends its page after so many microseconds.
    pub page_micros: u64,
    /// A query that cannot stream is refused after so many microseconds.
    pub query_micros_max: u64,
    /// Memory for groups, distinct values and sorted rows.
    pub memory_bytes_max: usize,
    /// Documents that one task reads before a query that looks at everything is spread over all cores.
    pub alone_documents_max: u64,
    /// Whether indexes are used.
    pub index_use: IndexUse,
}

/// When a query uses an index that could serve it. The answer is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexUse {
    /// When that is cheaper.
    #[default]
    ByCost,
    /// Whenever it can.
    Always,
    /// Not at all.
    Never,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            row_count_max: 100,
            byte_count_max: 4 << 20,
            page_micros: 4_000_000,
            query_micros_max: 60_000_000,
            memory_bytes_max: 256 << 20,
            alone_documents_max: 2_048,
            index_use: IndexUse::ByCost,
        }
    }
}

/// What all parts of a running query share: when it began, what it may take, what it holds.
pub(crate) struct Gauge {
    pub(crate) env: Env,
    pub(crate) limits: Limits,
    pub(crate) began: u64,
    held_bytes: AtomicUsize,
}

impl Gauge {
    pub(crate) fn new(env: Env, limits: Limits) -> Gauge {
        let began = env.now_micros();
        Gauge { env, limits, began, held_bytes: AtomicUsize::new(0) }
    }

    fn elapsed(&self) -> u64 {
        self.env.now_micros().saturating_sub(self.began)
    }

    /// Whether a streaming page should end.
    pub(crate) fn page_is_over(&self) -> bool {
        self.elapsed() >= self.limits.page_micros
    }
}

/// Looks at the clock now and then, and counts what one part of a query holds.
pub(crate) struct Budget {
    gauge: Arc<Gauge>,
    steps: Cell<u64>,
    held_bytes: Cell<usize>,
}

/// Rows between two looks at the clock.
const STEPS_PER_LOOK: u64 = 512;

impl Budget {
    pub(crate) fn new(gauge: Arc<Gauge>) -> Budget {
        Budget { gauge, steps: Cell::new(0), held_bytes: Cell::new(0) }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.gauge.limits
    }

    /// Counts one row looked at; an error when the query has taken too long.
    pub(crate) fn step(&self) -> Result<(), EvaluateError> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        let seconds_max = self.limits().query_micros_max;
        if steps.is_multiple_of(STEPS_PER_LOOK) && self.gauge.elapsed() > seconds_max {
            return Err(EvaluateError::Budget(format!(
                "The query took longer than {} seconds. Narrow its filter, or ask for fewer joins.",
                seconds_max / 1_000_000
            )));
        }
        Ok(())
    }

    /// Says how many bytes this part holds now; an error when all parts together hold more than a query may.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), EvaluateError> {
        let before = self.held_bytes.replace(bytes);
        if bytes == before {
            return Ok(());
        }
        let held = &self.gauge.held_bytes;
        let total = if bytes > before {
            held.fetch_add(bytes - before, Ordering::Relaxed) + (bytes - before)
        } else {
            held.fetch_sub(before - bytes, Ordering::Relaxed) - (before - bytes)
        };
        self.check_total(total)
    }

    /// An error when so many bytes, held for a moment, are more than a query may hold.
    pub(crate) fn check_moment(&self, bytes: usize) -> Result<(), EvaluateError> {
        self.check_total(self.gauge.held_bytes.load(Ordering::Relaxed).saturating_add(bytes))
    }

    fn check_total(&self, bytes: usize) -> Result<(), EvaluateError> {
        if bytes <= self.limits().memory_bytes_max {
            return Ok(());
        }
        Err(EvaluateError::Budget(format!(
            "The query needs more than {} MB to group, sort or remove duplicates. Narrow its filter, or group by fewer values.",
            self.limits().memory_bytes_max >> 20
        )))
    }
}

/// Lets a long query give way to others: not after every step, for waking up elsewhere costs more than a short query.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    since: u64,
}

/// Documents or index entries looked at between two rests, an entry counting little.
const DOCUMENTS_PER_REST: u64 = 1_000;

impl Pace {
    /// Counts what was looked at, and rests if it was much.
    pub(crate) async fn step(&mut self, documents: u64, entries: u64) {
        self.since += documents + entries / 32;
        if self.since >= DOCUMENTS_PER_REST {
            self.since = 0;
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.gauge.held_bytes.fetch_sub(self.held_bytes.get(), Ordering::Relaxed);
    }
}
