//! Commits: everything that waits for a shard goes into one transaction of two round trips.
//!
//! In: batches. Out: versions, when the store has them on stable storage; or refusals.
//! A task for each shard that has something waiting takes what there is, never waits for more, and ends when nothing is left.
//! First round trip: begin, lock the shard's row, read what the batches expect. Then the batches are judged (`group`). Second: all
//! writes, the block of the index, the shard's row, the mark, commit.
//! Invariants
//! - The isolation level is READ COMMITTED: what is read after the lock is the newest state, and nobody else changes the shard until the
//!   end. So versions have no gaps, and everything up to the row's version is visible.
//! - No commit happens twice. The transaction leaves a *mark*, the number of the group for this server and shard. When the connection
//!   is lost, the next attempt locks the row, by which the former one has ended, and the mark tells whether that came to its end.
//! - Whether a commit happened is either known to whoever waits, or he is told that it is not.

use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::group::{BatchGroup, Ground};
use crate::store::{PostgresStore, SHARD_COLUMNS, ShardRow, shard_columns, sql_id, sql_space};
use crate::writing::{GroupWrites, when};
use crate::{BLOCK_BYTES, PostgresCore};
use astrarium_kv::contract::{self, shard_of};
use astrarium_kv::{CommitVersion, Error, PrefixSet, ShardId, Space, WriteBatch};
use astrarium_kv_packed as set;
use astrarium_packed::{GroupBlock, Origin};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Batches of a group, and their bytes, at most.
const GROUP_BATCHES_MAX: usize = 64;
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Batches that may wait.
const QUEUED_MAX: usize = 16 << 10;

/// How long a group is tried whose outcome is unknown, and how long between two attempts.
const UNKNOWN_TIME_MAX: Duration = Duration::from_secs(12);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Attempts of a group that the store refuses for the moment.
const REFUSED_ATTEMPTS_MAX: u32 = 20;

/// Marks are kept longer than this, on the store's clock; a commit that hangs longer has an unknown outcome.
const MARK_SECONDS: f64 = 3600.0;

/// Bytes of a value in one row; what is longer has further rows.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;

type Answer = oneshot::Sender<Result<CommitVersion, Error>>;

/// A batch that waits.
pub(crate) struct QueuedBatch {
    pub(crate) batch: WriteBatch,
    pub(crate) answer: Answer,
}

/// What waits, by shard. A shard that is in it has a task.
#[derive(Default)]
pub(crate) struct CommitQueues {
    shards: Mutex<BTreeMap<ShardId, VecDeque<QueuedBatch>>>,
}

impl CommitQueues {
    pub(crate) fn len(&self) -> usize {
        self.shards.lock().values().map(VecDeque::len).sum()
    }

    /// Whether a task works.
    pub(crate) fn is_busy(&self) -> bool {
        !self.shards.lock().is_empty()
    }

    /// Adds a submission; true if a task has to be started for its shard.
    fn push(&self, submission: QueuedBatch) -> Result<bool, Error> {
        let mut shards = self.shards.lock();
        if shards.values().map(VecDeque::len).sum::<usize>() >= QUEUED_MAX {
            return Err(Error::Busy);
        }
        let shard = submission.batch.shard;
        let is_new = !shards.contains_key(&shard);
        shards.entry(shard).or_default().push_back(submission);
        Ok(is_new)
    }

    /// What goes into the next group of a shard; nothing when its task may end.
    fn take(&self, shard: ShardId) -> Vec<QueuedBatch> {
        let mut shards = self.shards.lock();
        let Some(queue) = shards.get_mut(&shard) else { return Vec::new() };
        let mut byte_count = 0;
        let mut is_within = |submission: &QueuedBatch| {
            byte_count += submission.batch.byte_count();
            byte_count <= GROUP_BYTES_MAX
        };
        let count = queue.iter().take(GROUP_BATCHES_MAX).take_while(|next| is_within(next)).count();
        let count = count.max(1).min(queue.len());
        let group: Vec<_> = queue.drain(..count).collect();
        if group.is_empty() {
            shards.remove(&shard);
        }
        group
    }
}

/// What a group came to.
#[derive(Clone)]
pub(crate) struct Committed {
    pub(crate) outcomes: Vec<Result<CommitVersion, Error>>,
    pub(crate) rows: Vec<(ShardId, ShardRow)>,
    /// The block of the index as it was stored, and its group.
    pub(crate) block: Option<(Bytes, u64)>,
}

