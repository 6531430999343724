//! Going on when storage has lost entries of the index: queries over the containers concerned read documents, and their indexes are
//! built anew; other containers do not notice.
//!
//! In: [`astrarium_kv::Engine::set_losses`], asked by background work; entries of documents that are not there, met by queries. Out: for each container concerned a commit that takes the generation in
//! use out of use and begins a new one; then storage is told that nobody relies on the lost entries.
//! Invariants
//! - Until storage is told, everything that is asked of its set fails, and queries are answered without it; afterwards no
//!   container names a generation whose entries were lost. So no answer is ever made of what is left.
//! - Unique keys are not in the set, and hold throughout.
//! - Everything can be cut short: storage remembers the loss until it is told, and a second time begins one more generation.

use crate::databases::find;
use crate::index_builds::free_generation;
use crate::{AccountCore, Container, Error, Link};
use astrarium_catalog::records::{self, Resource};
use astrarium_keys::Rid;
use astrarium_keys::index_state::{Building, GenerationsRecord, NO_GENERATION};
use astrarium_keys::record::RecordKind;
use astrarium_kv as kv;

/// An index that names documents which are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongIndex {
    /// The commit that the container's generations were of: other ones have another index.
    generations: u64,
    /// What was met.
    what: String,
}

/// Whether entries of a shard may be lost.
fn concerns(losses: &[kv::SetLoss], shard: kv::ShardId) -> bool {
    losses.iter().any(|loss| loss.concerns(&shard.0.to_be_bytes()))
}

impl AccountCore {
    /// Begins to build anew the indexes of which storage has lost entries; tells whether it had to.
    pub(crate) async fn renew_lost_indexes(&self) -> Result<bool, Error> {
        let losses = self.engine().set_losses();
        let wrong = self.shared.wrong_indexes.lock().clone();
        if losses.is_empty() && wrong.is_empty() {
            return Ok(false);
        }
        for container in self.all_containers().await? {
            let view = self.catalog().await?;
            let ranges = records::ranges(&*view, container.rid).await?;
            let work = records::resharding(&*view, container.rid).await?.and_then(|record| record.work);
            // Those that are being copied too: with another generation the copy begins again.
            let copied = work.map(|work| work.targets).unwrap_or_default();
            let mut all = ranges.iter().chain(&copied);
            let is_lost = all.any(|range| concerns(&losses, kv::ShardId(range.shard)));
            let only = wrong.get(&container.rid).filter(|_| !is_lost).map(|wrong| wrong.generations);
            if (is_lost || only.is_some()) && self.renew_index(&container, only).await? {
                tracing::warn!(container = container.record.id, "its index is damaged and is built anew");
            }
        }
        self.shared.wrong_indexes.lock().retain(|rid, note| wrong.get(rid) != Some(note));
        if !losses.is_empty() {
            self.engine().accept_set_losses(&losses)?;
        }
        Ok(true)
    }

    /// A query has met an entry of a document that is not there: the index is not used any more, and is built anew.
    pub(crate) fn note_wrong_index(&self, container: &Container, what: String) {
        tracing::error!(container = container.path(), what, "the index is wrong, and is built anew");
        let wrong = WrongIndex { generations: container.generations.version, what };
        self.shared.wrong_indexes.lock().insert(container.rid(), wrong);
    }

    /// What queries have met of wrong indexes.
    pub(crate) fn wrong_indexes(&self) -> Vec<String> {
        self.shared.wrong_indexes.lock().values().map(|wrong| wrong.what.clone()).collect()
    }

    /// Builds all indexes anew, to the end, whatever state they are in.
    pub(crate) async fn rebuild_indexes(&self) -> Result<(), Error> {
        for container in self.all_containers().await? {
            self.renew_index(&container, None).await?;
        }
        self.engine().accept_set_losses(&self.engine().set_losses())?;
        self.settle().await
    }

    /// Whether queries over a container have to do without its index.
    pub(crate) fn is_index_lost(&self, container: &Container) -> bool {
        let generations = &container.generations;
        let is_wrong = |wrong: &WrongIndex| wrong.generations == generations.version;
        if generations.is_lost()
            || self.shared.wrong_indexes.lock().get(&container.rid()).is_some_and(is_wrong)
        {
            return true;
        }
        let losses = self.engine().set_losses();
        !losses.is_empty() && container.ranges.iter().any(|range| concerns(&losses, range.shard))
    }

    /// All containers of the account.
    pub(crate) async fn all_containers(&self) -> Result<Vec<Resource>, Error> {
        let view = self.catalog().await?;
        let mut containers = Vec::new();
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            containers.extend(records::list_all(&*view, RecordKind::Container, database.rid).await?);
        }
        Ok(containers)
    }

    /// Takes a container's index out of use and begins a new one, if it is there and its generations are still those of a commit
    /// that is given; tells whether it did.
    async fn renew_index(&self, container: &Resource, only: Option<u64>) -> Result<bool, Error> {
        self.attempt_catalog(|| async move {
            let view = self.catalog().await?;
            let found =
                find(&*view, RecordKind::Container, container.parent, Link::Rid(container.rid)).await?;
            let Some(present) = found else { return Ok(false) };
            let old = records::generations(&*view, container.rid).await?;
            if only.is_some_and(|version| version != old.version) {
                // Another process has met it too, and was faster.
                self.shared.containers.forget(container.rid);
                return Ok(false);
            }
            let rows = records::ranges(&*view, container.rid).await?;
            let generation = free_generation(&*view, &rows, &old).await?;
            let construction = self.next_catalog_number().await?;
            let building = Some(Building { generation, construction });
            let new = GenerationsRecord { active: NO_GENERATION, building, has_expiry: false, ..old.clone() };
            let mut batch = records::batch();
            batch.high_water = construction;
            records::stage_generations(&mut batch, container.rid, &rows, &old, &new);
            records::expect_present(&mut batch, &present);
            self.engine().commit(batch).await?;
            self.shared.containers.forget(container.rid);
            Ok(true)
        })
        .await
    }
}
