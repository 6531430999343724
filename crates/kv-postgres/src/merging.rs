//! Merging the index of a shard: blocks of groups become runs, runs become fewer.
//!
//! In: shards whose newest blocks are many. Out: another manifest; rows that are not needed any more.
//! A merge belongs to whoever has the shard's *merge lease*, a row with a fencing number on the store's clock. Every write of a merge
//! carries the number and is refused once somebody else has the lease, so that a server which was frozen and comes back changes
//! nothing. A merge that ended in the middle leaves blobs that no manifest names; the next one clears them away.
//! Invariants
//! - Readers never wait: they see the manifest before or the one after, with the blocks that belong to it.
//! - A damaged index costs its shard the index until it is built anew, never an answer, and no other shard anything.

use crate::blobs::ShardBlobs;
use crate::error::Trouble;
use crate::store::{PostgresStore, ShardRow, read_shard, sql_id};
use crate::{PostgresCore, SET_OPTIONS};
use astrarium_kv as kv;
use astrarium_kv::{KeyRange, PlaceId, SetLoss, ShardId};
use astrarium_packed::{
    Blobs as _, Control, DamageSignal, Error, Journal, MANIFEST_NAME, Publisher, SetView, Source, recover,
};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many blocks of one shard are merged into a run, however small they are: whoever opens the index reads them one by one.
const BLOCKS_MAX: u64 = 2048;

/// Blocks that were read for a merge are not read again.
const CACHE_BYTES: u64 = 64 << 10;

/// Every merge has numbers of its own for its runs, above those of before: fencing numbers grow. So what a merge left that came to no
/// end is never taken for what a later one wrote.
const RUN_NUMBER_BITS: u32 = 24;

const TAKE_LEASE: &str = "INSERT INTO set_manifest AS m (shard, fence, holder, expires) \
    SELECT $1::bigint, 1, $2::bigint, now() + interval '30 seconds' \
    WHERE NOT EXISTS (SELECT FROM shard WHERE id = $1 AND is_dropped) ON CONFLICT (shard) DO UPDATE \
    SET fence = m.fence + 1, holder = $2, expires = now() + interval '30 seconds' \
    WHERE m.expires < now() OR m.holder = $2 RETURNING fence";
const GIVE_BACK: &str = "UPDATE set_manifest SET expires = 'epoch' WHERE shard = $1 AND fence = $2";
const READ_BLOCKS: &str = "SELECT grp, block FROM set_group WHERE shard = $1 AND grp > $2 ORDER BY grp";
const FORGET_BLOCKS: &str = "DELETE FROM set_group WHERE shard = $1 AND grp <= $2";
const BEGIN_ANEW: &str = "WITH renewed AS (UPDATE set_manifest SET number = number + 1, content = $3 \
    WHERE shard = $1 AND fence = $2 RETURNING number) \
    UPDATE shard SET manifest = renewed.number, set_is_lost = true FROM renewed WHERE shard.id = $1";
const ALL_BLOBS_GO: &str = "INSERT INTO set_garbage (shard, number) SELECT DISTINCT shard, number FROM set_blob \
    WHERE shard = $1 ON CONFLICT DO NOTHING";
const READ_LOST: &str = "SELECT id, manifest FROM shard WHERE set_is_lost";
const LOCK_MANIFEST: &str = "SELECT content, number FROM set_manifest WHERE shard = $1 FOR UPDATE";
const ACCEPT_LOSS: &str = "WITH renewed AS (UPDATE set_manifest SET number = number + 1, fence = fence + 1, content = $2 \
    WHERE shard = $1 RETURNING number) \
    UPDATE shard SET manifest = renewed.number, set_is_lost = false FROM renewed WHERE shard.id = $1";

/// A shard's index that is lost.
#[derive(Debug, Clone)]
pub(crate) struct LostSet {
    /// What was found.
    what: String,
    /// The store and its manifest that tell of it; nothing until there is one. A later one may tell of a further loss, on which an index
    /// relies that was begun since, so only this one is accepted.
    told: Option<(PlaceId, u64)>,
}

