//! An account, and the handles it gives: each says by its type what may be done with it.
//!
//! | handle | from | may |
//! |---|---|---|
//! | [`CatalogHandle`] | [`Account::catalog`] | find, list and change definitions: databases, containers, users, permissions, scripts, offers |
//! | [`DocumentsHandle`] | [`Account::documents`] | read, write, query and plan over the documents of one container |
//! | [`ScriptsHandle`] | [`Account::scripts`] | run the scripts of one container: stored procedures, and writes with triggers |
//! | [`MaintenanceHandle`] | [`Account::maintenance`] | do the work beside requests, check and restore what is stored, close it |
//! | [`MonitoringHandle`] | [`Account::monitoring`] | see how storage and the work beside requests are |
//!
//! The first three and the last borrow, and cost nothing; maintenance outlives its caller, on a thread of its own.
//! The methods stand with their subjects (`databases`, `documents`, `queries`, ..); what several of them are made of is
//! the business of [`AccountCore`], which nobody outside this crate holds.

use crate::feeds::partition_scope;
use crate::{
    AccountCore, BackgroundStatistics, CatalogRange, Container, Env, Error, FeedScope, Health, Limits, Link,
    Memory, Query, QueryPage, Range, RangeUsage, Report, Resources, Resume, ScriptStatistics, WorkerUsage,
};
use astrarium_kv::{Engine, ShardId, ShardState};
use astrarium_partition::PartitionKey;
use astrarium_value::Value;
use std::sync::Arc;

/// A whole account over one storage engine. Cheap to clone.
#[derive(Clone)]
pub struct Account {
    pub(crate) core: AccountCore,
}

/// The definitions of an account.
#[derive(Clone, Copy)]
pub struct CatalogHandle<'a> {
    pub(crate) core: &'a AccountCore,
}

/// The documents of one container, which is loaded again where it has changed meanwhile.
#[derive(Clone, Copy)]
pub struct DocumentsHandle<'a> {
    pub(crate) core: &'a AccountCore,
    pub(crate) container: &'a Arc<Container>,
}

/// The scripts of one container at work. Their definitions belong to the [`CatalogHandle`].
#[derive(Clone, Copy)]
pub struct ScriptsHandle<'a> {
    pub(crate) core: &'a AccountCore,
    pub(crate) container: &'a Arc<Container>,
}

/// The work beside requests and with nobody else at work. Cheap to clone.
#[derive(Clone)]
pub struct MaintenanceHandle {
    pub(crate) core: AccountCore,
}

/// How an account is.
#[derive(Clone, Copy)]
pub struct MonitoringHandle<'a> {
    pub(crate) core: &'a AccountCore,
}

impl Account {
    /// Opens what an engine holds; an empty engine is an empty account. Scripts run on threads of this process, where a
    /// native function of the JavaScript engine that does not end cannot be stopped; [`Resources::scripts`] has another way.
    pub async fn open(engine: Arc<dyn Engine>, env: Env) -> Result<Account, Error> {
        Account::open_within(engine, env, Resources::default()).await
    }

    /// The same, with bounds of what it may take.
    pub async fn open_within(
        engine: Arc<dyn Engine>,
        env: Env,
        resources: Resources,
    ) -> Result<Account, Error> {
        Ok(Account { core: AccountCore::open(engine, env, resources).await? })
    }

    /// Databases, containers, and what is defined below them.
    pub fn catalog(&self) -> CatalogHandle<'_> {
        CatalogHandle { core: &self.core }
    }

    /// The documents of a container.
    pub fn documents<'a>(&'a self, container: &'a Arc<Container>) -> DocumentsHandle<'a> {
        DocumentsHandle { core: &self.core, container }
    }

    /// The scripts of a container at work.
    pub fn scripts<'a>(&'a self, container: &'a Arc<Container>) -> ScriptsHandle<'a> {
        ScriptsHandle { core: &self.core, container }
    }

    /// The work beside requests.
    pub fn maintenance(&self) -> MaintenanceHandle {
        MaintenanceHandle { core: self.core.clone() }
    }

    /// How the account is.
    pub fn monitoring(&self) -> MonitoringHandle<'_> {
        MonitoringHandle { core: &self.core }
    }

    /// The clock and randomness the account was opened with.
    pub fn env(&self) -> &Env {
        self.core.env()
    }

    /// Memory for what clients can size.
    pub fn memory(&self) -> &Memory {
        self.core.memory()
    }

    /// Whether requests may be refused for want of throughput: what goes by it is asked only then.
    #[inline]
    pub fn is_throttling(&self) -> bool {
        self.core.shared.throttle.is_on()
    }

    /// Lets an operation on definitions in, which costs so much, or tells it when to come again.
    pub fn admit_metadata(&self, charge: f64) -> Result<(), Error> {
        self.core.shared.throttle.admit_metadata(charge, self.env().now_micros())
    }

    /// Runs a page of a query over values at hand.
    pub async fn query_values(
        &self,
        values: Vec<Value>,
        query: &Query,
        resume: Option<Resume>,
        limits: Limits,
    ) -> Result<QueryPage, Error> {
        self.core.query_values(values, query, resume, limits).await
    }
}

impl CatalogHandle<'_> {
    /// A container ready for use.
    pub async fn container(self, database: Link<'_>, container: Link<'_>) -> Result<Arc<Container>, Error> {
        self.core.container(database, container).await
    }
}

