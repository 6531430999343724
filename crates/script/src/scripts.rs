//! The one handle on everything: runs scripts, checks them, and runs pages that call user-defined functions.

use crate::cache::Cache;
use crate::compile::{NO_FUNCTION, compile};
use crate::deadline::Deadline;
use crate::execution;
use crate::functions::{self, PageFunctions, Setting};
use crate::pool::{Lost, Pool, PoolSettings, Ticket};
use crate::sandbox::{Purpose, Sandbox};
use crate::{Answer, Call, Error, Failure, Host, Script, Settings};
use astrarium_env::Env;
use parking_lot::Mutex;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Runs scripts. Clones share their threads and their compiled scripts.
#[derive(Clone)]
pub struct Scripts {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    cache: Arc<Cache>,
    procedures: Pool,
    functions: Pool,
}

/// What is going on, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Procedures, triggers and pages with functions that run.
    pub running: usize,
    /// Those that wait for a thread.
    pub waiting: usize,
    /// Threads that did not end when they were told to, and have not ended yet.
    pub runaways: usize,
    /// How many threads did so since the start.
    pub runaways_ever: u64,
    /// Compiled scripts kept.
    pub cached_scripts: usize,
    /// What they take.
    pub cached_bytes: usize,
}

impl Scripts {
    /// No threads are started before they are needed.
    pub fn new(settings: Settings) -> Scripts {
        let pool = |purpose, threads_max| {
            Pool::new(PoolSettings {
                purpose,
                limits: settings.limits.clone(),
                threads_max,
                runaway_threads_max: settings.runaway_threads_max,
                waiting_max: settings.waiting_max,
                waiting_time: settings.waiting_time,
            })
        };
        // Two pools, because a procedure may wait for a query, and the query for a function.
        let procedures = pool(Purpose::Procedure, settings.procedure_threads_max);
        let functions = pool(Purpose::Function, settings.function_threads_max);
        let cache = Arc::new(Cache::new(settings.cache_bytes_max));
        Scripts { inner: Arc::new(Inner { settings, cache, procedures, functions }) }
    }

    /// Runs a stored procedure or trigger. The host comes back with the answer: nothing it staged has happened unless the
    /// caller commits it. Dropping the future ends the script.
    pub async fn execute<H: Host>(
        &self,
        script: Script,
        call: Call,
        host: H,
    ) -> Result<Answer<H>, Box<Failure<H>>> {
        let limits = self.inner.settings.limits.clone();
        let cache = Arc::clone(&self.inner.cache);
        let time = call.time.map_or(limits.time, |time| time.min(limits.time));
        let name = Arc::clone(&script.name);
        let failed = move |error| Err(Box::new(Failure { error, log: String::new(), host: None }));
        let work = move |sandbox: &Rc<Sandbox>, deadline: Deadline| {
            execution::run(sandbox, &cache, &limits, deadline, &script, &call, host)
        };
        self.run(&self.inner.procedures, name, time, work, failed).await
    }

    /// Whether a source can be stored: compiles it, and keeps the result for its first execution. A source without any
    /// function can be, as on the service; it fails when it is to run.
    pub async fn check(&self, script: Script) -> Result<(), Error> {
        let limits = self.inner.settings.limits.clone();
        let cache = Arc::clone(&self.inner.cache);
        let name = Arc::clone(&script.name);
        let work = move |_: &Rc<Sandbox>, _: Deadline| match cache
            .get_or_compile(&script.key, || compile(&limits, &script))
        {
            Err(Error::Compile { message, .. }) if message == NO_FUNCTION => Ok(()),
            result => result.map(drop),
        };
        self.run(&self.inner.procedures, name, self.inner.settings.limits.time, work, Err).await
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
        let name = functions.first().map_or_else(|| "".into(), |function| Arc::clone(&function.name));
        let setting = Setting { cache: Arc::clone(&self.inner.cache), limits, functions, env: env.clone() };
        let work = move |sandbox: &Rc<Sandbox>, deadline: Deadline| {
            Ok(functions::run(sandbox, deadline, setting, page))
        };
        self.run(&self.inner.functions, name, time, work, Err).await
    }

    /// What is going on.
    pub fn statistics(&self) -> Statistics {
        let (procedures, functions) = (self.inner.procedures.usage(), self.inner.functions.usage());
        let (cached_scripts, cached_bytes) = self.inner.cache.usage();
        Statistics {
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
        name: Arc<str>,
        time: Duration,
        work: impl FnOnce(&Rc<Sandbox>, Deadline) -> T + Send + 'static,
        failed: impl Fn(Error) -> T + Clone + Send + 'static,
    ) -> T {
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
        let ticket = Arc::new(Ticket::new(time, on_loss));
        let bug = {
            let name = Arc::clone(&name);
            move |what: &str| Error::Bug { name: Arc::clone(&name), what: what.to_owned() }
        };
        let work = {
            let (failed, bug) = (failed.clone(), bug.clone());
            Box::new(move |sandbox: Result<&Rc<Sandbox>, &str>, deadline: Deadline| {
                answer(match sandbox {
                    Ok(sandbox) => work(sandbox, deadline),
                    Err(what) => failed(bug(what)),
                });
            })
        };
        drop(sender);
        let waiting = CancelOnDrop(Arc::clone(&ticket));
        pool.submit(&ticket, work);
        drop(ticket);
        let result = receiver.await.unwrap_or_else(|_| failed(bug("its thread ended without an answer")));
        drop(waiting);
        result
    }
}

/// Ends a task whose owner has gone.
struct CancelOnDrop(Arc<Ticket>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
