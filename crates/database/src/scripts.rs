//! Scripts at work: stored procedures and triggers in transactions of one logical partition.
//!
//! In: which script, its parameters, a partition key; or a write and the triggers it names. Out: what the script
//! answered and what was written, or an error, and then nothing has happened.
//! - `host`: what a script may do to documents; `gate`: whose turn it is; `triggers`: writes with triggers;
//!   `functions`: user-defined functions in queries; `traced`: a run to look at, call by call.
//!
//! Invariants
//! - An execution is one view of its range and one commit. If somebody else changed what it read by name or wrote, it has not
//!   happened, and it runs again on a new view while its time lasts.
//! - Nothing of an execution outlives its time limit, its waiting for a turn included.
//!
//! Not here: the JavaScript engine (`script`), headers and statuses (`gateway`).

pub(crate) mod functions;
pub(crate) mod gate;
mod host;
mod traced;
mod triggers;

use crate::attempts::{Failure, Trial};
use crate::charge::{script_charge, terms_charge};
use crate::databases::find;
use crate::documents::{checked_key, required};
use crate::{AccountCore, Error, Link, ScriptsHandle};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::definition::script::StoredProcedure;
use astrarium_catalog::records::{self, Resource};
use astrarium_env::Instant;
use astrarium_keys::record::RecordKind;
use astrarium_kv::View;
use astrarium_partition::PartitionKey;
use astrarium_script as script;
use gate::Gate;
use host::ScriptHost;
use script::{Call, Script, ScriptKey, ScriptWork};
use std::sync::Arc;
use std::time::Duration;

pub use astrarium_script::ScriptStatistics;
pub use traced::{ProcedureSource, ProcedureTrace, TracedCall, TracedChange, TracedError};
pub use triggers::{TriggeredOutcome, Triggers};

/// How long an execution may take, with all its repetitions.
const EXECUTION_TIME: Duration = Duration::from_secs(5);
/// What scripts are told about sizes, in the service's form: an item of 2 MiB, a container without a limit.
const QUOTA_MAX: &str = "documentSize=2048;documentsSize=-1;documentsCount=-1;collectionSize=-1;";

/// What a client asks of a script besides its work.
#[derive(Debug, Clone, Default)]
pub struct ScriptRequest {
    /// Headers of the request, which scripts may read by name.
    pub values: Vec<(String, String)>,
    /// Whether `console.log` is collected.
    pub log: bool,
}

/// What a stored procedure did.
#[derive(Debug)]
pub struct ProcedureOutcome {
    /// The container, as of the commit.
    pub container: Arc<Container>,
    /// The id of the range that served.
    pub range_id: u32,
    /// The range's LSN then.
    pub lsn: u64,
    /// The JSON of its response, if it set one.
    pub body: Option<String>,
    /// What it logged.
    pub log: String,
    /// Request units.
    pub charge: f64,
}

/// Why a script failed, and what it logged before.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct ScriptFault {
    /// Why.
    pub error: script::Error,
    /// The log until then.
    pub log: String,
}

impl ScriptsHandle<'_> {
    /// Runs a stored procedure in one logical partition.
    pub async fn execute_procedure(
        self,
        link: Link<'_>,
        partition_key: Option<&PartitionKey>,
        parameters: &[u8],
        request: &ScriptRequest,
    ) -> Result<ProcedureOutcome, Error> {
        let ScriptsHandle { core, container } = self;
        let key = checked_key(&container.definition.partition_key, required(partition_key)?)?;
        let turns = ScriptTurns::new(core, container, key);
        let turns = &turns;
        core.attempt_without_bound(container, |trial| async move {
            let (execution, _turn) = turns.next(trial).await?;
            core.execute_once(&execution, link, parameters, request).await
        })
        .await
    }
}

impl AccountCore {
    async fn execute_once(
        &self,
        execution: &ScriptExecution,
        link: Link<'_>,
        parameters: &[u8],
        request: &ScriptRequest,
    ) -> Result<ProcedureOutcome, Failure> {
        let script = self.procedure(&execution.container, link).await?;
        let host = execution.host(self).await?;
        let work = ScriptWork::Procedure { parameters: parameters.to_vec() };
        let answer = execution.run(self, script, work, request, host).await?;
        let (lsn, charge) = self.commit_host(answer.host).await?;
        Ok(ProcedureOutcome {
            container: execution.container.clone(),
            range_id: execution.range().id,
            lsn,
            body: answer.body,
            log: answer.log,
            charge: charge + script_charge(),
        })
    }

    /// Makes what a host holds real; gives the range's LSN and what everything cost.
    async fn commit_host(&self, host: ScriptHost) -> Result<(u64, f64), Failure> {
        let charge = host.charge();
        let transaction = host.into_transaction().await?;
        let (lsn, terms) = self.commit_if_changed(transaction).await?;
        Ok((lsn, charge + terms_charge(terms.sum())))
    }

    async fn procedure(&self, container: &Container, link: Link<'_>) -> Result<Script, Error> {
        let view = self.catalog().await?;
        let kind = RecordKind::StoredProcedure;
        let resource = find(&*view, kind, container.rid(), link).await?.ok_or(Error::NotFound)?;
        script_of(&resource)
    }

    /// Refuses a script that does not compile; keeps the compiled form for its first execution.
    pub(crate) async fn check_script(&self, resource: &Resource) -> Result<(), Error> {
        let script = script_of(resource)?;
        self.shared.scripts.check(script).await.map_err(|error| fault(error, String::new()))
    }

