//! The remote engine: the `kv` contract on PostgreSQL, or what speaks its protocol.
//!
//! In: batches and reads of the contract. Out: answers; commits answer when the store has them on stable storage.
//! Keys are rows of one table, ordered by shard, space and key. A shard has a row with its counters, which a commit locks
//! (`committer`); a view is a short REPEATABLE READ transaction (`view`). The set is packed: each commit group writes one block as a row
//! (`sets`), which whoever has the shard's merge lease merges into runs stored as rows (`merging`, `blobs`). Shards live in one or
//! more stores (`placement`), and a commit of the catalog that changes shards of others is decided in the first (`across`).
//! Servers know of each other by the first store (`members`); each shard has an owner to whom the others send their batches (`peers`).
//! Invariants
//! - Any number of processes may have the same store open. What one of them believes (owners, caches) costs time when it is wrong,
//!   never an answer: shards' rows decide.
//! - What was acknowledged is where PostgreSQL keeps what was committed; we write no replication of our own.
//! - While a store does not answer, requests to it are refused at once, and it is asked again until it does.
//!
//! Not here: what keys and values mean, retries of conflicts, backups (the store's own).

mod account_stores;
mod across;
mod blobs;
mod committer;
mod connection;
mod dialect;
mod error;
mod group;
mod history;
mod known;
mod later_view;
mod members;
mod merging;
mod overview;
mod peers;
mod placement;
mod pool;
mod reclaim;
mod schema;
mod sets;
mod store;
mod upkeep;
mod url;
mod view;
mod watching;
mod writing;

pub use dialect::Dialect;
pub use members::{AccountServer, ServerDescription};
pub use overview::{EngineUse, Overview, PoolUse, ShardOverview, Standby, StoreOverview, StoreUse};
pub use peers::NoticeHandler;
pub use schema::{FORMAT, SchemaError, StoreStatus};
pub use store::StoreConnections;
pub use url::{StoreUrl, UrlError};

use astrarium_kv::contract::{self, META_SHARD};
use astrarium_kv::{
    CommitVersion, Engine, Error, KeyPrefix, Place, PlaceId, PointRead, Reply, SetLoss, ShardId, ShardState,
    Space, Stats, View, Views, Watchers, WriteBatch,
};
use astrarium_packed::{OwnerId, SetOptions};
use blobs::RowCache;
use bytes::Bytes;
use committer::CommitQueues;
use history::StoreHistories;
use known::SeenShards;
use members::AccountServers;
use merging::LostSet;
use parking_lot::Mutex;
use peers::{Forwarded, Peers};
use placement::ShardPlacement;
use pool::StoreIdentity;
use sets::KnownSets;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{PostgresStore, read_shard, sql_id};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use watching::WatchedShards;

/// Bytes of a block of the index.
pub(crate) const BLOCK_BYTES: usize = 8 << 10;

/// How sets are packed: as in the embedded engine, but each shard has its own, so runs begin smaller.
pub(crate) const SET_OPTIONS: SetOptions = SetOptions {
    memory_bytes: 1 << 20,
    memory_fan: 8,
    run_fan: 4,
    block_bytes: BLOCK_BYTES,
    segment_bytes: 16 << 20,
};

/// Threads of the engine's own runtime.
const THREADS: usize = 2;

/// How long closing waits for commits that are under way.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long telling the others may take; connections may be dead without anybody knowing.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(3);

/// What can be chosen when opening.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Connections to each store.
    pub connections: StoreConnections,
    /// Memory for the index: a quarter for what is known of each shard's, the rest for rows of runs.
    pub cache_bytes: u64,
    /// How often space of what was dropped is given back.
    pub reclaim_interval: Duration,
    /// How long replaced runs stay for those who still read them.
    pub replaced_blobs_kept: Duration,
    /// What is spoken with other servers; those that speak another one are sent nothing. Tests set it.
    pub peer_protocol: u64,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            connections: StoreConnections::default(),
            cache_bytes: 256 << 20,
            reclaim_interval: Duration::from_secs(2),
            replaced_blobs_kept: Duration::from_mins(10),
            peer_protocol: peers::PEER_PROTOCOL,
        }
    }
}

