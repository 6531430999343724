//! Passes calls from the thread of a query to the thread of its functions, and results back.
//!
//! One slot, used in turn: empty, a call, a result; or closed, for good. A side that waits looks at the phase for a while
//! before it sleeps: a wake-up costs more than most calls.

use crate::Error;
use astrarium_value::Value;
use parking_lot::{Condvar, Mutex};
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

/// How often a side looks before it sleeps: some tens of microseconds.
const LOOKS: u32 = 1_000;

const EMPTY: u8 = 0;
const CALL: u8 = 1;
const RESULT: u8 = 2;
const CLOSED: u8 = 3;

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
    /// The kind of the slot, to look at without the lock.
    phase: AtomicU8,
    changed: Condvar,
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
        {
            // Checked under the lock: a result that comes after the closing belongs to an older call.
            let mut inner = self.inner.lock();
            if let Some(closed) = inner.closed {
                return Err(closed);
            }
            self.put(&mut inner, Slot::Call(index, arguments), CALL);
        }
        self.look_for(RESULT);
        let mut inner = self.inner.lock();
        loop {
            match std::mem::take(&mut inner.slot) {
                Slot::Result(result) => return Ok(result),
                other => inner.slot = other,
            }
            if let Some(closed) = inner.closed {
                return Err(closed);
            }
            self.changed.wait(&mut inner);
        }
    }

    /// The next call; nothing once the slot is closed or the time is over.
    pub(super) fn next(&self, end: Instant) -> Option<(usize, Vec<Value>)> {
        self.look_for(CALL);
        let mut inner = self.inner.lock();
        loop {
            if inner.closed.is_some() {
                return None;
            }
            match std::mem::take(&mut inner.slot) {
                Slot::Call(index, arguments) => {
                    self.phase.store(EMPTY, Ordering::Release);
                    return Some((index, arguments));
                }
                other => inner.slot = other,
            }
            if self.changed.wait_until(&mut inner, end).timed_out() {
                return None;
            }
        }
    }

    /// Hands back the result of the call.
    pub(super) fn answer(&self, result: Result<Value, Error>) {
        let mut inner = self.inner.lock();
        if inner.closed.is_none() {
            self.put(&mut inner, Slot::Result(result), RESULT);
        }
    }

    /// Takes no more calls, for the reason first given. A result that waits to be taken stays.
    pub(super) fn close(&self, reason: Closed) {
        let mut inner = self.inner.lock();
        inner.closed.get_or_insert(reason);
        self.phase.store(CLOSED, Ordering::Release);
        self.changed.notify_all();
    }

    fn put(&self, inner: &mut Inner, content: Slot, phase: u8) {
        inner.slot = content;
        self.phase.store(phase, Ordering::Release);
        self.changed.notify_all();
    }

    fn look_for(&self, wanted: u8) {
        for _ in 0..looks() {
            let phase = self.phase.load(Ordering::Acquire);
            if phase == wanted || phase == CLOSED {
                return;
            }
            spin_loop();
        }
    }
}

/// On one processor looking only keeps the other side from working.
fn looks() -> u32 {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    let several = SEVERAL.get_or_init(|| available_parallelism().is_ok_and(|count| count.get() > 1));
    if *several { LOOKS } else { 0 }
}
