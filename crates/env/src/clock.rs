//! Where the time comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970.
    fn now_micros(&self) -> u64;

    /// Moves the clock forwards by so many seconds; false if it cannot be moved, or not so far.
    fn advance(&self, _seconds: u64) -> bool {
        false
    }

    /// By how many seconds it was moved from what the machine says: who compares with other machines' clocks takes them off.
    fn advanced_seconds(&self) -> u64 {
        0
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine for the time")]
    fn now_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as u64)
    }
}

/// The machine's clock, which can be moved forwards: for tests of programs, which cannot wait for what expires.
#[derive(Debug, Default)]
pub struct AdvancedClock {
    seconds: AtomicU64,
}

/// The farthest that a clock is moved: a hundred years.
const ADVANCED_SECONDS_MAX: u64 = 100 * 366 * 86_400;

impl Clock for AdvancedClock {
    fn now_micros(&self) -> u64 {
        SystemClock.now_micros() + self.advanced_seconds() * 1_000_000
    }

    fn advance(&self, seconds: u64) -> bool {
        let add = |before: u64| before.checked_add(seconds).filter(|after| *after <= ADVANCED_SECONDS_MAX);
        self.seconds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn advanced_seconds(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed)
    }
}

/// A clock that goes with another one, by so much, and never back: for a server that goes by the clock of a store, whose servers
/// have to agree on the time.
pub struct ShiftedClock {
    clock: Box<dyn Clock>,
    shift: ClockShift,
    /// The latest time that was told.
    latest: AtomicU64,
}

/// By how much a [`ShiftedClock`] is shifted; clones shift the same clock.
#[derive(Debug, Clone, Default)]
pub struct ClockShift {
    micros: Arc<AtomicI64>,
}

impl ShiftedClock {
    /// A clock that shows what another one does until it is shifted.
    pub fn over(clock: Box<dyn Clock>) -> (ShiftedClock, ClockShift) {
        let shift = ClockShift::default();
        (ShiftedClock { clock, shift: shift.clone(), latest: AtomicU64::new(0) }, shift)
    }
}

impl Clock for ShiftedClock {
    fn now_micros(&self) -> u64 {
        let now = self.clock.now_micros().saturating_add_signed(self.shift.micros());
        now.max(self.latest.fetch_max(now, Ordering::Relaxed))
    }

    fn advance(&self, seconds: u64) -> bool {
        self.clock.advance(seconds)
    }

    fn advanced_seconds(&self) -> u64 {
        self.clock.advanced_seconds()
    }
}

impl ClockShift {
    /// Shifts the clock from now on, forwards or back. One that is shifted back stands until the time has come again that it
    /// has told already.
    pub fn set_micros(&self, micros: i64) {
        self.micros.store(micros, Ordering::Relaxed);
    }

    /// By how much the clock is shifted.
    pub fn micros(&self) -> i64 {
        self.micros.load(Ordering::Relaxed)
    }
}

/// A clock that a test sets by hand; clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    micros: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at a time.
    pub fn at_seconds(seconds: u64) -> ManualClock {
        ManualClock { micros: Arc::new(AtomicU64::new(seconds * 1_000_000)) }
    }

    /// Moves the clock, forwards or back.
    pub fn set_seconds(&self, seconds: u64) {
        self.micros.store(seconds * 1_000_000, Ordering::Relaxed);
    }

    /// Moves the clock forwards.
    pub fn advance_seconds(&self, seconds: u64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }

    fn advance(&self, seconds: u64) -> bool {
        let is_near = seconds <= ADVANCED_SECONDS_MAX;
        if is_near {
            self.advance_seconds(seconds);
        }
        is_near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_moves_forwards_and_not_without_end() {
        let clock = AdvancedClock::default();
        let before = SystemClock.now_micros();
        assert!(clock.advance(3_600) && clock.advance(60));
        assert!(clock.now_micros() >= before + 3_660_000_000);
        assert!(!clock.advance(u64::MAX) && !clock.advance(ADVANCED_SECONDS_MAX));
        assert_eq!(clock.advanced_seconds(), 3_660);
        assert!(!SystemClock.advance(1));
    }

    #[test]
    fn a_shifted_clock_goes_with_another_and_never_back() {
        let machine = ManualClock::at_seconds(1_000);
        let (clock, shift) = ShiftedClock::over(Box::new(machine.clone()));
        assert_eq!(clock.now_micros(), 1_000_000_000);
        shift.set_micros(2_500_000);
        assert_eq!((clock.now_micros(), shift.micros()), (1_002_500_000, 2_500_000));
        // Back by five seconds: it stands for as long, and then goes on.
        shift.set_micros(-2_500_000);
        assert_eq!(clock.now_micros(), 1_002_500_000);
        machine.set_seconds(1_004);
        assert_eq!(clock.now_micros(), 1_002_500_000);
        machine.set_seconds(1_006);
        assert_eq!(clock.now_micros(), 1_003_500_000);
        // So it is when the clock that it goes with is set back.
        machine.set_seconds(10);
        assert_eq!(clock.now_micros(), 1_003_500_000);
        // Before 1970 there is no time.
        let (clock, shift) = ShiftedClock::over(Box::new(ManualClock::at_seconds(1)));
        shift.set_micros(i64::MIN);
        assert_eq!(clock.now_micros(), 0);
    }

    #[test]
    fn nobody_sees_a_shifted_clock_go_back_while_it_is_shifted() {
        let (clock, shift) = ShiftedClock::over(Box::new(SystemClock));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut before = 0;
                    for _ in 0..20_000 {
                        let now = clock.now_micros();
                        assert!(now >= before, "{now} after {before}");
                        before = now;
                    }
                });
            }
            for round in 0..1_000 {
                shift.set_micros(if round % 2 == 0 { 3_000_000 } else { -3_000_000 });
            }
        });
    }

    #[test]
    fn a_shifted_clock_can_be_moved_if_the_one_below_can() {
        let (clock, shift) = ShiftedClock::over(Box::new(AdvancedClock::default()));
        shift.set_micros(-1_000_000);
        let before = SystemClock.now_micros();
        assert!(clock.advance(60) && clock.advanced_seconds() == 60);
        assert!(clock.now_micros() >= before + 59_000_000);
        assert!(!ShiftedClock::over(Box::new(SystemClock)).0.advance(1));
    }
}
