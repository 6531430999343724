//! What runs beside requests: numbers of replaced indexes come free; and how storage is.

use crate::leases::LeasedWork;
use crate::{AccountCore, BackgroundStatistics, Error};
use astrarium_catalog::records;
use astrarium_keys::Rid;
use astrarium_kv::{self as kv, Direction, KeyPrefix, KeyRange, Lease, ScanLimit, ShardId, Space, Stats};

/// Dropped prefixes that storage has not given back, from which on the content of removed databases waits: commits and reads look each of them up.
const UNRECLAIMED_MAX: usize = 10_000;

/// How storage is.
#[derive(Debug, Clone)]
pub struct Health {
    /// Why writes are refused, if they are.
    pub write_refusal: Option<String>,
    /// Damaged parts of the index: what was found, and which keys it concerns. Queries over the containers of these do without it
    /// for now.
    pub index_losses: Vec<String>,
    /// Damaged files, each with whose data it touches and what to do.
    pub damage: Vec<String>,
    /// The engine's counters.
    pub stats: Stats,
}

impl AccountCore {
    /// Removes what removed databases left behind and drops what older versions of the program left to be removed, and lets numbers of
    /// replaced indexes be used again once storage has given back their space; false when there is nothing to do for now, or when another
    /// process does it.
    pub(crate) async fn sweep(&self) -> Result<bool, Error> {
        self.shared.kept.drop_expired(self.env().now_micros());
        let ToRemove { shards: marked_shards, generations: marked_generations, database, unreclaimed } =
            self.marked().await?;
        let shards = unreclaimed.iter().filter(|prefix| prefix.space == Some(Space::Body)).count();
        self.shared.background.removed_ranges(shards);
        self.shared.background.replaced_indexes(marked_generations.len());
        if marked_shards.is_empty()
            && database.is_none()
            && free_marks(marked_generations, &unreclaimed).next().is_none()
        {
            self.give_back(LeasedWork::Sweep).await?;
            return Ok(false);
        }
        let Some(lease) = self.lease_to_free(LeasedWork::Sweep).await? else { return Ok(false) };
        // Looked at once more: whoever had the lease before may have done it.
        let marked = self.marked().await?;
        if let Some(&shard) = marked.shards.first() {
            return self.drop_marked_shard(&lease, shard).await;
        }
        if let Some(database) = marked.database
            && marked.unreclaimed.len() < UNRECLAIMED_MAX
        {
            let is_done = self.remove_content(&lease, database).await?;
            if is_done {
                self.shared.background.sweep_moved();
            }
            return Ok(is_done);
        }
        for (shard, generation) in free_marks(marked.generations, &marked.unreclaimed) {
            if let Some(is_done) = self.sweep_generation(&lease, shard, generation).await? {
                return Ok(is_done);
            }
        }
        Ok(false)
    }

    /// What is marked to be removed, shards, generations and a database; and what storage has not given back yet, which is asked last, so that
    /// it has whatever was dropped together with a mark.
    async fn marked(&self) -> Result<ToRemove, Error> {
        let view = self.catalog().await?;
        let shards = records::shards_to_sweep(&*view).await?;
        let generations = records::generations_to_sweep(&*view).await?;
        let database = records::removed_databases(&*view).await?.first();
        Ok(ToRemove { shards, generations, database, unreclaimed: self.engine().unreclaimed().await? })
    }

    /// One step for a generation; nothing if there is nothing to do.
    async fn sweep_generation(
        &self,
        lease: &Lease,
        shard: u64,
        generation: u8,
    ) -> Result<Option<bool>, Error> {
        let prefix = records::generation_entries(shard, generation).bytes;
        let range = KeyRange::prefix(&prefix);
        let limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
        let is_free = match self.engine().shard(ShardId(shard)).await {
            Ok(state) => {
                let view = self.engine().view(ShardId(shard), state.epoch).await?;
                match view.scan_keys(&range, Direction::Forward, limit).await {
                    // What is to be swept is damaged: it goes on when that is out of the way.
                    Err(kv::Error::SetLost { .. }) => return Ok(Some(self.renew_lost_indexes().await?)),
                    left => left?.keys.is_empty(),
                }
            }
            // The container went meanwhile, and the mark with it.
            Err(kv::Error::Dropped { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut batch = records::batch();
        if is_free {
            records::stage_generation_swept(&mut batch, shard, generation);
        } else {
            // An older version of the program made the mark. Nobody writes entries of this generation any more: the
            // commit that made the mark fenced the shard.
            batch.drop_prefix(None, prefix);
        }
        let is_done = self.commit_guarded(LeasedWork::Sweep, lease, batch).await?;
        if is_done && is_free {
            self.shared.background.sweep_done(shard, "a replaced index");
        }
        Ok(Some(is_done))
    }

    /// Drops a shard that an older version of the program left to be removed key by key.
    async fn drop_marked_shard(&self, lease: &Lease, shard: u64) -> Result<bool, Error> {
        let mut batch = records::batch();
        records::stage_drop_marked_shard(&mut batch, shard);
        let is_done = self.commit_guarded(LeasedWork::Sweep, lease, batch).await?;
        if is_done {
            self.shared.background.sweep_moved();
        }
        Ok(is_done)
    }

    /// How far the work beside requests is.
    pub(crate) fn background_statistics(&self) -> BackgroundStatistics {
        self.shared.background.statistics()
    }

    /// Has storage take writes again if they were refused for a reason that has passed; tells whether it did. It may take
    /// seconds, on the thread of the caller.
    pub(crate) fn heal(&self) -> Result<bool, Error> {
        Ok(self.engine().heal()?)
    }

    /// How storage is at the moment.
    pub(crate) fn health(&self) -> Health {
        let engine = self.engine();
        Health {
            write_refusal: engine.write_refusal(),
            index_losses: engine.set_losses().iter().map(told).chain(self.wrong_indexes()).collect(),
            damage: self.shared.damage.lock().clone(),
            stats: engine.stats(),
        }
    }

    /// Finishes writing and releases storage. Nothing may be asked of the account afterwards.
    pub(crate) fn close(&self) -> Result<(), Error> {
        Ok(self.engine().close()?)
    }
}

/// What is marked to be removed, and what storage has not given back.
struct ToRemove {
    shards: Vec<u64>,
    generations: Vec<(u64, u8)>,
    /// The next removed database of which something is left.
    database: Option<Rid>,
    unreclaimed: Vec<KeyPrefix>,
}

/// The generations that storage is done with.
fn free_marks(
    marked: Vec<(u64, u8)>,
    unreclaimed: &[KeyPrefix],
) -> impl Iterator<Item = (u64, u8)> + use<'_> {
    marked.into_iter().filter(|(shard, generation)| {
        let prefix = records::generation_entries(*shard, *generation).bytes;
        let has = |dropped: &KeyPrefix| dropped.space.is_none() && dropped.bytes.starts_with(&prefix);
        !unreclaimed.iter().any(|dropped| dropped.covers(None, &prefix) || has(dropped))
    })
}

/// A loss and the shards it concerns.
fn told(loss: &kv::SetLoss) -> String {
    let shard = |key: &[u8]| key.first_chunk().map_or(0, |shard| u64::from_be_bytes(*shard));
    let (first, last) = (shard(&loss.range.start), shard(&loss.range.end));
    match (first, last) {
        (0, u64::MAX) => format!("{}: all containers are concerned", loss.what),
        (first, last) if first == last => format!("{}: shard {first} is concerned", loss.what),
        (first, last) => format!("{}: shards {first} to {last} are concerned", loss.what),
    }
}
