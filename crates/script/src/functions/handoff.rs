//! Passes calls from the thread of a query to the thread of its functions, and results back.
//!
//! One slot, used in turn: empty, a call, a result. Whoever waits sleeps: looking for the other side for some time first
//! was measured, and costs more than it saves as soon as the processors have other work.
//! Invariant: once closed, nothing is put into the slot any more, so a result is always that of the last call.

use crate::Error;
use astrarium_value::Value;
use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Why no more calls are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// No thread was free for the session.
    Busy,
    /// Its time is over.
    Late,
    /// It was dropped, or its thread failed.
    Failed,
}

/// The slot.
#[derive(Default)]
pub(super) struct Handoff {
    inner: Mutex<Inner>,
    /// A call or the closing has come.
    called: Condvar,
    /// A result or the closing has come.
    answered: Condvar,
}

#[derive(Default)]
struct Inner {
    slot: Slot,
    closed: Option<Closed>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Call(usize, Vec<Value>),
    Result(Result<Value, Error>),
}

impl Handoff {
    /// Hands over a call and waits for its result. The caller sees to it that calls take turns.
    pub(super) fn call(&self, index: usize, arguments: Vec<Value>) -> Result<Result<Value, Error>, Closed> {
        let mut inner = self.inner.lock();
        if inner.closed.is_none() {
            inner.slot = Slot::Call(index, arguments);
            self.called.notify_one();
        }
        loop {
            match std::mem::take(&mut inner.slot) {
                Slot::Result(result) => return Ok(result),
                other => inner.slot = other,
            }
            if let Some(closed) = inner.closed {
                return Err(closed);
            }
            self.answered.wait(&mut inner);
        }
    }

    /// The next call; nothing once the slot is closed or the time is over.
    pub(super) fn next(&self, end: Instant) -> Option<(usize, Vec<Value>)> {
        let mut inner = self.inner.lock();
        loop {
            if inner.closed.is_some() {
                return None;
            }
            match std::mem::take(&mut inner.slot) {
                Slot::Call(index, arguments) => return Some((index, arguments)),
                other => inner.slot = other,
            }
            if self.called.wait_until(&mut inner, end).timed_out() {
                return None;
            }
        }
    }

    /// Hands back the result of the call, unless the caller has been told that none will come.
    pub(super) fn answer(&self, result: Result<Value, Error>) {
        let mut inner = self.inner.lock();
        if inner.closed.is_none() {
            inner.slot = Slot::Result(result);
            self.answered.notify_one();
        }
    }

    /// Takes no more calls, for the reason first given. A result that waits to be taken stays.
    pub(super) fn close(&self, reason: Closed) {
        let mut inner = self.inner.lock();
        inner.closed.get_or_insert(reason);
        self.called.notify_all();
        self.answered.notify_all();
    }
}
