//! Indexes and unique keys through the library, on the in-memory engine: policies that change, what is swept, what `verify`
//! finds.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

mod bodies;
mod computed;
mod directives;
mod equality;
mod erasures;
mod expiry;
mod history;
mod interposed;
mod kept;
mod leases;
mod moves;
mod pages;
mod plans;
mod policies;
mod races;
mod readers;
mod rename;
mod resharding;
mod unique_keys;
mod utilization;
mod verify;
mod world;
mod writers;
