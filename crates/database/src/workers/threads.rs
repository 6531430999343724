//! Threads that do one thing after another, made when they are needed and ended when they are not.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long a thread without work waits for some.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// Stack of a thread. Nested expressions and values are bounded elsewhere; they fit into far less.
const STACK_BYTES: usize = 4 << 20;

pub(super) type WorkerTask = Box<dyn FnOnce() + Send>;

pub(super) struct Threads {
    prepare: fn(),
    state: Mutex<ThreadsState>,
    work: Condvar,
}

#[derive(Default)]
struct ThreadsState {
    tasks: VecDeque<WorkerTask>,
    idle: usize,
}

impl Threads {
    pub(super) fn new(prepare: fn()) -> Threads {
        Threads { prepare, state: Mutex::default(), work: Condvar::new() }
    }

    /// Has a thread do a task at once, or drops it if there can be no thread. How many there are is bounded by those who ask.
    pub(super) fn start(self: &Arc<Threads>, task: WorkerTask) {
        let mut state = self.state.lock();
        state.tasks.push_back(task);
        if state.tasks.len() <= state.idle {
            self.work.notify_one();
            return;
        }
        drop(state);
        let own = Arc::clone(self);
        let thread = std::thread::Builder::new().name("query".to_owned()).stack_size(STACK_BYTES);
        let made = thread.spawn(move || {
            (own.prepare)();
            astrarium_env::allow_blocking();
            own.work_on();
        });
        if made.is_err() {
            // Its owner hears of it and tells its client. Another thread may have taken it meanwhile.
            let task = self.state.lock().tasks.pop_back();
            drop(task);
        }
    }

    fn work_on(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                task();
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let late = self.work.wait_for(&mut state, IDLE_TIME).timed_out();
            state.idle -= 1;
            if late && state.tasks.is_empty() {
                return;
            }
        }
    }
}

/// Waits until some tasks are done.
#[derive(Default)]
pub(super) struct Latch {
    state: Mutex<LatchState>,
    done: Condvar,
}

#[derive(Default)]
struct LatchState {
    running: usize,
    failed: bool,
}

impl Latch {
    /// One more is to be waited for.
    pub(super) fn begin(self: &Arc<Latch>) -> Arc<Latch> {
        self.state.lock().running += 1;
        Arc::clone(self)
    }

    /// One is done.
    pub(super) fn end(&self, good: bool) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.failed |= !good;
        self.done.notify_all();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().running == 0
    }

    pub(super) fn all_good(&self) -> bool {
        !self.state.lock().failed
    }

    pub(super) fn wait(&self) {
        let mut state = self.state.lock();
        while state.running > 0 {
            self.done.wait(&mut state);
        }
    }
}
