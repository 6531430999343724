//! Every key range of an account, as the catalog says: what an operator sees of it, and the order in which it is checked.
//!
//! Only the catalog is asked, so this works while a place that holds some of the ranges does not answer.

use crate::{AccountCore, Error, RangeUsage};
use astrarium_catalog::records::{self, Resource};
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{ShardId, TALLY_COUNT};
use astrarium_store::{BYTE_TALLY, DOCUMENT_TALLY};

/// A key range, and where its documents are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRange {
    /// The database's name.
    pub database: String,
    /// The container's name.
    pub container: String,
    /// The range's id on the wire.
    pub range: u32,
    /// Where its documents are.
    pub shard: ShardId,
}

impl RangeUsage {
    /// What a shard holds whose sums are these.
    pub fn of(tallies: [i64; TALLY_COUNT]) -> RangeUsage {
        let sum = |tally: usize| u64::try_from(tallies[tally]).unwrap_or_default();
        RangeUsage { documents: sum(DOCUMENT_TALLY), bytes: sum(BYTE_TALLY) }
    }
}

impl AccountCore {
    /// Every container with the name of its database, in the order of creation. Each step is on a view of its own: none is held for long.
    pub(crate) async fn named_containers(&self) -> Result<Vec<(String, Resource)>, Error> {
        let databases = records::list_all(&*self.catalog().await?, RecordKind::Database, Rid::ROOT).await?;
        let mut found = Vec::new();
        for database in databases {
            let view = self.catalog().await?;
            let containers = records::list_all(&*view, RecordKind::Container, database.rid).await?;
            found.extend(containers.into_iter().map(|container| (database.record.id.clone(), container)));
        }
        Ok(found)
    }

    /// Every key range.
    pub(crate) async fn catalog_ranges(&self) -> Result<Vec<CatalogRange>, Error> {
        let mut places = Vec::new();
        for (database, resource) in self.named_containers().await? {
            let view = self.catalog().await?;
            // One that was removed meanwhile has none.
            let Ok(rows) = records::ranges(&*view, resource.rid).await else { continue };
            places.extend(rows.iter().map(|row| CatalogRange {
                database: database.clone(),
                container: resource.record.id.clone(),
                range: row.id,
                shard: ShardId(row.shard),
            }));
        }
        Ok(places)
    }
}
