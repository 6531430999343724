//! Limits how many server errors are logged in a second: while storage is unavailable every request fails.
//!
//! In: an error happened. Out: whether to log it, and how many before it were not logged.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Errors logged in a second at most.
const LOGGED_MAX: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct ErrorLogLimit {
    second: Mutex<LoggedErrors>,
}

#[derive(Debug, Default)]
struct LoggedErrors {
    began: Option<Instant>,
    logged: u32,
    not_logged: u64,
}

impl ErrorLogLimit {
    /// None if this error is not to be logged; otherwise how many were not logged since the last that was.
    pub(crate) fn next(&self, now: Instant) -> Option<u64> {
        let mut second = self.second.lock();
        if second.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            (second.began, second.logged) = (Some(now), 0);
        }
        if second.logged >= LOGGED_MAX {
            second.not_logged += 1;
            return None;
        }
        second.logged += 1;
        Some(std::mem::take(&mut second.not_logged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_a_second_are_logged() {
        let (error_log_limit, began) = (ErrorLogLimit::default(), Instant::now());
        let logged = |after: u64| error_log_limit.next(began + Duration::from_millis(after));
        assert_eq!([logged(0), logged(1), logged(2), logged(3), logged(4)], [Some(0); 5]);
        assert_eq!((logged(5), logged(999)), (None, None));
        assert_eq!((logged(1_000), logged(1_001)), (Some(2), Some(0)));
    }
}
