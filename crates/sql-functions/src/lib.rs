//! The built-in functions, operators and aggregates of the query language, pure over `Value`.
//!
//! - one file per group of functions (`string`, `math`, `array`, ...), each built-in an entry of its group's table;
//! - `definition`: what is known about a function, and what an evaluation is given from outside (`Context`);
//! - `registry`: all functions, found by name;
//! - `operators`: arithmetic, bits, comparison, three-valued logic, LIKE, access to members;
//! - `aggregates`: accumulators whose state can be paused and resumed;
//! - `full_text`, `spatial`, `regex`: what those functions are made of, open to whoever builds an index for them.
//!
//! Invariants
//! - Nothing here fails: a wrong type, a bad pattern, a result that would be too large give `Undefined`.
//! - Time and memory of one call are bounded by its arguments, and results by [`limits`]. Time that grows faster than the
//!   arguments is charged to the meter of the thread (`env::charge`), and a call that is stopped ends at once with any value.
//!
//! Not here: argument counts and unknown names (the binder refuses those with the service's messages), scoring in
//! ORDER BY RANK (`RRF` and `FullTextScore` are rewritten by the planner), user-defined functions.

pub mod aggregates;
mod arguments;
mod array;
mod conditional;
mod date_time;
mod definition;
pub mod full_text;
mod integer;
mod item;
pub mod limits;
mod math;
mod object;
pub mod operators;
pub mod regex;
mod registry;
pub mod spatial;
mod string;
mod type_check;
mod utf16;
pub mod vector;

#[cfg(test)]
mod testing;

pub use definition::{
    ANY_COUNT, Context, FunctionIndexUse, ScalarFunction, SpatialMode, TypeName, VectorDefaults,
};
pub use registry::{RankFunction, all, find, groups, is_rank_function, rank_functions, synonyms};
