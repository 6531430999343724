//! Tests of the whole engine: the contract, the same answers as the engine in memory, damage, folders, processes.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod contract;
mod damage;
mod differential;
mod drops;
mod files;
mod fixture;
mod fjall_behaviour;
mod folder;
mod processes;
mod set;
mod set_damage;
mod shard_lives;
mod slow_disk;
