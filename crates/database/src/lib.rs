//! The product as a library: an account with its databases, containers, documents, users and throughput. No HTTP.
//!
//! In: plain structs and names. Out: plain structs, or an [`Error`] that says who has to act. The gateway, tools and
//! embedders all open an [`Account`] and ask it for a handle, whose type says what may be done with it (`handles`).
//! Invariants
//! - Every change is one commit: it has happened wholly and durably when its method answers, or not at all.
//! - Conflicts between concurrent changes are retried here (`attempts`); callers see only outcomes that a serial run could give.
//!
//! Not here: header names, status codes and JSON envelopes (`gateway`), key bytes (`keys`).

mod attempts;
mod background;
mod background_tasks;
mod batch;
mod bulk;
mod change_feed;
mod charge;
mod checks;
mod children;
mod computed;
mod conditions;
mod container_cache;
mod containers;
mod continuous_backup;
mod damage;
mod databases;
mod documents;
mod erasures;
mod error;
mod expiry;
mod explained;
mod feeds;
mod handles;
mod index_builds;
mod index_cache;
mod index_loss;
mod index_use;
mod inventory;
mod kept_results;
mod leases;
mod maintenance;
mod offers;
mod overview;
mod patch;
mod planned;
mod queries;
mod query_times;
mod resharding;
mod restore;
mod samples;
mod scripts;
mod sessions;
mod statements;
mod throttle;
mod vocabulary;
mod workers;

pub use astrarium_catalog::container::{Container, Range};
pub use astrarium_catalog::definition;
pub use astrarium_catalog::records::Resource;
pub use astrarium_env::{Env, Memory, Reservation};
pub use astrarium_index::IndexPathCost;
pub use astrarium_keys::body::{Body, IndexDirective};
pub use astrarium_keys::history::ChangeOperation;
pub use astrarium_keys::record::RecordKind;
pub use astrarium_keys::rid::{ChildType, Rid};
pub use astrarium_kv::{Place, PlaceId};
pub use astrarium_partition as partition;
pub use astrarium_script::{
    Error as ScriptError, Isolation as ScriptIsolation, ScriptSettings, WorkerCommand, run_worker,
};
pub use astrarium_sql_exec::{KeptUse, Limits, OrderStart, Resume, StartKey};
pub use astrarium_sql_plan::advice::Advice;
pub use astrarium_sql_plan::physical::IndexUse;
pub use astrarium_sql_plan::physical::IndexUtilization;
pub use astrarium_sql_syntax::shape as statement_shape;
pub use astrarium_store::transfer::{self, Transferred};
pub use astrarium_store::verify::Report;
pub use astrarium_store::{
    ChangePosition, DocumentMemory, FeedPosition, FeedScope, Floors, PageLimit, etag_text, push_document,
    push_document_without_links, push_etag,
};
pub use astrarium_value as value;
pub use background::BackgroundStatistics;
pub use background_tasks::{BackgroundTask, RequestCount};
pub use batch::{BatchAction, BatchOperation, BatchOutcome, Done, Effect};
pub use bulk::BulkOutcome;
pub use change_feed::{
    ChangeFeedMode, ChangeFeedPage, ChangeFeedPosition, ChangeFeedStart, FeedChange, ReadChanges,
};
pub use charge::{FAILURE_CHARGE, PriceProfile, QueryPrices, read_factor};
pub use children::ChildKind;
pub use conditions::{Conditions, EtagCondition};
pub use containers::NewContainer;
pub use documents::{DocumentLink, Outcome, RangeUsage, WriteMode, WriteOptions};
pub use error::{Error, Kind, QueryFault};
pub use explained::{ExplainedOperator, ExplainedRun, ExplainedWork, Explanation};
pub use feeds::DocumentPage;
pub use handles::{
    Account, CatalogHandle, DocumentsHandle, MaintenanceHandle, MonitoringHandle, ScriptsHandle,
};
pub use inventory::CatalogRange;
pub use maintenance::Health;
pub use offers::OfferChange;
pub use overview::{ContainerOverview, DatabaseOverview};
pub use patch::Patch;
pub use queries::{Query, QueryPage, QueryScope, query_parameters};
pub use query_times::QueryTimes;
pub use resharding::{Placement, RangePlacement, RangeSettings, ReshardingStatus};
pub use samples::{
    ELEMENTS_STEP, SampledCosts, SampledKey, SampledKeys, SampledPath, SampledRange, SampledSchema,
    SampledShape,
};
pub use scripts::{
    ProcedureOutcome, ProcedureSource, ProcedureTrace, ScriptFault, ScriptRequest, ScriptStatistics,
    TracedCall, TracedChange, TracedError, TriggeredOutcome, Triggers,
};

pub use throttle::{Admitted, SpentUnits, ThroughputDemand};
pub use vocabulary::{FunctionHelp, query_functions, query_keywords};
pub use workers::WorkerUsage;

use astrarium_catalog::CATALOG_SHARD;
use astrarium_catalog::numbers::NumberSource;
use astrarium_catalog::stamps::StampSource;
use astrarium_index::Indexes;
use astrarium_kv::{Engine, ShardId};
use astrarium_script::Scripts;
use background::Background;
use container_cache::ContainerCache;
use erasures::ErasureProgress;
use expiry::ExpirySchedule;
use index_builds::BuildProgress;
use index_cache::IndexCache;
use index_loss::WrongIndex;
use kept_results::KeptResults;
use leases::HeldLeases;
use parking_lot::Mutex;
use resharding::Reshardings;
use scripts::gate::Gates;
use statements::StatementCache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use throttle::Throttle;
use workers::Workers;

