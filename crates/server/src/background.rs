//! Work beside requests: space of removed containers and indexes is freed, indexes of changed policies are built.
//!
//! It has a thread of its own, so that a step never stands before requests in a worker's queue, and it rests after each
//! step: for several times as long as the step took while requests come, so that they have most of the machine. All of it
//! goes on after a restart.

use anyhow::Context as _;
use astrarium_gateway::Gateway;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two looks for something to free.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks for an index to build.
const BUILD_PAUSE: Duration = Duration::from_millis(250);
/// After a failure, which is mostly storage that takes no writes.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
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
        let work = async move {
            tokio::select! {
                _ = stopped => {}
                () = sweep(&gateway) => {}
                () = build(&gateway) => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || runtime.block_on(work))
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
