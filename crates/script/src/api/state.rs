//! What one execution has: its host, its clock, its log, and whether it has to end.
//!
//! Lives on the thread of the sandbox and is shared by its native functions.
//! Invariant: a host is present only while the script may use it. It is taken out when the script completed, so that what
//! runs later (a `toJSON` of the response, say) finds none.

use crate::deadline::{Deadline, Stop};
use crate::exception::cut;
use crate::sandbox::Quota;
use crate::{Host, HostError};
use astrarium_env::Env;
use rquickjs::{Ctx, Persistent, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How many rejected promises are remembered one by one; of more only their number is known.
const REJECTIONS_MAX: usize = 64;

/// A rejected promise that nothing handles yet, and its reason. The promise is kept so that its address stays its own.
type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// What the native functions of one sandbox share.
pub(crate) struct SandboxState {
    pub(crate) stop: Stop,
    pub(crate) quota: Rc<Quota>,
    /// Collects garbage; called only where the engine has called out, or is at rest.
    collect: RefCell<Option<Box<dyn Fn()>>>,
    deadline: RefCell<Option<Deadline>>,
    env: RefCell<Option<Env>>,
    host: RefCell<Option<Box<dyn Host>>>,
    request_values: RefCell<Vec<(String, String)>>,
    /// Why the script has to end although its time is not over.
    ending: Cell<bool>,
    out_of_memory: Cell<bool>,
    fatal: RefCell<Option<HostError>>,
    aborted: RefCell<Option<Persistent<Value<'static>>>>,
    rejections: RefCell<Vec<Rejection>>,
    more_rejections: Cell<u64>,
    log: RefCell<Log>,
}

/// Text collected by `console.log`.
#[derive(Default)]
struct Log {
    enabled: bool,
    bytes_max: usize,
    text: String,
}

/// What an execution is started with.
pub(crate) struct Start {
    pub(crate) deadline: Deadline,
    pub(crate) env: Env,
    pub(crate) host: Option<Box<dyn Host>>,
    /// Headers of the request, by name.
    pub(crate) request_values: Vec<(String, String)>,
    /// How much log to keep; nothing if none is wanted.
    pub(crate) log_bytes_max: Option<usize>,
}

impl SandboxState {
    pub(crate) fn new(stop: Stop, quota: Rc<Quota>) -> SandboxState {
        SandboxState {
            stop,
            quota,
            collect: RefCell::new(None),
            deadline: RefCell::new(None),
            env: RefCell::new(None),
            host: RefCell::new(None),
            request_values: RefCell::default(),
            ending: Cell::new(false),
            out_of_memory: Cell::new(false),
            fatal: RefCell::new(None),
            aborted: RefCell::new(None),
            rejections: RefCell::new(Vec::new()),
            more_rejections: Cell::new(0),
            log: RefCell::new(Log::default()),
        }
    }

    pub(crate) fn start(&self, start: Start) {
        self.deadline.replace(Some(start.deadline));
        self.env.replace(Some(start.env));
        self.host.replace(start.host);
        self.request_values.replace(start.request_values);
        let enabled = start.log_bytes_max.is_some();
        self.log.replace(Log { enabled, bytes_max: start.log_bytes_max.unwrap_or(0), text: String::new() });
    }

    pub(crate) fn collect_with(&self, collect: Box<dyn Fn()>) {
        self.collect.replace(Some(collect));
    }

    /// Whether the interpreter has to give up at once. Asked by the engine as it goes, and by all that it calls.
    pub(crate) fn must_stop(&self) -> bool {
        if self.quota.wants_collection()
            && let Some(collect) = &*self.collect.borrow()
        {
            collect();
            self.quota.note_collection();
            if self.quota.is_exceeded() {
                self.out_of_memory.set(true);
            }
        }
        self.ending.get() || self.out_of_memory.get() || self.is_late()
    }

    /// Whether it had to give up for want of memory, however much is free by now.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.out_of_memory.get()
    }

    /// Whether the time is over. A sandbox that nothing was started in has no deadline.
    pub(crate) fn is_late(&self) -> bool {
        self.stop.is_set() || self.deadline.borrow().as_ref().is_some_and(Deadline::has_passed)
    }

    /// Whether another call of the collection is taken on.
    pub(crate) fn accepts(&self) -> bool {
        let in_time = self.deadline.borrow().as_ref().is_none_or(Deadline::accepts);
        in_time && !self.must_stop() && self.host.borrow_mut().as_mut().is_some_and(|host| host.accepts())
    }

    /// The interpreter has been at work for a while.
    pub(crate) fn catch_up(&self) {
        if let Ok(mut host) = self.host.try_borrow_mut()
            && let Some(host) = host.as_mut()
        {
            host.catch_up();
        }
    }

    /// Headers of the request: pairs of name and value.
    pub(crate) fn request_values(&self) -> Vec<Vec<String>> {
        let values = self.request_values.borrow();
        values.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect()
    }

    pub(crate) fn env(&self) -> Env {
        self.env.borrow().clone().unwrap_or_else(Env::system)
    }

    /// Asks the host, unless the script is over.
    pub(crate) fn ask<R>(
        &self,
        question: impl FnOnce(&mut dyn Host) -> Result<R, HostError>,
    ) -> Result<R, HostError> {
        if self.is_late() {
            return Err(HostError::new(408, "The script has used up its time."));
        }
        if self.must_stop() {
            return Err(HostError::new(400, "The script was aborted."));
        }
        let mut host = self.host.borrow_mut();
        let Some(host) = host.as_mut() else {
            return Err(HostError::new(
                400,
                "The script has completed: its collection can no longer be used.",
            ));
        };
        let answer = question(&mut **host);
        if let Err(error) = &answer
            && error.fatal
        {
            self.ending.set(true);
            self.fatal.replace(Some(error.clone()));
        }
        answer
    }

    /// Takes the host out: the script has completed.
    pub(crate) fn complete(&self) -> Option<Box<dyn Host>> {
        self.host.take()
    }

    pub(crate) fn abort(&self, error: Persistent<Value<'static>>) {
        self.ending.set(true);
        self.aborted.borrow_mut().get_or_insert(error);
    }

    /// Why the host ended the script, if it did.
    pub(crate) fn take_fatal(&self) -> Option<HostError> {
        self.fatal.take()
    }

    /// With what the script aborted itself, if it did. From here on the interpreter may run again, to print it.
    pub(crate) fn take_aborted(&self) -> Option<Persistent<Value<'static>>> {
        let aborted = self.aborted.take();
        self.ending.set(false);
        aborted
    }

    /// Notes that a promise was rejected without a handler, or got its handler after all.
    pub(crate) fn track_rejection<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: &Value<'js>,
        reason: &Value<'js>,
        is_handled: bool,
    ) {
        let promise = Persistent::save(ctx, promise.clone());
        let mut rejections = self.rejections.borrow_mut();
        if is_handled {
            let place = rejections.iter().position(|(known, _)| *known == promise);
            match place {
                Some(place) => drop(rejections.remove(place)),
                None => self.more_rejections.set(self.more_rejections.get().saturating_sub(1)),
            }
        } else if rejections.len() < REJECTIONS_MAX {
            rejections.push((promise, Persistent::save(ctx, reason.clone())));
        } else {
            self.more_rejections.set(self.more_rejections.get() + 1);
        }
    }

    /// The reason of the first promise that was rejected and never handled; `Err` if there are too many to know it.
    pub(crate) fn unhandled(&self) -> Option<Result<Persistent<Value<'static>>, u64>> {
        let first = self.rejections.borrow().first().map(|(_, reason)| reason.clone());
        let more = self.more_rejections.get();
        first.map(Ok).or((more > 0).then_some(Err(more)))
    }

    pub(crate) fn logs(&self) -> bool {
        let log = self.log.borrow();
        log.enabled && log.text.len() < log.bytes_max
    }

    /// Adds to the log as much as fits.
    pub(crate) fn log(&self, text: &str) {
        let mut log = self.log.borrow_mut();
        let left = log.bytes_max.saturating_sub(log.text.len());
        log.text.push_str(cut(text, left));
    }

    pub(crate) fn take_log(&self) -> String {
        std::mem::take(&mut self.log.borrow_mut().text)
    }

    /// Lets go of every value of the engine, which must not outlive it.
    pub(crate) fn clear(&self) {
        self.collect.take();
        self.rejections.take();
        self.aborted.take();
    }

    /// Forgets the execution with everything it had: values of the engine, too.
    pub(crate) fn renew(&self) {
        self.rejections.borrow_mut().clear();
        self.aborted.take();
        self.more_rejections.set(0);
        self.deadline.take();
        self.env.take();
        drop(self.complete());
        self.request_values.take();
        self.ending.set(false);
        self.out_of_memory.set(false);
        self.fatal.take();
        self.log.take();
        self.stop.clear();
    }
}
