//! Runs the work beside requests (`database::BackgroundTask`) on a thread of its own, so that a step never stands before requests in a
//! worker's queue. A panic in it is told, counted, and the work begun again.

use anyhow::Context as _;
use astrarium_database::{BackgroundTask, MaintenanceHandle, RequestCount};
use astrarium_gateway::Gateway;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// After a panic.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The running work.
pub(crate) struct BackgroundThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl BackgroundThread {
    pub(crate) fn start(
        gateway: Gateway,
        maintenance: MaintenanceHandle,
    ) -> anyhow::Result<BackgroundThread> {
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .context("start background work")?;
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || {
                astrarium_env::allow_blocking();
                let work = || work(gateway.clone(), maintenance.clone());
                runtime.block_on(supervise(stopped, work, || gateway.count_background_failure()));
            })
            .context("start background work")?;
        Ok(BackgroundThread { stop, thread })
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

async fn work(gateway: Gateway, maintenance: MaintenanceHandle) {
    let requests: RequestCount = Arc::new(move || gateway.request_count());
    let mut tasks = BackgroundTask::all(&maintenance, &requests);
    let mut running: Vec<_> = tasks.iter_mut().map(|task| Box::pin(task.run())).collect();
    std::future::poll_fn(|context| {
        for task in &mut running {
            if task.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
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
