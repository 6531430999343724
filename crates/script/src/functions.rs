//! User-defined functions for one query page: loaded once, called for many rows.
//!
//! In: scripts, and for each call a name and values. Out: a value, or an error that names the function.
//! The functions live in one sandbox on a thread of their own, for the reason scripts do: a call that cannot be stopped
//! must not hold the thread of the query. A call hands its values over and waits, which takes some microseconds.
//! Invariants
//! - One call at a time; callers on several threads take turns.
//! - After a call that took too much time or memory the session is closed: every further call fails at once.
//! - Functions find no collection, no context and no host.
//!
//! Not here: which functions a query names, and how often it may call them (`sql-exec`).

mod handoff;

use crate::api::Start;
use crate::cache::Cache;
use crate::compile::{NO_FUNCTION, compile};
use crate::deadline::Deadline;
use crate::exception::{Thrown, caught};
use crate::pool::{Lost, Pool, Ticket};
use crate::sandbox::{Hooks, Sandbox};
use crate::values::{Unusable, from_script, to_script};
use crate::{Error, Limits, Script};
use astrarium_env::Env;
use astrarium_value::Value;
use handoff::{Closed, Handoff};
use parking_lot::Mutex;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function};
use std::sync::Arc;
use std::time::Duration;

/// The functions of one query page. Dropping it ends it.
pub struct UdfSession {
    work: Arc<SessionWork>,
    pool: Arc<Pool>,
    time: Duration,
    /// Held during a call; empty before the first.
    ticket: Mutex<Option<Arc<Ticket>>>,
}

/// What the thread of the session needs.
struct SessionWork {
    cache: Arc<Cache>,
    limits: Limits,
    functions: Vec<Script>,
    env: Env,
    calls: Handoff,
}

impl UdfSession {
    pub(crate) fn new(
        pool: Arc<Pool>,
        cache: Arc<Cache>,
        limits: Limits,
        functions: Vec<Script>,
        env: Env,
        time: Duration,
    ) -> UdfSession {
        let work = Arc::new(SessionWork { cache, limits, functions, env, calls: Handoff::default() });
        UdfSession { work, pool, time, ticket: Mutex::new(None) }
    }

    /// Calls a function. Blocks, at most for the time of the session.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, Error> {
        let Some(index) = self.work.functions.iter().position(|function| &*function.name == name) else {
            let message = "there is no function of that name.".to_owned();
            return Err(Error::Compile { name: name.into(), message });
        };
        let mut ticket = self.ticket.lock();
        if ticket.is_none() {
            *ticket = Some(self.start());
        }
        match self.work.calls.call(index, arguments.to_vec()) {
            Ok(result) => result,
            Err(Closed::Busy) => Err(Error::Busy),
            Err(Closed::Late) => Err(Error::Timeout { name: name.into() }),
            Err(Closed::Failed) => {
                let what = "the thread of its session has ended".to_owned();
                Err(Error::Bug { name: name.into(), what })
            }
        }
    }

    fn start(&self) -> Arc<Ticket> {
        let own = Arc::clone(&self.work);
        let ticket = Arc::new(Ticket::new(self.time, move |lost| {
            own.calls.close(match lost {
                Lost::Busy => Closed::Busy,
                Lost::Timeout => Closed::Late,
            });
        }));
        let own = Arc::clone(&self.work);
        let work = Box::new(move |sandbox: Result<&Sandbox, &str>, deadline: Deadline| {
            // Whatever ends this thread's part, a panic included, has to end the waiting of the other side.
            let closing = CloseOnDrop(&own.calls);
            if let Ok(sandbox) = sandbox {
                own.serve(sandbox, deadline);
            }
            drop(closing);
        });
        self.pool.submit(&ticket, work);
        ticket
    }
}

impl Drop for UdfSession {
    fn drop(&mut self) {
        self.work.calls.close(Closed::Failed);
        if let Some(ticket) = &*self.ticket.lock() {
            ticket.cancel();
        }
    }
}

