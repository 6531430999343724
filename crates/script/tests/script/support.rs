//! A host with a map of documents, and short ways to run scripts on it.

use astrarium_env::{Env, ManualClock, Random};
use astrarium_script::{
    Call, DocumentLink, Error, Host, HostError, IndexAction, Paging, Read, RowPage, Script, ScriptAnswer,
    ScriptContainer, ScriptFailure, ScriptKey, ScriptLimits, ScriptQuery, ScriptSettings, ScriptWork,
    Scripts, Spatial, Written,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// One transaction over documents in memory: what is written is in its own copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryHost {
    pub(crate) documents: BTreeMap<String, Value>,
    /// What was left out of the index, in order.
    pub(crate) unindexed: Vec<String>,
    /// How many calls came, in all copies of this host.
    pub(crate) calls: Arc<AtomicUsize>,
    /// After how many calls no more is accepted.
    pub(crate) accepts_max: Option<usize>,
    pub(crate) version: u64,
}

impl MemoryHost {
    /// A host with these documents.
    pub(crate) fn with(documents: &[Value]) -> MemoryHost {
        let mut host = MemoryHost::default();
        for document in documents {
            host.store(document.clone());
        }
        host
    }

    fn store(&mut self, mut document: Value) -> Value {
        self.version += 1;
        let id = document["id"].as_str().unwrap_or_default().to_owned();
        document["_etag"] = json!(format!("\"{}\"", self.version));
        document["_rid"] = json!(format!("rid-{id}"));
        document["_self"] = json!(format!("dbs/DB==/colls/COLL=/docs/rid-{id}/"));
        self.documents.insert(id, document.clone());
        document
    }

    fn write(&mut self, text: &str, index: IndexAction, created: bool) -> Result<Written, HostError> {
        let document: Value =
            serde_json::from_str(text).map_err(|_| HostError::new(400, "The body is not JSON."))?;
        let Some(id) = document["id"].as_str().map(str::to_owned) else {
            return Err(HostError::new(400, "The input content is invalid because 'id' is missing."));
        };
        if text.len() > 2 << 20 {
            return Err(HostError::new(413, "Request size is too large"));
        }
        if index == IndexAction::Exclude {
            self.unindexed.push(id);
        }
        let document = self.store(document);
        Ok(Written { document: document.to_string().into_bytes(), created })
    }

    fn find(&self, link: DocumentLink<'_>) -> Result<&Value, HostError> {
        let found = match link {
            DocumentLink::Id(id) => self.documents.get(id),
            DocumentLink::Rid(rid) => self.documents.values().find(|document| document["_rid"] == rid),
        };
        found.ok_or_else(|| HostError::new(404, "Entity with the specified id does not exist in the system."))
    }

    fn check_etag(&self, id: &str, etag: Option<&str>) -> Result<(), HostError> {
        match (etag, self.documents.get(id)) {
            (Some(etag), Some(document)) if document["_etag"] != etag => {
                Err(HostError::new(412, "One of the specified pre-condition is not met."))
            }
            _ => Ok(()),
        }
    }

    fn page(rows: &[Value], paging: Paging<'_>) -> Result<RowPage, HostError> {
        let from: usize = match paging.continuation {
            None => 0,
            Some(text) => text.parse().map_err(|_| HostError::new(400, "Invalid Continuation Token"))?,
        };
        let count = paging.row_count_max.map_or(usize::MAX, |count| count as usize);
        let to = from.saturating_add(count).min(rows.len());
        let continuation = (to < rows.len()).then(|| to.to_string());
        let rows = rows[from.min(to)..to].iter().map(|row| row.to_string().into_bytes()).collect();
        Ok(RowPage { rows, continuation })
    }
}

