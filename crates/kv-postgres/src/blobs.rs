//! Runs of the index as rows: 64 KiB of a blob each, read into one cache of this server.
//!
//! In: names and bytes, from the `packed` crate. Out: bytes; want as [`Error::Unavailable`], what is missing or cut as damage.
//! `packed` reads without awaiting, so reading what is not cached blocks its thread. A thread that must not block gets
//! [`would_block`] instead, and whoever asked does it again on one that may.
//! Invariants
//! - Only the holder of the merge lease writes: each write carries his fencing number, and is refused when another one has the lease.
//! - Bytes of a number never change, so they can be cached without asking again: every merge has numbers of its own, from its fencing
//!   number, and a store that continues another history than before is another one for the cache. A blob that is replaced stays for a while, for those
//!   who still read it; then it goes (`reclaim`).

use crate::PostgresCore;
use crate::error::Trouble;
use crate::store::{PostgresStore, sql_id};
use astrarium_kv::ShardId;
use astrarium_packed::{Blob, BlobWriter, Blobs, Error, MANIFEST_NAME, ReplaceError};
use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use std::sync::{Arc, Weak, mpsc};

/// Bytes of a blob in one row.
const ROW_BYTES: usize = 64 << 10;

/// Rows that are written at once.
const ROWS_AT_ONCE: usize = 16;

const RUN_SUFFIX: &str = ".run";
const WOULD_BLOCK: &str = "the index is not in memory";

/// Whether an answer was not given because its thread must not wait.
pub(crate) fn would_block(error: &Error) -> bool {
    matches!(error, Error::Unavailable { reason } if reason == WOULD_BLOCK)
}

/// A history, a shard, the number of one of its blobs, a row of it.
type RowKey = (u64, ShardId, u64, u32);

/// Rows that were read lately, of all shards.
pub(crate) struct RowCache {
    rows: Cache<RowKey, Bytes, RowWeighter, RandomState>,
}

#[derive(Clone)]
struct RowWeighter;

impl Weighter<RowKey, Bytes> for RowWeighter {
    fn weight(&self, _: &RowKey, bytes: &Bytes) -> u64 {
        bytes.len() as u64 + 96
    }
}

impl RowCache {
    pub(crate) fn new(bytes_max: u64) -> RowCache {
        let count = usize::try_from(bytes_max / ROW_BYTES as u64).unwrap_or(usize::MAX).max(16);
        let hasher = RandomState::default();
        RowCache { rows: Cache::with(count, bytes_max, RowWeighter, hasher, DefaultLifecycle::default()) }
    }
}

/// The blobs of one shard's set; for a merger with his fencing number.
#[derive(Clone)]
pub(crate) struct ShardBlobs {
    pub(crate) core: Weak<PostgresCore>,
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) shard: ShardId,
    pub(crate) fence: Option<i64>,
    /// Of which history they are (`history`).
    pub(crate) history: u64,
}

const READ_ROW: &str = "SELECT bytes FROM set_blob WHERE shard = $1 AND number = $2 AND n = $3";
const READ_LENGTH: &str =
    "SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM set_blob WHERE shard = $1 AND number = $2";
const READ_MANIFEST: &str = "SELECT content FROM set_manifest WHERE shard = $1";
const LIST_BLOBS: &str = "SELECT DISTINCT number FROM set_blob b WHERE shard = $1 AND NOT EXISTS \
    (SELECT FROM set_garbage g WHERE g.shard = b.shard AND g.number = b.number)";
/// Nothing by whoever has lost the lease: what he takes for replaced may be his successor's. It is found again by the next merge.
const REMOVE_BLOB: &str = "INSERT INTO set_garbage (shard, number) SELECT $1::bigint, $2::bigint FROM set_manifest \
    WHERE shard = $1 AND fence = $3 ON CONFLICT DO NOTHING";
const WRITE_ROWS: &str = "WITH lease AS (UPDATE set_manifest SET expires = now() + interval '30 seconds' \
    WHERE shard = $1 AND fence = $2 RETURNING shard) \
    INSERT INTO set_blob (shard, number, n, bytes) SELECT $1, $3, e.n, e.bytes \
    FROM lease, unnest($4::integer[], $5::bytea[]) AS e(n, bytes) \
    ON CONFLICT (shard, number, n) DO UPDATE SET bytes = excluded.bytes";
