//! Commits of the catalog that change shards in other stores: decided in one place, carried out in the others.
//!
//! In: a batch whose fences, foundings or drops concern shards elsewhere. Out: all of it happens, or nothing.
//! 1. In each other store the shards' rows get a *pending* change with the number of this commit, and are refused to everybody.
//! 2. The commit in its own store leaves a *decision* with that number, in the same transaction. From then on it has happened.
//! 3. The pending changes are made.
//!
//! Whoever meets a pending change that does not go away asks for the decision. If there is none, he decides that the commit shall not
//! happen: the number is the decision's key, so that of him and the committer one is first, and the other finds out.
//! Invariants
//! - A row with a pending change is neither read nor written, so nobody sees a part of such a commit.
//! - Nobody waits for a server that is gone: pending changes are settled by whoever comes.

use crate::PostgresCore;
use crate::committer::{GroupError, touched_shards};
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::store::{PostgresStore, ShardRow, read_shard, sql_id, sql_space};
use astrarium_kv::contract::{drop_shard, found, shard_of};
use astrarium_kv::{
    CommitVersion, Error, Founding, KeyPrefix, PlaceId, ShardId, ShardState, Space, WriteBatch,
};
use bytes::{Buf, BufMut as _, Bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long somebody who meets a pending change waits for its committer, and how often he looks.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How often a batch is tried that others lost patience with, on a slow machine say.
const ATTEMPTS_MAX: u32 = 3;

const ID_BYTES: usize = 16;
const MAKE_ROW: &str = "INSERT INTO shard (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
const LOCK_ROW: &str = "SELECT FROM shard WHERE id = $1 FOR UPDATE";
const SET_PENDING: &str = "UPDATE shard SET pending = $2 WHERE id = $1";
const END_PENDING: &str = "UPDATE shard SET version = $2, epoch = $3, high_water = $4, tally_0 = $5, tally_1 = $6, \
    is_dropped = $7, drops = $8, pending = NULL WHERE id = $1";
const ADD_DROP: &str =
    "INSERT INTO dropped_prefix (shard, space, prefix) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const REFUSE: &str = "INSERT INTO decision (id, is_committed) VALUES ($1, false) ON CONFLICT (id) DO NOTHING";
/// Changed and not only read: its answer waits until a standby has the decision, on which other stores are about to rely.
const READ_DECISION: &str = "UPDATE decision SET at = at WHERE id = $1 RETURNING is_committed";
const READ_PENDING: &str = "SELECT id FROM shard WHERE pending IS NOT NULL ORDER BY id";

/// What a commit of another store does to a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PendingChange {
    id: [u8; ID_BYTES],
    founding: Option<Founding>,
    is_fenced: bool,
    is_dropped: bool,
    prefixes: Vec<KeyPrefix>,
}

