//! Who of the threads that have work may do it now: as many as there are cores, in turns.
//!
//! In: threads, each for a client. Out: a [`Seat`], on which its thread works until it has had its share and somebody else
//! waits. The client that has had the least time comes next, so a client with many pages has no more of the processor than
//! one with a single page, and a page that has just begun goes before one that has been running for long.
//! Invariant: never more threads are seated than there are turns.

use super::ClientId;
use astrarium_env::{Instant, Turn};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// How long a thread may work while others wait.
const TURN_TIME: Duration = Duration::from_millis(5);

pub(super) struct Turns {
    count: usize,
    /// Threads that wait, so that those who work need not ask under the lock.
    waiting: AtomicUsize,
    state: Mutex<TurnsState>,
}

struct TurnsState {
    free: usize,
    /// By the time that the client has had, then by arrival.
    queue: BTreeMap<(u64, u64), Arc<Seat>>,
    clients: HashMap<ClientId, ClientTurns, RandomState>,
    number: u64,
    /// The time of the client that was seated last: newcomers are counted as if they had had as much.
    floor: u64,
}

#[derive(Clone, Copy, Default)]
struct ClientTurns {
    /// Microseconds.
    used: u64,
    seats: usize,
}

/// A thread's place.
pub(super) struct Seat {
    turns: Arc<Turns>,
    client: ClientId,
    since: Mutex<Instant>,
    granted: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Turns {
    pub(super) fn new(count: usize) -> Turns {
        let state = TurnsState {
            free: count,
            queue: BTreeMap::new(),
            clients: HashMap::with_hasher(RandomState::default()),
            number: 0,
            floor: 0,
        };
        Turns { count, waiting: AtomicUsize::new(0), state: Mutex::new(state) }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn seat(self: &Arc<Turns>, client: ClientId) -> Arc<Seat> {
        Arc::new(Seat {
            turns: Arc::clone(self),
            client,
            since: Mutex::new(Instant::now()),
            granted: AtomicBool::new(false),
            thread: Mutex::new(None),
        })
    }

    /// Waits for a turn of this thread.
    pub(super) fn wait(self: &Arc<Turns>, client: ClientId) -> Arc<Seat> {
        let seat = self.seat(client);
        self.state.lock().enter(client);
        seat.sit_down_again();
        seat
    }

    /// A turn for another thread, if one is free and nobody waits.
    pub(super) fn take_free(self: &Arc<Turns>, client: ClientId) -> Option<Arc<Seat>> {
        let mut state = self.state.lock();
        if state.free == 0 {
            return None;
        }
        state.free -= 1;
        state.enter(client);
        drop(state);
        Some(self.seat(client))
    }

    /// Gives a turn to whoever is next.
    fn pass_on(&self, state: &mut TurnsState) {
        match state.queue.pop_first() {
            Some(((used, _), seat)) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                state.floor = state.floor.max(used);
                seat.grant();
            }
            None => state.free += 1,
        }
    }
}

impl TurnsState {
    fn enter(&mut self, client: ClientId) {
        let floor = self.floor;
        let own = self.clients.entry(client).or_default();
        if own.seats == 0 {
            own.used = own.used.max(floor);
        }
        own.seats += 1;
    }

    fn leave(&mut self, client: ClientId) {
        if let Some(own) = self.clients.get_mut(&client) {
            own.seats -= 1;
            if own.seats == 0 {
                self.clients.remove(&client);
            }
        }
    }

    /// Counts time that a client has had; gives all it has had.
    fn count(&mut self, client: ClientId, time: Duration) -> u64 {
        let own = self.clients.entry(client).or_default();
        own.used = own.used.saturating_add(time.as_micros() as u64);
        own.used
    }
}

impl Seat {
    /// Counts the time since the turn began, and begins another.
    fn elapsed(&self) -> Duration {
        let now = Instant::now();
        let before = std::mem::replace(&mut *self.since.lock(), now);
        now.saturating_duration_since(before)
    }

    /// The thread begins a turn that it was given before it began.
    pub(super) fn sit(&self) {
        self.elapsed();
    }

    /// Waits for a turn.
    pub(super) fn sit_down_again(self: &Arc<Seat>) {
        let turns = &self.turns;
        let mut state = turns.state.lock();
        if state.free > 0 {
            state.free -= 1;
        } else {
            let used = state.count(self.client, Duration::ZERO);
            self.queue_up(&mut state, used);
            drop(state);
            self.park();
        }
        self.elapsed();
    }

    fn queue_up(self: &Arc<Seat>, state: &mut TurnsState, used: u64) {
        *self.thread.lock() = Some(std::thread::current());
        state.number += 1;
        let key = (used, state.number);
        state.queue.insert(key, Arc::clone(self));
        self.turns.waiting.fetch_add(1, Ordering::Relaxed);
    }

    fn grant(&self) {
        self.granted.store(true, Ordering::Release);
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }

    fn park(&self) {
        while !self.granted.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }

    /// Lets somebody else have the turn.
    pub(super) fn stand_up(&self) {
        let mut state = self.turns.state.lock();
        state.count(self.client, self.elapsed());
        self.turns.pass_on(&mut state);
    }

    /// The thread has nothing more to do.
    pub(super) fn leave(&self) {
        self.stand_up();
        self.turns.state.lock().leave(self.client);
    }
}

/// A thread on its seat.
pub(super) struct Sitting(pub(super) Arc<Seat>);

impl Turn for Sitting {
    fn give_way(&self) {
        self.0.give_way();
    }
}

impl Seat {
    /// Passes the turn on if it has lasted long enough and somebody waits who has had less, and waits for another one.
    fn give_way(self: &Arc<Seat>) {
        if self.turns.waiting.load(Ordering::Relaxed) == 0 || self.since.lock().elapsed() < TURN_TIME {
            return;
        }
        let mut state = self.turns.state.lock();
        let used = state.count(self.client, self.elapsed());
        // Those who have had more wait on.
        if state.queue.first_key_value().is_none_or(|((next, _), _)| *next > used) {
            return;
        }
        self.queue_up(&mut state, used);
        self.turns.pass_on(&mut state);
        drop(state);
        self.park();
        self.elapsed();
    }
}
