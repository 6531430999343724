//! Giving the thread to other tasks in the middle of a long one.
//!
//! In: [`yield_if_due`], called between the small steps of a loop that may make many. Out: after about a millisecond of them the
//! task lets the others of its thread go first. The time is the thread's, not the task's: whoever comes to such a place on a
//! thread that has not changed its task for long gives way, whoever made the steps before.
//! Reads that are answered from memory are ready at once, so awaiting them never lets anybody else run: loops over them need this.
//! Invariants
//! - Threads that serve no requests ([`crate::may_block`]) never give way: nobody waits behind them.
//! - In a simulation nobody gives way here, so that a run can be repeated: its storage has tasks pause at every read anyway.

use crate::time::is_simulated;
use crate::{Instant, may_block};
use std::cell::Cell;
use std::time::Duration;

/// How long a task may go on while others wait for its thread.
const SLICE: Duration = Duration::from_millis(1);

thread_local! {
    /// When this thread last changed its task here.
    static CHANGED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lets other tasks run if that is due.
pub async fn yield_if_due() {
    if !is_due() {
        return;
    }
    tokio::task::yield_now().await;
    // It may go on at another thread.
    CHANGED.set(Some(Instant::now()));
}

/// Whether this thread has done one thing for long.
fn is_due() -> bool {
    if may_block() || is_simulated() {
        return false;
    }
    let now = Instant::now();
    let is_due = CHANGED.get().is_none_or(|changed| now.saturating_duration_since(changed) >= SLICE);
    if is_due {
        CHANGED.set(Some(now));
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn pauses(work: impl Future<Output = ()>) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        let mut work = pin!(work);
        let mut pauses = 0;
        while work.as_mut().poll(&mut context) == Poll::Pending {
            pauses += 1;
        }
        pauses
    }

    async fn steps(time: Duration) {
        let begun = std::time::Instant::now();
        while begun.elapsed() < time {
            yield_if_due().await;
        }
    }

    #[test]
    fn long_work_pauses_about_every_slice() {
        let pauses = pauses(steps(SLICE * 20));
        assert!((5..=22).contains(&pauses), "{pauses}");
    }

    #[test]
    fn short_work_pauses_once_at_most() {
        let pauses = pauses(async {
            for _ in 0..10 {
                yield_if_due().await;
            }
        });
        assert!(pauses <= 2, "{pauses}");
    }

    #[test]
    fn a_thread_that_may_block_goes_on() {
        let pauses = std::thread::spawn(|| {
            crate::allow_blocking();
            pauses(steps(SLICE * 5))
        });
        assert_eq!(pauses.join().unwrap(), 0);
    }
}
