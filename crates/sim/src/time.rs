//! Simulated time: it moves when somebody is polled or everybody waits, and the time of day can jump.
//!
//! One [`Time`] is the machine's clocks of a run: `env::Timeline` for what measures and waits, `env::Clock` for the time of day.

use astrarium_env::{Clock, Timeline};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Where the time of day begins: some day of 2026.
const BEGIN_MICROS: u64 = 1_790_000_000_000_000;

/// The clocks of a run. Clones show the same.
#[derive(Clone, Default)]
pub(crate) struct Time {
    shared: Arc<Mutex<Clocks>>,
}

#[derive(Default)]
struct Clocks {
    now: Duration,
    /// How far the time of day is from where it would be without jumps.
    jumped_micros: i64,
    /// Who waits, by when and by a number.
    timers: BTreeMap<(Duration, u64), Waker>,
    timer_number: u64,
}

impl Time {
    pub(crate) fn advance(&self, time: Duration) {
        self.shared.lock().now += time;
        self.wake();
    }

    /// Goes on to when the first of those who wait is due; false if nobody waits.
    pub(crate) fn advance_to_timer(&self) -> bool {
        let mut clocks = self.shared.lock();
        let Some((&(due, _), _)) = clocks.timers.first_key_value() else { return false };
        clocks.now = clocks.now.max(due);
        drop(clocks);
        self.wake();
        true
    }

    /// Sets the time of day forwards or back.
    pub(crate) fn jump_seconds(&self, seconds: i64) {
        self.shared.lock().jumped_micros += seconds * 1_000_000;
    }

    pub(crate) fn wall_seconds(&self) -> u64 {
        self.now_micros() / 1_000_000
    }

    fn wake(&self) {
        let mut clocks = self.shared.lock();
        let now = clocks.now;
        let later = clocks.timers.split_off(&(now, u64::MAX));
        for waker in std::mem::replace(&mut clocks.timers, later).into_values() {
            waker.wake();
        }
    }
}

impl Clock for Time {
    fn now_micros(&self) -> u64 {
        let clocks = self.shared.lock();
        let moved = clocks.now.as_micros() as i64 + clocks.jumped_micros;
        BEGIN_MICROS.saturating_add_signed(moved)
    }
}

impl Timeline for Time {
    fn now(&self) -> Duration {
        self.shared.lock().now
    }

    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let due = self.shared.lock().now + time;
        Box::pin(SimulatedSleep { time: self.clone(), due })
    }
}

struct SimulatedSleep {
    time: Time,
    due: Duration,
}

impl Future for SimulatedSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clocks = self.time.shared.lock();
        if clocks.now >= self.due {
            return Poll::Ready(());
        }
        clocks.timer_number += 1;
        let number = clocks.timer_number;
        clocks.timers.insert((self.due, number), context.waker().clone());
        Poll::Pending
    }
}
