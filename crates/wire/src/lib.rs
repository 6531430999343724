//! The vocabulary of the protocol: addresses, headers, signatures, tokens, statuses and error bodies.
//!
//! In: the text of a request target or of one header. Out: plain values; and the reverse for what a response carries.
//! Pure functions, no I/O, no HTTP library, no clock (the time is an argument).
//! Invariants
//! - Everything that reads bytes from outside is total: any input gives a value or an error, in time and memory
//!   proportional to the input, and every input has a stated greatest length.
//! - Secrets are compared in constant time and never printed.
//! - The path of a point read ([`address`], [`authorization`], [`date`]) allocates one small string at most per call.
//!
//! Not here: which resource exists (`database`), routing and header maps (`gateway`), partition-key values and hashes
//! (`partition`).

#![warn(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, which is its job")
)]

pub mod address;
pub mod authorization;
pub mod batch;
pub mod binary_json;
pub mod change_feed;
pub mod condition;
pub mod consistency;
pub mod continuation;
pub mod date;
pub mod header_values;
pub mod headers;
pub mod hybrid_row;
pub mod key_text;
pub mod patch;
pub mod percent;
pub mod resource_token;
pub mod session;
pub mod status;
