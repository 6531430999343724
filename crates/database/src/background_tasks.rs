//! Work beside requests, as steps: space of removed containers and indexes is freed, indexes of changed policies and damaged
//! ones are built, changes that are older than their retention are removed, documents that have expired or were deleted with their partition are erased, key ranges are split, merged and moved, storage is watched and taken into use again when what it
//! lacked is back, stored files are read for damage, changes of throughput through other processes are taken note of.
//!
//! In: the handle for maintenance, and how many requests were answered so far. Out: [`BackgroundTask`]s, each a step at
//! a time. After a step one rests: for several times as long as the step took while requests come, so that they have most of the machine. Whoever
//! runs them decides where: the server on a thread of its own, a simulator between requests.
//! Invariants
//! - All of it goes on after a restart, and after a step that was cut short anywhere.
//! - A task keeps nothing that storage does not know but its pace and what it has said in the log.
//!
//! Not here: threads, and beginning again after a panic (`server`).

use crate::MaintenanceHandle;
use astrarium_env::{Instant, sleep};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks for something to free.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks for changes that need not be kept any more.
const TRIM_PAUSE: Duration = Duration::from_mins(1);
/// Between two looks for documents that have expired.
const EXPIRE_PAUSE: Duration = Duration::from_secs(1);
/// Between two looks for deleted partitions.
const ERASE_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks for an index to build, or for ranges to split.
const BUILD_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks for places that are to be emptied.
const DRAIN_PAUSE: Duration = Duration::from_secs(5);
/// After a failure, which is mostly storage that takes no writes.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// Between two looks whether another process has changed an offer.
const FOLLOW_PAUSE: Duration = Duration::from_millis(500);
/// Between two looks after storage.
const WATCH_PAUSE: Duration = Duration::from_secs(1);
/// Between two passes over all stored files, between two files at least, and how long a rest is in times of reading one.
const SCRUB_PAUSE: Duration = Duration::from_hours(12);
const SCRUB_PAUSE_MIN: Duration = Duration::from_millis(100);
const SCRUB_REST: f64 = 20.0;
/// After each step at least.
const STEP_PAUSE_MIN: Duration = Duration::from_millis(1);
/// How long a rest is, in times of the step before it, while requests come and while none do.
const REST_BUSY: f64 = 3.0;
const REST_IDLE: f64 = 0.25;
/// Between two looks whether requests come, and how many in that time count as busy: more than somebody who only asks
/// how far an index is.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const BUSY_REQUESTS: u64 = 10;

/// Tells how many requests were answered so far.
pub type RequestCount = Arc<dyn Fn() -> u64 + Send + Sync>;

/// One kind of work beside requests.
pub struct BackgroundTask {
    maintenance: MaintenanceHandle,
    kind: TaskKind,
    pace: Pace,
}

enum TaskKind {
    Sweep,
    Build,
    Trim,
    Expire,
    Erase,
    Reshard,
    Drain,
    /// Goes by what other processes have changed of the throughput of containers.
    Follow,
    /// Knows why writes were refused when it last looked.
    Watch(Option<String>),
    Scrub,
}

impl BackgroundTask {
    /// All work there is, for one who does it once.
    pub fn all(maintenance: &MaintenanceHandle, requests: &RequestCount) -> Vec<BackgroundTask> {
        let kinds = [
            TaskKind::Sweep,
            TaskKind::Build,
            TaskKind::Trim,
            TaskKind::Expire,
            TaskKind::Erase,
            TaskKind::Reshard,
            TaskKind::Drain,
            TaskKind::Follow,
            TaskKind::Watch(None),
            TaskKind::Scrub,
        ];
        let task = |kind| BackgroundTask {
            maintenance: maintenance.clone(),
            kind,
            pace: Pace::new(Arc::clone(requests)),
        };
        kinds.into_iter().map(task).collect()
    }

