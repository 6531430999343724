//! How far a piece of work may go: steps are counted where they are made, and now and then somebody looks at the clock,
//! at whether the client is still there, and at whether others wait for the processor.
//!
//! In: a [`Work`] for the whole of it, shared by its threads, and a [`Meter`] in force on each of them while it is at it.
//! Out: [`charge`] is an error once it has to end, and from then on always.
//! The meter belongs to the thread, not to the arguments, because what has to be counted is at the bottom: a comparison of
//! two shapes, a step along an index, a call of a function. Whoever loops there over what a client can size says so with one
//! line, and nobody above has to hand anything down.
//! Invariants
//! - A step is about ten nanoseconds. Loops over what a client can size charge for what they touch, so that no more than
//!   some ten thousand steps pass between two looks.
//! - Time is measured by a clock that nobody can set.
//! - Where no meter is in force nothing is counted and nothing ends.
//! - A part of work ([`Work::part`]) can be cancelled by itself. So what ends an attempt, or some threads of it, does not end what is
//!   tried afterwards.

use crate::Instant;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Steps between two looks.
const STEPS_PER_LOOK: u64 = 4_096;

/// Why work has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Its time is over.
    Late,
    /// Nobody waits for it any more.
    Cancelled,
    /// It made more steps than it was given; with more it could go on.
    StepsSpent,
    /// The server has no memory left for it; later there may be some.
    NoMemory,
    /// A part of it that cannot be interrupted would take too long; the text says which and what to do.
    Refused(&'static str),
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Stopped::Late => "its time is over",
            Stopped::Cancelled => "nobody waits for it any more",
            Stopped::StepsSpent => "it takes more steps than it was given",
            Stopped::NoMemory => "there is no memory left for it",
            Stopped::Refused(why) => why,
        })
    }
}

impl std::error::Error for Stopped {}

/// A piece of work, shared by all threads that do it.
#[derive(Debug)]
pub struct Work {
    began: Instant,
    time_max: Duration,
    stopped: AtomicU8,
    /// What it is a part of.
    whole: Option<Arc<Work>>,
}

const GOING: u8 = 0;
const LATE: u8 = 1;
const CANCELLED: u8 = 2;

impl Work {
    /// Work that begins now and may take so long.
    pub fn new(time_max: Duration) -> Work {
        Work { began: Instant::now(), time_max, stopped: AtomicU8::new(GOING), whole: None }
    }

    /// A part of this work, under way for as long as the whole: it ends with the whole, which goes on when the part is cancelled.
    pub fn part(self: &Arc<Work>) -> Arc<Work> {
        let (began, time_max, whole) = (self.began, self.time_max, Some(Arc::clone(self)));
        Arc::new(Work { began, time_max, stopped: AtomicU8::new(GOING), whole })
    }

    /// How long it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Has all its threads end at their next look, because nobody waits for it any more.
    pub fn cancel(&self) {
        self.stop(CANCELLED);
    }

