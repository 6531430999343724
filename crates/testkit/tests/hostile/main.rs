//! Input that no honest client sends, against a running server: each gets its answer, and nothing changes.
//!
//! What can be written as a request and a response stands in `tests/rest`; here is what needs bytes, sizes, many
//! connections or the passing of time.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod bodies;
mod connections;
mod credentials;
mod ids;
mod requests;
mod tls;
mod world;
