//! A real PostgreSQL in a temporary folder, for tests and benches: started, stopped, killed, frozen, replicated.
//!
//! In: the PostgreSQL that this machine has (`Installation::find`). Out: a `Cluster` with its address; standbys of it; a
//! `Proxy` that cuts and stalls connections. Or the store that the environment names, for tests that need nothing but an address.
//! Invariants
//! - Nothing outlives the program that asked for it, however that ends: a small guard (`guard.rs`) ends PostgreSQL and removes
//!   its folders as soon as the pipe to this program closes.
//! - PostgreSQL refuses to run as root, so root lends it the user `postgres`, or `nobody`.
//! - It is reached over loopback only, by whoever may use this machine, without a password.
//! - Everything blocks, nothing needs a runtime; what waits has a deadline, and tells the end of PostgreSQL's log if it misses it.
//!
//! Not here: any statement about our own schema, any client of PostgreSQL but its `psql`.

mod cluster;
mod guard;
mod installation;
mod named;
mod ports;
mod processes;
mod proxy;
mod readiness;
mod replication;
mod template;

pub use cluster::{Cluster, Settings};
pub use installation::{Installation, Missing};
pub use named::named_store;
pub use proxy::Proxy;
pub use replication::urls;

/// What went wrong, with the end of PostgreSQL's log where that says more. Nobody's fault but the machine's or the test's:
/// show it and fail.
#[derive(Debug)]
pub struct Error {
    what: String,
}

impl Error {
    fn new(what: impl Into<String>) -> Error {
        Error { what: what.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// Says what was being done when an operation of the machine failed.
trait While<T> {
    fn while_doing(self, what: &str) -> Result<T, Error>;
}

impl<T, E: std::fmt::Display> While<T> for Result<T, E> {
    fn while_doing(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| Error::new(format!("{what}: {error}")))
    }
}
