//! The threads that queries run on, beside those that answer requests.
//!
//! In: pages, each from a client and with the time it may take. Out: their results. A page is admitted, gets a thread, and
//! takes turns on it with the other pages: there are as many turns at once as the machine has cores, and whoever has had one
//! for a few milliseconds while others wait passes it on to the client that has had the least of them.
//! Invariants
//! - A page that never ends holds up nobody for longer than a few turns, however many of them there are: threads wait, and
//!   the system's scheduler knows of no more than the cores have to do.
//! - Pages admitted, pages waiting and threads are bounded; one too many is refused.
//! - A page whose future is dropped ends at its next look at the meter.
//! - Threads can be done without ([`crate::Resources::inline_queries`]): answers are the same, and nothing runs beside the caller.
//!
//! Not here: how much work a page has done (`env::charge` counts that where it is done), scripts (they have threads or
//! processes of their own).

mod admission;
mod threads;
mod turns;

use crate::Error;
use admission::Admissions;
use astrarium_env::{Meter, Work};
use astrarium_sql_exec::{Alone, HelperTask, Helpers, Team};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use threads::{Latch, Threads};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use turns::{Seat, Sitting, Turns};

/// Pages under way at once.
const PAGES_MAX: usize = 256;
/// Of them, those of one client.
const PAGES_PER_CLIENT_MAX: usize = 16;
/// Pages that wait to be admitted.
const WAITING_MAX: usize = 2_000;

/// Who asks for a page: a connection, mostly. Clients share the processor evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ClientId(u64);

/// What the threads are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerUsage {
    /// Pages admitted.
    pub pages: usize,
    /// Pages that wait to be admitted.
    pub waiting: usize,
    /// Pages refused since the start because too many waited.
    pub refused: u64,
}

/// The threads of an account. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Workers {
    shared: Arc<WorkersShared>,
}

struct WorkersShared {
    /// The last number given to a page that belongs to no client.
    nobody: AtomicU64,
    /// Whether there are no threads, and pages run where they are awaited.
    inline: bool,
    admissions: Arc<Admissions>,
    turns: Arc<Turns>,
    threads: Arc<Threads>,
}

impl WorkersShared {
    fn client(&self, number: u64) -> ClientId {
        ClientId(if number == 0 { self.nobody.fetch_add(1, Ordering::Relaxed) } else { number })
    }
}

type PageFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Workers {
    /// Threads that call `prepare` before they begin, or none.
    pub(crate) fn new(prepare: fn(), inline: bool) -> Workers {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = WorkersShared {
            nobody: AtomicU64::new(u64::MAX / 2),
            inline,
            admissions: Arc::new(Admissions::new(PAGES_MAX, PAGES_PER_CLIENT_MAX, WAITING_MAX)),
            turns: Arc::new(Turns::new(cores.max(2))),
            threads: Arc::new(Threads::new(prepare)),
        };
        Workers { shared: Arc::new(shared) }
    }

    pub(crate) fn usage(&self) -> WorkerUsage {
        self.shared.admissions.usage()
    }

    /// Runs a page on a thread. The page is made there, and told who can help.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: u64,
        work: &Arc<Work>,
        page: impl FnOnce(Arc<dyn Helpers>) -> PageFuture<T> + Send + 'static,
    ) -> Result<T, Error> {
        let unwanted = CancelOnDrop::new(work);
        let client = self.shared.client(client);
        let admission = self.shared.admissions.admit(client).await.ok_or_else(too_many)?;
        if self.shared.inline {
            let result = Meter::new(Arc::clone(work), None).run(page(Arc::new(Alone))).await;
            unwanted.disarm();
            return Ok(result);
        }
        let (sender, receiver) = oneshot::channel();
        let (shared, work, handle) = (Arc::clone(&self.shared), Arc::clone(work), Handle::current());
        self.shared.threads.start(Box::new(move || {
            let seat = shared.turns.wait(client);
            let helpers = Arc::new(Crew {
                shared: Arc::clone(&shared),
                client,
                seat: Arc::clone(&seat),
                work: Arc::clone(&work),
                handle: handle.clone(),
            });
            let meter = Meter::new(work, Some(Arc::new(Sitting(Arc::clone(&seat)))));
            let result = catch_unwind(AssertUnwindSafe(|| handle.block_on(meter.run(page(helpers)))));
            seat.leave();
            drop(admission);
            // If nobody waits for it any more, it is dropped.
            let _ = sender.send(result);
        }));
        let result = receiver.await;
        unwanted.disarm();
        match result {
            Ok(Ok(result)) => Ok(result),
            // The panic itself was reported when it happened.
            Ok(Err(_)) => Err(Error::Bug("a query failed unexpectedly".to_owned())),
            Err(_) => Err(too_many()),
        }
    }
}

fn too_many() -> Error {
    Error::Overloaded("Too many queries are waiting. Retry after a moment, or send fewer at once.".to_owned())
}

/// Ends work that nobody waits for any more: the client has hung up.
pub(crate) struct CancelOnDrop {
    work: Option<Arc<Work>>,
}

impl CancelOnDrop {
    pub(crate) fn new(work: &Arc<Work>) -> CancelOnDrop {
        CancelOnDrop { work: Some(Arc::clone(work)) }
    }

    /// The work is done.
    pub(crate) fn disarm(mut self) {
        self.work = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(work) = &self.work {
            work.cancel();
        }
    }
}

/// The threads that can help one page: those whose turn nobody else wants.
struct Crew {
    shared: Arc<WorkersShared>,
    client: ClientId,
    seat: Arc<Seat>,
    work: Arc<Work>,
    handle: Handle,
}

impl Helpers for Crew {
    fn count_max(&self) -> usize {
        self.shared.turns.count() - 1
    }

    fn start(&self, tasks: Vec<HelperTask>) -> Box<dyn Team> {
        let latch = Arc::new(Latch::default());
        for task in tasks {
            let Some(seat) = self.shared.turns.take_free(self.client) else { break };
            let mut helper = Helper { seat, latch: latch.begin(), is_good: true };
            let (work, handle) = (Arc::clone(&self.work), self.handle.clone());
            self.shared.threads.start(Box::new(move || {
                helper.seat.sit();
                let meter = Meter::new(work, Some(Arc::new(Sitting(Arc::clone(&helper.seat)))));
                let result = catch_unwind(AssertUnwindSafe(|| handle.block_on(meter.run(task))));
                helper.done(result.is_ok());
            }));
        }
        Box::new(Joining { latch, seat: Arc::clone(&self.seat) })
    }
}

/// A thread that helps, or was to help: what it has is given back when it is done or was never begun.
struct Helper {
    seat: Arc<Seat>,
    latch: Arc<Latch>,
    is_good: bool,
}

impl Helper {
    fn done(&mut self, is_good: bool) {
        self.is_good = is_good;
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.seat.leave();
        self.latch.end(self.is_good);
    }
}

struct Joining {
    latch: Arc<Latch>,
    seat: Arc<Seat>,
}

impl Team for Joining {
    fn join(self: Box<Self>) {
        if !self.latch.is_open() {
            // Those who are waited for may need the turn that this thread has.
            self.seat.stand_up();
            self.latch.wait();
            self.seat.sit_down_again();
        }
        assert!(self.latch.all_good(), "a thread that helped with a query has failed");
    }
}
