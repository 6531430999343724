//! What tests need around the product: a server in this process, a client that can misbehave, and the case-file runner.
//!
//! [`server`] runs the real gateway over a chosen engine with a clock that tests set. [`http`] and [`request`] are a
//! blocking client over a plain socket: it signs as SDKs do, and sends whatever bytes a test wants to see refused.
//! [`case_file`], [`pattern`], [`case_runner`] and [`rewrite`] read, judge, run and update `tests/rest/**/*.case`.
//! [`postgres`] starts the one PostgreSQL that tests over it share.
//! [`history`] has clients that contend for documents, and a checker of what they saw.
//! [`sql`] does the same for `tests/sql/**/*.case`, against the library rather than a server.
//! Invariants
//! - The client shares no code with the gateway but the hash of a signature and the form of a date, so that a mistake
//!   in reading addresses cannot hide behind the same mistake in writing them.
//! - Nothing here waits without a bound: a server that stops answering fails a test, it does not hang it.
//!
//! Not here: the cases themselves (`tests/rest`), tests of the program (`server`).

pub mod case_file;
pub mod case_runner;
pub mod client;
pub mod history;
pub mod http;
pub mod json;
pub mod pattern;
pub mod postgres;
pub mod request;
pub mod rewrite;
pub mod server;
pub mod sql;

pub use client::Client;
pub use request::{Credential, Key, Request};
pub use server::{EngineKind, Options, Server};
