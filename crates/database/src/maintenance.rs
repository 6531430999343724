//! What runs beside requests: sweeping removed containers, checking stored data, telling how storage is.

use crate::{Account, BackgroundStatistics, Error, index_cache};
use astrarium_catalog::container::Container;
use astrarium_catalog::records;
use astrarium_keys::index_entry::generation_prefix;
use astrarium_keys::record::{RecordKind, sweep_key};
use astrarium_keys::{Rid, index_state};
use astrarium_kv::{self as kv, ShardId, Space, Stats};
use astrarium_store::sweep::{sweep_index, sweep_shard};
use astrarium_store::verify::{Report, verify_range};

/// How storage is.
#[derive(Debug, Clone)]
pub struct Health {
    /// Why writes are refused, if they are.
    pub write_refusal: Option<String>,
    /// What is wrong with the index, if queries have to do without it for now.
    pub index_loss: Option<String>,
    /// Damaged files, each with whose data it touches and what to do.
    pub damage: Vec<String>,
    /// The engine's counters.
    pub stats: Stats,
}

impl Account {
    /// Frees some space of removed containers and of indexes that were replaced; false when there is nothing to do.
    pub async fn sweep(&self) -> Result<bool, Error> {
        Ok(self.sweep_containers().await? || self.sweep_generations().await?)
    }

    async fn sweep_generations(&self) -> Result<bool, Error> {
        let marks = records::generations_to_sweep(&*self.catalog().await?).await?;
        self.shared.background.replaced_indexes(marks.len());
        let Some(&(shard, generation)) = marks.first() else {
            return Ok(false);
        };
        // Nobody writes entries of this generation any more: the commit that made the mark fenced the shard.
        let swept = sweep_index(self.engine(), ShardId(shard), &generation_prefix(shard, generation)).await;
        match swept {
            Ok(true) => self.shared.background.sweep_moved(),
            Ok(false) => {
                let mut batch = records::batch();
                batch.delete(Space::Meta, index_state::sweep_key(shard, generation));
                self.engine().commit(batch).await?;
                self.shared.background.replaced_indexes(marks.len() - 1);
                self.shared.background.sweep_done(shard, "a replaced index");
            }
            // The container changed meanwhile; the next step sees its new epoch.
            Err(astrarium_store::Error::Storage(kv::Error::Fenced { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    async fn sweep_containers(&self) -> Result<bool, Error> {
        let shards = records::shards_to_sweep(&*self.catalog().await?).await?;
        self.shared.background.removed_ranges(shards.len());
        let Some(&shard) = shards.first() else {
            return Ok(false);
        };
        if sweep_shard(self.engine(), ShardId(shard)).await? {
            self.shared.background.sweep_moved();
        } else {
            let mut batch = records::batch();
            batch.delete(Space::Meta, sweep_key(shard));
            self.engine().commit(batch).await?;
            self.shared.containers.forget_shard(ShardId(shard));
            self.shared.background.removed_ranges(shards.len() - 1);
            self.shared.background.sweep_done(shard, "a removed container");
        }
        Ok(true)
    }

    /// How far the work beside requests is.
    pub fn background_statistics(&self) -> BackgroundStatistics {
        self.shared.background.statistics()
    }

    /// Has storage take writes again if they were refused for a reason that has passed; tells whether it did. It may take
    /// seconds, on the thread of the caller.
    pub fn heal(&self) -> Result<bool, Error> {
        Ok(self.engine().heal()?)
    }

    /// How storage is at the moment.
    pub fn health(&self) -> Health {
        let engine = self.engine();
        Health {
            write_refusal: engine.write_refusal(),
            index_loss: engine.set_loss(),
            damage: self.shared.damage.lock().clone(),
            stats: engine.stats(),
        }
    }

    /// Checks everything stored, container by container, and reports each as `database/container`.
    pub async fn verify(&self, mut progress: impl FnMut(&str, &Report)) -> Result<(), Error> {
        let view = self.catalog().await?;
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let name = format!("{}/{}", database.record.id, resource.record.id);
                let source_of = |shard, last| self.shared.containers.number_source(shard, last);
                let container =
                    Container::load(self.engine(), resource, database.record.id.clone(), source_of).await?;
                let indexes = index_cache::make(&container);
                for range in &container.ranges {
                    let report = verify_range(self.engine(), &container, &indexes, range).await?;
                    progress(&name, &report);
                }
            }
        }
        Ok(())
    }

    /// Finishes writing and releases storage. Nothing may be asked of the account afterwards.
    pub fn close(&self) -> Result<(), Error> {
        Ok(self.engine().close()?)
    }
}
