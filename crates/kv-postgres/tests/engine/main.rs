//! The engine on a real PostgreSQL, started by the tests in a temporary folder; skipped, with the reason, where there is none.

mod contract;
mod failures;
mod ground;
mod indexes;
mod plans;
mod servers;
mod stores;