    fn stop(&self, code: u8) {
        // The first reason is the one that counts.
        let _ = self.stopped.compare_exchange(GOING, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether it has to end.
    pub fn stopped(&self) -> Option<Stopped> {
        match self.stopped.load(Ordering::Relaxed) {
            GOING => self.whole.as_ref().and_then(|whole| whole.stopped()),
            LATE => Some(Stopped::Late),
            _ => Some(Stopped::Cancelled),
        }
    }
}

/// Lets others have the processor that this thread works on.
pub trait Turn: Send + Sync {
    /// Called at every look; returns when this thread may go on.
    fn give_way(&self);
}

/// Counts the steps of one thread.
pub struct Meter {
    work: Arc<Work>,
    turn: Option<Arc<dyn Turn>>,
    /// Steps that may still be made.
    steps_left: u64,
}

/// What is counted on this thread.
struct Local {
    since_look: Cell<u64>,
    stopped: Cell<Option<Stopped>>,
    meter: RefCell<Option<Meter>>,
}

thread_local! {
    static LOCAL: Local =
        const { Local { since_look: Cell::new(0), stopped: Cell::new(None), meter: RefCell::new(None) } };
}

/// Counts steps of the work that this thread is at; an error once it has to end.
#[inline]
pub fn charge(steps: u64) -> Result<(), Stopped> {
    LOCAL.with(|local| {
        let since = local.since_look.get().saturating_add(steps);
        local.since_look.set(since);
        if since >= STEPS_PER_LOOK {
            return local.look();
        }
        local.stopped.get().map_or(Ok(()), Err)
    })
}

/// An error if the work that this thread is at has been found to have to end: for those whose callees could not say so.
#[inline]
pub fn check() -> Result<(), Stopped> {
    LOCAL.with(|local| local.stopped.get().map_or(Ok(()), Err))
}

/// Ends the work that this thread is at, before a part of it that could not be ended on the way.
pub fn refuse(why: &'static str) {
    LOCAL.with(|local| {
        if local.meter.borrow().is_some() && local.stopped.get().is_none() {
            local.stopped.set(Some(Stopped::Refused(why)));
        }
    });
}

impl Local {
    #[cold]
    fn look(&self) -> Result<(), Stopped> {
        let spent = self.since_look.replace(0);
        let mut meter = self.meter.borrow_mut();
        let Some(meter) = &mut *meter else { return Ok(()) };
        if let Some(stopped) = self.stopped.get() {
            return Err(stopped);
        }
        let outcome = meter.look(spent);
        self.stopped.set(outcome.err());
        outcome
    }

    fn exchange(&self, meter: Option<Meter>) -> Option<Meter> {
        let mut spent = self.since_look.replace(0);
        self.stopped.set(None);
        let mut before = self.meter.replace(meter);
        if let Some(before) = &mut before {
            spent = spent.min(before.steps_left);
            before.steps_left -= spent;
        }
        before
    }
}

impl Meter {
    /// A meter of a thread that gives way to others at its looks.
    pub fn new(work: Arc<Work>, turn: Option<Arc<dyn Turn>>) -> Meter {
        Meter { work, turn, steps_left: u64::MAX }
    }

    /// A meter that stops after so many steps; with another one the work could go on.
    pub fn with_steps(work: Arc<Work>, steps_max: u64) -> Meter {
        Meter { work, turn: None, steps_left: steps_max }
    }

    fn look(&mut self, spent: u64) -> Result<(), Stopped> {
        let work = &self.work;
        if spent > self.steps_left {
            self.steps_left = 0;
            return Err(Stopped::StepsSpent);
        }
        self.steps_left -= spent;
        if work.elapsed() >= work.time_max {
            work.stop(LATE);
        }
        work.stopped().map_or(Ok(()), Err)?;
        if let Some(turn) = &self.turn {
            turn.give_way();
        }
        Ok(())
    }

    /// Does something with this meter in force.
    pub fn scope<T>(self, work: impl FnOnce() -> T) -> T {
        let mut own = Some(self);
        let _scope = MeterScope::enter(&mut own);
        work()
    }

    /// A future that has this meter in force whenever it is polled.
    pub fn run<F: Future>(self, future: F) -> Metered<F> {
        Metered { future: Box::pin(future), meter: Some(self) }
    }
}

/// A meter in force; what was before comes back when this is dropped.
struct MeterScope<'a> {
    own: &'a mut Option<Meter>,
    before: Option<Meter>,
}

impl MeterScope<'_> {
    fn enter(own: &mut Option<Meter>) -> MeterScope<'_> {
        let before = LOCAL.with(|local| local.exchange(own.take()));
        MeterScope { own, before }
    }
}

impl Drop for MeterScope<'_> {
    fn drop(&mut self) {
        let before = self.before.take();
        *self.own = LOCAL.with(|local| local.exchange(before));
    }
}

/// A future during whose polls the meter in force is one of a part of its work: steps are counted as before, and cancelling the
/// part ends the future and not what comes after it.
pub async fn within<F: Future>(part: Arc<Work>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _scope = PartScope::enter(Arc::clone(&part));
        future.as_mut().poll(context)
    })
    .await
}

/// A part of the work of the meter in force; the whole comes back when this is dropped.
struct PartScope {
    whole: Option<Arc<Work>>,
    stopped: Option<Stopped>,
}

impl PartScope {
    fn enter(part: Arc<Work>) -> PartScope {
        LOCAL.with(|local| {
            let mut meter = local.meter.borrow_mut();
            let whole = meter.as_mut().map(|meter| std::mem::replace(&mut meter.work, part));
            PartScope { whole, stopped: local.stopped.get() }
        })
    }
}

impl Drop for PartScope {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            if let (Some(meter), Some(whole)) = (&mut *local.meter.borrow_mut(), self.whole.take()) {
                meter.work = whole;
            }
            // The next look finds out whether the whole has to end too.
            if matches!(local.stopped.get(), Some(Stopped::Cancelled | Stopped::Late)) {
                local.stopped.set(self.stopped);
            }
        });
    }
}