impl<'a> DocumentsHandle<'a> {
    /// The container, as it was when the handle was made.
    pub fn container(self) -> &'a Arc<Container> {
        self.container
    }

    /// The scope of a partition key: a logical partition, or all that a prefix of a hierarchical key covers.
    pub fn partition_scope(self, key: &PartitionKey) -> Result<FeedScope, Error> {
        partition_scope(self.container, key)
    }

    /// What a range holds.
    pub async fn range_usage(self, range: &Range) -> Result<RangeUsage, Error> {
        self.core.range_usage(range).await
    }

    /// The LSN of a range.
    pub async fn range_lsn(self, range: &Range) -> Result<u64, Error> {
        self.core.range_lsn(range).await
    }

    /// How far the index of the container is with following its policy, in percent; 100 when it does.
    pub async fn index_progress(self) -> Result<u8, Error> {
        self.core.index_progress(self.container).await
    }
}

impl MaintenanceHandle {
    /// Does a bounded part of building the indexes of containers whose policies changed or whose entries were lost, one
    /// container after another; false when there is nothing to do.
    pub async fn build_indexes(&self) -> Result<bool, Error> {
        self.core.build_indexes().await
    }

    /// Begins to build anew the indexes of which storage has lost entries; tells whether it had to.
    pub async fn renew_lost_indexes(&self) -> Result<bool, Error> {
        self.core.renew_lost_indexes().await
    }

    /// Builds all indexes anew, to the end, whatever state they are in.
    pub async fn rebuild_indexes(&self) -> Result<(), Error> {
        self.core.rebuild_indexes().await
    }

    /// Does a bounded part of splitting, merging and moving key ranges; false when there is nothing to do.
    pub async fn reshard(&self) -> Result<bool, Error> {
        self.core.reshard().await
    }

    /// Removes some of what removed databases left behind, drops what older versions of the program left to be removed, and lets
    /// numbers of replaced indexes be used again once storage has given back their space; false when there is nothing to do for now.
    pub async fn sweep(&self) -> Result<bool, Error> {
        self.core.sweep().await
    }

    /// Removes some changes that are older than their container keeps them, or that it does not keep any more; false when there are
    /// none.
    pub async fn trim_histories(&self) -> Result<bool, Error> {
        self.core.trim_histories().await
    }

    /// Erases some documents that have expired; false when there are none that are due.
    pub async fn erase_expired(&self) -> Result<bool, Error> {
        self.core.erase_expired().await
    }

    /// Erases some documents that were deleted with their partition; false when there are none.
    pub async fn erase_deleted(&self) -> Result<bool, Error> {
        self.core.erase_deleted().await
    }

    /// Reads all offers again if any was changed since, by this process or another one; tells whether that was so.
    pub async fn follow_offers(&self) -> Result<bool, Error> {
        self.core.follow_offers().await
    }

    /// Whether other processes can have the storage open.
    pub fn is_shared(&self) -> bool {
        !self.core.engine().is_exclusive()
    }

    /// Builds what indexes lack, and frees what nobody needs, to the end.
    pub async fn settle(&self) -> Result<(), Error> {
        self.core.settle().await
    }

    /// Has storage take writes again if they were refused for a reason that has passed; tells whether it did. It may take
    /// seconds, on the thread of the caller.
    pub fn heal(&self) -> Result<bool, Error> {
        self.core.heal()
    }

    /// Reads one more of the stored files whole, looking for damage; false when all of them were read.
    pub fn check_next_file(&self) -> bool {
        self.core.check_next_file()
    }

    /// Puts what storage knows of damaged files into words, which [`Health`] has.
    pub async fn note_damage(&self) -> Result<(), Error> {
        self.core.note_damage().await
    }

    /// Checks everything stored, while others may write: reports each range as `database/container`.
    pub async fn verify(&self, progress: impl FnMut(&str, &Report)) -> Result<(), Error> {
        self.core.verify(progress).await
    }

    /// Restores all containers; tells of each how many documents are there and how many had to go. Gives what the engine should
    /// know of every shard.
    pub async fn restore(
        &self,
        progress: impl FnMut(&str, u64, u64),
    ) -> Result<Vec<(ShardId, ShardState)>, Error> {
        self.core.restore(progress).await
    }

    /// Finishes writing and releases storage. Nothing may be asked of the account afterwards.
    pub fn close(&self) -> Result<(), Error> {
        self.core.close()
    }

    /// How the account is.
    pub fn monitoring(&self) -> MonitoringHandle<'_> {
        MonitoringHandle { core: &self.core }
    }
}

impl<'a> MonitoringHandle<'a> {
    /// How storage is at the moment.
    pub fn health(self) -> Health {
        self.core.health()
    }

    /// Every key range and where it is, as the catalog says.
    pub async fn catalog_ranges(self) -> Result<Vec<CatalogRange>, Error> {
        self.core.catalog_ranges().await
    }

    /// How far the work beside requests is.
    pub fn background_statistics(self) -> BackgroundStatistics {
        self.core.background_statistics()
    }

    /// What scripts are doing.
    pub fn script_statistics(self) -> ScriptStatistics {
        self.core.script_statistics()
    }

    /// How many plans were made for queries over containers: at most one for each request.
    pub fn plan_count(self) -> u64 {
        self.core.shared.statements.plan_count()
    }

    /// What the threads for queries are doing.
    pub fn worker_usage(self) -> WorkerUsage {
        self.core.worker_usage()
    }

    /// Memory for what clients can size, and how much of it is taken.
    pub fn memory(self) -> &'a Memory {
        self.core.memory()
    }
}