const REPLACE_MANIFEST: &str = "WITH renewed AS (UPDATE set_manifest SET number = number + 1, content = $3, \
    expires = now() + interval '30 seconds' WHERE shard = $1 AND fence = $2 RETURNING number) \
    UPDATE shard SET manifest = renewed.number, set_is_lost = $4 FROM renewed WHERE shard.id = $1";

impl ShardBlobs {
    /// Asks the store something from a thread that may wait.
    pub(crate) fn ask<T: Send + 'static, F>(
        &self,
        ask: impl FnOnce(ShardBlobs) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        if !astrarium_env::may_block() {
            return Err(Error::Unavailable { reason: WOULD_BLOCK.to_owned() });
        }
        let core = self.core.upgrade().ok_or_else(closed)?;
        let (answer, receiver) = mpsc::sync_channel(1);
        let blobs = self.clone();
        core.runtime.spawn(async move {
            // Nobody listens once the asking thread is gone.
            let _ = answer.send(ask(blobs).await);
        });
        drop(core);
        Ok(receiver.recv().map_err(|_| closed())??)
    }

    pub(crate) async fn connection(&self) -> Result<crate::pool::Pooled, Trouble> {
        self.store.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))
    }

    fn row(&self, number: u64, row: u32) -> Result<Bytes, Error> {
        let key = (self.history, self.shard, number, row);
        let core = self.core.upgrade().ok_or_else(closed)?;
        if let Some(bytes) = core.rows.rows.get(&key) {
            return Ok(bytes);
        }
        drop(core);
        let bytes = self.ask(move |blobs| async move {
            let parameters = (sql_id(blobs.shard), number.cast_signed(), row.cast_signed());
            let connection = blobs.connection().await?;
            let rows = connection.query(READ_ROW, &[&parameters.0, &parameters.1, &parameters.2]).await?;
            Ok(rows.first().map(|row| Bytes::from(row.get::<_, Vec<u8>>(0))))
        })?;
        let bytes = bytes.ok_or_else(|| damaged("a row of an index run is missing"))?;
        if let Some(core) = self.core.upgrade() {
            core.rows.rows.insert(key, bytes.clone());
        }
        Ok(bytes)
    }

    fn write_rows(&self, number: u64, first: usize, rows: Vec<Vec<u8>>) -> Result<(), Error> {
        let count = rows.len() as u64;
        let written = self.ask(move |blobs| async move {
            let places: Vec<i32> = (0..).skip(first).take(rows.len()).collect();
            let (shard, fence, number) =
                (sql_id(blobs.shard), blobs.fence.unwrap_or(-1), number.cast_signed());
            blobs.connection().await?.execute(WRITE_ROWS, &[&shard, &fence, &number, &places, &rows]).await
        })?;
        if written == count { Ok(()) } else { Err(lease_lost()) }
    }
}

impl Blobs for ShardBlobs {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error> {
        let number = number_of(name)?;
        Ok(Box::new(RowWriter {
            blobs: self.clone(),
            number,
            written: 0,
            full: Vec::new(),
            rest: Vec::new(),
        }))
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error> {
        let number = number_of(name)?;
        let byte_count = self.ask(move |blobs| async move {
            let (shard, number) = (sql_id(blobs.shard), number.cast_signed());
            let rows = blobs.connection().await?.query(READ_LENGTH, &[&shard, &number]).await?;
            Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
        })?;
        Ok((byte_count > 0)
            .then(|| Box::new(RowBlob { blobs: self.clone(), number, byte_count }) as Box<dyn Blob>))
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        debug_assert_eq!(name, MANIFEST_NAME, "the manifest is the only small blob");
        self.ask(move |blobs| async move {
            let rows = blobs.connection().await?.query(READ_MANIFEST, &[&sql_id(blobs.shard)]).await?;
            Ok(rows.first().and_then(|row| row.get(0)))
        })
    }

