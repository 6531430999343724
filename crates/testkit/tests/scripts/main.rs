//! Stored procedures, triggers and user-defined functions over HTTP: many at once, hostile ones, and as many as may be.

mod concurrency;
mod functions;
mod hostile;
mod numbers;
mod references;
mod support;
