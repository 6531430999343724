//! Where the committer, the merger and the engine's end meet.
//!
//! In: news of new parts, of merges, of trouble. Out: somebody wakes.
//! Invariants
//! - The merger is woken only when it sleeps and there is work; nothing wakes for long while nothing is committed.
//! - The committer waits only while memory is full and merging goes on. When merging is in trouble (a full disk), commits
//!   are refused instead, until it succeeds again.

use super::parts::Parts;
use super::{SetOptions, policy};
use crate::health;
use astrarium_kv::Error;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Parts in memory may hold so many times what makes a run before commits wait.
const MEMORY_TIMES_MAX: u64 = 3;

/// How long nobody has committed before the merger uses the time.
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// How long the merger sleeps before it tries again what failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Control {
    pub(super) options: SetOptions,
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
    /// Bytes of all parts that groups have added.
    grown_bytes: u64,
    /// Why the last merge failed.
    trouble: Option<String>,
    /// What the merger is asked to do besides merging.
    request: Option<Request>,
}

/// What the merger can be asked to do besides merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// Somebody met damage: set the files aside.
    SetAside,
    /// Nobody relies on the lost keys any more.
    AcceptLoss,
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
pub(super) enum Wake {
    /// There may be work.
    Work,
    /// Somebody asks for something else.
    Request(Request),
    /// Nobody has committed for a while; groups have added so many bytes up to now.
    Idle {
        /// Bytes since opening.
        grown_bytes: u64,
    },
    /// The engine ends.
    Stop,
}

impl Control {
    /// Of a set with these parts, in whose runs are the changes of groups up to this one.
    pub(crate) fn new(options: SetOptions, parts: &Parts, merged_group: u64) -> Control {
        let state = State { grown_bytes: parts.memory_bytes(), ..State::default() };
        Control {
            options,
            state: Mutex::new(state),
            work: Condvar::new(),
            merged: Condvar::new(),
            merged_group: merged_group.into(),
        }
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.options.block_bytes
    }

    /// The last group whose changes are in runs: fjall need not keep its block, nor those before.
    pub(crate) fn merged_group(&self) -> u64 {
        self.merged_group.load(Ordering::Acquire)
    }

    /// Tells that these are the parts now, after a group was published.
    pub(crate) fn grown(&self, parts: &Parts) {
        let mut state = self.state.lock();
        state.grown_bytes += parts.memory.first().map_or(0, |newest| newest.byte_count());
        let is_due = || policy::choose(parts, &self.options, policy::Scope::All).is_some();
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
    pub(super) fn merged(&self, merged_group: u64) {
        self.merged_group.store(merged_group, Ordering::Release);
        self.state.lock().trouble = None;
        self.merged.notify_all();
    }

    /// Waits while memory is full. An error when merging is in trouble; it may go on later.
    pub(crate) fn wait_for_room(&self, parts: impl Fn() -> Arc<Parts>) -> Result<(), Error> {
        let memory_bytes_max = self.options.memory_bytes * MEMORY_TIMES_MAX;
        if parts().memory_bytes() < memory_bytes_max {
            return Ok(());
        }
        let mut state = self.state.lock();
        while parts().memory_bytes() >= memory_bytes_max {
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            if state.is_stopped {
                return Err(health::closed());
            }
            self.merged.wait(&mut state);
        }
        Ok(())
    }

    /// Why commits are refused now, if they are.
    pub(crate) fn refusal(&self, parts: &Parts) -> Option<String> {
        let is_full = parts.memory_bytes() >= self.options.memory_bytes * MEMORY_TIMES_MAX;
        self.state.lock().trouble.clone().filter(|_| is_full)
    }

    /// Waits until the merger has nothing to do, or is in trouble.
    pub(crate) fn wait_until_settled(&self, parts: impl Fn() -> Arc<Parts>) -> Result<(), Error> {
        let mut state = self.state.lock();
        loop {
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            if state.is_stopped {
                return Err(health::closed());
            }
            let is_due = policy::choose(&parts(), &self.options, policy::Scope::All).is_some();
            if state.rest == Rest::Settled && !is_due {
                return Ok(());
            }
            self.merged.wait(&mut state);
        }
    }

    /// The merger sleeps until there is work, as `is_due` tells, or it is stopped; or, if there is something to do when
    /// nobody commits, until nobody has committed for a while.
    pub(super) fn sleep(&self, is_due: impl Fn() -> bool, has_idle_work: impl Fn(u64) -> bool) -> Wake {
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

    /// Has the merger set the damaged files aside, soon.
    pub(crate) fn ask_to_set_aside(&self) {
        self.state.lock().request.get_or_insert(Request::SetAside);
        self.work.notify_one();
    }

    /// Has the merger forget the loss, and waits for it.
    pub(crate) fn accept_loss(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return Err(health::closed());
            }
            if let Some(trouble) = &state.trouble {
                return Err(Error::Unavailable { reason: trouble.clone() });
            }
            match state.request {
                None => break,
                Some(_) => self.merged.wait(&mut state),
            }
        }
        state.request = Some(Request::AcceptLoss);
        self.work.notify_one();
        while state.request.is_some() && !state.is_stopped && state.trouble.is_none() {
            self.merged.wait(&mut state);
        }
        Ok(())
    }

    /// The merger has done what it was asked to.
    pub(super) fn answered(&self) {
        self.state.lock().request = None;
        self.merged.notify_all();
    }

    /// The merger is in trouble and sleeps for a while.
    pub(super) fn sleep_in_trouble(&self, trouble: String) -> Wake {
        let mut state = self.state.lock();
        state.trouble = Some(trouble);
        self.merged.notify_all();
        if !state.is_stopped {
            self.work.wait_for(&mut state, RETRY_INTERVAL);
        }
        if state.is_stopped { Wake::Stop } else { Wake::Work }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Ends merging, and all waiting.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.work.notify_all();
        self.merged.notify_all();
    }
}