/// Why an engine cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// The address is of no use.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The store cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The store stopped answering.
    #[error(transparent)]
    Storage(#[from] Error),
    /// The machine refuses threads.
    #[error("start threads for the store: {0}")]
    Threads(#[from] std::io::Error),
}

/// Storage in PostgreSQL.
pub struct PostgresEngine {
    core: Arc<PostgresCore>,
    runtime: Mutex<Option<Runtime>>,
}

/// What the engine's tasks and its callers share.
pub(crate) struct PostgresCore {
    pub(crate) runtime: Handle,
    pub(crate) options: PostgresOptions,
    account: u128,
    server: i64,
    pub(crate) placement: ShardPlacement,
    pub(crate) members: AccountServers,
    pub(crate) peers: Peers,
    pub(crate) queues: CommitQueues,
    pub(crate) history: Arc<StoreHistories>,
    pub(crate) known: SeenShards,
    pub(crate) sets: KnownSets,
    pub(crate) rows: RowCache,
    pub(crate) merging: Mutex<BTreeSet<ShardId>>,
    /// Shards whose index is lost.
    pub(crate) lost: Mutex<BTreeMap<ShardId, LostSet>>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) watched: WatchedShards,
    /// Of the next commit group, for its mark.
    pub(crate) sequence: AtomicU64,
    pub(crate) stats: Counters,
    is_closed: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl PostgresCore {
    /// Whose set a shard's is: it stands in the checksum of every block, so that foreign ones are noticed.
    pub(crate) fn set_owner(&self, shard: ShardId) -> OwnerId {
        (self.account ^ u128::from(shard.0)).to_be_bytes()
    }

    /// What is to be found at the address of a store.
    pub(crate) fn identity(&self, place: PlaceId) -> StoreIdentity {
        let (account, histories) = (format!("{:032x}", self.account), Arc::clone(&self.history));
        StoreIdentity { account, place, histories }
    }

    /// This process, as rows name it; no other one has the number.
    pub(crate) fn server_id(&self) -> i64 {
        self.server
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.is_closed() { Err(error::closed()) } else { Ok(()) }
    }

    async fn shard(self: Arc<PostgresCore>, shard: ShardId) -> Result<ShardState, Error> {
        loop {
            let store = self.store_to_read(shard).await?;
            // Whoever asks may have a view, and must not wait for a connection that only readers give back.
            let connection = match store.readers_of(shard).idle() {
                Some(connection) => connection,
                None => store.workers.get().await?,
            };
            let row = read_shard(&connection, shard).await?;
            drop(connection);
            if row.pending.is_some() {
                self.wait_for_pending(&store, shard, &row).await?;
                continue;
            }
            self.known.note(shard, &row);
            return if row.state.is_dropped { Err(Error::Dropped { shard }) } else { Ok(row.state) };
        }
    }

    async fn highest_shard(self: Arc<PostgresCore>) -> Result<ShardId, Error> {
        let mut highest = META_SHARD;
        for store in self.placement.stores() {
            let rows = store.workers.get().await?.query("SELECT max(id) FROM shard", &[]).await?;
            let found = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
            highest = highest.max(ShardId(found.unwrap_or(0).cast_unsigned()));
        }
        Ok(highest)
    }

    async fn draw(self: Arc<PostgresCore>, shard: ShardId, above: u64, count: u64) -> Result<u64, Error> {
        // Not in the shard's row, which commits hold.
        const DRAW: &str = "INSERT INTO number AS n (shard, drawn) VALUES ($1, \
            greatest((SELECT high_water FROM shard WHERE id = $1), $2::bigint) + $3::bigint) ON CONFLICT (shard) DO UPDATE \
            SET drawn = greatest(n.drawn, (SELECT high_water FROM shard WHERE id = $1), $2::bigint) + $3::bigint \
            RETURNING drawn - $3::bigint + 1";
        let store = self.store_of(shard).await?;
        let (above, count) = (above.min(i64::MAX as u64 / 2).cast_signed(), count.min(1 << 40).cast_signed());
        let rows = store.committers.get().await?.query(DRAW, &[&sql_id(shard), &above, &count]).await?;
        let first = rows.first().map(|row| row.get::<_, i64>(0).cast_unsigned());
        first.ok_or_else(|| Error::Corruption { what: "a draw of numbers gave none".to_owned() })
    }

    async fn unreclaimed(self: Arc<PostgresCore>) -> Result<Vec<KeyPrefix>, Error> {
        let mut prefixes = Vec::new();
        for store in self.placement.stores() {
            prefixes.extend(reclaim::unreclaimed(&store).await?);
        }
        Ok(prefixes)
    }
}

impl PostgresEngine {
    /// Opens a store whose tables are there and are of this program's format.
    pub fn open(url: &str, options: PostgresOptions) -> Result<PostgresEngine, StoreOpenError> {
        let url = StoreUrl::parse(url)?;
        let runtime = start_runtime()?;
        let account = block_on(&runtime, {
            let url = url.clone();
            async move { schema::check(&url).await }
        })?;
        let core = PostgresCore::start(url, &account, options, &runtime);
        let opened = Arc::clone(&core);
        block_on(&runtime, async move { opened.refresh_stores().await })?;
        core.start_upkeep();
        Ok(PostgresEngine { core, runtime: Mutex::new(Some(runtime)) })
    }

    /// Gives back now what can be given back of dropped space. For tests and measurements.
    pub fn reclaim_now(&self) -> Result<(), Error> {
        let core = Arc::clone(&self.core);
        self.blocking(async move {
            for store in core.placement.stores() {
                core.settle_all(&store).await?;
                core.reclaim(&store).await?;
            }
            Ok(())
        })
    }

    /// Merges what is in no run yet of a shard's index. For tests and measurements.
    pub fn merge_now(&self, shard: ShardId) -> Result<(), Error> {
        let core = Arc::clone(&self.core);
        self.blocking(async move {
            let store = core.store_of(shard).await?;
            core.merge(&store, shard, Vec::new()).await.map(drop).map_err(astrarium_kv_packed::told)
        })
    }

    /// Becomes one of the account's servers, until the engine is closed; with an address to listen on, one to which others send
    /// what it is to commit.
    pub fn join(&self, mut description: ServerDescription, listen: Option<SocketAddr>) -> Result<(), Error> {
        let core = Arc::clone(&self.core);
        self.blocking(async move {
            if let Some(address) = listen {
                let (bound, certificate) = core.listen(address).await?;
                if description.peer.is_empty() {
                    description.peer = bound.to_string();
                }
                description.certificate = certificate;
            }
            Ok(core.join(description).await?)
        })
    }

    /// Tells all other servers something, soon.
    pub fn tell_peers(&self, notice: Bytes) {
        let core = Arc::clone(&self.core);
        self.core.runtime.spawn(async move { core.tell_peers(&notice).await });
    }

    /// Takes what other servers tell; called on the engine's threads, so it must not wait.
    pub fn hear_notices(&self, handler: NoticeHandler) {
        self.core.hear_notices(handler);
    }

    /// Batches that were sent to their owners, and those that came from other servers.
    pub fn forwarded(&self) -> (u64, u64) {
        (self.core.peers.sent.load(Ordering::Relaxed), self.core.peers.received.load(Ordering::Relaxed))
    }

    /// The account's servers, those that are gone for less than a day included.
    pub async fn members(&self) -> Result<Vec<AccountServer>, Error> {
        Ok(self.core.members().await?)
    }

    /// The servers that were alive at the last heartbeat, without asking.
    pub fn alive(&self) -> Arc<[AccountServer]> {
        self.core.members.alive()
    }

    /// The server that commits for a shard, if servers are known.
    pub fn owner(&self, shard: ShardId) -> Option<AccountServer> {
        self.core.members.owner(shard)
    }

    /// Microseconds by which the store's clock is ahead of this machine's, as of the last heartbeat.
    pub fn clock_shift_micros(&self) -> i64 {
        self.core.members.clock_shift()
    }

    /// Commits a batch by this server's own committer.
    fn commit_here(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        let (answer, receiver) = oneshot::channel();
        if let Err(error) = self.core.submit(batch, answer) {
            return Reply::ready(Err(error));
        }
        Reply::later(async move { receiver.await.unwrap_or_else(|_| Err(error::closed())) })
    }

    /// Runs something to its end on the engine's runtime, from any thread that may wait.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, receiver) = std::sync::mpsc::sync_channel(1);
        self.core.runtime.spawn(async move { drop(answer.send(work.await)) });
        receiver.recv().unwrap_or_else(|_| Err(error::closed()))
    }
}

