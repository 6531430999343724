//! Time that passes: a clock that nobody sets, and waiting.
//!
//! In: nothing, or a [`Timeline`] that a simulator has put in force on its thread. Out: an [`Instant`], used like the standard
//! library's, and [`sleep`] and [`timeout`]. Both belong to the thread, not to the arguments, as the meter of `work` does:
//! what measures is at the bottom, and nobody above should have to hand a clock down for it.
//! Invariants
//! - Without a timeline this is the machine's monotonic clock and tokio's timers.
//! - With one, everything on its thread sees its time only, so a run that it drives can be repeated.
//!
//! Not here: the time of day, which can be set ([`crate::Clock`]).

use std::cell::RefCell;
use std::future::Future;
use std::ops::Add;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

/// A moment, good for nothing but how far it is from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Since the timeline's beginning.
    since: Duration,
}

/// Time as somebody else tells it: a simulator.
pub trait Timeline {
    /// The present, from any beginning; it never goes back.
    fn now(&self) -> Duration;

    /// Done when so much time has passed.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

thread_local! {
    static TIMELINE: RefCell<Option<Arc<dyn Timeline>>> = const { RefCell::new(None) };
}

static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();

fn origin() -> std::time::Instant {
    *ORIGIN.get_or_init(std::time::Instant::now)
}

/// Does something during which a timeline is this thread's.
pub fn with_timeline<T>(timeline: Arc<dyn Timeline>, work: impl FnOnce() -> T) -> T {
    let before = TIMELINE.replace(Some(timeline));
    let _restored = TimelineGuard(before);
    work()
}

/// Puts back what was in force before.
struct TimelineGuard(Option<Arc<dyn Timeline>>);

impl Drop for TimelineGuard {
    fn drop(&mut self) {
        TIMELINE.set(self.0.take());
    }
}

/// Whether this thread has the time of a simulator.
pub(crate) fn is_simulated() -> bool {
    TIMELINE.with_borrow(Option::is_some)
}

/// Waits.
pub async fn sleep(time: Duration) {
    let simulated = TIMELINE.with_borrow(|timeline| timeline.as_ref().map(|timeline| timeline.sleep(time)));
    match simulated {
        Some(sleep) => sleep.await,
        None => tokio::time::sleep(time).await,
    }
}

/// What a future gives, or nothing if it takes longer than the time given.
pub async fn timeout<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    Timeout { future: Box::pin(future), sleep: Box::pin(sleep(time)) }.await
}

struct Timeout<F: Future, S> {
    future: Pin<Box<F>>,
    sleep: Pin<Box<S>>,
}

impl<F: Future, S: Future<Output = ()>> Future for Timeout<F, S> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        self.sleep.as_mut().poll(context).map(|()| None)
    }
}

impl Instant {
    /// The present.
    pub fn now() -> Instant {
        let simulated = TIMELINE.with_borrow(|timeline| timeline.as_ref().map(|timeline| timeline.now()));
        Instant { since: simulated.unwrap_or_else(|| origin().elapsed()) }
    }

    /// How long ago it was.
    pub fn elapsed(self) -> Duration {
        Instant::now().saturating_duration_since(self)
    }

    /// How long after another it was; nothing if it was before.
    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        self.since.saturating_sub(earlier.since)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        Instant { since: self.since + time }
    }
}

impl From<std::time::Instant> for Instant {
    /// A moment of the machine's clock.
    fn from(instant: std::time::Instant) -> Instant {
        Instant { since: instant.saturating_duration_since(origin()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Counted(AtomicU64);

    impl Timeline for Counted {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }

        fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            self.0.fetch_add(time.as_secs(), Ordering::Relaxed);
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn a_timeline_is_all_the_time_its_thread_knows() {
        let timeline = Arc::new(Counted(AtomicU64::new(100)));
        let outside = Instant::now();
        with_timeline(timeline, || {
            let began = Instant::now();
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert!(Box::pin(sleep(Duration::from_secs(5))).as_mut().poll(&mut context).is_ready());
            assert_eq!(began.elapsed(), Duration::from_secs(5));
            let never = std::future::pending::<()>();
            let poll = Box::pin(timeout(Duration::from_secs(2), never)).as_mut().poll(&mut context);
            assert_eq!(poll, Poll::Ready(None));
            assert_eq!(began.elapsed(), Duration::from_secs(7));
        });
        assert!(outside.elapsed() < Duration::from_secs(100), "the machine's clock is back");
    }
}
