//! The servers of an account: who is alive by the first store's clock, and which of them owns a shard.
//!
//! In: this server's description, a heartbeat every second. Out: the servers that are alive; the owner of a shard; by how much the
//! machine's clock differs from the store's.
//! Invariants
//! - Ownership is a belief: it decides who is asked to commit, never who may. A wrong owner is slower.
//! - A server that could not renew its row stops owning well before the row expires, so it never owns beside its successor by its own
//!   clock either.
//! - Marks of a server (`committer`) go only with its row, and that long after it expired.

use crate::PostgresCore;
use crate::error::Trouble;
use astrarium_kv::ShardId;
use parking_lot::{Mutex, RwLock};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a server says that it is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// How long a heartbeat may take.
const HEARTBEAT_TIME_MAX: Duration = Duration::from_secs(2);

/// For how long a heartbeat counts, on the store's clock.
const ALIVE_SECONDS: f64 = 6.0;

/// For how long a server counts on its own row: less, since its clock and its heartbeat's way take time.
const OWNING_TIME_MAX: Duration = Duration::from_secs(4);

/// For how long a server that has joined leaves its shards to those who were there: until all of them have seen it, at their next
/// heartbeat. So of two who both believe to own a shard none goes by what it has seen of it (`later_view`).
const SETTLING_TIME: Duration = Duration::from_secs(3);

/// When the rows of servers that are gone go, with their marks; marks are relied on for an hour.
const GONE_SECONDS: f64 = 24.0 * 3600.0;

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerDescription {
    /// What operators call it.
    pub name: String,
    /// Where clients reach it.
    pub endpoint: String,
    /// Where other servers reach it; empty if they cannot.
    pub peer: String,
    /// The certificate that it shows there, and by which it is known.
    pub certificate: Vec<u8>,
    /// The program's version.
    pub version: String,
}

/// A server of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountServer {
    /// Its number; no other process has it.
    pub id: u64,
    /// What it says of itself.
    pub description: ServerDescription,
    /// Seconds since it started.
    pub age_seconds: u64,
    /// Seconds since its last heartbeat.
    pub silent_seconds: u64,
    /// Whether it is alive, by the store's clock.
    pub is_alive: bool,
    /// Whether it was stopped, and said so; a heartbeat that was still on its way does not bring it back.
    pub has_left: bool,
    /// Whether it is this one.
    pub is_here: bool,
}

#[derive(Default)]
pub(crate) struct AccountServers {
    here: Mutex<Option<ServerDescription>>,
    alive: RwLock<Arc<[AccountServer]>>,
    /// When the last heartbeat that succeeded was sent.
    renewed: Mutex<Option<Instant>>,
    joined: Mutex<Option<Instant>>,
    /// Microseconds to add to the machine's clock to get the store's.
    clock_shift: AtomicI64,
}

const BEAT: &str = "INSERT INTO server (id, name, endpoint, peer, certificate, version, expires) \
    VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7)) ON CONFLICT (id) DO UPDATE \
    SET expires = excluded.expires, endpoint = excluded.endpoint, peer = excluded.peer WHERE NOT server.has_left \
    RETURNING extract(epoch FROM clock_timestamp())::float8";
const READ_MEMBERS: &str = "SELECT id, name, endpoint, peer, certificate, version, \
    extract(epoch FROM clock_timestamp() - started)::float8, \
    extract(epoch FROM clock_timestamp() - expires)::float8, has_left FROM server ORDER BY started, id";
const LEAVE: &str = "UPDATE server SET expires = clock_timestamp(), has_left = true WHERE id = $1";
const READ_GONE: &str = "SELECT id FROM server WHERE expires < clock_timestamp() - make_interval(secs => $1)";
const FORGET_MARKS: &str = "DELETE FROM mark WHERE server = ANY($1::bigint[])";
const FORGET_GONE: &str = "DELETE FROM server WHERE id = ANY($1::bigint[]) \
    AND expires < clock_timestamp() - make_interval(secs => $2)";

impl AccountServers {
    /// Those who were alive at the last heartbeat.
    pub(crate) fn alive(&self) -> Arc<[AccountServer]> {
        Arc::clone(&self.alive.read())
    }

    pub(crate) fn clock_shift(&self) -> i64 {
        self.clock_shift.load(Ordering::Relaxed)
    }

    /// Whether this server may count itself among those alive.
    fn is_renewed(&self) -> bool {
        self.renewed.lock().is_some_and(|renewed| renewed.elapsed() < OWNING_TIME_MAX)
    }

    /// The server that commits for a shard; nothing if that is this one, or nobody else is known.
    pub(crate) fn other_owner(&self, shard: ShardId) -> Option<AccountServer> {
        if !self.is_renewed() {
            return None;
        }
        let other = |owner: &AccountServer| !owner.is_here && !owner.description.peer.is_empty();
        self.believed_owner(shard, |owner| other(owner).then(|| owner.clone()))?
    }

    fn believed_owner<T>(&self, shard: ShardId, told: impl FnOnce(&AccountServer) -> T) -> Option<T> {
        let alive = self.alive.read();
        let is_new = self.joined.lock().is_some_and(|joined| joined.elapsed() < SETTLING_TIME);
        let others = alive.iter().filter(|server| !server.is_here && is_new);
        owner_among(others, shard).or_else(|| owner_among(alive.iter(), shard)).map(told)
    }

    /// Whether this server believes to own a shard, others can send it what they have for it, and its heartbeats come through.
    pub(crate) fn is_owner_here(&self, shard: ShardId) -> bool {
        let is_here = |owner: &AccountServer| owner.is_here && !owner.description.peer.is_empty();
        self.is_renewed() && self.believed_owner(shard, is_here) == Some(true)
    }

