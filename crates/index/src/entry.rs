//! What one entry of an index says, for those who answer from entries alone.
//!
//! An entry is the term of a value and the number of the document that has it. The bytes are `keys`' business.

pub use astrarium_keys::index_entry::{Family, is_shortened_term, read_entry, read_term};

use astrarium_keys::index_entry::tag;

/// Whether a term tells no more than the type of its value, an array or object.
pub fn is_type_only(term: &[u8]) -> bool {
    term.first().is_some_and(|first| *first >= tag::ARRAY)
}
