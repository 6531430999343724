//! The history of a shard in space `Log`: every change of every document, for containers that keep it (`changeFeedPolicy`).
//!
//! `04 | shard (8) | LSN (8, filled in at commit) | sequence in the commit (4)` ->
//! `format (1) | operation (1) | seconds since 1970 (8) | length (2) | suffix of the document's key | length (4) | version before |
//! version after`, a version as `body` has it, or nothing. At LSN 0, which no commit has, stands how far history was
//! removed: an LSN (8).

use crate::body::Body;
use crate::{Malformed, tags};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// Where the LSN stands in the key.
pub const LSN_OFFSET: u32 = 9;
const FORMAT: u8 = 1;

/// What happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOperation {
    /// It was not there before.
    Create,
    /// It was there, and has another version now.
    Replace,
    /// It was removed.
    Delete,
    /// Its time was over.
    Expire,
}

/// One change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// What happened.
    pub operation: ChangeOperation,
    /// When, in seconds since 1970.
    pub timestamp: u64,
    /// The document's key without its shard.
    pub suffix: Bytes,
    /// The version before it.
    pub previous: Option<Body>,
    /// The version after it. Its LSN is that of the entry's key.
    pub current: Option<Body>,
}

impl HistoryEntry {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let stored =
            |body: &Option<Body>| body.as_ref().map(|body| body.as_bytes().clone()).unwrap_or_default();
        let (previous, current) = (stored(&self.previous), stored(&self.current));
        let mut bytes = BytesMut::with_capacity(16 + self.suffix.len() + previous.len() + current.len());
        bytes.put_u8(FORMAT);
        bytes.put_u8(match self.operation {
            ChangeOperation::Create => 1,
            ChangeOperation::Replace => 2,
            ChangeOperation::Delete => 3,
            ChangeOperation::Expire => 4,
        });
        bytes.put_u64(self.timestamp);
        bytes.put_u16(u16::try_from(self.suffix.len()).unwrap_or(u16::MAX));
        bytes.put_slice(&self.suffix);
        bytes.put_u32(u32::try_from(previous.len()).unwrap_or(u32::MAX));
        bytes.put_slice(&previous);
        bytes.put_slice(&current);
        bytes.freeze()
    }

    /// Reads what was stored under the key of a commit.
    pub fn decode(mut bytes: Bytes, lsn: u64) -> Result<HistoryEntry, Malformed> {
        let malformed = || Malformed::new("history of a document");
        if bytes.len() < 12 || bytes.get_u8() != FORMAT {
            return Err(malformed());
        }
        let operation = match bytes.get_u8() {
            1 => ChangeOperation::Create,
            2 => ChangeOperation::Replace,
            3 => ChangeOperation::Delete,
            4 => ChangeOperation::Expire,
            _ => return Err(malformed()),
        };
        let timestamp = bytes.get_u64();
        let part = |length: usize, bytes: &mut Bytes| {
            if bytes.len() < length { Err(malformed()) } else { Ok(bytes.split_to(length)) }
        };
        let length = usize::from(bytes.get_u16());
        let suffix = part(length, &mut bytes)?;
        let length = part(4, &mut bytes)?.get_u32() as usize;
        let previous = part(length, &mut bytes)?;
        let version = |bytes: Bytes| (!bytes.is_empty()).then(|| Body::decode(bytes)).transpose();
        let (previous, current) = (version(previous)?, version(bytes)?);
        Ok(HistoryEntry {
            operation,
            timestamp,
            suffix,
            previous,
            current: current.map(|body| body.committed_at(lsn)),
        })
    }
}

/// The key of an entry; give LSN 0 where the engine is to fill it in.
pub fn history_key(shard: u64, lsn: u64, sequence: u32) -> Bytes {
    let mut key = [0; 21];
    key[..9].copy_from_slice(&history_prefix(shard));
    key[9..17].copy_from_slice(&lsn.to_be_bytes());
    key[17..].copy_from_slice(&sequence.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// What all entries of a shard begin with.
pub fn history_prefix(shard: u64) -> [u8; 9] {
    let mut prefix = [0; 9];
    prefix[0] = tags::log::HISTORY;
    prefix[1..].copy_from_slice(&shard.to_be_bytes());
    prefix
}

/// Where it stands how far history was removed.
pub fn horizon_key(shard: u64) -> Bytes {
    history_key(shard, 0, 0)
}

/// How far history was removed.
pub fn read_horizon(value: &[u8]) -> Result<u64, Malformed> {
    let lsn = value.try_into().map_err(|_| Malformed::new("end of a history"))?;
    Ok(u64::from_be_bytes(lsn))
}

/// What stands under [`horizon_key`].
pub fn horizon_value(lsn: u64) -> Bytes {
    Bytes::copy_from_slice(&lsn.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{HEADER_LENGTH, Header, IndexDirective};

    fn body(text: &str) -> Body {
        let header = Header {
            lsn: 9,
            sequence: 1,
            number: 2,
            etag: 3,
            timestamp: 4,
            ttl: None,
            index_directive: IndexDirective::Default,
        };
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes.extend_from_slice(text.as_bytes());
        Body::in_place(header, bytes)
    }

    #[test]
    fn entries_come_back_and_other_bytes_are_refused() {
        let [old, new] = [body(r#"{"id":"a"}"#), body(r#"{"id":"a","n":1}"#)];
        for (operation, previous, current) in [
            (ChangeOperation::Create, None, Some(new.clone())),
            (ChangeOperation::Replace, Some(old.clone()), Some(new)),
            (ChangeOperation::Delete, Some(old.clone()), None),
            (ChangeOperation::Expire, Some(old), None),
        ] {
            let entry = HistoryEntry {
                operation,
                timestamp: 7,
                suffix: Bytes::from_static(b"key"),
                previous,
                current,
            };
            let bytes = entry.encode();
            assert_eq!(HistoryEntry::decode(bytes.clone(), 9), Ok(entry));
            for length in 0..bytes.len() {
                // Some beginnings are an entry again, of another version after it; none panics.
                let _ = HistoryEntry::decode(bytes.slice(..length), 9);
            }
            assert!(HistoryEntry::decode(bytes.slice(1..), 9).is_err());
        }
    }
}
