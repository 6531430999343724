//! What an account's servers, stores and shards are at the moment, for operators and for metrics.
//!
//! In: an open engine. Out: plain data. Nothing is written, and whoever asks needs not be one of the servers; so it works while
//! all of them are down.
//! Invariants
//! - A store that does not answer is told of with why, and keeps nobody from hearing of the others.
//! - No address that is given has a password.

use crate::connection::{ConnectionPurpose, StoreConnection};
use crate::error::Trouble;
use crate::members::owner_among;
use crate::pool::ConnectionPool;
use crate::schema::{self, FORMAT, SchemaError};
use crate::store::PostgresStore;
use crate::url::StoreUrl;
use crate::{AccountServer, PostgresCore, PostgresEngine, StoreStatus};
use astrarium_kv::{Error, PlaceId, ShardId, TALLY_COUNT};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A whole account, as its stores tell it.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The account's number.
    pub account: String,
    /// Its servers, those that are gone for less than a day included.
    pub servers: Vec<AccountServer>,
    /// Its stores, the first one first.
    pub stores: Vec<StoreOverview>,
}

/// A store, as it tells itself.
#[derive(Debug, Clone)]
pub struct StoreOverview {
    /// Its number.
    pub id: PlaceId,
    /// What operators call it.
    pub name: String,
    /// Its address, without a password.
    pub url: String,
    /// Whether it gets no new shards, because those it has are moved away.
    pub is_draining: bool,
    /// Why it does not answer, if it does not.
    pub trouble: Option<String>,
    /// What it says of itself.
    pub status: Option<StoreStatus>,
    /// Who follows it, as far as the user that we are may see that.
    pub standbys: Vec<Standby>,
    /// Its shards, in the order of their numbers.
    pub shards: Vec<ShardOverview>,
}

/// A standby of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Standby {
    /// Its `application_name`.
    pub name: String,
    /// What it does: `streaming`, `catchup` and so on.
    pub state: String,
    /// Whether commits wait for it: `sync`, `quorum`, `potential`, `async`.
    pub sync_state: String,
    /// Bytes of log that it has not replayed.
    pub lag_bytes: u64,
    /// Seconds between a commit and its replay there, of late; nothing when there was none.
    pub lag_seconds: Option<f64>,
}

/// A shard as its store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardOverview {
    /// Its number.
    pub shard: ShardId,
    /// The version of the last commit.
    pub version: u64,
    /// The sums that are kept for it.
    pub tallies: [i64; TALLY_COUNT],
    /// Blocks of its index that no run has yet, and their bytes.
    pub unmerged_blocks: u64,
    /// See there.
    pub unmerged_bytes: u64,
    /// Whether its index is lost, and has to be built anew.
    pub is_index_lost: bool,
}

/// What this process uses and knows, without asking anybody.
#[derive(Debug, Clone, Default)]
pub struct EngineUse {
    /// How long ago the last heartbeat that succeeded was sent; nothing for one who is no server.
    pub heartbeat_age: Option<Duration>,
    /// Merges of indexes that this process did.
    pub merges: u64,
    /// Blocks of indexes that no run has yet, of the shards that are in memory here.
    pub unmerged_blocks: u64,
    /// Their bytes.
    pub unmerged_bytes: u64,
    /// Each store.
    pub stores: Vec<StoreUse>,
}

/// How this process gets on with a store.
#[derive(Debug, Clone)]
pub struct StoreUse {
    /// What operators call it.
    pub name: String,
    /// Whether it answers.
    pub is_up: bool,
    /// Connections by purpose: `read`, `commit`, `work`.
    pub pools: [PoolUse; 4],
}

/// Connections for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    /// The purpose.
    pub purpose: &'static str,
    /// How many somebody has at the moment.
    pub in_use: usize,
    /// How many there may be.
    pub connections_max: usize,
}

impl Overview {
    /// The server that commits for a shard, if one is alive.
    pub fn owner(&self, shard: ShardId) -> Option<&AccountServer> {
        owner_among(self.servers.iter().filter(|server| server.is_alive), shard)
    }
}

const READ_SHARDS: &str = "SELECT s.id, s.version, s.tally_0, s.tally_1, s.set_is_lost, \
    coalesce(g.blocks, 0)::bigint, coalesce(g.bytes, 0)::bigint FROM shard s \
    LEFT JOIN (SELECT shard, count(*) AS blocks, sum(octet_length(block)) AS bytes FROM set_group GROUP BY shard) g \
    ON g.shard = s.id WHERE NOT s.is_dropped ORDER BY s.id";
