//! The one handle on everything: runs scripts, checks them, and runs pages that call user-defined functions.

use crate::cache::Cache;
use crate::compile;
use crate::deadline::{Deadline, Stop};
use crate::execution;
use crate::functions::{self, PageFunctions, PageSetting};
use crate::pool::{Lost, Pool, PoolSettings, PoolWork, Runner, Ticket};
use crate::process::ProcessRun;
use crate::safety::Safety;
use crate::sandbox::Purpose;
use crate::speculation::Speculation;
use crate::{
    Call, Error, Host, Isolation, Script, ScriptAnswer, ScriptFailure, ScriptKey, ScriptLimits,
    ScriptSettings,
};
use astrarium_env::Env;
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Runs scripts. Clones share their threads and their compiled scripts.
#[derive(Clone)]
pub struct Scripts {
    inner: Arc<ScriptsShared>,
}

struct ScriptsShared {
    settings: ScriptSettings,
    cache: Arc<Cache>,
    safety: Arc<Safety>,
    speculation: Arc<Speculation>,
    procedures: Pool,
    functions: Pool,
}

/// What is going on, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptStatistics {
    /// Procedures, triggers and pages with functions that run.
    pub running: usize,
    /// Those that wait for their turn.
    pub waiting: usize,
    /// Processes that scripts run in.
    pub processes: usize,
    /// Executions that did not end when they were told to, and have not ended yet. Those in processes are killed.
    pub runaways: usize,
    /// How many did so since the start.
    pub runaways_ever: u64,
    /// Compiled scripts kept in this process.
    pub cached_scripts: usize,
    /// What they take.
    pub cached_bytes: usize,
}

impl Scripts {
    /// No threads and processes are started before they are needed.
    pub fn new(settings: ScriptSettings) -> Scripts {
        let pool = |purpose, threads_max| {
            Pool::new(PoolSettings {
                purpose,
                limits: settings.limits.clone(),
                isolation: settings.isolation.clone(),
                memory_image: settings.memory_image,
                cache_bytes_max: settings.cache_bytes_max,
                threads_max,
                long_threads_max: settings.long_threads_max,
                waiting_max: settings.waiting_max,
                waiting_time: settings.waiting_time,
                idle_time: settings.idle_time,
            })
        };
        // Two pools, because a procedure may wait for a query, and the query for a function.
        let procedures = pool(Purpose::Procedure, settings.procedure_threads_max);
        let functions = pool(Purpose::Function, settings.function_threads_max);
        let cache = Arc::new(Cache::new(settings.cache_bytes_max));
        let (safety, speculation) = (Arc::default(), Arc::default());
        Scripts {
            inner: Arc::new(ScriptsShared { settings, cache, safety, speculation, procedures, functions }),
        }
    }

    /// Runs a stored procedure or trigger. The host comes back with the answer: nothing it staged has happened unless the
    /// caller commits it. Dropping the future ends the script.
    pub async fn execute<H: Host>(
        &self,
        script: Script,
        mut call: Call,
        host: H,
    ) -> Result<ScriptAnswer<H>, Box<ScriptFailure<H>>> {
        call.ahead = call.ahead && self.inner.safety.allows(&script.key.id);
        let limits = self.inner.settings.limits.clone();
        let (cache, speculation) = (Arc::clone(&self.inner.cache), Arc::clone(&self.inner.speculation));
        let time = call.time.map_or(limits.time, |time| time.min(limits.time));
        let own = script.clone();
        let failed = move |error| Err(Box::new(ScriptFailure { error, log: String::new(), host: None }));
        let job = ExecutionJob { script, call, host, time, limits, cache, speculation };
        let result = self.run(&self.inner.procedures, &own, time, job, failed).await;
        if let Err(failure) = &result
            && let Error::Void { .. } = failure.error
        {
            self.inner.safety.note(own.key.id);
        }
        result
    }

    /// Whether a source can be stored: compiles it, and keeps the result for its first execution. A source without any
    /// function can be, as on the service; it fails when it is to run.
    pub async fn check(&self, script: Script) -> Result<(), Error> {
        let limits = self.inner.settings.limits.clone();
        let cache = Arc::clone(&self.inner.cache);
        let (mut own, time) = (script.clone(), limits.time);
        // That it was compiled soon does not say that it runs soon.
        own.key.id = format!("{} (source)", script.key.id).into();
        let work = move |runner: &Runner, stop: &Stop, _: Deadline| match runner {
            Runner::Thread(_) => compile::check(&cache, &limits, &script),
            Runner::Process(child) => child.borrow_mut().check(stop, &script),
        };
        self.run(&self.inner.procedures, &own, time, work, Err).await
    }

