//! An account at a glance: its databases and containers with what they hold, and the throughput that they have.
//!
//! In: the catalog and the counters of shards. Out: a [`DatabaseOverview`] for each database. No document is read.
//! Invariant: what is removed meanwhile is left out, and what a place does not tell is not told, rather than that all fails.

use crate::offers::stored_offer;
use crate::{AccountCore, Error, MonitoringHandle, RangeUsage};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_catalog::records::{self, Resource};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::ShardId;
use std::collections::BTreeMap;

/// Containers whose ranges are asked what they hold; the others are named only.
const MEASURED_MAX: usize = 1_000;

/// A database with its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseOverview {
    /// Its name.
    pub id: String,
    /// Request units a second that its containers share; none if it shares nothing.
    pub throughput: Option<u32>,
    /// Its containers.
    pub containers: Vec<ContainerOverview>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerOverview {
    /// Its name.
    pub id: String,
    /// Request units a second of its own; none if it shares those of its database.
    pub throughput: Option<u32>,
    /// The paths of its partition key.
    pub partition_key: Vec<String>,
    /// Its key ranges.
    pub ranges: usize,
    /// What it holds, as far as it is known.
    pub usage: Option<RangeUsage>,
}

impl MonitoringHandle<'_> {
    /// All databases and containers, with what they hold.
    pub async fn overview(self) -> Result<Vec<DatabaseOverview>, Error> {
        self.core.overview().await
    }
}

impl AccountCore {
    async fn overview(&self) -> Result<Vec<DatabaseOverview>, Error> {
        let offers = self.throughputs().await?;
        let databases = records::list_all(&*self.catalog().await?, RecordKind::Database, Rid::ROOT).await?;
        let (mut found, mut measured) = (Vec::with_capacity(databases.len()), 0);
        for database in databases {
            let view = self.catalog().await?;
            let mut containers = Vec::new();
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                yield_if_due().await;
                measured += 1;
                let throughput = offers.get(&resource.rid).copied();
                // One that was removed meanwhile has no ranges.
                containers.extend(self.look_at(resource, throughput, measured <= MEASURED_MAX).await);
            }
            let throughput = offers.get(&database.rid).copied();
            found.push(DatabaseOverview { id: database.record.id, throughput, containers });
        }
        Ok(found)
    }

    async fn look_at(
        &self,
        resource: Resource,
        throughput: Option<u32>,
        is_measured: bool,
    ) -> Option<ContainerOverview> {
        let ranges = records::ranges(&*self.catalog().await.ok()?, resource.rid).await.ok()?;
        let definition = serde_json::from_str(&resource.record.definition).ok();
        let definition = definition.and_then(|definition| ContainerDefinition::from_json(&definition).ok());
        let paths = definition.iter().flat_map(|definition| &definition.partition_key.paths);
        let mut usage = is_measured.then(RangeUsage::default);
        for range in ranges.iter().filter(|_| is_measured) {
            let state = self.engine().shard(ShardId(range.shard)).await.ok();
            usage = usage.zip(state).map(|(sum, state)| {
                let own = crate::documents::usage(state);
                RangeUsage { documents: sum.documents + own.documents, bytes: sum.bytes + own.bytes }
            });
        }
        Some(ContainerOverview {
            id: resource.record.id,
            throughput,
            partition_key: paths.map(|path| path.as_str().to_owned()).collect(),
            ranges: ranges.len(),
            usage,
        })
    }

    /// Request units a second by the rid of what has them.
    async fn throughputs(&self) -> Result<BTreeMap<Rid, u32>, Error> {
        let offers = records::list_all(&*self.catalog().await?, RecordKind::Offer, Rid::ROOT).await?;
        let throughput = |offer: &Resource| {
            Some((Rid::parse(&offer.record.id)?, stored_offer(offer).ok()?.throughput.highest()))
        };
        Ok(offers.iter().filter_map(throughput).collect())
    }
}