struct CloseOnDrop<'a>(&'a Handoff);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(Closed::Failed);
    }
}

impl SessionWork {
    /// Answers calls until the session is dropped or its time is over.
    fn serve(&self, sandbox: &Sandbox, deadline: Deadline) {
        let end = deadline.end;
        let env = self.env.clone();
        sandbox.state.start(Start { deadline, env, host: None, log_bytes_max: None });
        sandbox.enter(|ctx| {
            let Ok(hooks) = sandbox.hooks(ctx) else {
                return;
            };
            let mut loaded: Vec<Option<Function<'_>>> = self.functions.iter().map(|_| None).collect();
            while let Some((index, arguments)) = self.calls.next(end) {
                let place = &mut loaded[index];
                let result = self.answer(ctx, sandbox, &hooks, &self.functions[index], place, &arguments);
                let is_over = sandbox.state.must_stop();
                self.calls.answer(result);
                if is_over {
                    break;
                }
            }
            // The functions belong to this context and must not be kept longer.
            drop(loaded);
        });
        self.calls.close(Closed::Late);
    }

    fn answer<'js>(
        &self,
        ctx: &Ctx<'js>,
        sandbox: &Sandbox,
        hooks: &Hooks<'js>,
        script: &Script,
        loaded: &mut Option<Function<'js>>,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        let result = self.try_call(ctx, sandbox, hooks, script, loaded, arguments);
        if sandbox.state.is_late() {
            return Err(Error::Timeout { name: Arc::clone(&script.name) });
        }
        let thrown = match result {
            _ if sandbox.state.is_out_of_memory() => Thrown::out_of_memory(),
            Ok(value) => return Ok(value),
            Err(Failed::Known(error)) => return Err(error),
            Err(Failed::Engine(error)) => caught(ctx, sandbox, &error),
        };
        let mut exception = thrown.into_exception();
        exception.text = format!("The user-defined function '{}' failed. {}", script.name, exception.text);
        Err(Error::Exception(exception))
    }

    fn try_call<'js>(
        &self,
        ctx: &Ctx<'js>,
        sandbox: &Sandbox,
        hooks: &Hooks<'js>,
        script: &Script,
        loaded: &mut Option<Function<'js>>,
        arguments: &[Value],
    ) -> Result<Value, Failed> {
        let function = match loaded {
            Some(function) => function,
            None => loaded.insert(self.load(ctx, script)?),
        };
        let mut given = Args::new(ctx.clone(), arguments.len());
        for argument in arguments {
            given.push_arg(to_script(ctx, argument)?)?;
        }
        let result = function.call_arg(given)?;
        while !sandbox.state.must_stop() && ctx.execute_pending_job() {}
        from_script(ctx, hooks, result, self.limits.message_bytes_max).map_err(|unusable| match unusable {
            Unusable::Engine(error) => Failed::Engine(error),
            Unusable::Because(reason) => {
                let text = format!("The user-defined function '{}' failed: {reason}", script.name);
                let exception = crate::Exception { thrown: reason, text, number: None, line: None };
                Failed::Known(Error::Exception(exception))
            }
        })
    }

    fn load<'js>(&self, ctx: &Ctx<'js>, script: &Script) -> Result<Function<'js>, Failed> {
        let compiled = self
            .cache
            .get_or_compile(&script.key, || compile(&self.limits, script))
            .map_err(Failed::Known)?;
        compiled.load(ctx)?.ok_or_else(|| {
            let (name, message) = (Arc::clone(&script.name), NO_FUNCTION.to_owned());
            Failed::Known(Error::Compile { name, message })
        })
    }
}

/// Why a call gave no value.
enum Failed {
    /// The engine reported an error; its exception is pending.
    Engine(rquickjs::Error),
    /// Something of ours.
    Known(Error),
}

impl From<rquickjs::Error> for Failed {
    fn from(error: rquickjs::Error) -> Failed {
        Failed::Engine(error)
    }
}
