//! Which generations of the index a container has, and how far a new one is: records in space `Meta`.
//!
//! - `05 | container rid` -> [`GenerationsRecord`]. Without one the container has generation 1, made by its own definition.
//!   Written by commits of the catalog only.
//! - `06 | shard (8)` -> [`Watermark`]: what a generation under construction has of the shard. Written by commits of the
//!   shard only, so that its version is comparable with the LSNs of documents.
//! - `07 | shard (8) | generation (1)` -> nothing: the generation's entries in the shard wait to be removed.
//!
//! A construction has a number of its own, never used again, because generations are: a watermark of another
//! construction says nothing.

use crate::{Malformed, Rid, tags};
use bytes::{Buf as _, BufMut as _, Bytes};

/// The generation of a container that has no record.
pub const FIRST_GENERATION: u8 = 1;
const FORMAT: u8 = 1;
const GENERATIONS_FORMAT: u8 = 2;
const WATERMARK_FORMAT: u8 = 2;
/// Stands for "no generation": none is under construction, or none can be used because entries were lost.
pub const NO_GENERATION: u8 = 0;
/// Stands for "not known yet".
const UNKNOWN: u64 = u64::MAX;

/// The generations of a container's index: `version (8, filled in by the engine) | format 2 | active (1) | building (1), 0
/// for none | construction (8) | has expiry (1) | JSON`. Format 1, which is read, is without the expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationsRecord {
    /// The commit of the catalog that wrote it.
    pub version: u64,
    /// The generation that queries use; [`NO_GENERATION`] while they have to do without, because its entries were lost.
    pub active: u8,
    /// The generation under construction.
    pub building: Option<Building>,
    /// Whether the active generation has the entries by which documents expire ([`crate::index_expiry`]).
    pub has_expiry: bool,
    /// The container's definition that the active generation follows, as JSON text; empty if it is the present one.
    pub definition: String,
}

/// A generation under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Building {
    /// The generation.
    pub generation: u8,
    /// The number of the construction.
    pub construction: u64,
}

impl Default for GenerationsRecord {
    fn default() -> GenerationsRecord {
        GenerationsRecord {
            version: 0,
            active: FIRST_GENERATION,
            building: None,
            has_expiry: false,
            definition: String::new(),
        }
    }
}

impl GenerationsRecord {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(20 + self.definition.len());
        bytes.put_u64(self.version);
        bytes.put_u8(GENERATIONS_FORMAT);
        bytes.put_u8(self.active);
        bytes.put_u8(self.building.map_or(NO_GENERATION, |building| building.generation));
        bytes.put_u64(self.building.map_or(0, |building| building.construction));
        bytes.put_u8(u8::from(self.has_expiry));
        bytes.put_slice(self.definition.as_bytes());
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(mut bytes: &[u8]) -> Result<GenerationsRecord, Malformed> {
        let malformed = || Malformed::new("generations of an index");
        let version = bytes.try_get_u64().map_err(|_| malformed())?;
        let format = bytes.try_get_u8().map_err(|_| malformed())?;
        if ![FORMAT, GENERATIONS_FORMAT].contains(&format) {
            return Err(malformed());
        }
        let active = bytes.try_get_u8().map_err(|_| malformed())?;
        let generation = bytes.try_get_u8().map_err(|_| malformed())?;
        let construction = bytes.try_get_u64().map_err(|_| malformed())?;
        let has_expiry = format != FORMAT && bytes.try_get_u8().map_err(|_| malformed())? != 0;
        if active == generation {
            return Err(malformed());
        }
        let building = (generation != NO_GENERATION).then_some(Building { generation, construction });
        let definition = String::from_utf8(bytes.to_vec()).map_err(|_| malformed())?;
        Ok(GenerationsRecord { version, active, building, has_expiry, definition })
    }
}

/// What a generation under construction has of a shard: `version (8, filled in by the engine) | format 2 | construction
/// (8) | begun (8) | built (8) | last (8) | fencing number (8)`. Format 1, which is read, ends without the fencing number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// The commit of the shard that wrote it.
    pub version: u64,
    /// Which construction it is about.
    pub construction: u64,
    /// The commit of the shard that began the construction: whatever was written later is in the new generation, because
    /// its writer put it there.
    pub begun: u64,
    /// Documents up to this number are in the new generation.
    pub built: u64,
    /// The highest number that a document written before the beginning has; `None` until somebody looked.
    pub last: Option<u64>,
    /// Of the lease of whoever wrote it: those with a smaller one have lost theirs.
    pub fencing_number: u64,
}

impl Watermark {
    /// The first one of a construction; its own commit is the beginning.
    pub fn first(construction: u64, fencing_number: u64) -> Watermark {
        Watermark { version: 0, construction, begun: 0, built: 0, last: None, fencing_number }
    }

    /// Whether the generation under construction has a document, by the document's number and LSN.
    pub fn has(&self, number: u64, lsn: u64) -> bool {
        number <= self.built || lsn > self.begun
    }

