//! The tests of `tests/script` with scripts in processes of their own, and what only those can do.

mod ahead;
mod announcements;
#[path = "../script/api.rs"]
mod api;
mod batches;
#[path = "../script/errors.rs"]
mod errors;
mod fairness;
#[path = "../script/functions.rs"]
mod functions;
#[path = "../script/hostile.rs"]
mod hostile;
#[path = "../script/isolation.rs"]
mod isolation;
mod kills;
#[path = "../script/language.rs"]
mod language;
#[path = "../script/queries.rs"]
mod queries;
#[path = "../script/support.rs"]
mod support;
#[path = "../script/time.rs"]
mod time;
#[path = "../script/triggers.rs"]
mod triggers;

use astrarium_script::{Isolation, WorkerCommand, run_worker};

/// What tells a run of this program that it is a worker. Besides that it is a filter that no test matches.
const AS_WORKER: &str = "as-a-script-worker";

/// This program is its own worker: started with the name of the test below, it runs that alone.
fn isolation() -> Isolation {
    let program = std::env::current_exe().expect("a program");
    let arguments = ["--exact", "--nocapture", "worker_process", AS_WORKER].map(str::to_owned).to_vec();
    Isolation::Processes(WorkerCommand { program, arguments })
}

#[test]
fn worker_process() {
    if std::env::args().any(|argument| argument == AS_WORKER) {
        run_worker().expect("the server's orders");
    }
}
