//! One run of a stored procedure or trigger in a sandbox, from its parameters to its response.
//!
//! The script's function is called; then the operations it asked for are done one after the other, each followed by its
//! callback and the jobs of promises, until nothing is left. Only then is the script complete, its host taken away, and
//! its response printed.
//! Invariants
//! - A throw anywhere, in a callback or a promise too, is the failure of the whole script.
//! - Once the time is over nothing of the script is run any more, also not to print its error.
//!
//! Not here: threads and waiting (`pool`, `scripts`), the operations (`api`).

use crate::api::{SandboxState, Start};
use crate::cache::Cache;
use crate::compile::{NO_FUNCTION, compile};
use crate::deadline::Deadline;
use crate::exception::{Thrown, caught, thrown};
use crate::json::{print, read};
use crate::sandbox::{CollectionHooks, Sandbox};
use crate::{Error, Host, Script, ScriptLimits, TriggeringOperation};
use astrarium_env::Env;
use rquickjs::function::Args;
use rquickjs::{Ctx, Object, Value};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// What is asked of a script.
#[derive(Clone)]
pub struct Call {
    /// Procedure or trigger, and what it is given.
    pub work: ScriptWork,
    /// The container it works in.
    pub container: Arc<ScriptContainer>,
    /// Headers of the request that the script may ask for by name.
    pub request_values: Vec<(String, String)>,
    /// Clock and randomness.
    pub env: Env,
    /// How long it may take; at most the limit, and the limit if nothing is said.
    pub time: Option<Duration>,
    /// Whether `console.log` is collected.
    pub log: bool,
    /// Whether the script may go on before a write is done whose result it does not look at.
    pub ahead: bool,
}

/// The kinds of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptWork {
    /// A stored procedure.
    Procedure {
        /// A JSON array of arguments; any other value is the one argument.
        parameters: Vec<u8>,
    },
    /// A trigger before a write.
    PreTrigger {
        /// What is about to happen.
        operation: TriggeringOperation,
        /// The JSON of the document to be written, which the trigger may replace; nothing for a delete.
        document: Option<Vec<u8>>,
    },
    /// A trigger after a write.
    PostTrigger {
        /// What happened.
        operation: TriggeringOperation,
        /// The JSON of the document that was sent; nothing for a delete.
        document: Option<Vec<u8>>,
        /// The JSON of the document as it was written; nothing for a delete.
        written: Option<Vec<u8>>,
    },
}

/// What scripts can learn about their container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptContainer {
    /// `dbs/{rid}/colls/{rid}`, with or without a slash at its end.
    pub self_link: String,
    /// `dbs/{name}/colls/{name}`.
    pub alt_link: String,
    /// The paths of the partition key, each as its names.
    pub partition_key_paths: Vec<Vec<String>>,
    /// What the service says about present sizes, such as `documentsSize=1;`.
    pub quota_current: String,
    /// What the service says about allowed sizes.
    pub quota_max: String,
}

/// What a script that completed left.
#[derive(Debug)]
pub struct ScriptAnswer<H> {
    /// The JSON of the response, or of the request as a pre-trigger left it; nothing if there is none.
    pub body: Option<String>,
    /// What `console.log` collected.
    pub log: String,
    /// The transaction with all its staged writes, for the caller to commit.
    pub host: H,
}

/// What a script that failed left. Its host is for counting what was done, not for committing.
#[derive(Debug)]
pub struct ScriptFailure<H> {
    /// Why.
    pub error: Error,
    /// What `console.log` collected until then; nothing after a timeout.
    pub log: String,
    /// The host, unless the script's thread still has it.
    pub host: Option<H>,
}

