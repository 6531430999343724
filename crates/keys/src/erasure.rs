//! Deletes of logical partitions that are not done yet, in space `Meta`: `09 | container rid | number (8)` -> [`ErasureRecord`].
//!
//! Written by commits of the catalog only. A delete of documents in several ranges has a record for each. From the commit on that writes it,
//! nobody sees the documents; then they are erased in steps, in the order of their keys, and the record goes with the last of them.

use crate::{Malformed, Rid, tags};
use bytes::{Buf as _, BufMut as _, Bytes};

const FORMAT: u8 = 1;

/// Documents of one range that are to be erased: `version (8, filled in by the engine) | format 1 | range id (4) | LSN (8)`, then length (2) and bytes
/// of the first key that belongs, of the first beyond, and of the first that was not looked at yet; all without their shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRecord {
    /// The commit of the catalog that wrote it.
    pub version: u64,
    /// The range, or one that those came from which have its documents now.
    pub range_id: u32,
    /// Documents of this LSN and below are meant; later ones were written after the delete.
    pub lsn: u64,
    /// The first key that belongs.
    pub start: Bytes,
    /// The first key beyond.
    pub end: Bytes,
    /// Whatever belongs before this key is erased.
    pub position: Bytes,
}

impl ErasureRecord {
    /// Whether a document belongs, by its key without the shard and its LSN.
    pub fn has(&self, suffix: &[u8], lsn: u64) -> bool {
        lsn <= self.lsn && self.start[..] <= *suffix && *suffix < self.end[..]
    }

    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(27 + self.start.len() + self.end.len() + self.position.len());
        bytes.put_u64(self.version);
        bytes.put_u8(FORMAT);
        bytes.put_u32(self.range_id);
        bytes.put_u64(self.lsn);
        for key in [&self.start, &self.end, &self.position] {
            bytes.put_u16(key.len() as u16);
            bytes.put_slice(key);
        }
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(bytes: &[u8]) -> Result<ErasureRecord, Malformed> {
        decode(bytes).ok_or(Malformed::new("delete of a logical partition"))
    }
}

fn decode(mut bytes: &[u8]) -> Option<ErasureRecord> {
    let version = bytes.try_get_u64().ok()?;
    if bytes.try_get_u8().ok()? != FORMAT {
        return None;
    }
    let (range_id, lsn) = (bytes.try_get_u32().ok()?, bytes.try_get_u64().ok()?);
    let mut key = || {
        let length = usize::from(bytes.try_get_u16().ok()?);
        let (key, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(Bytes::copy_from_slice(key))
    };
    let (start, end, position) = (key()?, key()?, key()?);
    bytes.is_empty().then_some(ErasureRecord { version, range_id, lsn, start, end, position })
}

/// The key of a record.
pub fn erasure_key(container: Rid, number: u64) -> Bytes {
    [&erasure_prefix(container)[..], &number.to_be_bytes()].concat().into()
}

/// What the keys of a container's records begin with.
pub fn erasure_prefix(container: Rid) -> Bytes {
    [&[tags::meta::ERASURE], container.as_bytes()].concat().into()
}

/// The container and the number in such a key.
pub fn read_erasure_key(key: &[u8]) -> Result<(Rid, u64), Malformed> {
    let malformed = || Malformed::new("key of a delete of a logical partition");
    let (rid, number) = key.get(1..).and_then(<[u8]>::split_last_chunk).ok_or_else(malformed)?;
    Ok((Rid::from_bytes(rid).ok_or_else(malformed)?, u64::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_written() {
        let key = |text: &'static [u8]| Bytes::from_static(text);
        let record = ErasureRecord {
            version: 3,
            range_id: 7,
            lsn: 99,
            start: key(b"a"),
            end: key(b"c"),
            position: key(b""),
        };
        let bytes = record.encode();
        assert_eq!(ErasureRecord::decode(&bytes), Ok(record.clone()));
        for length in 0..bytes.len() {
            assert!(ErasureRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        for (suffix, lsn, has) in [("a", 99, true), ("b", 1, true), ("b", 100, false), ("c", 1, false)] {
            assert_eq!(record.has(suffix.as_bytes(), lsn), has, "{suffix} at {lsn}");
        }
        let rid = Rid::container(Rid::database(1), 2);
        assert_eq!(read_erasure_key(&erasure_key(rid, 5)), Ok((rid, 5)));
        assert!(read_erasure_key(&[9, 1]).is_err());
    }
}
