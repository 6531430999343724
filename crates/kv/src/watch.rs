//! Waiting until a shard moves, without asking again and again.
//!
//! In: a condition that looks at a shard, and from engines the news that shards have changed. Out: a future that ends when the
//! condition gives an answer. Shared by all engines of this process; a remote one has its own way to hear of changes.
//! Invariants
//! - Nobody sleeps through a change: a waiter is registered before it looks a last time, and engines tell of a change after it
//!   can be seen.
//! - A waiter that is dropped leaves nothing behind.

use crate::{Reply, ShardId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// Those who wait for a shard of one engine.
#[derive(Debug, Default)]
pub struct Watchers {
    waiting: Mutex<Waiting>,
    /// How many they are, so that nobody waiting costs a commit nothing.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: BTreeMap<(ShardId, u64), Waker>,
    last: u64,
}

impl Watchers {
    /// Ends when `look` gives something. It is called now, and again after each change of the shard.
    pub fn until<T: Unpin + Send + 'static>(
        self: &Arc<Watchers>,
        shard: ShardId,
        mut look: impl FnMut() -> Option<T> + Send + Unpin + 'static,
    ) -> Reply<T> {
        match look() {
            Some(answer) => Reply::ready(answer),
            None => Reply::later(Watching { watchers: Arc::clone(self), shard, number: None, look }),
        }
    }

    /// Tells that shards have changed; to be called when that can be seen.
    pub fn wake(&self, shards: impl IntoIterator<Item = ShardId>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for shard in shards {
            let wakers: Vec<Waker> = {
                let waiting = self.waiting.lock();
                waiting.wakers.range((shard, 0)..=(shard, u64::MAX)).map(|(_, waker)| waker.clone()).collect()
            };
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Has everyone look again, at the end of an engine, say.
    pub fn wake_all(&self) {
        let wakers: Vec<Waker> = self.waiting.lock().wakers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn register(&self, shard: ShardId, number: Option<u64>, waker: &Waker) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = number.unwrap_or_else(|| {
            waiting.last += 1;
            self.count.fetch_add(1, Ordering::SeqCst);
            waiting.last
        });
        waiting.wakers.insert((shard, number), waker.clone());
        number
    }
}

/// One who waits.
struct Watching<L> {
    watchers: Arc<Watchers>,
    shard: ShardId,
    /// Where it is registered, once it is.
    number: Option<u64>,
    look: L,
}

impl<T, L: FnMut() -> Option<T> + Unpin> Future for Watching<L> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let watching = self.get_mut();
        watching.number = Some(watching.watchers.register(watching.shard, watching.number, context.waker()));
        (watching.look)().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<L> Drop for Watching<L> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.watchers.waiting.lock().wakers.remove(&(self.shard, number));
            self.watchers.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
