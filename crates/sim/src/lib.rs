//! The real database under simulated trouble: clients, crashes, lost syncs, full queues, delays and clock jumps, all from one
//! seed, on one thread, checked against a small model.
//!
//! In: a seed, and what the storage does wrong, if anything. Out: a fingerprint of everything that happened, or what went wrong.
//! A run is a few clients that do things to the few documents of one container at the same time, on the reference engine
//! behind `storage`, which delays, refuses, loses and forgets as the contract of `kv` allows. Now and then everything stops
//! as if the power were cut, and is opened again from what was acknowledged.
//! Invariants
//! - The same seed gives the same run: one thread, no clock but `time`, no chance but `dice`.
//! - The model follows the order of commits, which `storage` sees. So every answer can be judged: a write by the state before
//!   its commit, a read or a refusal by the states between its beginning and its end.
//!
//! Not here: the embedded engine's own crashes (`server`'s and `kv-fjall`'s tests kill processes and tear files), scripts, HTTP.

mod client;
mod dice;
mod executor;
mod history;
mod model;
mod run;
mod storage;
mod time;

pub use run::{SeedFailure, SeedRun, run};
pub use storage::Misdeed;
