//! One connection to a store, with the statements that were prepared on it.
//!
//! In: an address, a purpose. Out: a client whose session is set up, and which ends when it is silent for too long.
//! Requests of one connection are pipelined: those whose futures are polled one after the other are on their way together.
//! Invariants
//! - No timer runs in a caller's task: a watchdog of the engine ends connections that do not answer, and with them all that waits.
//! - A connection for commits has no `statement_timeout`: PostgreSQL lets one end the wait for a synchronous standby *and reports
//!   success*, and then a failover would lose what was acknowledged. It only drops the connection, whose commit then has an unknown
//!   outcome (`committer`). The same if somebody else ends that wait (`pg_cancel_backend`): the warning that says so ends the connection
//!   before the success is read.
//! - A transaction whose client is frozen or cut off is ended by the store within seconds, so that nobody waits for its locks.

use crate::dialect::Dialect;
use crate::error::Trouble;
use crate::url::StoreUrl;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Row, Statement};

/// How long opening a connection may take, for each host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// After which time a reader's request has failed.
const READ_TIME_MAX: Duration = Duration::from_secs(5);

/// The same for a commit, which may wait for others and for a standby.
const COMMIT_TIME_MAX: Duration = Duration::from_secs(10);

/// The same for moving much data in the background.
const WORK_TIME_MAX: Duration = Duration::from_mins(2);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    /// Views.
    Read,
    /// Commits.
    Commit,
    /// Merges, sweeps, set-up.
    Work,
}

impl ConnectionPurpose {
    fn time_max(self) -> Duration {
        match self {
            ConnectionPurpose::Read => READ_TIME_MAX,
            ConnectionPurpose::Commit => COMMIT_TIME_MAX,
            ConnectionPurpose::Work => WORK_TIME_MAX,
        }
    }

    /// What its session sets. Planner settings: every statement of ours is to be answered from a primary key, and on a table without
    /// fresh statistics the planner would otherwise sort or scan.
    fn session(self) -> &'static str {
        match self {
            ConnectionPurpose::Read => {
                "SET idle_in_transaction_session_timeout = '60s'; SET statement_timeout = '5s';"
            }
            ConnectionPurpose::Commit => {
                "SET idle_in_transaction_session_timeout = '2s'; SET lock_timeout = '8s'; SET statement_timeout = 0;"
            }
            ConnectionPurpose::Work => {
                "SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '8s'; SET statement_timeout = 0;"
            }
        }
    }
}

/// The wait for stable storage is never switched off for us, nor cut short, whatever the server's or the role's defaults are. A server that is
/// gone without a word would otherwise have its connections for two hours, and new ones would find none free.
const SESSION: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off; SET client_min_messages = warning; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local'); \
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout';";

/// Where PostgreSQL waits for a synchronous standby. A warning from there says that a commit is reported which no standby may have.
const STANDBY_WAIT: &str = "SyncRepWaitForLSN";

/// The history that a PostgreSQL continues: another one after a standby was promoted, or a backup restored.
const READ_HISTORY: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()) \
    || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";

/// A connection whose session is set up.
pub(crate) struct StoreConnection {
    client: Client,
    /// Whether a transaction was begun that is not known to have ended.
    is_in_transaction: AtomicBool,
    dialect: Dialect,
    history: String,
    statements: Mutex<HashMap<&'static str, Statement>>,
    watched: Arc<ConnectionWatch>,
}

/// What the watchdog knows of a connection.
pub(crate) struct ConnectionWatch {
    began: Instant,
    /// Milliseconds after `began` at which it was asked something that it has not answered; 0 if it has answered everything.
    asked_at: AtomicU64,
    /// How many wait for an answer.
    awaited: AtomicU64,
    time_max: Duration,
    task: AbortHandle,
}

impl ConnectionWatch {
    /// Milliseconds after `began`, but never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Ends the connection if it has been silent for too long, and tells so; all that wait for it hear of it.
    pub(crate) fn end_if_silent(&self) -> bool {
        self.end_if_silent_for(self.time_max)
    }

    /// The same for the time after which a reader's has been silent for too long.
    pub(crate) fn end_if_suspect(&self) -> bool {
        self.end_if_silent_for(READ_TIME_MAX)
    }

    fn end_if_silent_for(&self, time_max: Duration) -> bool {
        let asked_at = self.asked_at.load(Ordering::Relaxed);
        let is_silent = asked_at != 0 && self.began.elapsed() > Duration::from_millis(asked_at) + time_max;
        if is_silent && !self.task.is_finished() {
            self.task.abort();
            return true;
        }
        false
    }
}

/// Notes for the watchdog that an answer is awaited.
pub(crate) struct AwaitedAnswer<'connection>(&'connection ConnectionWatch);

impl Drop for AwaitedAnswer<'_> {
    fn drop(&mut self) {
        // Whoever else waits does so since this answer.
        let is_last = self.0.awaited.fetch_sub(1, Ordering::Relaxed) == 1;
        self.0.asked_at.store(if is_last { 0 } else { self.0.now() }, Ordering::Relaxed);
    }
}