    /// Runs a query page that calls user-defined functions, each by its script's name, on a thread for such pages. All of
    /// it has the time given, at most the limit. Dropping the future ends the functions.
    pub async fn run_page<T: Send + 'static>(
        &self,
        functions: Vec<Script>,
        env: &Env,
        time: Option<Duration>,
        page: impl FnOnce(PageFunctions) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let limits = self.inner.settings.limits.clone();
        let time = time.map_or(limits.time, |time| time.min(limits.time));
        let nothing = || {
            let key = ScriptKey { id: "".into(), version: "".into() };
            Script { key, name: "".into(), source: "".into() }
        };
        let first = functions.first().cloned().unwrap_or_else(nothing);
        let setting =
            PageSetting { cache: Arc::clone(&self.inner.cache), limits, functions, env: env.clone() };
        let work = move |runner: &Runner, stop: &Stop, deadline: Deadline| {
            Ok(functions::run(runner, stop, deadline, setting, page))
        };
        self.run(&self.inner.functions, &first, time, work, Err).await
    }

    /// What is going on.
    pub fn statistics(&self) -> ScriptStatistics {
        let (procedures, functions) = (self.inner.procedures.usage(), self.inner.functions.usage());
        let (cached_scripts, cached_bytes) = self.inner.cache.usage();
        let are_processes = matches!(self.inner.settings.isolation, Isolation::Processes(_));
        ScriptStatistics {
            processes: if are_processes { procedures.threads + functions.threads } else { 0 },
            running: procedures.running + functions.running,
            waiting: procedures.waiting + functions.waiting,
            runaways: procedures.runaways + functions.runaways,
            runaways_ever: procedures.runaways_ever + functions.runaways_ever,
            cached_scripts,
            cached_bytes,
        }
    }

    /// Has work done on a thread of a pool, and waits until it is done or lost.
    async fn run<T: Send + 'static>(
        &self,
        pool: &Pool,
        script: &Script,
        time: Duration,
        job: impl ScriptJob<T>,
        failed: impl Fn(Error) -> T + Clone + Send + 'static,
    ) -> T {
        let name = Arc::clone(&script.name);
        let (sender, receiver) = oneshot::channel();
        // Whoever answers first takes the sender: the thread that works, or the one that watches it.
        let sender = Arc::new(Mutex::new(Some(sender)));
        let answer = {
            let sender = Arc::clone(&sender);
            move |value| {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(value));
                }
            }
        };
        let on_loss = {
            let (answer, failed, name) = (answer.clone(), failed.clone(), Arc::clone(&name));
            move |lost| {
                answer(failed(match lost {
                    Lost::Busy => Error::Busy,
                    Lost::Timeout => Error::Timeout { name },
                }));
            }
        };
        let ticket = Arc::new(Ticket::new(Arc::clone(&script.key.id), time, on_loss));
        let unavailable = {
            let (failed, name) = (failed.clone(), Arc::clone(&name));
            move |what: &str| failed(Error::Unavailable { name, what: what.to_owned() })
        };
        drop(sender);
        let mut waiting = CancelTaskOnDrop { pool, ticket: Some(Arc::clone(&ticket)) };
        pool.submit(&ticket, Box::new(AnsweredJob { job, answer, unavailable, result: PhantomData }));
        drop(ticket);
        let result = receiver.await.unwrap_or_else(|_| {
            failed(Error::Bug { name, what: "its thread ended without an answer".to_owned() })
        });
        waiting.ticket = None;
        result
    }
}

/// What is done on a thread of a pool.
trait ScriptJob<T>: Send + 'static {
    /// See [`PoolWork::announce`].
    fn announce(&mut self, runner: &Runner, time: Duration) -> bool {
        let _ = (runner, time);
        false
    }

    fn run(self, runner: &Runner, stop: &Stop, deadline: Deadline) -> T;
}

impl<T, F: FnOnce(&Runner, &Stop, Deadline) -> T + Send + 'static> ScriptJob<T> for F {
    fn run(self, runner: &Runner, stop: &Stop, deadline: Deadline) -> T {
        self(runner, stop, deadline)
    }
}

/// The run of a procedure or trigger.
struct ExecutionJob<H> {
    script: Script,
    call: Call,
    host: H,
    time: Duration,
    limits: ScriptLimits,
    cache: Arc<Cache>,
    speculation: Arc<Speculation>,
}

impl<H: Host> ScriptJob<Result<ScriptAnswer<H>, Box<ScriptFailure<H>>>> for ExecutionJob<H> {
    fn announce(&mut self, runner: &Runner, time: Duration) -> bool {
        let ExecutionJob { script, call, host, speculation, .. } = self;
        match runner {
            Runner::Thread(_) => false,
            Runner::Process(child) => {
                child.borrow_mut().announce(&ProcessRun { script, call, time, speculation }, host)
            }
        }
    }

    fn run(
        self,
        runner: &Runner,
        stop: &Stop,
        deadline: Deadline,
    ) -> Result<ScriptAnswer<H>, Box<ScriptFailure<H>>> {
        let ExecutionJob { script, call, host, time, limits, cache, speculation } = self;
        match runner {
            Runner::Thread(sandbox) => {
                execution::run(sandbox, &cache, &limits, deadline, &script, &call, host)
            }
            Runner::Process(child) => {
                let run = ProcessRun { script: &script, call: &call, time, speculation: &speculation };
                child.borrow_mut().run(stop, &deadline, &run, host)
            }
        }
    }
}

/// A job whose owner waits for its result.
struct AnsweredJob<T, J, A, U> {
    job: J,
    answer: A,
    unavailable: U,
    result: PhantomData<fn() -> T>,
}

impl<T, J, A, U> PoolWork for AnsweredJob<T, J, A, U>
where
    J: ScriptJob<T>,
    A: FnOnce(T) + Send,
    U: FnOnce(&str) -> T + Send,
{
    fn announce(&mut self, runner: &Runner, time: Duration) -> bool {
        self.job.announce(runner, time)
    }

    fn run(self: Box<Self>, runner: Result<&Runner, &str>, stop: &Stop, deadline: Deadline) {
        let AnsweredJob { job, answer, unavailable, .. } = *self;
        answer(match runner {
            Ok(runner) => job.run(runner, stop, deadline),
            Err(what) => unavailable(what),
        });
    }
}

/// Ends a task whose owner has gone.
struct CancelTaskOnDrop<'a> {
    pool: &'a Pool,
    /// Nothing once it has ended.
    ticket: Option<Arc<Ticket>>,
}

impl Drop for CancelTaskOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = &self.ticket {
            self.pool.cancel(ticket);
        }
    }
}
