//! Scripts in processes of their own, which can be killed.
//!
//! The engine asks whether to stop only while it interprets; a native function of it may loop for years without asking
//! (`docs/decisions/0010-runaway-scripts.md`), and nothing inside a process can end that. So the server has scripts run
//! by further processes of its own program: each thread of the `pool` has one, sends it orders, answers what it asks for,
//! and kills it when the time is over.
//! - `child`: a process as the server has it; `worker`: the process itself; `asking`: what it asks the server for;
//! - `messages`: what they say; `encoding`, `channel`: in which bytes.
//!
//! Invariants
//! - Snapshot, transaction and commit stay with the server; a process has texts only, and no file, environment or
//!   argument of the server.
//! - What a process sends is checked like what a client sends.

mod asking;
mod channel;
mod child;
mod encoding;
mod messages;
mod worker;

pub use child::WorkerCommand;
pub(crate) use child::{Child, Opening, Process, ProcessRun};
pub(crate) use encoding::encoded;
pub use worker::run_worker;