impl PostgresCore {
    /// Merges a shard's index beside everything else, if what is in no run has become much.
    pub(crate) fn merge_if_due(self: &Arc<PostgresCore>, store: &Arc<PostgresStore>, shard: ShardId) {
        let (blocks, bytes) = self.sets.unmerged(shard);
        if bytes < SET_OPTIONS.memory_bytes && blocks < BLOCKS_MAX {
            return;
        }
        if self.is_closed() || !self.merging.lock().insert(shard) {
            return;
        }
        self.sets.forget_written(shard);
        let (core, store) = (Arc::clone(self), Arc::clone(store));
        self.runtime.spawn(async move {
            if let Err(error) = core.merge(&store, shard, Vec::new()).await {
                tracing::debug!(shard = shard.0, %error, "a merge of the index did not come to its end; it is tried again later");
            }
            core.merging.lock().remove(&shard);
        });
    }

    /// Merges a shard's index, without keys of dropped prefixes; nothing while another server does. Tells how many keys of each
    /// prefix are left.
    pub(crate) async fn merge(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        dropped: Vec<Bytes>,
    ) -> Result<Vec<u64>, Error> {
        let connection = store.workers.get().await.map_err(astrarium_kv_packed::untold)?;
        // All of it goes with its shard, and nothing is to be made anew for it.
        if read_shard(&connection, shard).await?.state.is_dropped {
            return Ok(vec![0; dropped.len()]);
        }
        let holder = self.server_id();
        let rows = connection.query(TAKE_LEASE, &[&sql_id(shard), &holder]).await?;
        let Some(fence) = rows.first().map(|row| row.get::<_, i64>(0)) else {
            return Ok(vec![u64::MAX; dropped.len()]);
        };
        let set_group = read_shard(&connection, shard).await?.set_group;
        drop(connection);
        let (core, here) = (Arc::clone(self), Arc::clone(store));
        let merging = move || {
            astrarium_env::allow_blocking();
            core.merge_blocking(&here, shard, fence, set_group, dropped)
        };
        let closed = |_| Error::Unavailable { reason: "the storage is closed".to_owned() };
        let merged = self.runtime.spawn_blocking(merging).await.map_err(closed)?;
        let connection = store.workers.get().await.map_err(astrarium_kv_packed::untold)?;
        connection.execute(GIVE_BACK, &[&sql_id(shard), &fence]).await?;
        if merged.is_ok() {
            self.stats.merges.fetch_add(1, Ordering::Relaxed);
        }
        merged
    }

    fn merge_blocking(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        shard: ShardId,
        fence: i64,
        set_group: u64,
        dropped: Vec<Bytes>,
    ) -> Result<Vec<u64>, Error> {
        let (core, store, history) = (Arc::downgrade(self), Arc::clone(store), self.history.now());
        let blobs = ShardBlobs { core, store, shard, fence: Some(fence), history };
        let (owner, first_run) = (self.set_owner(shard), fence.cast_unsigned() << RUN_NUMBER_BITS);
        if blobs.read(MANIFEST_NAME)?.is_none() {
            blobs.replace(MANIFEST_NAME, &astrarium_packed::empty_manifest(owner, first_run))?;
        }
        let journal = Arc::new(ShardJournal { blobs: blobs.clone() });
        let source = Source {
            owner,
            last_group: set_group,
            last_change: Some(set_group),
            journal: &*journal,
            first_run,
        };
        let recovered = recover(Arc::new(blobs), &SET_OPTIONS, CACHE_BYTES, &source)?;
        let view = recovered.view();
        let control = Control::new(SET_OPTIONS, &view, recovered.merged_group());
        let publisher =
            Arc::new(MergePublisher { view: RwLock::new(view), group: set_group, control, journal, dropped });
        recovered.into_merger(Arc::clone(&publisher) as Arc<dyn Publisher>).settle(true)?;
        let view = publisher.view();
        publisher.dropped.iter().map(|prefix| view.stored_entries(prefix)).collect()
    }

    /// Notes that a shard's index is damaged, and has it begun anew; gives what whoever met it is told.
    pub(crate) fn note_damage(self: &Arc<PostgresCore>, shard: ShardId, what: String) -> kv::Error {
        self.sets.forget(shard);
        let is_new = {
            let mut lost = self.lost.lock();
            let is_new = !lost.contains_key(&shard);
            lost.entry(shard).or_insert_with(|| LostSet { what: what.clone(), told: None });
            is_new
        };
        if is_new && !self.is_closed() {
            let (core, words) = (Arc::clone(self), what.clone());
            self.runtime.spawn(async move {
                if let Err(trouble) = core.begin_set_anew(shard, &words).await {
                    tracing::warn!(
                        shard = shard.0,
                        reason = trouble.words(),
                        "the damaged index could not be set aside yet"
                    );
                    core.lost.lock().remove(&shard);
                }
            });
        }
        kv::Error::SetLost { what }
    }