impl Host for MemoryHost {
    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let id =
            serde_json::from_str::<Map<String, Value>>(document).ok().and_then(|mut body| body.remove("id"));
        if id.as_ref().and_then(Value::as_str).is_some_and(|id| self.documents.contains_key(id)) {
            return Err(HostError::new(409, "Resource with specified id or name already exists."));
        }
        self.write(document, index, true)
    }

    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let body: Value = serde_json::from_str(document).map_err(|_| HostError::new(400, "no JSON"))?;
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        self.check_etag(&id, etag)?;
        let created = !self.documents.contains_key(&id);
        self.write(document, index, created)
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let id = self.find(link)?["id"].as_str().unwrap_or_default().to_owned();
        self.check_etag(&id, etag)?;
        self.documents.remove(&id);
        self.write(document, index, false)
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let id = self.find(link)?["id"].as_str().unwrap_or_default().to_owned();
        self.check_etag(&id, etag)?;
        self.documents.remove(&id);
        Ok(())
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if link == DocumentLink::Id("broken-storage") {
            return Err(HostError::fatal(503, "The storage is gone."));
        }
        assert!(link != DocumentLink::Id("panic"), "a bug in the host");
        let document = self.find(link)?;
        if if_none_match.is_some_and(|etag| document["_etag"] == etag) {
            return Ok(Read::NotModified);
        }
        Ok(Read::Document(document.to_string().into_bytes()))
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        MemoryHost::page(&self.documents.values().cloned().collect::<Vec<_>>(), paging)
    }

    /// Understands `SELECT * FROM c`, with `WHERE c.name = @parameter` where there are parameters.
    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !query.text.starts_with("SELECT * FROM c") {
            return Err(HostError::new(400, "Syntax error, incorrect syntax near 'SELEC'."));
        }
        let parameters: Value =
            query.parameters.map_or(json!([]), |text| serde_json::from_str(text).expect("JSON"));
        let name = query.text.split_once("WHERE c.").and_then(|(_, rest)| rest.split(' ').next());
        let matches = |row: &&Value| name.is_none_or(|name| row[name] == parameters[0]["value"]);
        let rows: Vec<Value> = self.documents.values().filter(matches).cloned().collect();
        MemoryHost::page(&rows, paging)
    }

    fn spatial(&mut self, function: Spatial<'_>) -> Result<String, HostError> {
        match function {
            Spatial::Distance(first, second) => Ok((first.len() + second.len()).to_string()),
            Spatial::IsValid(_) => Ok("true".to_owned()),
            Spatial::IsValidDetailed(_) => Ok(r#"{"valid":true}"#.to_owned()),
            Spatial::Intersects(..) | Spatial::Within(..) => Err(HostError::new(400, "not in this test")),
        }
    }

    fn accepts(&mut self) -> bool {
        self.accepts_max.is_none_or(|most| self.calls.load(Ordering::Relaxed) < most)
    }
}

/// Most tests share one set of threads.
pub(crate) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| scripts(patient()));

/// Threads of their own, for tests that wear them out.
pub(crate) fn scripts(limits: ScriptLimits) -> Scripts {
    let limits = slowed(limits);
    Scripts::new(ScriptSettings { limits, waiting_time: Duration::from_mins(1), ..settings() })
}

/// `ASTRARIUM_TEST_SLOWNESS` gives scripts so many times as long, for programs that a sanitizer watches.
fn slowed(mut limits: ScriptLimits) -> ScriptLimits {
    let slowness = std::env::var("ASTRARIUM_TEST_SLOWNESS").ok().and_then(|text| text.parse().ok());
    let slowness: u32 = slowness.unwrap_or(1);
    limits.time *= slowness;
    limits.accept_time *= slowness;
    limits
}

/// Limits under which no script ends by time that ends by itself, on whatever machine and beside whatever else; their time only ends a
/// test that hangs. Scripts that do not end are given less with their call (`brief`).
pub(crate) fn patient() -> ScriptLimits {
    ScriptLimits {
        time: Duration::from_mins(10),
        accept_time: Duration::from_mins(8),
        grace: Duration::from_secs(10),
        ..ScriptLimits::default()
    }
}

/// The time of a call that would not end.
pub(crate) const BRIEF: Duration = Duration::from_millis(400);

/// A call of a procedure that would not end.
pub(crate) fn brief() -> Call {
    Call { time: Some(BRIEF), ..procedure(&json!([])) }
}

/// On threads or in processes, as the test program says. With `ASTRARIUM_TEST_MEMORY_IMAGE=off` every piece of the engine's
/// memory comes from the allocator, where a sanitizer sees it.
pub(crate) fn settings() -> ScriptSettings {
    let memory_image = std::env::var("ASTRARIUM_TEST_MEMORY_IMAGE").as_deref() != Ok("off");
    ScriptSettings {
        limits: patient(),
        isolation: crate::isolation(),
        memory_image,
        ..ScriptSettings::default()
    }
}