/// See [`Meter::run`].
pub struct Metered<F> {
    future: Pin<Box<F>>,
    meter: Option<Meter>,
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Metered<F>>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _scope = MeterScope::enter(&mut this.meter);
        this.future.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(time_max: Duration) -> Arc<Work> {
        Arc::new(Work::new(time_max))
    }

    #[test]
    fn work_ends_when_its_time_is_over_and_stays_ended() {
        let work = work(Duration::ZERO);
        Meter::new(Arc::clone(&work), None).scope(|| {
            assert_eq!(charge(1), Ok(()), "a look is not taken at every step");
            assert_eq!(charge(STEPS_PER_LOOK), Err(Stopped::Late));
            assert_eq!((charge(1), check()), (Err(Stopped::Late), Err(Stopped::Late)));
        });
        assert_eq!(work.stopped(), Some(Stopped::Late));
        assert_eq!((charge(STEPS_PER_LOOK), check()), (Ok(()), Ok(())), "nothing is in force any more");
    }

    #[test]
    fn all_threads_of_cancelled_work_end() {
        let work = work(Duration::from_mins(1));
        work.cancel();
        for _ in 0..2 {
            let meter = Meter::new(Arc::clone(&work), None);
            assert_eq!(meter.scope(|| charge(STEPS_PER_LOOK)), Err(Stopped::Cancelled));
        }
    }

    #[test]
    fn a_part_ends_by_itself_and_with_the_whole() {
        let whole = work(Duration::from_mins(1));
        let [one, other] = [whole.part(), whole.part()];
        let looked = |part: &Arc<Work>| {
            let mut future = Box::pin(within(Arc::clone(part), async { charge(STEPS_PER_LOOK) }));
            match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => panic!("it waits for nothing"),
            }
        };
        Meter::with_steps(Arc::clone(&whole), 10 * STEPS_PER_LOOK).scope(|| {
            one.cancel();
            assert_eq!(looked(&one), Err(Stopped::Cancelled));
            assert_eq!((check(), charge(STEPS_PER_LOOK)), (Ok(()), Ok(())), "the whole goes on");
            assert_eq!(looked(&other), Ok(()), "and so do other parts");
            for _ in 0..7 {
                assert_eq!(looked(&other), Ok(()), "steps are counted as before");
            }
            assert_eq!(looked(&other), Err(Stopped::StepsSpent));
            assert_eq!(charge(1), Err(Stopped::StepsSpent));
        });
        assert_eq!((whole.stopped(), other.stopped()), (None, None));
        whole.cancel();
        assert_eq!(other.stopped(), Some(Stopped::Cancelled));
        Meter::new(Arc::clone(&whole), None).scope(|| {
            assert_eq!(looked(&other), Err(Stopped::Cancelled));
            assert_eq!(charge(STEPS_PER_LOOK), Err(Stopped::Cancelled));
        });
        assert_eq!(looked(&one), Ok(()), "nothing is in force any more");
    }

    #[test]
    fn steps_run_out_without_ending_the_work() {
        let work = work(Duration::from_mins(1));
        Meter::with_steps(Arc::clone(&work), 10_000).scope(|| {
            assert_eq!(charge(6_000), Ok(()));
            assert_eq!(charge(6_000), Err(Stopped::StepsSpent));
        });
        assert_eq!(work.stopped(), None, "with another meter it may go on");
        assert_eq!(Meter::with_steps(work, 10_000).scope(|| charge(u64::MAX)), Err(Stopped::StepsSpent));
    }

    #[test]
    fn meters_nest() {
        let outer = Meter::with_steps(work(Duration::from_mins(1)), 10_000);
        outer.scope(|| {
            let inner = Meter::with_steps(work(Duration::from_mins(1)), 5_000);
            assert_eq!(inner.scope(|| charge(6_000)), Err(Stopped::StepsSpent));
            assert_eq!(charge(6_000), Ok(()));
            assert_eq!(charge(6_000), Err(Stopped::StepsSpent));
        });
    }

    #[test]
    fn a_future_has_its_meter_wherever_it_is_polled() {
        let meter = Meter::with_steps(work(Duration::from_mins(1)), 10_000);
        let mut polls = 0;
        let future = std::future::poll_fn(|_| {
            polls += 1;
            let charged = charge(6_000);
            if polls == 1 {
                assert_eq!(charged, Ok(()));
                return Poll::Pending;
            }
            Poll::Ready(charged)
        });
        let mut future = Box::pin(meter.run(future));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(charge(STEPS_PER_LOOK), Ok(()), "between polls it is not in force");
        assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(Err(Stopped::StepsSpent)));
    }
}
