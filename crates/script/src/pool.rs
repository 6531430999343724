//! The threads that scripts run on, whose turn it is, their deadlines, and what happens to those that do not end.
//!
//! In: tasks, each with the time it may take and what to do if it is lost. A thread makes a fresh sandbox or starts a
//! process, waits for a task, runs it, and makes the sandbox fresh again. A watching thread ends waiting that takes too
//! long, stops sandboxes at their deadline, and after a grace kills their processes; without processes it gives the thread
//! up, which becomes a runaway. Either way the caller has its answer.
//! A task past its first second is long-running: it steps back behind others, and another thread may take its place as long
//! as there are few such, so that short scripts do not wait for long ones. Threads without work end after a while.
//! Waking threads and processes costs more than most scripts. So where scripts run in processes, those that are known to
//! end soon are run by few threads, each taking several at once and sending them ahead to its process (`followers`). A task
//! that takes longer than [`SLOW_TIME`] holds up nobody: its followers go back to the queue, and another thread is woken.
//! Invariants
//! - Every task is either run or lost, and its owner hears of it once, at the latest when its time and the grace are over.
//! - There are never more threads than `threads_max + long_threads_max`.
//!
//! Why threads can be lost: the engine asks whether to stop only while it interprets. A native function on long texts (a
//! search that takes quadratic time, say) cannot be interrupted by anything inside the process.
//! Not here: what tasks do (`execution`, `functions`), and how processes work (`process`).

mod queue;
mod runner;
mod ticket;
mod watch;

use crate::deadline::{Deadline, Stop};
use crate::sandbox::Purpose;
use crate::{Isolation, ScriptLimits};
use parking_lot::{Condvar, Mutex};
use queue::{Queue, Standing};
pub(crate) use runner::Runner;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
pub(crate) use ticket::{Lost, Ticket};

/// From when on a task is long-running.
const LONG_TIME: Duration = Duration::from_secs(1);
/// From when on nobody waits for a task to end whose turn has come.
const SLOW_TIME: Duration = Duration::from_millis(20);
/// How many tasks a thread takes at once.
const BATCH_MAX: usize = 8;

/// The threads for one purpose. Dropping it ends those that are idle, and the others when their tasks end.
pub(crate) struct Pool {
    shared: Arc<PoolShared>,
}

/// How many threads there may be, and how long tasks wait for one.
#[derive(Debug, Clone)]
pub(crate) struct PoolSettings {
    pub(crate) purpose: Purpose,
    pub(crate) limits: ScriptLimits,
    pub(crate) isolation: Isolation,
    pub(crate) memory_image: bool,
    pub(crate) cache_bytes_max: usize,
    pub(crate) threads_max: usize,
    pub(crate) long_threads_max: usize,
    pub(crate) waiting_max: usize,
    pub(crate) waiting_time: Duration,
    pub(crate) idle_time: Duration,
}

/// What a task does.
pub(crate) trait PoolWork: Send {
    /// Tells the runner of it, which is still busy with others, so that it can begin at once when its turn comes. Returns
    /// whether that was possible.
    fn announce(&mut self, runner: &Runner, time: Duration) -> bool {
        let _ = (runner, time);
        false
    }

    /// Does it, with a flag that says when to stop. The runner is missing if there could be none.
    fn run(self: Box<Self>, runner: Result<&Runner, &str>, stop: &Stop, deadline: Deadline);
}

/// What a pool is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) runaways: usize,
    pub(crate) runaways_ever: u64,
    pub(crate) threads: usize,
}

struct PoolShared {
    settings: PoolSettings,
    state: Mutex<ScriptPoolState>,
    /// For idle threads.
    work: Condvar,
    /// For the watching thread.
    watch: Condvar,
}

#[derive(Default)]
struct ScriptPoolState {
    queue: Queue,
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

struct PoolTask {
    ticket: Arc<Ticket>,
    work: Box<dyn PoolWork>,
    lost_at: Instant,
}

struct Running {
    number: u64,
    ticket: Arc<Ticket>,
    end: Instant,
    phase: Phase,
    long_at: Instant,
    is_long: bool,
    /// From when on nobody waits for it.
    slow_at: Instant,
    is_slow: bool,
    /// Tasks that the same thread does next.
    followers: VecDeque<PoolTask>,
    /// What was known of its script when it began.
    standing: Standing,
}

impl Running {
    fn standing(&self) -> Standing {
        if self.is_long { Standing::Suspect } else { self.standing }
    }

    /// Gives its followers to whoever comes next.
    fn give_back(&mut self, queue: &mut Queue) {
        self.followers.drain(..).for_each(|task| queue.push(task));
    }
}

impl ScriptPoolState {
    /// How many tasks run that may be expected to end soon.
    fn in_time(&self, now: Instant) -> usize {
        self.running.iter().filter(|running| now < running.slow_at).count()
    }
}

impl PoolSettings {
    /// Whether threads take several tasks at once: where each task would wake a process.
    fn are_batched(&self) -> bool {
        matches!(self.isolation, Isolation::Processes(_))
    }

