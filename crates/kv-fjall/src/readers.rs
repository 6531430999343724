//! Keeps slow reads off the threads that serve requests.
//!
//! What is read from memory, or from a disk as fast as memory, is answered on the thread that asks: handing it to another one and
//! back would cost more than the read. Whether a block is in memory is known only to fjall and to the system, so reads are timed:
//! once one takes long, those that may go to the disk are done by a few threads of the engine, until hardly one does. (A thread that
//! has to wait for a processor looks slow too; one such read in many changes nothing for more than the next.)
//! Values in our own cache are always answered at once, and so is everybody on a thread that may wait (`env::may_block`).
//! In: reads. Out: their answers, now or later.
//! Invariants
//! - While a read of a request thread is stuck, or one was slow lately, no further request thread begins one.
//! - Threads are made when they are needed, and there are never more than [`READERS_MAX`]; what waits for them is bounded too.

use astrarium_env::may_block;
use astrarium_kv::{Error, Reply};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Threads that wait for the disk at most.
const READERS_MAX: usize = 8;

/// Reads that may wait for one of them.
const WAITING_MAX: usize = 4096;

/// A read that takes longer was not from memory.
const SLOW_READ: Duration = Duration::from_millis(2);

/// What a slow read adds to the count of slowness, and where reads are kept off request threads. A quick one takes 1 from it.
const SLOW_WEIGHT: u32 = 64;
/// The count goes no further, so that a disk that is quick again is believed soon.
const SLOWNESS_MAX: u32 = 2 * SLOW_WEIGHT;

/// How long a thread without work waits for some.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// Called before each read that may go to the disk. For tests, which make a disk slow by it.
pub type ReadHook = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Readers {
    begun: Instant,
    slowness: AtomicU32,
    /// When a read began that a request thread does at present, in milliseconds since `begun`; 0 for none. One of several.
    under_way: AtomicU64,
    hook: Option<ReadHook>,
    pool: Arc<ReaderPool>,
}

impl Readers {
    pub(crate) fn new(hook: Option<ReadHook>) -> Readers {
        Readers {
            begun: Instant::now(),
            slowness: AtomicU32::new(0),
            under_way: AtomicU64::new(0),
            hook,
            pool: Arc::default(),
        }
    }

    /// Whether a read that may go to the disk is not to be done on this thread.
    #[inline]
    pub(crate) fn are_apart(&self) -> bool {
        let is_slow = self.slowness.load(Ordering::Relaxed) >= SLOW_WEIGHT || self.is_stuck();
        is_slow && !may_block()
    }

    /// Whether a request thread waits for a read already.
    fn is_stuck(&self) -> bool {
        let under_way = self.under_way.load(Ordering::Relaxed);
        under_way != 0 && self.now() > under_way + SLOW_READ.as_millis() as u64
    }

    /// Takes note of how long single values took.
    fn note(&self, is_slow: bool) {
        let change = |slowness: u32| {
            if is_slow { Some((slowness + SLOW_WEIGHT).min(SLOWNESS_MAX)) } else { slowness.checked_sub(1) }
        };
        if is_slow || self.slowness.load(Ordering::Relaxed) > 0 {
            // An error says that there is nothing to be taken.
            let _ = self.slowness.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        }
    }

    /// Does a read that may go to the disk on this thread, and takes note if it was slow. It is of so many single values; 0 says
    /// that it may be long because it reads much.
    pub(crate) fn read<T>(&self, value_count: usize, read: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let mark = u64::try_from(begun.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX).max(1);
        let is_first = !may_block()
            && self.under_way.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if let Some(hook) = &self.hook {
            hook();
        }
        let answer = read();
        if is_first {
            self.under_way.store(0, Ordering::Relaxed);
        }
        let slow = SLOW_READ.saturating_mul(u32::try_from(value_count).unwrap_or(u32::MAX));
        if value_count > 0 {
            self.note(begun.elapsed() >= slow);
        }
        answer
    }

    /// Has another thread do a read.
    pub(crate) fn read_apart<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Reply<Result<T, Error>> {
        let (answer, receiver) = oneshot::channel();
        let is_taken = self.pool.push(Box::new(move || {
            // Whoever does not wait any more does not need it.
            if !answer.is_closed() {
                let _ = answer.send(read());
            }
        }));
        if !is_taken {
            return Reply::ready(Err(Error::Busy));
        }
        let ended =
            || Error::Unavailable { reason: "reading stopped because of an error of the program".to_owned() };
        Reply::later(async move { receiver.await.unwrap_or_else(|_| Err(ended())) })
    }

    /// Milliseconds since the beginning.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct ReaderPool {
    state: Mutex<PoolState>,
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl ReaderPool {
    /// Has a thread do a job soon; false if too many wait already, or there can be no thread.
    fn push(self: &Arc<ReaderPool>, job: Job) -> bool {
        let mut state = self.state.lock();
        if state.jobs.len() >= WAITING_MAX {
            return false;
        }
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads == READERS_MAX {
            self.work.notify_one();
            return true;
        }
        let own = Arc::clone(self);
        let made = std::thread::Builder::new().name("astrarium-read".to_owned()).spawn(move || own.work_on());
        if made.is_ok() {
            state.threads += 1;
        } else if state.threads == 0 {
            state.jobs.pop_back();
            return false;
        }
        true
    }

    fn work_on(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let is_late = self.work.wait_for(&mut state, IDLE_TIME).timed_out();
            state.idle -= 1;
            if is_late && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// While one read is stuck, further ones are done elsewhere, a thread that may wait excepted.
    #[test]
    fn a_stuck_read_keeps_others_off() {
        let readers = Arc::new(Readers::new(None));
        assert!(!readers.are_apart());
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let stuck = {
            let readers = Arc::clone(&readers);
            std::thread::spawn(move || {
                readers.read(1, || {
                    begun.send(()).unwrap();
                    may_end.recv().unwrap();
                });
            })
        };
        has_begun.recv().unwrap();
        while !readers.are_apart() {
            std::thread::yield_now();
        }
        let blocking = Arc::clone(&readers);
        let is_apart = std::thread::spawn(move || {
            astrarium_env::allow_blocking();
            blocking.are_apart()
        });
        assert!(!is_apart.join().unwrap());
        end.send(()).unwrap();
        stuck.join().unwrap();
        assert!(readers.are_apart(), "it was slow, so the next one may be");
        readers.read(1, || ());
        assert!(!readers.are_apart(), "one slow read in many says nothing");
    }

    #[test]
    fn reads_are_done_by_few_threads() {
        let readers = Readers::new(None);
        let replies: Vec<_> = (0..100u32).map(|number| readers.read_apart(move || Ok(number))).collect();
        for (number, reply) in (0..).zip(replies) {
            assert_eq!(astrarium_kv::contract::block_on(reply).unwrap(), number);
        }
        assert!(readers.pool.state.lock().threads <= READERS_MAX);
    }
}
