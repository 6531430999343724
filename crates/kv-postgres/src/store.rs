//! One PostgreSQL that holds shards: its connections, and the rows that everybody reads.
//!
//! In: an address. Out: pools for each purpose, a shard's row.
//! Invariant: nobody waits for a connection that somebody has who waits for one himself. Whoever has one for a range's view may take one
//! for the catalog's, and then one for commits or for work, never the other way round, and never a second one of the same kind; what
//! reads the catalog and then ranges is background work, of which there is little.

use crate::connection::{ConnectionPurpose, StoreConnection};
use crate::error::Trouble;
use crate::pool::{ConnectionPool, StoreHealth, StoreIdentity};
use crate::url::StoreUrl;
use astrarium_kv::contract::META_SHARD;
use astrarium_kv::{KeyPrefix, PlaceId, PrefixSet, ShardId, ShardState, Space};
use bytes::Bytes;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_postgres::Row;

/// How many connections a server has to one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreConnections {
    /// For views of ranges; a page of a query has one, or some if they are free.
    pub readers: usize,
    /// For views of the catalog.
    pub catalog: usize,
    /// For commits: so many ranges commit at the same time.
    pub committers: usize,
    /// For merges and sweeps.
    pub workers: usize,
}

impl Default for StoreConnections {
    fn default() -> StoreConnections {
        StoreConnections { readers: 24, catalog: 4, committers: 8, workers: 4 }
    }
}

/// A store.
pub(crate) struct PostgresStore {
    pub(crate) id: PlaceId,
    pub(crate) name: String,
    pub(crate) url: StoreUrl,
    pub(crate) health: Arc<StoreHealth>,
    pub(crate) readers: Arc<ConnectionPool>,
    pub(crate) catalog: Arc<ConnectionPool>,
    pub(crate) committers: Arc<ConnectionPool>,
    pub(crate) workers: Arc<ConnectionPool>,
}

impl PostgresStore {
    pub(crate) fn new(
        identity: &StoreIdentity,
        name: String,
        url: StoreUrl,
        limits: StoreConnections,
        runtime: &Handle,
    ) -> Arc<PostgresStore> {
        let health = Arc::<StoreHealth>::default();
        let pool = |purpose, connections_max| {
            let (identity, url) = (identity.clone(), url.clone());
            ConnectionPool::new(identity, url, purpose, connections_max, Arc::clone(&health), runtime.clone())
        };
        let readers = pool(ConnectionPurpose::Read, limits.readers);
        let catalog = pool(ConnectionPurpose::Read, limits.catalog);
        let committers = pool(ConnectionPurpose::Commit, limits.committers);
        let workers = pool(ConnectionPurpose::Work, limits.workers);
        let id = identity.place;
        Arc::new(PostgresStore { id, name, url, health, readers, catalog, committers, workers })
    }

    fn pools(&self) -> [&Arc<ConnectionPool>; 4] {
        [&self.readers, &self.catalog, &self.committers, &self.workers]
    }

    /// The connections for views of a shard.
    pub(crate) fn readers_of(&self, shard: ShardId) -> &Arc<ConnectionPool> {
        if shard == META_SHARD { &self.catalog } else { &self.readers }
    }

    pub(crate) fn watch(&self) {
        let silent = self.pools().iter().filter(|pool| pool.watch()).count();
        if silent > 0 {
            self.pools().iter().for_each(|pool| pool.distrust());
        }
    }

    pub(crate) fn close(&self) {
        self.pools().iter().for_each(|pool| pool.close());
    }
}

/// The columns of a shard's row, in the order that [`ShardRow::of`] reads them.
macro_rules! shard_columns {
    () => {
        "s.version, s.epoch, s.high_water, s.tally_0, s.tally_1, s.is_dropped, s.set_group, s.manifest, s.drops, \
         s.has_chunks, s.pending"
    };
}
pub(crate) use shard_columns;

/// How many they are.
pub(crate) const SHARD_COLUMNS: usize = 11;

/// What the store has of a shard beside its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShardRow {
    /// Whether there is a row; nothing was committed to a shard without one.
    pub(crate) is_there: bool,
    pub(crate) state: ShardState,
    /// The version of the last commit group that changed the set.
    pub(crate) set_group: u64,
    /// The number of the set's manifest; 0 while there is none.
    pub(crate) manifest: u64,
    /// How often its dropped prefixes have changed.
    pub(crate) drops: u64,
    /// Whether a value was ever too long for one row.
    pub(crate) has_chunks: bool,
    /// A change that somebody is about to make together with the catalog (`across`).
    pub(crate) pending: Option<Vec<u8>>,
}

impl ShardRow {
    /// Reads the columns of [`shard_columns`], from this one on.
    pub(crate) fn of(row: &Row, first: usize) -> ShardRow {
        let number = |index: usize| row.get::<_, i64>(first + index).cast_unsigned();
        ShardRow {
            is_there: true,
            state: ShardState {
                version: number(0),
                epoch: number(1),
                high_water: number(2),
                tallies: [row.get(first + 3), row.get(first + 4)],
                is_dropped: row.get(first + 5),
            },
            set_group: number(6),
            manifest: number(7),
            drops: number(8),
            has_chunks: row.get(first + 9),
            pending: row.get(first + 10),
        }
    }
}

const READ_SHARD: &str = concat!("SELECT ", shard_columns!(), " FROM shard s WHERE s.id = $1");
const READ_DROPS: &str = "SELECT space, prefix FROM dropped_prefix WHERE shard = $1";

/// A shard's row; that of one to which nothing was committed is empty.
pub(crate) async fn read_shard(connection: &StoreConnection, shard: ShardId) -> Result<ShardRow, Trouble> {
    let rows = connection.query(READ_SHARD, &[&sql_id(shard)]).await?;
    Ok(rows.first().map(|row| ShardRow::of(row, 0)).unwrap_or_default())
}

/// The dropped prefixes of a shard whose space is not given back.
pub(crate) async fn read_drops(connection: &StoreConnection, shard: ShardId) -> Result<PrefixSet, Trouble> {
    let rows = connection.query(READ_DROPS, &[&sql_id(shard)]).await?;
    Ok(rows.iter().map(|row| prefix_of(row, 0)).collect())
}

/// A dropped prefix of two columns.
pub(crate) fn prefix_of(row: &Row, first: usize) -> KeyPrefix {
    let (space, prefix) = (row.get::<_, i16>(first), row.get::<_, Vec<u8>>(first + 1));
    KeyPrefix { space: Space::ALL.get(space.cast_unsigned() as usize).copied(), bytes: Bytes::from(prefix) }
}

/// A shard's number as a column has it.
pub(crate) fn sql_id(shard: ShardId) -> i64 {
    shard.0.cast_signed()
}

/// A space as a column has it; the set is none of them.
pub(crate) fn sql_space(space: Option<Space>) -> i16 {
    space.map_or(-1, |space| space as i16)
}