/// A commit that was sent and not answered.
struct Unanswered {
    committed: Committed,
    /// The store's clock, in seconds, when it was sent.
    sent_at: f64,
}

impl PostgresCore {
    /// Queues a batch for its shard's committer on this server.
    pub(crate) fn submit(self: &Arc<PostgresCore>, batch: WriteBatch, answer: Answer) -> Result<(), Error> {
        let shard = batch.shard;
        if self.queues.push(QueuedBatch { batch, answer })? {
            let core = Arc::clone(self);
            self.runtime.spawn(async move { core.drain(shard).await });
        }
        Ok(())
    }

    async fn drain(self: Arc<PostgresCore>, shard: ShardId) {
        loop {
            let submissions = self.queues.take(shard);
            if submissions.is_empty() {
                return;
            }
            let (batches, answers): (Vec<_>, Vec<_>) =
                submissions.into_iter().map(|QueuedBatch { batch, answer }| (batch, answer)).unzip();
            let outcomes = self.commit_batches(shard, &batches).await;
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // Whoever does not wait any more does not need it.
                let _ = answer.send(outcome);
            }
        }
    }

    /// Commits batches of one shard; those that concern other stores one by one.
    async fn commit_batches(
        self: &Arc<PostgresCore>,
        shard: ShardId,
        batches: &[WriteBatch],
    ) -> Vec<Result<CommitVersion, Error>> {
        let store = match self.store_of(shard).await {
            Ok(store) => store,
            Err(error) => return vec![Err(error); batches.len()],
        };
        let mut outcomes = Vec::with_capacity(batches.len());
        let mut rest = batches;
        while let Some(first) = rest.first() {
            let (group, later) = match self.reaches_elsewhere(first, &store).await {
                Ok(false) => {
                    let mut count = 1;
                    while let Some(next) = rest.get(count)
                        && matches!(self.reaches_elsewhere(next, &store).await, Ok(false))
                    {
                        count += 1;
                    }
                    rest.split_at(count)
                }
                Ok(true) => {
                    outcomes.push(self.commit_across(&store, first).await);
                    rest = &rest[1..];
                    continue;
                }
                Err(error) => {
                    outcomes.push(Err(error));
                    rest = &rest[1..];
                    continue;
                }
            };
            match self.commit_group(&store, shard, group, None).await {
                Ok(committed) => outcomes.extend(committed),
                // One of them is at fault, and the others are not to suffer for it.
                Err(GroupError { is_of_group: true, .. }) if group.len() > 1 => {
                    for batch in group {
                        let alone = self.commit_group(&store, shard, std::slice::from_ref(batch), None).await;
                        outcomes.push(match alone.map(|mut outcomes| outcomes.pop()) {
                            Ok(outcome) => outcome.unwrap_or(Err(Error::Busy)),
                            Err(GroupError { error, .. }) => Err(error),
                        });
                    }
                }
                Err(GroupError { error, .. }) => outcomes.extend(group.iter().map(|_| Err(error.clone()))),
            }
            rest = later;
        }
        outcomes
    }

    /// Commits a group, again if need be, until it is known whether it is committed. With a decision, that is written too.
    pub(crate) async fn commit_group(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        batches: &[WriteBatch],
        decision: Option<&[u8]>,
    ) -> Result<Vec<Result<CommitVersion, Error>>, GroupError> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let (mut unanswered, mut refusals) = (None, 0);
        loop {
            let attempt = GroupAttempt { core: self, store, shard, batches, sequence, decision };
            let trouble = match attempt.make(&mut unanswered).await {
                Ok(committed) => {
                    self.publish(shard, &committed);
                    if committed.block.is_some() {
                        self.merge_if_due(store, shard);
                    }
                    return Ok(committed.outcomes);
                }
                Err(AttemptError::Refused(error)) if unanswered.is_none() => return Err(error.into()),
                Err(AttemptError::Refused(error)) => Trouble::Lost(error.to_string()),
                // Without a connection: whoever ends the change needs one.
                Err(AttemptError::Pending(shard, row)) => self.settle_pending(store, shard, &row).await,
                Err(AttemptError::Trouble(trouble)) => trouble,
            };
            if decision.is_some() && matches!(&trouble, Trouble::Refused(_)) {
                // Somebody who waited for it has decided that it shall not happen.
                return Err(Error::Conflict { expectation: 0 }.into());
            }
            refusals += 1;
            let is_over = match (&trouble, &unanswered) {
                (Trouble::Again(_), None) => {
                    refusals >= REFUSED_ATTEMPTS_MAX || began.elapsed() > UNKNOWN_TIME_MAX
                }
                (Trouble::Lost(_), None) => refusals > 1,
                (Trouble::Wrong(_) | Trouble::Refused(_) | Trouble::Full(_) | Trouble::TooLong(_), None) => {
                    true
                }
                (_, Some(_)) => began.elapsed() > UNKNOWN_TIME_MAX,
            };
            if is_over {
                if unanswered.is_none() {
                    let is_of_group = matches!(trouble, Trouble::Wrong(_) | Trouble::TooLong(_));
                    return Err(GroupError { error: trouble.into(), is_of_group });
                }
                let reason = format!(
                    "the store ended the connection ({}); whether the write happened is unknown",
                    trouble.words()
                );
                return Err(Error::Unavailable { reason }.into());
            }
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
    }

    /// Shows what was committed to the readers of this server.
    fn publish(&self, shard: ShardId, committed: &Committed) {
        self.stats.groups.fetch_add(u64::from(!committed.rows.is_empty()), Ordering::Relaxed);
        for outcome in &committed.outcomes {
            match outcome {
                Ok(_) => self.stats.commits.fetch_add(1, Ordering::Relaxed),
                Err(Error::Conflict { .. }) => self.stats.conflicts.fetch_add(1, Ordering::Relaxed),
                Err(_) => continue,
            };
        }
        if let Some((block, group)) = &committed.block {
            self.sets.note_commit(shard, block, *group);
        }
        for (shard, row) in &committed.rows {
            self.known.note(*shard, row);
        }
        self.watchers.wake(committed.rows.iter().map(|(shard, _)| *shard));
    }
}

