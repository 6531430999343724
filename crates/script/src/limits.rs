//! How much a script may use, and how many may run: everything a client could make large has its bound here.

use crate::WorkerCommand;
use crate::deadline::Deadline;
use std::time::Duration;

/// What one execution may use.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptLimits {
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

impl Default for ScriptLimits {
    fn default() -> ScriptLimits {
        ScriptLimits {
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

impl ScriptLimits {
    /// The times of an execution that starts now; calls are accepted during the same part of a shortened time as of the
    /// whole limit.
    pub(crate) fn deadline(&self, time: Duration) -> Deadline {
        let accepted_part = self.accept_time.as_secs_f64() / self.time.as_secs_f64().max(1e-9);
        Deadline::starting_now(time, accepted_part)
    }

    /// The stack of a thread that runs scripts: twice the interpreter's, because it checks the depth of its native
    /// recursion by estimate only, and as much as threads usually have for what calls it: a query, say.
    pub(crate) fn thread_stack_bytes(&self) -> usize {
        2 * self.stack_bytes_max + (2 << 20)
    }
}

/// Where scripts run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process. Needs nothing, but a native function of the engine that does not end (a search over a
    /// long text that takes quadratic time, say) cannot be stopped: its caller is answered in time, its thread is lost
    /// until it ends by itself.
    Threads,
    /// In processes of their own, which are killed when their time is over.
    Processes(WorkerCommand),
}

/// How scripts share the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptSettings {
    /// What one execution may use.
    pub limits: ScriptLimits,
    /// Where they run.
    pub isolation: Isolation,
    /// Whether a JavaScript world is put back from an image of its memory after an execution; otherwise each execution has
    /// one that is made for it, from the program's allocator. The image saves some hundred microseconds.
    pub memory_image: bool,
    /// Procedures and triggers that run at once, not counting long-running ones.
    pub procedure_threads_max: usize,
    /// Query pages with user-defined functions that run at once, not counting long-running ones.
    pub function_threads_max: usize,
    /// How many run at once beyond those, for each of the two kinds, while as many are past their first second or cannot be
    /// stopped.
    pub long_threads_max: usize,
    /// Executions that may wait for their turn.
    pub waiting_max: usize,
    /// How long they wait.
    pub waiting_time: Duration,
    /// After how long without work a thread ends, and its process.
    pub idle_time: Duration,
    /// Bytecode kept for the next execution: by all threads together, or by each process.
    pub cache_bytes_max: usize,
}

impl Default for ScriptSettings {
    fn default() -> ScriptSettings {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        ScriptSettings {
            limits: ScriptLimits::default(),
            isolation: Isolation::Threads,
            memory_image: true,
            procedure_threads_max: (2 * cores).clamp(4, 16),
            function_threads_max: (2 * cores).clamp(4, 16),
            long_threads_max: 8,
            waiting_max: 1_000,
            waiting_time: Duration::from_secs(5),
            idle_time: Duration::from_secs(30),
            cache_bytes_max: 64 << 20,
        }
    }
}
