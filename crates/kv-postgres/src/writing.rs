//! The second round trip of a commit: all writes of a group and the commit, sent together.
//!
//! In: what a group changes. Out: it is committed, or it is not, or ([`Trouble::Lost`]) nobody knows.
//! Invariant: the commit is sent only after every write was: a write that cannot be sent, because it is too long say, would otherwise be
//! missing from what is committed.

use crate::committer::{CHUNK_BYTES, Committed};
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::group::BatchGroup;
use crate::store::{ShardRow, sql_id, sql_space};
use astrarium_kv::contract::shard_of;
use astrarium_kv::{ShardId, Space};
use std::task::Poll;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

const DELETE_CHUNKS: &str = "DELETE FROM chunk WHERE shard = $1 AND space = $2 AND k = ANY($3::bytea[])";
const ADD_CHUNKS: &str = "INSERT INTO chunk (shard, space, k, n, v) SELECT $1, e.space, e.k, e.n, e.v \
    FROM unnest($2::smallint[], $3::bytea[], $4::integer[], $5::bytea[]) AS e(space, k, n, v)";
const ADD_BLOCK: &str = "INSERT INTO set_group (shard, grp, block) VALUES ($1, $2, $3)";
const ADD_DROPS: &str = "INSERT INTO dropped_prefix (shard, space, prefix) \
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bytea[]) ON CONFLICT DO NOTHING";
const LEAVE_MARK: &str = "INSERT INTO mark (shard, server, sequence) VALUES ($1, $2, $3) \
    ON CONFLICT (shard, server) DO UPDATE SET sequence = excluded.sequence";
const LEAVE_DECISION: &str = "INSERT INTO decision (id, is_committed) VALUES ($1, true)";
const CHANGE_ROWS: &str = "UPDATE shard s SET version = e.version, epoch = e.epoch, high_water = e.high_water, \
    tally_0 = e.tally_0, tally_1 = e.tally_1, is_dropped = e.is_dropped, set_group = e.set_group, drops = e.drops, \
    has_chunks = e.has_chunks \
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::bigint[], \
    $9::bigint[], $10::boolean[]) \
    AS e(id, version, epoch, high_water, tally_0, tally_1, is_dropped, set_group, drops, has_chunks) WHERE s.id = e.id";

/// What a group writes, as parameters.
pub(crate) struct GroupWrites<'group> {
    shard: i64,
    changes: Changes<'group>,
    rows: ShardRows,
    drops: DropRows<'group>,
    /// Whether values of the shard may have further chunks.
    has_chunks: bool,
    /// The block of the index, and its group.
    block: Option<(&'group [u8], i64)>,
    /// The server, and the number of the group.
    mark: (i64, i64),
    decision: Option<&'group [u8]>,
}

struct WriteStatements {
    upsert: Statement,
    delete: Statement,
    delete_chunks: Statement,
    add_chunks: Statement,
    add_block: Statement,
    add_drops: Statement,
    change_rows: Statement,
    mark: Statement,
    decide: Statement,
}

impl WriteStatements {
    async fn prepare(connection: &StoreConnection) -> Result<WriteStatements, Trouble> {
        Ok(WriteStatements {
            upsert: connection.prepared(connection.dialect().upsert()).await?,
            delete: connection.prepared(connection.dialect().delete()).await?,
            delete_chunks: connection.prepared(DELETE_CHUNKS).await?,
            add_chunks: connection.prepared(ADD_CHUNKS).await?,
            add_block: connection.prepared(ADD_BLOCK).await?,
            add_drops: connection.prepared(ADD_DROPS).await?,
            change_rows: connection.prepared(CHANGE_ROWS).await?,
            mark: connection.prepared(LEAVE_MARK).await?,
            decide: connection.prepared(LEAVE_DECISION).await?,
        })
    }
}

