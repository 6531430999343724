//! Scripts against a small database in memory: the whole crate through its public face.

mod api;
mod errors;
mod functions;
mod hostile;
mod isolation;
mod language;
mod queries;
mod support;
mod threads;
mod time;
mod triggers;

/// `tests/processes` runs the same tests in processes.
fn isolation() -> astrarium_script::Isolation {
    astrarium_script::Isolation::Threads
}