/// How a client names a resource.
#[derive(Debug, Clone, Copy)]
pub enum Link<'a> {
    /// By the id its user gave it.
    Name(&'a str),
    /// By the rid the database gave it.
    Rid(Rid),
}

/// What all handles of an account share, and what operations are made of. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AccountCore {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<dyn Engine>,
    env: Env,
    containers: ContainerCache,
    indexes: IndexCache,
    statements: StatementCache,
    kept: KeptResults,
    /// Gives numbers to catalog resources and shards.
    catalog_numbers: NumberSource,
    build_progress: Mutex<BuildProgress>,
    background: Background,
    expiry_schedule: Mutex<ExpirySchedule>,
    erasure_progress: Mutex<ErasureProgress>,
    leases: HeldLeases,
    reshardings: Reshardings,
    /// Gives stamps for etags, and this process its number.
    stamps: StampSource,
    /// Containers whose index names documents that are not there, with what was met.
    wrong_indexes: Mutex<BTreeMap<Rid, WrongIndex>>,
    /// What is known of damaged files, in words.
    damage: Mutex<Vec<String>>,
    scripts: Scripts,
    gates: Gates,
    workers: Workers,
    memory: Memory,
    throttle: Throttle,
    /// Whether every container keeps its changes ([`continuous_backup`]).
    keeps_all_history: AtomicBool,
}

/// What an account may take of the machine.
#[derive(Debug, Clone)]
pub struct Resources {
    /// Memory for what clients can size.
    pub memory: Memory,
    /// Called by each thread for queries before it begins, to lower its priority, say.
    pub prepare_thread: fn(),
    /// Whether pages of queries run where they are awaited, instead of on threads of their own: for a simulator, which owns
    /// the order of everything.
    pub inline_queries: bool,
    /// Where scripts run, in processes of a program that calls [`run_worker`], say, and how many.
    pub scripts: ScriptSettings,
    /// Whether requests beyond the provisioned throughput are refused, where an offer does not say otherwise.
    pub throttling: bool,
    /// Whether every container keeps its changes for readers of all versions, whatever its definition says; if not given, as it was.
    pub continuous_backup: Option<bool>,
    /// When key ranges are split.
    pub ranges: RangeSettings,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources {
            memory: Memory::unlimited(),
            prepare_thread: || {},
            inline_queries: false,
            scripts: ScriptSettings::default(),
            throttling: false,
            continuous_backup: None,
            ranges: RangeSettings::default(),
        }
    }
}

impl AccountCore {
    async fn open(engine: Arc<dyn Engine>, env: Env, resources: Resources) -> Result<AccountCore, Error> {
        // Whoever opens an account hears at once if storage does not answer.
        engine.shard(CATALOG_SHARD).await?;
        let catalog_numbers = NumberSource::new(Arc::clone(&engine), CATALOG_SHARD, 0);
        let stamps = StampSource::new(Arc::clone(&engine));
        let shared = Shared {
            engine,
            env,
            containers: ContainerCache::default(),
            indexes: IndexCache::default(),
            statements: StatementCache::default(),
            kept: KeptResults::default(),
            catalog_numbers,
            build_progress: Mutex::default(),
            background: Background::default(),
            expiry_schedule: Mutex::default(),
            erasure_progress: Mutex::default(),
            leases: HeldLeases::default(),
            reshardings: Reshardings::new(resources.ranges),
            stamps,
            wrong_indexes: Mutex::default(),
            damage: Mutex::default(),
            scripts: Scripts::new(resources.scripts),
            gates: Gates::default(),
            workers: Workers::new(resources.prepare_thread, resources.inline_queries),
            memory: resources.memory,
            throttle: Throttle::new(resources.throttling),
            keeps_all_history: AtomicBool::new(false),
        };
        let core = AccountCore { shared: Arc::new(shared) };
        core.settle_continuous_backup(resources.continuous_backup).await?;
        core.find_throttled_offers().await;
        Ok(core)
    }

    /// The clock and randomness the account was opened with.
    pub(crate) fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Memory for what clients can size.
    pub(crate) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// What the threads for queries are doing.
    pub(crate) fn worker_usage(&self) -> WorkerUsage {
        self.shared.workers.usage()
    }

    fn engine(&self) -> &dyn Engine {
        &*self.shared.engine
    }

    /// What a container's documents are indexed by.
    pub(crate) fn indexes(&self, container: &Arc<Container>) -> Arc<Indexes> {
        self.shared.indexes.of(container)
    }

    /// The number of a new catalog resource or shard.
    async fn next_catalog_number(&self) -> Result<u64, Error> {
        let numbers = &self.shared.catalog_numbers;
        // Listings are in the order of numbers, which is to be that of creation whichever process creates.
        Ok(if self.engine().is_exclusive() {
            numbers.next_above(0).await?
        } else {
            numbers.next_of_all().await?
        })
    }

    /// The one source of document numbers of a shard, above one.
    pub(crate) fn number_source(&self, shard: ShardId, above: u64) -> NumberSource {
        self.shared.containers.number_source(&self.shared.engine, shard, above)
    }
}
