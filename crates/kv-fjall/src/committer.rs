//! The one thread that commits: it takes everything that waits, writes it with one sync, and answers.
//!
//! In: submissions from the queue. Out: answers, a new view for readers, new shard states.
//! Invariants
//! - It never waits for more work than there is, and never tries a failed write again.
//! - A group becomes visible in the order: stable storage, shard states, readers' snapshot, answers. So nobody hears of a
//!   version that a view taken afterwards does not show, and a view's counters are of its own group (`view`).
//! - When the thread ends, for whatever reason, nobody waits forever: the queue is closed and forgotten.
//!
//! Not here: what makes a batch commit or not (`group`).

use crate::error;
use crate::group::{CommitGroup, OWN_WORK};
use crate::last::Last;
use crate::queue::{QueuedWork, Submission};
use crate::set;
use crate::store::{History, Store};
use crate::{Core, FjallEngine};
use astrarium_kv::{Error, KeyPrefix};
use astrarium_packed::GroupBlock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the committer's time went since opening, waiting for work apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// Checking batches and putting groups together.
    pub prepare: Duration,
    /// Inside fjall: journal, sync, memtables, its throttling.
    pub write: Duration,
    /// New view, shard states, answers.
    pub publish: Duration,
}

/// [`CommitTimes`] in nanoseconds, as they are counted.
#[derive(Default)]
pub(crate) struct TimeCounters {
    prepare: AtomicU64,
    write: AtomicU64,
    publish: AtomicU64,
}

impl TimeCounters {
    pub(crate) fn read(&self) -> CommitTimes {
        let read = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        CommitTimes { prepare: read(&self.prepare), write: read(&self.write), publish: read(&self.publish) }
    }
}

impl FjallEngine {
    /// Where the committer's time went since opening.
    pub fn commit_times(&self) -> CommitTimes {
        self.core.load().times.read()
    }
}

pub(crate) struct Committer {
    core: Arc<Core>,
    store: Arc<Store>,
    last_group: u64,
    history: History,
    last: Last,
    group: CommitGroup,
}

impl Drop for Committer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.health.fail("writing stopped because of an error of the program".to_owned(), true);
        }
        self.core.queue.abandon();
    }
}

impl Committer {
    /// Goes on after a group, whose number `last` notes from then on.
    pub(crate) fn new(
        core: Arc<Core>,
        store: Arc<Store>,
        last_group: u64,
        history: History,
        last: Last,
    ) -> Committer {
        Committer { core, store, last_group, history, last, group: CommitGroup::default() }
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        let mut submissions = Vec::new();
        while self.core.queue.take(&mut submissions) {
            let room = self.core.set.wait_for_room(|| self.core.set_view()).map_err(set::told);
            let begun = Instant::now();
            for submission in submissions.drain(..) {
                self.consider(submission, &room);
            }
            let block = self.group.take_set(self.last_group + 1, &self.history, self.core.set.block_bytes());
            self.core.times.prepare.fetch_add(nanoseconds_since(begun), Ordering::Relaxed);
            if !self.group.is_empty() {
                match block {
                    Ok(block) => self.write(block),
                    Err(error) => self.refuse(&error.to_string(), false),
                }
            }
        }
    }

    /// Takes a batch into the group, or answers it at once.
    fn consider(&mut self, submission: Submission, room: &Result<(), Error>) {
        let Submission { work, answer, packed, .. } = submission;
        let outcome = self.core.health.check().and_then(|()| room.clone()).and_then(|()| match work {
            QueuedWork::Batch(batch) => {
                let core = &self.core;
                let version = self.group.admit(batch, &self.store, |shard| core.shard_state(shard))?;
                self.group.packed(packed);
                Ok(version)
            }
            QueuedWork::Reclaimed(prefixes) => {
                self.group.reclaim(prefixes);
                Ok(OWN_WORK)
            }
        });
        match outcome {
            Ok(version) => self.group.promise(answer, version),
            Err(error) => {
                if matches!(error, Error::Conflict { .. }) {
                    self.core.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                // Whoever does not wait for the answer any more does not need it.
                let _ = answer.send(Err(error));
            }
        }
    }

    fn write(&mut self, block: Option<GroupBlock>) {
        let begun = Instant::now();
        let group = self.last_group + 1;
        let written = self.store.wait_for_room().and_then(|()| {
            let mut writer = self.group.write_to(&self.store, group);
            if let Some(block) = &block {
                writer.set_block(group, block.value.clone());
            }
            writer.commit(group, &mut self.history)
        });
        self.core.times.write.fetch_add(nanoseconds_since(begun), Ordering::Relaxed);
        match written {
            Ok(()) => self.publish(group, block),
            Err(error) => self.refuse(&error::in_words(&error), error::may_pass(&error)),
        }
    }

    fn publish(&mut self, group: u64, block: Option<GroupBlock>) {
        let begun = Instant::now();
        self.last_group = group;
        self.last.note(group);
        let core = &self.core;
        let (dropped, reclaimed) = self.group.take_drops();
        self.change_drops(dropped, &reclaimed, group);
        let states: Vec<_> = self.group.take_shards().collect();
        core.shards.note(group, states.iter().copied());
        core.publish(&self.store, group, block);
        core.watchers.wake(states.into_iter().map(|(shard, _)| shard));
        core.mark.acknowledge(group);
        core.groups.fetch_add(1, Ordering::Relaxed);
        core.commits.fetch_add(self.group.commit_count(), Ordering::Relaxed);
        for (answer, version) in self.group.take_promises() {
            let _ = answer.send(Ok(version));
        }
        core.times.publish.fetch_add(nanoseconds_since(begun), Ordering::Relaxed);
    }

    /// Has the next view show nothing of what was dropped; what is given back does not exist any more.
    fn change_drops(&self, dropped: Vec<KeyPrefix>, reclaimed: &[KeyPrefix], group: u64) {
        if !reclaimed.is_empty() {
            self.store.values.forget_prefixes(reclaimed, group);
            self.store.drops.remove(reclaimed);
        }
        if !dropped.is_empty() {
            self.store.drops.add(dropped);
            self.core.reclaim.wake();
        }
    }

    fn refuse(&mut self, error: &str, is_passing: bool) {
        self.core.health.fail(format!("a write failed: {error}"), is_passing);
        let reason = self.core.health.failure().unwrap_or_default();
        self.group.forget_changes();
        for (answer, _) in self.group.take_promises() {
            let _ = answer.send(Err(Error::Unavailable { reason: reason.to_owned() }));
        }
    }
}

fn nanoseconds_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
