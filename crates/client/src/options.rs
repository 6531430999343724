//! What a client is made from.

use crate::endpoint::connection_string;
use astrarium_env::{Clock, SystemClock};
use astrarium_wire::key_text::EMULATOR_KEY;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the local server listens unless it is told otherwise.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:8081";

/// How to reach an account, and how long to try.
#[derive(Clone)]
pub struct ClientOptions {
    /// URL of the account.
    pub endpoint: String,
    /// Its key, base64.
    pub key: String,
    /// Accept any certificate. A server on this machine is believed without.
    pub insecure: bool,
    /// PEM file with the authority to trust instead of the system's.
    pub authority: Option<PathBuf>,
    /// Most connections at once.
    pub connections_max: usize,
    /// Longest time for one answer.
    pub answer_timeout: Duration,
    /// How long a request is tried again in all; no try begins later.
    pub patience: Duration,
    /// Longest answer that is read.
    pub answer_bytes_max: usize,
    /// The clock that requests are dated by.
    pub clock: Arc<dyn Clock>,
    /// What the client calls itself.
    pub user_agent: String,
}

impl ClientOptions {
    /// For an endpoint and a key. The endpoint may be a whole connection string, whose key then counts.
    pub fn new(endpoint: &str, key: &str) -> ClientOptions {
        let (endpoint, key) = match connection_string(endpoint) {
            Some((endpoint, own)) => (endpoint, own.unwrap_or_else(|| key.to_owned())),
            None => (endpoint.to_owned(), key.to_owned()),
        };
        ClientOptions {
            endpoint,
            key,
            insecure: false,
            authority: None,
            connections_max: 16,
            answer_timeout: Duration::from_secs(65),
            patience: Duration::from_mins(1),
            answer_bytes_max: 64 << 20,
            clock: Arc::new(SystemClock),
            user_agent: concat!("astrarium/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Default for ClientOptions {
    /// For the local server with its well-known key.
    fn default() -> ClientOptions {
        ClientOptions::new(DEFAULT_ENDPOINT, EMULATOR_KEY)
    }
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClientOptions").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
