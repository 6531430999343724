//! Tests of the query language against the library: case files, a stage to run queries on, and a second opinion.
//!
//! [`case_file`] takes a file apart, [`stage`] holds its containers on an engine and runs queries page by page,
//! [`answer`] judges rows and refusals, [`runner`] does it all and rewrites files, [`naive`] evaluates a syntax tree the
//! slow and obvious way, so that the engine can be compared with it.
//! Invariants
//! - A query case passes only if every engine, scope and page size gives the same rows.
//! - Nothing here goes through HTTP; the protocol of queries is the business of `tests/rest` and the SDK tests.
//!
//! Not here: the cases (`tests/sql`).

pub mod answer;
pub mod case_file;
pub mod naive;
pub mod runner;
pub mod stage;