impl PendingChange {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.to_vec();
        let flags = u8::from(self.is_fenced)
            | u8::from(self.is_dropped) << 1
            | u8::from(self.founding.is_some()) << 2;
        bytes.put_u8(flags);
        if let Some(Founding { version, high_water, tallies }) = self.founding {
            bytes.put_u64(version);
            bytes.put_u64(high_water);
            for tally in tallies {
                bytes.put_i64(tally);
            }
        }
        for prefix in &self.prefixes {
            bytes.put_i16(sql_space(prefix.space));
            bytes.put_u32(prefix.bytes.len() as u32);
            bytes.put_slice(&prefix.bytes);
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<PendingChange> {
        let mut change =
            PendingChange { id: *bytes.split_off(..ID_BYTES)?.first_chunk()?, ..PendingChange::default() };
        let flags = bytes.try_get_u8().ok()?;
        (change.is_fenced, change.is_dropped) = (flags & 1 != 0, flags & 2 != 0);
        if flags & 4 != 0 {
            let (version, high_water) = (bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
            let tallies = [bytes.try_get_i64().ok()?, bytes.try_get_i64().ok()?];
            change.founding = Some(Founding { version, high_water, tallies });
        }
        while !bytes.is_empty() {
            let space = bytes.try_get_i16().ok()?;
            let length = bytes.try_get_u32().ok()? as usize;
            let prefix = Bytes::copy_from_slice(bytes.split_off(..length)?);
            let space = Space::ALL.get(space.cast_unsigned() as usize).copied();
            change.prefixes.push(KeyPrefix { space, bytes: prefix });
        }
        Some(change)
    }

    /// The row after the change.
    fn apply(&self, shard: ShardId, row: &ShardRow) -> Result<ShardRow, Error> {
        let mut state: ShardState = row.state;
        if let Some(founding) = self.founding {
            state = found(shard, founding, state)?;
        }
        state.epoch += u64::from(self.is_fenced);
        if self.is_dropped {
            drop_shard(&mut state);
        }
        let drops = row.drops + u64::from(!self.prefixes.is_empty());
        Ok(ShardRow { state, drops, pending: None, ..row.clone() })
    }
}

/// The changes of a batch by shard, but for its own shard's.
fn changes_of(batch: &WriteBatch, id: [u8; ID_BYTES]) -> BTreeMap<ShardId, PendingChange> {
    let mut changes = BTreeMap::<ShardId, PendingChange>::new();
    let blank = || PendingChange { id, ..PendingChange::default() };
    for shard in &batch.fences {
        changes.entry(*shard).or_insert_with(blank).is_fenced = true;
    }
    for (shard, founding) in &batch.foundings {
        changes.entry(*shard).or_insert_with(blank).founding = Some(*founding);
    }
    for shard in &batch.drops.shards {
        changes.entry(*shard).or_insert_with(blank).is_dropped = true;
    }
    for prefix in &batch.drops.prefixes {
        if let Some(shard) = shard_of(prefix.space, &prefix.bytes) {
            changes.entry(shard).or_insert_with(blank).prefixes.push(prefix.clone());
        }
    }
    changes
}

/// The batch without what concerns some shards.
fn without(batch: &WriteBatch, elsewhere: &BTreeSet<ShardId>) -> WriteBatch {
    let mut rest = batch.clone();
    let is_here = |shard: &ShardId| !elsewhere.contains(shard);
    rest.fences.retain(is_here);
    rest.foundings.retain(|(shard, _)| is_here(shard));
    rest.drops.shards.retain(is_here);
    rest.drops
        .prefixes
        .retain(|prefix| shard_of(prefix.space, &prefix.bytes).is_none_or(|shard| is_here(&shard)));
    rest
}

impl PostgresCore {
    /// Whether a batch changes shards of other stores than its own.
    pub(crate) async fn reaches_elsewhere(
        &self,
        batch: &WriteBatch,
        store: &PostgresStore,
    ) -> Result<bool, Error> {
        for shard in touched_shards(batch) {
            if shard != batch.shard && self.store_of(shard).await?.id != store.id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Commits a batch that changes shards of other stores.
    pub(crate) async fn commit_across(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        batch: &WriteBatch,
    ) -> Result<CommitVersion, Error> {
        if store.id != PlaceId::FIRST {
            return Err(Error::Contract {
                what: "a shard beside the catalog changes shards of other stores".to_owned(),
            });
        }
        for _ in 0..ATTEMPTS_MAX {
            if let Some(version) = self.commit_across_once(store, batch).await? {
                return Ok(version);
            }
        }
        Err(Error::Busy)
    }

    /// Nothing if somebody who waited for it lost patience, and decided that it shall not happen.
    async fn commit_across_once(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        batch: &WriteBatch,
    ) -> Result<Option<CommitVersion>, Error> {
        let id = *uuid::Uuid::new_v4().as_bytes();
        let mut elsewhere = BTreeMap::<PlaceId, Vec<(ShardId, PendingChange)>>::new();
        for (shard, change) in changes_of(batch, id) {
            let place = self.store_of(shard).await?.id;
            if place != store.id {
                elsewhere.entry(place).or_default().push((shard, change));
            }
        }
        for (place, changes) in &elsewhere {
            let other = self.store_at(*place).await?;
            if let Err(error) = self.announce(&other, changes).await {
                self.give_up(&elsewhere, id).await;
                return Err(error);
            }
        }
        let shards: BTreeSet<ShardId> = elsewhere.values().flatten().map(|(shard, _)| *shard).collect();
        let own = [without(batch, &shards)];
        let outcome = self.commit_group(store, batch.shard, &own, Some(&id)).await;
        match outcome.map(|mut outcomes| outcomes.pop()) {
            Ok(Some(Ok(version))) => {
                for (place, changes) in &elsewhere {
                    let Ok(other) = self.store_at(*place).await else { continue };
                    for (shard, _) in changes {
                        // It is decided; whoever comes next carries it out if this does not succeed.
                        let _ = self.finish(&other, *shard, id, true).await;
                    }
                }
                Ok(Some(version))
            }
            Ok(Some(Err(error))) => {
                self.give_up(&elsewhere, id).await;
                Err(error)
            }
            Ok(None) => Err(Error::Contract { what: "a group without a batch".to_owned() }),
            Err(GroupError { error: Error::Conflict { .. }, .. }) => Ok(None),
            // Nobody knows whether it is decided: whoever meets what is pending finds out.
            Err(GroupError { error, .. }) => Err(error),
        }
    }

    /// Writes pending changes into the rows of one store.
    async fn announce(
        &self,
        store: &Arc<PostgresStore>,
        changes: &[(ShardId, PendingChange)],
    ) -> Result<(), Error> {
        for _ in 0..3 {
            let connection = store.committers.get().await?;
            let asking = connection.asking();
            connection.script("BEGIN").await?;
            let mut blocked = None;
            for (shard, change) in changes {
                let id = sql_id(*shard);
                connection.execute(MAKE_ROW, &[&id]).await?;
                connection.execute(LOCK_ROW, &[&id]).await?;
                let row = read_shard(&connection, *shard).await?;
                if row.pending.is_some() {
                    blocked = Some((*shard, row));
                    break;
                }
                if let Err(error) = change.apply(*shard, &row) {
                    connection.roll_back_later();
                    return Err(error);
                }
                connection.execute(SET_PENDING, &[&id, &change.encode()]).await?;
            }
            match blocked {
                None => return Ok(connection.script("COMMIT").await?),
                Some((shard, row)) => {
                    connection.roll_back_later();
                    drop(asking);
                    drop(connection);
                    self.settle_pending(store, shard, &row).await;
                }
            }
        }
        Err(Error::Busy)
    }

    /// Takes pending changes back.
    async fn give_up(
        &self,
        elsewhere: &BTreeMap<PlaceId, Vec<(ShardId, PendingChange)>>,
        id: [u8; ID_BYTES],
    ) {
        // What does not succeed here is done by whoever meets what is pending.
        if !matches!(self.decide(id).await, Ok(false)) {
            return;
        }
        for (place, changes) in elsewhere {
            let Ok(store) = self.store_at(*place).await else { continue };
            for (shard, _) in changes {
                let _ = self.finish(&store, *shard, id, false).await;
            }
        }
    }

    /// What was decided; if nothing was, that it shall not happen.
    async fn decide(&self, id: [u8; ID_BYTES]) -> Result<bool, Error> {
        let home = self.home();
        let connection = home.committers.get().await?;
        connection.execute(REFUSE, &[&&id[..]]).await?;
        let rows = connection.query(READ_DECISION, &[&&id[..]]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Ends a pending change of a shard, unless somebody has.
    async fn finish(
        &self,
        store: &PostgresStore,
        shard: ShardId,
        id: [u8; ID_BYTES],
        happens: bool,
    ) -> Result<(), Error> {
        let connection = store.committers.get().await?;
        let _asking = connection.asking();
        connection.script("BEGIN").await?;
        let finished = finish_on(&connection, shard, id, happens).await;
        match finished {
            Ok(row) => {
                connection.script("COMMIT").await?;
                if let Some(row) = row {
                    self.known.note(shard, &row);
                    self.watchers.wake([shard]);
                }
                Ok(())
            }
            Err(error) => {
                connection.roll_back_later();
                Err(error)
            }
        }
    }

    /// Ends the pending changes of a store that nobody has met: of dropped shards, say, for which nobody asks any more.
    pub(crate) async fn settle_all(&self, store: &Arc<PostgresStore>) -> Result<(), Error> {
        let rows = store.workers.get().await?.query(READ_PENDING, &[]).await?;
        for row in rows {
            let shard = ShardId(row.get::<_, i64>(0).cast_unsigned());
            let row = read_shard(&*store.workers.get().await?, shard).await?;
            if row.pending.is_some() {
                self.wait_for_pending(store, shard, &row).await?;
            }
        }
        Ok(())
    }

    /// Waits until a pending change is gone; an error if nobody can tell what becomes of it.
    pub(crate) async fn wait_for_pending(
        &self,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        row: &ShardRow,
    ) -> Result<(), Error> {
        match self.settle_pending(store, shard, row).await {
            Trouble::Again(_) => Ok(()),
            trouble => Err(trouble.into()),
        }
    }

    /// Waits a moment until a pending change is gone, or ends it; tells the caller to look again.
    pub(crate) async fn settle_pending(
        &self,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        row: &ShardRow,
    ) -> Trouble {
        let again = || Trouble::Again("another server is changing the key range".to_owned());
        let Some(change) = row.pending.as_deref().and_then(PendingChange::decode) else { return again() };
        let (home, store) = (self.home(), Arc::clone(store));
        let began = Instant::now();
        loop {
            let decided = match home.committers.get().await {
                Ok(connection) => connection.query(READ_DECISION, &[&&change.id[..]]).await,
                Err(error) => return Trouble::Lost(error.to_string()),
            };
            let happens = match decided {
                Ok(rows) => rows.first().map(|row| row.get::<_, bool>(0)),
                Err(trouble) => return trouble,
            };
            let happens = match happens {
                None if began.elapsed() > PATIENCE => self.decide(change.id).await.ok(),
                happens => happens,
            };
            if let Some(happens) = happens {
                return match self.finish(&store, shard, change.id, happens).await {
                    Ok(()) => again(),
                    Err(error) => Trouble::Lost(error.to_string()),
                };
            }
            // On the engine's runtime: callers may be on any.
            let _ = self.runtime.spawn(tokio::time::sleep(LOOK_INTERVAL)).await;
        }
    }
}

async fn finish_on(
    connection: &StoreConnection,
    shard: ShardId,
    id: [u8; ID_BYTES],
    happens: bool,
) -> Result<Option<ShardRow>, Error> {
    let number = sql_id(shard);
    connection.execute(LOCK_ROW, &[&number]).await?;
    let row = read_shard(connection, shard).await?;
    let change = row.pending.as_deref().and_then(PendingChange::decode);
    let Some(change) = change.filter(|change| change.id == id) else { return Ok(None) };
    if !happens {
        connection.execute(SET_PENDING, &[&number, &Option::<Vec<u8>>::None]).await?;
        return Ok(None);
    }
    let row = change.apply(shard, &row)?;
    let state = row.state;
    let (version, epoch) = (state.version.cast_signed(), state.epoch.cast_signed());
    let (high_water, drops) = (state.high_water.cast_signed(), row.drops.cast_signed());
    let [first, second] = state.tallies;
    connection
        .execute(
            END_PENDING,
            &[&number, &version, &epoch, &high_water, &first, &second, &state.is_dropped, &drops],
        )
        .await?;
    for prefix in &change.prefixes {
        connection.execute(ADD_DROP, &[&number, &sql_space(prefix.space), &&prefix.bytes[..]]).await?;
    }
    Ok(Some(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_changes_round_trip() {
        let founding = Founding { version: 7, high_water: 9, tallies: [-3, 4] };
        let prefix =
            |space, text: &'static str| KeyPrefix { space, bytes: Bytes::from_static(text.as_bytes()) };
        let changes = [
            PendingChange { id: [1; 16], ..PendingChange::default() },
            PendingChange {
                id: [2; 16],
                founding: Some(founding),
                is_fenced: true,
                ..PendingChange::default()
            },
            PendingChange {
                id: [3; 16],
                is_dropped: true,
                prefixes: vec![prefix(None, "abc"), prefix(Some(Space::Log), "x")],
                ..PendingChange::default()
            },
        ];
        for change in changes {
            let bytes = change.encode();
            assert_eq!(PendingChange::decode(&bytes), Some(change));
            for length in 0..ID_BYTES {
                assert_eq!(PendingChange::decode(&bytes[..length]), None);
            }
        }
    }
}