/// Why a group was not committed.
pub(crate) struct GroupError {
    pub(crate) error: Error,
    /// Whether it is for what the group holds, and nothing of it happened.
    is_of_group: bool,
}

impl From<Error> for GroupError {
    fn from(error: Error) -> GroupError {
        GroupError { error, is_of_group: false }
    }
}

enum AttemptError {
    /// It did not begin.
    Refused(Error),
    /// Another commit is about to change one of its shards (`across`).
    Pending(ShardId, Box<ShardRow>),
    Trouble(Trouble),
}

impl From<Trouble> for AttemptError {
    fn from(trouble: Trouble) -> AttemptError {
        AttemptError::Trouble(trouble)
    }
}

/// The shards whose rows a batch changes.
pub(crate) fn touched_shards(batch: &WriteBatch) -> impl Iterator<Item = ShardId> + '_ {
    let prefixes = batch.drops.prefixes.iter().filter_map(|prefix| shard_of(prefix.space, &prefix.bytes));
    contract::changed_shards(batch).chain(prefixes)
}

struct GroupAttempt<'group> {
    core: &'group Arc<PostgresCore>,
    store: &'group Arc<PostgresStore>,
    shard: ShardId,
    batches: &'group [WriteBatch],
    sequence: u64,
    decision: Option<&'group [u8]>,
}

const MAKE_ROWS: &str = "INSERT INTO shard (id) SELECT unnest($1::bigint[]) ON CONFLICT (id) DO NOTHING";
const LOCK_ROWS: &str = concat!(
    "SELECT s.id, ",
    shard_columns!(),
    ", extract(epoch FROM clock_timestamp())::float8 FROM shard s WHERE s.id = ANY($1::bigint[]) ORDER BY s.id FOR UPDATE"
);
/// The limit keeps the planner from joining, which it does by reading the whole shard while it knows nothing of its size.
const READ_EXPECTED: &str = "SELECT e.i, kv.stamp \
    FROM unnest($2::smallint[], $3::bytea[]) WITH ORDINALITY AS e(space, k, i) \
    CROSS JOIN LATERAL (SELECT substring(v FROM 1 FOR 8) AS stamp FROM kv \
    WHERE kv.shard = $1 AND kv.space = e.space AND kv.k = e.k LIMIT 1) AS kv";
const READ_MARK: &str = "SELECT sequence FROM mark WHERE shard = $1 AND server = $2";
const TOUCH_MARK: &str = "UPDATE mark SET sequence = sequence WHERE shard = $1 AND server = $2";

