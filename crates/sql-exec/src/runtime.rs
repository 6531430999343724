//! What a query is given to run with: clock, memory, threads that help, functions of the user.

use astrarium_env::{Env, Memory, Work};
use astrarium_sql_functions::SpatialMode;
use astrarium_value::Value;
use std::pin::Pin;
use std::sync::Arc;

/// What queries may call besides built-in functions.
pub trait UserFunctions: Send + Sync {
    /// Calls a user-defined function; the error is for the query's author.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String>;

    /// Whether calls cost less when they are announced.
    fn wants_announcements(&self) -> bool {
        false
    }

    /// Tells of calls that are about to come, each by name and arguments, so that they can be made together.
    fn announce(&self, calls: Vec<(Arc<str>, Vec<Value>)>) {
        let _ = calls;
    }
}

/// Threads that help with a page that looks at everything.
pub trait Helpers: Send + Sync {
    /// How many could help at the most.
    fn count_max(&self) -> usize;

    /// Has threads do these, each one of them, as far as there are threads to spare; the others are dropped.
    fn start(&self, tasks: Vec<HelperTask>) -> Box<dyn Team>;
}

/// What one helper does.
pub type HelperTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Helpers at work.
pub trait Team: Send {
    /// Waits until all of them are done, and lets others use the processor meanwhile.
    fn join(self: Box<Self>);
}

/// Where there is nobody to help.
pub struct Alone;

impl Helpers for Alone {
    fn count_max(&self) -> usize {
        0
    }

    fn start(&self, _: Vec<HelperTask>) -> Box<dyn Team> {
        Box::new(Alone)
    }
}

impl Team for Alone {
    fn join(self: Box<Self>) {}
}

/// What a query is given to run with. The meter of its thread has to be in force: it counts for `work`.
#[derive(Clone)]
pub struct Runtime {
    /// Clock and randomness.
    pub env: Env,
    /// What the page is part of: how long that may take, and whether anybody still waits for it.
    pub work: Arc<Work>,
    /// Where the memory comes from.
    pub memory: Memory,
    /// Threads that help.
    pub helpers: Arc<dyn Helpers>,
    /// User-defined functions.
    pub user_functions: Arc<dyn UserFunctions>,
    /// How the container's shapes are meant.
    pub spatial_mode: SpatialMode,
}
