//! How long the parts of a page of a query took, by a clock that does not jump.

use astrarium_env::Instant;
use std::time::Duration;

/// The times of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryTimes {
    /// Reading the text, as far as it was not known.
    pub reading: Duration,
    /// Making the plan.
    pub planning: Duration,
    /// Choosing indexes, and the partitions to look at.
    pub choosing: Duration,
    /// Running the plan.
    pub running: Duration,
    /// Of that, finding documents by an index.
    pub lookup: Duration,
    /// Of that, reading documents.
    pub load: Duration,
    /// All of it.
    pub total: Duration,
}

/// Measures a page.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    began: Instant,
    last: Instant,
    times: QueryTimes,
}

impl Stopwatch {
    /// Begins a page of a query whose text took so long to read.
    pub(crate) fn start(reading: Duration) -> Stopwatch {
        let now = Instant::now();
        Stopwatch { began: now, last: now, times: QueryTimes { reading, ..QueryTimes::default() } }
    }

    /// The plan is made.
    pub(crate) fn planned(&mut self) {
        let lap = self.lap();
        self.times.planning += lap;
    }

    /// What it reads is chosen.
    pub(crate) fn chosen(&mut self) {
        let lap = self.lap();
        self.times.choosing += lap;
    }

    /// The page is there.
    pub(crate) fn ran(mut self, (lookup, load): (Duration, Duration)) -> QueryTimes {
        let running = self.lap();
        let total = self.began.elapsed() + self.times.reading;
        QueryTimes { running, lookup, load, total, ..self.times }
    }

    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(&mut self.last, now))
    }
}
