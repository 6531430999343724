//! What this server has seen of shards: enough to answer a watch at once, and never more than a hint for anything else.
//!
//! In: rows of shards, whenever one was read or written. Out: the newest of them.
//! Invariant: what is noted was true once, and never goes back while its store continues one history (`history`); it may be old.

use crate::PostgresCore;
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::history::StoreHistories;
use crate::store::{ShardRow, read_drops};
use astrarium_kv::{PrefixSet, ShardId, ShardState};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct SeenShards {
    history: Arc<StoreHistories>,
    /// With the history that they are of.
    states: RwLock<HashMap<ShardId, (u64, ShardState), RandomState>>,
    /// Dropped prefixes of shards, as of a history and a number of changes.
    drops: RwLock<HashMap<ShardId, KnownDrops, RandomState>>,
}

type KnownDrops = ((u64, u64), Arc<PrefixSet>);

impl SeenShards {
    pub(crate) fn new(history: Arc<StoreHistories>) -> SeenShards {
        SeenShards { history, ..SeenShards::default() }
    }

    /// The newest state that was seen.
    pub(crate) fn state(&self, shard: ShardId) -> Option<ShardState> {
        let (history, state) = *self.states.read().get(&shard)?;
        (history == self.history.now()).then_some(state)
    }

    /// Whether the shard has a row for sure.
    pub(crate) fn exists(&self, shard: ShardId) -> bool {
        self.state(shard).is_some()
    }

    pub(crate) fn note(&self, shard: ShardId, row: &ShardRow) {
        if !row.is_there {
            return;
        }
        let now = self.history.now();
        let mut states = self.states.write();
        let (history, known) = states.entry(shard).or_default();
        if *history != now || (row.state.epoch, row.state.version) >= (known.epoch, known.version) {
            (*history, *known) = (now, row.state);
        }
    }

    pub(crate) fn forget(&self, shard: ShardId) {
        self.states.write().remove(&shard);
    }

    fn drops(&self, shard: ShardId, changes: u64) -> Option<Arc<PrefixSet>> {
        self.drops
            .read()
            .get(&shard)
            .filter(|(known, _)| *known == (self.history.now(), changes))
            .map(|(_, drops)| Arc::clone(drops))
    }

    fn note_drops(&self, shard: ShardId, known: (u64, u64), drops: &Arc<PrefixSet>) {
        self.drops.write().insert(shard, (known, Arc::clone(drops)));
    }
}

impl PostgresCore {
    /// The dropped prefixes of a shard, whose row says how often they have changed; over a connection that sees that row.
    pub(crate) async fn drops_of(
        &self,
        connection: &StoreConnection,
        shard: ShardId,
        changes: u64,
    ) -> Result<Arc<PrefixSet>, Trouble> {
        if changes == 0 {
            return Ok(Arc::default());
        }
        if let Some(known) = self.known.drops(shard, changes) {
            return Ok(known);
        }
        let history = self.history.now();
        let drops = Arc::new(read_drops(connection, shard).await?);
        self.known.note_drops(shard, (history, changes), &drops);
        Ok(drops)
    }
}
