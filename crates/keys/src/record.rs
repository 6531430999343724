//! Catalog resources in space `Meta`: their keys, and the layout of their values.
//!
//! - `01 | kind | parent rid | number (8)` -> the resource ([`Record`]); a walk lists a feed in order of creation.
//! - `02 | kind | parent rid | id` -> the number (8): from names to resources.
//! - `03 | container rid` -> the container's key ranges ([`KeyRangeRow`]s).
//! - `04 | shard (8)` -> nothing: the shard's documents wait to be removed.
//!
//! The length of the parent's rid is fixed by the kind, so keys of one kind are prefix-free up to the last part.

use crate::{Malformed, Rid, tags};
use bytes::{Buf as _, BufMut as _, Bytes};

/// A kind of catalog resource; the discriminant is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A database.
    Database = 1,
    /// A container; parent: database.
    Container = 2,
    /// A user; parent: database.
    User = 3,
    /// A permission; parent: user.
    Permission = 4,
    /// A client encryption key; parent: database.
    ClientEncryptionKey = 5,
    /// Throughput of a database or container; its id is that resource's rid text.
    Offer = 6,
    /// A stored procedure; parent: container.
    StoredProcedure = 7,
    /// A trigger; parent: container.
    Trigger = 8,
    /// A user-defined function; parent: container.
    UserDefinedFunction = 9,
}

impl RecordKind {
    /// The rid of a resource of this kind from its parent's and its number.
    pub fn rid(self, parent: Rid, number: u64) -> Rid {
        use crate::rid::ChildType;
        match self {
            RecordKind::Database => Rid::database(number as u32),
            RecordKind::Container => Rid::container(parent, number as u32),
            RecordKind::User => Rid::user(parent, number as u32),
            RecordKind::Permission => Rid::permission(parent, number),
            RecordKind::ClientEncryptionKey => Rid::client_encryption_key(parent, number as u32),
            RecordKind::Offer => Rid::offer(number),
            RecordKind::StoredProcedure => Rid::child(parent, ChildType::StoredProcedure, number),
            RecordKind::Trigger => Rid::child(parent, ChildType::Trigger, number),
            RecordKind::UserDefinedFunction => Rid::child(parent, ChildType::UserDefinedFunction, number),
        }
    }
}

/// The key of a resource.
pub fn record_key(kind: RecordKind, parent: Rid, number: u64) -> Bytes {
    let mut key = record_prefix(kind, parent);
    key.put_u64(number);
    key.into()
}

/// What all resources of a kind below a parent begin with.
pub fn record_prefix(kind: RecordKind, parent: Rid) -> Vec<u8> {
    prefix(tags::meta::RECORD, kind, parent)
}

/// The number in a resource's key.
pub fn read_record_number(key: &[u8]) -> Result<u64, Malformed> {
    let bytes = key.last_chunk::<8>().ok_or(Malformed::new("catalog key"))?;
    Ok(u64::from_be_bytes(*bytes))
}

/// The key that finds a resource by its id.
pub fn name_key(kind: RecordKind, parent: Rid, id: &str) -> Bytes {
    let mut key = name_prefix(kind, parent);
    key.extend_from_slice(id.as_bytes());
    key.into()
}

/// What the names of a kind below a parent begin with.
pub fn name_prefix(kind: RecordKind, parent: Rid) -> Vec<u8> {
    prefix(tags::meta::NAME, kind, parent)
}