    /// Whether the index of a shard as it is now can be read to its end. Whoever met damage may have looked at what was replaced since.
    async fn is_set_whole(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        shard: ShardId,
    ) -> Result<bool, Trouble> {
        let connection =
            store.readers_of(shard).get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let row = read_shard(&connection, shard).await;
        let view = match row {
            Ok(row) => self.fresh_set(store, &connection, shard, &row).await,
            Err(trouble) => Err(trouble.into()),
        };
        connection.roll_back_later();
        let checked = match view {
            Ok(view) => {
                let check = move || {
                    astrarium_env::allow_blocking();
                    view.check().map(drop)
                };
                self.runtime.spawn_blocking(check).await.map_err(|_| Trouble::Lost("closed".to_owned()))?
            }
            Err(error) => Err(error),
        };
        match checked {
            Ok(()) => Ok(true),
            Err(Error::Unavailable { reason }) => Err(Trouble::Lost(reason)),
            Err(_) => Ok(false),
        }
    }

    async fn begin_set_anew(self: &Arc<PostgresCore>, shard: ShardId, what: &str) -> Result<(), Trouble> {
        let lost = |error: kv::Error| Trouble::Lost(error.to_string());
        let store = self.store_of(shard).await.map_err(lost)?;
        let is_dropped = {
            let connection = store.workers.get().await.map_err(lost)?;
            read_shard(&connection, shard).await?.state.is_dropped
        };
        if is_dropped || self.is_set_whole(&store, shard).await? {
            self.lost.lock().remove(&shard);
            return Ok(());
        }
        tracing::error!(
            shard = shard.0,
            damage = what,
            "the index of a key range is damaged: it is built anew; queries over it read all documents meanwhile"
        );
        let connection = store.workers.get().await.map_err(lost)?;
        let (id, holder) = (sql_id(shard), self.server_id());
        let rows = connection.query(TAKE_LEASE, &[&id, &holder]).await?;
        let Some(fence) = rows.first().map(|row| row.get::<_, i64>(0)) else {
            return Err(Trouble::Again("another server merges this index".to_owned()));
        };
        connection.script("BEGIN").await?;
        let work = async {
            connection.query("SELECT FROM shard WHERE id = $1 FOR UPDATE", &[&id]).await?;
            let ShardRow { set_group: merged, manifest: before, .. } = read_shard(&connection, shard).await?;
            let first_run = fence.cast_unsigned() << RUN_NUMBER_BITS;
            let manifest = astrarium_packed::lost_manifest(self.set_owner(shard), merged, first_run, what);
            if connection.execute(BEGIN_ANEW, &[&id, &fence, &manifest]).await? != 1 {
                return Err(Trouble::Again("another server merges this index".to_owned()));
            }
            connection.execute(FORGET_BLOCKS, &[&id, &merged.cast_signed()]).await?;
            connection.execute(ALL_BLOBS_GO, &[&id]).await?;
            connection.script("COMMIT").await?;
            Ok(before + 1)
        };
        let manifest: Result<u64, Trouble> = work.await.inspect_err(|_| connection.roll_back_later());
        let lost = LostSet { what: what.to_owned(), told: Some((store.id, manifest?)) };
        self.lost.lock().insert(shard, lost);
        Ok(())
    }

    /// The shards whose index is lost, as the stores say; those that another server has had built anew are lost no more.
    pub(crate) async fn refresh_losses(&self, store: &PostgresStore) -> Result<(), Trouble> {
        let connection = store.workers.get().await.map_err(|error| Trouble::Lost(error.to_string()))?;
        let known: Vec<ShardId> = self.lost.lock().keys().copied().collect();
        let rows = connection.query(READ_LOST, &[]).await?;
        drop(connection);
        let mut lost = self.lost.lock();
        let mut living = BTreeSet::new();
        for row in rows {
            let shard = ShardId(row.get::<_, i64>(0).cast_unsigned());
            living.insert(shard);
            let told = Some((store.id, row.get::<_, i64>(1).cast_unsigned()));
            let what = "the index was damaged".to_owned();
            let entry = lost.entry(shard).or_insert(LostSet { what, told });
            entry.told = entry.told.max(told);
        }
        for shard in known {
            // What was met a moment ago is not told by its store yet.
            let is_told_here =
                lost.get(&shard).and_then(|entry| entry.told).is_some_and(|(place, _)| place == store.id);
            if is_told_here && !living.contains(&shard) {
                lost.remove(&shard);
                self.sets.forget(shard);
            }
        }
        Ok(())
    }

