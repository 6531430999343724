//! JSON as the query language sees it: the value model with its one total order, JSON text, and property paths.
//!
//! - `model`: `Value` and `Object`, what expressions compute with;
//! - `order`: the total order of values, equality and hashing, defined once;
//! - `json`: JSON text, read in place (`json::Text`) and written;
//! - `path`: paths that name one property (`/address/zip`);
//! - `raw_json`: parts of JSON text as they stand in it, unchecked;
//! - `patch`: small changes of a document's text;
//! - `system_properties`: what the database adds to documents, listed once.
//!
//! Everything here is pure and bounded by its input. Not here: key bytes (`keys::ordered`), patterns of indexing
//! policies (`catalog`).

pub mod json;
mod model;
mod order;
pub mod patch;
pub mod path;
pub mod raw_json;
pub mod system_properties;

pub use model::{Object, Value};
pub use order::{compare_numbers, compare_text};
pub use path::{PathError, PropertyPath};
