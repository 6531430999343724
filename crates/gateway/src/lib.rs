//! HTTP in the service's dialect: addresses, signatures, headers and error bodies around a [`database::Account`].
//!
//! A connection is accepted by [`listener`], which tells plain HTTP from TLS by the first byte; `service` takes each
//! request through authentication, operation and authorization to its route; `routes/<resource>.rs` translate between the
//! wire and the account.
//! Invariants
//! - Nothing is told about resources before the signature is checked.
//! - What a request asks for is one value, an `operation`, made in one place; what is allowed and what is done follow
//!   from it alone.
//! - Every answer, errors included, carries an activity id and a request charge; every error has a JSON body.
//! - Body, header, time and number of connections are bounded; a client can hold up nobody but itself.
//!
//! Not here: what an operation does (`database`), what the texts of the protocol mean (`wire`).

mod account_document;
mod answer;
mod authenticate;
mod authorize;
pub mod certificate;
pub mod cluster;
mod counted;
mod cross_origin;
pub mod emulator_ports;
mod error;
mod error_log_limit;
mod explorer;
mod framing;
mod host;
pub mod listener;
mod metrics;
mod offload;
mod operation;
mod outdated;
mod paging;
mod place;
mod readiness;
mod render;
mod request;
mod request_log;
mod routes;
mod service;
mod session;
mod timeouts;
mod token;
mod wakeups;

pub use explorer::ExplorerSettings;
pub use service::{Gateway, Settings};

pub(crate) use astrarium_database as database;
pub(crate) use astrarium_wire as wire;
