//! What this server has seen of shards: enough to answer a watch at once, and never more than a hint for anything else.
//!
//! In: rows of shards, whenever one was read or written. Out: the newest of them.
//! Invariant: what is noted was true once, and never goes back; it may be old.

use crate::PostgresCore;
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::store::{ShardRow, read_drops};
use astrarium_kv::{PrefixSet, ShardId, ShardState};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct SeenShards {
    states: RwLock<HashMap<ShardId, ShardState, RandomState>>,
    /// Dropped prefixes of shards, as of a number of changes.
    drops: RwLock<HashMap<ShardId, (u64, Arc<PrefixSet>), RandomState>>,
}

impl SeenShards {
    /// The newest state that was seen.
    pub(crate) fn state(&self, shard: ShardId) -> Option<ShardState> {
        self.states.read().get(&shard).copied()
    }

    /// Whether the shard has a row for sure.
    pub(crate) fn exists(&self, shard: ShardId) -> bool {
        self.states.read().contains_key(&shard)
    }

    pub(crate) fn note(&self, shard: ShardId, row: &ShardRow) {
        if !row.is_there {
            return;
        }
        let mut states = self.states.write();
        let known = states.entry(shard).or_default();
        if (row.state.epoch, row.state.version) >= (known.epoch, known.version) {
            *known = row.state;
        }
    }

    pub(crate) fn forget(&self, shard: ShardId) {
        self.states.write().remove(&shard);
    }

    fn drops(&self, shard: ShardId, changes: u64) -> Option<Arc<PrefixSet>> {
        self.drops
            .read()
            .get(&shard)
            .filter(|(known, _)| *known == changes)
            .map(|(_, drops)| Arc::clone(drops))
    }

    fn note_drops(&self, shard: ShardId, changes: u64, drops: &Arc<PrefixSet>) {
        self.drops.write().insert(shard, (changes, Arc::clone(drops)));
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
        let drops = Arc::new(read_drops(connection, shard).await?);
        self.known.note_drops(shard, changes, &drops);
        Ok(drops)
    }
}