/// Makes the tables of a store, unless they are there; tells the account.
pub fn init_store(url: &str) -> Result<String, StoreOpenError> {
    let (url, runtime) = (StoreUrl::parse(url)?, start_runtime()?);
    Ok(block_on(&runtime, async move { schema::init(&url, None).await })?)
}

/// Brings the tables of a store up to date; tells the format of before.
pub fn migrate_store(url: &str) -> Result<u32, StoreOpenError> {
    let (url, runtime) = (StoreUrl::parse(url)?, start_runtime()?);
    Ok(block_on(&runtime, async move { schema::migrate(&url).await })?)
}

/// What a store is.
pub fn store_status(url: &str) -> Result<StoreStatus, StoreOpenError> {
    let (url, runtime) = (StoreUrl::parse(url)?, start_runtime()?);
    Ok(block_on(&runtime, async move { schema::status(&url).await })?)
}

fn start_runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("store")
        .enable_all()
        .build()
}

/// Runs something on a runtime from a thread that may be another runtime's.
fn block_on<T: Send + 'static>(runtime: &Runtime, work: impl Future<Output = T> + Send + 'static) -> T {
    let (answer, receiver) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move { drop(answer.send(work.await)) });
    receiver.recv().expect("the task ends with an answer")
}

impl PostgresCore {
    fn start(url: StoreUrl, account: &str, options: PostgresOptions, runtime: &Runtime) -> Arc<PostgresCore> {
        let handle = runtime.handle().clone();
        let history = Arc::<StoreHistories>::default();
        let (account_text, histories) = (account.to_owned(), Arc::clone(&history));
        let identity = StoreIdentity { account: account_text, place: PlaceId::FIRST, histories };
        let first = PostgresStore::new(&identity, "first".to_owned(), url, options.connections, &handle);
        let cache_bytes = options.cache_bytes;
        let (number, _) = uuid::Uuid::new_v4().as_u64_pair();
        Arc::new(PostgresCore {
            runtime: handle,
            account: u128::from_str_radix(account, 16).unwrap_or(0),
            server: (number >> 1).cast_signed(),
            placement: ShardPlacement::new(first),
            members: AccountServers::default(),
            peers: Peers::default(),
            queues: CommitQueues::default(),
            known: SeenShards::new(Arc::clone(&history)),
            sets: KnownSets::new(cache_bytes / 4, Arc::clone(&history)),
            history,
            rows: RowCache::new(cache_bytes / 4 * 3),
            merging: Mutex::default(),
            lost: Mutex::default(),
            watchers: Arc::default(),
            watched: WatchedShards::default(),
            sequence: AtomicU64::new(1),
            stats: Counters::default(),
            is_closed: AtomicBool::new(false),
            options,
        })
    }
}