/// Runs a script to its end.
pub(crate) fn run<H: Host>(
    sandbox: &Sandbox,
    cache: &Cache,
    limits: &ScriptLimits,
    deadline: Deadline,
    script: &Script,
    call: &Call,
    mut host: H,
) -> Result<ScriptAnswer<H>, Box<ScriptFailure<H>>> {
    let state = &sandbox.state;
    host.begin(deadline.end.into());
    state.start(Start {
        deadline,
        env: call.env.clone(),
        host: Some(Box::new(host)),
        request_values: call.request_values.clone(),
        log_bytes_max: call.log.then_some(limits.log_bytes_max),
    });
    let run = Run { sandbox, state, limits, script };
    let mut kept = None;
    let result = sandbox.enter(|ctx| {
        let result = run.all(ctx, cache, call, &mut kept);
        result.map_err(|end| run.judge(ctx, end))
    });
    let host = kept.or_else(|| state.complete()).and_then(own_host);
    let log = state.take_log();
    match (result, host) {
        (Ok(body), Some(host)) => Ok(ScriptAnswer { body, log, host }),
        (Ok(_), None) => {
            let what = "the host is gone".to_owned();
            let error = Error::Bug { name: Arc::clone(&script.name), what };
            Err(Box::new(ScriptFailure { error, log, host: None }))
        }
        (Err(error), host) => Err(Box::new(ScriptFailure { error, log, host })),
    }
}

fn own_host<H: Host>(host: Box<dyn Host>) -> Option<H> {
    let host: Box<dyn Any> = host;
    host.downcast().ok().map(|host| *host)
}

/// How a run can end early.
enum End {
    /// The engine reported an error; its exception is pending.
    Engine(rquickjs::Error),
    /// Something of ours.
    Known(Error),
    /// A value was thrown that is not pending.
    Thrown(Thrown),
}

impl From<rquickjs::Error> for End {
    fn from(error: rquickjs::Error) -> End {
        End::Engine(error)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Known(error)
    }
}

struct Run<'a> {
    sandbox: &'a Sandbox,
    state: &'a SandboxState,
    limits: &'a ScriptLimits,
    script: &'a Script,
}

