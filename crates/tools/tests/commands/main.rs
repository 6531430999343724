//! The commands against the real server, in this process.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod dumping;
mod exporting;
mod importing;
mod meddler;
mod parquet;
mod seeding;
mod troubles;
mod world;
