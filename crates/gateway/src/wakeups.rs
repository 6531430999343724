//! Saves trips through the scheduler: a future that wakes itself while it is polled is polled again at once.
//!
//! In: a future that may call its waker while it is being polled. Out: the same future with fewer trips.
//! hyper wakes its own connection whenever a request's body is taken, although nothing is left to do. For the scheduler
//! that is a task to be run again, and it wakes another thread to help: two system calls and more time than a short request
//! takes. Polling once more right away costs a thousandth of a millisecond.
//! Invariant: no wake is lost. One that comes during a poll is followed by another poll; every other one goes on to the task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Polls in a row, so that a future that always wakes itself lets others run.
const POLLS_MAX: usize = 4;

const IDLE: u8 = 0;
const POLLING: u8 = 1;
/// Woken while polling.
const WOKEN: u8 = 2;

struct Relay {
    state: AtomicU8,
    task: Mutex<Waker>,
}

impl Relay {
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.clone_from(waker);
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Relay>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Relay>) {
        let noted = self.state.compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(IDLE) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
            task.wake();
        }
    }
}

/// The future's output; see the module.
pub(crate) async fn with_fewer_wakeups<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let relay = Arc::new(Relay { state: AtomicU8::new(IDLE), task: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&relay));
    poll_fn(move |context| {
        relay.set_task(context.waker());
        for _ in 0..POLLS_MAX {
            relay.state.store(POLLING, Ordering::Release);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if relay.state.swap(IDLE, Ordering::AcqRel) != WOKEN || polled.is_ready() {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Counter>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that wakes itself so many times and is ready after so many polls; gives the polls of the task that it
    /// took, and its wakes.
    fn check(self_wakes: usize, polls_needed: usize, expected: (usize, usize)) {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counter));
        let mut polls = 0;
        let inner = pin!(poll_fn(|context: &mut Context<'_>| {
            polls += 1;
            if polls <= self_wakes {
                context.waker().wake_by_ref();
            }
            if polls >= polls_needed { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut outer = pin!(with_fewer_wakeups(inner));
        let mut task_polls = 0;
        let mut woken = 0;
        loop {
            task_polls += 1;
            if outer.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                break;
            }
            let now = counter.0.load(Ordering::Relaxed);
            assert!(now > woken, "a future that waits has a wake to come");
            woken = now;
        }
        assert_eq!((task_polls, counter.0.load(Ordering::Relaxed)), expected);
    }

    #[test]
    fn wakes_during_a_poll_are_followed_by_a_poll() {
        check(0, 1, (1, 0));
        check(1, 2, (1, 0));
        check(3, 4, (1, 0));
        check(9, 10, (3, 2));
    }

    #[test]
    fn wakes_between_polls_go_to_the_task() {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counter));
        let kept: Mutex<Option<Waker>> = Mutex::new(None);
        let inner = pin!(poll_fn(|context: &mut Context<'_>| {
            *kept.lock().expect("no panic before") = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        let mut outer = pin!(with_fewer_wakeups(inner));
        assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        kept.lock().expect("no panic before").take().expect("it was polled").wake();
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
    }
}
