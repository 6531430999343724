//! Where the committer, the merger and the engine's end meet.
//!
//! In: news of new segments, of merges, of trouble. Out: somebody wakes.
//! Invariants
//! - The merger is woken only when it sleeps and there is work; nothing wakes for long while nothing is committed.
//! - The committer waits only while memory is full and merging goes on. When merging is in trouble (a full disk), commits
//!   are refused instead, until it succeeds again.

use crate::Error;
use crate::view::SetView;
use crate::{SetOptions, policy};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Segments in memory may hold so many times what makes a run before commits wait.
const MEMORY_TIMES_MAX: u64 = 3;

/// How long nobody has committed before the merger uses the time.
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// How long the merger sleeps before it tries again what failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The state of merging, shared by all.
pub struct Control {
    pub(crate) options: SetOptions,
    state: Mutex<State>,
    /// The merger sleeps here.
    work: Condvar,
    /// The committer, and whoever waits for merges, sleep here.
    merged: Condvar,
    /// Changes of groups up to this one are in runs.
    merged_group: AtomicU64,
}

#[derive(Default)]
struct State {
    rest: Rest,
    is_stopped: bool,
    /// Bytes of all segments that groups have added.
    grown_bytes: u64,
    /// Why the last merge failed.
    trouble: Option<String>,
    /// What the merger is asked to do besides merging.
    request: Option<MergerRequest>,
    /// Ranges whose loss is accepted.
    accepted: Vec<(Bytes, Bytes)>,
}

/// What the merger can be asked to do besides merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergerRequest {
    /// Somebody met damage: take it out of the way.
    Quarantine,
    /// Nobody relies on the lost keys any more.
    AcceptLoss,
    /// Keys were dropped: write anew the runs that hold many of them.
    Reclaim,
}

/// What the merger does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    Working,
    /// It sleeps, and will look again soon.
    Waiting,
    /// It sleeps until something is committed.
    Settled,
}

/// What the merger wakes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// There may be work.
    Work,
    /// Somebody asks for something else.
    Request(MergerRequest),
    /// Nobody has committed for a while; groups have added so many bytes up to now.
    Idle {
        /// Bytes since opening.
        grown_bytes: u64,
    },
    /// The engine ends.
    Stop,
}

