//! A run of a stored procedure to look at: every call that it makes, and what it would change.
//!
//! In: a stored procedure or a source, a partition key, arguments, whether to commit. Out: a [`ProcedureTrace`], of a script that failed, too.
//! Invariants
//! - It runs as every script does: in the same sandbox, under the same limits, on one view of its range, in turn with others. Without
//!   a commit nothing has happened; with one, what happened is what the trace tells.
//! - The trace is bounded, whatever the script does: calls and bytes beyond are counted, not kept.

use super::host::ScriptHost;
use super::{ScriptExecution, ScriptTurns, fault};
use crate::attempts::Failure;
use crate::charge::{script_charge, terms_charge};
use crate::documents::{checked_key, required};
use crate::{AccountCore, Container, Error, Link, ScriptRequest, ScriptsHandle};
use astrarium_env::Instant;
use astrarium_keys::body::Body;
use astrarium_partition::PartitionKey;
use astrarium_script::{
    self as script, DocumentLink, Host, HostError, IndexAction, Paging, Read, RowPage, Script, ScriptKey,
    ScriptQuery, ScriptWork, Spatial, UnseenWrite, Written,
};
use astrarium_store::{Transaction, push_document};
use astrarium_value::Value;
use astrarium_value::json::{Text, seek};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;

/// Calls that are kept.
const CALLS_MAX: usize = 2_000;
/// Changes that are kept.
const CHANGES_MAX: usize = 1_000;
/// Bytes of calls, and of changes, that are kept.
const BYTES_MAX: usize = 4 << 20;
/// Longest argument or result that is kept; others are told by their length.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What is to run.
#[derive(Debug, Clone, Copy)]
pub enum ProcedureSource<'a> {
    /// A stored procedure.
    Stored(Link<'a>),
    /// A source that is not stored.
    Text(&'a str),
}

/// What a run did.
#[derive(Debug, Clone, Default)]
pub struct ProcedureTrace {
    /// The JSON of its response, if it set one.
    pub body: Option<String>,
    /// Why it failed, if it did. Nothing is committed then.
    pub error: Option<TracedError>,
    /// What it logged.
    pub log: String,
    /// The calls it made, in their order.
    pub calls: Vec<TracedCall>,
    /// How many calls more it made.
    pub calls_left_out: u64,
    /// What it changed, or would change.
    pub changes: Vec<TracedChange>,
    /// How many documents more it changed.
    pub changes_left_out: u64,
    /// Request units.
    pub charge: f64,
    /// Whether the changes are made.
    pub is_committed: bool,
}

/// Why a script failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedError {
    /// What was thrown, or what is wrong, in a sentence.
    pub message: String,
    /// The message with the frames of the script, where it threw.
    pub stack: Option<String>,
    /// The line of the script, counted from one, as far as it is known.
    pub line: Option<u32>,
}

/// A call of a script to its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    /// The function of the container.
    pub function: &'static str,
    /// Its arguments, a JSON array.
    pub arguments: String,
    /// What it gave, as JSON.
    pub result: Option<String>,
    /// Why it gave nothing.
    pub error: Option<String>,
}

/// A document that a script changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedChange {
    /// `create`, `replace` or `delete`.
    pub kind: &'static str,
    /// The document's id.
    pub id: String,
    /// The JSON of the document before.
    pub before: Option<String>,
    /// And after.
    pub after: Option<String>,
}

impl ScriptsHandle<'_> {
    /// Runs a stored procedure, or a source, in one logical partition, and tells what it did; commits that if it is asked to.
    pub async fn trace_procedure(
        self,
        source: ProcedureSource<'_>,
        partition_key: Option<&PartitionKey>,
        arguments: &[u8],
        commits: bool,
    ) -> Result<ProcedureTrace, Error> {
        let ScriptsHandle { core, container } = self;
        let key = checked_key(&container.definition.partition_key, required(partition_key)?)?;
        let turns = ScriptTurns::new(core, container, key);
        let turns = &turns;
        core.attempt_without_bound(container, |trial| async move {
            let (execution, _turn) = turns.next(trial).await?;
            core.trace_once(&execution, source, arguments, commits).await
        })
        .await
    }
}

