//! The automatic index: from documents to keys of the engine's set, and from what a query needs back to documents.
//!
//! In: documents and a container's policies; conditions. Out: keys, a pure function of both; numbers of documents.
//! [`IndexSet`] holds the indexes of one container, each of a [`kind`](kinds). A kind says which keys a document has,
//! and which ranges of keys serve a condition or an order; nobody else knows what kinds there are.
//! Invariants
//! - What an index finds is never less than what meets the need; whoever asks checks the documents again, unless the
//!   answer says that it is exact.
//! - Entries are a pure function of document and policy, so that a rebuilt index equals an incremental one byte for byte.
//!
//! Not here: SQL (`sql-plan` translates filters into needs), the layout of keys (`keys`), documents (`store`).

pub mod condition;

pub use condition::{Condition, Need, OrderPath, Path, PathStep, Predicate, Type};

mod costs;
mod document;
mod entries;
pub mod entry;
pub mod expiry;
pub mod finder;
mod index_set;
mod indexes;
pub mod kinds;
mod policy;

pub use costs::IndexPathCost;
pub use document::Document;
pub use entries::Entries;
pub use finder::{Candidates, Finder};
pub use index_set::{Access, IndexSet, LeftOut};
pub use indexes::{Compute, IndexChanges, Indexes, Stored};
pub use kinds::{IndexKind, Ordered, Served, TermRange, Together};
