//! The threads that scripts run on, their deadlines, and what happens to those that do not end.
//!
//! In: tasks, each with the time it may take and what to do if it is lost. A thread makes a fresh sandbox, waits for a
//! task, runs it, and makes the sandbox fresh again. A watching thread ends waiting that takes too long, stops sandboxes at
//! their deadline, and gives up threads that do not end within the grace: their callers get their answer, and the thread
//! becomes a runaway, replaced by another one as long as there are few of them.
//! Invariants
//! - Every task is either run or lost, and its owner hears of it once, at the latest when its time and the grace are over.
//! - There are never more threads than `threads_max + runaway_threads_max`.
//!
//! Why threads can be lost: the engine asks whether to stop only while it interprets. A native function on long texts (a
//! search that takes quadratic time, say) cannot be interrupted by anything inside the process.
//! Not here: what tasks do (`execution`, `functions`).

mod ticket;
mod watch;

use crate::Limits;
use crate::deadline::Deadline;
use crate::sandbox::{Purpose, Sandbox};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
pub(crate) use ticket::{Lost, Ticket};

/// The threads for one purpose. Dropping it ends those that are idle, and the others when their tasks end.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

/// How many threads there may be, and how long tasks wait for one.
#[derive(Debug, Clone)]
pub(crate) struct PoolSettings {
    pub(crate) purpose: Purpose,
    pub(crate) limits: Limits,
    pub(crate) threads_max: usize,
    pub(crate) runaway_threads_max: usize,
    pub(crate) waiting_max: usize,
    pub(crate) waiting_time: Duration,
}

/// What is done in a sandbox. The sandbox is missing if none could be made.
pub(crate) type Work = Box<dyn FnOnce(Result<&Rc<Sandbox>, &str>, Deadline) + Send>;

/// What a pool is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) runaways: usize,
    pub(crate) runaways_ever: u64,
}

struct Shared {
    settings: PoolSettings,
    state: Mutex<State>,
    /// For idle threads.
    work: Condvar,
    /// For the watching thread.
    watch: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Task>,
    running: Vec<Running>,
    threads: usize,
    idle: usize,
    runaways: usize,
    runaways_ever: u64,
    is_watched: bool,
    /// When the watching thread looks again; nothing if it sleeps.
    looks_at: Option<Instant>,
    closed: bool,
    number: u64,
}

struct Task {
    ticket: Arc<Ticket>,
    work: Work,
    lost_at: Instant,
}

struct Running {
    number: u64,
    ticket: Arc<Ticket>,
    end: Instant,
    phase: Phase,
}

/// How far the watching thread has gone with a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    InTime,
    Stopped,
    Runaway,
}

impl Pool {
    pub(crate) fn new(settings: PoolSettings) -> Pool {
        let (work, watch) = (Condvar::new(), Condvar::new());
        Pool { shared: Arc::new(Shared { settings, state: Mutex::default(), work, watch }) }
    }

    /// Has a task run, or loses it at once if too many wait already.
    pub(crate) fn submit(&self, ticket: &Arc<Ticket>, work: Work) {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.waiting.len() >= shared.settings.waiting_max {
            drop(state);
            ticket.lose(Lost::Busy);
            return;
        }
        let lost_at = Instant::now() + shared.settings.waiting_time;
        state.waiting.push_back(Task { ticket: Arc::clone(ticket), work, lost_at });
        if state.waiting.len() > state.idle {
            shared.add_thread(&mut state);
            shared.watch_from(&mut state, lost_at);
        }
        drop(state);
        shared.work.notify_one();
    }

    pub(crate) fn usage(&self) -> Usage {
        let state = self.shared.state.lock();
        Usage {
            running: state.running.len(),
            waiting: state.waiting.len(),
            runaways: state.runaways,
            runaways_ever: state.runaways_ever,
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.shared.work.notify_all();
        self.shared.watch.notify_all();
        for task in waiting {
            task.ticket.lose(Lost::Busy);
        }
    }
}

impl Shared {
    /// Starts another thread, if there may be one. Where the system has none left the task waits for those there are.
    fn add_thread(self: &Arc<Shared>, state: &mut State) {
        let settings = &self.settings;
        let usable = state.threads - state.runaways.min(settings.runaway_threads_max);
        if state.closed || usable >= settings.threads_max {
            return;
        }
        let own = Arc::clone(self);
        let builder = thread::Builder::new().name("script".to_owned());
        // Twice the interpreter's stack, because it checks the depth of its native recursion by estimate only, and as much
        // as threads usually have for what calls it: a query, say.
        let builder = builder.stack_size(2 * settings.limits.stack_bytes_max + (2 << 20));
        if builder.spawn(move || own.run_tasks()).is_ok() {
            state.threads += 1;
        }
    }

    /// The life of a thread.
    fn run_tasks(self: Arc<Shared>) {
        let limits = &self.settings.limits;
        let accepted_part = limits.accept_time.as_secs_f64() / limits.time.as_secs_f64().max(1e-9);
        let mut renewed = None;
        loop {
            let made = || Sandbox::new(limits, self.settings.purpose).map(Rc::new);
            let sandbox = renewed.take().map_or_else(made, Ok).map_err(|error| error.to_string());
            let Some(task) = self.next_task() else { return };
            let deadline = Deadline::starting_now(task.ticket.time, accepted_part);
            if let Ok(sandbox) = &sandbox {
                task.ticket.attach(sandbox.state.stop.clone());
            }
            let number = self.note_start(&task.ticket, deadline.end);
            let work = task.work;
            // A panic is a bug of ours; the task's owner hears of it because its work is dropped without an answer.
            let result = catch_unwind(AssertUnwindSafe(|| {
                work(sandbox.as_ref().map_err(String::as_str), deadline);
            }));
            task.ticket.detach();
            if self.note_end(number) {
                return;
            }
            // What a panic left in a sandbox is not worth knowing.
            renewed = sandbox
                .ok()
                .filter(|_| result.is_ok())
                .and_then(|mut sandbox| Rc::get_mut(&mut sandbox)?.renew().then_some(sandbox));
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = self.state.lock();
        state.idle += 1;
        loop {
            if state.closed {
                state.idle -= 1;
                state.threads -= 1;
                return None;
            }
            if let Some(task) = state.waiting.pop_front() {
                state.idle -= 1;
                return Some(task);
            }
            self.work.wait(&mut state);
        }
    }

    fn note_start(self: &Arc<Shared>, ticket: &Arc<Ticket>, end: Instant) -> u64 {
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        state.running.push(Running { number, ticket: Arc::clone(ticket), end, phase: Phase::InTime });
        self.watch_from(&mut state, end);
        number
    }

    /// Returns whether the thread had been given up, so that it has to go.
    fn note_end(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let place = state.running.iter().position(|running| running.number == number);
        let phase = place.map(|place| state.running.swap_remove(place).phase);
        let was_runaway = phase == Some(Phase::Runaway);
        if was_runaway {
            state.runaways -= 1;
            state.threads -= 1;
        }
        if state.closed {
            self.watch.notify_all();
        }
        was_runaway
    }
}