impl AccountCore {
    async fn trace_once(
        &self,
        execution: &ScriptExecution,
        source: ProcedureSource<'_>,
        arguments: &[u8],
        commits: bool,
    ) -> Result<ProcedureTrace, Failure> {
        let script = match source {
            ProcedureSource::Stored(link) => self.procedure(&execution.container, link).await?,
            ProcedureSource::Text(text) => self.unstored(&execution.container, text),
        };
        let calls = Arc::new(Mutex::new(CallLog::default()));
        let host = TracedHost { inner: execution.host(self).await?, log: Arc::clone(&calls) };
        let work = ScriptWork::Procedure { parameters: arguments.to_vec() };
        let request = ScriptRequest { log: true, ..ScriptRequest::default() };
        let mut call = execution.call(self, work, &request).await?;
        // Every write is answered, so that its result can be told.
        call.ahead = false;
        let ended = self.shared.scripts.execute(script, call, host).await;
        let mut trace = ProcedureTrace::default();
        match ended {
            Ok(answer) => {
                (trace.body, trace.log) = (answer.body, answer.log);
                self.finish_trace(&mut trace, &execution.container, answer.host.inner, commits).await?;
            }
            Err(failure) => {
                let script::ScriptFailure { error, log, host } = *failure;
                trace.charge = script_charge() + host.as_ref().map_or(0.0, |host| host.inner.charge());
                trace.error = Some(own_error(error, &log, host)?);
                trace.log = log;
            }
        }
        let log = std::mem::take(&mut *calls.lock());
        (trace.calls, trace.calls_left_out) = (log.calls, log.left_out);
        Ok(trace)
    }

    /// Tells what a script that ended well changed, and commits it if that is wanted.
    async fn finish_trace(
        &self,
        trace: &mut ProcedureTrace,
        container: &Container,
        mut host: ScriptHost,
        commits: bool,
    ) -> Result<(), Failure> {
        trace.note_changes(container, host.transaction());
        trace.charge = script_charge();
        if commits {
            trace.charge += self.commit_host(host).await?.1;
            trace.is_committed = true;
        } else {
            trace.charge += host.charge();
            let (_, terms) = host.into_transaction().await?.into_counted_batch();
            trace.charge += terms_charge(terms.sum());
        }
        Ok(())
    }

    /// A script that is stored nowhere: no other has its name and version.
    fn unstored(&self, container: &Container, source: &str) -> Script {
        let key = ScriptKey {
            id: format!("{} (not stored)", container.rid()).into(),
            version: format!("{:016x}", self.env().random_u64()).into(),
        };
        Script { key, name: "script".into(), source: source.into() }
    }
}

/// What a script did wrong itself; what is not its fault is a failure of the run.
fn own_error(error: script::Error, log: &str, host: Option<TracedHost>) -> Result<TracedError, Failure> {
    let plain = |message: String| TracedError { message, stack: None, line: None };
    let own = host.and_then(|host| host.inner.into_failure());
    Ok(match (error, own) {
        (script::Error::Exception(exception), _) => {
            TracedError { message: exception.thrown, stack: Some(exception.text), line: exception.line }
        }
        (script::Error::Compile { message, .. }, _) => plain(message),
        (error @ (script::Error::Timeout { .. } | script::Error::TooLarge { .. }), _) => {
            plain(error.to_string())
        }
        (script::Error::Host(_), Some(failure)) => return Err(failure),
        (script::Error::Void { .. }, own) => return Err(own.unwrap_or(Failure::Lost)),
        (error, _) => return Err(Failure::Refused(fault(error, log.to_owned()))),
    })
}

