//! The value of a document: a fixed header, a table of its members, then the user's JSON text.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | LSN of the commit that wrote it, filled in by the engine |
//! | 8 | format, 1 |
//! | 9 | flags: 1 = left out of the index at the writer's wish, 2 = indexed at the writer's wish |
//! | 10..14 | sequence in that commit, with the LSN the place in the change feed |
//! | 14..22 | number in the directory and in the rid |
//! | 22..30 | etag stamp |
//! | 30..38 | `_ts`, seconds |
//! | 38..42 | the document's own `ttl`, 0 if it has none |
//! | 42 | how many members the table has, 0 if there is no table |
//! | 43.. | the table (`members`), 3 bytes for each member |
//! | then | the JSON text: minimal, without system properties |
//!
//! All integers are big-endian. The text is what a read sends, with the system properties spliced in before the last
//! brace.

use crate::{Malformed, members};
use astrarium_value::json::seek;
use bytes::{BufMut as _, Bytes};

/// Bytes before the table and the text.
pub const HEADER_LENGTH: usize = 43;
/// Where the header says how many members the table has.
const MEMBER_COUNT: usize = 42;
const FORMAT: u8 = 1;
const FLAG_INDEX_EXCLUDED: u8 = 1;
const FLAG_INDEX_INCLUDED: u8 = 2;

/// What the writer of a document says about indexing it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexDirective {
    /// Nothing: the container's policy decides.
    #[default]
    Default,
    /// Index it.
    Include,
    /// Leave it out.
    Exclude,
}

/// What the database knows about a document beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The commit that wrote this version.
    pub lsn: u64,
    /// Its place within that commit.
    pub sequence: u32,
    /// The document's number in its container.
    pub number: u64,
    /// What the etag is printed from.
    pub etag: u64,
    /// Seconds since 1970 of this version.
    pub timestamp: u64,
    /// The document's own time to live: seconds, -1 for never, `None` if it has none.
    pub ttl: Option<i32>,
    /// What the writer said about indexing it.
    pub index_directive: IndexDirective,
}

/// A stored document: the bytes as the engine gave them, and the header decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The header.
    pub header: Header,
    bytes: Bytes,
    text_start: usize,
}

impl Body {
    /// Reads what the engine stores.
    pub fn decode(bytes: Bytes) -> Result<Body, Malformed> {
        let malformed = Malformed::new("document");
        let header: &[u8; HEADER_LENGTH] =
            bytes.get(..HEADER_LENGTH).and_then(|header| header.try_into().ok()).ok_or(malformed.clone())?;
        let text_start = HEADER_LENGTH + usize::from(header[MEMBER_COUNT]) * members::ENTRY_BYTES;
        if header[8] != FORMAT || text_start > bytes.len() {
            return Err(malformed);
        }
        let u64_at = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| header[at + i]));
        let u32_at = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
        let ttl = u32_at(38).cast_signed();
        let header = Header {
            lsn: u64_at(0),
            sequence: u32_at(10),
            number: u64_at(14),
            etag: u64_at(22),
            timestamp: u64_at(30),
            ttl: (ttl != 0).then_some(ttl),
            index_directive: match header[9] & (FLAG_INDEX_EXCLUDED | FLAG_INDEX_INCLUDED) {
                0 => IndexDirective::Default,
                FLAG_INDEX_INCLUDED => IndexDirective::Include,
                _ => IndexDirective::Exclude,
            },
        };
        Ok(Body { header, bytes, text_start })
    }

    /// Makes the bytes to store from text that was written after [`HEADER_LENGTH`] free bytes.
    pub fn in_place(header: Header, mut bytes: Vec<u8>) -> Body {
        let (member_count, table) = members::table(&bytes[HEADER_LENGTH..]);
        let mut head = &mut bytes[..HEADER_LENGTH];
        head.put_u64(header.lsn);
        head.put_u8(FORMAT);
        head.put_u8(match header.index_directive {
            IndexDirective::Default => 0,
            IndexDirective::Include => FLAG_INDEX_INCLUDED,
            IndexDirective::Exclude => FLAG_INDEX_EXCLUDED,
        });
        head.put_u32(header.sequence);
        head.put_u64(header.number);
        head.put_u64(header.etag);
        head.put_u64(header.timestamp);
        head.put_i32(header.ttl.unwrap_or(0));
        head.put_u8(member_count);
        let text_start = HEADER_LENGTH + table.len();
        bytes.splice(HEADER_LENGTH..HEADER_LENGTH, table);
        Body { header, bytes: bytes.into(), text_start }
    }

    /// The same document with the place that its commit gave it.
    #[must_use]
    pub fn committed_at(mut self, lsn: u64) -> Body {
        self.header.lsn = lsn;
        self
    }

    /// The same document with another place in its commit.
    #[must_use]
    pub fn at_sequence(self, sequence: u32) -> Body {
        let mut bytes = self.bytes.to_vec();
        bytes[10..14].copy_from_slice(&sequence.to_be_bytes());
        Body { header: Header { sequence, ..self.header }, bytes: bytes.into(), text_start: self.text_start }
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes to store, given away.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The user's JSON.
    pub fn text(&self) -> &[u8] {
        &self.bytes[self.text_start..]
    }

    /// The raw value of one of the outermost members of the user's JSON.
    pub fn member(&self, name: &str) -> Option<&[u8]> {
        match &self.bytes[HEADER_LENGTH..self.text_start] {
            [] => seek::member(self.text(), name),
            table => members::find(table, self.text(), name),
        }
    }
}
