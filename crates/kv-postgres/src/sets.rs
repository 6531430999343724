//! The index of shards as this server reads it: replicas of sets that whoever has the lease merges.
//!
//! In: rows of shards as a view sees them, blocks of this server's own commits. Out: a set as of exactly that row.
//! A replica is as of a manifest and a last group, both told by the shard's row; when the row of a view says the same, nothing is
//! asked of the store. Otherwise the view fetches what is new, in its own transaction.
//! Invariants
//! - A view's set shows exactly what the view's row says: the index and the documents of a view are of one moment.
//! - Replicas that nobody asks for go when memory is needed.

use crate::blobs::{ShardBlobs, would_block};
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::history::StoreHistories;
use crate::store::{PostgresStore, ShardRow, sql_id};
use crate::{PostgresCore, SET_OPTIONS};
use astrarium_kv::{Error, ShardId};
use astrarium_packed::{Replica, SetView};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use std::sync::Arc;

/// A replica, the manifest that it is of, and the history that both are of.
#[derive(Clone)]
pub(crate) struct KnownSet {
    history: u64,
    number: u64,
    manifest: Option<Bytes>,
    replica: Replica,
}

#[derive(Clone)]
struct SetWeighter;

impl Weighter<ShardId, Arc<KnownSet>> for SetWeighter {
    fn weight(&self, _: &ShardId, known: &Arc<KnownSet>) -> u64 {
        known.replica.byte_count() + 1024
    }
}

pub(crate) struct KnownSets {
    sets: Cache<ShardId, Arc<KnownSet>, SetWeighter, RandomState>,
    /// Blocks and their bytes that this server has written since it last merged a shard's.
    written: Mutex<HashMap<ShardId, (u64, u64), RandomState>>,
    history: Arc<StoreHistories>,
}

const READ_MANIFEST: &str = "SELECT number, content FROM set_manifest WHERE shard = $1";
const READ_BLOCKS: &str = "SELECT grp, block FROM set_group WHERE shard = $1 AND grp > $2 ORDER BY grp";

impl KnownSets {
    pub(crate) fn new(bytes_max: u64, history: Arc<StoreHistories>) -> KnownSets {
        let sets =
            Cache::with(1024, bytes_max, SetWeighter, RandomState::default(), DefaultLifecycle::default());
        KnownSets { sets, written: Mutex::default(), history }
    }

    /// What is known of a shard, unless it is of a history that was given up.
    fn known(&self, shard: ShardId) -> Option<Arc<KnownSet>> {
        self.sets.get(&shard).filter(|known| known.history == self.history.now())
    }

    /// The set of a shard as of a row, if it is here.
    pub(crate) fn at(&self, shard: ShardId, row: &ShardRow) -> Option<Arc<SetView>> {
        let known = self.known(shard)?;
        (known.number == row.manifest && known.replica.group() == row.set_group).then(|| known.replica.view())
    }

    /// Goes on with what this server has committed itself, if nobody else has committed in between.
    pub(crate) fn note_commit(&self, shard: ShardId, block: &Bytes, group: u64) {
        {
            // Whoever only writes has no replica, and still leaves blocks to merge.
            let mut written = self.written.lock();
            let (blocks, bytes) = written.entry(shard).or_default();
            *blocks += 1;
            *bytes += block.len() as u64;
        }
        let Some(known) = self.known(shard) else { return };
        // What does not fit is fetched by the next view.
        if let Ok(Some(replica)) = known.replica.with(block, group, &SET_OPTIONS) {
            self.sets.insert(shard, Arc::new(KnownSet { replica, ..KnownSet::clone(&known) }));
        }
    }

    /// Blocks and bytes of a shard that no run has yet, as far as this server has read or written them.
    pub(crate) fn unmerged(&self, shard: ShardId) -> (u64, u64) {
        let read = self.sets.get(&shard).map_or((0, 0), |known| {
            let (_, bytes) = known.replica.unmerged();
            (known.replica.unmerged_span(), bytes)
        });
        let written = self.written.lock().get(&shard).copied().unwrap_or_default();
        (read.0.max(written.0), read.1.max(written.1))
    }

    /// Counts from the beginning what is written from now on: a merge begins.
    pub(crate) fn forget_written(&self, shard: ShardId) {
        self.written.lock().remove(&shard);
    }

    /// Blocks and bytes that no run has yet, of all shards that are known here.
    pub(crate) fn all_unmerged(&self) -> (usize, u64) {
        let unmerged = self.sets.iter().map(|(_, known)| known.replica.unmerged());
        unmerged.fold((0, 0), |(blocks, bytes), (more, size)| (blocks + more, bytes + size))
    }

    /// Does not rely on what is known of a shard any more.
    pub(crate) fn forget(&self, shard: ShardId) {
        self.sets.remove(&shard);
    }
}