impl GroupAttempt<'_> {
    async fn make(&self, unanswered: &mut Option<Unanswered>) -> Result<Committed, AttemptError> {
        let connection = self.store.committers.get().await.map_err(AttemptError::Refused)?;
        let _asking = connection.asking();
        let made = self.make_on(&connection, unanswered).await;
        if made.is_err() {
            connection.roll_back_later();
        }
        made
    }

    async fn make_on(
        &self,
        connection: &StoreConnection,
        unanswered: &mut Option<Unanswered>,
    ) -> Result<Committed, AttemptError> {
        let (mut rows, ground, now) = match Box::pin(self.lock(connection, unanswered.as_ref())).await? {
            Locked::Open { rows, ground, now } => (rows, ground, now),
            Locked::Committed => {
                // What was sent before has happened. Whether a standby has it is not known: so something is committed after it, which is
                // answered only when the standby has both.
                let (shard, server) = (sql_id(self.shard), self.core.server_id());
                connection.execute(TOUCH_MARK, &[&shard, &server]).await?;
                connection
                    .script("COMMIT")
                    .await
                    .map_err(|trouble| Trouble::Lost(trouble.words().to_owned()))?;
                return unanswered.take().map(|before| before.committed).ok_or_else(|| {
                    Trouble::Wrong("a mark was found of a group that was never sent".to_owned()).into()
                });
            }
        };
        // It is known now that what was sent before has not happened.
        *unanswered = None;
        let mut group = BatchGroup::of(self.batches.iter(), &ground);
        let outcomes = std::mem::take(&mut group.outcomes);
        if outcomes.iter().all(Result::is_err) {
            connection.roll_back_later();
            return Ok(Committed { outcomes, rows: Vec::new(), block: None });
        }
        let block = self.block(&group, &rows)?;
        self.change_rows(&mut rows, &group, block.as_ref());
        let changed = group.shards.keys().chain(rows.keys().filter(|shard| drops_of(&group, **shard)));
        let changed: BTreeSet<ShardId> = changed.copied().collect();
        rows.retain(|shard, _| changed.contains(shard));
        let block = block.map(|(block, number)| (block.value, number));
        let committed = Committed { outcomes, rows: rows.into_iter().collect(), block };
        *unanswered = Some(Unanswered { committed, sent_at: now });
        let sent = unanswered.as_ref().map(|unanswered| &unanswered.committed);
        if let Some(committed) = sent {
            let mark = (self.core.server_id(), self.sequence);
            let writes = GroupWrites::of(self.shard, &group, committed, mark, self.decision);
            if let Err(trouble) = Box::pin(writes.commit(connection)).await {
                if !matches!(trouble, Trouble::Lost(_)) {
                    // The store has answered that it did not happen.
                    *unanswered = None;
                }
                return Err(trouble.into());
            }
        }
        unanswered.take().map(|before| before.committed).ok_or_else(|| Trouble::Wrong(String::new()).into())
    }

    /// The first round trip.
    async fn lock(
        &self,
        connection: &StoreConnection,
        unanswered: Option<&Unanswered>,
    ) -> Result<Locked, AttemptError> {
        let touched: BTreeSet<ShardId> = self.batches.iter().flat_map(touched_shards).collect();
        let here: Vec<i64> = self.core.those_in(&touched, self.store).await.into_iter().map(sql_id).collect();
        let expected: BTreeSet<(Space, &Bytes)> = self
            .batches
            .iter()
            .flat_map(|batch| &batch.expectations)
            .map(|(space, key, _)| (*space, key))
            .collect();
        let expected: Vec<(Space, &Bytes)> = expected.into_iter().collect();
        let spaces: Vec<i16> = expected.iter().map(|(space, _)| sql_space(Some(*space))).collect();
        let keys: Vec<&[u8]> = expected.iter().map(|(_, key)| &key[..]).collect();
        let (shard, server) = (sql_id(self.shard), self.core.server_id());
        let (make, lock) = (connection.prepared(MAKE_ROWS).await?, connection.prepared(LOCK_ROWS).await?);
        let (expect, mark) =
            (connection.prepared(READ_EXPECTED).await?, connection.prepared(READ_MARK).await?);
        let are_new = here.iter().any(|id| !self.core.known.exists(ShardId(id.cast_unsigned())));
        let (begun, made, locked, present, mark) = tokio::join!(
            async { connection.script("BEGIN").await },
            when(are_new, async { connection.run(&make, &[&here]).await }),
            async { connection.rows(&lock, &[&here]).await },
            when(!keys.is_empty(), async { connection.rows(&expect, &[&shard, &spaces, &keys]).await }),
            when(unanswered.is_some(), async { connection.rows(&mark, &[&shard, &server]).await }),
        );
        begun?;
        made?;
        let locked = locked?;
        let now = locked.first().map_or(0.0, |row| row.get(1 + SHARD_COLUMNS));
        if let Some(before) = unanswered {
            let found = mark?.unwrap_or_default().first().map(|row| row.get::<_, i64>(0).cast_unsigned());
            if found == Some(self.sequence) {
                return Ok(Locked::Committed);
            }
            if now - before.sent_at > MARK_SECONDS {
                return Err(Trouble::Wrong("it was too long ago to be known".to_owned()).into());
            }
        }
        let rows: BTreeMap<ShardId, ShardRow> = locked
            .iter()
            .map(|row| (ShardId(row.get::<_, i64>(0).cast_unsigned()), ShardRow::of(row, 1)))
            .collect();
        if rows.len() != here.len() {
            for shard in &touched {
                self.core.known.forget(*shard);
            }
            return Err(Trouble::Again("the row of a shard is not there".to_owned()).into());
        }
        if let Some((shard, row)) = rows.iter().find(|(_, row)| row.pending.is_some()) {
            return Err(AttemptError::Pending(*shard, Box::new(row.clone())));
        }
        let dropped = self.dropped(connection, &rows).await?;
        let mut ground = Ground { dropped, ..Ground::default() };
        ground.states = rows.iter().map(|(shard, row)| (*shard, row.state)).collect();
        for row in present?.unwrap_or_default() {
            let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
            if let Some((space, key)) = expected.get(place) {
                ground.present.insert((*space, Bytes::clone(key)), Some(row.get(1)));
            }
        }
        Ok(Locked::Open { rows, ground, now })
    }

    async fn dropped(
        &self,
        connection: &StoreConnection,
        rows: &BTreeMap<ShardId, ShardRow>,
    ) -> Result<Arc<PrefixSet>, Trouble> {
        let changes = rows.get(&self.shard).map_or(0, |row| row.drops);
        self.core.drops_of(connection, self.shard, changes).await
    }

    /// What the group changes of the set, and its number.
    fn block(
        &self,
        group: &BatchGroup,
        rows: &BTreeMap<ShardId, ShardRow>,
    ) -> Result<Option<(GroupBlock, u64)>, Trouble> {
        if group.set.is_empty() {
            return Ok(None);
        }
        let before = rows.get(&self.shard).map_or(0, |row| row.set_group);
        let number = group.shards.get(&self.shard).map_or(0, |state| state.version);
        let origin = Origin { owner: self.core.set_owner(self.shard), group: number, before };
        let block = GroupBlock::of(origin, set::changes(&group.set), BLOCK_BYTES);
        let block = block.map_err(|error| Trouble::Wrong(error.to_string()))?;
        Ok(block.map(|block| (block, number)))
    }

    /// The rows as the group leaves them.
    fn change_rows(
        &self,
        rows: &mut BTreeMap<ShardId, ShardRow>,
        group: &BatchGroup,
        block: Option<&(GroupBlock, u64)>,
    ) {
        for (shard, row) in rows.iter_mut() {
            if let Some(state) = group.shards.get(shard) {
                row.state = *state;
            }
            row.drops += u64::from(drops_of(group, *shard));
        }
        if let Some(row) = rows.get_mut(&self.shard) {
            if let Some((_, number)) = block {
                row.set_group = *number;
            }
            row.has_chunks |= group.changes.values().flatten().any(|value| value.len() > CHUNK_BYTES);
        }
    }
}

enum Locked {
    /// The rows are ours until the end.
    Open { rows: BTreeMap<ShardId, ShardRow>, ground: Ground, now: f64 },
    /// The attempt before has come to its end.
    Committed,
}

fn drops_of(group: &BatchGroup, shard: ShardId) -> bool {
    group.dropped.iter().any(|prefix| shard_of(prefix.space, &prefix.bytes) == Some(shard))
}
