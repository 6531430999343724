//! A bounded number of connections to one store for one purpose.
//!
//! In: somebody who needs one. Out: a connection that is his alone until he drops it; or [`kv::Error::Busy`] when there is none for a
//! while, or at once an error while the store does not answer.
//! Invariants
//! - What is at the address is the store that it is taken for; every new connection is asked.
//! - There are never more connections than the bound, those being opened included.
//! - A store that is down is asked again by one prober and not by everybody: requests are refused at once meanwhile.
//! - A connection that is given back with a transaction has it ended before the next one begins: requests are in order. So nobody
//!   reads in the snapshot, or commits with the changes, of somebody whose client went away.

use crate::connection::{ConnectionPurpose, ConnectionWatch, StoreConnection};
use crate::error::{NO_ANSWER, Trouble};
use crate::history::{StoreHistories, StoreHistory};
use crate::schema::FORMAT;
use crate::url::StoreUrl;
use astrarium_kv::{self as kv, PlaceId};
use parking_lot::{Mutex, RwLock};
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long somebody waits for a connection that others have.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often a store that is down is asked whether it is back.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// How long a new connection may take to tell which store it leads to; no watchdog looks at it yet.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);

/// Why a store is not asked anything.
#[derive(Default)]
pub(crate) struct StoreHealth {
    down: RwLock<Option<String>>,
    history: StoreHistory,
}

impl StoreHealth {
    /// What is wrong, if something is.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.down.read().clone()
    }

    fn check(&self) -> Result<(), kv::Error> {
        match &*self.down.read() {
            None => Ok(()),
            Some(reason) => Err(kv::Error::Unavailable { reason: format!("{NO_ANSWER}: {reason}") }),
        }
    }
}

/// Which store of which account is to be found at an address.
#[derive(Clone)]
pub(crate) struct StoreIdentity {
    pub(crate) account: String,
    pub(crate) place: PlaceId,
    pub(crate) histories: Arc<StoreHistories>,
}

const READ_IDENTITY: &str = "SELECT name, value FROM meta WHERE name IN ('account', 'format', 'place')";

impl StoreIdentity {
    /// Refuses a connection to anything else: addresses are written by people, and lead elsewhere after a while.
    async fn check(&self, connection: &StoreConnection) -> Result<(), Trouble> {
        let rows = connection.query(READ_IDENTITY, &[]).await?;
        let value = |name: &str| {
            rows.iter().find(|row| row.get::<_, &str>(0) == name).map(|row| row.get::<_, &str>(1))
        };
        let place = value("place").map(|place| place.parse().ok());
        let is_it = value("account") == Some(&self.account)
            && value("format").and_then(|format| format.parse().ok()) == Some(FORMAT)
            // One that is being added does not know its place yet.
            && place.is_none_or(|place| place == Some(self.place.0));
        if is_it {
            return Ok(());
        }
        Err(Trouble::Wrong(format!(
            "what is at the address is not store {} of this account, or has another format",
            self.place.0
        )))
    }
}

pub(crate) struct ConnectionPool {
    identity: StoreIdentity,
    url: StoreUrl,
    purpose: ConnectionPurpose,
    runtime: Handle,
    idle: Mutex<Vec<StoreConnection>>,
    permits: Arc<Semaphore>,
    connections_max: usize,
    health: Arc<StoreHealth>,
    watched: Mutex<Vec<Weak<ConnectionWatch>>>,
}

/// A connection that is one's own for a while.
pub(crate) struct Pooled {
    connection: Option<StoreConnection>,
    pool: Arc<ConnectionPool>,
    _permit: OwnedSemaphorePermit,
}

impl Deref for Pooled {
    type Target = StoreConnection;

    fn deref(&self) -> &StoreConnection {
        self.connection.as_ref().expect("it is here until it is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let connection = self.connection.take().filter(|connection| !connection.is_closed());
        connection.iter().for_each(StoreConnection::end_transaction);
        self.pool.idle.lock().extend(connection);
    }
}

impl ConnectionPool {
    pub(crate) fn new(
        identity: StoreIdentity,
        url: StoreUrl,
        purpose: ConnectionPurpose,
        connections_max: usize,
        health: Arc<StoreHealth>,
        runtime: Handle,
    ) -> Arc<ConnectionPool> {
        let permits = Arc::new(Semaphore::new(connections_max));
        let (idle, watched) = (Mutex::default(), Mutex::default());
        Arc::new(ConnectionPool {
            identity,
            url,
            purpose,
            runtime,
            idle,
            permits,
            connections_max,
            health,
            watched,
        })
    }