    /// Whether the generation has every document of the shard.
    pub fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.built >= last)
    }

    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(49);
        bytes.put_u64(self.version);
        bytes.put_u8(WATERMARK_FORMAT);
        bytes.put_u64(self.construction);
        bytes.put_u64(self.begun);
        bytes.put_u64(self.built);
        bytes.put_u64(self.last.unwrap_or(UNKNOWN));
        bytes.put_u64(self.fencing_number);
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(bytes: &[u8]) -> Result<Watermark, Malformed> {
        let malformed = Malformed::new("watermark of an index");
        match (bytes.len(), bytes.get(8)) {
            (41, Some(&FORMAT)) | (49, Some(&WATERMARK_FORMAT)) => {}
            _ => return Err(malformed),
        }
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|index| bytes[at + index]));
        let (version, begun) = (number(0), number(17));
        Ok(Watermark {
            version,
            construction: number(9),
            begun: if begun == 0 { version } else { begun },
            built: number(25),
            last: Some(number(33)).filter(|last| *last != UNKNOWN),
            fencing_number: if bytes[8] == FORMAT { 0 } else { number(41) },
        })
    }
}

/// The key of a container's generations.
pub fn generations_key(container: Rid) -> Bytes {
    let mut key = vec![tags::meta::GENERATIONS];
    key.extend_from_slice(container.as_bytes());
    key.into()
}

/// The container's rid in the key of its generations.
pub fn read_generations_key(key: &[u8]) -> Result<Rid, Malformed> {
    let malformed = || Malformed::new("key of an index's generations");
    Rid::from_bytes(key.get(1..).ok_or_else(malformed)?).ok_or_else(malformed)
}

/// The key of a shard's watermark.
pub fn watermark_key(shard: u64) -> [u8; 9] {
    let mut key = [tags::meta::WATERMARK; 9];
    key[1..].copy_from_slice(&shard.to_be_bytes());
    key
}

/// The key that says a generation of a shard waits to be removed.
pub fn sweep_key(shard: u64, generation: u8) -> Bytes {
    let mut key = sweep_prefix(shard).to_vec();
    key.push(generation);
    key.into()
}

/// What all such keys of a shard begin with.
pub fn sweep_prefix(shard: u64) -> [u8; 9] {
    let mut key = [tags::meta::SWEEP_GENERATION; 9];
    key[1..].copy_from_slice(&shard.to_be_bytes());
    key
}

/// The shard and generation in such a key.
pub fn read_sweep_key(key: &[u8]) -> Result<(u64, u8), Malformed> {
    let key: &[u8; 10] = key.try_into().map_err(|_| Malformed::new("mark of a generation"))?;
    Ok((u64::from_be_bytes(std::array::from_fn(|index| key[1 + index])), key[9]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_written() {
        let building = Some(Building { generation: 3, construction: 77 });
        for record in [
            GenerationsRecord::default(),
            GenerationsRecord {
                version: 5,
                active: 255,
                building,
                has_expiry: true,
                definition: "{}".to_owned(),
            },
        ] {
            assert_eq!(GenerationsRecord::decode(&record.encode()), Ok(record));
        }
        let old = [&[0; 7][..], &[5, 1, 2, 0], &[0; 8], b"{}"].concat();
        let read =
            GenerationsRecord { version: 5, active: 2, definition: "{}".to_owned(), ..Default::default() };
        assert_eq!(GenerationsRecord::decode(&old), Ok(read));
        for mark in [
            Watermark {
                version: 9,
                construction: 1,
                begun: 4,
                built: 7,
                last: Some(u64::MAX - 1),
                fencing_number: 5,
            },
            Watermark { version: 9, begun: 9, ..Watermark::first(1, 6) },
        ] {
            assert_eq!(Watermark::decode(&mark.encode()), Ok(mark));
        }
        let first = Watermark { version: 6, ..Watermark::first(2, 3) };
        assert_eq!(Watermark::decode(&first.encode()).unwrap().begun, 6);
        let mut old = first.encode()[..41].to_vec();
        old[8] = 1;
        assert_eq!(Watermark::decode(&old), Ok(Watermark { begun: 6, fencing_number: 0, ..first }));
        assert_eq!(read_sweep_key(&sweep_key(300, 7)), Ok((300, 7)));
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let good = GenerationsRecord::default().encode();
        for length in 0..good.len() {
            assert!(GenerationsRecord::decode(&good[..length]).is_err(), "{length} bytes");
        }
        for length in [40, 42, 48, 49] {
            assert!(Watermark::decode(&vec![1; length]).is_err(), "{length} bytes");
        }
        assert!(read_sweep_key(&[7; 9]).is_err());
        let same = Some(Building { generation: 1, construction: 7 });
        let twice = GenerationsRecord { building: same, ..GenerationsRecord::default() };
        assert!(GenerationsRecord::decode(&twice.encode()).is_err());
    }

    #[test]
    fn a_watermark_tells_what_is_there() {
        let mark = Watermark { begun: 10, built: 100, last: Some(200), ..Watermark::first(1, 0) };
        for (number, lsn, has) in [(100, 1, true), (101, 10, false), (101, 11, true), (300, 12, true)] {
            assert_eq!(mark.has(number, lsn), has, "number {number}, LSN {lsn}");
        }
        assert!(!mark.is_complete());
        assert!(Watermark { built: 200, ..mark }.is_complete());
        assert!(!Watermark { last: None, ..mark }.is_complete());
    }
}