impl PostgresCore {
    /// The set of a shard as of a row, fetched over the connection whose transaction sees that row.
    pub(crate) async fn fetch_set(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        connection: &StoreConnection,
        shard: ShardId,
        row: &ShardRow,
    ) -> Result<Arc<SetView>, Error> {
        if let Some(view) = self.sets.at(shard, row) {
            return Ok(view);
        }
        // Before anything is read: what comes of it is of this history, or of an older one that nobody looks at.
        let history = self.history.now();
        let known = self.sets.known(shard).filter(|known| known.replica.group() <= row.set_group);
        let (number, manifest) = match &known {
            Some(known) if known.number == row.manifest => (known.number, known.manifest.clone()),
            _ if row.manifest == 0 => (0, None),
            _ => read_manifest(connection, shard).await?,
        };
        let base = match known {
            Some(known) => known.replica.clone(),
            None => Replica::empty(Arc::new(self.reader_blobs(store, shard)), self.set_owner(shard)),
        };
        let after = base.needs_after(manifest.as_deref()).map_err(astrarium_kv_packed::told)?;
        let blocks = read_blocks(connection, shard, after).await?;
        let replica = self.advance(base, manifest.clone(), blocks).await;
        let replica = match replica {
            Ok(replica) if replica.group() == row.set_group => replica,
            Ok(_) => {
                let what = "index entries of some commit groups are missing".to_owned();
                return Err(self.note_damage(shard, what));
            }
            Err(astrarium_packed::Error::Unavailable { reason }) => {
                return Err(Error::Unavailable { reason });
            }
            Err(error) => return Err(self.note_damage(shard, error.to_string())),
        };
        let view = replica.view();
        self.sets.sets.insert(shard, Arc::new(KnownSet { history, number, manifest, replica }));
        self.merge_if_due(store, shard);
        Ok(view)
    }

    /// The set of a shard as of a row, whatever is known of it here.
    pub(crate) async fn fresh_set(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        connection: &StoreConnection,
        shard: ShardId,
        row: &ShardRow,
    ) -> Result<Arc<SetView>, astrarium_packed::Error> {
        let (_, manifest) = read_manifest(connection, shard).await?;
        let base = Replica::empty(Arc::new(self.reader_blobs(store, shard)), self.set_owner(shard));
        let blocks = read_blocks(connection, shard, base.needs_after(manifest.as_deref())?).await?;
        let replica = self.advance(base, manifest, blocks).await?;
        if replica.group() == row.set_group {
            return Ok(replica.view());
        }
        Err(astrarium_packed::Error::Damaged {
            what: "index entries of some commit groups are missing".to_owned(),
        })
    }

    fn reader_blobs(self: &Arc<PostgresCore>, store: &Arc<PostgresStore>, shard: ShardId) -> ShardBlobs {
        let history = self.history.now();
        ShardBlobs { core: Arc::downgrade(self), store: Arc::clone(store), shard, fence: None, history }
    }

    /// Advances a replica; on a thread that may wait if runs have to be opened.
    async fn advance(
        &self,
        base: Replica,
        manifest: Option<Bytes>,
        blocks: Vec<(u64, Bytes)>,
    ) -> Result<Replica, astrarium_packed::Error> {
        match base.advanced(manifest.as_deref(), &blocks, &SET_OPTIONS) {
            Err(error) if would_block(&error) => {
                let work = move || {
                    astrarium_env::allow_blocking();
                    base.advanced(manifest.as_deref(), &blocks, &SET_OPTIONS)
                };
                let closed =
                    |_| astrarium_packed::Error::Unavailable { reason: "the storage is closed".to_owned() };
                self.runtime.spawn_blocking(work).await.map_err(closed)?
            }
            answer => answer,
        }
    }
}

async fn read_manifest(
    connection: &StoreConnection,
    shard: ShardId,
) -> Result<(u64, Option<Bytes>), Trouble> {
    let rows = connection.query(READ_MANIFEST, &[&sql_id(shard)]).await?;
    Ok(rows.first().map_or((0, None), |row| {
        (row.get::<_, i64>(0).cast_unsigned(), row.get::<_, Option<Vec<u8>>>(1).map(Bytes::from))
    }))
}

async fn read_blocks(
    connection: &StoreConnection,
    shard: ShardId,
    after: u64,
) -> Result<Vec<(u64, Bytes)>, Trouble> {
    let rows = connection.query(READ_BLOCKS, &[&sql_id(shard), &after.cast_signed()]).await?;
    let block = |row: &tokio_postgres::Row| {
        (row.get::<_, i64>(0).cast_unsigned(), Bytes::from(row.get::<_, Vec<u8>>(1)))
    };
    Ok(rows.iter().map(block).collect())
}
