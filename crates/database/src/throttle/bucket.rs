//! Request units of one budget, second by second.
//!
//! A second has its units. What is not used is banked for bursts, and a dear request leaves a debt that comes in first.

/// Ranges of less throughput may bank what they do not use, and spend so much a second from it.
const BURST_RATE: f64 = 3_000.0;
/// So many seconds of throughput can be banked.
const BANKED_SECONDS: f64 = 300.0;
/// The part of a second's units that requests of low priority leave to the others.
const HIGH_PRIORITY_SHARE: f64 = 0.25;

/// Request units that are left.
#[derive(Debug, Clone)]
pub(super) struct TokenBucket {
    /// Request units a second, as of the last time it was filled.
    rate: f64,
    /// Of this second; less than none is a debt.
    tokens: f64,
    /// Of seconds before.
    banked: f64,
    /// What may be spent of those in this second.
    burst: f64,
    /// When it was filled last, in microseconds.
    filled: u64,
}

impl TokenBucket {
    /// One that gives so many units a second, of which some are spent in this one.
    pub(super) fn new(rate: f64, spent: f64, now: u64) -> TokenBucket {
        TokenBucket { rate, tokens: rate - spent, banked: 0.0, burst: BURST_RATE, filled: now }
    }

    /// Gives what came in since it was filled last.
    pub(super) fn refill(&mut self, rate: f64, now: u64) {
        self.rate = rate;
        // A clock that was set back gives nothing.
        let seconds = now.saturating_sub(self.filled) as f64 / 1_000_000.0;
        self.filled = now;
        self.tokens += rate * seconds;
        self.burst = (self.burst + BURST_RATE * seconds).min(BURST_RATE);
        let unused = self.tokens - rate;
        if unused > 0.0 {
            self.tokens = rate;
            let banked_max = if rate < BURST_RATE { BANKED_SECONDS * rate } else { 0.0 };
            self.banked = (self.banked + unused).min(banked_max);
        }
    }

    /// Whether a request is let in; otherwise the milliseconds until one is.
    pub(super) fn admit(&self, has_low_priority: bool) -> Result<(), u64> {
        let rate = self.rate;
        let floor = if has_low_priority { HIGH_PRIORITY_SHARE * rate } else { 0.0 };
        let can_burst = !has_low_priority && self.banked > 0.0 && self.burst > 0.0;
        if self.tokens > floor || can_burst {
            return Ok(());
        }
        let milliseconds = (floor - self.tokens) / rate.max(1.0) * 1_000.0;
        Err((milliseconds.ceil() as u64).max(1))
    }

    /// How long the debt takes to come in that a request made which cost more than a second has; many smaller requests at once make
    /// one too, which is the ordinary case.
    pub(super) fn debt_seconds(&self, charge: f64) -> f64 {
        if charge > self.rate { (-self.tokens / self.rate.max(1.0)).max(0.0) } else { 0.0 }
    }

    /// Takes what a request cost.
    pub(super) fn pay(&mut self, charge: f64) {
        let own = charge.min(self.tokens.max(0.0));
        let burst = (charge - own).min(self.banked).min(self.burst.max(0.0));
        self.banked -= burst;
        self.burst -= burst;
        self.tokens -= charge - burst;
    }

    /// Takes what requests cost that another process let in.
    pub(super) fn pay_elsewhere(&mut self, charge: f64, now: u64) {
        self.refill(self.rate, now);
        self.pay(charge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Lets requests of a charge in, one after another, until one is refused; how many, and how long it has to wait.
    fn spend(bucket: &mut TokenBucket, rate: f64, charge: f64, now: u64, is_low: bool) -> (u32, u64) {
        bucket.refill(rate, now);
        let mut count = 0;
        loop {
            match bucket.admit(is_low) {
                Ok(()) => bucket.pay(charge),
                Err(wait) => return (count, wait),
            }
            count += 1;
        }
    }

    #[test]
    fn a_second_has_its_units_and_a_dear_request_leaves_a_debt() {
        let mut bucket = TokenBucket::new(400.0, 0.0, 0);
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, false), (40, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, SECOND / 2, false), (20, 1));
        // One request of 1,000 units is let in and has to be worked off.
        assert_eq!(spend(&mut bucket, 400.0, 1_000.0, SECOND, false), (1, 2_000));
        assert_eq!(spend(&mut bucket, 400.0, 1.0, 2 * SECOND, false), (0, 1_000));
        assert_eq!(spend(&mut bucket, 400.0, 1.0, SECOND, false).0, 0, "a clock that is set back");
    }

    #[test]
    fn what_is_not_used_is_banked_for_bursts() {
        let mut bucket = TokenBucket::new(400.0, 0.0, 0);
        // 10 s unused are 4,000 units, of which a second may spend 3,000 besides its own.
        assert_eq!(spend(&mut bucket, 400.0, 100.0, 10 * SECOND, false).0, 34);
        let mut bucket = TokenBucket::new(400.0, 0.0, 0);
        bucket.refill(400.0, 3_600 * SECOND);
        assert!((bucket.banked - 120_000.0).abs() < 1e-6);
        let mut large = TokenBucket::new(5_000.0, 0.0, 0);
        assert_eq!(spend(&mut large, 5_000.0, 100.0, 10 * SECOND, false).0, 50);
    }

    #[test]
    fn low_priority_is_refused_first() {
        let mut bucket = TokenBucket::new(400.0, 0.0, 0);
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, true), (30, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, false), (10, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, true), (0, 250));
    }
}