impl Run<'_> {
    fn all(
        &self,
        ctx: &Ctx<'_>,
        cache: &Cache,
        call: &Call,
        kept: &mut Option<Box<dyn Host>>,
    ) -> Result<Option<String>, End> {
        let hooks = self.sandbox.hooks(ctx)?;
        let collection = hooks.collection.ok_or_else(|| self.bug("a sandbox without collection"))?;
        let compiled = cache.get_or_compile(&self.script.key, || compile(self.limits, self.script))?;
        let arguments = self.begin(ctx, &collection, call)?;
        let entry = compiled.load(ctx)?.ok_or_else(|| Error::Compile {
            name: Arc::clone(&self.script.name),
            message: NO_FUNCTION.to_owned(),
        })?;
        let mut given = Args::new(ctx.clone(), arguments.len());
        given.push_args(arguments)?;
        entry.call_arg::<Value<'_>>(given)?;
        self.run_jobs(ctx)?;
        while collection.step.call::<_, bool>(())? {
            self.run_jobs(ctx)?;
        }
        self.check_rejections(ctx)?;
        *kept = self.state.complete();
        self.response(ctx, &collection)
    }

    /// Tells the API what this execution is about; returns the arguments of the function.
    fn begin<'js>(
        &self,
        ctx: &Ctx<'js>,
        collection: &CollectionHooks<'js>,
        call: &Call,
    ) -> Result<Vec<Value<'js>>, End> {
        let given = Object::new(ctx.clone())?;
        let mut arguments = Vec::new();
        let (kind, operation, request, response) = match &call.work {
            ScriptWork::Procedure { parameters } => ("procedure", "", Some(parameters), None),
            ScriptWork::PreTrigger { operation, document } => {
                ("pre", operation.name(), document.as_ref(), None)
            }
            ScriptWork::PostTrigger { operation, document, written } => {
                ("post", operation.name(), document.as_ref(), written.as_ref())
            }
        };
        let request = parsed(ctx, request)?;
        if kind == "procedure" {
            arguments = match request.as_array() {
                Some(array) => array.iter().collect::<rquickjs::Result<_>>()?,
                None if request.is_undefined() => Vec::new(),
                None => vec![request.clone()],
            };
        }
        given.set("kind", kind)?;
        given.set("operation", operation)?;
        given.set("requestBody", request)?;
        given.set("responseBody", parsed(ctx, response)?)?;
        let container = &*call.container;
        given.set("selfLink", container.self_link.trim_end_matches('/'))?;
        given.set("altLink", container.alt_link.trim_end_matches('/'))?;
        given.set("partitionKeyPaths", container.partition_key_paths.clone())?;
        given.set("quotaCurrent", container.quota_current.as_str())?;
        given.set("quotaMax", container.quota_max.as_str())?;
        given.set("messageBytesMax", self.limits.message_bytes_max as f64)?;
        given.set("documentBytesMax", self.limits.document_bytes_max as f64)?;
        collection.begin.call::<_, Value<'js>>((given,))?;
        Ok(arguments)
    }

    /// Runs what promises have put off. An endless chain of them ends with the time.
    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), End> {
        while !self.state.must_stop() {
            if !ctx.execute_pending_job() {
                return Ok(());
            }
        }
        Err(self.timeout().into())
    }

    fn check_rejections(&self, ctx: &Ctx<'_>) -> Result<(), End> {
        match self.state.unhandled() {
            None => Ok(()),
            Some(Ok(reason)) => {
                let reason = reason.restore(ctx)?;
                Err(End::Thrown(thrown(ctx, self.sandbox, &reason)))
            }
            Some(Err(count)) => {
                let text = format!("Error: {count} promises were rejected and not handled.");
                Err(End::Thrown(Thrown::from_text(text)))
            }
        }
    }

    fn response<'js>(
        &self,
        ctx: &Ctx<'js>,
        collection: &CollectionHooks<'js>,
    ) -> Result<Option<String>, End> {
        let body: Value<'js> = collection.finish.call(())?;
        let Some(text) = print(ctx, &body)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let bytes_max = self.limits.message_bytes_max;
        if text.len() > bytes_max {
            let (name, bytes) = (Arc::clone(&self.script.name), text.len());
            return Err(Error::TooLarge { name, bytes, bytes_max }.into());
        }
        if self.state.must_stop() {
            return Err(self.timeout().into());
        }
        Ok(Some(text))
    }

    /// Why a run ended: what ended it from outside counts before what the script made of that.
    fn judge(&self, ctx: &Ctx<'_>, end: End) -> Error {
        if let Some(error) = self.state.take_fatal() {
            return Error::Host(error);
        }
        if self.state.is_late() {
            return self.timeout();
        }
        if self.state.is_out_of_memory() {
            return Error::Exception(Thrown::out_of_memory().into_exception());
        }
        if let Some(aborted) = self.state.take_aborted() {
            return match aborted.restore(ctx) {
                Ok(reason) => Error::Exception(thrown(ctx, self.sandbox, &reason).into_exception()),
                Err(error) => self.bug(&error.to_string()),
            };
        }
        let thrown = match end {
            End::Known(error) => return error,
            End::Thrown(thrown) => thrown,
            End::Engine(error) => caught(ctx, self.sandbox, &error),
        };
        // Printing may have taken the rest of the time.
        if self.state.is_late() { self.timeout() } else { Error::Exception(thrown.into_exception()) }
    }

    fn timeout(&self) -> Error {
        Error::Timeout { name: Arc::clone(&self.script.name) }
    }

    fn bug(&self, what: &str) -> Error {
        Error::Bug { name: Arc::clone(&self.script.name), what: what.to_owned() }
    }
}

/// A body that may be missing, as the script sees it.
fn parsed<'js>(ctx: &Ctx<'js>, json: Option<&Vec<u8>>) -> Result<Value<'js>, End> {
    match json {
        Some(json) if !json.is_empty() => Ok(read(ctx, json.as_slice())?),
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}