impl Control {
    /// Of a set with these segments, in whose runs are the changes of groups up to this one.
    pub fn new(options: SetOptions, segments: &SetView, merged_group: u64) -> Control {
        let state = State { grown_bytes: segments.memory_bytes(), ..State::default() };
        Control {
            options,
            state: Mutex::new(state),
            work: Condvar::new(),
            merged: Condvar::new(),
            merged_group: merged_group.into(),
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.options.block_bytes
    }

    /// The last group whose changes are in runs: the journal need not keep its block, nor those before.
    pub fn merged_group(&self) -> u64 {
        self.merged_group.load(Ordering::Acquire)
    }

    /// Tells that these are the segments now, after a group was published.
    pub fn grown(&self, segments: &SetView) {
        let mut state = self.state.lock();
        state.grown_bytes += segments.memory.first().map_or(0, |newest| newest.byte_count());
        let is_due = || policy::choose(segments, &self.options, policy::Scope::All).is_some();
        match state.rest {
            Rest::Working => {}
            Rest::Waiting if !is_due() => {}
            Rest::Waiting => {
                self.work.notify_one();
            }
            Rest::Settled => {
                state.rest = Rest::Waiting;
                self.work.notify_one();
            }
        }
    }

    /// Tells that a merge is done, and up to which group changes are in runs.
    pub(crate) fn merged(&self, merged_group: u64) {
        self.merged_group.store(merged_group, Ordering::Release);
        self.state.lock().trouble = None;
        self.merged.notify_all();
    }

    /// Waits while memory is full. An error when merging is in trouble; it may go on later.
    pub fn wait_for_room(&self, segments: impl Fn() -> Arc<SetView>) -> Result<(), Error> {
        let memory_bytes_max = self.options.memory_bytes * MEMORY_TIMES_MAX;
        if segments().memory_bytes() < memory_bytes_max {
            return Ok(());
        }
        let mut state = self.state.lock();
        while segments().memory_bytes() >= memory_bytes_max {
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            if state.is_stopped {
                return Err(crate::closed());
            }
            self.merged.wait(&mut state);
        }
        Ok(())
    }

    /// Whether segments in memory wait to be written into a run.
    pub fn is_filling(&self, view: &SetView) -> bool {
        view.memory_bytes() >= self.options.memory_bytes
    }

    /// Why commits are refused now, if they are.
    pub fn refusal(&self, segments: &SetView) -> Option<String> {
        let is_full = segments.memory_bytes() >= self.options.memory_bytes * MEMORY_TIMES_MAX;
        self.state.lock().trouble.clone().filter(|_| is_full)
    }

    /// Waits until the merger has nothing to do, or is in trouble.
    pub fn wait_until_settled(&self, segments: impl Fn() -> Arc<SetView>) -> Result<(), Error> {
        let mut state = self.state.lock();
        loop {
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            if state.is_stopped {
                return Err(crate::closed());
            }
            let is_due = policy::choose(&segments(), &self.options, policy::Scope::All).is_some();
            if state.rest == Rest::Settled && !is_due {
                return Ok(());
            }
            self.merged.wait(&mut state);
        }
    }

    /// The merger sleeps until there is work, as `is_due` tells, or it is stopped; or, if there is something to do when
    /// nobody commits, until nobody has committed for a while.
    pub(crate) fn sleep(&self, is_due: impl Fn() -> bool, has_idle_work: impl Fn(u64) -> bool) -> Wake {
        let mut state = self.state.lock();
        let wake = loop {
            if state.is_stopped {
                break Wake::Stop;
            }
            if let Some(request) = state.request {
                break Wake::Request(request);
            }
            if is_due() {
                break Wake::Work;
            }
            if !has_idle_work(state.grown_bytes) {
                state.rest = Rest::Settled;
                self.merged.notify_all();
                self.work.wait(&mut state);
                continue;
            }
            state.rest = Rest::Waiting;
            let grown_bytes = state.grown_bytes;
            let is_over =
                self.work.wait_for(&mut state, IDLE_INTERVAL).timed_out() && state.request.is_none();
            if is_over && grown_bytes == state.grown_bytes && !state.is_stopped && !is_due() {
                break Wake::Idle { grown_bytes };
            }
        };
        state.rest = Rest::Working;
        wake
    }

    /// Has the merger deal with damage that somebody met, soon.
    pub fn ask_to_quarantine(&self) {
        self.state.lock().request.get_or_insert(MergerRequest::Quarantine);
        self.work.notify_one();
    }

    /// Has the merger write runs anew without what was dropped, and waits until it has, or waiting is given up.
    pub fn reclaim(&self, give_up: impl Fn() -> bool) {
        let mut state = self.state.lock();
        let mut is_asked = false;
        while !state.is_stopped && state.trouble.is_none() && !give_up() {
            if state.request.is_none() {
                if is_asked {
                    return;
                }
                is_asked = true;
                state.request = Some(MergerRequest::Reclaim);
                self.work.notify_one();
            }
            self.merged.wait_for(&mut state, IDLE_INTERVAL);
        }
    }

    /// Has the merger forget the loss of these ranges, and waits for it.
    pub fn accept_loss(&self, ranges: Vec<(Bytes, Bytes)>) -> Result<(), Error> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return Err(crate::closed());
            }
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            match state.request {
                None => break,
                Some(_) => self.merged.wait(&mut state),
            }
        }
        state.accepted = ranges;
        state.request = Some(MergerRequest::AcceptLoss);
        self.work.notify_one();
        while state.request.is_some() && !state.is_stopped && state.trouble.is_none() {
            self.merged.wait(&mut state);
        }
        Ok(())
    }

    pub(crate) fn take_accepted(&self) -> Vec<(Bytes, Bytes)> {
        std::mem::take(&mut self.state.lock().accepted)
    }

    /// The merger has done what it was asked to.
    pub(crate) fn answered(&self) {
        self.state.lock().request = None;
        self.merged.notify_all();
    }

    /// The merger is in trouble and sleeps for a while.
    pub(crate) fn sleep_in_trouble(&self, trouble: String) -> Wake {
        let mut state = self.state.lock();
        state.trouble = Some(trouble);
        self.merged.notify_all();
        if !state.is_stopped {
            self.work.wait_for(&mut state, RETRY_INTERVAL);
        }
        if state.is_stopped { Wake::Stop } else { Wake::Work }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Ends merging, and all waiting.
    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.work.notify_all();
        self.merged.notify_all();
    }
}
