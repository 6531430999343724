//! How much a page may take: rows, bytes, time, memory.

use astrarium_env::Env;
use astrarium_sql_plan::evaluate::EvaluateError;
use std::cell::Cell;

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
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            row_count_max: 100,
            byte_count_max: 4 << 20,
            page_micros: 4_000_000,
            query_micros_max: 60_000_000,
            memory_bytes_max: 256 << 20,
        }
    }
}

/// Looks at the clock now and then, and counts what was looked at.
pub(crate) struct Budget<'a> {
    env: &'a Env,
    limits: Limits,
    began: u64,
    steps: Cell<u64>,
}

/// Rows between two looks at the clock.
const STEPS_PER_LOOK: u64 = 512;

impl<'a> Budget<'a> {
    pub(crate) fn new(env: &'a Env, limits: Limits) -> Budget<'a> {
        Budget { env, limits, began: env.now_micros(), steps: Cell::new(0) }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    fn elapsed(&self) -> u64 {
        self.env.now_micros().saturating_sub(self.began)
    }

    /// Whether a streaming page should end.
    pub(crate) fn page_is_over(&self) -> bool {
        self.elapsed() >= self.limits.page_micros
    }

    /// Counts one row looked at; an error when the query has taken too long.
    pub(crate) fn step(&self) -> Result<(), EvaluateError> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_LOOK) && self.elapsed() > self.limits.query_micros_max {
            return Err(EvaluateError::Budget(format!(
                "The query took longer than {} seconds. Narrow its filter, or ask for fewer joins.",
                self.limits.query_micros_max / 1_000_000
            )));
        }
        Ok(())
    }

    /// An error when so many bytes are more than a query may hold.
    pub(crate) fn check_memory(&self, bytes: usize) -> Result<(), EvaluateError> {
        if bytes <= self.limits.memory_bytes_max {
            return Ok(());
        }
        Err(EvaluateError::Budget(format!(
            "The query needs more than {} MB to group, sort or remove duplicates. Narrow its filter, or group by fewer values.",
            self.limits.memory_bytes_max >> 20
        )))
    }
}
