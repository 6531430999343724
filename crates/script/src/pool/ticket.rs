//! One task's claim on a thread: how long it may take, how to stop it, and whom to tell if it is lost.

use crate::deadline::Stop;
use crate::process::Process;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Why a task did not do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No thread was free in time.
    Busy,
    /// It did not end in time.
    Timeout,
}

/// The claim. Whoever submitted the task keeps it too, to cancel.
pub(crate) struct Ticket {
    /// The script, or the first function: tasks of one script take turns with those of others.
    pub(crate) script_id: Arc<str>,
    /// How long the task may run.
    pub(crate) time: Duration,
    inner: Mutex<TicketState>,
}

struct TicketState {
    cancelled: bool,
    stop: Option<Stop>,
    process: Option<Arc<Process>>,
    on_loss: Option<Box<dyn FnOnce(Lost) + Send>>,
}

impl Ticket {
    pub(crate) fn new(
        script_id: Arc<str>,
        time: Duration,
        on_loss: impl FnOnce(Lost) + Send + 'static,
    ) -> Ticket {
        let on_loss: Box<dyn FnOnce(Lost) + Send> = Box::new(on_loss);
        let inner = TicketState { cancelled: false, stop: None, process: None, on_loss: Some(on_loss) };
        Ticket { script_id, time, inner: Mutex::new(inner) }
    }

    /// Nobody waits for the task any more: it is told to stop. Returns whether it has not ended yet.
    pub(super) fn cancel(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.cancelled = true;
        if let Some(stop) = &inner.stop {
            stop.set();
        }
        inner.on_loss.is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.inner.lock().cancelled
    }

    /// Tells the owner that the task is lost, unless it was told before.
    pub(crate) fn lose(&self, lost: Lost) {
        let on_loss = self.inner.lock().on_loss.take();
        if let Some(on_loss) = on_loss {
            on_loss(lost);
        }
    }

    /// Ties the ticket to where the task runs.
    pub(super) fn attach(&self, stop: Stop, process: Option<Arc<Process>>) {
        let mut inner = self.inner.lock();
        if inner.cancelled {
            stop.set();
        }
        inner.stop = Some(stop);
        inner.process = process;
    }

    /// The task has ended.
    pub(super) fn detach(&self) {
        let mut inner = self.inner.lock();
        inner.stop = None;
        inner.process = None;
        inner.on_loss = None;
    }

    /// Stops the sandbox: the time is over.
    pub(super) fn stop(&self) {
        if let Some(stop) = &self.inner.lock().stop {
            stop.set();
        }
    }

    /// Kills the process, where there is one: it did not stop.
    pub(super) fn kill(&self) {
        if let Some(process) = &self.inner.lock().process {
            process.kill();
        }
    }

    /// Has the process wait for others: it takes long.
    pub(super) fn step_back(&self) {
        if let Some(process) = &self.inner.lock().process {
            process.step_back();
        }
    }
}
