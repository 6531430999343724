//! Tests of the whole engine: the contract, the same answers as the engine in memory, damage, folders, processes.

mod contract;
mod damage;
mod differential;
mod fixture;
mod folder;
mod processes;