/// Limits with little time, for tests where every script runs out of it.
pub(crate) fn short() -> ScriptLimits {
    ScriptLimits {
        time: BRIEF,
        accept_time: BRIEF / 2,
        grace: Duration::from_millis(200),
        ..ScriptLimits::default()
    }
}

/// A clock that stands at a second of 2023, and numbers that come again.
pub(crate) fn env() -> Env {
    Env::new(Box::new(ManualClock::at_seconds(1_700_000_000)), Random::from_seed(7))
}

/// A script that no other one is mistaken for.
pub(crate) fn script(name: &str, source: &str) -> Script {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let key = ScriptKey { id: id.into(), version: "1".into() };
    Script { key, name: name.into(), source: source.into() }
}

pub(crate) fn container() -> Arc<ScriptContainer> {
    Arc::new(ScriptContainer {
        self_link: "dbs/DB==/colls/COLL=/".to_owned(),
        alt_link: "dbs/library/colls/books".to_owned(),
        partition_key_paths: vec![vec!["author".to_owned()]],
        quota_current: "documentsSize=1;".to_owned(),
        quota_max: "documentsSize=100;".to_owned(),
    })
}

pub(crate) fn call(work: ScriptWork) -> Call {
    Call {
        work,
        container: container(),
        request_values: Vec::new(),
        env: env(),
        time: None,
        log: true,
        ahead: true,
    }
}

pub(crate) fn procedure(parameters: &Value) -> Call {
    call(ScriptWork::Procedure { parameters: parameters.to_string().into_bytes() })
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

pub(crate) type Ran = Result<ScriptAnswer<MemoryHost>, Box<ScriptFailure<MemoryHost>>>;

/// Runs a procedure.
pub(crate) fn run(source: &str, parameters: &Value, host: MemoryHost) -> Ran {
    let (script, mut call) = (script("test", source), procedure(parameters));
    let ran = block_on(SCRIPTS.execute(script.clone(), call.clone(), host.clone()));
    match ran {
        Err(failure) if matches!(failure.error, Error::Void { .. }) => {
            call.ahead = false;
            block_on(SCRIPTS.execute(script, call, host))
        }
        ran => ran,
    }
}

/// Runs a procedure without parameters on no documents; the response must be this JSON.
pub(crate) fn check(source: &str, expected: &Value) {
    check_on(source, &json!([]), MemoryHost::default(), expected);
}

/// Runs a procedure; returns what it left.
pub(crate) fn check_on(
    source: &str,
    parameters: &Value,
    host: MemoryHost,
    expected: &Value,
) -> ScriptAnswer<MemoryHost> {
    let answer =
        run(source, parameters, host).unwrap_or_else(|failure| panic!("{source}\n{}", failure.error));
    let body: Value =
        answer.body.as_ref().map_or(Value::Null, |body| serde_json::from_str(body).expect("JSON"));
    assert_eq!(&body, expected, "{source}");
    answer
}

/// The body of a procedure in which `answer(value)` sets the response and `collection` is there.
pub(crate) fn with_prologue(body: &str) -> String {
    format!(
        "function test() {{ const collection = getContext().getCollection(); const link = collection.getSelfLink();
            const answer = value => getContext().getResponse().setBody(value);
            const note = (...values) => answer([...(getContext().getResponse().getBody() ?? []), ...values]);
            {body} }}"
    )
}

/// Checks the response of a procedure's body.
pub(crate) fn check_body(body: &str, expected: &Value) {
    check(&with_prologue(body), expected);
}

/// Runs a procedure that has to fail; returns why.
pub(crate) fn fails(source: &str) -> Error {
    match run(source, &json!([]), MemoryHost::default()) {
        Ok(answer) => panic!("{source}\nanswered {:?}", answer.body),
        Err(failure) => failure.error,
    }
}

/// The same for one that either fails or goes on until its time is over, which is then given.
pub(crate) fn fails_within(time: Duration, source: &str) -> Error {
    let call = Call { time: Some(time), ..procedure(&json!([])) };
    let ran = block_on(SCRIPTS.execute(script("test", source), call, MemoryHost::default()));
    ran.err().unwrap_or_else(|| panic!("{source}\nanswered")).error
}

/// A procedure must fail with an exception whose text holds this.
pub(crate) fn check_throws(source: &str, expected: &str) {
    match fails(source) {
        Error::Exception(exception) => {
            assert!(exception.text.contains(expected), "{source}\n{}", exception.text);
        }
        other => panic!("{source}\n{other}"),
    }
}
