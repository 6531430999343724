//! The thread that watches the clock for a pool.

use super::{Lost, Phase, Shared, State, Ticket};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

impl Shared {
    /// Makes sure that somebody looks at the clock at that time.
    pub(super) fn watch_from(self: &Arc<Shared>, state: &mut State, at: Instant) {
        if !state.is_watched {
            let own = Arc::clone(self);
            state.is_watched =
                thread::Builder::new().name("script-watch".to_owned()).spawn(move || own.watch()).is_ok();
        } else if state.looks_at.is_none_or(|looks_at| at < looks_at) {
            self.watch.notify_all();
        }
    }

    /// The life of the watching thread: it ends when the pool is closed and nothing runs any more.
    fn watch(self: Arc<Shared>) {
        let mut state = self.state.lock();
        loop {
            let lost = self.take_lost(&mut state);
            if !lost.is_empty() {
                // Owners are told without the lock: what they do about it is their affair.
                drop(state);
                for (ticket, reason) in lost {
                    ticket.lose(reason);
                }
                state = self.state.lock();
                continue;
            }
            if state.closed && state.running.is_empty() {
                state.is_watched = false;
                return;
            }
            state.looks_at = self.next_look(&state);
            match state.looks_at {
                Some(at) => drop(self.watch.wait_until(&mut state, at)),
                None => self.watch.wait(&mut state),
            }
        }
    }

    /// Stops what is late, and takes what is lost.
    fn take_lost(self: &Arc<Shared>, state: &mut State) -> Vec<(Arc<Ticket>, Lost)> {
        let now = Instant::now();
        let grace = self.settings.limits.grace;
        let mut lost = Vec::new();
        while state.waiting.front().is_some_and(|task| task.lost_at <= now) {
            lost.extend(state.waiting.pop_front().map(|task| (task.ticket, Lost::Busy)));
        }
        let mut runaways = 0;
        for running in &mut state.running {
            if running.phase == Phase::InTime && running.end <= now {
                running.phase = Phase::Stopped;
                running.ticket.stop();
            }
            if running.phase == Phase::Stopped && running.end + grace <= now {
                running.phase = Phase::Runaway;
                runaways += 1;
                lost.push((Arc::clone(&running.ticket), Lost::Timeout));
            }
        }
        state.runaways += runaways;
        state.runaways_ever += runaways as u64;
        if runaways > 0 && !state.waiting.is_empty() {
            self.add_thread(state);
        }
        lost
    }

    fn next_look(&self, state: &State) -> Option<Instant> {
        let grace = self.settings.limits.grace;
        let running = state.running.iter().filter_map(|running| match running.phase {
            Phase::InTime => Some(running.end),
            Phase::Stopped => Some(running.end + grace),
            Phase::Runaway => None,
        });
        running.chain(state.waiting.front().map(|task| task.lost_at)).min()
    }
}