    /// The server that owns a shard, whichever it is.
    pub(crate) fn owner(&self, shard: ShardId) -> Option<AccountServer> {
        owner_among(self.alive.read().iter(), shard).cloned()
    }

    /// How long ago the last heartbeat that succeeded was sent; nothing for one who is no server.
    pub(crate) fn heartbeat_age(&self) -> Option<Duration> {
        self.renewed.lock().map(|renewed| renewed.elapsed())
    }
}

/// The one of some servers that owns a shard. Each shard has its own order of servers, the same for all who ask: when one goes, only
/// its shards get another owner.
pub(crate) fn owner_among<'m>(
    alive: impl IntoIterator<Item = &'m AccountServer>,
    shard: ShardId,
) -> Option<&'m AccountServer> {
    let hasher = foldhash::fast::FixedState::with_seed(shard.0);
    alive.into_iter().max_by_key(|member| (hasher.hash_one(member.id), member.id))
}

impl PostgresCore {
    /// Becomes one of the account's servers.
    pub(crate) async fn join(
        self: &Arc<PostgresCore>,
        description: ServerDescription,
    ) -> Result<(), Trouble> {
        *self.members.here.lock() = Some(description);
        *self.members.joined.lock() = Some(Instant::now());
        self.beat().await?;
        self.introduce().await;
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while !core.is_closed() {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                // One that does not come through is not waited for: the next one may.
                if let Err(trouble) = core.beat().await {
                    tracing::debug!(reason = trouble.words(), "a heartbeat did not reach the store");
                }
            }
        });
        Ok(())
    }

    /// A heartbeat. One that does not come through is not waited for: the next one may.
    pub(crate) async fn beat_in_time(&self) -> Result<(), Trouble> {
        let late = |_| Trouble::Lost("it takes too long".to_owned());
        tokio::time::timeout(HEARTBEAT_TIME_MAX, self.beat()).await.map_err(late)?
    }

    async fn beat(&self) -> Result<(), Trouble> {
        let Some(here) = self.members.here.lock().clone() else { return Ok(()) };
        let home = self.home();
        let connection = home.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        let (id, sent, sent_at) = (self.server_id(), Instant::now(), machine_micros());
        let ServerDescription { name, endpoint, peer, certificate, version } = &here;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&id, name, endpoint, peer, certificate, version, &ALIVE_SECONDS];
        let beaten = tokio::time::timeout(HEARTBEAT_TIME_MAX, connection.query(BEAT, &parameters)).await;
        let Ok(rows) = beaten else {
            // The next one must not find the same connection.
            connection.give_up();
            return Err(Trouble::Lost("a heartbeat was not answered in time".to_owned()));
        };
        let rows = rows?;
        if let Some(row) = rows.first() {
            let way = i64::try_from(sent.elapsed().as_micros()).unwrap_or(i64::MAX) / 2;
            let store = (row.get::<_, f64>(0) * 1e6) as i64;
            self.members.clock_shift.store(store - sent_at - way, Ordering::Relaxed);
        }
        if self.is_closed() {
            return Ok(());
        }
        *self.members.renewed.lock() = Some(sent);
        let members = self.read_members(&connection).await?;
        *self.members.alive.write() = members.into_iter().filter(|member| member.is_alive).collect();
        Ok(())
    }

    async fn read_members(
        &self,
        connection: &crate::connection::StoreConnection,
    ) -> Result<Vec<AccountServer>, Trouble> {
        let rows = connection.query(READ_MEMBERS, &[]).await?;
        let member = |row: &tokio_postgres::Row| {
            let id = row.get::<_, i64>(0);
            let expired = row.get::<_, f64>(7);
            AccountServer {
                id: id.cast_unsigned(),
                description: ServerDescription {
                    name: row.get(1),
                    endpoint: row.get(2),
                    peer: row.get(3),
                    certificate: row.get(4),
                    version: row.get(5),
                },
                age_seconds: row.get::<_, f64>(6).max(0.0) as u64,
                silent_seconds: (expired + ALIVE_SECONDS).max(0.0) as u64,
                is_alive: expired < 0.0,
                has_left: row.get(8),
                is_here: id == self.server_id(),
            }
        };
        Ok(rows.iter().map(member).collect())
    }

    /// All servers that there are rows of, those that are gone included.
    pub(crate) async fn members(&self) -> Result<Vec<AccountServer>, Trouble> {
        let home = self.home();
        let connection = home.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        self.read_members(&connection).await
    }

    /// Forgets servers that are long gone, and their marks.
    pub(crate) async fn forget_gone(&self) -> Result<(), Trouble> {
        let lost = |error: astrarium_kv::Error| Trouble::Lost(error.to_string());
        let home = self.home();
        let gone = home.workers.get().await.map_err(lost)?.query(READ_GONE, &[&GONE_SECONDS]).await?;
        let gone: Vec<i64> = gone.iter().map(|row| row.get(0)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for store in self.placement.stores() {
            store.workers.get().await.map_err(lost)?.execute(FORGET_MARKS, &[&gone]).await?;
        }
        home.workers.get().await.map_err(lost)?.execute(FORGET_GONE, &[&gone, &GONE_SECONDS]).await.map(drop)
    }

    /// Tells the others that this server is gone.
    pub(crate) async fn leave(&self) -> Result<(), Trouble> {
        if self.members.here.lock().take().is_none() {
            return Ok(());
        }
        let home = self.home();
        let connection = home.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        connection.execute(LEAVE, &[&self.server_id()]).await.map(drop)
    }
}

/// The machine's clock, in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "what is compared with the store's clock is the machine's")]
fn machine_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
