//! Writes with triggers: a script before, the write, a script after, all in one transaction.
//!
//! In: a write and the names of its triggers. Out: the document as it was written, and what the trigger after it made of
//! the response. A pre-trigger may change the document and its id, never its partition key.
//! Not here: which headers name the triggers (`gateway`). Writes of scripts and batches run no triggers.

use super::host::ScriptHost;
use super::{ScriptExecution, ScriptRequest, ScriptTurns, script_of};
use crate::attempts::Failure;
use crate::charge::{script_charge, write_charge};
use crate::databases::find;
use crate::documents::{Target, check_own_partition, checked_key, locate_in, required, stage_write};
use crate::{
    AccountCore, Conditions, DocumentLink, Error, Link, Outcome, ScriptsHandle, WriteMode, WriteOptions,
};
use astrarium_catalog::container::Container;
use astrarium_catalog::definition::script::{Trigger, TriggerOperation, TriggerType};
use astrarium_keys::body::Body;
use astrarium_keys::record::RecordKind;
use astrarium_kv::View;
use astrarium_partition::PartitionKey;
use astrarium_script::{Script, ScriptWork, TriggeringOperation};
use astrarium_store::{Incoming, Location, push_document};
use bytes::Bytes;
use std::sync::Arc;

/// The triggers that a write names.
#[derive(Debug, Clone, Default)]
pub struct Triggers {
    /// To run before it.
    pub pre: Option<String>,
    /// To run after it.
    pub post: Option<String>,
    /// What else the scripts are given.
    pub request: ScriptRequest,
}

/// A write with its triggers.
#[derive(Debug)]
pub struct TriggeredOutcome {
    /// What happened to the document.
    pub outcome: Outcome,
    /// The JSON of the response, where the trigger after the write has a say in it.
    pub shown: Option<String>,
    /// What the scripts logged.
    pub log: String,
}

/// What is done between the triggers.
#[derive(Clone, Copy)]
enum TriggeredChange<'a> {
    Write(WriteMode<'a>, &'a [u8], WriteOptions<'a>),
    Delete(DocumentLink<'a>, &'a Conditions),
}

impl TriggeredChange<'_> {
    fn operation(&self) -> TriggeringOperation {
        match self {
            TriggeredChange::Write(WriteMode::Create, ..) => TriggeringOperation::Create,
            TriggeredChange::Write(WriteMode::Upsert, ..) => TriggeringOperation::Upsert,
            TriggeredChange::Write(WriteMode::Replace(_), ..) => TriggeringOperation::Replace,
            TriggeredChange::Delete(..) => TriggeringOperation::Delete,
        }
    }
}

/// A change that is part of the transaction now.
struct Changed {
    key: Bytes,
    /// Where the document was, if it was replaced.
    replaced: Option<Bytes>,
    body: Body,
    created: bool,
}

impl ScriptsHandle<'_> {
    /// Writes a document with triggers.
    pub async fn write_with_triggers(
        self,
        mode: WriteMode<'_>,
        text: &[u8],
        options: WriteOptions<'_>,
        triggers: &Triggers,
    ) -> Result<TriggeredOutcome, Error> {
        let ScriptsHandle { core, container } = self;
        let key = required(options.partition_key)?;
        core.change_with_triggers(container, key, TriggeredChange::Write(mode, text, options), triggers).await
    }

    /// Removes a document with triggers.
    pub async fn delete_with_triggers(
        self,
        link: DocumentLink<'_>,
        partition_key: Option<&PartitionKey>,
        conditions: &Conditions,
        triggers: &Triggers,
    ) -> Result<TriggeredOutcome, Error> {
        let ScriptsHandle { core, container } = self;
        let key = required(partition_key)?;
        core.change_with_triggers(container, key, TriggeredChange::Delete(link, conditions), triggers).await
    }
}

impl AccountCore {
    async fn change_with_triggers(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        change: TriggeredChange<'_>,
        triggers: &Triggers,
    ) -> Result<TriggeredOutcome, Error> {
        let key = checked_key(&container.definition.partition_key, key)?;
        let turns = ScriptTurns::new(self, container, key);
        let turns = &turns;
        self.attempt_without_bound(container, |trial| async move {
            let (execution, _turn) = turns.next(trial).await?;
            self.change_once(&execution, change, triggers).await
        })
        .await
    }

