//! Scripts against a small database in memory: the whole crate through its public face.

mod api;
mod errors;
mod functions;
mod hostile;
mod isolation;
mod language;
mod queries;
mod support;
mod time;
mod triggers;
