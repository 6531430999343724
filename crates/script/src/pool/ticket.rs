//! One task's claim on a thread: how long it may take, how to stop it, and whom to tell if it is lost.

use crate::deadline::Stop;
use parking_lot::Mutex;
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
    /// How long the task may run.
    pub(crate) time: Duration,
    inner: Mutex<Inner>,
}

struct Inner {
    cancelled: bool,
    stop: Option<Stop>,
    on_loss: Option<Box<dyn FnOnce(Lost) + Send>>,
}

impl Ticket {
    pub(crate) fn new(time: Duration, on_loss: impl FnOnce(Lost) + Send + 'static) -> Ticket {
        let on_loss: Box<dyn FnOnce(Lost) + Send> = Box::new(on_loss);
        Ticket { time, inner: Mutex::new(Inner { cancelled: false, stop: None, on_loss: Some(on_loss) }) }
    }

    /// Ends the task as soon as it can be ended: nobody waits for it any more.
    pub(crate) fn cancel(&self) {
        let mut inner = self.inner.lock();
        inner.cancelled = true;
        if let Some(stop) = &inner.stop {
            stop.set();
        }
    }

    /// Tells the owner that the task is lost, unless it was told before.
    pub(crate) fn lose(&self, lost: Lost) {
        let on_loss = self.inner.lock().on_loss.take();
        if let Some(on_loss) = on_loss {
            on_loss(lost);
        }
    }

    /// Ties the ticket to the sandbox the task runs in.
    pub(super) fn attach(&self, stop: Stop) {
        let mut inner = self.inner.lock();
        if inner.cancelled {
            stop.set();
        }
        inner.stop = Some(stop);
    }

    /// The task has ended.
    pub(super) fn detach(&self) {
        let mut inner = self.inner.lock();
        inner.stop = None;
        inner.on_loss = None;
    }

    /// Stops the sandbox: the time is over.
    pub(super) fn stop(&self) {
        if let Some(stop) = &self.inner.lock().stop {
            stop.set();
        }
    }
}
