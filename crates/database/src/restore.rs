//! Making an account agree with itself again after a loss was accepted: everything that can be told from documents and
//! definitions is made anew from them.
//!
//! In: an engine that nobody else uses. Out: names, directories, feeds, unique keys and indexes that fit the documents that are
//! there, and the counters that the engine should have. What is lost can be created again.

use crate::{AccountCore, Container, Error, index_cache};
use astrarium_catalog::{CATALOG_SHARD, records, restore};
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{ShardId, ShardState};
use astrarium_store::restore::restore_range;

impl AccountCore {
    /// Restores all containers; tells of each how many documents are there and how many had to go. Gives what the engine should
    /// know of every shard.
    pub(crate) async fn restore(
        &self,
        mut progress: impl FnMut(&str, u64, u64),
    ) -> Result<Vec<(ShardId, ShardState)>, Error> {
        restore::restore_names(self.engine()).await?;
        self.give_up_all_reshardings().await?;
        let mut catalog = restore::catalog_state(self.engine()).await?;
        let mut states = Vec::new();
        let view = self.catalog().await?;
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let name = format!("{}/{}", database.record.id, resource.record.id);
                let source_of = |shard, above| self.number_source(shard, above);
                let (id, history) = (database.record.id.clone(), self.account_history());
                let container = Container::load(self.engine(), resource, id, source_of, history).await?;
                let indexes = index_cache::make(&container);
                let (mut documents, mut dropped) = (0, 0);
                for range in &container.ranges {
                    let restored = restore_range(self.engine(), &container, &indexes, range).await?;
                    documents += restored.documents;
                    dropped += restored.dropped;
                    catalog.version = catalog.version.max(restored.catalog_version);
                    states.push((range.shard, restored.state));
                }
                progress(&name, documents, dropped);
            }
        }
        states.push((CATALOG_SHARD, catalog));
        Ok(states)
    }

    /// Builds what indexes lack, and frees what nobody needs, to the end.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        while self.build_indexes().await? {}
        while self.reshard().await? || self.drain().await? {}
        while self.sweep().await? {}
        Ok(())
    }
}
