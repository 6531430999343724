//! No more request units a second than allowed.

use astrarium_env::Instant;
use parking_lot::Mutex;
use std::time::Duration;

/// Spreads what requests cost over time. What is spent is known afterwards, so the next request waits for it.
#[derive(Debug)]
pub(crate) struct RateBound {
    units_per_second: Option<f64>,
    began: Instant,
    /// Seconds after the beginning at which everything spent so far is paid for.
    paid_at: Mutex<f64>,
}

impl RateBound {
    pub(crate) fn new(units_per_second: Option<f64>) -> RateBound {
        RateBound { units_per_second, began: Instant::now(), paid_at: Mutex::new(0.0) }
    }

    /// Waits until what was spent is paid for.
    pub(crate) async fn wait(&self) {
        if self.units_per_second.is_none() {
            return;
        }
        let wait = *self.paid_at.lock() - self.began.elapsed().as_secs_f64();
        if wait > 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(wait.min(3600.0))).await;
        }
    }

    /// Notes what a request has cost.
    pub(crate) fn spend(&self, units: f64) {
        let Some(rate) = self.units_per_second else { return };
        let mut paid_at = self.paid_at.lock();
        *paid_at = paid_at.max(self.began.elapsed().as_secs_f64()) + units.max(0.0) / rate;
    }
}
