//! Rows become documents on their way to a container.

use astrarium_client::key_text;
use astrarium_partition::EffectiveKey;
use astrarium_rows::BadRow;
use astrarium_rows::documents::{DocumentMaker, MadeDocument};
use bytes::Bytes;

/// A document on its way to a container.
#[derive(Debug, Clone)]
pub(crate) struct PreparedDocument {
    /// The number of its row.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) body: Bytes,
    /// Its partition key as a JSON array.
    pub(crate) key: String,
    /// Where that is.
    pub(crate) effective: EffectiveKey,
}

/// The document of a row, or why it is none.
pub(crate) fn prepared(
    maker: &DocumentMaker,
    number: u64,
    text: Vec<u8>,
) -> Result<PreparedDocument, BadRow> {
    let MadeDocument { text, key } = maker.document(number, text)?;
    let effective = maker.key_definition.effective(&key);
    Ok(PreparedDocument { number, body: Bytes::from(text), key: key_text(&key), effective })
}