impl<'group> GroupWrites<'group> {
    pub(crate) fn of(
        shard: ShardId,
        group: &'group BatchGroup,
        committed: &'group Committed,
        mark: (i64, u64),
        decision: Option<&'group [u8]>,
    ) -> GroupWrites<'group> {
        let has_chunks = committed.rows.iter().any(|(other, row)| *other == shard && row.has_chunks);
        let block = committed.block.as_ref().map(|(block, number)| (&block[..], number.cast_signed()));
        GroupWrites {
            shard: sql_id(shard),
            changes: Changes::of(group),
            rows: ShardRows::of(&committed.rows),
            drops: DropRows::of(group),
            has_chunks,
            block,
            mark: (mark.0, mark.1.cast_signed()),
            decision,
        }
    }

    /// Writes and commits. Of its troubles only a lost connection leaves open whether it was committed.
    pub(crate) async fn commit(&self, connection: &StoreConnection) -> Result<(), Trouble> {
        let statements = WriteStatements::prepare(connection).await?;
        let mut writes = Box::pin(self.write(connection, &statements));
        // The first poll sends all of them; what cannot be sent is known then.
        let sent = std::future::poll_fn(|context| Poll::Ready(writes.as_mut().poll(context))).await;
        let committed = match sent {
            Poll::Ready(written) => {
                written?;
                connection.script("COMMIT").await
            }
            Poll::Pending => {
                let (written, committed) = tokio::join!(writes, async { connection.script("COMMIT").await });
                // An error of a write has ended the transaction: the commit was a rollback then, whatever it says.
                written?;
                committed
            }
        };
        // What a commit itself is answered with leaves open whether it happened.
        committed.map_err(|trouble| Trouble::Lost(trouble.words().to_owned()))
    }

    async fn write(&self, connection: &StoreConnection, statements: &WriteStatements) -> Result<(), Trouble> {
        let keys = self.write_keys(connection, statements);
        let rows = self.write_rows(connection, statements);
        tokio::try_join!(keys, rows).map(drop)
    }

    async fn write_keys(
        &self,
        connection: &StoreConnection,
        statements: &WriteStatements,
    ) -> Result<(), Trouble> {
        let (shard, changes) = (&self.shard, &self.changes);
        let done = tokio::try_join!(
            when(self.has_chunks, delete(connection, &statements.delete_chunks, self.shard, &changes.all)),
            when(!changes.keys.is_empty(), async {
                let Changes { spaces, keys, values, counts, .. } = changes;
                connection.run(&statements.upsert, &[shard, spaces, keys, values, counts]).await
            }),
            when(!changes.chunk_keys.is_empty(), async {
                let Changes { chunk_spaces, chunk_keys, chunk_numbers, chunks, .. } = changes;
                connection
                    .run(&statements.add_chunks, &[shard, chunk_spaces, chunk_keys, chunk_numbers, chunks])
                    .await
            }),
            delete(connection, &statements.delete, self.shard, &changes.gone),
        );
        done.map(drop)
    }

    async fn write_rows(
        &self,
        connection: &StoreConnection,
        statements: &WriteStatements,
    ) -> Result<(), Trouble> {
        let (shard, rows, drops) = (&self.shard, &self.rows, &self.drops);
        let (block, number) = self.block.unwrap_or_default();
        let decision = self.decision.unwrap_or_default();
        let done = tokio::try_join!(
            when(self.block.is_some(), async {
                connection.run(&statements.add_block, &[shard, &number, &block]).await
            }),
            when(!drops.shards.is_empty(), async {
                connection.run(&statements.add_drops, &[&drops.shards, &drops.spaces, &drops.prefixes]).await
            }),
            rows.write(connection, &statements.change_rows),
            async { connection.run(&statements.mark, &[shard, &self.mark.0, &self.mark.1]).await },
            when(self.decision.is_some(), async { connection.run(&statements.decide, &[&decision]).await }),
        );
        done.map(drop)
    }
}

/// Deletes rows of keys, by space.
async fn delete(
    connection: &StoreConnection,
    statement: &Statement,
    shard: i64,
    keys: &KeysBySpace<'_>,
) -> Result<(), Trouble> {
    let of_space = |space: Space| {
        let (number, keys) = (sql_space(Some(space)), &keys[space as usize]);
        when(!keys.is_empty(), async move { connection.run(statement, &[&shard, &number, keys]).await })
    };
    let [meta, body, log] = Space::ALL.map(of_space);
    tokio::try_join!(meta, body, log).map(drop)
}

/// A request that is made only if it is needed.
pub(crate) async fn when<T>(
    is_needed: bool,
    request: impl Future<Output = Result<T, Trouble>>,
) -> Result<Option<T>, Trouble> {
    if is_needed { request.await.map(Some) } else { Ok(None) }
}

