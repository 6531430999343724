//! Whose turn it is: the tasks that wait, one line for each script, and what is known of the scripts.
//!
//! Lines take turns, so that a thousand runs of one script do not stand before the one run of another. Scripts that are
//! known to end soon come before unknown ones, and those that were seen to take long come last and only a few at a time.
//! Every fourth turn goes by the order of lines alone, so that nothing waits forever.

use super::PoolTask;
use super::ticket::Ticket;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a script that had to be stopped is suspected of having to be stopped again.
const SUSPICION: Duration = Duration::from_mins(1);
/// Scripts that something is known of; of more we begin anew.
const KNOWN_MAX: usize = 10_000;
/// Every so many turns the next line comes, whatever is known of its script.
const PLAIN_TURN: u64 = 4;

type ById<T> = HashMap<Arc<str>, T, foldhash::fast::RandomState>;

/// What experience says of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It has ended soon each time.
    Proven,
    Unknown,
    /// It runs for long now, or was stopped not long ago.
    Suspect,
}

/// The tasks that wait.
#[derive(Default)]
pub(super) struct Queue {
    lines: ById<VecDeque<PoolTask>>,
    /// The lines' scripts, in the order of their turns.
    order: VecDeque<Arc<str>>,
    length: usize,
    turns: u64,
    /// Since when scripts are suspects; nothing for those that are proven.
    known: ById<Option<Instant>>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, task: PoolTask) {
        let id = Arc::clone(&task.ticket.script_id);
        let line = self.lines.entry(id).or_insert_with_key(|id| {
            self.order.push_back(Arc::clone(id));
            VecDeque::new()
        });
        line.push_back(task);
        self.length += 1;
    }

    /// The task whose turn it is, of those whose scripts stand at least so well.
    pub(super) fn pop(&mut self, worst: Standing) -> Option<PoolTask> {
        if self.length == 0 {
            return None;
        }
        let now = Instant::now();
        let is_plain = self.turns % PLAIN_TURN == PLAIN_TURN - 1;
        let standings = self.order.iter().enumerate().map(|(place, id)| (place, self.standing(id, now)));
        let mut allowed = standings.filter(|(_, standing)| *standing <= worst);
        let (place, _) =
            if is_plain { allowed.next() } else { allowed.min_by_key(|(_, standing)| *standing) }?;
        self.turns += 1;
        let id = self.order.remove(place)?;
        let line = self.lines.get_mut(&id)?;
        let task = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&id);
        } else {
            self.order.push_back(id);
        }
        self.length -= usize::from(task.is_some());
        task
    }

    /// Takes out the task of a ticket.
    pub(super) fn remove(&mut self, ticket: &Arc<Ticket>) -> Option<PoolTask> {
        let line = self.lines.get_mut(&ticket.script_id)?;
        let place = line.iter().position(|task| Arc::ptr_eq(&task.ticket, ticket))?;
        let task = line.remove(place);
        self.forget_empty(&ticket.script_id);
        self.length -= usize::from(task.is_some());
        task
    }

    /// Takes out what has waited too long.
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<PoolTask> {
        let mut expired = Vec::new();
        for line in self.lines.values_mut() {
            while line.front().is_some_and(|task| task.lost_at <= now) {
                expired.extend(line.pop_front());
            }
        }
        self.length -= expired.len();
        for task in &expired {
            self.forget_empty(&task.ticket.script_id);
        }
        expired
    }

    /// When the first task will have waited too long.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.lines.values().filter_map(|line| line.front()).map(|task| task.lost_at).min()
    }

    /// Everything that waits.
    pub(super) fn take_all(&mut self) -> Vec<PoolTask> {
        self.order.clear();
        self.length = 0;
        std::mem::take(&mut self.lines).into_values().flatten().collect()
    }

    pub(super) fn standing(&self, id: &str, now: Instant) -> Standing {
        match self.known.get(id) {
            None => Standing::Unknown,
            Some(None) => Standing::Proven,
            Some(Some(since)) if now.saturating_duration_since(*since) < SUSPICION => Standing::Suspect,
            Some(Some(_)) => Standing::Unknown,
        }
    }

    /// Notes how a script did.
    pub(super) fn note(&mut self, id: &Arc<str>, is_suspect: bool) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(Arc::clone(id), is_suspect.then(Instant::now));
    }

    fn forget_empty(&mut self, id: &Arc<str>) {
        if self.lines.get(id).is_some_and(VecDeque::is_empty) {
            self.lines.remove(id);
            self.order.retain(|other| other != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::{Deadline, Stop};
    use crate::pool::{PoolWork, Runner};

    struct Nothing;

    impl PoolWork for Nothing {
        fn run(self: Box<Self>, _: Result<&Runner, &str>, _: &Stop, _: Deadline) {}
    }

    fn push(queue: &mut Queue, id: &str) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::new(id.into(), Duration::ZERO, |_| ()));
        let lost_at = Instant::now() + Duration::from_mins(1);
        queue.push(PoolTask { ticket: Arc::clone(&ticket), work: Box::new(Nothing), lost_at });
        ticket
    }

    fn order(queue: &mut Queue, worst: Standing) -> String {
        let ids = std::iter::from_fn(|| queue.pop(worst));
        ids.map(|task| task.ticket.script_id.to_string()).collect()
    }

    #[test]
    fn scripts_take_turns() {
        let mut queue = Queue::default();
        for id in ["a", "a", "a", "a", "b", "c", "b"] {
            push(&mut queue, id);
        }
        assert_eq!(queue.len(), 7);
        assert_eq!(order(&mut queue, Standing::Suspect), "abcabaa");
        assert_eq!((queue.len(), queue.order.len(), queue.lines.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_known_to_end_comes_first_and_what_is_not_comes_last() {
        let mut queue = Queue::default();
        queue.note(&"good".into(), false);
        queue.note(&"bad".into(), true);
        for id in ["bad", "bad", "new", "new", "new", "good", "good", "good", "good"] {
            push(&mut queue, id);
        }
        // The fourth of each four turns goes by order alone.
        assert_eq!(order(&mut queue, Standing::Suspect), "goodgoodgoodbadgoodnewnewbadnew");
        push(&mut queue, "bad");
        push(&mut queue, "new");
        assert_eq!(order(&mut queue, Standing::Unknown), "new");
        assert_eq!(queue.len(), 1);
        queue.note(&"bad".into(), false);
        assert_eq!(order(&mut queue, Standing::Proven), "bad");
    }

    #[test]
    fn what_is_cancelled_or_late_leaves() {
        let mut queue = Queue::default();
        let (first, second) = (push(&mut queue, "a"), push(&mut queue, "a"));
        let third = push(&mut queue, "b");
        assert!(queue.remove(&second).is_some() && queue.remove(&second).is_none());
        assert!(queue.remove(&third).is_some());
        assert_eq!(queue.len(), 1);
        assert!(queue.take_expired(Instant::now()).is_empty());
        let expired = queue.take_expired(Instant::now() + Duration::from_hours(1));
        assert!(expired.len() == 1 && Arc::ptr_eq(&expired[0].ticket, &first));
        assert!(queue.expires_at().is_none() && queue.pop(Standing::Suspect).is_none());
        push(&mut queue, "a");
        assert_eq!(queue.take_all().len(), 1);
        assert!(queue.len() == 0 && queue.pop(Standing::Suspect).is_none());
    }
}