    /// How many threads work on tasks that end soon, before they are found to take longer.
    fn batches_max(&self) -> usize {
        self.threads_max.div_ceil(2)
    }
}

/// Tells a runner of tasks, unless it knows of some.
fn announce(runner: &Runner, tasks: &mut VecDeque<PoolTask>) {
    if tasks.len() > 1 && !runner.is_ahead() {
        let _ = tasks.iter_mut().all(|task| task.work.announce(runner, task.ticket.time));
    }
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
        Pool { shared: Arc::new(PoolShared { settings, state: Mutex::default(), work, watch }) }
    }

    /// Has a task run, or loses it at once if too many wait already.
    pub(crate) fn submit(&self, ticket: &Arc<Ticket>, work: Box<dyn PoolWork>) {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.queue.len() >= shared.settings.waiting_max {
            drop(state);
            ticket.lose(Lost::Busy);
            return;
        }
        let now = Instant::now();
        let lost_at = now + shared.settings.waiting_time;
        state.queue.push(PoolTask { ticket: Arc::clone(ticket), work, lost_at });
        if state.queue.standing(&ticket.script_id, now) == Standing::Proven
            && let Some(slow_at) = shared.enough_until(&state, now)
        {
            shared.watch_from(&mut state, slow_at);
            return;
        }
        if state.queue.len() > state.idle {
            shared.add_thread(&mut state);
            shared.watch_from(&mut state, lost_at);
        }
        drop(state);
        shared.work.notify_one();
    }

    /// Ends a task whose owner has gone: at once where it waits, soon where it runs.
    pub(crate) fn cancel(&self, ticket: &Arc<Ticket>) {
        if !ticket.cancel() {
            return;
        }
        let mut state = self.shared.state.lock();
        let removed = state.queue.remove(ticket);
        if let Some(running) = state.running.iter_mut().find(|running| Arc::ptr_eq(&running.ticket, ticket)) {
            running.end = running.end.min(Instant::now());
            let end = running.end;
            self.shared.watch_from(&mut state, end);
        }
        drop(state);
        // What it would have worked with is given back without the lock.
        drop(removed);
    }

    pub(crate) fn usage(&self) -> Usage {
        let state = self.shared.state.lock();
        Usage {
            running: state.running.len(),
            waiting: state.queue.len()
                + state.running.iter().map(|running| running.followers.len()).sum::<usize>(),
            runaways: state.runaways,
            runaways_ever: state.runaways_ever,
            threads: state.threads,
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let waiting = state.queue.take_all();
        drop(state);
        self.shared.work.notify_all();
        self.shared.watch.notify_all();
        for task in waiting {
            task.ticket.lose(Lost::Busy);
        }
    }
}

impl PoolShared {
    /// Starts another thread, if there may be one. Where the system has none left the task waits for those there are.
    fn add_thread(self: &Arc<PoolShared>, state: &mut ScriptPoolState) {
        let settings = &self.settings;
        let is_excused = |running: &&Running| running.is_long || running.phase == Phase::Runaway;
        let excused = state.running.iter().filter(is_excused).count();
        let usable = state.threads.saturating_sub(excused.min(settings.long_threads_max));
        if state.closed || usable >= settings.threads_max {
            return;
        }
        let own = Arc::clone(self);
        let builder = thread::Builder::new().name("script".to_owned());
        let builder = builder.stack_size(settings.limits.thread_stack_bytes());
        if builder.spawn(move || own.run_tasks()).is_ok() {
            state.threads += 1;
        }
    }

    /// The life of a thread.
    fn run_tasks(self: Arc<PoolShared>) {
        let (mut renewed, mut tasks) = (None, VecDeque::new());
        loop {
            let runner = renewed.take().map_or_else(|| Runner::new(&self.settings), Ok);
            if tasks.is_empty() {
                tasks = self.next_tasks();
            }
            // What could not be made before may be possible by now.
            let runner = runner.or_else(|_| Runner::new(&self.settings));
            if let Ok(runner) = &runner {
                announce(runner, &mut tasks);
            }
            let Some(task) = tasks.pop_front() else { return };
            let deadline = self.settings.limits.deadline(task.ticket.time);
            let stop = runner.as_ref().map_or_else(|_| Stop::default(), Runner::stop);
            task.ticket.attach(stop.clone(), runner.as_ref().ok().and_then(Runner::process));
            let number = self.note_start(&task.ticket, deadline.end, std::mem::take(&mut tasks));
            let work = task.work;
            // A panic is a bug of ours; the task's owner hears of it because its work is dropped without an answer.
            let result = catch_unwind(AssertUnwindSafe(|| {
                work.run(runner.as_ref().map_err(String::as_str), &stop, deadline);
            }));
            task.ticket.detach();
            match self.note_end(number) {
                Some(followers) => tasks = followers,
                None => return,
            }
            // What a panic left in a sandbox is not worth knowing, and what others do now is not done here as well.
            let is_fit = |runner: &Runner| result.is_ok() && !(tasks.is_empty() && runner.is_ahead());
            renewed = runner.ok().filter(is_fit).and_then(Runner::renew);
        }
    }