/// The changes of a group as parameters, in the order of keys.
#[derive(Default)]
struct Changes<'group> {
    spaces: Vec<i16>,
    keys: Vec<&'group [u8]>,
    values: Vec<&'group [u8]>,
    counts: Vec<i32>,
    chunk_spaces: Vec<i16>,
    chunk_keys: Vec<&'group [u8]>,
    chunk_numbers: Vec<i32>,
    chunks: Vec<&'group [u8]>,
    gone: KeysBySpace<'group>,
    all: KeysBySpace<'group>,
}

type KeysBySpace<'group> = [Vec<&'group [u8]>; Space::ALL.len()];

impl<'group> Changes<'group> {
    fn of(group: &'group BatchGroup) -> Changes<'group> {
        let mut changes = Changes::default();
        let mut sorted: Vec<_> = group.changes.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        for ((space, key), value) in sorted {
            changes.all[*space as usize].push(key);
            let Some(value) = value else {
                changes.gone[*space as usize].push(key);
                continue;
            };
            let space = sql_space(Some(*space));
            let (first, rest) = value.split_at(value.len().min(CHUNK_BYTES));
            changes.spaces.push(space);
            changes.keys.push(key);
            changes.values.push(first);
            let mut count = 0;
            for chunk in rest.chunks(CHUNK_BYTES) {
                count += 1;
                changes.chunk_spaces.push(space);
                changes.chunk_keys.push(key);
                changes.chunk_numbers.push(count);
                changes.chunks.push(chunk);
            }
            changes.counts.push(count);
        }
        changes
    }
}

/// Rows of shards as parameters.
#[derive(Default)]
struct ShardRows {
    ids: Vec<i64>,
    versions: Vec<i64>,
    epochs: Vec<i64>,
    high_waters: Vec<i64>,
    first_tallies: Vec<i64>,
    second_tallies: Vec<i64>,
    are_dropped: Vec<bool>,
    set_groups: Vec<i64>,
    drops: Vec<i64>,
    have_chunks: Vec<bool>,
}

impl ShardRows {
    async fn write(&self, connection: &StoreConnection, statement: &Statement) -> Result<u64, Trouble> {
        let ShardRows { ids, versions, epochs, high_waters, first_tallies, second_tallies, .. } = self;
        let ShardRows { are_dropped, set_groups, drops, have_chunks, .. } = self;
        let counters: [&(dyn ToSql + Sync); 6] =
            [ids, versions, epochs, high_waters, first_tallies, second_tallies];
        let others: [&(dyn ToSql + Sync); 4] = [are_dropped, set_groups, drops, have_chunks];
        connection.run(statement, &[&counters[..], &others].concat()).await
    }

    fn of(rows: &[(ShardId, ShardRow)]) -> ShardRows {
        let mut columns = ShardRows::default();
        for (shard, row) in rows {
            columns.ids.push(sql_id(*shard));
            columns.versions.push(row.state.version.cast_signed());
            columns.epochs.push(row.state.epoch.cast_signed());
            columns.high_waters.push(row.state.high_water.cast_signed());
            columns.first_tallies.push(row.state.tallies[0]);
            columns.second_tallies.push(row.state.tallies[1]);
            columns.are_dropped.push(row.state.is_dropped);
            columns.set_groups.push(row.set_group.cast_signed());
            columns.drops.push(row.drops.cast_signed());
            columns.have_chunks.push(row.has_chunks);
        }
        columns
    }
}

/// Dropped prefixes as parameters.
#[derive(Default)]
struct DropRows<'group> {
    shards: Vec<i64>,
    spaces: Vec<i16>,
    prefixes: Vec<&'group [u8]>,
}

impl<'group> DropRows<'group> {
    fn of(group: &'group BatchGroup) -> DropRows<'group> {
        let mut rows = DropRows::default();
        for prefix in &group.dropped {
            if let Some(shard) = shard_of(prefix.space, &prefix.bytes) {
                rows.shards.push(sql_id(shard));
                rows.spaces.push(sql_space(prefix.space));
                rows.prefixes.push(&prefix.bytes);
            }
        }
        rows
    }
}