    fn replace(&self, _name: &str, content: &[u8]) -> Result<(), ReplaceError> {
        let content = content.to_vec();
        let is_lost = astrarium_packed::tells_of_loss(&content);
        let replaced = self.ask(move |blobs| async move {
            let (shard, fence) = (sql_id(blobs.shard), blobs.fence.unwrap_or(-1));
            blobs.connection().await?.execute(REPLACE_MANIFEST, &[&shard, &fence, &content, &is_lost]).await
        });
        match replaced {
            Ok(1) => Ok(()),
            Ok(_) => Err(ReplaceError::Unchanged(lease_lost())),
            // The next holder of the lease reads which one it is.
            Err(error) => Err(ReplaceError::Unknown(error)),
        }
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        self.ask(move |blobs| async move {
            let rows = blobs.connection().await?.query(LIST_BLOBS, &[&sql_id(blobs.shard)]).await?;
            Ok(rows.iter().map(|row| format!("{}{RUN_SUFFIX}", row.get::<_, i64>(0))).collect())
        })
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let number = number_of(name)?;
        if !astrarium_env::may_block() {
            // A reader lets go of it last; it is no reader's to remove.
            return Ok(());
        }
        self.ask(move |blobs| async move {
            let (shard, number, fence) =
                (sql_id(blobs.shard), number.cast_signed(), blobs.fence.unwrap_or(-1));
            blobs.connection().await?.execute(REMOVE_BLOB, &[&shard, &number, &fence]).await.map(drop)
        })
    }

    fn set_aside(&self, names: &[String]) -> Result<String, Error> {
        for name in names.iter().filter(|name| name.ends_with(RUN_SUFFIX)) {
            self.remove(name)?;
        }
        Ok("nowhere".to_owned())
    }
}

fn number_of(name: &str) -> Result<u64, Error> {
    let number = name.strip_suffix(RUN_SUFFIX).and_then(|number| number.parse().ok());
    number.ok_or_else(|| damaged("the index has a run without a number"))
}

fn lease_lost() -> Error {
    Error::Unavailable { reason: "another server merges this index now".to_owned() }
}

fn damaged(what: &str) -> Error {
    Error::Damaged { what: what.to_owned() }
}

fn closed() -> Error {
    Error::Unavailable { reason: "the storage is closed".to_owned() }
}

/// A blob on its way.
struct RowWriter {
    blobs: ShardBlobs,
    number: u64,
    /// Rows that are written.
    written: usize,
    full: Vec<Vec<u8>>,
    rest: Vec<u8>,
}

impl RowWriter {
    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.full);
        if rows.is_empty() {
            return Ok(());
        }
        let count = rows.len();
        self.blobs.write_rows(self.number, self.written, rows)?;
        self.written += count;
        Ok(())
    }
}

impl BlobWriter for RowWriter {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(ROW_BYTES - self.rest.len()));
            self.rest.extend_from_slice(now);
            bytes = later;
            if self.rest.len() == ROW_BYTES {
                self.full.push(std::mem::take(&mut self.rest));
                if self.full.len() == ROWS_AT_ONCE {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Blob>, Error> {
        let rest = std::mem::take(&mut self.rest);
        let byte_count = ((self.written + self.full.len()) * ROW_BYTES + rest.len()) as u64;
        if !rest.is_empty() {
            self.full.push(rest);
        }
        self.flush()?;
        Ok(Box::new(RowBlob { blobs: self.blobs.clone(), number: self.number, byte_count }))
    }
}

/// A finished blob.
struct RowBlob {
    blobs: ShardBlobs,
    number: u64,
    byte_count: u64,
}

impl Blob for RowBlob {
    fn byte_count(&self) -> u64 {
        self.byte_count
    }

    fn read_at(&self, offset: u64, mut bytes: &mut [u8]) -> Result<(), Error> {
        let mut place = usize::try_from(offset).map_err(|_| damaged("a blob ends early"))?;
        while !bytes.is_empty() {
            let row = self.blobs.row(self.number, (place / ROW_BYTES) as u32)?;
            let from = place % ROW_BYTES;
            let count = bytes.len().min(ROW_BYTES - from);
            let found = row.get(from..from + count).ok_or_else(|| damaged("a row of an index run is cut"))?;
            let (now, later) = bytes.split_at_mut(count);
            now.copy_from_slice(found);
            bytes = later;
            place += count;
        }
        Ok(())
    }
}
