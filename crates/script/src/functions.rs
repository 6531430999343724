//! User-defined functions for one query page: loaded once, called for many rows.
//!
//! In: scripts, and for each call a name and values. Out: a value, or an error that names the function.
//! The whole page is run on a thread of the `pool`; whoever wants the page waits elsewhere, and hears in time even if a
//! call cannot be stopped. The functions are in a sandbox of that thread, where a call is a call, or in its process, where
//! a call is two messages.
//! Invariants
//! - A thread runs one page at a time, and its functions are gone when the page is done.
//! - After a call that took too much time or memory every further call of the page fails at once.
//! - Functions find no collection, no context and no host.
//!
//! Not here: which functions a query names, and how often it may call them (`sql-exec`).

use crate::api::Start;
use crate::cache::Cache;
use crate::compile::{NO_FUNCTION, compile};
use crate::deadline::{Deadline, Stop};
use crate::exception::{Thrown, caught};
use crate::pool::Runner;
use crate::process::{Child, encoded};
use crate::sandbox::Sandbox;
use crate::values::{Unusable, from_script, to_script};
use crate::{Error, Script, ScriptLimits};
use astrarium_env::Env;
use astrarium_value::Value;
use hashbrown::HashMap;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Persistent};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Calls the functions of the page that runs on this thread. On other threads there are none.
#[derive(Debug, Clone, Copy)]
pub struct PageFunctions(());

/// What a page has besides its sandbox.
pub(crate) struct PageSetting {
    pub(crate) cache: Arc<Cache>,
    pub(crate) limits: ScriptLimits,
    pub(crate) functions: Vec<Script>,
    pub(crate) env: Env,
}

thread_local! {
    /// The page of this thread. Its values belong to one thread, while queries want what can be sent to others.
    static PAGE: RefCell<Option<Placed>> = const { RefCell::new(None) };
}

/// A page, where its functions are.
enum Placed {
    Thread(FunctionPage),
    Process(ProcessPage),
}

/// Runs a page whose functions are in a sandbox that nothing has run in yet, or in a process.
pub(crate) fn run<T>(
    runner: &Runner,
    stop: &Stop,
    deadline: Deadline,
    setting: PageSetting,
    work: impl FnOnce(PageFunctions) -> T,
) -> T {
    PAGE.set(Some(match runner {
        Runner::Thread(sandbox) => Placed::Thread(FunctionPage::new(sandbox, deadline, setting)),
        Runner::Process(child) => {
            let (child, stop) = (Rc::clone(child), stop.clone());
            Placed::Process(ProcessPage {
                child,
                stop,
                deadline,
                setting,
                is_open: Cell::new(false),
                ready: RefCell::default(),
            })
        }
    }));
    // However the work ends, by a panic too, the functions must not outlive their sandbox.
    let _cleared = ClearOnDrop;
    work(PageFunctions(()))
}

struct ClearOnDrop;

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        PAGE.set(None);
    }
}

impl PageFunctions {
    /// Calls a function. Blocks, at most for the time of the page.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, Error> {
        PAGE.with_borrow(|page| {
            let functions = match page {
                Some(Placed::Thread(page)) => &page.setting.functions,
                Some(Placed::Process(page)) => &page.setting.functions,
                None => {
                    let what = "it was called on a thread that runs no page".to_owned();
                    return Err(Error::Bug { name: name.into(), what });
                }
            };
            let Some(function) = functions.iter().position(|function| &*function.name == name) else {
                let message = "there is no function of that name.".to_owned();
                return Err(Error::Compile { name: name.into(), message });
            };
            match page {
                Some(Placed::Process(page)) => page.call(function, arguments),
                Some(Placed::Thread(page)) => page.call(function, arguments),
                None => Err(Error::Busy),
            }
        })
    }
}

impl PageFunctions {
    /// Whether calls cost less when they are announced.
    pub fn wants_announcements(&self) -> bool {
        PAGE.with_borrow(|page| matches!(page, Some(Placed::Process(_))))
    }

    /// Tells of calls that are about to come, each by name and arguments, so that they can be made together. One that does
    /// not come after all has no effect but the time it took.
    pub fn announce(&self, calls: Vec<(Arc<str>, Vec<Value>)>) {
        PAGE.with_borrow(|page| {
            if let Some(Placed::Process(page)) = page {
                page.announce(calls);
            }
        });
    }
}

/// A page whose functions are in the process of this thread.
struct ProcessPage {
    child: Rc<RefCell<Child>>,
    stop: Stop,
    deadline: Deadline,
    setting: PageSetting,
    is_open: Cell<bool>,
    /// Results of calls that were announced, each for one call.
    ready: RefCell<Ready>,
}

/// A function's place, and the bytes of the arguments.
type Key = (usize, Vec<u8>);
type Ready = HashMap<Key, VecDeque<Result<Value, Error>>, foldhash::fast::RandomState>;

impl ProcessPage {
    fn call(&self, function: usize, arguments: &[Value]) -> Result<Value, Error> {
        let PageSetting { functions, env, .. } = &self.setting;
        if self.is_over() {
            return Err(Error::Timeout { name: Arc::clone(&functions[function].name) });
        }
        if let Some(result) = self.take_ready(function, arguments) {
            return result;
        }
        self.open()?;
        self.child.borrow_mut().call(functions, env, &self.stop, function, arguments)
    }

    fn is_over(&self) -> bool {
        self.stop.is_set() || self.deadline.has_passed() || !self.child.borrow().is_usable()
    }

