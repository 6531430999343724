//! What the tests are written with: the server under test, clients for it, expectations.

pub mod expect;
pub mod fixture;
pub mod server;