    async fn change_once(
        &self,
        execution: &ScriptExecution,
        change: TriggeredChange<'_>,
        triggers: &Triggers,
    ) -> Result<TriggeredOutcome, Failure> {
        let catalog = self.catalog().await?;
        let operation = change.operation();
        let pre = self.trigger(&*catalog, execution, triggers.pre.as_deref(), TriggerType::Pre, operation);
        let pre = pre.await?;
        let post = self.trigger(&*catalog, execution, triggers.post.as_deref(), TriggerType::Post, operation);
        let post = post.await?;
        // Views may be few: the catalog's is not kept while the scripts run.
        drop(catalog);
        let mut host = execution.host(self).await?;
        let mut document = match change {
            TriggeredChange::Write(_, text, _) => Some(text.to_vec()),
            TriggeredChange::Delete(..) => None,
        };
        let mut log = String::new();
        if let Some(script) = pre {
            let work = ScriptWork::PreTrigger { operation, document: document.clone() };
            let answer = execution.run(self, script, work, &triggers.request, host).await?;
            host = answer.host;
            host.add_charge(script_charge());
            log.push_str(&answer.log);
            if document.is_some() {
                document = Some(answer.body.unwrap_or_default().into_bytes());
            }
        }
        let changed = self.change_between(execution, &mut host, change, document.as_deref()).await?;
        let mut response = None;
        if let Some(script) = post {
            // The service's queries do not find the document whose write runs the trigger.
            host.transaction().hide(changed.replaced.iter().chain([&changed.key]));
            let written = document.is_some().then(|| shown(&execution.container, &changed.body));
            let work = ScriptWork::PostTrigger { operation, document, written };
            let answer = execution.run(self, script, work, &triggers.request, host).await?;
            host = answer.host;
            host.add_charge(script_charge());
            log.push_str(&answer.log);
            response = answer.body;
        }
        // The trigger may have written the document once more.
        let body = host.transaction().read(&changed.key).await?.cloned().unwrap_or(changed.body);
        let (lsn, charge) = self.commit_host(host).await?;
        let body = if operation == TriggeringOperation::Delete { body } else { body.committed_at(lsn) };
        let range_id = execution.range().id;
        let container = execution.container.clone();
        let outcome = Outcome { container, range_id, lsn, body, created: changed.created, charge };
        Ok(TriggeredOutcome { outcome, shown: response, log })
    }

    /// The change itself.
    async fn change_between(
        &self,
        execution: &ScriptExecution,
        host: &mut ScriptHost,
        change: TriggeredChange<'_>,
        document: Option<&[u8]>,
    ) -> Result<Changed, Failure> {
        let container = &execution.container;
        let (mode, options) = match change {
            TriggeredChange::Delete(link, conditions) => {
                let stored = host.transaction().stored();
                let key = locate_in(stored, container, link, &execution.key).await?.key;
                let body = host.transaction().remove(&key).await?.ok_or(Error::NotFound)?;
                conditions.check_write(body.header.etag, body.header.timestamp)?;
                host.add_charge(write_charge(body.text().len()));
                return Ok(Changed { key, replaced: None, body, created: false });
            }
            TriggeredChange::Write(mode, _, options) => (mode, options),
        };
        let text = document.unwrap_or_default();
        let incoming = Incoming::parse(&container.definition, text).map_err(Error::from)?;
        check_own_partition(container, &incoming, &execution.key)?;
        let key = Location::of(container, &execution.key, &incoming.id).key;
        let replaced = match mode {
            WriteMode::Replace(link) => {
                let stored = host.transaction().stored();
                Some(locate_in(stored, container, link, &execution.key).await?.key)
            }
            WriteMode::Create | WriteMode::Upsert => None,
        };
        let target = Target { key: &key, replaced: replaced.as_ref() };
        let staged = stage_write(host.transaction(), target, mode, incoming, options).await?;
        host.add_charge(staged.charge);
        host.note_written(staged.body.header.number, key.clone());
        Ok(Changed { key, replaced, body: staged.body, created: staged.created })
    }

    /// The trigger of a name, if it is one of the kind and for the operation.
    async fn trigger(
        &self,
        catalog: &dyn View,
        execution: &ScriptExecution,
        name: Option<&str>,
        expected: TriggerType,
        operation: TriggeringOperation,
    ) -> Result<Option<Script>, Error> {
        let Some(name) = name else { return Ok(None) };
        let found = find(catalog, RecordKind::Trigger, execution.container.rid(), Link::Name(name)).await?;
        let found = found.ok_or_else(|| {
            Error::invalid(format!(
                "The trigger '{name}' named by the request does not exist in this container."
            ))
        })?;
        let damaged = || Error::Damaged(format!("the trigger {name} cannot be read"));
        let json = serde_json::from_str(&found.record.definition).map_err(|_| damaged())?;
        let trigger = Trigger::from_json(&json).map_err(|_| damaged())?;
        if trigger.trigger_type.value != expected {
            let when = if expected == TriggerType::Pre { "before" } else { "after" };
            return Err(Error::invalid(format!("The trigger '{name}' does not run {when} an operation.")));
        }
        if !serves(trigger.operation.value, operation) {
            let operation = operation.name();
            return Err(Error::invalid(format!(
                "The trigger '{name}' is not for the operation '{operation}'."
            )));
        }
        script_of(&found).map(Some)
    }
}

fn shown(container: &Container, body: &Body) -> Vec<u8> {
    let mut text = Vec::new();
    push_document(container.rid(), body, &mut text);
    text
}

fn serves(trigger: TriggerOperation, operation: TriggeringOperation) -> bool {
    match trigger {
        TriggerOperation::All => true,
        TriggerOperation::Create => operation == TriggeringOperation::Create,
        TriggerOperation::Update | TriggerOperation::Replace => operation == TriggeringOperation::Replace,
        TriggerOperation::Delete => operation == TriggeringOperation::Delete,
        TriggerOperation::Upsert => operation == TriggeringOperation::Upsert,
    }
}
