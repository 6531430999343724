//! Batches waiting for the committer.
//!
//! In: submissions from any thread. Out: groups for the one committer thread, in order of submission.
//! Invariants
//! - Bounded by count and bytes; beyond that a submission is refused at once. One batch is always taken when nothing
//!   waits, whatever its size, since it could never be taken otherwise.
//! - The committer is woken only when it sleeps; it never waits for more work than there is.

use crate::health::closed;
use astrarium_kv::{CommitVersion, Error, WriteBatch};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Batches that may wait.
const WAITING_COUNT_MAX: usize = 4096;
/// Bytes of keys and values that may wait.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Batches of one group at most.
const GROUP_COUNT_MAX: usize = 1024;
/// A group takes no further batch once it has this many bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Where a submitter hears what became of its batch.
pub(crate) type Answer = oneshot::Sender<Result<CommitVersion, Error>>;

pub(crate) struct Submission {
    pub(crate) batch: WriteBatch,
    pub(crate) answer: Answer,
    byte_count: usize,
}

impl Submission {
    pub(crate) fn new(batch: WriteBatch, answer: Answer) -> Submission {
        let expected: usize = batch.expectations.iter().map(|(_, key, _)| key.len()).sum();
        let byte_count = batch.byte_count() + expected;
        Submission { batch, answer, byte_count }
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Submission>,
    byte_count: usize,
    committer_sleeps: bool,
    closed: bool,
}

impl Queue {
    pub(crate) fn push(&self, submission: Submission) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        let is_full = state.waiting.len() >= WAITING_COUNT_MAX
            || state.byte_count + submission.byte_count > WAITING_BYTES_MAX;
        if is_full && !state.waiting.is_empty() {
            return Err(Error::Busy);
        }
        state.byte_count += submission.byte_count;
        state.waiting.push_back(submission);
        if std::mem::take(&mut state.committer_sleeps) {
            drop(state);
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for work and fills `group` with it. False when the queue is closed and everything in it was given out.
    pub(crate) fn take(&self, group: &mut Vec<Submission>) -> bool {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            state.committer_sleeps = true;
            self.filled.wait(&mut state);
        }
        let mut byte_count = 0;
        while group.len() < GROUP_COUNT_MAX && byte_count < GROUP_BYTES_MAX {
            let Some(submission) = state.waiting.pop_front() else {
                break;
            };
            byte_count += submission.byte_count;
            group.push(submission);
        }
        state.byte_count -= byte_count;
        true
    }

    /// Takes nothing more; what waits is still given out.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
    }

    /// Takes nothing more, and forgets what waits: its submitters hear that the committer is gone.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.byte_count = 0;
        let forgotten = std::mem::take(&mut state.waiting);
        drop(state);
        drop(forgotten);
        self.filled.notify_one();
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_kv::{ShardId, Space, Stamp};

    fn submission(value_bytes: usize) -> Submission {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        batch.put(Space::Body, bytes::Bytes::from_static(b"k"), vec![0; value_bytes].into(), Stamp::NONE);
        Submission::new(batch, oneshot::channel().0)
    }

    #[test]
    fn refuses_beyond_the_count() {
        let queue = Queue::default();
        for _ in 0..WAITING_COUNT_MAX {
            queue.push(submission(0)).unwrap();
        }
        assert!(matches!(queue.push(submission(0)), Err(Error::Busy)));
        let mut group = Vec::new();
        assert!(queue.take(&mut group));
        assert_eq!((group.len(), queue.len()), (GROUP_COUNT_MAX, WAITING_COUNT_MAX - GROUP_COUNT_MAX));
        queue.push(submission(0)).unwrap();
    }

    #[test]
    fn refuses_beyond_the_bytes_but_takes_one_of_any_size() {
        let queue = Queue::default();
        queue.push(submission(WAITING_BYTES_MAX + 1)).unwrap();
        assert!(matches!(queue.push(submission(0)), Err(Error::Busy)));
        let mut group = Vec::new();
        assert!(queue.take(&mut group));
        assert_eq!(group.len(), 1);
        for _ in 0..3 {
            queue.push(submission(GROUP_BYTES_MAX / 2)).unwrap();
        }
        group.clear();
        assert!(queue.take(&mut group));
        assert_eq!(group.len(), 2, "a group stops when it has enough bytes");
    }

    #[test]
    fn gives_out_what_waits_when_closed() {
        let queue = Queue::default();
        queue.push(submission(1)).unwrap();
        queue.close();
        assert!(matches!(queue.push(submission(1)), Err(Error::Unavailable { .. })));
        let mut group = Vec::new();
        assert!(queue.take(&mut group));
        assert!(!queue.take(&mut Vec::new()));
    }
}
