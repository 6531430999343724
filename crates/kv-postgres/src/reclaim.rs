//! Giving back the space of what was dropped, and of runs that were replaced, in steps beside requests.
//!
//! In: dropped prefixes, blobs that no manifest names any more. Out: fewer rows.
//! Any server may do it: each step locks the prefix it works on, and passes over those that another server works on.
//! Invariants
//! - A prefix leaves the list in the transaction that finds nothing of it left, and its shard's row tells of the change.
//! - A replaced blob goes only when no view can be so old as to read it.

use crate::PostgresCore;
use crate::error::Trouble;
use crate::store::{PostgresStore, prefix_of, sql_id, sql_space};
use astrarium_kv::{KeyPrefix, KeyRange, ShardId};
use std::sync::Arc;

/// Rows of a step.
const STEP_ROWS: i64 = 5000;

const NEXT_PREFIX: &str = "SELECT shard, space, prefix FROM dropped_prefix \
    WHERE (shard, space, prefix) > ($1, $2, $3) ORDER BY shard, space, prefix LIMIT 1 FOR UPDATE SKIP LOCKED";
const DELETE_KEYS: &str = "DELETE FROM kv WHERE shard = $1 AND space = $2 AND k IN \
    (SELECT k FROM kv WHERE shard = $1 AND space = $2 AND k >= $3 AND k < $4 ORDER BY k LIMIT $5)";
const DELETE_CHUNKS: &str = "DELETE FROM chunk WHERE shard = $1 AND space = $2 AND k >= $3 AND k < $4";
const FORGET_PREFIX: &str = "WITH gone AS (DELETE FROM dropped_prefix WHERE shard = $1 AND space = $2 AND prefix = $3 \
    RETURNING shard) UPDATE shard SET drops = drops + 1 FROM gone WHERE shard.id = gone.shard";
/// Not its marks: whoever was cut off while he committed to it still has to find out whether he did. They go with their server
/// (`members`).
const DELETE_REST: [&str; 5] = [
    "DELETE FROM set_group WHERE shard = $1",
    "DELETE FROM set_blob WHERE shard = $1",
    "DELETE FROM set_garbage WHERE shard = $1",
    "DELETE FROM set_manifest WHERE shard = $1",
    "DELETE FROM number WHERE shard = $1",
];
const PURGE_BLOBS: &str = "WITH old AS (DELETE FROM set_garbage WHERE since < now() - make_interval(secs => $1) \
    RETURNING shard, number) DELETE FROM set_blob b USING old WHERE b.shard = old.shard AND b.number = old.number";
const READ_ALL: &str = "SELECT space, prefix FROM dropped_prefix";

impl PostgresCore {
    /// Gives back what can be given back of a store.
    pub(crate) async fn reclaim(self: &Arc<PostgresCore>, store: &Arc<PostgresStore>) -> Result<(), Trouble> {
        let mut last = (i64::MIN, i16::MIN, Vec::new());
        while let Some((shard, prefix)) = self.reclaim_next(store, &last).await? {
            if self.is_closed() {
                return Ok(());
            }
            last = (sql_id(shard), sql_space(prefix.space), prefix.bytes.to_vec());
        }
        let connection = store.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        connection.execute(PURGE_BLOBS, &[&self.options.replaced_blobs_kept.as_secs_f64()]).await?;
        Ok(())
    }

    /// Works on the first prefix after one, in a transaction for each step.
    async fn reclaim_next(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        last: &(i64, i16, Vec<u8>),
    ) -> Result<Option<(ShardId, KeyPrefix)>, Trouble> {
        loop {
            let connection = store.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
            connection.script("BEGIN").await?;
            let step = async {
                let rows = connection.query(NEXT_PREFIX, &[&last.0, &last.1, &last.2]).await?;
                let Some(row) = rows.first() else {
                    connection.script("ROLLBACK").await?;
                    return Ok(None);
                };
                let (shard, prefix) = (ShardId(row.get::<_, i64>(0).cast_unsigned()), prefix_of(row, 1));
                let is_done = match prefix.space {
                    Some(_) => delete_keys(&connection, shard, &prefix).await?,
                    None if prefix.bytes.len() == size_of::<u64>() => {
                        for statement in DELETE_REST {
                            connection.execute(statement, &[&sql_id(shard)]).await?;
                        }
                        true
                    }
                    None => false,
                };
                if is_done {
                    let (id, space) = (sql_id(shard), sql_space(prefix.space));
                    connection.execute(FORGET_PREFIX, &[&id, &space, &&prefix.bytes[..]]).await?;
                }
                connection.script("COMMIT").await?;
                Ok(Some((shard, prefix, is_done)))
            };
            let step: Result<_, Trouble> = step.await;
            let step = step.inspect_err(|_| connection.roll_back_later())?;
            drop(connection);
            match step {
                None => return Ok(None),
                Some((shard, prefix, false)) if prefix.space.is_none() => {
                    self.reclaim_of_set(store, shard, &prefix).await?;
                    return Ok(Some((shard, prefix)));
                }
                Some((shard, prefix, true)) => return Ok(Some((shard, prefix))),
                Some(_) => {}
            }
        }
    }

    /// Merges an index without the keys of a prefix.
    async fn reclaim_of_set(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        prefix: &KeyPrefix,
    ) -> Result<(), Trouble> {
        let left = self.merge(store, shard, vec![prefix.bytes.clone()]).await;
        let left = left.map_err(|error| Trouble::Lost(error.to_string()))?;
        if left == [0] {
            let connection = store.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
            let (id, space) = (sql_id(shard), sql_space(None));
            connection.execute(FORGET_PREFIX, &[&id, &space, &&prefix.bytes[..]]).await?;
        }
        Ok(())
    }
}

/// Deletes some keys of a prefix; true when none is left.
async fn delete_keys(
    connection: &crate::connection::StoreConnection,
    shard: ShardId,
    prefix: &KeyPrefix,
) -> Result<bool, Trouble> {
    let KeyRange { start, end } = KeyRange::prefix(&prefix.bytes);
    let (id, space) = (sql_id(shard), sql_space(prefix.space));
    let (start, end) = (&start[..], &end[..]);
    let deleted = connection.execute(DELETE_KEYS, &[&id, &space, &start, &end, &STEP_ROWS]).await?;
    if deleted.cast_signed() < STEP_ROWS {
        connection.execute(DELETE_CHUNKS, &[&id, &space, &start, &end]).await?;
        return Ok(true);
    }
    Ok(false)
}

/// The prefixes of a store whose space is not given back.
pub(crate) async fn unreclaimed(store: &PostgresStore) -> Result<Vec<KeyPrefix>, astrarium_kv::Error> {
    let connection = store.workers.get().await?;
    let rows = connection.query(READ_ALL, &[]).await?;
    Ok(rows.iter().map(|row| prefix_of(row, 0)).collect())
}