impl Engine for PostgresEngine {
    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        if let Err(error) = self.core.check_open() {
            return Reply::ready(Err(error));
        }
        let core = Arc::clone(&self.core);
        Reply::later(async move { Ok(Arc::new(core.view(shard, epoch).await?) as Arc<dyn View>) })
    }

    fn view_to_write(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        match later_view::LaterView::of(&self.core, shard, epoch) {
            Some(view) if !self.core.is_closed() => Reply::ready(Ok(Arc::new(view))),
            _ => self.view(shard, epoch),
        }
    }

    fn views(&self, wanted: &[(ShardId, u64)]) -> Option<Reply<Result<Views, Error>>> {
        Some(match self.core.check_open() {
            Ok(()) => Reply::later(Arc::clone(&self.core).views(wanted.to_vec())),
            Err(error) => Reply::ready(Err(error)),
        })
    }

    fn read(&self, shard: ShardId, epoch: u64, space: Space, key: Bytes) -> Reply<Result<PointRead, Error>> {
        if let Err(error) = self.core.check_open() {
            return Reply::ready(Err(error));
        }
        Reply::later(Arc::clone(&self.core).read(shard, epoch, space, key))
    }

    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>> {
        if let Err(error) = self.core.check_open().and_then(|()| contract::validate(&batch)) {
            return Reply::ready(Err(error));
        }
        let Some(owner) = self.core.members.other_owner(batch.shard) else { return self.commit_here(batch) };
        let core = Arc::clone(&self.core);
        let (answer, receiver) = oneshot::channel();
        self.core.runtime.spawn(async move {
            match core.forward(&owner, batch).await {
                // Whoever does not wait any more does not need it.
                Forwarded::Done(outcome) => drop(answer.send(outcome)),
                Forwarded::NotSent(batch) => {
                    let (here, outcome) = oneshot::channel();
                    let outcome = match core.submit(*batch, here) {
                        Ok(()) => outcome.await.unwrap_or_else(|_| Err(error::closed())),
                        Err(error) => Err(error),
                    };
                    drop(answer.send(outcome));
                }
            }
        });
        Reply::later(async move { receiver.await.unwrap_or_else(|_| Err(error::closed())) })
    }

    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>> {
        Reply::later(Arc::clone(&self.core).shard(shard))
    }

    fn highest_shard(&self) -> Reply<Result<ShardId, Error>> {
        Reply::later(Arc::clone(&self.core).highest_shard())
    }

    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        Reply::later(Arc::clone(&self.core).unreclaimed())
    }

    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>> {
        self.core.watch(shard, epoch, version)
    }

    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>> {
        Reply::later(Arc::clone(&self.core).draw(shard, above, count))
    }

    fn places(&self) -> Reply<Result<Vec<Place>, Error>> {
        let core = Arc::clone(&self.core);
        Reply::later(async move { core.places().await })
    }

    fn place_of(&self, shard: ShardId) -> Reply<Result<PlaceId, Error>> {
        let core = Arc::clone(&self.core);
        Reply::later(async move { core.place_of(shard).await })
    }

    fn place(&self, shard: ShardId, place: PlaceId) -> Reply<Result<(), Error>> {
        let core = Arc::clone(&self.core);
        Reply::later(async move { core.place(shard, place).await })
    }

    fn set_draining(&self, place: PlaceId, is_draining: bool) -> Reply<Result<(), Error>> {
        let core = Arc::clone(&self.core);
        Reply::later(async move { core.set_draining(place, is_draining).await })
    }

    fn write_refusal(&self) -> Option<String> {
        if self.core.is_closed() {
            return Some("the storage is closed".to_owned());
        }
        // Without the first one nothing can be done. Without another one its ranges are refused, and everything else goes on.
        let trouble = self.core.home().health.trouble()?;
        Some(format!("store {} does not answer: {trouble}", self.core.home().name))
    }

    fn set_losses(&self) -> Vec<SetLoss> {
        self.core.set_losses()
    }

    fn accept_set_losses(&self, losses: &[SetLoss]) -> Result<(), Error> {
        let shard = |loss: &SetLoss| Some(ShardId(u64::from_be_bytes(*loss.range.start.first_chunk()?)));
        let shards = losses.iter().filter_map(shard).collect();
        let core = Arc::clone(&self.core);
        self.blocking(async move { Ok(core.accept_losses(shards).await?) })
    }

    fn stats(&self) -> Stats {
        let counters = &self.core.stats;
        Stats {
            commits: counters.commits.load(Ordering::Relaxed),
            conflicts: counters.conflicts.load(Ordering::Relaxed),
            groups: counters.groups.load(Ordering::Relaxed),
            queued: self.core.queues.len() as u64,
            disk_bytes: counters.bytes.load(Ordering::Relaxed),
        }
    }

    fn close(&self) -> Result<(), Error> {
        if self.core.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.core.watchers.wake_all();
        let deadline = Instant::now() + CLOSE_TIME_MAX;
        while self.core.queues.is_busy() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let core = Arc::clone(&self.core);
        // Others find out by themselves if they are not told.
        let leaving = async move { Ok(tokio::time::timeout(LEAVE_TIME_MAX, core.leave()).await) };
        let _ = self.blocking(leaving);
        self.core.placement.stores().iter().for_each(|store| store.close());
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
        Ok(())
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        // As a killed process would: nothing is finished, and nothing has to be.
        self.core.is_closed.store(true, Ordering::SeqCst);
        self.core.watchers.wake_all();
        self.core.placement.stores().iter().for_each(|store| store.close());
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}
