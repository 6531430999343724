//! Work beside requests: space of removed containers and indexes is freed, indexes of changed policies and damaged ones are
//! built, storage is watched and taken into use again when what it lacked is back.
//!
//! It has a thread of its own, so that a step never stands before requests in a worker's queue, and it rests after each
//! step: for several times as long as the step took while requests come, so that they have most of the machine. All of it
//! goes on after a restart. A panic in it is told, counted, and the work begun again.

use anyhow::Context as _;
use astrarium_gateway::Gateway;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two looks for something to free.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks for an index to build.
const BUILD_PAUSE: Duration = Duration::from_millis(250);
/// After a failure, which is mostly storage that takes no writes.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// Between two looks after storage.
const WATCH_PAUSE: Duration = Duration::from_secs(1);
/// Between two passes over all stored files, between two files at least, and how long a rest is in times of reading one.
const SCRUB_PAUSE: Duration = Duration::from_hours(12);
const SCRUB_PAUSE_MIN: Duration = Duration::from_millis(100);
const SCRUB_REST: f64 = 20.0;
/// After a panic.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// After each step at least.
const STEP_PAUSE_MIN: Duration = Duration::from_millis(1);
/// How long a rest is, in times of the step before it, while requests come and while none do.
const REST_BUSY: f64 = 3.0;
const REST_IDLE: f64 = 0.25;
/// Between two looks whether requests come, and how many in that time count as busy: more than somebody who only asks
/// how far an index is.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const BUSY_REQUESTS: u64 = 10;

/// The running work.
pub(crate) struct Background {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Background {
    pub(crate) fn start(gateway: Gateway) -> anyhow::Result<Background> {
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .context("start background work")?;
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || {
                let work = || work(gateway.clone());
                runtime.block_on(supervise(stopped, work, || gateway.count_background_failure()));
            })
            .context("start background work")?;
        Ok(Background { stop, thread })
    }

    /// Ends the work between two of its waits, and waits for that.
    pub(crate) fn stop(self) {
        // An error says that the thread has ended already.
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("background work has failed");
        }
    }
}

async fn work(gateway: Gateway) {
    tokio::join!(sweep(&gateway), build(&gateway), watch(&gateway), scrub(&gateway));
}

/// Does work until it is stopped. Work that ends in a panic is told of and begun again after a while.
async fn supervise<W: Future<Output = ()>>(
    mut stopped: oneshot::Receiver<()>,
    work: impl Fn() -> W,
    failed: impl Fn(),
) {
    loop {
        let work = CatchPanic(Box::pin(work()));
        let is_panic = tokio::select! {
            _ = &mut stopped => return,
            outcome = work => outcome.is_err(),
        };
        if !is_panic {
            return;
        }
        failed();
        tracing::error!("background work stopped because of an error of the program; it begins again");
        tokio::select! {
            _ = &mut stopped => return,
            () = tokio::time::sleep(RESTART_PAUSE) => {}
        }
    }
}

/// A future whose panic is an error.
struct CatchPanic<W>(Pin<Box<W>>);

impl<W: Future> Future for CatchPanic<W> {
    type Output = std::thread::Result<W::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = &mut self.0;
        // After a panic it is not polled again, so nobody sees what was left half done in it.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// Looks after storage: notices a folder that is gone, and opens it again when a want has passed.
async fn watch(gateway: &Gateway) {
    let mut refusal = None;
    loop {
        if let Err(error) = gateway.account().heal() {
            tracing::warn!(%error, "open storage again");
        }
        if let Err(error) = gateway.account().note_damage().await {
            tracing::warn!(%error, "tell whose data is damaged");
        }
        let health = gateway.account().health();
        if health.write_refusal != refusal {
            if let Some(reason) = &health.write_refusal {
                tracing::error!(reason, "writes are refused");
            } else {
                tracing::warn!("writes are taken again");
            }
            refusal = health.write_refusal;
        }
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

/// Reads stored files whole, slowly, so that damage is known before somebody needs what it hit.
async fn scrub(gateway: &Gateway) {
    tokio::time::sleep(SCRUB_PAUSE_MIN).await;
    loop {
        let began = Instant::now();
        let pause = if gateway.account().check_next_file() {
            began.elapsed().mul_f64(SCRUB_REST).max(SCRUB_PAUSE_MIN)
        } else {
            SCRUB_PAUSE
        };
        tokio::time::sleep(pause).await;
    }
}

async fn sweep(gateway: &Gateway) {
    let mut pace = Pace::new(gateway);
    loop {
        let began = Instant::now();
        let pause = match gateway.account().sweep().await {
            Ok(true) => pace.rest_after(began.elapsed()),
            Ok(false) => SWEEP_PAUSE,
            Err(error) => {
                tracing::warn!(%error, "free space of removed containers and indexes");
                FAILURE_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn build(gateway: &Gateway) {
    let mut pace = Pace::new(gateway);
    loop {
        let began = Instant::now();
        let pause = match gateway.account().build_indexes().await {
            Ok(true) => pace.rest_after(began.elapsed()),
            Ok(false) => BUILD_PAUSE,
            Err(error) => {
                tracing::warn!(%error, "build indexes of changed policies");
                FAILURE_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// How fast one kind of work goes.
struct Pace<'a> {
    gateway: &'a Gateway,
    is_busy: bool,
    /// When somebody last looked how many requests were answered, and how many they were.
    looked: (Instant, u64),
}

impl Pace<'_> {
    fn new(gateway: &Gateway) -> Pace<'_> {
        Pace { gateway, is_busy: true, looked: (Instant::now(), gateway.request_count()) }
    }

    fn rest_after(&mut self, elapsed: Duration) -> Duration {
        let (looked, before) = self.looked;
        if looked.elapsed() >= LOOK_INTERVAL {
            let count = self.gateway.request_count();
            self.is_busy = count - before >= BUSY_REQUESTS;
            self.looked = (Instant::now(), count);
        }
        elapsed.mul_f64(if self.is_busy { REST_BUSY } else { REST_IDLE }).max(STEP_PAUSE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn work_that_panics_is_begun_again() {
        let (begun, failed) = (Cell::new(0), Cell::new(0));
        let (stop, stopped) = oneshot::channel();
        let stop = Cell::new(Some(stop));
        let work = || {
            begun.set(begun.get() + 1);
            let number = begun.get();
            let stop = if number == 4 { stop.take() } else { None };
            let keep = &failed;
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if let Some(stop) = stop {
                    let _ = stop.send(());
                    std::future::pending::<()>().await;
                }
                assert!(number > 3, "the work of round {number} fails, after {}", keep.get());
            }
        };
        supervise(stopped, work, || failed.set(failed.get() + 1)).await;
        assert_eq!((begun.get(), failed.get()), (4, 3));
    }
}