    fn open(&self) -> Result<(), Error> {
        if self.is_open.replace(true) {
            return Ok(());
        }
        let PageSetting { functions, env, .. } = &self.setting;
        self.child.borrow_mut().open_page(&self.deadline, functions, env)
    }

    fn take_ready(&self, function: usize, arguments: &[Value]) -> Option<Result<Value, Error>> {
        let mut ready = self.ready.borrow_mut();
        if ready.is_empty() {
            return None;
        }
        ready.get_mut(&(function, encoded(arguments)))?.pop_front()
    }

    fn announce(&self, calls: Vec<(Arc<str>, Vec<Value>)>) {
        let PageSetting { functions, env, .. } = &self.setting;
        let place = |name: &str| functions.iter().position(|function| &*function.name == name);
        let calls: Vec<_> =
            calls.into_iter().filter_map(|(name, arguments)| Some((place(&name)?, arguments))).collect();
        let mut ready = self.ready.borrow_mut();
        ready.clear();
        if calls.len() < 2 || self.is_over() || self.open().is_err() {
            return;
        }
        let keys: Vec<Key> =
            calls.iter().map(|(function, arguments)| (*function, encoded(arguments))).collect();
        let results = self.child.borrow_mut().call_many(functions, env, &self.stop, calls);
        for (key, result) in keys.into_iter().zip(results) {
            ready.entry(key).or_default().push_back(result);
        }
    }
}

impl Drop for ProcessPage {
    fn drop(&mut self) {
        if self.is_open.get() {
            self.child.borrow_mut().close_page();
        }
    }
}

/// A page whose functions are in a sandbox of this thread.
pub(crate) struct FunctionPage {
    // Dropped before the sandbox that its values belong to.
    loaded: RefCell<Vec<Option<Persistent<Function<'static>>>>>,
    sandbox: Rc<Sandbox>,
    setting: PageSetting,
}

impl FunctionPage {
    pub(crate) fn new(sandbox: &Rc<Sandbox>, deadline: Deadline, setting: PageSetting) -> FunctionPage {
        let env = setting.env.clone();
        let request_values = Vec::new();
        sandbox.state.start(Start { deadline, env, host: None, request_values, log_bytes_max: None });
        let loaded = setting.functions.iter().map(|_| None).collect();
        FunctionPage { loaded: RefCell::new(loaded), sandbox: Rc::clone(sandbox), setting }
    }

    /// Calls a function, by its place.
    pub(crate) fn call(&self, index: usize, arguments: &[Value]) -> Result<Value, Error> {
        let Some(script) = self.setting.functions.get(index) else {
            return Err(Error::Bug { name: "".into(), what: "a call of no function".to_owned() });
        };
        let state = &self.sandbox.state;
        self.sandbox.enter(|ctx| {
            // What ended an earlier call ends this one before it begins.
            let result = if state.must_stop() { None } else { Some(self.try_call(ctx, index, arguments)) };
            if state.is_late() {
                return Err(Error::Timeout { name: Arc::clone(&script.name) });
            }
            let thrown = match result {
                _ if state.is_out_of_memory() => Thrown::out_of_memory(),
                Some(Ok(value)) => return Ok(value),
                Some(Err(Failed::Known(error))) => return Err(error),
                Some(Err(Failed::Engine(error))) => caught(ctx, &self.sandbox, &error),
                None => Thrown::from_text("Error: The page has ended.".to_owned()),
            };
            let mut exception = thrown.into_exception();
            exception.text =
                format!("The user-defined function '{}' failed. {}", script.name, exception.text);
            Err(Error::Exception(exception))
        })
    }

    fn try_call(&self, ctx: &Ctx<'_>, index: usize, arguments: &[Value]) -> Result<Value, Failed> {
        let function = self.function(ctx, index)?;
        let mut given = Args::new(ctx.clone(), arguments.len());
        for argument in arguments {
            given.push_arg(to_script(ctx, argument)?)?;
        }
        let result = function.call_arg(given)?;
        while !self.sandbox.state.must_stop() && ctx.execute_pending_job() {}
        let bytes_max = self.setting.limits.message_bytes_max;
        from_script(ctx, &self.sandbox, result, bytes_max).map_err(|unusable| match unusable {
            Unusable::Engine(error) => Failed::Engine(error),
            Unusable::Because(reason) => {
                let name = &self.setting.functions[index].name;
                let text = format!("The user-defined function '{name}' failed: {reason}");
                let exception = crate::Exception { thrown: reason, text, number: None, line: None };
                Failed::Known(Error::Exception(exception))
            }
        })
    }

    /// The function, loaded when it is called first.
    fn function<'js>(&self, ctx: &Ctx<'js>, index: usize) -> Result<Function<'js>, Failed> {
        if let Some(saved) = &self.loaded.borrow()[index] {
            return Ok(saved.clone().restore(ctx)?);
        }
        let PageSetting { cache, limits, functions, .. } = &self.setting;
        let script = &functions[index];
        let compiled =
            cache.get_or_compile(&script.key, || compile(limits, script)).map_err(Failed::Known)?;
        let function = compiled.load(ctx)?.ok_or_else(|| {
            let (name, message) = (Arc::clone(&script.name), NO_FUNCTION.to_owned());
            Failed::Known(Error::Compile { name, message })
        })?;
        self.loaded.borrow_mut()[index] = Some(Persistent::save(ctx, function.clone()));
        Ok(function)
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
