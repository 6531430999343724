//! How much a script may use, and how many may run: everything a client could make large has its bound here.

use std::time::Duration;

/// What one execution may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Wall-clock time of an execution; then it is ended and nothing of it happens.
    pub time: Duration,
    /// Time after which calls of the collection are no longer accepted, so that a script can wrap up.
    pub accept_time: Duration,
    /// Time after the limit until a thread that did not stop is given up.
    pub grace: Duration,
    /// Memory of the JavaScript heap.
    pub memory_bytes_max: usize,
    /// Stack of the interpreter; the thread has twice as much and a little more.
    pub stack_bytes_max: usize,
    /// Text that `console.log` collects; more is cut off.
    pub log_bytes_max: usize,
    /// The response, or a request that a trigger rewrote.
    pub message_bytes_max: usize,
    /// Source of a script.
    pub source_bytes_max: usize,
    /// What scripts are told about the size of documents; the host enforces it.
    pub document_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(5),
            accept_time: Duration::from_secs(4),
            grace: Duration::from_millis(100),
            memory_bytes_max: 64 << 20,
            stack_bytes_max: 512 << 10,
            log_bytes_max: 256 << 10,
            message_bytes_max: 4 << 20,
            source_bytes_max: 2 << 20,
            document_bytes_max: 2 << 20,
        }
    }
}

/// How scripts share the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What one execution may use.
    pub limits: Limits,
    /// Threads for procedures and triggers; as many run at once.
    pub procedure_threads_max: usize,
    /// Threads for user-defined functions: one for each query page that calls some.
    pub function_threads_max: usize,
    /// Threads beyond those, for each of the two kinds, while as many are lost to scripts that cannot be stopped.
    pub runaway_threads_max: usize,
    /// Executions that may wait for a thread.
    pub waiting_max: usize,
    /// How long they wait.
    pub waiting_time: Duration,
    /// Bytecode kept for the next execution.
    pub cache_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            procedure_threads_max: 16,
            function_threads_max: 32,
            runaway_threads_max: 8,
            waiting_max: 1_000,
            waiting_time: Duration::from_secs(5),
            cache_bytes_max: 64 << 20,
        }
    }
}
