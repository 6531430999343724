//! The explorer's side of the server: who gets in, by which doors, and what it is told.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod doors;
mod questions;
mod read_only;
mod scripts;
mod sign_in;
mod uploads;
mod world;