    /// Does steps, for ever.
    pub async fn run(&mut self) {
        if matches!(self.kind, TaskKind::Scrub) {
            sleep(SCRUB_PAUSE_MIN).await;
        }
        loop {
            sleep(self.step().await).await;
        }
    }

    /// Does one step, and tells how long to rest before the next.
    pub async fn step(&mut self) -> Duration {
        let began = Instant::now();
        let (done, pause) = match &mut self.kind {
            TaskKind::Sweep => (
                told(self.maintenance.sweep().await, "free space of removed containers and indexes"),
                SWEEP_PAUSE,
            ),
            TaskKind::Build => (
                told(self.maintenance.build_indexes().await, "build indexes of changed policies"),
                BUILD_PAUSE,
            ),
            TaskKind::Trim => (
                told(self.maintenance.trim_histories().await, "remove old changes of containers"),
                TRIM_PAUSE,
            ),
            TaskKind::Expire => (
                told(self.maintenance.erase_expired().await, "erase documents that have expired"),
                EXPIRE_PAUSE,
            ),
            TaskKind::Erase => (
                told(self.maintenance.erase_deleted().await, "erase documents of deleted partitions"),
                ERASE_PAUSE,
            ),
            TaskKind::Reshard => {
                (told(self.maintenance.reshard().await, "split, merge or move key ranges"), BUILD_PAUSE)
            }
            TaskKind::Drain => (told(self.maintenance.drain().await, "empty a place"), DRAIN_PAUSE),
            TaskKind::Follow => {
                if self.maintenance.is_shared() {
                    told(self.maintenance.follow_offers().await, "read the throughput of containers");
                }
                return FOLLOW_PAUSE;
            }
            TaskKind::Watch(refusal) => {
                watch(&self.maintenance, refusal).await;
                return WATCH_PAUSE;
            }
            TaskKind::Scrub if self.maintenance.check_next_file() => {
                return began.elapsed().mul_f64(SCRUB_REST).max(SCRUB_PAUSE_MIN);
            }
            TaskKind::Scrub => return SCRUB_PAUSE,
        };
        match done {
            Some(true) => self.pace.rest_after(began.elapsed()),
            Some(false) => pause,
            None => FAILURE_PAUSE,
        }
    }
}

/// Whether a step found something to do; nothing if it failed, which goes to the log.
fn told(result: Result<bool, crate::Error>, what: &'static str) -> Option<bool> {
    result.inspect_err(|error| tracing::warn!(%error, "{what}")).ok()
}

/// Looks after storage: notices a folder that is gone, and opens it again when a want has passed.
async fn watch(maintenance: &MaintenanceHandle, refusal: &mut Option<String>) {
    if let Err(error) = maintenance.heal() {
        tracing::warn!(%error, "open storage again");
    }
    if let Err(error) = maintenance.note_damage().await {
        tracing::warn!(%error, "tell whose data is damaged");
    }
    let health = maintenance.monitoring().health();
    if health.write_refusal != *refusal {
        if let Some(reason) = &health.write_refusal {
            tracing::error!(reason, "writes are refused");
        } else {
            tracing::warn!("writes are taken again");
        }
        *refusal = health.write_refusal;
    }
}

/// How fast one kind of work goes.
struct Pace {
    requests: RequestCount,
    is_busy: bool,
    /// When somebody last looked how many requests were answered, and how many they were.
    looked: (Instant, u64),
}

impl Pace {
    fn new(requests: RequestCount) -> Pace {
        let looked = (Instant::now(), requests());
        Pace { requests, is_busy: true, looked }
    }

    fn rest_after(&mut self, elapsed: Duration) -> Duration {
        let (looked, before) = self.looked;
        if looked.elapsed() >= LOOK_INTERVAL {
            let count = (self.requests)();
            self.is_busy = count - before >= BUSY_REQUESTS;
            self.looked = (Instant::now(), count);
        }
        elapsed.mul_f64(if self.is_busy { REST_BUSY } else { REST_IDLE }).max(STEP_PAUSE_MIN)
    }
}
