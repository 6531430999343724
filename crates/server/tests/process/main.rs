//! The program itself: how it starts, what it refuses, and how it bears a full disk and ten thousand connections.
//!
//! Each test runs the built binary on a port of its own and a folder of its own, both gone afterwards.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod connections;
mod damage;
mod disk;
mod doors;
mod emulator;
mod expiry;
mod explorer;
mod fairness;
mod folder;
mod formats;
mod index_damage;
mod logs;
mod mistakes;
mod program;
mod scripts;
mod servers;
mod settings;
mod shell;
mod shutdown;
mod stores;
mod surroundings;
mod tools;
mod transfers;
