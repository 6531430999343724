//! Which failures are tried again, and after how long.
//!
//! In: a failure, whether the request only reads, and how often it was tried. Out: the wait before the next try, or none.
//! Invariant: a write is never repeated after a failure that may have done it.

use crate::error::ClientError;
use std::time::Duration;

/// First wait where the server names none; doubles with every try.
const WAIT_FIRST: Duration = Duration::from_millis(20);
/// Longest wait where the server names none.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How often a session that the server does not have yet is asked for.
const SESSION_TRIES: u32 = 6;

/// How long to wait before a request is sent again; none if it must not be, or no longer makes sense.
pub(crate) fn wait_before_next(error: &ClientError, is_read: bool, tries: u32) -> Option<Duration> {
    let growing = WAIT_FIRST.saturating_mul(1 << tries.min(10)).min(WAIT_MAX);
    match error {
        ClientError::Lost { is_ambiguous, .. } => (is_read || !is_ambiguous).then_some(growing),
        ClientError::Connect { .. } => (tries < 3).then_some(growing),
        ClientError::Refused(refusal) => match (refusal.status, refusal.substatus) {
            (429, _) => Some(refusal.retry_after.unwrap_or(growing).max(Duration::from_millis(1))),
            (449, _) => Some(refusal.retry_after.unwrap_or(growing)),
            // Who answers 503 may have sent the write on before: a server that lost its store, or a balancer that lost its server.
            (503, _) if is_read => Some(refusal.retry_after.unwrap_or(growing)),
            (408, _) if is_read => (tries < 3).then_some(growing),
            (404, 1002) => (tries < SESSION_TRIES).then_some(growing),
            (410, 1007 | 1008) => Some(growing),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ServerRefusal;

    fn refused(status: u16, substatus: u32, retry_after: Option<Duration>) -> ClientError {
        ClientError::Refused(Box::new(ServerRefusal {
            status,
            substatus,
            code: String::new(),
            message: String::new(),
            raw_message: String::new(),
            location: None,
            additional_info: None,
            activity_id: String::new(),
            charge: 0.0,
            retry_after,
        }))
    }

    #[test]
    fn what_is_tried_again() {
        let after = Duration::from_millis(77);
        assert_eq!(wait_before_next(&refused(429, 3200, Some(after)), false, 0), Some(after));
        assert_eq!(wait_before_next(&refused(449, 0, None), false, 1), Some(WAIT_FIRST * 2));
        assert_eq!(wait_before_next(&refused(503, 0, None), true, 30), Some(Duration::from_secs(2)));
        for status in [408, 500, 503] {
            assert_eq!(
                wait_before_next(&refused(status, 0, Some(after)), false, 0),
                None,
                "a write may have been done"
            );
            assert!(refused(status, 0, None).is_ambiguous(), "{status}");
        }
        assert!(
            ![400, 404, 409, 410, 412, 429, 449]
                .iter()
                .any(|status| refused(*status, 0, None).is_ambiguous())
        );
        for status in [400, 401, 403, 404, 409, 412, 413, 500] {
            assert_eq!(wait_before_next(&refused(status, 0, None), true, 0), None, "{status}");
        }
        let lost =
            |is_ambiguous| ClientError::Lost { endpoint: String::new(), what: String::new(), is_ambiguous };
        assert_eq!(wait_before_next(&lost(true), false, 0), None, "a write may have been done");
        assert!(wait_before_next(&lost(true), true, 0).is_some());
        assert!(wait_before_next(&lost(false), false, 0).is_some());
    }
}