/// The value of a name key.
pub fn name_value(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// The number in the value of a name key.
pub fn read_name_value(value: &[u8]) -> Result<u64, Malformed> {
    let bytes = value.try_into().map_err(|_| Malformed::new("catalog name"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// The key of the resource that a name leads to, by the name's key and value; nothing if they are no such.
pub fn record_key_of_name(key: &[u8], value: &[u8]) -> Option<Bytes> {
    let kind = *key.get(1)?;
    let parent = key.get(2..2 + parent_length(kind)?)?;
    let number = read_name_value(value).ok()?;
    let mut record = vec![tags::meta::RECORD, kind];
    record.extend_from_slice(parent);
    record.put_u64(number);
    Some(record.into())
}

/// The key that finds a resource by its id, by the resource's key.
pub fn name_key_of_record(key: &[u8], id: &str) -> Bytes {
    let middle = key.get(1..key.len().saturating_sub(8)).unwrap_or_default();
    [&[tags::meta::NAME], middle, id.as_bytes()].concat().into()
}

/// Bytes of the rid that a resource of a kind belongs to.
fn parent_length(kind: u8) -> Option<usize> {
    const DATABASE: usize = 4;
    const CONTAINER: usize = 8;
    Some(match kind {
        kind if kind == RecordKind::Database as u8 || kind == RecordKind::Offer as u8 => 0,
        kind if kind == RecordKind::Container as u8
            || kind == RecordKind::User as u8
            || kind == RecordKind::ClientEncryptionKey as u8 =>
        {
            DATABASE
        }
        kind if kind == RecordKind::Permission as u8
            || kind == RecordKind::StoredProcedure as u8
            || kind == RecordKind::Trigger as u8
            || kind == RecordKind::UserDefinedFunction as u8 =>
        {
            CONTAINER
        }
        _ => return None,
    })
}

/// The key of a container's key ranges.
pub fn ranges_key(container: Rid) -> Bytes {
    let mut key = vec![tags::meta::RANGES];
    key.extend_from_slice(container.as_bytes());
    key.into()
}

/// The key that says a shard's documents wait to be removed.
pub fn sweep_key(shard: u64) -> Bytes {
    let mut key = vec![tags::meta::SWEEP];
    key.put_u64(shard);
    key.into()
}

/// The shard in a sweep key.
pub fn read_sweep_key(key: &[u8]) -> Result<u64, Malformed> {
    read_record_number(key)
}

fn prefix(tag: u8, kind: RecordKind, parent: Rid) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(tag);
    key.push(kind as u8);
    key.extend_from_slice(parent.as_bytes());
    key
}

/// A catalog resource as stored: `version (8, filled in by the engine) | format 1 | etag (8) | _ts (8) | id length (2) |
/// id | JSON definition`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The commit of the catalog that wrote it.
    pub version: u64,
    /// What the etag is printed from.
    pub etag: u64,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// The user's name for it.
    pub id: String,
    /// The definition as JSON text.
    pub definition: String,
}

const FORMAT: u8 = 1;
const FORMAT_MERGED: u8 = 2;

impl Record {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(27 + self.id.len() + self.definition.len());
        bytes.put_u64(self.version);
        bytes.put_u8(FORMAT);
        bytes.put_u64(self.etag);
        bytes.put_u64(self.timestamp);
        bytes.put_u16(self.id.len() as u16);
        bytes.put_slice(self.id.as_bytes());
        bytes.put_slice(self.definition.as_bytes());
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(mut bytes: &[u8]) -> Result<Record, Malformed> {
        let malformed = || Malformed::new("catalog resource");
        let version = bytes.try_get_u64().map_err(|_| malformed())?;
        if bytes.try_get_u8().map_err(|_| malformed())? != FORMAT {
            return Err(malformed());
        }
        let etag = bytes.try_get_u64().map_err(|_| malformed())?;
        let timestamp = bytes.try_get_u64().map_err(|_| malformed())?;
        let id_length = usize::from(bytes.try_get_u16().map_err(|_| malformed())?);
        let (id, definition) = bytes.split_at_checked(id_length).ok_or_else(malformed)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| malformed());
        Ok(Record { version, etag, timestamp, id: text(id)?, definition: text(definition)? })
    }
}

/// One key range of a container: `id (4) | shard (8) | length and bytes of both bounds | parents`, and in format 2 whether it was
/// merged (1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRangeRow {
    /// The range's id, never reused within its container.
    pub id: u32,
    /// The shard that holds its documents.
    pub shard: u64,
    /// First effective key, included.
    pub min: Vec<u8>,
    /// Last effective key, not included.
    pub max: Vec<u8>,
    /// All ranges it came from, oldest first.
    pub parents: Vec<u32>,
    /// Whether it, or a range it came from, was merged of several.
    pub is_merged: bool,
}

impl KeyRangeRow {
    /// The bytes of a container's ranges: `format 1, or 2 if one was merged | count (4) | rows`.
    pub fn encode_all(rows: &[KeyRangeRow]) -> Bytes {
        let has_merged = rows.iter().any(|row| row.is_merged);
        let mut bytes = vec![if has_merged { FORMAT_MERGED } else { FORMAT }];
        bytes.put_u32(rows.len() as u32);
        for row in rows {
            bytes.put_u32(row.id);
            bytes.put_u64(row.shard);
            for bound in [&row.min, &row.max] {
                bytes.put_u16(bound.len() as u16);
                bytes.put_slice(bound);
            }
            bytes.put_u16(row.parents.len() as u16);
            row.parents.iter().for_each(|parent| bytes.put_u32(*parent));
            if has_merged {
                bytes.put_u8(u8::from(row.is_merged));
            }
        }
        bytes.into()
    }

    /// Reads a container's ranges.
    pub fn decode_all(mut bytes: &[u8]) -> Result<Vec<KeyRangeRow>, Malformed> {
        let rows = decode_rows(&mut bytes).ok_or(Malformed::new("key ranges"))?;
        if bytes.is_empty() { Ok(rows) } else { Err(Malformed::new("key ranges")) }
    }
}

fn decode_rows(bytes: &mut &[u8]) -> Option<Vec<KeyRangeRow>> {
    let format = bytes.try_get_u8().ok()?;
    if format != FORMAT && format != FORMAT_MERGED {
        return None;
    }
    let count = bytes.try_get_u32().ok()?;
    let rows: Vec<KeyRangeRow> =
        (0..count).map(|_| decode_row(bytes, format == FORMAT_MERGED)).collect::<Option<_>>()?;
    let has_merged = rows.iter().any(|row| row.is_merged);
    (has_merged == (format == FORMAT_MERGED)).then_some(rows)
}

fn decode_row(bytes: &mut &[u8], has_merged: bool) -> Option<KeyRangeRow> {
    let id = bytes.try_get_u32().ok()?;
    let shard = bytes.try_get_u64().ok()?;
    let mut bound = || {
        let length = usize::from(bytes.try_get_u16().ok()?);
        let (bound, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(bound.to_vec())
    };
    let (min, max) = (bound()?, bound()?);
    let parent_count = bytes.try_get_u16().ok()?;
    let parents = (0..parent_count).map(|_| bytes.try_get_u32().ok()).collect::<Option<_>>()?;
    let is_merged = match has_merged.then(|| bytes.try_get_u8()).transpose().ok()? {
        None | Some(0) => false,
        Some(1) => true,
        Some(_) => return None,
    };
    Some(KeyRangeRow { id, shard, min, max, parents, is_merged })
}