/// Moves the bytes of a connection, until it ends or what it would report cannot be relied on.
async fn carry<S, T>(mut connection: Connection<S, T>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && notice.routine() == Some(STANDBY_WAIT)
        {
            tracing::warn!(notice = notice.message(), "a commit was to be reported that no standby may have");
            return;
        }
    }
}

impl StoreConnection {
    /// Connects and sets the session up; to be called on the engine's runtime.
    pub(crate) async fn open(url: &StoreUrl, purpose: ConnectionPurpose) -> Result<StoreConnection, Trouble> {
        let mut config = url.config.clone();
        config.connect_timeout(CONNECT_TIMEOUT).keepalives_idle(Duration::from_secs(10));
        config.keepalives_interval(Duration::from_secs(3)).keepalives_retries(2);
        config.tcp_user_timeout(purpose.time_max()).target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name(format!("astrarium {purpose:?}").to_lowercase());
        let runtime = tokio::runtime::Handle::current();
        let (client, task) = if let Some(tls) = &url.tls {
            let (client, connection) = config.connect(tls.clone()).await?;
            (client, runtime.spawn(carry(connection)))
        } else {
            let (client, connection) = config.connect(NoTls).await?;
            (client, runtime.spawn(carry(connection)))
        };
        let began = Instant::now();
        let task = task.abort_handle();
        let watched = Arc::new(ConnectionWatch {
            began,
            asked_at: 0.into(),
            awaited: 0.into(),
            time_max: purpose.time_max(),
            task,
        });
        let set_up = async {
            let version = client.query_one("SELECT version()", &[]).await?;
            let dialect = Dialect::of(version.get(0));
            let session = format!(
                "SET search_path TO {}; {SESSION} {}{}",
                url.schema,
                purpose.session(),
                dialect.session()
            );
            client.batch_execute(&session).await?;
            // Who has no history of that kind, or does not tell, is taken to have one only.
            let history = match dialect {
                Dialect::Postgres => client.query_one(READ_HISTORY, &[]).await.ok(),
                Dialect::Yugabyte => None,
            };
            let history = history.and_then(|row| row.try_get::<_, String>(0).ok()).unwrap_or_default();
            Ok::<_, tokio_postgres::Error>((dialect, history))
        };
        let (dialect, history) = tokio::time::timeout(CONNECT_TIMEOUT * 2, set_up)
            .await
            .map_err(|_| Trouble::Lost("a new connection does not answer".to_owned()))??;
        Ok(StoreConnection {
            client,
            is_in_transaction: false.into(),
            dialect,
            history,
            statements: Mutex::default(),
            watched,
        })
    }

    /// Which history its PostgreSQL continues; empty if that is not told.
    pub(crate) fn history(&self) -> &str {
        &self.history
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(crate) fn watched(&self) -> &Arc<ConnectionWatch> {
        &self.watched
    }

    /// Ends the connection, since it does not answer.
    pub(crate) fn give_up(&self) {
        self.watched.task.abort();
    }

    /// Has the watchdog look until this is dropped.
    pub(crate) fn asking(&self) -> AwaitedAnswer<'_> {
        if self.watched.awaited.fetch_add(1, Ordering::Relaxed) == 0 {
            self.watched.asked_at.store(self.watched.now(), Ordering::Relaxed);
        }
        AwaitedAnswer(&self.watched)
    }

    /// A prepared statement; the first time it is asked for takes a round trip.
    pub(crate) async fn prepared(&self, sql: &'static str) -> Result<Statement, Trouble> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        Ok(statement)
    }

    /// The rows of a prepared statement. Sent when first polled.
    pub(crate) async fn rows(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        Ok(self.client.query(statement, parameters).await?)
    }

    /// Runs a prepared statement; tells how many rows it changed. Sent when first polled.
    pub(crate) async fn run(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Trouble> {
        Ok(self.client.execute(statement, parameters).await?)
    }

    /// The rows of a statement that is prepared first.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let _asking = self.asking();
        let statement = self.prepared(sql).await?;
        self.rows(&statement, parameters).await
    }

    /// Runs a statement that is prepared first.
    pub(crate) async fn execute(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Trouble> {
        let _asking = self.asking();
        let statement = self.prepared(sql).await?;
        self.run(&statement, parameters).await
    }

    /// Statements without parameters, as one request. Sent when first polled.
    pub(crate) async fn script(&self, sql: &str) -> Result<(), Trouble> {
        if sql.starts_with("BEGIN") {
            self.is_in_transaction.store(true, Ordering::Relaxed);
        }
        self.client.batch_execute(sql).await?;
        if sql == "COMMIT" {
            self.is_in_transaction.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends the transaction if there is one: whoever began it may have been given up in the middle of it.
    pub(crate) fn end_transaction(&self) {
        if self.is_in_transaction.load(Ordering::Relaxed) {
            self.roll_back_later();
        }
    }

    /// Has the transaction end, without waiting for it.
    pub(crate) fn roll_back_later(&self) {
        let mut ending = std::pin::pin!(self.client.batch_execute("ROLLBACK"));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // The first poll sends it; what the store answers changes nothing.
        let _ = ending.as_mut().poll(&mut context);
        self.is_in_transaction.store(false, Ordering::Relaxed);
    }
}
