//! Keys that are not known any more, because what held them is damaged.
//!
//! A damaged block, or a run whose blob is not what was written, costs the keys of its range and no others: the range is *lost*,
//! nothing is told of it, and everything else answers. Somebody above makes what belongs there anew under other keys and accepts
//! the loss; then what is left in the range answers again.
//! In: what somebody met ([`DamageSignal`]). Out: ranges.
//! Invariant: a range is in the manifest before anything that held its keys goes.

use crate::Error;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Above every key of a set.
const BEYOND: [u8; 16] = [0xFF; 16];

/// Keys that may be missing, or be there although they were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// The first key that belongs.
    pub start: Bytes,
    /// The first key beyond.
    pub end: Bytes,
    /// What was found.
    pub what: String,
}

impl LostRange {
    /// All keys.
    pub(crate) fn whole(what: &str) -> LostRange {
        LostRange { start: Bytes::new(), end: Bytes::from_static(&BEYOND), what: what.to_owned() }
    }

    /// Whether keys of another range may be lost.
    pub fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        &self.start[..] < end && start < &self.end[..]
    }
}

/// A block that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadBlock {
    /// The number of its run.
    pub(crate) number: u64,
    /// The keys it held.
    pub(crate) range: LostRange,
}

/// Ranges in order, those that touch as one.
pub(crate) fn joined(mut ranges: Vec<LostRange>) -> Vec<LostRange> {
    ranges.sort_by(|left, right| left.start.cmp(&right.start));
    let mut joined: Vec<LostRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = range.end.max(last.end.clone()),
            _ => joined.push(range),
        }
    }
    joined
}

/// Damage that somebody met, until the merger has dealt with it.
#[derive(Default)]
pub struct DamageSignal {
    found: Mutex<Option<Error>>,
    /// Whether something was found: asked by every query.
    is_raised: AtomicBool,
}

impl DamageSignal {
    /// Tells of an error; the first that is damage stays until it is dealt with.
    pub fn raise(&self, error: &Error) {
        if matches!(error, Error::Damaged { .. } | Error::BadBlock(_)) {
            self.found.lock().get_or_insert_with(|| error.clone());
            self.is_raised.store(true, Ordering::Release);
        }
    }

    /// The keys that it concerns, if there is some.
    pub fn pending(&self) -> Option<LostRange> {
        if !self.is_raised.load(Ordering::Acquire) {
            return None;
        }
        match self.found.lock().as_ref()? {
            Error::BadBlock(bad) => Some(bad.range.clone()),
            other => Some(LostRange::whole(&other.to_string())),
        }
    }

    /// What was found.
    pub fn found(&self) -> Option<Error> {
        self.found.lock().clone()
    }

    /// It has been dealt with. What else was met meanwhile will be met again.
    pub fn clear(&self) {
        *self.found.lock() = None;
        self.is_raised.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let range = |start: &'static str, end: &'static str| LostRange {
            start: start.into(),
            end: end.into(),
            what: "test".to_owned(),
        };
        let check = |ranges: Vec<LostRange>, expected: Vec<LostRange>| assert_eq!(joined(ranges), expected);
        check(vec![], vec![]);
        check(vec![range("c", "d"), range("a", "b")], vec![range("a", "b"), range("c", "d")]);
        check(vec![range("a", "c"), range("c", "d"), range("b", "bb")], vec![range("a", "d")]);
        check(vec![range("a", "z"), range("b", "c"), range("y", "zz")], vec![range("a", "zz")]);
        assert!(range("b", "d").overlaps(b"a", b"bb") && range("b", "d").overlaps(b"c", b"cc"));
        assert!(!range("b", "d").overlaps(b"a", b"b") && !range("b", "d").overlaps(b"d", b"e"));
    }
}
