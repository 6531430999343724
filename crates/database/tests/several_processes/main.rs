//! Several processes over one storage: accounts of their own, each with its own caches, over one engine. Whatever one has done, the
//! others know.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

mod background;
mod catalog;
mod reads;
mod sessions;
mod throughput;
mod world;
mod writes;