    /// Refuses a new script beyond the number that a container may have.
    pub(crate) async fn check_script_count(&self, view: &dyn View, resource: &Resource) -> Result<(), Error> {
        let Some(count_max) = script_count_max(resource.kind) else { return Ok(()) };
        let present = records::list(view, resource.kind, resource.parent, 0, count_max).await?;
        if present.resources.len() < count_max {
            return Ok(());
        }
        Err(Error::invalid(format!("A container may have {count_max} scripts of this kind.")))
    }

    /// What scripts are doing, for metrics.
    pub(crate) fn script_statistics(&self) -> ScriptStatistics {
        self.shared.scripts.statistics()
    }
}

/// How many scripts of a kind a container may have; nothing for resources that are no scripts.
pub(crate) fn script_count_max(kind: RecordKind) -> Option<usize> {
    match kind {
        RecordKind::StoredProcedure => Some(100),
        RecordKind::UserDefinedFunction => Some(50),
        RecordKind::Trigger => Some(25),
        _ => None,
    }
}

/// A stored script, ready to run. All kinds of them have their source in the same place.
fn script_of(resource: &Resource) -> Result<Script, Error> {
    let damaged = || Error::Damaged(format!("the script {} cannot be read", resource.record.id));
    let json = serde_json::from_str(&resource.record.definition).map_err(|_| damaged())?;
    let source = StoredProcedure::from_json(&json).map_err(|_| damaged())?.body;
    let key =
        ScriptKey { id: resource.rid.to_string().into(), version: resource.record.etag.to_string().into() };
    Ok(Script { key, name: resource.record.id.as_str().into(), source: source.into() })
}

fn strings(texts: &[Box<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn fault(error: script::Error, log: String) -> Error {
    Error::Script(Box::new(ScriptFault { error, log }))
}

/// One request that runs scripts: when each of its attempts may begin, and when all of them have to end.
struct ScriptTurns {
    key: PartitionKey,
    gate: Gate,
    end: Instant,
}

impl ScriptTurns {
    fn new(core: &AccountCore, container: &Container, key: PartitionKey) -> ScriptTurns {
        let effective = container.definition.partition_key.effective(&key);
        let gate = core.shared.gates.of(container.rid(), effective);
        ScriptTurns { key, gate, end: Instant::now() + EXECUTION_TIME }
    }

    /// Waits until an attempt may begin: with others at first, alone once one has lost.
    async fn next(&self, trial: Trial) -> Result<(ScriptExecution, gate::GateLock), Error> {
        let (key, end, is_repeated) = (self.key.clone(), self.end, trial.lost > 0);
        let execution = ScriptExecution { container: trial.container, key, end, is_repeated };
        let remaining = execution.remaining();
        if remaining.is_zero() {
            return Err(Error::RetryWith);
        }
        let turn = self.gate.turn(is_repeated, remaining).await.ok_or(Error::RetryWith)?;
        Ok((execution, turn))
    }
}

/// One attempt of a request that runs scripts.
struct ScriptExecution {
    container: Arc<Container>,
    key: PartitionKey,
    end: Instant,
    /// Whether an attempt was lost before this one.
    is_repeated: bool,
}

impl ScriptExecution {
    fn range(&self) -> &Range {
        self.container.range_of(&self.container.definition.partition_key.effective(&self.key))
    }

    fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    async fn host(&self, core: &AccountCore) -> Result<ScriptHost, Failure> {
        let view = core.view(self.range()).await?;
        let mut transaction = core.begin(&self.container, self.range(), view).await?;
        transaction.stand_by_reads();
        Ok(ScriptHost::new(core, &self.container, &self.key, transaction, self.end))
    }

    async fn run(
        &self,
        core: &AccountCore,
        script: Script,
        work: ScriptWork,
        request: &ScriptRequest,
        host: ScriptHost,
    ) -> Result<script::ScriptAnswer<ScriptHost>, Failure> {
        let call = self.call(core, work, request).await?;
        match core.shared.scripts.execute(script, call, host).await {
            Ok(answer) => Ok(answer),
            Err(failure) => {
                let script::ScriptFailure { error, log, host } = *failure;
                let own = host.and_then(ScriptHost::into_failure);
                Err(match (error, own) {
                    (script::Error::Host(_), Some(failure)) => failure,
                    (script::Error::Void { .. }, own) => own.unwrap_or(Failure::Lost),
                    (error, _) => Failure::Refused(fault(error, log)),
                })
            }
        }
    }

    /// What is asked of a script in this attempt.
    async fn call(
        &self,
        core: &AccountCore,
        work: ScriptWork,
        request: &ScriptRequest,
    ) -> Result<Call, Failure> {
        let usage = core.range_usage(self.range()).await?;
        Ok(Call {
            work,
            container: Arc::new(self.described(usage.documents, usage.bytes)),
            request_values: request.values.clone(),
            env: core.env().clone(),
            time: Some(self.remaining()),
            log: request.log,
            // One that has to run again waits for each of its writes.
            ahead: !self.is_repeated,
        })
    }

    fn described(&self, documents: u64, bytes: u64) -> script::ScriptContainer {
        let rid = self.container.rid();
        let database = rid.database_part().map(|rid| rid.to_string()).unwrap_or_default();
        let paths = &self.container.definition.partition_key.paths;
        script::ScriptContainer {
            self_link: format!("dbs/{database}/colls/{rid}"),
            alt_link: self.container.path().to_owned(),
            partition_key_paths: paths.iter().map(|path| strings(path.segments())).collect(),
            quota_current: format!(
                "documentSize=0;documentsSize={};documentsCount={documents};collectionSize={};",
                bytes >> 10,
                bytes >> 10
            ),
            quota_max: QUOTA_MAX.to_owned(),
        }
    }
}
