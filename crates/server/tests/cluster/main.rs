//! Several servers over PostgreSQL under everything that can happen to them: what clients saw is one history, nothing
//! acknowledged is lost, others carry on, and all of it recovers by itself.
//!
//! Each scenario is a file. Clients are those of `testkit::history`, spread over all servers, and plain writers of each server
//! (`pulse`) that also tell how long nobody was served. A run ends with a check of the whole account by the library.
//!
//! `ASTRARIUM_LONG=1` makes runs ten times as long; `ASTRARIUM_CLUSTER_SEED` sets the choices (printed with every run).
//! Where PostgreSQL is missing, everything is skipped with a word.

mod catalog;
mod failover;
mod freezing;
mod full_disk;
mod kills;
mod network;
mod process;
mod pulse;
mod sharing;
mod site;
mod store_outage;
mod stores;
mod story;
