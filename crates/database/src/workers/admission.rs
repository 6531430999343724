//! Which pages may have a thread: at most so many at once, and of one client no more than its share.
//!
//! In: a client. Out: an [`Admission`], at once or after a while, that is given back by dropping it. Of those who wait, the
//! client with the fewest pages under way comes first, then who came first.

use super::{ClientId, WorkerUsage};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) struct Admissions {
    pages_max: usize,
    per_client_max: usize,
    waiting_max: usize,
    state: Mutex<AdmissionState>,
}

#[derive(Default)]
struct AdmissionState {
    pages: usize,
    by_client: HashMap<ClientId, usize, RandomState>,
    waiting: Vec<WaitingQuery>,
    number: u64,
    refused: u64,
}

struct WaitingQuery {
    number: u64,
    client: ClientId,
    admitted: oneshot::Sender<()>,
}

/// A page that may run.
pub(super) struct Admission {
    admissions: Arc<Admissions>,
    client: ClientId,
}

impl Admissions {
    pub(super) fn new(pages_max: usize, per_client_max: usize, waiting_max: usize) -> Admissions {
        Admissions { pages_max, per_client_max, waiting_max, state: Mutex::default() }
    }

    pub(super) fn usage(&self) -> WorkerUsage {
        let state = self.state.lock();
        WorkerUsage { pages: state.pages, waiting: state.waiting.len(), refused: state.refused }
    }

    /// Admits a page when there is room; nothing if too many wait already.
    pub(super) async fn admit(self: &Arc<Admissions>, client: ClientId) -> Option<Admission> {
        let (receiver, place) = {
            let mut state = self.state.lock();
            if self.has_room(&state, client) {
                return Some(self.enter(&mut state, client));
            }
            if state.waiting.len() >= self.waiting_max {
                state.refused += 1;
                return None;
            }
            let (admitted, receiver) = oneshot::channel();
            state.number += 1;
            let number = state.number;
            state.waiting.push(WaitingQuery { number, client, admitted });
            (receiver, Waiter { admissions: self, client, number })
        };
        let admitted = receiver.await.is_ok();
        std::mem::forget(place);
        admitted.then(|| Admission { admissions: Arc::clone(self), client })
    }

    fn has_room(&self, state: &AdmissionState, client: ClientId) -> bool {
        let own = state.by_client.get(&client).copied().unwrap_or_default();
        state.pages < self.pages_max && own < self.per_client_max
    }

    fn enter(self: &Arc<Admissions>, state: &mut AdmissionState, client: ClientId) -> Admission {
        state.pages += 1;
        *state.by_client.entry(client).or_default() += 1;
        Admission { admissions: Arc::clone(self), client }
    }

    fn leave(&self, client: ClientId) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.pages -= 1;
        if let Some(own) = state.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                state.by_client.remove(&client);
            }
        }
        self.admit_waiting(state);
    }

    fn admit_waiting(&self, state: &mut AdmissionState) {
        while state.pages < self.pages_max {
            let own = |client: ClientId| state.by_client.get(&client).copied().unwrap_or_default();
            let ready =
                state.waiting.iter().enumerate().filter(|(_, one)| own(one.client) < self.per_client_max);
            let Some((place, _)) = ready.min_by_key(|(_, one)| (own(one.client), one.number)) else { return };
            let next = state.waiting.swap_remove(place);
            state.pages += 1;
            *state.by_client.entry(next.client).or_default() += 1;
            // Whoever hung up at this moment gives its place back when it is dropped.
            let _ = next.admitted.send(());
        }
    }
}

/// A place among those who wait; dropped by who hangs up.
struct Waiter<'a> {
    admissions: &'a Arc<Admissions>,
    client: ClientId,
    number: u64,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.admissions.state.lock();
        if let Some(place) = state.waiting.iter().position(|one| one.number == self.number) {
            state.waiting.swap_remove(place);
            return;
        }
        // It had been admitted already.
        drop(state);
        self.admissions.leave(self.client);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.admissions.leave(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn admitted(admissions: &Arc<Admissions>, client: u64) -> Admission {
        match poll(pin!(admissions.admit(ClientId(client)))) {
            Poll::Ready(Some(admission)) => admission,
            _ => panic!("there is room for client {client}"),
        }
    }

    #[test]
    fn the_client_with_the_fewest_pages_is_next() {
        let admissions = Arc::new(Admissions::new(3, 3, 10));
        let first = admitted(&admissions, 1);
        let _others = [admitted(&admissions, 1), admitted(&admissions, 2)];
        let mut greedy = pin!(admissions.admit(ClientId(1)));
        let mut modest = pin!(admissions.admit(ClientId(3)));
        assert!(poll(greedy.as_mut()).is_pending() && poll(modest.as_mut()).is_pending());
        drop(first);
        assert!(poll(greedy.as_mut()).is_pending());
        assert!(matches!(poll(modest.as_mut()), Poll::Ready(Some(_))));
    }

    #[test]
    fn one_client_has_no_more_than_its_share() {
        let admissions = Arc::new(Admissions::new(10, 2, 10));
        let own = [admitted(&admissions, 1), admitted(&admissions, 1)];
        let mut third = pin!(admissions.admit(ClientId(1)));
        assert!(poll(third.as_mut()).is_pending());
        drop(admitted(&admissions, 2));
        assert!(poll(third.as_mut()).is_pending());
        drop(own);
        assert!(poll(third.as_mut()).is_ready());
    }

    #[test]
    fn too_many_are_refused_and_those_who_hang_up_make_room() {
        let admissions = Arc::new(Admissions::new(1, 1, 1));
        let own = admitted(&admissions, 1);
        {
            let mut waiting = pin!(admissions.admit(ClientId(2)));
            assert!(poll(waiting.as_mut()).is_pending());
            assert!(matches!(poll(pin!(admissions.admit(ClientId(3)))), Poll::Ready(None)));
        }
        assert_eq!(admissions.usage(), WorkerUsage { pages: 1, waiting: 0, refused: 1 });
        {
            let mut waiting = pin!(admissions.admit(ClientId(2)));
            assert!(poll(waiting.as_mut()).is_pending());
            drop(own);
            assert_eq!(admissions.usage().pages, 1, "admitted, but it does not know yet");
        }
        assert_eq!(admissions.usage().pages, 0, "and has hung up");
    }
}