// Without the right to see them, rows of other users have no state.
const READ_STANDBYS: &str = "SELECT application_name, state, coalesce(sync_state, 'async'), \
    greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint, \
    extract(epoch FROM replay_lag)::float8 \
    FROM pg_stat_replication WHERE state IS NOT NULL AND application_name <> 'pg_basebackup' ORDER BY application_name";
const READ_WANTED_STANDBYS: &str = "SELECT current_setting('synchronous_standby_names')";

impl PostgresEngine {
    /// The whole account: asks every store.
    pub fn overview(&self) -> Result<Overview, Error> {
        let core = Arc::clone(&self.core);
        self.blocking(async move { core.overview().await })
    }

    /// What this process uses and knows, without asking anybody.
    pub fn usage(&self) -> EngineUse {
        let core = &self.core;
        let (blocks, bytes) = core.sets.all_unmerged();
        EngineUse {
            heartbeat_age: core.members.heartbeat_age(),
            merges: core.stats.merges.load(Ordering::Relaxed),
            unmerged_blocks: blocks as u64,
            unmerged_bytes: bytes,
            stores: core.placement.stores().iter().map(|store| store_use(store)).collect(),
        }
    }
}

fn store_use(store: &PostgresStore) -> StoreUse {
    let pool = |purpose, pool: &Arc<ConnectionPool>| PoolUse {
        purpose,
        in_use: pool.in_use(),
        connections_max: pool.connections_max(),
    };
    StoreUse {
        name: store.name.clone(),
        is_up: store.health.trouble().is_none(),
        pools: [
            pool("read", &store.readers),
            pool("catalog", &store.catalog),
            pool("commit", &store.committers),
            pool("work", &store.workers),
        ],
    }
}

impl PostgresCore {
    async fn overview(self: Arc<PostgresCore>) -> Result<Overview, Error> {
        let servers = self.members().await?;
        let places = self.places().await?;
        let mut stores = Vec::new();
        for store in self.placement.stores() {
            let place = places.iter().find(|place| place.id == store.id);
            let mut told = StoreOverview {
                id: store.id,
                name: store.name.clone(),
                url: store.url.shown(),
                is_draining: place.is_some_and(|place| place.is_draining),
                trouble: None,
                status: None,
                standbys: Vec::new(),
                shards: Vec::new(),
            };
            if let Err(error) = look_at(&store.url, &mut told).await {
                told.trouble = Some(error.to_string());
            }
            stores.push(told);
        }
        Ok(Overview { account: format!("{:032x}", self.account), servers, stores })
    }
}

/// Fills in what a store tells of itself.
async fn look_at(url: &StoreUrl, told: &mut StoreOverview) -> Result<(), SchemaError> {
    let mut status = schema::status(url).await?;
    let format = status.format;
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    // YugabyteDB replicates in its own way, and has no such view.
    if let Ok((standbys, warning)) = read_standbys(&connection).await {
        told.standbys = standbys;
        status.warnings.extend(warning);
    }
    told.status = Some(status);
    if format == Some(FORMAT) {
        let rows = connection.query(READ_SHARDS, &[]).await?;
        told.shards = rows.iter().map(shard_of).collect();
    }
    Ok(())
}

/// The standbys, and what is dangerous about how they are used.
async fn read_standbys(connection: &StoreConnection) -> Result<(Vec<Standby>, Option<String>), Trouble> {
    let rows = connection.query(READ_STANDBYS, &[]).await?;
    let standbys: Vec<Standby> = rows
        .iter()
        .map(|row| Standby {
            name: row.get(0),
            state: row.get(1),
            sync_state: row.get(2),
            lag_bytes: row.get::<_, Option<i64>>(3).unwrap_or(0).cast_unsigned(),
            lag_seconds: row.get(4),
        })
        .collect();
    let wanted = connection.query(READ_WANTED_STANDBYS, &[]).await?;
    let is_wanted = wanted.first().is_some_and(|row| !row.get::<_, &str>(0).is_empty());
    let is_followed = standbys.iter().any(|standby| matches!(standby.sync_state.as_str(), "sync" | "quorum"));
    let warning = match (is_wanted, is_followed) {
        (false, _) if !standbys.is_empty() => {
            Some("its standbys are asynchronous: promoting one can lose what was acknowledged")
        }
        (true, false) => Some("no synchronous standby is to be seen: commits wait until one is back"),
        _ => None,
    };
    Ok((standbys, warning.map(str::to_owned)))
}

fn shard_of(row: &tokio_postgres::Row) -> ShardOverview {
    let number = |index: usize| row.get::<_, i64>(index).cast_unsigned();
    ShardOverview {
        shard: ShardId(number(0)),
        version: number(1),
        tallies: [row.get(2), row.get(3)],
        is_index_lost: row.get(4),
        unmerged_blocks: number(5),
        unmerged_bytes: number(6),
    }
}
