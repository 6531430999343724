//! Batches waiting for the committer.
//!
//! In: submissions from any thread. Out: groups for the one committer thread, in order of submission.
//! Invariants
//! - Bounded by count and bytes; beyond that a submission is refused at once. One batch is always taken when nothing
//!   waits, whatever its size, since it could never be taken otherwise.
//! - A batch whose changes of the set are packed already is a group of its own, and nothing of them is left to be sorted.
//! - The committer is woken only when it sleeps; it never waits for more work than there is.

use crate::health::closed;
use astrarium_kv::{CommitVersion, Error, KeyPrefix, WriteBatch};
use astrarium_packed::PackedChanges;
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
    pub(crate) work: QueuedWork,
    pub(crate) answer: Answer,
    byte_count: usize,
    /// What it changes of the set, if that is much: sorted and packed by the submitter.
    pub(crate) packed: Option<PackedChanges>,
}

/// What is submitted.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are batches, and a box would cost each of them an allocation"
)]
pub(crate) enum QueuedWork {
    /// A transaction.
    Batch(WriteBatch),
    /// Prefixes whose space is given back.
    Reclaimed(Vec<KeyPrefix>),
}

impl Submission {
    pub(crate) fn reclaimed(prefixes: Vec<KeyPrefix>, answer: Answer) -> Submission {
        Submission { work: QueuedWork::Reclaimed(prefixes), answer, byte_count: 0, packed: None }
    }

    pub(crate) fn new(batch: WriteBatch, answer: Answer) -> Submission {
        let expected: usize = batch.expectations.iter().map(|(_, key, _)| key.len()).sum();
        let byte_count = batch.byte_count() + expected;
        Submission { work: QueuedWork::Batch(batch), answer, byte_count, packed: None }
    }

    /// With what it changes of the set packed already; it gets a group of its own.
    pub(crate) fn with_packed(self, packed: Option<PackedChanges>) -> Submission {
        Submission { packed, ..self }
    }
}

#[derive(Default)]
pub(crate) struct CommitQueue {
    state: Mutex<QueueState>,
    filled: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Submission>,
    byte_count: usize,
    committer_sleeps: bool,
    closed: bool,
}

impl CommitQueue {
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
            if state.waiting.front().is_some_and(|next| next.packed.is_some()) && !group.is_empty() {
                break;
            }
            let Some(submission) = state.waiting.pop_front() else {
                break;
            };
            byte_count += submission.byte_count;
            let is_alone = submission.packed.is_some();
            group.push(submission);
            if is_alone {
                break;
            }
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
    use astrarium_packed::{KeyAction, KeyChange};

    fn submission(value_bytes: usize) -> Submission {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        batch.put(Space::Body, bytes::Bytes::from_static(b"k"), vec![0; value_bytes].into(), Stamp::NONE);
        Submission::new(batch, oneshot::channel().0)
    }

    #[test]
    fn refuses_beyond_the_count() {
        let queue = CommitQueue::default();
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
        let queue = CommitQueue::default();
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

    /// What a large batch costs the committer is known before it is queued, and nobody else's batch waits for more of it.
    #[test]
    fn packed_changes_are_a_group_of_their_own() {
        let queue = CommitQueue::default();
        let packed = || {
            let change = KeyChange::of_key(0, &[7; 20], KeyAction::Add);
            submission(1).with_packed(PackedChanges::of([change].into_iter(), 100).unwrap())
        };
        for large in [false, false, true, true, false] {
            queue.push(if large { packed() } else { submission(1) }).unwrap();
        }
        let mut sizes = Vec::new();
        while queue.len() > 0 {
            let mut group = Vec::new();
            assert!(queue.take(&mut group));
            sizes.push((group.len(), group.iter().filter(|submission| submission.packed.is_some()).count()));
        }
        assert_eq!(sizes, [(2, 0), (1, 1), (1, 1), (1, 0)]);
    }

    #[test]
    fn gives_out_what_waits_when_closed() {
        let queue = CommitQueue::default();
        queue.push(submission(1)).unwrap();
        queue.close();
        assert!(matches!(queue.push(submission(1)), Err(Error::Unavailable { .. })));
        let mut group = Vec::new();
        assert!(queue.take(&mut group));
        assert!(!queue.take(&mut Vec::new()));
    }
}