    /// Waits for a task, and takes those with it that its thread is to do next; nothing if the thread has to end.
    fn next_tasks(&self) -> VecDeque<PoolTask> {
        let mut state = self.state.lock();
        state.idle += 1;
        let mut tasks = VecDeque::new();
        while !state.closed {
            let worst = self.worst_allowed(&state);
            if let Some(task) = state.queue.pop(worst) {
                tasks.push_back(task);
                break;
            }
            if self.work.wait_for(&mut state, self.settings.idle_time).timed_out() {
                break;
            }
        }
        state.idle -= 1;
        state.threads -= usize::from(tasks.is_empty());
        self.add_followers(&mut state, &mut tasks);
        tasks
    }

    /// Adds a share of what waits to a task that is known to end soon.
    fn add_followers(&self, state: &mut ScriptPoolState, tasks: &mut VecDeque<PoolTask>) {
        let (Some(first), now) = (tasks.front(), Instant::now()) else { return };
        if !self.settings.are_batched()
            || state.queue.standing(&first.ticket.script_id, now) != Standing::Proven
        {
            return;
        }
        let places = self.settings.batches_max().saturating_sub(state.in_time(now)).max(1);
        let share = state.queue.len() / places;
        for _ in 0..share.min(BATCH_MAX - 1) {
            tasks.extend(state.queue.pop(Standing::Proven));
        }
        if state.queue.len() > 0 && places > 1 && state.idle > 0 {
            self.work.notify_one();
        }
    }

    /// Until when no further thread is woken for scripts that are known to end soon: enough are at work on such.
    fn enough_until(&self, state: &ScriptPoolState, now: Instant) -> Option<Instant> {
        let is_enough = self.settings.are_batched() && state.in_time(now) >= self.settings.batches_max();
        let slow_at = state.running.iter().map(|running| running.slow_at).filter(|slow_at| *slow_at > now);
        slow_at.min().filter(|_| is_enough)
    }

    /// Which scripts may run now besides those that do: suspects in half of the places, and unknown ones not in the last
    /// ones, so that those that are known to end soon need not wait for the end of others.
    fn worst_allowed(&self, state: &ScriptPoolState) -> Standing {
        let (kept, half) = (self.settings.threads_max / 2, self.settings.threads_max.div_ceil(2));
        let places = self.settings.threads_max + self.settings.long_threads_max;
        let at_least =
            |standing| state.running.iter().filter(|running| running.standing() >= standing).count();
        if at_least(Standing::Unknown) + kept >= places {
            Standing::Proven
        } else if at_least(Standing::Suspect) >= half {
            Standing::Unknown
        } else {
            Standing::Suspect
        }
    }

    fn note_start(
        self: &Arc<PoolShared>,
        ticket: &Arc<Ticket>,
        end: Instant,
        followers: VecDeque<PoolTask>,
    ) -> u64 {
        let mut state = self.state.lock();
        state.number += 1;
        let (number, now) = (state.number, Instant::now());
        // One that was cancelled meanwhile has no time left.
        let end = if ticket.is_cancelled() { now } else { end };
        let standing = state.queue.standing(&ticket.script_id, now);
        state.running.push(Running {
            number,
            ticket: Arc::clone(ticket),
            end,
            phase: Phase::InTime,
            long_at: now + LONG_TIME,
            is_long: false,
            slow_at: now + SLOW_TIME,
            is_slow: false,
            followers,
            standing,
        });
        if let Some(at) = self.next_look(&state) {
            self.watch_from(&mut state, at);
        }
        number
    }

    /// Returns what the thread does next; nothing if it has to go: it had been given up, or somebody else has taken its
    /// place.
    fn note_end(self: &Arc<PoolShared>, number: u64) -> Option<VecDeque<PoolTask>> {
        let mut state = self.state.lock();
        let place = state.running.iter().position(|running| running.number == number);
        let Some(mut running) = place.map(|place| state.running.swap_remove(place)) else {
            return Some(VecDeque::new());
        };
        let is_runaway = running.phase == Phase::Runaway;
        if is_runaway || !running.ticket.is_cancelled() {
            state.queue.note(&running.ticket.script_id, running.phase != Phase::InTime);
        }
        state.runaways -= usize::from(is_runaway);
        let has_to_go = is_runaway || running.is_long;
        if has_to_go {
            state.threads -= 1;
            running.give_back(&mut state.queue);
        }
        // This thread looks for more itself; suspects may have waited for this one to end, which it may not be the first to see.
        if state.queue.len() > 0 && (has_to_go || running.standing() != Standing::Proven) {
            self.wake_another(&mut state);
        }
        if state.closed {
            self.watch.notify_all();
        }
        (!has_to_go).then_some(running.followers)
    }

    /// Has another thread look for what waits.
    fn wake_another(self: &Arc<PoolShared>, state: &mut ScriptPoolState) {
        if state.idle == 0 {
            self.add_thread(state);
        }
        self.work.notify_one();
    }
}