    /// A connection, waiting a while for one if all are in use.
    pub(crate) async fn get(self: &Arc<ConnectionPool>) -> Result<Pooled, kv::Error> {
        self.health.check()?;
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        if let Some(connection) = self.take_idle() {
            return Ok(Pooled { connection: Some(connection), pool: Arc::clone(self), _permit: permit });
        }
        let pool = Arc::clone(self);
        // Opening needs the engine's runtime; callers may be on any.
        let opened = self.runtime.spawn(async move { pool.open().await }).await;
        let connection = opened.map_err(|_| crate::error::closed())??;
        Ok(Pooled { connection: Some(connection), pool: Arc::clone(self), _permit: permit })
    }

    /// A connection that nobody uses at the moment, if there is one.
    pub(crate) fn idle(self: &Arc<ConnectionPool>) -> Option<Pooled> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let connection = self.take_idle()?;
        Some(Pooled { connection: Some(connection), pool: Arc::clone(self), _permit: permit })
    }

    fn take_idle(&self) -> Option<StoreConnection> {
        let mut idle = self.idle.lock();
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, kv::Error> {
        let permits = Arc::clone(&self.permits);
        let waiting = async move { tokio::time::timeout(WAIT_MAX, permits.acquire_owned()).await };
        match self.runtime.spawn(waiting).await {
            Ok(Ok(Ok(permit))) => Ok(permit),
            Ok(Err(_)) => Err(kv::Error::Busy),
            Ok(Ok(Err(_))) | Err(_) => Err(crate::error::closed()),
        }
    }

    async fn open(self: &Arc<ConnectionPool>) -> Result<StoreConnection, Trouble> {
        match StoreConnection::open(&self.url, self.purpose).await {
            Ok(connection) => {
                let checked = tokio::time::timeout(CHECK_TIME_MAX, self.identity.check(&connection)).await;
                checked.map_err(|_| Trouble::Lost("a new connection does not answer".to_owned()))??;
                self.health.history.note(connection.history(), &self.identity.histories, &self.url);
                let mut watched = self.watched.lock();
                watched.retain(|watched| watched.strong_count() > 0);
                watched.push(Arc::downgrade(connection.watched()));
                Ok(connection)
            }
            Err(trouble) => {
                if matches!(trouble, Trouble::Lost(_)) {
                    self.note_down(trouble.words());
                }
                Err(trouble)
            }
        }
    }

    /// Refuses everybody until the store answers again, and has somebody ask it.
    fn note_down(self: &Arc<ConnectionPool>, reason: &str) {
        let mut down = self.health.down.write();
        if down.replace(reason.to_owned()).is_some() {
            return;
        }
        tracing::warn!(store = ?self.url, reason, "the store does not answer: requests are refused until it does");
        let pool = Arc::clone(self);
        self.runtime.spawn(async move { pool.probe().await });
    }

    async fn probe(self: Arc<ConnectionPool>) {
        loop {
            tokio::time::sleep(PROBE_INTERVAL).await;
            if self.permits.is_closed() {
                return;
            }
            match StoreConnection::open(&self.url, self.purpose).await {
                Ok(_) => {
                    *self.health.down.write() = None;
                    tracing::info!(store = ?self.url, "the store answers again");
                    return;
                }
                Err(trouble) => *self.health.down.write() = Some(trouble.words().to_owned()),
            }
        }
    }

    /// Connections that somebody has.
    pub(crate) fn in_use(&self) -> usize {
        self.connections_max.saturating_sub(self.permits.available_permits())
    }

    pub(crate) fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// Ends connections that do not answer. If a reader's is among them, somebody asks whether the store is there at all, and nobody
    /// else waits for it meanwhile; a commit may have waited for others, or for a standby. Tells whether a reader's was.
    pub(crate) fn watch(self: &Arc<ConnectionPool>) -> bool {
        let silent = self.watched().iter().filter(|watched| watched.end_if_silent()).count();
        let is_out_of_reach = silent > 0 && self.purpose == ConnectionPurpose::Read;
        if is_out_of_reach {
            self.note_down("a request was not answered in time");
        }
        is_out_of_reach
    }

    /// Relies on no connection any more that was open before: one of them is dead, and nobody was told, so the others may be too.
    pub(crate) fn distrust(&self) {
        for watched in self.watched() {
            watched.end_if_suspect();
        }
        self.idle.lock().clear();
    }

    fn watched(&self) -> Vec<Arc<ConnectionWatch>> {
        self.watched.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Gives no connection any more, and ends those that nobody has.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().clear();
    }
}
