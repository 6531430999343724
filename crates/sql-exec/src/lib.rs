//! Runs plans: documents in, rows out, page by page.
//!
//! [`run`] takes a plan, an [`Input`] (documents of a container with what its indexes could do, or values at hand) and a
//! position, and gives a [`Page`]: rows as JSON, and where to go on. Rows in order of insertion or of an index come as they
//! are found; what an index tells alone is not read from documents; aggregates, groups, other orders and distinct rows look
//! at everything first, on the cores that are free and within a memory budget, and give the page's part of it.
//! Invariants
//! - The same rows in the same order for any page size, as long as the data stays the same.
//! - A position is a place (a document's number, a sort key), never a count, except for ranked results.
//! - Time and memory of a page are bounded; what does not fit is an error that says so. Everything that is looked at is
//!   charged to the meter of the thread (`env::charge`), so a page ends soon after its time, or its client, is gone.
//!
//! Not here: planning (`sql-plan`), the text of continuation tokens (`gateway`), HTTP.

mod access;
mod ahead;
mod announce;
mod budget;
mod error;
mod execution;
mod expired;
mod frame;
mod hashed_key;
mod index_only;
mod kept;
mod long_key;
mod operators;
mod order_start;
mod page;
mod pipeline;
mod report;
mod resume;
mod rows;
mod runtime;
mod scan;
mod sinks;
mod tally;

pub use budget::{KeptUse, Limits};
pub use error::ExecuteError;
pub use kept::KeptRows;
pub use order_start::{OrderStart, StartKey};
pub use page::{Page, describe, expect, run, run_kept};
pub use report::OperatorReport;
pub use resume::Resume;
pub use rows::{AccessWork, Input, PricedWork};
pub use runtime::{Alone, HelperTask, Helpers, Runtime, Team, UserFunctions};
