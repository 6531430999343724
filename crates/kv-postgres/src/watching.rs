//! Hearing of commits that other servers made: rows of watched shards are read again and again, while somebody watches.
//!
//! In: shards that somebody waits for. Out: wakers.
//! Commits of this server wake their watchers at once (`committer`). PostgreSQL's NOTIFY is not used: it takes a lock of the whole
//! database at every commit, and others that speak the protocol do not have it.

use crate::PostgresCore;
use crate::store::{ShardRow, shard_columns, sql_id};
use astrarium_kv::{CommitVersion, Error, Reply, ShardId, contract};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long other servers' commits may go unnoticed by a watch.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const READ_ROWS: &str =
    concat!("SELECT s.id, ", shard_columns!(), " FROM shard s WHERE s.id = ANY($1::bigint[])");

/// Which shards are watched, how often.
#[derive(Default)]
pub(crate) struct WatchedShards {
    shards: parking_lot::Mutex<BTreeMap<ShardId, usize>>,
    is_polling: AtomicBool,
}

/// One watch; ends the interest when it is dropped.
struct Interest {
    core: Arc<PostgresCore>,
    shard: ShardId,
}

impl Drop for Interest {
    fn drop(&mut self) {
        let mut shards = self.core.watched.shards.lock();
        if let Some(count) = shards.get_mut(&self.shard) {
            *count -= 1;
            if *count == 0 {
                shards.remove(&self.shard);
            }
        }
    }
}

impl PostgresCore {
    pub(crate) fn watch(
        self: &Arc<PostgresCore>,
        shard: ShardId,
        epoch: u64,
        version: u64,
    ) -> Reply<Result<CommitVersion, Error>> {
        let core = Arc::clone(self);
        // What is known may be older than the epoch that the watcher was given by another server.
        let look = move || {
            let state = if core.is_closed() {
                Err(crate::error::closed())
            } else {
                Ok(core.known.state(shard).unwrap_or_default())
            };
            let state = state.map(|mut state| {
                state.epoch = state.epoch.max(epoch);
                state
            });
            contract::watched(shard, epoch, version, state)
        };
        match self.watchers.until(shard, look) {
            Reply::Ready(answer) => Reply::Ready(answer),
            Reply::Later(waiting) => {
                let interest = self.interest(shard);
                Reply::later(async move {
                    let answer = waiting.await;
                    drop(interest);
                    answer
                })
            }
        }
    }

    fn interest(self: &Arc<PostgresCore>, shard: ShardId) -> Interest {
        *self.watched.shards.lock().entry(shard).or_default() += 1;
        if !self.watched.is_polling.swap(true, Ordering::SeqCst) {
            let core = Arc::clone(self);
            self.runtime.spawn(async move { core.poll_watched().await });
        }
        Interest { core: Arc::clone(self), shard }
    }

    async fn poll_watched(self: Arc<PostgresCore>) {
        loop {
            let shards: Vec<ShardId> = self.watched.shards.lock().keys().copied().collect();
            if shards.is_empty() || self.is_closed() {
                self.watched.is_polling.store(false, Ordering::SeqCst);
                // Somebody may have come between the look and the note.
                if self.watched.shards.lock().is_empty()
                    || self.watched.is_polling.swap(true, Ordering::SeqCst)
                {
                    return;
                }
                continue;
            }
            self.poll_once(&shards).await;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn poll_once(&self, shards: &[ShardId]) {
        for store in self.placement.stores() {
            let mut here = Vec::new();
            for shard in shards {
                if self.store_to_read(*shard).await.is_ok_and(|other| other.id == store.id) {
                    here.push(sql_id(*shard));
                }
            }
            let Ok(connection) = store.workers.get().await else { continue };
            // A store that does not answer now is asked again soon.
            let rows = connection.query(READ_ROWS, &[&here]).await.unwrap_or_default();
            for row in &rows {
                let shard = ShardId(row.get::<_, i64>(0).cast_unsigned());
                let before = self.known.state(shard);
                self.known.note(shard, &ShardRow::of(row, 1));
                if self.known.state(shard) != before {
                    self.watchers.wake([shard]);
                }
            }
        }
    }
}
