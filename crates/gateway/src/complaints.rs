//! How often failures that are ours go to the log: some a second, since while storage is away every request fails.
//!
//! In: that one happened. Out: whether to tell it, and how many before it were not told.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Told in a second at most.
const TOLD_MAX: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Complaints {
    second: Mutex<ToldComplaints>,
}

#[derive(Debug, Default)]
struct ToldComplaints {
    began: Option<Instant>,
    told: u32,
    unsaid: u64,
}

impl Complaints {
    /// Nothing if this one is not to be told; how many were not told before it if it is.
    pub(crate) fn next(&self, now: Instant) -> Option<u64> {
        let mut second = self.second.lock();
        if second.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            (second.began, second.told) = (Some(now), 0);
        }
        if second.told >= TOLD_MAX {
            second.unsaid += 1;
            return None;
        }
        second.told += 1;
        Some(std::mem::take(&mut second.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_a_second_are_told() {
        let (complaints, began) = (Complaints::default(), Instant::now());
        let told = |after: u64| complaints.next(began + Duration::from_millis(after));
        assert_eq!([told(0), told(1), told(2), told(3), told(4)], [Some(0); 5]);
        assert_eq!((told(5), told(999)), (None, None));
        assert_eq!((told(1_000), told(1_001)), (Some(2), Some(0)));
    }
}
