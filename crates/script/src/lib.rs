//! Runs the JavaScript that clients store: stored procedures, triggers and user-defined functions.
//!
//! In: a [`Script`] (source, name, version), a [`Call`] (what is asked, with which texts), and a [`Host`], through which
//! the script reads and writes documents. Out: a [`ScriptAnswer`] with the response and the host, or a [`ScriptFailure`].
//! - `source`: which function of a source is the script; `compile`: source to bytecode; `cache`: bytecode by version;
//! - `sandbox`: one fresh, limited JavaScript world; `api`: what scripts find in it;
//! - `execution`: one run of a procedure or trigger; `functions`: user-defined functions for one query;
//! - `pool`: the threads, whose turn it is, and their deadlines; `process`: scripts in processes that can be killed;
//! - `speculation`: which document a script reads first; `safety`: which scripts wait for their writes;
//! - `scripts`: all of it behind one handle.
//!
//! Invariants
//! - Every execution finds a world that no script has seen, byte for byte, so nothing is shared with another one, of the
//!   same client or not.
//! - A script has an effect only through its host, and the host comes back to the caller only when the script completed
//!   in time: whatever a script does after its deadline, or before it throws, is dropped with the host.
//! - Nothing a script does blocks its caller for longer than the time limit and a short grace.
//!
//! Not here: documents, partition keys, SQL, commits and retries after conflicts (`database`), HTTP (`gateway`).

mod api;
mod cache;
mod compile;
#[cfg(test)]
mod counting;
mod deadline;
mod error;
mod exception;
mod execution;
mod functions;
mod host;
mod json;
mod limits;
mod pool;
mod process;
mod safety;
mod sandbox;
mod script;
mod scripts;
mod source;
mod speculation;
mod values;

pub use error::{Error, Exception, Kind};
pub use execution::{Call, ScriptAnswer, ScriptContainer, ScriptFailure, ScriptWork};
pub use functions::PageFunctions;
pub use host::{
    DocumentLink, Host, HostError, IndexAction, Paging, Read, RowPage, ScriptQuery, Spatial, UnseenWrite,
    Written,
};
pub use limits::{Isolation, ScriptLimits, ScriptSettings};
pub use process::{WorkerCommand, run_worker};
pub use script::{Script, ScriptKey, TriggeringOperation};
pub use scripts::{ScriptStatistics, Scripts};