    /// What nobody may rely on, in the words of the contract.
    pub(crate) fn set_losses(&self) -> Vec<SetLoss> {
        let range = |shard: &ShardId| KeyRange::prefix(&shard.0.to_be_bytes());
        self.lost
            .lock()
            .iter()
            .map(|(shard, lost)| SetLoss { range: range(shard), what: lost.what.clone() })
            .collect()
    }

    /// Has lost shards answer again: those of whose loss nothing more was told since it was known here. The others stay lost.
    pub(crate) async fn accept_losses(&self, shards: Vec<ShardId>) -> Result<(), Trouble> {
        let lost = |error: kv::Error| Trouble::Lost(error.to_string());
        for shard in shards {
            let known = self.lost.lock().get(&shard).and_then(|lost| lost.told);
            let Some((_, known)) = known else { continue };
            let store = self.store_of(shard).await.map_err(lost)?;
            let connection = store.workers.get().await.map_err(lost)?;
            let id = sql_id(shard);
            connection.script("BEGIN").await?;
            let work = async {
                connection.query("SELECT FROM shard WHERE id = $1 FOR UPDATE", &[&id]).await?;
                let rows = connection.query(LOCK_MANIFEST, &[&id]).await?;
                let number = rows.first().map_or(known, |row| row.get::<_, i64>(1).cast_unsigned());
                if number != known {
                    connection.script("ROLLBACK").await?;
                    return Ok(Some(number));
                }
                let content = rows.first().and_then(|row| row.get::<_, Option<Vec<u8>>>(0));
                let content = content.and_then(|content| astrarium_packed::without_losses(&content).ok());
                if let Some(content) = content {
                    connection.execute(ACCEPT_LOSS, &[&id, &content]).await?;
                }
                connection.script("COMMIT").await?;
                Ok(None)
            };
            let later: Result<Option<u64>, Trouble> = work.await;
            let later = later.inspect_err(|_| connection.roll_back_later())?;
            let mut all = self.lost.lock();
            match (later, all.get_mut(&shard)) {
                (Some(number), Some(entry)) => entry.told = Some((store.id, number)),
                _ => drop(all.remove(&shard)),
            }
            self.sets.forget(shard);
        }
        Ok(())
    }
}

/// Where a merge finds the newest blocks.
struct ShardJournal {
    blobs: ShardBlobs,
}

impl Journal for ShardJournal {
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        self.blobs.ask(move |blobs| async move {
            let connection = blobs.connection().await?;
            let rows = connection.query(READ_BLOCKS, &[&sql_id(blobs.shard), &group.cast_signed()]).await?;
            let block = |row: &tokio_postgres::Row| {
                (row.get::<_, i64>(0).cast_unsigned(), Bytes::from(row.get::<_, Vec<u8>>(1)))
            };
            Ok(rows.iter().map(block).collect())
        })
    }

    fn release(&self, up_to: u64) -> Result<(), Error> {
        self.blobs.ask(move |blobs| async move {
            let (shard, up_to) = (sql_id(blobs.shard), up_to.cast_signed());
            blobs.connection().await?.execute(FORGET_BLOCKS, &[&shard, &up_to]).await.map(drop)
        })
    }
}

/// The view that one merge works on; nobody else sees it.
struct MergePublisher {
    view: RwLock<Arc<SetView>>,
    /// The last group that it has.
    group: u64,
    control: Control,
    journal: Arc<ShardJournal>,
    dropped: Vec<Bytes>,
}

impl Publisher for MergePublisher {
    fn view(&self) -> Arc<SetView> {
        Arc::clone(&self.view.read())
    }

    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView)) {
        let mut view = self.view.write();
        let mut next = SetView::clone(&view);
        change(self.group, &mut next);
        *view = Arc::new(next);
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Error> {
        Ok(Arc::clone(&self.journal) as Arc<dyn Journal>)
    }

    fn control(&self) -> &Control {
        &self.control
    }

    fn dropped(&self) -> Vec<Bytes> {
        self.dropped.clone()
    }

    fn damage(&self) -> Option<Arc<DamageSignal>> {
        None
    }

    fn has_room(&self, _: u64) -> bool {
        true
    }

    fn fail(&self, reason: String) {
        tracing::warn!(reason, "merging an index failed");
    }
}
