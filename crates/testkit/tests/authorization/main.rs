//! Every route, verb and header trick with every kind of credential: nobody changes or learns what is not theirs.
//!
//! `walk` sends them all and compares the whole account before and after; `scopes` tries what one kind of token may and may
//! not do, which needs requests made for it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod scopes;
mod walk;
mod world;