impl ProcedureTrace {
    fn note_changes(&mut self, container: &Container, transaction: &Transaction) {
        let mut bytes = 0;
        for (before, after) in transaction.changed() {
            let kind = match (before, after) {
                (None, Some(_)) => "create",
                (Some(_), Some(_)) => "replace",
                (Some(_), None) => "delete",
                (None, None) => continue,
            };
            let shown = |body: &Body| {
                let mut text = Vec::new();
                push_document(container.rid(), body, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            };
            let (before, after) = (before.map(shown), after.map(shown));
            bytes += before.iter().chain(&after).map(String::len).sum::<usize>();
            if self.changes.len() >= CHANGES_MAX || bytes > BYTES_MAX {
                self.changes_left_out += 1;
                continue;
            }
            let id = after.as_ref().or(before.as_ref()).map(|text| id_of(text)).unwrap_or_default();
            self.changes.push(TracedChange { kind, id, before, after });
        }
    }
}

fn id_of(document: &str) -> String {
    match seek::member(document.as_bytes(), "id").map(seek::value) {
        Some(Value::String(id)) => id.to_string(),
        _ => String::new(),
    }
}

/// The calls of a script.
#[derive(Default)]
struct CallLog {
    calls: Vec<TracedCall>,
    left_out: u64,
    bytes: usize,
}

/// A transaction that keeps what a script asks of it.
struct TracedHost {
    inner: ScriptHost,
    /// Shared with whoever waits for the script: a script that is ended does not give its host back.
    log: Arc<Mutex<CallLog>>,
}

impl TracedHost {
    /// Does a call, and keeps it with what it gave.
    fn traced<T>(
        &mut self,
        function: &'static str,
        arguments: &[Argument<'_>],
        call: impl FnOnce(&mut ScriptHost) -> Result<T, HostError>,
        shown: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, HostError> {
        let answer = call(&mut self.inner);
        let mut log = self.log.lock();
        if log.calls.len() >= CALLS_MAX || log.bytes > BYTES_MAX {
            log.left_out += 1;
            return answer;
        }
        let arguments: Vec<String> = arguments.iter().map(Argument::shown).collect();
        let (result, error) = match &answer {
            Ok(given) => (shown(given).map(shortened), None),
            Err(error) => (None, Some(format!("{}: {}", error.number, error.message))),
        };
        let arguments = format!("[{}]", arguments.join(","));
        log.bytes += arguments.len() + result.as_ref().map_or(0, String::len);
        log.calls.push(TracedCall { function, arguments, result, error });
        answer
    }
}

/// An argument of a call.
enum Argument<'a> {
    /// JSON already.
    Json(&'a str),
    Link(DocumentLink<'a>),
    Etag(Option<&'a str>),
    Paging(Paging<'a>),
}

impl Argument<'_> {
    fn shown(&self) -> String {
        match self {
            Argument::Json(text) => shortened((*text).to_owned()),
            Argument::Link(DocumentLink::Id(id) | DocumentLink::Rid(id)) => json!(id).to_string(),
            Argument::Etag(etag) => json!(etag.map(|etag| json!({"etag": etag}))).to_string(),
            Argument::Paging(paging) => {
                let continuation = paging.continuation;
                json!({"pageSize": paging.row_count_max, "continuation": continuation}).to_string()
            }
        }
    }
}

/// JSON that is not too long; how long it is otherwise. What a script hands over for JSON and is none is told as text.
fn shortened(text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        return json!(format!("({} bytes)", text.len())).to_string();
    }
    if Text::parse(text.as_bytes()).is_ok() { text } else { json!(text).to_string() }
}

fn document(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn rows(page: &RowPage) -> String {
    let rows: Vec<String> = page.rows.iter().map(|row| document(row)).collect();
    let continuation = json!(page.continuation);
    format!("{{\"rows\":[{}],\"continuation\":{continuation}}}", rows.join(","))
}

impl Host for TracedHost {
    fn begin(&mut self, end: Instant) {
        self.inner.begin(end);
    }

    fn create(&mut self, text: &str, index: IndexAction) -> Result<Written, HostError> {
        let arguments = [Argument::Json(text)];
        let call = |host: &mut ScriptHost| host.create(text, index);
        self.traced("createDocument", &arguments, call, |written| Some(document(&written.document)))
    }

    fn upsert(&mut self, text: &str, etag: Option<&str>, index: IndexAction) -> Result<Written, HostError> {
        let arguments = [Argument::Json(text), Argument::Etag(etag)];
        let call = |host: &mut ScriptHost| host.upsert(text, etag, index);
        self.traced("upsertDocument", &arguments, call, |written| Some(document(&written.document)))
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        text: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        let arguments = [Argument::Link(link), Argument::Json(text), Argument::Etag(etag)];
        let call = |host: &mut ScriptHost| host.replace(link, text, etag, index);
        self.traced("replaceDocument", &arguments, call, |written| Some(document(&written.document)))
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        let arguments = [Argument::Link(link), Argument::Etag(etag)];
        self.traced("deleteDocument", &arguments, |host| host.delete(link, etag), |()| None)
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        let arguments = [Argument::Link(link), Argument::Etag(if_none_match)];
        let call = |host: &mut ScriptHost| host.read(link, if_none_match);
        self.traced("readDocument", &arguments, call, |read| match read {
            Read::Document(text) => Some(document(text)),
            Read::NotModified => None,
        })
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        let arguments = [Argument::Paging(paging)];
        self.traced("readDocuments", &arguments, |host| host.read_feed(paging), |page| Some(rows(page)))
    }

    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        let parameters = query.parameters.unwrap_or("[]");
        let asked = format!("{{\"query\":{},\"parameters\":{parameters}}}", json!(query.text));
        let arguments = [Argument::Json(&asked), Argument::Paging(paging)];
        self.traced("queryDocuments", &arguments, |host| host.query(query, paging), |page| Some(rows(page)))
    }

    fn write_unseen(&mut self, write: UnseenWrite<'_>) -> Result<(), HostError> {
        match write {
            UnseenWrite::Create { document, index } => self.create(document, index).map(drop),
            UnseenWrite::Upsert { document, etag, index } => self.upsert(document, etag, index).map(drop),
            UnseenWrite::Replace { link, document, etag, index } => {
                self.replace(link, document, etag, index).map(drop)
            }
            UnseenWrite::Delete { link, etag } => self.delete(link, etag),
        }
    }

    fn spatial(&mut self, function: Spatial<'_>) -> Result<String, HostError> {
        self.inner.spatial(function)
    }

    fn catch_up(&mut self) {
        self.inner.catch_up();
    }

    fn accepts(&mut self) -> bool {
        self.inner.accepts()
    }
}
