//! The thread that watches the clock for a pool.

use super::{Lost, Phase, PoolShared, Running, ScriptPoolState, Ticket};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

impl PoolShared {
    /// Makes sure that somebody looks at the clock at that time.
    pub(super) fn watch_from(self: &Arc<PoolShared>, state: &mut ScriptPoolState, at: Instant) {
        if !state.is_watched {
            let own = Arc::clone(self);
            state.is_watched =
                thread::Builder::new().name("script-watch".to_owned()).spawn(move || own.watch()).is_ok();
        } else if state.looks_at.is_none_or(|looks_at| at < looks_at) {
            self.watch.notify_all();
        }
    }

    /// The life of the watching thread: it ends when the pool is closed and nothing runs any more.
    fn watch(self: Arc<PoolShared>) {
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

    /// Stops what is late, kills what was stopped and goes on, and takes what is lost.
    fn take_lost(self: &Arc<PoolShared>, state: &mut ScriptPoolState) -> Vec<(Arc<Ticket>, Lost)> {
        let now = Instant::now();
        let grace = self.settings.limits.grace;
        let expired = state.queue.take_expired(now);
        let mut lost: Vec<_> = expired.into_iter().map(|task| (task.ticket, Lost::Busy)).collect();
        let (mut runaways, mut long, mut slow) = (0, Vec::new(), 0);
        let ScriptPoolState { running: all_running, queue, .. } = state;
        for running in all_running {
            if self.settings.are_batched() && !running.is_slow && running.slow_at <= now {
                running.is_slow = true;
                running.give_back(queue);
                slow += 1;
            }
            if running.phase == Phase::InTime && running.end <= now {
                running.phase = Phase::Stopped;
                running.ticket.stop();
            }
            if running.phase == Phase::Stopped && running.end + grace <= now {
                running.phase = Phase::Runaway;
                running.ticket.kill();
                runaways += 1;
                lost.push((Arc::clone(&running.ticket), Lost::Timeout));
            }
            if !running.is_long && running.long_at <= now {
                running.is_long = true;
                running.ticket.step_back();
                long.push(Arc::clone(&running.ticket.script_id));
            }
        }
        state.runaways += runaways;
        state.runaways_ever += runaways as u64;
        let freed = runaways + long.len();
        for script_id in long {
            state.queue.note(&script_id, true);
        }
        for _ in 0..freed.min(state.queue.len()) {
            self.add_thread(state);
        }
        for _ in 0..slow.min(state.queue.len()) {
            self.wake_another(state);
        }
        lost
    }

    pub(super) fn next_look(&self, state: &ScriptPoolState) -> Option<Instant> {
        let grace = self.settings.limits.grace;
        let is_awaited = |running: &Running| state.queue.len() > 0 || !running.followers.is_empty();
        let running = state.running.iter().flat_map(|running| {
            let end = match running.phase {
                Phase::InTime => Some(running.end),
                Phase::Stopped => Some(running.end + grace),
                Phase::Runaway => None,
            };
            let is_watched = self.settings.are_batched() && !running.is_slow && is_awaited(running);
            let slow_at = is_watched.then_some(running.slow_at);
            [end, (!running.is_long).then_some(running.long_at), slow_at]
        });
        running.flatten().chain(state.queue.expires_at()).min()
    }
}
