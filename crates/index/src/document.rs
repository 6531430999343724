//! A document as indexes see it: its text, and what the database adds.

use astrarium_keys::index_expiry::ExpiryTerm;
use astrarium_value::Value;
use astrarium_value::json::Node;
use std::sync::Arc;

/// What a document's entries are made from.
pub struct Document<'a> {
    /// The user's JSON, an object.
    pub root: Node<'a>,
    /// System properties that can be indexed, and computed properties: names at the top of the document.
    pub added: &'a [(Arc<str>, Value)],
    /// The part of the document's key that names its logical partition.
    pub partition: &'a [u8],
    /// When it expires, if it does.
    pub expiry: Option<ExpiryTerm>,
    /// Whether it is left out of the index.
    pub is_excluded: bool,
}
