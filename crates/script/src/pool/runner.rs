//! What a thread of the pool runs its tasks with.

use super::PoolSettings;
use crate::Isolation;
use crate::deadline::Stop;
use crate::process::{Child, Process};
use crate::sandbox::Sandbox;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A sandbox of the thread's own, or a process that has one.
pub(crate) enum Runner {
    Thread(Rc<Sandbox>),
    Process(Rc<RefCell<Child>>),
}

impl Runner {
    pub(super) fn new(settings: &PoolSettings) -> Result<Runner, String> {
        let PoolSettings { limits, purpose, memory_image, cache_bytes_max, .. } = settings;
        match &settings.isolation {
            Isolation::Threads => Sandbox::new(limits, *purpose, *memory_image)
                .map(|sandbox| Runner::Thread(Rc::new(sandbox)))
                .map_err(|error| format!("no JavaScript world could be made for it ({error})")),
            Isolation::Processes(command) => {
                Child::start(command, limits, *purpose, *memory_image, *cache_bytes_max)
                    .map(|child| Runner::Process(Rc::new(RefCell::new(child))))
                    .map_err(|error| format!("no process could be started for it ({error})"))
            }
        }
    }

    /// The flag that stops what runs.
    pub(super) fn stop(&self) -> Stop {
        match self {
            Runner::Thread(sandbox) => sandbox.state.stop.clone(),
            Runner::Process(_) => Stop::default(),
        }
    }

    pub(super) fn process(&self) -> Option<Arc<Process>> {
        match self {
            Runner::Thread(_) => None,
            Runner::Process(child) => Some(Arc::clone(child.borrow().process())),
        }
    }

    /// Whether it was told of tasks that nobody has waited for.
    pub(super) fn is_ahead(&self) -> bool {
        match self {
            Runner::Thread(_) => false,
            Runner::Process(child) => child.borrow().is_ahead(),
        }
    }

    /// Makes it ready for the next task; nothing if that is not possible.
    pub(super) fn renew(self) -> Option<Runner> {
        match self {
            Runner::Thread(mut sandbox) => {
                Rc::get_mut(&mut sandbox)?.renew().then_some(Runner::Thread(sandbox))
            }
            // It renews its sandbox itself.
            Runner::Process(child) => {
                let is_usable = child.borrow().is_usable();
                is_usable.then_some(Runner::Process(child))
            }
        }
    }
}
